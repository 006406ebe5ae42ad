"""Where to put the threshold: for a chosen share of false alarms or of images rejected, or where mistakes cost least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.metrics.score_counts import at_or_above, checked_share, score_counts
from shiftproof.types import AnomalyScores


class OperatingPoint(NamedTuple):
    """A threshold, and what it does to the images it was chosen on; the intervals take it as given."""

    threshold: float  # images that reach it are flagged; infinity flags none that were seen
    false_alarm_rate: float  # share of inside images flagged
    false_alarm_interval: tuple[float, float]
    found_rate: float  # share of outside images flagged
    found_interval: tuple[float, float]
    outside_share: float  # of the images to come
    expected_cost: float  # of one image to come


class _Thresholds(NamedTuple):
    """Every threshold that makes a difference, lowest first, and the images it flags."""

    scores: AnomalyScores
    inside: NDArray[np.integer]
    outside: NDArray[np.integer]

    @property
    def false_alarm_rates(self) -> NDArray[np.floating]:
        # the lowest threshold flags all images
        return np.asarray(self.inside / self.inside[0])

    @property
    def found_rates(self) -> NDArray[np.floating]:
        return np.asarray(self.outside / self.outside[0])


def operating_point(
    in_scores: AnomalyScores,
    out_scores: AnomalyScores,
    *,
    false_alarms: float | None = None,
    rejected: float | None = None,
    false_alarm_cost: float = 1.0,
    miss_cost: float = 1.0,
    outside_share: float | None = None,
    level: float = 0.95,
) -> OperatingPoint:
    """The lowest threshold that flags at most `false_alarms` of inside images, or the highest that flags `rejected` outside.

    Exactly one of the two shares is given, and is kept on these images. The cost is that of an image to come, of which
    `outside_share` are from outside: by default as many as here.

    >>> inside, outside = np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.5, 0.9])
    >>> point = operating_point(inside, outside, false_alarms=0.25, miss_cost=10, outside_share=0.1)
    >>> point.threshold, point.false_alarm_rate, point.found_rate, point.expected_cost  # 0.9 * 0.25 and no misses
    (0.5, 0.25, 1.0, 0.225)
    """
    if (false_alarms is None) == (rejected is None):
        raise BadInput("an operating point is chosen by either false_alarms or rejected, one of the two")
    thresholds = _thresholds(in_scores, out_scores)
    outside_share = _outside_share(thresholds, outside_share)
    costs = _costs(thresholds, false_alarm_cost, miss_cost, outside_share)
    if rejected is not None:
        place = int(np.flatnonzero(thresholds.found_rates >= checked_share(rejected, "rejected"))[-1])
    else:
        few = np.flatnonzero(thresholds.false_alarm_rates <= _checked_range(false_alarms, "false_alarms"))
        if not len(few):
            raise BadInput(f"no threshold flags so few inside images: {thresholds.inside[-1]} of them score infinity")
        place = int(few[0])
    return _point(thresholds, place, outside_share, float(costs[place]), level)


def cheapest_point(
    in_scores: AnomalyScores,
    out_scores: AnomalyScores,
    *,
    false_alarm_cost: float = 1.0,
    miss_cost: float = 1.0,
    outside_share: float | None = None,
    level: float = 0.95,
) -> OperatingPoint:
    """The threshold at which an image to come costs least, the highest of equally cheap ones.

    It is chosen on the images it is judged by, so new ones will cost rather more.

    >>> inside, outside = np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.5, 0.9])
    >>> point = cheapest_point(inside, outside, miss_cost=10)
    >>> point.threshold, round(point.expected_cost, 3)  # one false alarm among six images
    (0.5, 0.167)
    """
    thresholds = _thresholds(in_scores, out_scores)
    outside_share = _outside_share(thresholds, outside_share)
    costs = _costs(thresholds, false_alarm_cost, miss_cost, outside_share)
    # costs that differ in their last digit alone are equal
    place = int(np.flatnonzero(np.isclose(costs, costs.min(), rtol=1e-12, atol=0))[-1])
    return _point(thresholds, place, outside_share, float(costs[place]), level)


def _thresholds(in_scores: AnomalyScores, out_scores: AnomalyScores) -> _Thresholds:
    scores, inside, outside = score_counts(in_scores, out_scores)
    every = _Thresholds(scores, at_or_above(inside), at_or_above(outside))
    if np.isposinf(scores[-1]):
        return every
    return _Thresholds(*(np.append(column, end) for column, end in zip(every, (np.inf, 0, 0), strict=True)))


def _outside_share(thresholds: _Thresholds, given: float | None) -> float:
    inside, outside = int(thresholds.inside[0]), int(thresholds.outside[0])
    return outside / (inside + outside) if given is None else _checked_range(given, "outside_share")


def _costs(thresholds: _Thresholds, false_alarm_cost: float, miss_cost: float, outside_share: float) -> NDArray[np.floating]:
    for name, cost in (("false_alarm_cost", false_alarm_cost), ("miss_cost", miss_cost)):
        if not 0 <= cost < np.inf:
            raise BadInput(f"{name} should be a number of at least 0, got {cost}")
    alarms = (1 - outside_share) * false_alarm_cost * thresholds.false_alarm_rates
    return np.asarray(alarms + outside_share * miss_cost * (1 - thresholds.found_rates))


def _point(thresholds: _Thresholds, place: int, outside_share: float, cost: float, level: float) -> OperatingPoint:
    inside, outside = ((int(flagged[place]), int(flagged[0])) for flagged in (thresholds.inside, thresholds.outside))
    return OperatingPoint(
        float(thresholds.scores[place]),
        inside[0] / inside[1],
        clopper_pearson(*inside, level=level),
        outside[0] / outside[1],
        clopper_pearson(*outside, level=level),
        outside_share,
        cost,
    )


def _checked_range(share: float | None, name: str) -> float:
    if share is None or not 0 <= share <= 1:
        raise BadInput(f"{name} should lie between 0 and 1, got {share}")
    return share
