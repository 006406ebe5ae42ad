"""How well anomaly scores tell inside from outside images: AUROC, AUPR and false alarms at a chosen share found.

Equal scores are never split: no threshold could.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.score_counts import (
    Counts,
    at_least,
    checked_scores,
    checked_share,
    counted_auroc,
    counted_average_precision,
    counted_fpr,
    counted_precision_area,
    score_counts,
)
from shiftproof.types import AnomalyScores

Side: TypeAlias = Literal["out", "in"]
Area: TypeAlias = Literal["average-precision", "trapezoid"]

_AREAS = {"average-precision": counted_average_precision, "trapezoid": counted_precision_area}


class Separation(NamedTuple):
    """What is usually printed of one detector on two image sets."""

    auroc: float
    aupr_out: float
    aupr_in: float
    fpr: float  # inside images flagged when enough outside ones are
    fpr_in: float  # outside images let through when enough inside ones are


def auroc(in_scores: AnomalyScores, out_scores: AnomalyScores) -> float:
    """Chance that an outside image has a higher score than an inside one; equal scores count half.

    1 is perfect, 0.5 blind.

    >>> auroc(np.array([0.1, 0.5]), np.array([0.5, 0.9]))  # of four pairs three are won and one is a tie
    0.875
    """
    counts = score_counts(in_scores, out_scores)
    return float(counted_auroc(counts.inside, counts.outside))


def aupr(
    in_scores: AnomalyScores, out_scores: AnomalyScores, *, positive: Side = "out", area: Area = "average-precision"
) -> float:
    """Mean precision over the positive images, each at the threshold that just finds it.

    1 is perfect; blind is the positive images' share of all. With `positive="in"` inside images are to be found by low
    scores. `area="trapezoid"` joins the points of the curve by straight lines, as OpenOOD and pytorch-ood do, which
    promises more than any threshold keeps where images are few (Davis & Goadrich, 2006).

    >>> inside, outside = np.array([0.1, 0.2, 0.6]), np.array([0.5, 0.9])
    >>> round(aupr(inside, outside), 4)  # precision 1 of 1 and 2 of 3
    0.8333
    >>> round(aupr(inside, outside, positive="in"), 4)  # 1 of 1, 2 of 2 and 3 of 4
    0.9167
    >>> aupr(inside, outside, area="trapezoid")  # (1 + 1) / 4 and (1 / 2 + 2 / 3) / 4
    0.7916666666666666
    """
    precision = precision_area(area, positive)
    counts = score_counts(in_scores, out_scores)
    return precision(counts.inside, counts.outside)


def precision_area(area: Area, positive: Side = "out") -> Callable[[Counts, Counts], float]:
    """What gives the area from the inside and outside images at each score, lowest first."""
    of_counts = _area(area)
    if _is_out(positive):
        return lambda inside, outside: float(of_counts(inside, outside))
    return lambda inside, outside: float(of_counts(outside[::-1], inside[::-1]))


def fpr_at_tpr(in_scores: AnomalyScores, out_scores: AnomalyScores, *, tpr: float = 0.95, positive: Side = "out") -> float:
    """Share of inside images flagged when at least `tpr` of the outside ones are.

    0 is perfect. With `positive="in"` it is the share of outside images let through when at least `tpr` of the inside
    ones are; both are printed under the same name in the literature, and differ.

    >>> inside, outside = np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.5, 0.9])
    >>> fpr_at_tpr(inside, outside, tpr=1.0)
    0.25
    >>> fpr_at_tpr(inside, outside, tpr=1.0, positive="in")
    0.5
    """
    checked_share(tpr, "tpr")
    inside, outside = checked_scores(in_scores, "inside"), checked_scores(out_scores, "outside")
    if _is_out(positive):
        place = len(outside) - at_least(tpr, len(outside))
        return float((inside >= np.partition(outside, place)[place]).mean())
    place = at_least(tpr, len(inside)) - 1
    return float((outside <= np.partition(inside, place)[place]).mean())


def share_discarded(kept_scores: AnomalyScores, out_scores: AnomalyScores, *, rejected: float = 0.75) -> float:
    """Share of images worth keeping that go when at least `rejected` of the outside ones are to go.

    0 is perfect. The threshold is the highest outside score that suffices, never one between two of them; images that
    reach it go. Of correct answers as `kept_scores` it is the number of Yang et al. (2024).

    >>> share_discarded(np.array([1, 2, 3, 5]), np.array([2, 4, 6, 8]))  # three of the four reach 4, and so does the 5
    0.25
    """
    return fpr_at_tpr(kept_scores, out_scores, tpr=checked_share(rejected, "rejected"))


def separation(
    in_scores: AnomalyScores, out_scores: AnomalyScores, *, tpr: float = 0.95, area: Area = "average-precision"
) -> Separation:
    """AUROC, AUPR either way and false alarms either way, all from one sort of the scores.

    >>> separation(np.array([0.1, 0.5]), np.array([0.5, 0.9]))
    Separation(auroc=0.875, aupr_out=0.8333333333333333, aupr_in=0.8333333333333333, fpr=0.5, fpr_in=0.5)
    """
    checked_share(tpr, "tpr")
    of_counts = _area(area)
    _, inside, outside = score_counts(in_scores, out_scores)
    # seen from the other end, inside images are those to be found
    ends = (inside, outside), (outside[::-1], inside[::-1])
    return Separation(
        float(counted_auroc(inside, outside)),
        *(float(of_counts(*sides)) for sides in ends),
        *(float(counted_fpr(*sides, tpr=tpr)) for sides in ends),
    )


def _area(area: Area) -> Callable[[Counts, Counts], NDArray[np.floating]]:
    if area not in _AREAS:
        raise BadInput(f"area should be one of {', '.join(_AREAS)}, got {area!r}")
    return _AREAS[area]


def _is_out(positive: Side) -> bool:
    if positive not in ("out", "in"):
        raise BadInput(f"positive should be 'out' or 'in', got {positive!r}")
    return positive == "out"
