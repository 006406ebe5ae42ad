"""The folder a set is written into: one run at a time, of one way to make it, with a record of that in the open."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import shiftproof
from shiftproof.errors import BadInput, StoreError, listed
from shiftproof.files import alone, check_inside, refusal, write_whole
from shiftproof.image_sets.records import RECORD, Record, load_record
from shiftproof.types import ImageSet, SetAside

SCRATCH = ".unfinished"
"""The hidden folder for what is not whole yet; it goes when a run ends well."""

Making: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By corruption or perturbation: its figures by severity or level, and whatever else it depends on."""


@dataclass(frozen=True)
class Plan:
    """How a set is made; a folder takes further parts that are made in the same way, and nothing else."""

    settings: Mapping[str, Any]  # what all of them share
    kind: str  # what the parts are: "corruptions", "perturbations" or "crops"
    making: Making
    parts: tuple[str, ...]  # what this run writes, by name
    information: Mapping[str, Any] = field(default_factory=dict)  # for readers; no picture depends on it


@contextmanager
def destination(root: Path, images: ImageSet, plan: Plan) -> Iterator[Path]:
    """The scratch folder of a destination that is this run's alone until it ends; BadInput where it holds another set."""
    scratch = root / SCRATCH
    with _in_sentences(root):
        _check_place(root, images)
        root.mkdir(parents=True, exist_ok=True)
    with alone(root):
        _check_record(root, _shared(images, plan), plan)
        with _in_sentences(root):
            scratch.mkdir(exist_ok=True)
        check_inside(scratch, root)
        for left in scratch.iterdir():
            if left.name.startswith(".") or left.is_symlink():  # by a killed run; by nobody who means well
                left.unlink(missing_ok=True)
        yield scratch
        shutil.rmtree(scratch, ignore_errors=True)


def begin_record(root: Path, images: ImageSet, plan: Plan) -> None:
    """Writes the record with this run's parts as not finished."""
    _save(root, images, plan, unfinished={*_recorded(root, "unfinished"), *plan.parts}, aside=_recorded(root, "set_aside"))


def set_aside_before(root: Path) -> set[str]:
    """The images that earlier runs could not read."""
    return {entry["id"] for entry in _recorded(root, "set_aside")}


def end_record(
    root: Path, images: ImageSet, plan: Plan, set_aside: Iterable[SetAside], tried: Iterable[str]
) -> tuple[SetAside, ...]:
    """Writes the record of a run that is through; every image that was ever set aside and could not be read since."""
    tried = set(tried)
    earlier = [entry for entry in _recorded(root, "set_aside") if entry["id"] not in tried]
    aside = [*earlier, *({"id": image.id, "reason": image.reason} for image in set_aside)]
    aside.sort(key=lambda entry: str(entry["id"]))
    _save(root, images, plan, unfinished=set(_recorded(root, "unfinished")) - set(plan.parts), aside=aside)
    return tuple(SetAside(entry["id"], entry["reason"]) for entry in aside)


def _shared(images: ImageSet, plan: Plan) -> dict[str, Any]:
    """What all parts of a folder have in common."""
    source = {"name": images.ref.name, "fingerprint": images.ref.fingerprint, "images": len(images.samples)}
    return {"shiftproof": shiftproof.__version__, **plan.settings, "labelled": images.classes is not None, "source": source}


def _save(root: Path, images: ImageSet, plan: Plan, *, unfinished: set[str], aside: list[Mapping[str, str]]) -> None:
    earlier = (load_record(root) or {}).get(plan.kind, {})
    names = [*earlier, *(name for name in plan.making if name not in earlier)]
    making = {name: _joined(earlier.get(name, {}), plan.making.get(name, {})) for name in names}
    record = {
        **_shared(images, plan),
        **plan.information,
        plan.kind: making,
        "unfinished": sorted(unfinished),
        "set_aside": aside,
    }
    write_whole(root / RECORD, json.dumps(record, indent=1).encode() + b"\n", scratch=root / SCRATCH, inside=root)


def _recorded(root: Path, key: str) -> list[Any]:
    return list((load_record(root) or {}).get(key, []))


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of both, by severity or level in order."""
    joined = {**one, **other}
    return {key: joined[key] for key in sorted(joined)}


def _check_place(root: Path, images: ImageSet) -> None:
    location = images.ref.location
    if location and os.path.isdir(location) and root.resolve().is_relative_to(Path(location).resolve()):
        raise BadInput(f"{root} lies inside {location}, whose images it would become; name a folder elsewhere")
    if root.exists() and not root.is_dir():
        raise StoreError(f"cannot write {root}: it is a file, not a folder")


def _check_record(root: Path, shared: Mapping[str, Any], plan: Plan) -> None:
    record = load_record(root)
    if record is None:
        strangers = [entry.name for entry in root.iterdir() if entry.name != SCRATCH] if root.exists() else []
        if strangers:
            raise BadInput(
                f"{root} holds {listed(sorted(strangers), most=3)} and no record of a set we wrote; name a new folder"
            )
        return
    differences = list(_differences(record, shared, plan))
    if differences:
        raise BadInput(
            f"{root} holds a set made otherwise: {'; '.join(differences)}; name another folder, or ask for the same"
        )


def _differences(record: Record, shared: Mapping[str, Any], plan: Plan) -> Iterator[str]:
    for key, now in shared.items():
        there: Any = record.get(key)
        if key == "source" and there is None:
            yield "no source there"
            continue
        if key == "source" and there.get("fingerprint") == now["fingerprint"]:
            continue
        if key == "source":
            yield f"{_images(there)} there, {_images(now)} now, and their names, labels or facts differ"
        elif there != now:
            yield f"{key.replace('_', ' ')} {there} there, {now} now"
    if plan.kind not in record:
        yield f"no {plan.kind} there"
    for name, figures in json.loads(json.dumps({name: dict(made) for name, made in plan.making.items()})).items():
        earlier = record.get(plan.kind, {}).get(name, {})
        for key in figures.keys() & earlier.keys():
            if figures[key] != earlier[key]:
                yield f"{name} {key} {earlier[key]} there, {figures[key]} now"


def _images(source: Mapping[str, Any]) -> str:
    count = source.get("images")
    return f"{count:,} images of {source.get('name')}" if isinstance(count, int) else f"images of {source.get('name')}"


@contextmanager
def _in_sentences(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise refusal(error, root) from error
