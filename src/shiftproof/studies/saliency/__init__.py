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

PREDICTED, TRUE = "predicted class", "true class"
"""Which class a map is of; of correct images there is only one."""

BY_CHANCE = "share of the input in boxes"
"""Convention: mean share of the saliency that would lie on the object if spread evenly."""
