"""Options of the temporal study."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shiftproof.options import option
from shiftproof.studies.options import Assembled, Context, FrameSettings, StudyOptions, has_facts

if TYPE_CHECKING:
    from shiftproof.types import Dataset

TRENDS = {"imagenet-vid": "imagenet_vid_robust_models", "ytbb": "ytbb_robust_models"}
"""Tables of published models that effective robustness is measured from."""


class TemporalOptions(FrameSettings, StudyOptions):
    """Frames around anchors up to the largest k."""

    TITLE: ClassVar[str] = "Temporal robustness"

    trend: Literal["imagenet-vid", "ytbb"] = option(
        "imagenet-vid", "Published models for the baseline of effective robustness.", choices=tuple(TRENDS)
    )
    published_intervals: bool = option(
        False, "Confidence intervals over anchors instead of clips, as in the published tables."
    )

    def fits(self, dataset: Dataset) -> bool:
        return has_facts(dataset, "anchor", "offset")

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:  # noqa: ARG002
        made = study(
            models=models,
            dataset=dataset,
            largest_k=self.largest_k,
            include_anchor=not self.without_anchor,
            published=TRENDS[self.trend],
            published_intervals=self.published_intervals,
        )
        return Assembled([made], [dataset])
