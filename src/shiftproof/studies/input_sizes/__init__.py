"""Input sizes."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Input sizes",
    question="How does accuracy change with the input size of the model?",
    study="shiftproof.studies.input_sizes.study:InputSizeStudy",
    options="shiftproof.studies.input_sizes.options:InputSizeOptions",
    section="shiftproof.studies.input_sizes.section:SECTION",
    by_default=False,
)
