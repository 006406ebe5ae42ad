"""Options of the accuracy study."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.errors import BadInput
from shiftproof.options import SHARE, option
from shiftproof.studies.options import Assembled, CleanImages, Context, StudyOptions

if TYPE_CHECKING:
    from shiftproof.types import Dataset


class AccuracyOptions(CleanImages, StudyOptions):
    """Accuracy, and for natural shifts of ImageNet the place among published models."""

    TITLE: ClassVar[str] = "Accuracy"

    imagenet_accuracy: float | None = option(
        None,
        "Top-1 accuracy on ImageNet validation, as a share: for the place among published models on ImageNetV2, -Sketch, -A "
        "and -R, where --clean-images does not name the images to measure it on.",
        bounds=SHARE,
    )

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.studies.accuracy.shifts import NATURAL_SHIFTS

        if dataset.published not in NATURAL_SHIFTS:
            self.refuse(
                ("imagenet_accuracy",),
                f"{dataset.ref.name} is no natural shift of ImageNet",
                "leave it out for these images",
            )
            return Assembled([study(models=models, dataset=dataset)], [dataset])
        if self.imagenet_accuracy is not None and len(models) > 1:
            raise BadInput("--imagenet-accuracy is of one model; for several, name ImageNet validation as --clean-images")
        clean = context.open_dataset(self.clean_images) if self.clean_images else None
        made = study(models=models, dataset=dataset, imagenet=clean, imagenet_accuracy=self.imagenet_accuracy)
        return Assembled([made], [dataset, *([clean] if clean else [])])
