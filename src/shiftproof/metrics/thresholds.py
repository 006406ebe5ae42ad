"""Detection thresholds: at a chosen FPR or TPR, or of minimum expected cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.metrics.roc import at_or_above, checked_share, score_counts
from shiftproof.types import OODScores


class OperatingPoint(NamedTuple):
    """A threshold, and what it does to the images it was chosen on; the intervals take it as given."""

    threshold: float  # images that reach it are flagged; infinity flags none that were seen
    false_alarm_rate: float  # FPR: share of ID images flagged
    false_alarm_interval: tuple[float, float]
    found_rate: float  # TPR: share of OOD images flagged
    found_interval: tuple[float, float]
    ood_share: float  # of the images to come
    expected_cost: float  # of one image to come


class _Thresholds(NamedTuple):
    """Every threshold that makes a difference, lowest first, and the images it flags."""

    scores: OODScores
    id_counts: NDArray[np.integer]
    ood_counts: NDArray[np.integer]

    @property
    def false_alarm_rates(self) -> NDArray[np.floating]:
        # the lowest threshold flags all images
        return np.asarray(self.id_counts / self.id_counts[0])

    @property
    def found_rates(self) -> NDArray[np.floating]:
        return np.asarray(self.ood_counts / self.ood_counts[0])


def operating_point(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    false_alarms: float | None = None,
    rejected: float | None = None,
    false_alarm_cost: float = 1.0,
    miss_cost: float = 1.0,
    ood_share: float | None = None,
    level: float = 0.95,
) -> OperatingPoint:
    """The lowest threshold with an FPR of at most `false_alarms`, or the highest with a TPR of at least `rejected`.

    Exactly one of the two shares is given, and is kept on these images. The cost is that of an image to come, of which
    `ood_share` are OOD: by default as many as here.

    >>> id_scores, ood_scores = np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.5, 0.9])
    >>> point = operating_point(id_scores, ood_scores, false_alarms=0.25, miss_cost=10, ood_share=0.1)
    >>> point.threshold, point.false_alarm_rate, point.found_rate, point.expected_cost  # 0.9 * 0.25 and no misses
    (0.5, 0.25, 1.0, 0.225)
    """
    if (false_alarms is None) == (rejected is None):
        raise BadInput("an operating point is chosen by either false_alarms or rejected, one of the two")
    thresholds = _thresholds(in_scores, out_scores)
    ood_share = _ood_share(thresholds, ood_share)
    costs = _costs(thresholds, false_alarm_cost, miss_cost, ood_share)
    if rejected is not None:
        place = int(np.flatnonzero(thresholds.found_rates >= checked_share(rejected, "rejected"))[-1])
    else:
        few = np.flatnonzero(thresholds.false_alarm_rates <= _checked_range(false_alarms, "false_alarms"))
        if not len(few):
            raise BadInput(f"no threshold has so low an FPR: {thresholds.id_counts[-1]} of the ID images score infinity")
        place = int(few[0])
    return _point(thresholds, place, ood_share, float(costs[place]), level)


def cheapest_point(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    false_alarm_cost: float = 1.0,
    miss_cost: float = 1.0,
    ood_share: float | None = None,
    level: float = 0.95,
) -> OperatingPoint:
    """The threshold at which an image to come costs least, the highest of equally cheap ones.

    It is chosen on the images it is evaluated on, so new ones will cost rather more.

    >>> id_scores, ood_scores = np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.5, 0.9])
    >>> point = cheapest_point(id_scores, ood_scores, miss_cost=10)
    >>> point.threshold, round(point.expected_cost, 3)  # one false positive among six images
    (0.5, 0.167)
    """
    thresholds = _thresholds(in_scores, out_scores)
    ood_share = _ood_share(thresholds, ood_share)
    costs = _costs(thresholds, false_alarm_cost, miss_cost, ood_share)
    # costs that differ in their last digit alone are equal
    place = int(np.flatnonzero(np.isclose(costs, costs.min(), rtol=1e-12, atol=0))[-1])
    return _point(thresholds, place, ood_share, float(costs[place]), level)


def _thresholds(in_scores: OODScores, out_scores: OODScores) -> _Thresholds:
    scores, id_counts, ood_counts = score_counts(in_scores, out_scores)
    every = _Thresholds(scores, at_or_above(id_counts), at_or_above(ood_counts))
    if np.isposinf(scores[-1]):
        return every
    return _Thresholds(*(np.append(column, end) for column, end in zip(every, (np.inf, 0, 0), strict=True)))


def _ood_share(thresholds: _Thresholds, given: float | None) -> float:
    id_counts, ood_counts = int(thresholds.id_counts[0]), int(thresholds.ood_counts[0])
    return ood_counts / (id_counts + ood_counts) if given is None else _checked_range(given, "ood_share")


def _costs(thresholds: _Thresholds, false_alarm_cost: float, miss_cost: float, ood_share: float) -> NDArray[np.floating]:
    for name, cost in (("false_alarm_cost", false_alarm_cost), ("miss_cost", miss_cost)):
        if not 0 <= cost < np.inf:
            raise BadInput(f"{name} should be a number of at least 0, got {cost}")
    alarms = (1 - ood_share) * false_alarm_cost * thresholds.false_alarm_rates
    return np.asarray(alarms + ood_share * miss_cost * (1 - thresholds.found_rates))


def _point(thresholds: _Thresholds, place: int, ood_share: float, cost: float, level: float) -> OperatingPoint:
    of_id, of_ood = ((int(flagged[place]), int(flagged[0])) for flagged in (thresholds.id_counts, thresholds.ood_counts))
    return OperatingPoint(
        float(thresholds.scores[place]),
        of_id[0] / of_id[1],
        clopper_pearson(*of_id, level=level),
        of_ood[0] / of_ood[1],
        clopper_pearson(*of_ood, level=level),
        ood_share,
        cost,
    )


def _checked_range(share: float | None, name: str) -> float:
    if share is None or not 0 <= share <= 1:
        raise BadInput(f"{name} should lie between 0 and 1, got {share}")
    return share
