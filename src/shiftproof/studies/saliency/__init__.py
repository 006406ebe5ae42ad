"""Saliency."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Saliency",
    question="Is the saliency on the object, for correct and for misclassified images?",
    study="shiftproof.studies.saliency.study:SaliencyStudy",
    options="shiftproof.studies.saliency.options:SaliencyOptions",
    section="shiftproof.studies.saliency.section:SECTION",
    by_default=False,
)
