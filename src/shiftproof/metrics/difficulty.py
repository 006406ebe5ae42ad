"""How hard images are for people: who named which of them rightly, and how many were easy, middling or hard."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

Rightness: TypeAlias = NDArray[np.integer]
"""What became of each answer, (images, people): 1 right, 0 wrong, -1 where a person did not answer."""

Subset = Literal["easy", "middle", "hard"]
SUBSETS: tuple[Subset, ...] = ("easy", "middle", "hard")
"""Right by everybody who answered, by some of them, by nobody."""


def two_by_two(first: Rightness, second: Rightness) -> NDArray[np.integer]:
    """How many images two people got right, both over images that both answered, (2, 2).

    The first row is what the first person got right: with the second, and alone; the other what the first got wrong.

    >>> two_by_two(np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, -1]))
    array([[1, 1],
           [1, 1]])
    """
    if first.shape != second.shape or first.ndim != 1:
        raise BadInput(f"answers of two people should be (images,) for both, got {first.shape} and {second.shape}")
    both = (first >= 0) & (second >= 0)
    mine, theirs = first[both] == 1, second[both] == 1
    return np.array([[(mine & theirs).sum(), (mine & ~theirs).sum()], [(~mine & theirs).sum(), (~mine & ~theirs).sum()]])


def subsets_of(right: Rightness) -> NDArray[np.integer]:
    """The place in SUBSETS of each image, (images,); -1 where nobody answered.

    >>> subsets_of(np.array([[1, 1], [1, 0], [0, 0], [-1, 1], [-1, -1]]))
    array([ 0,  1,  2,  0, -1])
    """
    if right.ndim != 2:
        raise BadInput(f"answers should be (images, people), got shape {right.shape}")
    answers, good = (right >= 0).sum(axis=1), (right == 1).sum(axis=1)
    found = np.where(good == 0, 2, np.where(good == answers, 0, 1))
    return np.where(answers == 0, -1, found)
