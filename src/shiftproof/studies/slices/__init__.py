"""Slices: images that go wrong together."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Slices",
    question="Which groups of images have a high error rate, by facts (metadata), classes, pixels and features?",
    study="shiftproof.studies.slices.study:SliceStudy",
    options="shiftproof.studies.slices.options:SliceOptions",
    section="shiftproof.studies.slices.section:SECTION",
    by_default=False,
)
