"""Options of the calibration study."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.options import option
from shiftproof.studies.options import Assembled, Context, PublishedBins, StudyOptions

if TYPE_CHECKING:
    from shiftproof.types import Dataset


class CalibrationOptions(PublishedBins, StudyOptions):
    """Calibration from top-1 confidences, or from all logits."""

    TITLE: ClassVar[str] = "Calibration"

    thorough_calibration: bool = option(False, "Also likelihood and temperature scaling, from all logits.")

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:  # noqa: ARG002
        made = study(
            models=models,
            dataset=dataset,
            thorough=self.thorough_calibration,
            published_bins=self.published_bins,
        )
        return Assembled([made], [dataset])
