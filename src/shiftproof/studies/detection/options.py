"""Options of the object detection study."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.studies.options import Assembled, Context, FrameSettings, IoUSettings, StudyOptions

if TYPE_CHECKING:
    from shiftproof.types import Dataset


class DetectionOptions(IoUSettings, FrameSettings, StudyOptions):
    """Average precision at these IoU thresholds; of frames around anchors as far as was asked."""

    TITLE: ClassVar[str] = "Object detection"

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:  # noqa: ARG002
        made = study(
            models=models,
            dataset=dataset,
            iou=self.thresholds(),
            largest_k=self.largest_k,
            include_anchor=not self.without_anchor,
        )
        return Assembled([made], [dataset])
