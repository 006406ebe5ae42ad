"""Intervals of numbers made of many means over the same images: images are drawn again jointly for all of them.

Images that are one case, such as the frames of a clip, are drawn together: see `clusters` of `resampled_means`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups, bca_interval
from shiftproof.metrics.jackknife import Shares, interval_of_shares

Means = NDArray[np.floating]
"""Means of several columns over some images, (drawings, columns)."""

RESAMPLES = 1000
_BLOCKS = 200
_COUNTS_AT_ONCE = 1_000_000  # how often each image was drawn, in memory together: 4 to 8 MB


class Resampled(NamedTuple):
    """Means over the images themselves, over images drawn again with replacement, and with a part left out."""

    seen: Means  # (1, columns)
    drawn: Means  # (resamples, columns)
    left_out: Means  # (blocks, columns)


def resampled_means(
    values: NDArray[np.generic], *, clusters: Groups | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Resampled:
    """Column means of values (images, columns), as seen and with the rows drawn again.

    A row is drawn whole, so columns keep what they have in common; two tables of the same images in the same order are drawn
    alike for the same seed. Rows of one cluster are drawn together.

    >>> pairs = np.array([[1.0, 0.0], [0.0, 1.0]] * 50)
    >>> means = resampled_means(pairs)
    >>> bool(np.allclose(means.drawn.sum(axis=1), 1))  # each row adds up to one, so every drawing does
    True
    """
    if values.ndim != 2 or not len(values):
        raise BadInput(f"values should be (images, columns) of at least one image, got shape {values.shape}")
    # sums of up to 2^24 zeros and ones are exact in single precision
    exact = values.dtype == np.bool_ and len(values) < 2**24
    table: NDArray[np.floating] = values.astype(np.float32 if exact else np.float64)
    sizes = np.ones(len(table), table.dtype)
    if clusters is not None:
        table, sizes = _summed(table, clusters)
    cases = len(table)
    total = np.ones((1, cases), table.dtype) @ table
    drawn = [_divided(counts @ table, counts @ sizes) for counts in _drawn_counts(cases, resamples, seed, table.dtype)]
    edges = np.linspace(0, cases, min(cases, _BLOCKS) + 1).astype(int)
    inside, images = np.add.reduceat(table, edges[:-1], axis=0), np.add.reduceat(sizes, edges[:-1])
    # of one image nothing is left when it is left out
    kept = np.maximum(sizes.sum() - images, 1)
    again = np.concatenate(drawn) if drawn else np.empty((0, table.shape[1]))
    return Resampled(_divided(total, sizes.sum()[None]), again, _divided(total - inside, kept))


def _summed(table: NDArray[np.floating], clusters: Groups) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Sums of the rows of each cluster, (clusters, columns), and how many rows they are, (clusters,)."""
    _, groups, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    order = np.argsort(groups, kind="stable")
    starts = np.cumsum(sizes) - sizes
    return np.add.reduceat(table[order], starts, axis=0), sizes.astype(table.dtype)


def _divided(sums: NDArray[np.floating], images: NDArray[np.floating]) -> Means:
    return np.asarray(sums.astype(float) / images.astype(float)[:, None])


def interval_of(
    seen: NDArray[np.floating],
    drawn: NDArray[np.floating],
    left_out: NDArray[np.floating],
    *,
    level: float = 0.95,
    cases: int | None = None,
) -> tuple[float, float] | None:
    """BCa interval of one number made of resampled means; None where the images cannot tell it.

    That is of fewer than `LEAST_CLUSTERS` cases, where the number does not exist in some drawing, and where it is the same
    in all of them: of images that are all alike, drawing again learns nothing about others. `cases` are the images or
    clusters that were drawn from, where they are more than the blocks that were left out.

    >>> means = resampled_means(np.array([[False], [True]] * 50))
    >>> low, high = interval_of(*(part[:, 0] for part in means))
    >>> round(low, 1), round(high, 1)  # half of 100 images: 0.5 +- 1.96 * 0.05
    (0.4, 0.6)
    """
    cases = len(left_out) if cases is None else cases
    if cases < LEAST_CLUSTERS or not (np.isfinite(drawn).all() and np.isfinite(left_out).all()) or np.ptp(drawn) == 0:
        return None
    return bca_interval(float(seen[0]), drawn, left_out, level=level, cases=cases)


def left_out_interval(
    seen: NDArray[np.floating],
    left_out: NDArray[np.floating],
    *,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
    cases: int | None = None,
) -> tuple[float, float] | None:
    """Interval of one number from its values with a part left out; see `jackknife_interval`. No drawing is needed.

    For ratios and shares, whose drawings have long tails. None of fewer than `LEAST_CLUSTERS` cases, where the number does
    not exist without some of them and, without bounds, where it is the same without any of them.

    >>> means = resampled_means(np.array([[False], [True]] * 50), resamples=0)
    >>> low, high = left_out_interval(means.seen[:, 0], means.left_out[:, 0], bounds=(0, 1))
    >>> round(low, 1), round(high, 1)  # half of 100 images: 0.5 +- 1.98 * 0.05
    (0.4, 0.6)
    """
    count = len(left_out) if cases is None else cases
    if count < LEAST_CLUSTERS or not np.isfinite(left_out).all():
        return None
    blocks = len(left_out)
    changes = (float(seen[0]) - left_out) * (1 - 1 / blocks)
    shares = Shares(changes, np.ones(blocks, int), np.arange(blocks), float(count))
    return interval_of_shares(float(seen[0]), [shares], bounds=bounds, level=level)


def _drawn_counts(images: int, resamples: int, seed: int, dtype: np.dtype[np.floating]) -> Iterator[NDArray[np.floating]]:
    """How often each image is drawn, (drawings, images), in parts that fit in memory."""
    generator = np.random.default_rng(seed)
    at_once = max(1, _COUNTS_AT_ONCE // images)
    for done in range(0, resamples, at_once):
        size = min(at_once, resamples - done)
        places = generator.integers(images, size=(size, images))
        places += images * np.arange(size)[:, None]
        yield np.bincount(places.ravel(), minlength=size * images).reshape(size, images).astype(dtype)
