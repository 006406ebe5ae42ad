"""Likely label errors."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Likely label errors",
    question="Which labels are likely wrong, and what is the accuracy after reviewers have corrected them?",
    study="shiftproof.studies.labels.study:LabelStudy",
    options="shiftproof.studies.labels.options:LabelOptions",
    section="shiftproof.studies.labels.section:SECTION",
    by_default=False,
)
