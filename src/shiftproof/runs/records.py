"""What the store says in JSON files of models, profiles and near-duplicates: written with a checksum, checked when read."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args

import xxhash

from shiftproof.errors import BadInput, DamagedFile, StoreError
from shiftproof.files import impossible_name, parse_json, quarantine, write_whole
from shiftproof.runs.rows import MOST_CLASSES, SAID_ANEW, text_in, to_json
from shiftproof.types import (
    Classes,
    Classifier,
    Companion,
    CompanionKind,
    Gives,
    ModelRef,
    ObjectDetector,
    OutputKind,
    Seen,
)

FORMAT = 1

CHECKSUM = "checksum"
"""The entry of a JSON file that holds the checksum of the others."""

LONGEST_NAME = 1000
"""Characters of a model's name: more are damage, and would only fill the screen."""


@dataclass(frozen=True)
class StoredModel:
    """What the store knows of a model, enough to study its predictions without it."""

    ref: ModelRef
    gives: OutputKind
    preprocessing: Mapping[str, Any]
    seen: Seen = dataclasses.field(default_factory=Seen)
    classes: Classes | None = None
    outputs: int | None = None  # columns of its scores
    notes: tuple[str, ...] = ()
    companion: Companion | None = None  # how it was made of another model; None: it is a model of its own
    stored: str = dataclasses.field(default="", compare=False)  # ISO time at which it was last run under its name
    unmarked: bool = dataclasses.field(default=False, compare=False)  # stored before companions were told apart

    @classmethod
    def of(cls, model: Classifier | ObjectDetector, outputs: int | None = None) -> StoredModel:
        gives: OutputKind = "boxes" if isinstance(model, ObjectDetector) else model.gives
        if gives == "boxes" and model.classes is not None:
            outputs = len(model.classes)
        described = dict(model.preprocessing.describe())
        return cls(model.ref, gives, described, model.seen, model.classes, outputs, model.notes, model.companion)

    def plain(self) -> dict[str, Any]:
        """What `model.json` holds of it."""
        told = _fields_of(self)
        told |= {name: told[name] and _fields_of(told[name]) for name in ("ref", "seen", "classes", "companion")}
        del told["unmarked"]
        told["preparation"] = told.pop("preprocessing")  # as stores have called it from the beginning
        return told

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> StoredModel:
        """The same out of `model.json`; ValueError, KeyError or TypeError where that is damaged."""
        seen, outputs, made = plain["seen"], plain["outputs"], plain.get("companion")
        classes = companion = None
        if plain["classes"] is not None:
            names, wnids = plain["classes"]["names"], plain["classes"]["wnids"]
            classes = Classes(_texts(names), None if wnids is None else _texts(wnids))
        if made is not None:
            if made["kind"] not in get_args(CompanionKind):
                raise ValueError(f"no network is {made['kind']!r} of another")
            companion = Companion(made["kind"], None if made["of"] is None else _text(made["of"]))
        ref = ModelRef(_text(plain["ref"]["name"]), _text(plain["ref"]["fingerprint"]))
        if not can_be_name(ref.name):
            raise ValueError("its name is none")
        if plain["gives"] not in (*get_args(Gives), "boxes"):
            raise ValueError(f"no model gives {plain['gives']!r}")
        if outputs is not None and (type(outputs) is not int or not 0 <= outputs <= MOST_CLASSES):
            raise ValueError(f"{outputs!r} is no number of classes")
        return cls(
            ref=ref,
            gives=plain["gives"],
            preprocessing=dict(plain["preparation"].items()),
            seen=Seen(
                _text(seen["training_data"]),
                _texts(seen["augmentations"]),
                _texts(seen["filtered"]),
                _texts(seen.get("trained_on", [])),
            ),
            classes=classes,
            outputs=outputs,
            notes=_texts(plain["notes"]),
            companion=companion,
            stored=_text(plain.get("stored", "")),
            unmarked="companion" not in plain,
        )


@dataclass(frozen=True)
class Reached:
    """How far the profile of a model on a dataset has come."""

    images: int = 0  # drawn of the dataset
    units: Mapping[str, int | None] = dataclasses.field(default_factory=dict)  # by study and options; None: all of it
    drawn: Mapping[str, int] = dataclasses.field(default_factory=dict)  # images of studies that have fewer, by the same
    seconds: float = 0.0  # spent on it
    minutes: float = 0.0  # for which it is complete
    studies: str = ""  # which studies these are the seconds and minutes of
    pace: float = 0.0  # seconds a forward pass took

    def plain(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Reached:
        """The same out of its file; ValueError, KeyError or TypeError where that is damaged."""
        images, units, drawn = plain["images"], dict(plain["units"].items()), dict(plain["drawn"].items())
        counts = (images, *filter(None, units.values()), *drawn.values())
        if not all(type(count) is int and count >= 0 for count in counts):
            raise ValueError("images and units are counted")
        times = seconds, minutes, pace = tuple(float(plain[name]) for name in ("seconds", "minutes", "pace"))
        if not all(0 <= time < math.inf for time in times):
            raise ValueError("times are finite and not negative")
        return cls(images, units, drawn, seconds, minutes, _text(plain["studies"]), pace)


def _fields_of(value: Any) -> dict[str, Any]:
    """A dataclass as a dictionary, without the copies that `asdict` makes of thousands of class names."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is no list of texts")
    return tuple(map(_text, values))


def can_be_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= LONGEST_NAME and impossible_name(name) is None


def read_alike(path: Path) -> list[tuple[str, str]]:
    try:
        found = parse_json(text_in(path), path)
        if found.keys() - {"images", "location", "alike", CHECKSUM}:  # the name of the checksum may be what is damaged
            raise DamagedFile(path, "it holds what no list of near-duplicates does")
        _check(path, found)
        return [(_text(one), _text(other)) for one, other in found["alike"]]
    except (BadInput, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(path, "it does not list near-duplicates") from error


def read_reached(path: Path) -> Reached:
    try:
        found = parse_json(text_in(path), path)
        if found.keys() - {"images", "units", "drawn", "seconds", "minutes", "studies", "pace", CHECKSUM}:
            raise DamagedFile(path, "it holds what no record of a profile does")
        _check(path, found)
        return Reached.from_plain(found)
    except (BadInput, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedFile(path, "it does not say how far a profile has come") from error


def write_model(path: Path, model: StoredModel) -> None:
    write_whole(path, with_checksum({"format": FORMAT, **model.plain()}), inside=path.parents[2])


def with_checksum(about: Mapping[str, Any]) -> bytes:
    return to_json({**about, CHECKSUM: _checksum_of(about)})


def _check(path: Path, plain: dict[str, Any]) -> None:
    """DamagedFile where a file does not hold what was written; those of older versions have no checksum."""
    about = {name: value for name, value in plain.items() if name != CHECKSUM}
    if CHECKSUM in plain and plain[CHECKSUM] != _checksum_of(about):
        raise DamagedFile(path, "its checksum does not match")


def _checksum_of(about: Mapping[str, Any]) -> str:
    return xxhash.xxh3_128_hexdigest(json.dumps(about, sort_keys=True).encode())


def read_model_if_there(path: Path) -> StoredModel | None:
    """None where it is not there, is damaged, or another process has just forgotten it."""
    try:
        return read_model(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except DamagedFile as damaged:
        quarantine(path, damaged.reason, SAID_ANEW)
        return None


def read_model(path: Path) -> StoredModel:
    try:
        text = text_in(path)
        # before models were stored with their time, their file alone had it
        return _model_in(path, text, datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat())
    except (FileNotFoundError, NotADirectoryError):
        raise
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadInput) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else "it cannot be read as a model"
        raise DamagedFile(path, why) from error


@lru_cache(maxsize=16)  # a study asks for its model once a run, and a model may name thousands of classes
def _model_in(path: Path, text: str, written: str) -> StoredModel:
    plain = parse_json(text, path)
    form = plain.get("format", FORMAT)
    if isinstance(form, int) and form > FORMAT:
        raise StoreError(
            f"{path} was written by a newer shiftproof (format {form}, this one reads {FORMAT}); update shiftproof, or "
            "name another folder with --store"
        )
    _check(path, plain)
    model = StoredModel.from_plain({"stored": written, **plain})
    if model.ref.fingerprint != path.parent.name:
        raise DamagedFile(path, f"it is of another model, {model.ref.fingerprint:.40}")
    return model


def marked(models: Sequence[StoredModel]) -> list[StoredModel]:
    """The same, with those marked that were stored before companions were: by how their names and fingerprints are made."""
    if not any(model.unmarked for model in models):
        return list(models)
    from shiftproof.models.companions import companion_made_of

    refs = [model.ref for model in models]
    return [
        dataclasses.replace(model, companion=companion_made_of(model.ref, model.seen, model.notes, refs))
        if model.unmarked
        else model
        for model in models
    ]
