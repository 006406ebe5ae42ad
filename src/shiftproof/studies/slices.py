"""Groups of images by what is known of them: each value of a fact, or ranges of a numeric one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Fact

NOT_GIVEN = "not given"
FEW_VALUES = 10
"""A numeric fact with more different values than this is cut into ranges."""
MOST_GROUPS = 1000


@dataclass(frozen=True)
class Slices:
    """The groups one fact divides the images into."""

    fact: str
    names: tuple[str, ...]
    groups: NDArray[np.integer]  # (images,): the place of each image's group in `names`

    @property
    def why_useless(self) -> str | None:
        """Why these groups say nothing, or None."""
        if 2 * len(self.names) > len(self.groups):
            return f"fact {self.fact!r} has another value for nearly every image, so it makes no groups"
        if len(self.names) > MOST_GROUPS:
            return f"fact {self.fact!r} makes {len(self.names)} groups, more than the {MOST_GROUPS} one can look at"
        return None


def all_slices(facts: Mapping[str, Sequence[Fact]], *, ranges: int) -> list[Slices]:
    """The groups of every fact that has more than one value."""
    found = [slices_by(fact, values, ranges=ranges) for fact, values in facts.items()]
    return [slices for slices in found if len(slices.names) > 1]


def slices_by(fact: str, values: Sequence[Fact], *, ranges: int = 4) -> Slices:
    """Groups of equal values, or for a number of many values that many ranges with about as many images each.

    >>> slices_by("site", ["pier", "dune", None, "pier"]).names
    ('dune', 'not given', 'pier')
    >>> slices_by("width", list(range(100, 120)), ranges=2).names
    ('100 to 109', '110 to 119')
    """
    kinds = {type(value) for value in values} - {type(None)}
    if kinds and kinds <= {int, float}:
        return _by_number(fact, np.array([math.nan if value is None else value for value in values], dtype=float), ranges)
    texts = [NOT_GIVEN if value is None or value == "" else str(value) for value in values]
    names = sorted(set(texts))
    places = {name: place for place, name in enumerate(names)}
    return Slices(fact, tuple(names), np.array([places[text] for text in texts], dtype=np.intp))


def _by_number(fact: str, numbers: NDArray[np.floating], ranges: int) -> Slices:
    known = np.isfinite(numbers)
    distinct, groups = np.unique(numbers[known], return_inverse=True)
    if len(distinct) > FEW_VALUES:
        inner_edges = np.quantile(numbers[known], np.linspace(0, 1, ranges + 1)[1:-1])
        _, groups = np.unique(np.searchsorted(inner_edges, numbers[known], side="left"), return_inverse=True)
    members = [numbers[known][groups == group] for group in range(int(groups.max(initial=-1)) + 1)]
    names = [_range_name(float(values.min()), float(values.max())) for values in members]
    places = np.full(len(numbers), len(names))
    places[known] = groups
    return Slices(fact, (*names, *([] if known.all() else [NOT_GIVEN])), places)


def _range_name(low: float, high: float) -> str:
    return _plain(low) if low == high else f"{_plain(low)} to {_plain(high)}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.6g}"
