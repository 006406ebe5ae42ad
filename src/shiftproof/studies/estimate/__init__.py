"""Accuracy without labels."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Accuracy without labels",
    question="How accurate is the model on unlabelled images?",
    study="shiftproof.studies.estimate.study:EstimateStudy",
    options="shiftproof.studies.estimate.options:EstimateOptions",
    section="shiftproof.studies.estimate.section:SECTION",
    by_default=False,
)
