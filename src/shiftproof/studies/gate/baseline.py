"""A baseline as a small file for git: what a model got right, image by image, to compare with in pairs without it."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, listed
from shiftproof.files import parse_json, read_text, write_whole
from shiftproof.places import as_path
from shiftproof.studies.gate.per_image import KEPT, Column, Columns
from shiftproof.types import Classes, fingerprint_of

FORMAT = "shiftproof baseline"
VERSION = 1
MOST_BYTES = 1 << 30
"""Of a column or the ids once they are unpacked: a file that asks for more is not ours."""

TAG_BYTES = 3
"""Of each image and its label: another picture under the same name goes unnoticed once in sixteen million."""


@dataclass(frozen=True)
class Baseline:
    """What a model got right on a dataset, under each condition that rules name."""

    model: str
    fingerprint: str
    dataset: str
    classes: str  # fingerprint of the classes of the dataset
    scoring: Mapping[str, str]  # how labels and outputs were matched
    ids: tuple[str, ...]
    tags: NDArray[np.uint32]  # (images,): digests of picture and label
    runs: Mapping[str, Columns]  # by condition as rules spell it, "clean" for the images as they are
    made: str
    version: str  # of shiftproof

    def save(self, path: str | Path) -> None:
        """Writes the file whole."""
        write_whole(as_path(path), self.to_json().encode())

    def to_json(self) -> str:
        """One JSON document: the head in the open, then columns of compressed bytes, and a checksum over all of it."""
        data: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "model": self.model,
            "fingerprint": self.fingerprint,
            "dataset": self.dataset,
            "images": len(self.ids),
            "classes": self.classes,
            "scoring": dict(self.scoring),
            "made": self.made,
            "shiftproof": self.version,
            "ids": _packed(json.dumps(self.ids, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")),
            "tags": _packed(_tag_bytes(self.tags)),
            "runs": {
                condition: {name: _packed(_column_bytes(name, column)) for name, column in columns.items()}
                for condition, columns in self.runs.items()
            },
        }
        return json.dumps({**data, "checksum": fingerprint_of(data)}, indent=1) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Baseline:
        """The file read again; BadInput where it is damaged, of a newer version or something else."""
        return cls.from_json(read_text(path), str(path))

    @classmethod
    def from_json(cls, text: str, where: str) -> Baseline:
        again = "write it again with: shiftproof gate MODEL DATASET --write-baseline " + where
        try:
            data = parse_json(text, where)
        except BadInput as problem:
            raise BadInput(f"{where} is damaged or no baseline ({problem}); {again}") from problem
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise BadInput(f"{where} is no baseline as shiftproof gate writes it; {again}")
        if not isinstance(data.get("version"), int) or data["version"] > VERSION:
            raise BadInput(
                f"{where} was written by a newer shiftproof ({data.get('shiftproof')}, format {data.get('version')}; this "
                f"one reads up to {VERSION}): update shiftproof, or {again}"
            )
        checksum = data.pop("checksum", None)
        if checksum != fingerprint_of(data):
            raise BadInput(f"{where} is damaged: its checksum is not that of what it holds; {again}")
        try:
            images = int(data["images"])
            return cls(
                model=str(data["model"]),
                fingerprint=str(data["fingerprint"]),
                dataset=str(data["dataset"]),
                classes=str(data["classes"]),
                scoring={str(key): str(value) for key, value in data["scoring"].items()},
                ids=_read_ids(data["ids"], images),
                tags=_read_tags(_unpacked(data["tags"]), images),
                runs={
                    condition: {name: _read_column(name, _unpacked(packed), images) for name, packed in columns.items()}
                    for condition, columns in data["runs"].items()
                },
                made=str(data["made"]),
                version=str(data["shiftproof"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as problem:
            raise BadInput(f"{where} is damaged ({problem}); {again}") from problem

    def columns(self, condition: str, wanted: Sequence[str], where: str) -> Columns:
        """What rules need under a condition; BadInput where the file was written for other rules."""
        columns = self.runs.get(condition, {})
        missing = [name for name in wanted if name not in columns]
        if missing:
            lacks = listed(missing) if columns else f"results under {condition}"
            raise BadInput(
                f"{where} has no {lacks}, which these rules need; write it again with the same rules: "
                f"shiftproof gate MODEL DATASET --write-baseline {where}"
            )
        return columns


def is_baseline(path: str) -> bool:
    """Whether this names a file of ours, rather than a model; judged by how it begins."""
    place = Path(path)
    if not place.is_file():
        return False
    with place.open("rb") as file:
        return FORMAT.encode() in file.read(200)


def tags_of(digests: Sequence[str | None], labels: Sequence[Sequence[str]]) -> NDArray[np.uint32]:
    """A digest of each picture and its labels, (images,); another picture or label under the same id has another."""
    tags = np.empty((len(digests), 4), np.uint8)
    tags[:, TAG_BYTES:] = 0
    for place, (digest, keys) in enumerate(zip(digests, labels, strict=True)):
        text = "\0".join([digest or "", *sorted(keys)]).encode("utf-8", "surrogatepass")
        tags[place, :TAG_BYTES] = np.frombuffer(hashlib.blake2b(text, digest_size=TAG_BYTES).digest(), np.uint8)
    return tags.view("<u4")[:, 0].astype(np.uint32)


def classes_print(classes: Classes | None) -> str:
    """A fingerprint of the classes of a dataset, and how many they are."""
    keys = classes.keys if classes else ()
    return f"{len(keys)} classes, {fingerprint_of(sorted(keys))[:12]}"


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _unpacked(text: str) -> bytes:
    unpacking = zlib.decompressobj()
    data = unpacking.decompress(base64.b64decode(text, validate=True), MOST_BYTES)
    if not unpacking.eof:
        raise ValueError("a column is cut off")
    return data


def _tag_bytes(tags: NDArray[np.uint32]) -> bytes:
    return tags.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :TAG_BYTES].tobytes()


def _read_tags(data: bytes, images: int) -> NDArray[np.uint32]:
    tags = np.zeros((images, 4), np.uint8)
    tags[:, :TAG_BYTES] = np.frombuffer(data, np.uint8).reshape(images, TAG_BYTES)
    return tags.view("<u4")[:, 0].astype(np.uint32)


def _read_ids(text: str, images: int) -> tuple[str, ...]:
    ids = json.loads(_unpacked(text).decode("utf-8", "surrogatepass"))
    if not isinstance(ids, list) or len(ids) != images or not all(isinstance(one, str) for one in ids):
        raise ValueError(f"{images} images but other ids")
    return tuple(ids)


def _column_bytes(name: str, column: Column) -> bytes:
    return np.packbits(column.astype(bool)).tobytes() if KEPT[name].dtype == "bool" else column.tobytes()


def _read_column(name: str, data: bytes, images: int) -> Column:
    if KEPT[name].dtype == "bool":
        return np.unpackbits(np.frombuffer(data, np.uint8), count=images).astype(bool)
    return np.frombuffer(data, KEPT[name].dtype).reshape(images)
