"""Options of the estimate of accuracy without labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.options import SEVERITIES, Bounds, CorruptionChoice, PictureSettings, option
from shiftproof.studies.options import Assembled, Context, StudyOptions, named_datasets, pictures_of

if TYPE_CHECKING:
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Dataset


class CalibrationCorruptions(CorruptionChoice):
    """The same at fewer severities: more corruptions calibrate better than all severities of some."""

    severities: tuple[int, ...] = option((1, 3, 5), SEVERITIES, bounds=Bounds(1, 5))


class EstimateOptions(CalibrationCorruptions, PictureSettings, StudyOptions):
    """Images without labels, and the shifts of labelled ones that the estimate is calibrated on."""

    TITLE: ClassVar[str] = "Accuracy without labels"
    RUN_BY: ClassVar[frozenset[str]] = frozenset({"unlabelled"})

    unlabelled: tuple[str, ...] = option(
        (),
        "Unlabelled images, as from production, on which to estimate the accuracy: DIR or NAME=DIR; repeatable.",
        repeatable=True,
        common=True,
    )
    calibrated_on: int = option(
        300,
        "Number of labelled images that are corrupted to calibrate the estimate, at severities 1, 3 and 5 where "
        "--severities is not given.",
        bounds=Bounds(40),
    )
    estimated_on: int = option(2000, "Number of images drawn from each unlabelled dataset.", bounds=Bounds(40))

    def fits(self, dataset: Dataset) -> bool:  # noqa: ARG002
        """Only where there is something to estimate."""
        return bool(self.unlabelled)

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.corruptions.selection import corruptions_named
        from shiftproof.datasets.subsets import drawn, with_label
        from shiftproof.errors import BadInput

        if not self.unlabelled:
            raise BadInput("name the images whose accuracy is to be estimated: --unlabelled DIR")
        named = named_datasets("--unlabelled", self.unlabelled)
        targets = {name: drawn(images, self.estimated_on) for name, images in named.items()}
        labelled = drawn(with_label(dataset), self.calibrated_on)
        made = study(
            models=models,
            dataset=labelled,
            corruptions=corruptions_named(",".join(self.corruptions)),
            severities=self.severities,
            **pictures_of(self, models, dataset, context, picture="model-size"),
            unlabelled=targets,
        )
        editions = {made.fit: self.scale_severity} if made.fit else {}
        return Assembled([made], [labelled, *targets.values()], editions=editions)
