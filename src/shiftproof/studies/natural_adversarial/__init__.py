"""Natural adversarial photos."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Natural adversarial photos",
    question="Does the model fail on hard natural photos, and know that it fails (ImageNet-A, ImageNet-O)?",
    study="shiftproof.studies.natural_adversarial.study:NaturalAdversarialStudy",
    options="shiftproof.studies.natural_adversarial.options:NaturalAdversarialOptions",
    section="shiftproof.studies.natural_adversarial.section:SECTION",
    verdict="shiftproof.studies.natural_adversarial.verdict:JUDGE",
    by_default=False,
)
