"""Object detection."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Object detection",
    question="How well are objects found, by IoU, class and object size (mAP), and around anchor frames (pm-k mAP)?",
    study="shiftproof.studies.detection.study:DetectionStudy",
    options="shiftproof.studies.detection.options:DetectionOptions",
    section="shiftproof.studies.detection.section:SECTION",
    verdict="shiftproof.studies.detection.verdict:JUDGE",
    needs="boxes",
    always=True,
)
