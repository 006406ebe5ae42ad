"""Options of the search for slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from shiftproof.options import Bounds, option
from shiftproof.studies.options import Assembled, Context, StudyOptions, keep_of

if TYPE_CHECKING:
    from shiftproof.studies.options import Classifiers
    from shiftproof.types import Dataset


class SliceOptions(StudyOptions):
    """Which groups of images are tried."""

    TITLE: ClassVar[str] = "Slices"

    smallest_slice: int = option(
        20, "Minimum size of a slice, in images; half as many in each half of the images.", bounds=Bounds(10)
    )
    to_confirm: int = option(20, "Maximum number of candidates of one half to test on the other.", bounds=Bounds(1, 1000))
    facts_alone: bool = option(
        False, "Search facts (metadata) and classes only: no pixels are read, no features are clustered."
    )

    def assemble(self, study: Callable[..., Any], models: Classifiers, dataset: Dataset, context: Context) -> Assembled:
        from shiftproof.runs.image_facts import with_image_facts

        images = dataset if self.facts_alone else with_image_facts(dataset, context.store)
        made = study(
            models=models,
            dataset=images,
            smallest=self.smallest_slice,
            most=self.to_confirm,
            keep="top5" if self.facts_alone else keep_of(models, context.store),
        )
        return Assembled([made], [images])
