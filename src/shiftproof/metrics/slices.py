"""Groups of images whose accuracy is lower than that of the others: the gap, its interval and a test."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.intervals import Groups, effective_images, wilson


class Gap(NamedTuple):
    """How much less accurate some images are than the others."""

    gap: float  # accuracy of the others less that of the group
    interval: tuple[float, float]
    p: float  # of the hypothesis that the group is no less accurate


def slice_gap(
    correct: NDArray[np.bool_], members: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> Gap:
    """Accuracy of the others less that of the members, both of which must be there.

    The interval is Newcombe's (1998), which joins Wilson's of both accuracies; the one-sided p-value is Fisher's. Where
    images come in clusters, both are taken at the number of independent images that would tell as much.

    >>> right = np.array([False] * 10 + [True] * 10)
    >>> found = slice_gap(right, right == False)
    >>> found.gap, round(found.p * 184756)  # one of all ways to choose 10 of 20
    (1.0, 1)
    """
    shares, counts = [], []
    for rows in (members, ~members):
        own = correct[rows]
        independent = effective_images(own, None if clusters is None else clusters[rows], level=level)
        shares.append(float(own.mean()))
        # rounded against the group's being worse: never more images than there are
        counts.append(max(1, int(np.floor(independent + 1e-9))))
    inside, outside = shares
    right: Any = np.array(shares) * counts  # not whole where images come in clusters
    (low_in, low_out), (high_in, high_out) = wilson(right, np.array(counts), level=level)
    gap = outside - inside
    ends = (
        gap - float(np.hypot(outside - low_out, high_in - inside)),
        gap + float(np.hypot(high_out - outside, inside - low_in)),
    )
    right_in, right_out = int(np.ceil(inside * counts[0] - 1e-9)), int(np.floor(outside * counts[1] + 1e-9))
    return Gap(gap, ends, fisher_p(right_in, counts[0], right_out, counts[1]))


def fisher_p(right_in: int, images_in: int, right_out: int, images_out: int) -> float:
    """Chance of at most so many right in a group where its members are drawn from all images at random (Fisher, 1935).

    >>> round(1 / fisher_p(0, 2, 2, 2))  # one of the six ways to choose 2 of 4
    6
    """
    from scipy.special import gammaln

    right, images = right_in + right_out, images_in + images_out

    def ways(chosen: NDArray[np.integer], of: int) -> NDArray[np.floating]:
        return np.asarray(gammaln(of + 1) - gammaln(chosen + 1) - gammaln(of - chosen + 1))

    counts = np.arange(max(0, right - images_out), right_in + 1)
    logs = ways(counts, right) + ways(images_in - counts, images - right) - ways(np.array(images_in), images)
    return min(1.0, float(np.exp(logs).sum()))


def group_scores(
    right_in: NDArray[np.integer], images_in: NDArray[np.integer], right: int, images: int
) -> NDArray[np.floating]:
    """How far groups lie below the others, in standard errors: Pearson's statistic, to put many groups in order.

    >>> group_scores(np.array([0, 5]), np.array([10, 10]), 10, 20).round(2)
    array([4.47, 0.  ])
    """
    outside = np.maximum(images - images_in, 1)
    gap = (right - right_in) / outside - right_in / np.maximum(images_in, 1)
    share = right / images
    spread = np.sqrt(share * (1 - share) * (1 / np.maximum(images_in, 1) + 1 / outside))
    return np.asarray(gap / np.maximum(spread, 1e-12))
