"""Out-of-distribution detection."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Out-of-distribution detection",
    question="Which OOD detectors detect new classes and failures, and which just new styles (ImageNet-OOD)?",
    study="shiftproof.studies.ood.study:OODStudy",
    options="shiftproof.studies.ood.options:OODOptions",
    section="shiftproof.studies.ood.section:SECTION",
    verdict="shiftproof.studies.ood.verdict:JUDGE",
)
