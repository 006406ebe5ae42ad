"""How sure an AUROC is, and whether two detectors differ on the same images (DeLong et al., 1988).

Each image has a placement among those of the other side, and the placements' spread is that of the AUROC. They come from
sorted scores, not from all pairs (Sun & Xu, 2014).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import normal_quantile, tail_of
from shiftproof.metrics.ranks import images_below
from shiftproof.metrics.score_counts import checked_scores
from shiftproof.types import AnomalyScores

Placements: TypeAlias = NDArray[np.floating]
"""For each image the share of the other side's images it is on the right side of, equal scores by half, (images,)."""


class AurocDifference(NamedTuple):
    """AUROC of a first detector minus that of a second."""

    difference: float
    interval: tuple[float, float]
    p: float


def auroc_interval(in_scores: AnomalyScores, out_scores: AnomalyScores, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the AUROC, made symmetric on the scale of log odds, so that it never leaves 0 to 1.

    Where the sides do not overlap, or all scores are equal, placements have no spread. The interval is then the exact one
    of as many pairs as the smaller side has images, since pairs without a common image are independent. Of a single image
    on a side it is the whole range.

    >>> low, high = auroc_interval(np.array([1, 2, 3, 5]), np.array([4, 6, 7, 8]))  # 15 of 16 pairs
    >>> round(low, 2), round(high, 2)  # log odds 2.71, standard error 0.0884 / (15/16 * 1/16) = 1.51
    (0.44, 1.0)
    >>> low, high = auroc_interval(np.arange(10), np.arange(10, 20))  # ten pairs, all won: 0.025 ** (1 / 10)
    >>> round(low, 2), high
    (0.69, 1.0)
    """
    tail = tail_of(level)
    inside, outside = placements(in_scores, out_scores)
    pairs, seen = min(len(inside), len(outside)), float(outside.mean())
    if pairs == 1:
        return 0.0, 1.0
    error = _standard_error(inside, outside)
    if error == 0:
        alike = tail ** (1 / pairs)
        return seen * alike, 1 - (1 - seen) * alike
    middle = np.log(seen / (1 - seen))
    half = normal_quantile(1 - tail) * error / (seen * (1 - seen))
    return _from_log_odds(middle - half), _from_log_odds(middle + half)


def auroc_covariance(in_scores: AnomalyScores, out_scores: AnomalyScores) -> NDArray[np.floating]:
    """Covariances of the AUROCs of several detectors on the same images, (detectors, detectors).

    Scores are (detectors, images).

    >>> inside, outside = np.array([[1, 2, 3, 5], [1, 2, 3, 4]]), np.array([[4, 6, 7, 8], [5, 6, 7, 8]])
    >>> auroc_covariance(inside, outside).round(4)  # the second is never wrong: its placements are all 1
    array([[0.0078, 0.    ],
           [0.    , 0.    ]])
    """
    if in_scores.ndim != 2 or out_scores.ndim != 2 or len(in_scores) != len(out_scores):
        raise BadInput(f"scores should be (detectors, images) on either side, got {in_scores.shape} and {out_scores.shape}")
    if min(in_scores.shape[1], out_scores.shape[1]) < 2:
        raise BadInput("the covariance of AUROCs needs at least two images on either side")
    each = [placements(*sides) for sides in zip(in_scores, out_scores, strict=True)]
    sides = (np.stack(side) for side in zip(*each, strict=True))
    return np.asarray(sum(np.atleast_2d(np.cov(side)) / side.shape[1] for side in sides))


def auroc_difference(
    first_in: AnomalyScores,
    first_out: AnomalyScores,
    second_in: AnomalyScores,
    second_out: AnomalyScores,
    *,
    level: float = 0.95,
) -> AurocDifference:
    """How much better the first detector separates the same images than the second, with a two-sided p-value.

    The p-value is the chance of a difference at least this large if both were equally good. Where all pairs of images differ
    alike, as those of two detectors with the same order do, interval and p-value are the exact ones of as many independent
    pairs as the smaller side has images; of a single image on a side they say nothing, the whole range and 1.

    >>> inside, outside = np.arange(10), np.arange(10, 20)
    >>> found = auroc_difference(inside, outside, outside, inside)  # always right beside always wrong
    >>> found.difference, found.p == 2 * 0.5**10
    (1.0, True)
    """
    tail = tail_of(level)
    if len(first_in) != len(second_in) or len(first_out) != len(second_out):
        raise BadInput(
            "two detectors are compared on the same images, "
            f"got {len(first_in)} and {len(second_in)} inside, {len(first_out)} and {len(second_out)} outside"
        )
    first, second = placements(first_in, first_out), placements(second_in, second_out)
    inside, outside = first[0] - second[0], first[1] - second[1]
    pairs, seen = min(len(inside), len(outside)), float(outside.mean())
    if pairs == 1:
        return AurocDifference(seen, (-1.0, 1.0), 1.0)
    error = _standard_error(inside, outside)
    if error == 0:
        alike = tail ** (1 / pairs)
        # equally good detectors differ like this in at most 1 / (1 + difference) of all pairs: the rest must make up for it
        p = min(1.0, 2 * (1 + abs(seen)) ** -pairs)
        return AurocDifference(seen, (seen * alike - (1 - alike), seen * alike + (1 - alike)), p)
    half = normal_quantile(1 - tail) * error
    return AurocDifference(seen, (max(-1.0, seen - half), min(1.0, seen + half)), _two_sided_p(seen / error))


def placements(in_scores: AnomalyScores, out_scores: AnomalyScores) -> tuple[Placements, Placements]:
    """Share of outside images above each inside one, and of inside images below each outside one.

    The mean of either is the AUROC.

    >>> placements(np.array([0.1, 0.5]), np.array([0.5, 0.9]))
    (array([1.  , 0.75]), array([0.75, 1.  ]))
    """
    inside, outside = checked_scores(in_scores, "inside"), checked_scores(out_scores, "outside")
    return 1 - images_below(inside, outside) / len(outside), images_below(outside, inside) / len(inside)


def _standard_error(inside: Placements, outside: Placements) -> float:
    """Standard error of the mean placement; 0 only where all placements of either side are alike."""
    sides = (inside, outside)
    # placements are multiples of half an image's share: less than that is rounding
    if all(np.ptp(side) < 1e-12 for side in sides):
        return 0.0
    return float(np.sqrt(sum(side.var(ddof=1) / len(side) for side in sides)))


def _from_log_odds(value: float) -> float:
    from scipy.special import expit

    return float(expit(value))


def _two_sided_p(deviation: float) -> float:
    from scipy.special import ndtr

    return 2 * float(ndtr(-abs(deviation)))
