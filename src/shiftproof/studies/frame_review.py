"""What people said of frames that they saw beside their anchors, as image sets carry it in the fact `reviewed`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Fact

Facts: TypeAlias = Mapping[str, Sequence[Fact]]
"""What is known of each image, by name, as predictions and found objects have it."""

SIMILAR = ("true", "similar")
NOBODY_LOOKED = ("false", "none", "")


class Verdicts(NamedTuple):
    """Which frames people found like their anchor, and which they did not; of the others nobody has said anything."""

    similar: NDArray[np.bool_]  # (frames,)
    rejected: NDArray[np.bool_]  # (frames,)


def verdicts_of(facts: Facts, frames: int) -> Verdicts:
    """The verdict on each of so many frames: ``similar`` or true stands, any other word rejects, false is none.

    >>> verdicts_of({"reviewed": (True, "dissimilar", False, "similar")}, 4)
    Verdicts(similar=array([ True, False, False,  True]), rejected=array([False,  True, False, False]))
    """
    said = np.array([str(word).strip().lower() for word in facts.get("reviewed", (None,) * frames)], np.str_)
    similar = np.isin(said, SIMILAR)
    return Verdicts(similar, ~similar & ~np.isin(said, NOBODY_LOOKED))
