"""Comparison."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Comparison",
    question="Which of several models is better on the same images, by paired tests?",
    study="shiftproof.studies.comparison.study:ComparisonStudy",
    section="shiftproof.studies.comparison.section:SECTION",
    least_models=2,
)
