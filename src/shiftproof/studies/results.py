"""Everything a set of studies found, with what is needed to say where it came from."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shiftproof.errors import BadInput
from shiftproof.files import defused
from shiftproof.registry import missing_extra
from shiftproof.types import (
    Condition,
    Curve,
    DrawnBox,
    DrawnHeat,
    Fact,
    Finding,
    FrostPictures,
    Gallery,
    GalleryItem,
    ImageSetRef,
    Measurement,
    Seen,
    SetAside,
)


@dataclass(frozen=True)
class ModelCard:
    """A model as a report names it."""

    name: str
    fingerprint: str
    gives: str
    preparation: Mapping[str, Fact]
    seen: Seen = field(default_factory=Seen)
    classes: int | None = None
    notes: tuple[str, ...] = ()
    companion: str | None = None  # how it was made of another model; None: it is a model of its own


@dataclass(frozen=True)
class ImageSetCard:
    """An image set as a report names it; `images` counts those set aside too."""

    name: str
    fingerprint: str
    images: int
    labelled: int
    location: str | None = None
    classes: int | None = None
    set_aside: tuple[SetAside, ...] = ()
    notes: tuple[str, ...] = ()
    credits: tuple[str, ...] = ()  # source and licence of the images, where known
    clusters: int | None = None  # independent cases; None: every image is one
    unit: str = "image"  # what one case is


@dataclass(frozen=True)
class Results:
    """Numbers, curves and galleries in the order the studies gave them."""

    findings: tuple[Finding, ...]
    models: tuple[ModelCard, ...] = ()
    image_sets: tuple[ImageSetCard, ...] = ()
    warnings: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()  # what could not be measured, and why
    command: str = ""
    made: str = ""  # ISO time
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        return tuple(finding for finding in self.findings if isinstance(finding, Measurement))

    @property
    def curves(self) -> tuple[Curve, ...]:
        return tuple(finding for finding in self.findings if isinstance(finding, Curve))

    @property
    def galleries(self) -> tuple[Gallery, ...]:
        return tuple(finding for finding in self.findings if isinstance(finding, Gallery))

    def to_json(self, *, indent: int | None = None) -> str:
        """One JSON document that `from_json` reads back; a value that is not a number becomes null."""
        findings = [{"kind": type(finding).__name__, **_fields(finding)} for finding in self.findings]
        text = json.dumps(_finite({**_shallow(self), "findings": findings}), ensure_ascii=False, indent=indent)
        return encodable(text)

    @classmethod
    def from_json(cls, text: str) -> Results:
        """What `to_json` wrote; BadInput for anything else."""
        try:
            return cls(**_results(json.loads(text)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as wrong:
            raise BadInput("these are no results as shiftproof writes them into reports") from wrong

    def rows(self) -> list[dict[str, Fact]]:
        """The measurements as a flat table: one row each, one column for everything they are about."""
        abouts = list(dict.fromkeys(key for found in self.measurements for key in found.about))
        conventions = list(dict.fromkeys(key for found in self.measurements for key in found.convention))
        return [
            {
                "metric": found.metric,
                **{key: found.about.get(key) for key in abouts},
                "value": found.value,
                "low": found.interval[0] if found.interval else None,
                "high": found.interval[1] if found.interval else None,
                "images": found.images,
                "clusters": found.images if found.clusters is None else found.clusters,
                **{f"convention_{key}": found.convention.get(key) for key in conventions},
            }
            for found in self.measurements
        ]

    def to_csv(self) -> str:
        """The measurements as a table; texts that a spreadsheet would take for a formula begin with an apostrophe."""
        rows = [{name: defused(cell) for name, cell in row.items()} for row in self.rows()]
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else ["metric", "value"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return encodable(text.getvalue())

    def to_parquet(self) -> bytes:
        """The measurements as a Parquet file."""
        try:
            from shiftproof.studies.parquet import table_bytes
        except ModuleNotFoundError as missing:
            raise missing_extra("Parquet", missing) from missing
        return table_bytes(self.rows())


def encodable(text: str) -> str:
    r"""The text with \u escapes for what no encoding has: parts of file names that are not valid text.

    >>> json.loads(encodable('"caf\\udce9"')) == "caf\udce9"
    True
    """
    return text.encode("utf-8", "backslashreplace").decode()


def _fields(finding: Finding) -> dict[str, Any]:
    # asdict copies deeply, which for thousands of measurements takes longer than everything else
    return dataclasses.asdict(finding) if isinstance(finding, Gallery) else vars(finding)


def _shallow(results: Results) -> dict[str, Any]:
    return {
        "models": [dataclasses.asdict(card) for card in results.models],
        "image_sets": [dataclasses.asdict(card) for card in results.image_sets],
        "warnings": list(results.warnings),
        "skipped": list(results.skipped),
        "command": results.command,
        "made": results.made,
        "versions": dict(results.versions),
    }


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
    image_set = entry.get("image_set")
    other_set = ImageSetRef(**image_set) if image_set else None
    boxes = tuple(DrawnBox(tuple(box), kind, caption) for box, kind, caption in entry.get("boxes", ()))
    condition, heat = _condition(entry.get("condition")), _heat(entry.get("heat"))
    return GalleryItem(**{**entry, "condition": condition, "image_set": other_set, "boxes": boxes, "heat": heat})


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
    data["image_sets"] = tuple(
        ImageSetCard(**{**_tuples(card), "set_aside": tuple(SetAside(**image) for image in card["set_aside"])})
        for card in data["image_sets"]
    )
    data["warnings"], data["skipped"] = tuple(data["warnings"]), tuple(data["skipped"])
    return data


def _finding(entry: Mapping[str, Any]) -> Finding:
    plain = _tuples({key: value for key, value in entry.items() if key != "kind"})
    match entry["kind"]:
        case "Measurement":
            return Measurement(**{**plain, "value": math.nan if plain["value"] is None else plain["value"]})
        case "Curve":
            return Curve(**{**plain, "y": tuple(math.nan if value is None else value for value in plain["y"])})
        case _:
            items = tuple(_item(item) for item in plain["items"])
            return Gallery(**{**plain, "image_set": ImageSetRef(**plain["image_set"]), "items": items})
