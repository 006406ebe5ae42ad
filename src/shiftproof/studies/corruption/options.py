"""Options of the corruption study."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from shiftproof.options import POSITIVE, Bounds, CorruptionChoice, PictureSettings, option
from shiftproof.studies.options import (
    Assembled,
    BaselineSettings,
    CleanImages,
    Context,
    Parts,
    StudyOptions,
    has_facts,
    pictures_of,
)

if TYPE_CHECKING:
    from shiftproof.types import Dataset

OF_MAKING_PICTURES = (
    *("corruptions", "severities", "encoding", "clean_encoding", "scale_severity", "frost_folder", "budget", "half_width"),
)
"""Options that say nothing about corrupted images that were made before."""

FIRST_PASSES = 500
"""Forward passes of corrupted pictures that a first look takes: a round of the budget."""


class CorruptionOptions(CorruptionChoice, PictureSettings, BaselineSettings, CleanImages, StudyOptions):
    """Corruptions applied here; of a dataset that holds corrupted images already, those it holds."""

    TITLE: ClassVar[str] = "Corruption robustness"

    clean_encoding: Literal["raw", "jpeg85"] = option(
        "raw",
        "Clean pictures as they are, as published, or after the same encoding as corrupted ones.",
        choices=("raw", "jpeg85"),
    )
    budget: int | None = option(None, "Forward passes to spend on corruptions, spread over all cells.", bounds=Bounds(1))
    half_width: float | None = option(
        None,
        "Target sampling error in percentage points: half-width of the 95 % CI of the mean error for exactly these photos; "
        "excludes the sampling error of a --baseline run with a budget.",
        bounds=POSITIVE,
        metavar="POINTS",
    )

    def fits(self, dataset: Dataset) -> bool:
        return not has_facts(dataset, "sequence", "frame")

    def of(self, dataset: Dataset) -> Dataset:
        from shiftproof.datasets.subsets import anchors_of

        return anchors_of(dataset)

    def parts(self, dataset: Dataset) -> Parts | None:
        """Forward passes, spread over all cells; the unchanged pictures are among them."""
        from shiftproof.corruptions import IMAGENET_C
        from shiftproof.corruptions.selection import corruptions_named

        names = corruptions_named(",".join(self.corruptions))
        means_of_others = set(names) - set(IMAGENET_C) and set(names) & set(IMAGENET_C)
        if means_of_others or {"budget", "half_width"} & self.given or has_facts(dataset, "corruption", "severity"):
            return None
        photos, cells = len(dataset.samples), len(names) * len(self.severities)
        least = photos + min(photos * cells, max(FIRST_PASSES, 3 * cells))
        return Parts(least, photos * (cells + 1), "mean_corrupted_error", "forward passes", passes=1, nested=False)

    def within(self, units: int, dataset: Dataset) -> tuple[StudyOptions, Dataset]:
        parts = self.parts(dataset)
        whole = parts is None or units >= parts.most
        return self if whole else dataclasses.replace(self, budget=units), dataset

    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.corruptions.selection import corruptions_named

        if has_facts(dataset, "corruption", "severity"):
            return self._published(models, dataset, context)
        limits: dict[str, float | None] = {}
        if self.budget is not None or self.half_width is not None:
            from shiftproof.studies.corruption.budgeted import BudgetedCorruptionStudy

            study = BudgetedCorruptionStudy
            limits = {"budget": self.budget, "precision": self.half_width and self.half_width / 100}
        made = study(
            models=models,
            dataset=dataset,
            corruptions=corruptions_named(",".join(self.corruptions)),
            severities=self.severities,
            **pictures_of(self, models, dataset, context),
            clean_output=self.clean_encoding,
            baseline=self.baseline_in(context),
            **limits,
        )
        editions = {made.fit: self.scale_severity} if made.fit else {}
        return Assembled([made], [dataset], editions=editions)

    def _published(self, models: Any, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.studies.corruption.published import PublishedCorruptionStudy

        self.refuse(
            OF_MAKING_PICTURES,
            f"{dataset.ref.name} holds corrupted images already",
            "name the images it was made from, or one of its folders",
        )
        clean = context.open_dataset(self.clean_images) if self.clean_images else None
        made = PublishedCorruptionStudy(models=models, dataset=dataset, clean_set=clean, baseline=self.baseline_in(context))
        return Assembled([made], [dataset, *([clean] if clean else [])])
