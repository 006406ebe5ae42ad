"""Object and background."""

from shiftproof.studies.kind import StudyKind

KIND = StudyKind(
    title="Object and background",
    question="Is it the object or its background that the model recognises, and how large must the object be?",
    study="shiftproof.studies.objects.study:ObjectStudy",
    options="shiftproof.studies.objects.options:ObjectOptions",
    section="shiftproof.studies.objects.section:SECTION",
    verdict="shiftproof.studies.objects.verdict:JUDGE",
)
