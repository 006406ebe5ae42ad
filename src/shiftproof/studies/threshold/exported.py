"""A chosen threshold as a file: what is needed to use it elsewhere, and what to expect of it there."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.studies.threshold.study import EXACT, FN_COST, FP_COST, HELD_OUT, OOD_SHARE, WHERE_PICKED
from shiftproof.types import Fact, Measurement, OODScores, Results, encodable

RULE = "flag an image where its score is at least the threshold; a threshold of null flags none"
FLAGGED = {"operating_fpr": "false_alarms", "operating_tpr": "found"}


@dataclass(frozen=True)
class Share:
    """A share of images with its interval."""

    value: float
    low: float | None  # neither of too few cases
    high: float | None
    images: int

    @classmethod
    def of(cls, found: Measurement) -> Share:
        low, high = found.ends or (None, None)
        return cls(found.value, low, high, found.images)

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)


@dataclass(frozen=True)
class Expected:
    """False-positive rate, true-positive rate and cost: on all images, and on each dataset."""

    judged: str  # on which images, in words
    false_alarms: Share
    found: Share
    cost: float  # expected, per image
    sets: Mapping[str, Mapping[str, Share]]  # by the name of a set, then "false_alarms" or "found"


@dataclass(frozen=True)
class UsedImages:
    """A dataset that the threshold, or the detector, was made with."""

    name: str
    fingerprint: str
    images: int
    skipped_images: int


@dataclass(frozen=True)
class ExportedThreshold:
    """A detector's threshold for one model."""

    threshold: float  # infinity flags none
    ood_detector: str
    preset: str
    parameters: Mapping[str, Fact]  # those it was asked with, and those it found when it was fitted
    model: str
    model_fingerprint: str
    goal: str
    chosen: str
    false_alarm_cost: float
    miss_cost: float
    ood_share: float  # of positives among future images
    expected: Expected | None  # None where there were too few images to evaluate it on others than it was chosen on
    where_picked: Expected
    datasets: Sequence[UsedImages]
    notes: Sequence[str]
    made: str
    versions: Mapping[str, str]

    @classmethod
    def of(cls, results: Results) -> ExportedThreshold:
        """The one threshold among the results; BadInput with the reasons where there is none."""
        found = [one for one in results.measurements if one.metric == "operating_threshold"]
        if len(found) != 1:
            why = f"no threshold could be chosen: {'; '.join(results.skipped) or 'none was asked for'}"
            raise BadInput(f"{len(found)} thresholds were chosen, and a file holds one" if found else why)
        threshold = found[0]
        model = next(card for card in results.models if card.name == threshold.about["model"])
        detector, convention = str(threshold.about["ood_detector"]), threshold.convention
        held_out = any(one.about.get("judged") == HELD_OUT for one in results.measurements)
        costs = next(one.convention for one in results.measurements if one.metric == "operating_cost")
        return cls(
            threshold=threshold.value,
            ood_detector=detector,
            preset=convention["preset"],
            parameters=json.loads(convention[EXACT]),
            model=model.name,
            model_fingerprint=model.fingerprint,
            goal=str(threshold.about["goal"]),
            chosen=str(threshold.about["chosen"]),
            false_alarm_cost=float(costs[FP_COST]),
            miss_cost=float(costs[FN_COST]),
            ood_share=float(costs[OOD_SHARE]),
            expected=_expected(results.measurements, HELD_OUT) if held_out else None,
            where_picked=_expected(results.measurements, WHERE_PICKED),
            datasets=tuple(
                UsedImages(card.name, card.fingerprint, card.images, len(card.skipped_images)) for card in results.datasets
            ),
            notes=(*results.warnings, *results.skipped),
            made=results.made,
            versions=dict(results.versions),
        )

    def flags(self, scores: OODScores) -> NDArray[np.bool_]:
        """Which images to flag, by the scores that this detector gives them, (images,)."""
        return np.asarray(scores >= self.threshold)

    def to_json(self) -> str:
        """One JSON document that `from_json` reads back."""
        data = {"rule": RULE, **dataclasses.asdict(self)}
        if not math.isfinite(self.threshold):
            data["threshold"] = None
        return encodable(json.dumps(data, ensure_ascii=False, indent=1))

    @classmethod
    def from_json(cls, text: str) -> ExportedThreshold:
        try:
            data = json.loads(text)
            del data["rule"]
            if type(data["threshold"]) not in (int, float, NoneType):
                raise TypeError("a threshold is a number")
            return cls(
                **{
                    **data,
                    "threshold": math.inf if data["threshold"] is None else float(data["threshold"]),
                    "expected": data["expected"] and _from_plain(data["expected"]),
                    "where_picked": _from_plain(data["where_picked"]),
                    "datasets": tuple(UsedImages(**one) for one in data["datasets"]),
                    "notes": tuple(data["notes"]),
                }
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as wrong:
            raise BadInput("this is no threshold as shiftproof threshold writes it") from wrong


def _expected(measurements: Sequence[Measurement], how: str) -> Expected:
    found = [one for one in measurements if one.about.get("judged") == how]
    whole = {one.metric: one for one in found if "set" not in one.about}
    sets: dict[str, dict[str, Share]] = {}
    for one in found:
        if "set" in one.about:
            sets.setdefault(str(one.about["set"]), {})[FLAGGED[one.metric]] = Share.of(one)
    return Expected(
        whole["operating_cost"].convention["judged"],
        Share.of(whole["operating_fpr"]),
        Share.of(whole["operating_tpr"]),
        whole["operating_cost"].value,
        sets,
    )


def _from_plain(data: Mapping[str, Any]) -> Expected:
    sets = {name: {side: Share(**share) for side, share in sides.items()} for name, sides in data["sets"].items()}
    return Expected(data["judged"], Share(**data["false_alarms"]), Share(**data["found"]), data["cost"], sets)
