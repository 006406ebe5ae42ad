"""Temporal robustness."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Temporal robustness",
    question="Does the prediction hold on every video frame around an anchor frame (pm-k accuracy)?",
    study="shiftproof.studies.temporal.study:TemporalStudy",
    options="shiftproof.studies.temporal.options:TemporalOptions",
    section="shiftproof.studies.temporal.section:SECTION",
    verdict="shiftproof.studies.temporal.verdict:JUDGE",
)
