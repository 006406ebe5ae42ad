"""Accuracy."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Accuracy",
    question="How accurate is the model, by class and group, and how severe are its misclassifications?",
    study="shiftproof.studies.accuracy.study:AccuracyStudy",
    options="shiftproof.studies.accuracy.options:AccuracyOptions",
    section="shiftproof.studies.accuracy.section:SECTION",
    verdict="shiftproof.studies.accuracy.verdict:JUDGE",
    always=True,
)
