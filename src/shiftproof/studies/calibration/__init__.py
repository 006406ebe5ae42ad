"""Calibration."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Calibration",
    question="Does the model's confidence match its accuracy?",
    study="shiftproof.studies.calibration.study:CalibrationStudy",
    options="shiftproof.studies.calibration.options:CalibrationOptions",
    section="shiftproof.studies.calibration.section:SECTION",
    verdict="shiftproof.studies.calibration.verdict:JUDGE",
)
