"""What can be chosen about the numbers of detectors: at which shares they are told, as which area, with which interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.delong import auroc_interval
from shiftproof.metrics.separation import Area, auroc
from shiftproof.metrics.two_sample import bootstrap_auroc_interval
from shiftproof.studies import evidence
from shiftproof.types import About, AnomalyScores, Clusters, Measurement, joined_clusters

AurocInterval: TypeAlias = Literal["delong", "bootstrap"]


class BySide(TypedDict):
    """Clusters as metrics of two sides take them."""

    in_clusters: NDArray[np.intp] | None
    out_clusters: NDArray[np.intp] | None


@dataclass(frozen=True)
class Cases:
    """The cases behind two sides in one numbering: a photo and its blurred copy may stand on both."""

    joint: Clusters  # of the inside images, and behind them of the outside ones
    insides: int  # how many of them are inside

    @classmethod
    def of(cls, inside: Clusters, outside: Clusters) -> Cases:
        return cls(joined_clusters([inside, outside]), len(inside))

    @property
    def count(self) -> int:
        return self.joint.count

    @property
    def by_side(self) -> BySide:
        """None where every image is a case of its own, on either side."""
        numbers = self.joint.numbers
        if numbers is None:
            return {"in_clusters": None, "out_clusters": None}
        return {"in_clusters": numbers[: self.insides], "out_clusters": numbers[self.insides :]}

    def told(self, method: str, within: tuple[float, float] | None) -> dict[str, str]:
        """The method of an interval, and by which cases where these are not the images."""
        return evidence.interval_told(method, self.joint, within)


INTERVALS = {
    "delong": (auroc_interval, "Wilson with DeLong's variance"),
    "bootstrap": (bootstrap_auroc_interval, "bootstrap over the images of either side"),
}


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
        self,
        metric: str,
        inside: AnomalyScores,
        outside: AnomalyScores,
        about: About,
        convention: Mapping[str, str],
        cases: Cases,
    ) -> Measurement:
        """AUROC with its interval; where the sides do not overlap, drawing images again tells none."""
        find, method = INTERVALS[self.interval]
        within = find(inside, outside, **cases.by_side)
        told, images = {**convention, **cases.told(method, within)}, len(inside) + len(outside)
        return Measurement(metric, auroc(inside, outside), about, images, told, within, cases.count)


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.75), percent(0.999)
    ('75 %', '99.9 %')
    """
    return f"{100 * share:g} %"
