"""The five best classes of each image, which is all that most questions need."""

from __future__ import annotations

import numpy as np

from shiftproof.types import Gives, Logits, Top5


def to_top5(scores: Logits, gives: Gives) -> Top5:
    """The five best classes of each image; ties break by the lower class index."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    if gives == "logits":
        peak = scores.max(axis=1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0)
        with np.errstate(divide="ignore"):  # where no class can win, the total is zero and its logarithm minus infinity
            log_total = np.log(np.exp(scores - peak, dtype=np.float64).sum(axis=1)) + peak[:, 0]
    else:
        log_total = np.full(len(scores), np.nan)
    return Top5(best, np.take_along_axis(scores, best, axis=1), log_total)
