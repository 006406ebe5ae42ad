"""Corruption robustness."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Corruption robustness",
    question="How much accuracy is lost under noise, blur, weather and digital corruptions (ImageNet-C)?",
    study="shiftproof.studies.corruption.study:CorruptionStudy",
    options="shiftproof.studies.corruption.options:CorruptionOptions",
    section="shiftproof.studies.corruption.section:SECTION",
    verdict="shiftproof.studies.corruption.verdict:JUDGE",
)
