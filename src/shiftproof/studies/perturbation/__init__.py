"""Perturbation stability."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Perturbation stability",
    question="How often does the prediction flip while an image changes step by step (ImageNet-P)?",
    study="shiftproof.studies.perturbation.study:PerturbationStudy",
    options="shiftproof.studies.perturbation.options:PerturbationOptions",
    section="shiftproof.studies.perturbation.section:SECTION",
    verdict="shiftproof.studies.perturbation.verdict:JUDGE",
)
