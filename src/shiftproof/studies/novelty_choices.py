"""What can be chosen about the numbers of detectors: at which shares they are told, as which area, with which interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from shiftproof.errors import BadInput
from shiftproof.metrics.delong import auroc_interval
from shiftproof.metrics.separation import Area, auroc
from shiftproof.metrics.two_sample import bootstrap_auroc_interval
from shiftproof.types import About, AnomalyScores, Measurement

AurocInterval: TypeAlias = Literal["delong", "bootstrap"]

RESAMPLED = {"interval": "95 %, bootstrap over the images of either side"}
INTERVALS: Mapping[AurocInterval, Mapping[str, str]] = {"delong": {"interval": "95 %, DeLong"}, "bootstrap": RESAMPLED}


@dataclass(frozen=True)
class Choices:
    """How the numbers of one study are made."""

    tpr: float = 0.95  # share to be found when false alarms are counted
    risk: float = 0.05  # share of answers that may be wrong
    rejected: float = 0.75  # share of the outside images that may not pass
    area: Area = "average-precision"
    interval: AurocInterval = "delong"

    def __post_init__(self) -> None:
        for name in ("tpr", "risk", "rejected"):
            if not 0 < getattr(self, name) < 1:
                raise BadInput(f"{name} is a share between 0 and 1, such as 0.75; got {getattr(self, name)}")
        for name, chosen, known in (("area", self.area, Area), ("interval", self.interval, AurocInterval)):
            if chosen not in get_args(known):
                raise BadInput(f"{name} should be {' or '.join(get_args(known))}, got {chosen!r}")

    def auroc(
        self, metric: str, inside: AnomalyScores, outside: AnomalyScores, about: About, convention: Mapping[str, str]
    ) -> Measurement:
        """AUROC with its interval; where the sides do not overlap, drawing images again tells none."""
        within = (auroc_interval if self.interval == "delong" else bootstrap_auroc_interval)(inside, outside)
        told = {**convention, **(INTERVALS[self.interval] if within else {})}
        return Measurement(metric, auroc(inside, outside), about, len(inside) + len(outside), told, within)


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.75), percent(0.999)
    ('75 %', '99.9 %')
    """
    return f"{100 * share:g} %"
