"""The five best classes of each image, which is all that most questions need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Gives, Logits, Top5


def to_top5(scores: Logits, gives: Gives) -> Top5:
    """The five best classes of each image; ties break by the lower class index."""
    best = best_classes(scores, 5)
    if gives == "logits":
        peak = scores.max(axis=1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0)
        with np.errstate(divide="ignore"):  # where no class can win, the total is zero and its logarithm minus infinity
            log_total = np.log(np.exp(scores - peak, dtype=np.float64).sum(axis=1)) + peak[:, 0]
    else:
        log_total = np.full(len(scores), np.nan)
    return Top5(best, np.take_along_axis(scores, best, axis=1), log_total)


def best_classes(scores: Logits, count: int) -> NDArray[np.integer]:
    """The classes with the highest scores, best first, (images, count); ties break by the lower class index.

    >>> best_classes(np.array([[1.0, 3.0, 3.0, 0.0, 3.0, 2.0]]), 2)
    array([[1, 2]])
    """
    if scores.shape[1] <= 4 * count:
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]
    # a partition is several times as fast as a sort, but takes any of those that tie for the last place
    among = np.sort(np.argpartition(-scores, count - 1, axis=1)[:, :count], axis=1)
    chosen = np.take_along_axis(scores, among, axis=1)
    best = np.take_along_axis(among, np.argsort(-chosen, axis=1, kind="stable"), axis=1)
    tied = (scores >= chosen.min(axis=1, keepdims=True)).sum(axis=1) > count
    best[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :count]
    return best
