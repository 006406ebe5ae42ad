"""Which objects are large enough to be cropped, and how much of the image goes with them, as in ImageNet-A-Plus."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

TIMES_SMALLER = 8.0
"""An object that fills so many times less of its image than its class usually does is not taken."""


def is_too_small(
    shares: NDArray[np.floating],
    labels: NDArray[np.integer],
    class_shares: NDArray[np.floating],
    *,
    times: float = TIMES_SMALLER,
) -> NDArray[np.bool_]:
    """Which objects fill less than the mean share of their class divided by `times`, (objects,).

    `class_shares` is the mean share of each class in a set such as the localization set of ILSVRC, nan where it has none of
    a class: nothing of that class is too small.

    >>> is_too_small(np.array([0.02, 0.04, 0.001]), np.array([0, 0, 1]), np.array([0.32, np.nan]))
    array([ True, False, False])
    """
    if times <= 0:
        raise BadInput(f"times should be above 0, got {times:g}")
    if labels.max(initial=-1) >= len(class_shares):
        raise BadInput(f"class {labels.max()} is beyond the {len(class_shares)} classes whose mean share is given")
    return np.asarray(shares < class_shares[labels] / times)


def window_for_share(
    box: tuple[float, float, float, float], size: tuple[float, float], *, share: float
) -> tuple[float, float, float, float]:
    """The part of an image, in the shape of the box where it fits, of which the object fills this share.

    It lies around the object, moved or stretched where it would reach beyond the image. An object that fills more of the
    whole image than that gets the whole image.

    >>> window_for_share((40, 40, 60, 60), (100, 100), share=0.25)
    (30.0, 30.0, 70.0, 70.0)
    >>> window_for_share((0, 40, 20, 60), (100, 100), share=0.25)
    (0.0, 30.0, 40.0, 70.0)
    """
    width, height = size
    left, top, right, bottom = box
    across, down = right - left, bottom - top
    if not 0 < share <= 1:
        raise BadInput(f"the share of an object should be above 0 and at most 1, got {share:g}")
    if min(left, top) < 0 or right > width or bottom > height or min(across, down) <= 0:
        raise BadInput(f"the box {list(box)} should lie inside the image of {width:g} x {height:g} pixels and have an area")
    area = across * down / share
    if area >= width * height:
        return 0.0, 0.0, float(width), float(height)
    wide, high = across / math.sqrt(share), down / math.sqrt(share)
    if wide > width:
        wide, high = width, area / width
    elif high > height:
        wide, high = area / height, height
    start = _kept_inside((left + right) / 2, wide, width), _kept_inside((top + bottom) / 2, high, height)
    return start[0], start[1], start[0] + wide, start[1] + high


def _kept_inside(middle: float, length: float, limit: float) -> float:
    """Where a stretch of this length begins around a middle, moved so that it lies between 0 and the limit."""
    return float(min(max(middle - length / 2, 0), limit - length))
