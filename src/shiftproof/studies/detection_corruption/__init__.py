"""Object detection under corruption."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Object detection under corruption",
    question="How much mAP is left under corruptions (mPC, rPC)?",
    study="shiftproof.studies.detection_corruption.study:DetectionCorruptionStudy",
    options="shiftproof.studies.detection_corruption.options:DetectionCorruptionOptions",
    section="shiftproof.studies.detection_corruption.section:SECTION",
    verdict="shiftproof.studies.detection_corruption.verdict:JUDGE",
    needs="boxes",
)
