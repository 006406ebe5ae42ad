"""Objects that may become crops, each with the part of its image of which it fills as much as its class usually does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shiftproof.curation.boxed_objects import BoxedObject
from shiftproof.curation.crops import window_for_share
from shiftproof.image_sets.crops import CropsOf
from shiftproof.image_sets.cutting import Cut, Window, window_around
from shiftproof.image_sets.image_list import ImageList
from shiftproof.metrics.object_size import object_share
from shiftproof.types import Fact, Sample

Shown = Literal["tight", "final"]
"""How much of the image a crop shows: the box alone, or as much around it as is usual."""


@dataclass(frozen=True)
class Candidate:
    """An object, and the share of an image that objects of its class usually fill."""

    boxed: BoxedObject
    usual_share: float  # nan where nobody knows

    @property
    def id(self) -> str:
        return self.boxed.id

    @property
    def has_window(self) -> bool:
        return self.boxed.problem is None and not math.isnan(self.usual_share)

    @property
    def window(self) -> Window:
        """Pixels of which it fills the usual share; the whole image where it fills more of that."""
        return window_around(window_for_share(self.boxed.box, self.boxed.size, share=self.usual_share), 0)

    @property
    def share_in_crop(self) -> float:
        left, top, right, bottom = self.window
        return float(object_share(np.array([self.boxed.box]), np.array([[right - left, bottom - top]]))[0])

    @property
    def fills_too_much(self) -> bool:
        """Whether it fills more of the whole image than is usual, so that no window has the usual share."""
        return self.boxed.share > self.usual_share

    def facts(self) -> dict[str, Fact]:
        """What the accuracy on crops may be sliced by."""
        shares = {
            "share_in_image": self.boxed.share,
            "share_in_crop": self.share_in_crop,
            "usual_share": self.usual_share,
        }
        return {name: round(share, 6) for name, share in shares.items()}


def cropped(images: ImageList, candidates: Sequence[Candidate], shown: Shown) -> ImageList:
    """The candidates as an image set, cut out when they are read."""
    boxes = {one.id: one.boxed.box if shown == "tight" else one.window for one in candidates}
    samples = [Sample(one.id, (one.boxed.label,), one.facts()) for one in candidates]
    find = CropsOf(images, {sample.id: sample for sample in images.samples}, boxes, Cut("crop", 0.0, False))
    return ImageList(f"{shown} crops of {images.name}", samples, images.classes, find, credits=images.credits)
