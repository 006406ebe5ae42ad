"""Likely label errors."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Likely label errors",
    question="Which images have a label that is likely wrong, and what is the accuracy once people have corrected them?",
    study="shiftproof.studies.labels.study:LabelStudy",
    options="shiftproof.studies.labels.options:LabelOptions",
    section="shiftproof.studies.labels.section:SECTION",
    by_default=False,
)
