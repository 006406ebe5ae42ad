"""What to expect of a threshold: error rates with their intervals, cost, and the images that it was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from shiftproof.types import Measurement

PLAIN: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
}
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


def expected_of(measurements: Sequence[Measurement], how: str) -> Expected:
    """The rates among measurements of a threshold that were judged in this way."""
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


def expected_from(data: Mapping[str, Any]) -> Expected:
    """The same out of a JSON document."""
    sets = {name: {side: Share(**share) for side, share in sides.items()} for name, sides in data["sets"].items()}
    return Expected(data["judged"], Share(**data["false_alarms"]), Share(**data["found"]), data["cost"], sets)


def check_fields(record: object) -> None:
    """TypeError where a text or number of a record, or of a record within it, is something else in the file it is from."""
    if isinstance(record, Mapping):
        record = tuple(record.values())
    if isinstance(record, tuple):
        for one in record:
            check_fields(one)
    if not is_dataclass(record):
        return
    for field in fields(record):
        held, kinds = getattr(record, field.name), PLAIN.get(str(field.type))
        if kinds is None:
            check_fields(held)
        elif not isinstance(held, kinds) or isinstance(held, bool):
            raise TypeError(f"{field.name} should be {field.type}, got {held!r}")
