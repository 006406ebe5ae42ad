"""Shares of anchors with intervals by clip: anchors of one clip are alike, so a clip is one case, however many it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import clopper_pearson, difference_interval, paired_counts
from shiftproof.studies import evidence
from shiftproof.types import About, Curve, Measurement

LEAST_CLIPS = 5
"""Clips from which on a number has an interval."""

BELOW = f"anchors of one clip are one case, and fewer than {LEAST_CLIPS} clips tell too little of others"
TOO_FEW = f"none: {BELOW}"
SHARE_BY_CLIP = {"interval": "95 %, Clopper-Pearson by clip (Korn-Graubard)"}
DROP_BY_CLIP = {"interval": "95 %, by clip, Student's t"}

MADE_UP = 0.3
"""Size of the two clips that are made up, in clips of mean size.

One is right throughout and one wrong. They keep few clips that happen to agree from looking sure, as Bonett and Price's two
images do; of 0.2, 0.25 and 0.3 this covered best in simulations of 5 to 1000 clips of equal and of unequal size.
"""

LEVEL = 0.95


class Point(NamedTuple):
    """One point of a curve: flags of images, (images,) or (models, images), and the clip that each image is of."""

    x: float
    flags: NDArray[np.bool_]
    clips: NDArray[np.intp]  # (images,)


def share(
    metric: str, right: NDArray[np.bool_], clips: NDArray[np.intp], about: About, convention: Mapping[str, str]
) -> Measurement:
    """A share of anchors with its interval by clip, where there are clips enough for one."""
    interval, told = _share_interval(right, clips)
    return Measurement(metric, float(right.mean()), about, len(right), {**convention, **told}, interval)


def drop(
    metric: str,
    before: NDArray[np.bool_],
    after: NDArray[np.bool_],
    clips: NDArray[np.intp],
    about: About,
    convention: Mapping[str, str],
) -> Measurement:
    """What the share of anchors loses from `before` to `after`, the same anchors, with its interval by clip."""
    counts = paired_counts(before, after)
    totals, sizes = _by_clip(before.astype(float) - after, clips)
    if len(sizes) < LEAST_CLIPS:
        interval, told = None, {"interval": TOO_FEW}
    elif len(sizes) == counts.images:
        interval, told = difference_interval(counts, level=LEVEL), evidence.PAIRED
    else:
        interval, told = _mean_interval(totals, sizes), DROP_BY_CLIP
    return Measurement(metric, counts.difference, about, counts.images, {**convention, **told}, interval)


def curve(
    name: str, about: About, axes: tuple[str, str], points: Sequence[Point], images: int, convention: Mapping[str, str]
) -> Curve:
    """Shares with a band by clip; without a band where any of the points has too few clips for one."""
    some = [point for point in points if point.flags.size]
    models = [np.atleast_2d(point.flags) for point in some]
    found = [
        _share_interval(flags.ravel(), np.tile(point.clips, len(flags))) for flags, point in zip(models, some, strict=True)
    ]
    bounds = [interval for interval, _ in found if interval is not None]
    told = next((told for interval, told in found if interval is None or len(bounds) == len(found)), {})
    low, high = zip(*bounds, strict=True) if bounds and len(bounds) == len(found) else (None, None)
    return Curve(
        name,
        about,
        *axes,
        x=tuple(float(point.x) for point in some),
        y=tuple(float(point.flags.mean()) for point in some),
        images=images,
        convention={**convention, **told},
        counts=tuple(len(point.clips) for point in some),
        low=low,
        high=high,
    )


def _share_interval(right: NDArray[np.bool_], clips: NDArray[np.intp]) -> tuple[tuple[float, float] | None, dict[str, str]]:
    """The interval of a share, and its name; exact where every image has a clip of its own.

    Else it is the exact one of as many images as would tell as much if none were of one clip (Korn & Graubard, 1998).
    """
    totals, sizes = _by_clip(right.astype(float), clips)
    if len(sizes) < LEAST_CLIPS:
        return None, {"interval": TOO_FEW}
    if len(sizes) == len(right):
        return clopper_pearson(int(right.sum()), len(right), level=LEVEL), evidence.EXACT
    from scipy.special import betaincinv, stdtrit

    images, middle = len(right), float(right.mean())
    seen, variance, weight = _spread(totals, sizes, lowest=0.0)
    fewer = (stdtrit(images - 1, (1 + LEVEL) / 2) / stdtrit(len(sizes) - 1, (1 + LEVEL) / 2)) ** 2
    design_effect = variance * weight / (seen * (1 - seen))
    told = min(images, images / design_effect * fewer)
    good, bad, tail = told * middle, told * (1 - middle), (1 - LEVEL) / 2
    low = 0.0 if middle == 0 else float(betaincinv(good, bad + 1, tail))
    high = 1.0 if middle == 1 else float(betaincinv(good + 1, bad, 1 - tail))
    return (low, high), SHARE_BY_CLIP


def _mean_interval(totals: NDArray[np.floating], sizes: NDArray[np.floating]) -> tuple[float, float]:
    """The interval of a mean of values from -1 to 1."""
    from scipy.special import stdtrit

    middle, variance, _ = _spread(totals, sizes, lowest=-1.0)
    half = float(stdtrit(len(sizes) - 1, (1 + LEVEL) / 2)) * variance**0.5
    return max(-1.0, middle - half), min(1.0, middle + half)


def _spread(totals: NDArray[np.floating], sizes: NDArray[np.floating], *, lowest: float) -> tuple[float, float, float]:
    """Mean, variance of the mean and size, two made-up clips among the others: all at 1, and all at the lowest value.

    The variance is that of leaving out one clip at a time, which stays right where clips differ in size.
    """
    made_up = max(1.0, MADE_UP * float(sizes.mean()))
    totals = np.append(totals, [made_up, lowest * made_up])
    sizes = np.append(sizes, [made_up, made_up])
    weight, clips = float(sizes.sum()), len(sizes)
    middle = float(totals.sum()) / weight
    moved = (totals - middle * sizes) / (weight - sizes)  # of the mean, without each clip
    return middle, float((moved**2).sum()) * (clips - 1) / clips, weight


def _by_clip(values: NDArray[np.floating], clips: NDArray[np.intp]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The sum of the values and the number of images in each clip, (clips,) both."""
    places = np.unique(clips, return_inverse=True)[1]
    return np.bincount(places, values).astype(float), np.bincount(places).astype(float)
