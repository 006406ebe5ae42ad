"""Images from the surest to the least sure, and which of them are equally sure.

Whether an image is right travels in the lowest bit of its sorting key: sorting keys takes a third of the time of sorting
places and fetching.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally

Sureness = NDArray[np.floating]
"""How sure a model is of each answer, (images,): any real score where higher is surer, such as minus an anomaly score."""

_Keys = NDArray[np.uint64]
"""Bits of a sureness, and in the lowest one whether the image is right."""


class SurestFirst(NamedTuple):
    """Answers in the order of sureness; of equals the right ones come first."""

    right: NDArray[np.bool_]  # (images,)
    less_sure: NDArray[np.bool_]  # (images - 1,): whether an image is less sure than the one before it

    def ends(self) -> NDArray[np.integer]:
        """How many images are at least as sure as those of each level of sureness, (levels,)."""
        return np.append(np.flatnonzero(self.less_sure) + 1, len(self.right))

    def expected_right(self) -> NDArray[np.floating]:
        """How many of the surest 1, 2, 3 and so on are right, on average over all orders of equals, (images,)."""
        reached = np.cumsum(self.right, dtype=float)
        # right comes before wrong, so a level that has both is seen where one follows the other
        mixed = np.flatnonzero((self.right[:-1] > self.right[1:]) & ~self.less_sure)
        if len(mixed):
            ends = self.ends()
            level = np.searchsorted(ends, mixed, side="right")
            last, first = ends[level], np.where(level > 0, ends[level - 1], 0)
            before, sizes = np.where(first > 0, reached[first - 1], 0.0), last - first
            share = (reached[last - 1] - before) / sizes
            within = np.arange(1, sizes.sum() + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            reached[np.repeat(first - 1, sizes) + within] = np.repeat(before, sizes) + np.repeat(share, sizes) * within
        return reached


def surest_first(confidence: Sureness, correct: NDArray[np.bool_]) -> SurestFirst:
    """Whether each image is right, the surest first, and where sureness falls.

    >>> surest_first(np.array([0.5, 0.9, 0.5]), np.array([False, False, True]))
    SurestFirst(right=array([False,  True, False]), less_sure=array([ True, False]))
    """
    _check(confidence, correct)
    upper, lower = (_single_keys if confidence.dtype == np.float32 else _double_keys)(confidence, correct.astype(bool))
    keys = np.concatenate([upper, lower]) if len(lower) else upper
    less_sure = keys[1:] ^ keys[:-1] > 1
    less_sure[len(upper) - 1 : len(upper)] = True  # the two parts share no sureness, but may share a key
    return SurestFirst((keys & np.uint64(1)).astype(bool), less_sure)


def answered_levels(confidence: Sureness, correct: NDArray[np.bool_], *, most: int | None = None) -> Tally:
    """How many images are answered, and how many of these right, if all at least as sure as a level are: surest level first.

    Of more than `most` levels some are left out, so that about as many images lie between any two; the last, which answers
    all images, stays.

    >>> answered_levels(np.array([0.5, 0.9, 0.5]), np.array([False, False, True]))
    Tally(right=array([0, 1]), total=array([1, 3]))
    """
    order = surest_first(confidence, correct)
    ends = order.ends()
    if most is not None and len(ends) > most:
        wanted = np.arange(1, most + 1) * len(confidence) / most
        ends = np.unique(ends[np.searchsorted(ends, wanted)])
    return Tally(np.cumsum(order.right)[ends - 1], ends)


def _double_keys(confidence: Sureness, correct: NDArray[np.bool_]) -> tuple[_Keys, _Keys]:
    """Sorted keys of the images that are not below zero, and of those that are."""
    doubles = confidence.astype(np.float64)
    negative = doubles < 0
    keys = doubles.view(np.uint64)
    keys <<= np.uint64(1)  # out goes the sign
    keys |= correct
    if not negative.any():
        keys.sort()
        return keys[::-1], keys[:0]
    # of negative numbers the smaller is surer, and right still comes before wrong
    return np.sort(keys[~negative])[::-1], np.sort(keys[negative] ^ np.uint64(1)) ^ np.uint64(1)


def _single_keys(confidence: Sureness, correct: NDArray[np.bool_]) -> tuple[_Keys, _Keys]:
    """Sorted keys of all images, and none: with 32 bits to spare nothing need go."""
    bits = (confidence + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
    keys = (bits ^ (bits >> 31 & 0x7FFFFFFF)).astype(np.int64)  # whole numbers in the order of the real ones
    keys <<= 1
    keys |= correct
    keys.sort()
    return keys[::-1].view(np.uint64), np.empty(0, np.uint64)


def _check(confidence: Sureness, correct: NDArray[np.bool_]) -> None:
    if confidence.ndim != 1 or not len(confidence):
        raise BadInput(f"confidence should be (images,) of at least one image, got shape {confidence.shape}")
    if confidence.shape != correct.shape:
        raise BadInput(f"{len(confidence)} confidences but correct has shape {correct.shape}; both should be (images,)")
    if np.isnan(confidence).any():
        raise BadInput("some confidence is not a number; leave such images out before asking how sure the model is")
