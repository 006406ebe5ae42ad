"""Options of the saliency study."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shiftproof.options import SHARE, Bounds, option
from shiftproof.studies.options import Assembled, Context, StudyOptions

if TYPE_CHECKING:
    from shiftproof.types import Dataset


class SaliencyOptions(StudyOptions):
    """Saliency maps of some misclassified and some correct images."""

    TITLE: ClassVar[str] = "Saliency"

    saliency_images: int = option(
        50, "Misclassified images, and as many correct ones, to compute saliency maps of.", bounds=Bounds(1)
    )
    saliency_method: Literal["grad-cam", "class-activation", "occlusion"] | None = option(
        None,
        "How saliency maps are computed.  [default: the best that the model allows]",
        choices=("grad-cam", "class-activation", "occlusion"),
    )
    saliency_region: float = option(0.1, "Share of the input that is its most salient region.", bounds=SHARE)

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:  # noqa: ARG002
        made = study(
            models=models,
            dataset=dataset,
            images=self.saliency_images,
            method=self.saliency_method,
            region=self.saliency_region,
        )
        return Assembled([made], [dataset])
