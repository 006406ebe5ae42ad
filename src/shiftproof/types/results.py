"""Everything a set of studies found, with what is needed to say where it came from."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shiftproof.errors import BadInput
from shiftproof.files import encodable
from shiftproof.tables import as_dataframe, csv_text, parquet_bytes
from shiftproof.types.findings import (
    BaselineRef,
    Caution,
    ConfusionMatrix,
    Curve,
    DrawnBox,
    DrawnHeat,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    Measurement,
    NoInterval,
    Note,
    Skipped,
)
from shiftproof.types.images import Condition, DatasetRef, Fact, FrostPictures, Origin, SkippedImage
from shiftproof.types.models import Seen
from shiftproof.types.profile import Again, Axis, NextStep, Profile, Standard, Weakness
from shiftproof.types.shown import counted, html_table, in_a_line


@dataclass(frozen=True)
class ModelCard:
    """A model as a report names it."""

    name: str
    fingerprint: str
    gives: str
    preprocessing: Mapping[str, Fact]
    seen: Seen = field(default_factory=Seen)
    classes: int | None = None
    notes: tuple[str, ...] = ()
    companion: str | None = None  # how it was made of another model; None: it is a model of its own
    label_space: str | None = None  # published list that its classes are, as imagenet for the 1000 of ILSVRC-2012


@dataclass(frozen=True)
class DatasetCard:
    """A dataset as a report names it; `images` counts those skipped too."""

    name: str
    fingerprint: str
    images: int
    labelled: int
    location: str | None = None
    classes: int | None = None
    skipped_images: tuple[SkippedImage, ...] = ()
    notes: tuple[str, ...] = ()
    credits: tuple[str, ...] = ()  # source and licence of the images, where known
    clusters: int | None = None  # independent clusters; None: every image is one
    unit: str = "image"  # what one cluster is
    published: str | None = None  # the published dataset that it is a copy of, or looks like, such as imagenet-a
    origin: Origin | None = None  # what it is a draw, a view or perturbation sequences of


MOST_SHOWN = 20
"""Measurements that a notebook shows of results; `to_pandas` has all."""


@dataclass(frozen=True)
class Results:
    """Numbers, curves and galleries in the order the studies gave them; then what was skipped, and cautions."""

    findings: tuple[Finding | Note, ...]
    models: tuple[ModelCard, ...] = ()
    datasets: tuple[DatasetCard, ...] = ()
    command: str = ""
    made: str = ""  # ISO time
    versions: Mapping[str, str] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = ()  # the verdict on each model; `sp.profile` makes them
    again: tuple[Again, ...] = ()  # how each model was measured on each dataset, for steps that go on from there

    def origin_of(self, dataset: str) -> str:
        """The dataset that one of this name is a part or a version of; its own name where it is neither."""
        return next((card.origin.name for card in self.datasets if card.name == dataset and card.origin), dataset)

    def __repr__(self) -> str:
        kinds = {"measurement": self.measurements, "curve": self.curves, "gallery": self.galleries, "warning": self.warnings}
        told = [counted(len(found), one, "galleries" if one == "gallery" else None) for one, found in kinds.items() if found]
        models = [card.name for card in self.models if card.companion is None]
        named = [_names_or_count(models, "model"), _names_or_count([card.name for card in self.datasets], "dataset")]
        return in_a_line(self, " on ".join(filter(None, named)), *told)

    def _repr_html_(self) -> str:
        """For notebooks: the numbers of models on whole datasets, or simply the first ones where there are none."""
        whole = [found for found in self.measurements if set(found.about) <= {"model", "dataset"}]
        shown = (whole or self.measurements)[:MOST_SHOWN]
        rows = [
            (
                *(found.about.get(key, "") for key in ("model", "dataset")),
                found.metric,
                *_figures(found),
                f"{found.images:,}",
            )
            for found in shown
        ]
        hidden = len(self.measurements) - len(shown)
        below = f"{hidden:,} more in results.to_pandas()" if hidden else ""
        return html_table(repr(self)[1:-1], ("model", "dataset", "metric", "value", "CI", "images"), rows, below)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return tuple(finding for finding in self.findings if isinstance(finding, Measurement))

    @property
    def curves(self) -> tuple[Curve, ...]:
        return tuple(finding for finding in self.findings if isinstance(finding, Curve))

    @property
    def galleries(self) -> tuple[Gallery, ...]:
        return tuple(finding for finding in self.findings if isinstance(finding, Gallery))

    @property
    def shown(self) -> tuple[Finding, ...]:
        """What sections of a report draw."""
        return tuple(finding for finding in self.findings if not isinstance(finding, (Skipped, Caution)))

    @property
    def skipped(self) -> tuple[str, ...]:
        """What could not be measured, and why."""
        return tuple(dict.fromkeys(finding.reason for finding in self.findings if isinstance(finding, Skipped)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know before numbers are trusted."""
        return tuple(dict.fromkeys(finding.text for finding in self.findings if isinstance(finding, Caution)))

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON document that `from_json` reads back; a value that is not a number becomes null."""
        findings = [{"kind": type(finding).__name__, **_fields(finding)} for finding in self.findings]
        return encodable(_json({**_shallow(self), "findings": findings}, indent))

    @classmethod
    def from_json(cls, text: str) -> Results:
        """What `to_json` wrote; BadInput for anything else."""
        try:
            return cls(**_results(json.loads(text)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as wrong:
            raise BadInput(
                "these are no results as this version of shiftproof writes them; measure the store of an older one again"
            ) from wrong

    def rows(self) -> list[dict[str, Fact]]:
        """The measurements as a flat table: one row each, one column for everything they are about."""
        abouts = list(dict.fromkeys(key for found in self.measurements for key in found.about))
        conventions = list(dict.fromkeys(key for found in self.measurements for key in found.convention))
        return [
            {
                "metric": found.metric,
                **{key: found.about.get(key) for key in abouts},
                "value": found.value,
                "low": found.interval.low if found.interval else None,
                "high": found.interval.high if found.interval else None,
                "images": found.images,
                "clusters": found.images if found.clusters is None else found.clusters,
                "level": found.interval.level if found.interval else None,
                "method": found.interval.method if found.interval else None,
                "no_interval": found.no_interval.why if found.no_interval else None,
                **{f"convention_{key}": found.convention.get(key) for key in conventions},
            }
            for found in self.measurements
        ]

    def to_csv(self) -> str:
        """The measurements as a table; texts that a spreadsheet would take for a formula begin with an apostrophe."""
        rows = self.rows()
        return csv_text(rows, list(rows[0]) if rows else ["metric", "value"])

    def to_pandas(self) -> Any:
        """The measurements as a pandas DataFrame, a row each."""
        return as_dataframe(self.rows())

    def to_parquet(self) -> bytes:
        """The measurements as a Parquet file; a column of mixed kinds, as classes by name and by number, becomes text."""
        return parquet_bytes(self.rows())


def _names_or_count(names: Sequence[str], one: str) -> str:
    return " and ".join(names) if len(names) <= 2 else counted(len(names), one)


def _figures(found: Measurement) -> tuple[str, str]:
    """The value and its interval, in four figures."""
    interval = found.interval
    return f"{found.value:.4g}", f"{interval.low:.4g} to {interval.high:.4g}" if interval else ""


def plain(finding: Finding | Note) -> dict[str, Any]:
    """A finding as JSON has it, wherever it is written; a value that is not a number is None.

    >>> found = plain(Measurement("top1_accuracy", 0.9, {}, 50, {}, Interval(0.78, 0.97)))
    >>> found["interval"], found["low"], found["level"]
    ([0.78, 0.97], 0.78, 0.95)
    """
    fields: dict[str, Any] = _finite(_fields(finding))
    return fields


def _fields(finding: Finding | Note) -> dict[str, Any]:
    # asdict copies deeply, which for thousands of measurements takes longer than everything else
    if isinstance(finding, Gallery):
        return dataclasses.asdict(finding)
    if isinstance(finding, (Skipped, Caution, ConfusionMatrix)):
        return vars(finding)
    none = None if finding.no_interval is None else vars(finding.no_interval)
    if isinstance(finding, Curve):
        return {**vars(finding), "no_interval": none}
    plain = {**vars(finding), "no_interval": none, "baseline": finding.baseline and vars(finding.baseline)}
    if finding.interval is None:
        return plain
    interval = vars(finding.interval)
    return {**plain, **interval, "interval": [interval["low"], interval["high"]]}


def _shallow(results: Results) -> dict[str, Any]:
    return {
        "models": [dataclasses.asdict(card) for card in results.models],
        "datasets": [dataclasses.asdict(card) for card in results.datasets],
        "warnings": list(results.warnings),
        "skipped": list(results.skipped),
        "command": results.command,
        "made": results.made,
        "versions": dict(results.versions),
        "again": [dataclasses.asdict(one) for one in results.again],
        "profiles": [_profile_fields(one) for one in results.profiles],
    }


def _profile_fields(profile: Profile) -> dict[str, Any]:
    judged = {
        name: [{**dataclasses.asdict(one), "found": _fields(one.found)} for one in getattr(profile, name)]
        for name in ("axes", "weaknesses")
    }
    return {**vars(profile), **judged}


def _json(value: Any, indent: int | None) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False)
    except (ValueError, TypeError):  # seldom: a value that is not a number, or a mapping that is no dict
        return json.dumps(_finite(value), ensure_ascii=False, indent=indent)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def _condition(entry: Mapping[str, Any] | None) -> Condition | None:
    if entry is None:
        return None
    return Condition(**{**entry, "frost": FrostPictures(**entry["frost"]) if entry["frost"] else None})


def _item(entry: Mapping[str, Any]) -> GalleryItem:
    dataset = entry.get("dataset")
    other_set = DatasetRef(**dataset) if dataset else None
    boxes = tuple(DrawnBox(tuple(box), kind, caption) for box, kind, caption in entry.get("boxes", ()))
    condition, heat = _condition(entry.get("condition")), _heat(entry.get("heat"))
    return GalleryItem(**{**entry, "condition": condition, "dataset": other_set, "boxes": boxes, "heat": heat})


def _heat(entry: Sequence[Any] | None) -> DrawnHeat | None:
    if entry is None:
        return None
    rows, (left, top, right, bottom) = entry
    return DrawnHeat(tuple(tuple(row) for row in rows), (left, top, right, bottom))


def _results(data: dict[str, Any]) -> dict[str, Any]:
    data["findings"] = tuple(_finding(entry) for entry in data["findings"])
    data["models"] = tuple(
        ModelCard(**{**card, "seen": Seen(**_tuples(card["seen"])), "notes": tuple(card["notes"])})
        for card in data["models"]
    )
    data["datasets"] = tuple(map(_dataset_card, data["datasets"]))
    for card in (*data["models"], *data["datasets"]):
        _check([card.name, card.fingerprint], str)
    _check([number for card in data["datasets"] for number in (card.images, card.labelled)], int)
    _check([data.get("command", ""), data.get("made", ""), *data.get("versions", {}).values()], str)
    data["again"] = tuple(_again(entry) for entry in data.get("again", ()))
    data["profiles"] = tuple(_profile(entry) for entry in data.get("profiles", ()))
    if not all(
        isinstance(data.pop(key), list) for key in ("warnings", "skipped")
    ):  # said again; they are among the findings
        raise TypeError("warnings and skipped should be lists")
    return data


def _dataset_card(entry: Mapping[str, Any]) -> DatasetCard:
    skipped = tuple(SkippedImage(**image) for image in entry["skipped_images"])
    origin = Origin(**entry["origin"]) if entry.get("origin") else None
    return DatasetCard(**{**_tuples(entry), "skipped_images": skipped, "origin": origin})


def _again(entry: Mapping[str, Any]) -> Again:
    return Again(**{**entry, "given": {study: _tuples(options) for study, options in entry["given"].items()}})


def _profile(entry: Mapping[str, Any]) -> Profile:
    axes = tuple(Axis(**_judged(axis)) for axis in entry["axes"])
    return Profile(**{**entry, "axes": axes, "weaknesses": tuple(_weakness(one) for one in entry["weaknesses"])})


def _judged(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The number and the standard that axes and weaknesses share."""
    standard = Standard(**_tuples(entry["standard"])) if entry["standard"] else None
    return {**entry, "found": _measurement(_tuples(entry["found"])), "standard": standard}


def _weakness(entry: Mapping[str, Any]) -> Weakness:
    studies = {name: _tuples(settings) for name, settings in entry["next_step"]["studies"].items()}
    step, interval = NextStep(**{**entry["next_step"], "studies": studies}), Interval(**entry["interval"])
    item, dataset = entry["example"], entry["dataset"]
    example = {"example": item and _item(item), "dataset": dataset and DatasetRef(**dataset)}
    return Weakness(**{**_judged(entry), "next_step": step, "interval": interval, **example})


def _finding(entry: Mapping[str, Any]) -> Finding | Note:
    plain = _tuples({key: value for key, value in entry.items() if key != "kind"})
    match entry["kind"]:
        case "Measurement":
            return _measurement(plain)
        case "Curve":
            y = tuple(math.nan if value is None else value for value in plain["y"])
            return Curve(**{**plain, "y": y, "no_interval": _no_interval(plain)})
        case "ConfusionMatrix":
            return ConfusionMatrix(**plain)
        case "Skipped":
            _check([plain["reason"]], str)
            return Skipped(**plain)
        case "Caution":
            _check([plain["text"]], str)
            return Caution(**plain)
        case _:
            items = tuple(_item(item) for item in plain["items"])
            return Gallery(**{**plain, "dataset": DatasetRef(**plain["dataset"]), "items": items})


def _check(values: Iterable[object], *kinds: type) -> None:
    """TypeError where a value is of another kind: what a stranger has written is not met with later."""
    for value in values:
        if type(value) not in kinds:
            raise TypeError(f"expected {' or '.join(kind.__name__ for kind in kinds)}, got {value!r}")


def _measurement(plain: dict[str, Any]) -> Measurement:
    how = {key: plain.pop(key) for key in ("low", "high", "level", "method", "cases") if key in plain}
    for name in how.keys() & {"low", "high"}:
        how[name] = math.nan if how[name] is None else how[name]
    interval = Interval(**how) if how else None
    value = math.nan if plain["value"] is None else plain["value"]
    numbers = (value, *((interval.low, interval.high, interval.level) if interval else ()))
    _check(numbers, int, float)
    _check([plain["metric"], *plain["about"].keys(), *plain["convention"].keys()], str)
    _check([*plain["about"].values(), *plain["convention"].values()], str, int, float, bool, type(None))
    _check([plain["images"]], int)
    _check([plain.get("clusters")], int, type(None))
    for number in numbers:
        float(number)  # OverflowError for a whole number beyond all others
    baseline = BaselineRef(**plain["baseline"]) if plain["baseline"] else None
    read = {"value": value, "interval": interval, "no_interval": _no_interval(plain), "baseline": baseline}
    return Measurement(**{**plain, **read})


def _no_interval(entry: Mapping[str, Any]) -> NoInterval | None:
    return NoInterval(**entry["no_interval"]) if entry["no_interval"] else None
