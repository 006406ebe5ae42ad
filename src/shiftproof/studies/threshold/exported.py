"""A chosen threshold as a file: what is needed to use it elsewhere, and what to expect of it there."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.studies.threshold.expected import Expected, UsedImages, check_fields, expected_from, expected_of
from shiftproof.studies.threshold.study import EXACT, FN_COST, FP_COST, HELD_OUT, OOD_SHARE, WHERE_PICKED
from shiftproof.types import Fact, OODScores, Results, encodable

RULE = "flag an image where its score is at least the threshold; a threshold of null flags none"


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
            expected=expected_of(results.measurements, HELD_OUT) if held_out else None,
            where_picked=expected_of(results.measurements, WHERE_PICKED),
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
            threshold = cls(
                **{
                    **data,
                    "threshold": math.inf if data["threshold"] is None else float(data["threshold"]),
                    "expected": data["expected"] and expected_from(data["expected"]),
                    "where_picked": expected_from(data["where_picked"]),
                    "datasets": tuple(UsedImages(**one) for one in data["datasets"]),
                    "notes": tuple(data["notes"]),
                }
            )
            check_fields(threshold)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as wrong:
            raise BadInput("this is no threshold as shiftproof threshold writes it") from wrong
        return threshold
