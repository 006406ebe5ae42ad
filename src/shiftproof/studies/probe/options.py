"""Options of a probe: one photo, varied step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.errors import BadInput
from shiftproof.options import Bounds, OODDetectorChoice, OODParameters, option
from shiftproof.studies.options import (
    Assembled,
    Context,
    detector_names,
    detector_parameters,
    keep_of,
    named_datasets,
)

if TYPE_CHECKING:
    from shiftproof.types import Dataset


class ProbeOptions(OODParameters, OODDetectorChoice):
    """How a photo is varied, and which OOD detectors place it among OOD images."""

    TITLE: ClassVar[str] = "Variations"

    vary: tuple[str, ...] = option(("zoom", "crop", "hue"), "zoom, crop, hue and corruptions, comma-separated.", common=True)
    steps: int = option(9, "Pictures of each variation.", bounds=Bounds(2, 99), common=True)
    ood: tuple[str, ...] = option(
        (), "Out-of-distribution images: those among whose scores detectors place the photo.", repeatable=True, common=True
    )

    def assemble_photo(self, study: Callable[..., Any], models: Any, photo: str, context: Context) -> Assembled:
        """The study of one photo in all its variations."""
        from shiftproof.datasets import open_dataset
        from shiftproof.studies.probe.study import varied

        variations = [varied(photo, name, steps=self.steps) for name in dict.fromkeys(self.vary)]
        ood = list(named_datasets("--ood", self.ood).values())
        if len(ood) > 1:
            raise BadInput("a probe takes one OOD dataset; give --ood once")
        training = open_dataset(self.training) if self.training else None
        made = study(
            models=models,
            datasets=variations,
            ood_dataset=ood[0] if ood else None,
            training=training,
            detectors=detector_names(self),
            preset=self.preset,
            parameters=detector_parameters(self.set),
            keep=keep_of(models, context.store),
        )
        datasets: list[Dataset] = [*variations, *ood, *([training] if training else [])]
        return Assembled([made], datasets)
