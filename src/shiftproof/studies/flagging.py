"""Images that a threshold should let through, images that it should flag, and what it does to either."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.temperature import split_half
from shiftproof.studies import evidence
from shiftproof.studies.novelty_goals import Goal
from shiftproof.studies.novelty_scores import Scored
from shiftproof.types import About, AnomalyScores, Clusters, Measurement, joined_clusters

Thresholds: TypeAlias = tuple[float, float]
"""For images of the first half, and for those of the second."""


@dataclass(frozen=True)
class Group:
    """Images that should all be let through, or all be flagged."""

    scores: AnomalyScores
    first_half: NDArray[np.bool_]  # (images,), by their ids
    clusters: Clusters

    @classmethod
    def of(cls, parts: Sequence[tuple[Scored, NDArray[np.bool_]]], detector: str) -> Group:
        """Some rows of each set."""
        scores = [scored.scores[detector][rows] for scored, rows in parts]
        halves = [split_half(scored.clusters.keys)[rows] for scored, rows in parts]
        clusters = joined_clusters([scored.clusters.take(rows) for scored, rows in parts])
        return cls(np.concatenate([np.zeros(0), *scores]), np.concatenate([np.zeros(0, bool), *halves]), clusters)

    def __len__(self) -> int:
        return len(self.scores)

    def half(self, first: bool) -> AnomalyScores:
        """The scores of one half."""
        return np.asarray(self.scores[self.first_half == first])

    def flagged(self, metric: str, by: Thresholds, about: About, convention: Mapping[str, str]) -> Measurement:
        """Share of the images that reach their threshold."""
        reached = self.scores >= np.where(self.first_half, *by)
        return evidence.share(metric, reached, about, convention, self.clusters)


@dataclass(frozen=True)
class ThresholdSides:
    """Whom a threshold should tell apart."""

    familiar: Group
    foreign: Group

    @classmethod
    def of(cls, insides: Sequence[Scored], outside: Sequence[Scored], *, detector: str, goal: Goal) -> ThresholdSides:
        """Inside against outside images; or correct answers against mistakes and new classes."""
        everyone = {one.name: np.ones(len(one), bool) for one in (*insides, *outside)}
        familiar = [(one, one.correct if goal == "failure" else everyone[one.name]) for one in insides]
        mistakes = [(one, one.wrong) for one in insides] if goal == "failure" else []
        foreign = [*mistakes, *((one, everyone[one.name]) for one in outside)]
        return cls(Group.of(familiar, detector), Group.of(foreign, detector))

    def __len__(self) -> int:
        return len(self.familiar) + len(self.foreign)

    @property
    def fewest_in_a_half(self) -> int:
        """How many images the smallest half of either side has."""
        return min(len(group.half(first)) for group in (self.familiar, self.foreign) for first in (True, False))

    def told(self) -> str:
        """The images in words."""
        return f"{len(self.familiar):,} images to let through and {len(self.foreign):,} to flag"

    def flagged(self, by: Thresholds, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        """False alarms and images found, of those sides that there are."""
        for metric, group in (("operating_false_alarms", self.familiar), ("operating_found", self.foreign)):
            if len(group):
                yield group.flagged(metric, by, about, convention)
