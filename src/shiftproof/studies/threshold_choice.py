"""How a threshold is picked: for a share of false alarms, for a share of images rejected, or where mistakes cost least."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.metrics.operating_point import cheapest_point, operating_point
from shiftproof.studies.novelty_choices import percent
from shiftproof.types import AnomalyScores


@dataclass(frozen=True)
class ThresholdChoice:
    """One of three ways, and what mistakes cost.

    Of the images to come `outside_share` should be flagged; None: as many as among those that the threshold is picked on.
    """

    false_alarms: float | None = None  # share of the images to let through that may be flagged
    rejected: float | None = None  # share of the images to flag that must be
    cheapest: bool = False
    false_alarm_cost: float = 1.0
    miss_cost: float = 1.0
    outside_share: float | None = None

    def __post_init__(self) -> None:
        ways = (self.false_alarms is not None, self.rejected is not None, self.cheapest)
        if sum(ways) != 1:
            raise BadInput(
                "a threshold is picked for a share of false alarms (--false-alarms), for a share of outside images rejected "
                f"(--rejected) or where mistakes cost least (--cheapest): one of the three, got {sum(ways) or 'none'}"
            )
        self.pick(np.zeros(1), np.ones(1), self.outside_share)  # shares and costs out of range are told now

    def __str__(self) -> str:
        """The way in words.

        >>> str(ThresholdChoice(false_alarms=0.05)), str(ThresholdChoice(rejected=0.75)), str(ThresholdChoice(cheapest=True))
        ('at most 5 % false alarms', 'at least 75 % found', 'least cost')
        """
        if self.false_alarms is not None:
            return f"at most {percent(self.false_alarms)} false alarms"
        return "least cost" if self.rejected is None else f"at least {percent(self.rejected)} found"

    def pick(self, familiar: AnomalyScores, foreign: AnomalyScores, outside_share: float | None) -> float:
        """The score from which on images are flagged; infinity where it is best to flag none."""
        point = (
            partial(cheapest_point, familiar, foreign)
            if self.cheapest
            else partial(operating_point, familiar, foreign, false_alarms=self.false_alarms, rejected=self.rejected)
        )
        return point(false_alarm_cost=self.false_alarm_cost, miss_cost=self.miss_cost, outside_share=outside_share).threshold

    def cost(self, false_alarm_rate: float, found_rate: float, outside_share: float) -> float:
        """What one image to come costs on average.

        >>> ThresholdChoice(cheapest=True, miss_cost=10).cost(0.05, 0.8, 0.01)  # .99 * .05, and .01 * .2 misses
        0.0695
        """
        alarms = (1 - outside_share) * self.false_alarm_cost * false_alarm_rate
        return alarms + outside_share * self.miss_cost * (1 - found_rate)

    def costs(self, outside_share: float) -> dict[str, str]:
        """What stands beside a cost.

        >>> ThresholdChoice(cheapest=True, miss_cost=10).costs(0.01)
        {'false alarm costs': '1.0', 'miss costs': '10', 'outside share': '0.01'}
        """
        known = {"false alarm costs": self.false_alarm_cost, "miss costs": self.miss_cost, "outside share": outside_share}
        return {name: repr(value) for name, value in known.items()}
