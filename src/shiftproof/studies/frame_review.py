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
    if "reviewed" not in facts:
        return Verdicts(np.zeros(frames, bool), np.zeros(frames, bool))
    plain = {word: str(word).strip().lower() for word in set(facts["reviewed"])}
    said = [plain[word] for word in facts["reviewed"]]
    similar = np.array([word in SIMILAR for word in said], bool)
    return Verdicts(similar, ~similar & np.array([word not in NOBODY_LOOKED for word in said], bool))
