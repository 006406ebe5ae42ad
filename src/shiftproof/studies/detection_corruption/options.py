"""Options of the study of object detection under corruption."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.studies.corruption.options import CorruptionOptions
from shiftproof.studies.options import Assembled, Context, IoUSettings, Parts, StudyOptions, pictures_of

if TYPE_CHECKING:
    from shiftproof.types import Dataset


class DetectionCorruptionOptions(IoUSettings, CorruptionOptions):
    """mAP at the first IoU threshold, on images corrupted as they are stored."""

    TITLE: ClassVar[str] = "Object detection under corruption"

    def of(self, dataset: Dataset) -> Dataset:
        return dataset

    def parts(self, dataset: Dataset) -> Parts | None:
        """Photos, each in every cell."""
        from shiftproof.metrics.intervals import LEAST_CLUSTERS

        photos = len(dataset.samples)
        return Parts(min(photos, LEAST_CLUSTERS), photos, "mean_performance_under_corruption")

    def within(self, units: int, dataset: Dataset) -> tuple[StudyOptions, Dataset]:
        return StudyOptions.within(self, units, dataset)

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.corruptions.selection import corruptions_named

        self.refuse(
            ("budget", "half_width", "baseline"),
            "object detectors are run under every corruption and severity",
            "name fewer of them",
        )
        made = study(
            models=models,
            dataset=dataset,
            corruptions=corruptions_named(",".join(self.corruptions)),
            severities=self.severities,
            **pictures_of(self, models, dataset, context, picture="image"),
            clean_output=self.clean_encoding,
            iou=self.thresholds()[0],
        )
        editions = {made.fit: self.scale_severity} if made.fit else {}
        return Assembled([made], [dataset], editions=editions)
