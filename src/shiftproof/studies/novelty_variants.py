"""The images that take part in a study of novelty: which sets, under which names, and what for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from shiftproof.errors import BadInput, listed
from shiftproof.types import CLEAN, Condition, ImageSetRef, ModelRef, Run

Role = Literal["inside", "shifted", "outside"]

ALL_OUTSIDE = "all outside"
"""What several outside sets are called together."""

MISTAKES_ALONE = "mistakes alone"
"""What failure detection has to find where there is no outside set."""


@dataclass(frozen=True)
class Variant:
    """Images under one name: of the classes a model knows, of the same classes otherwise, or of others."""

    name: str
    role: Role
    image_set: ImageSetRef
    condition: Condition = CLEAN

    def run(self, model: ModelRef) -> Run:
        """What has to be asked of a model."""
        return Run(model, self.image_set, self.condition)


def check_variants(variants: Sequence[Variant], training: Sequence[ImageSetRef]) -> None:
    """BadInput where a name stands for two things, or the same images for two."""
    times = Counter([variant.name for variant in variants] + [ALL_OUTSIDE, MISTAKES_ALONE])
    twice = [name for name, count in times.items() if count > 1]
    if twice:
        raise BadInput(f"image sets of one study need names of their own; given twice: {listed(twice)}")
    sets = [(f"{variant.name} ({variant.role})", variant.image_set) for variant in variants if variant.condition == CLEAN]
    sets += [(f"{images.name} (training)", images) for images in training]
    for (first, ours), (second, theirs) in combinations(sets, 2):
        if ours.place == theirs.place:
            raise BadInput(f"{first} and {second} are the same images; a set is there for one thing")
