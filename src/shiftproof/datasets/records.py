"""The ``manifest.json`` of a dataset that shiftproof wrote: how it was made, and so how it is read."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from shiftproof.errors import BadInput
from shiftproof.files import read_json
from shiftproof.places import absolute
from shiftproof.types import Classes

RECORD = "manifest.json"
CARD, CARD_TEXT = "data-card.json", "data-card.md"
"""The data card of an exported dataset, for machines and for people."""

CHECKSUMS = "SHA256SUMS"
"""The digest of every other file of an exported dataset, as `sha256sum --check` reads it."""

CROISSANT = "croissant.json"
"""The metadata of an exported dataset in the Croissant format."""

OWN_FILES = frozenset({RECORD, CARD, CARD_TEXT, CHECKSUMS, CROISSANT})
"""Files beside images that are no reason for a note."""

Record: TypeAlias = Mapping[str, Any]

WrittenLayout = Literal["imagenet-c", "cifar-c", "imagenet-p", "cifar-p", "crops"]
"""The layouts that shiftproof writes; which layout of the catalog reads each, that one says."""


def load_record(root: str | Path) -> Record | None:
    """The record in a folder; None where there is none, or somebody else's file of that name."""
    try:
        record = read_json(os.path.join(root, RECORD))
    except BadInput:
        return None
    return record if _is_ours(record) else None


def _is_ours(record: Any) -> bool:
    """Whether the fields that are read are as shiftproof writes them: many tools keep a manifest.json."""
    if not isinstance(record, dict) or not _holds(record, "shiftproof", str) or not _holds(record, "layout", str):
        return False
    parts = [record.get(kind, {}) for kind in ("corruptions", "perturbations", "crops")]
    source, classes = record.get("source"), record.get("classes") or {"names": [], "wnids": None}
    return (
        record["layout"] in get_args(WrittenLayout)
        and isinstance(source, dict)
        and isinstance(source.get("images"), int)
        and isinstance(classes, dict)
        and _are_texts(classes.get("names"))
        and _are_texts(classes.get("wnids") or [])
        and len(classes.get("wnids") or classes["names"]) == len(classes["names"])
        and _are_texts(record.get("images", []))
        and _are_texts(record.get("unfinished", []))
        and isinstance(record.get("picture", ""), (str, type(None)))
        and isinstance(record.get("set_aside", []), list)
        and all(
            isinstance(one, dict) and _are_texts([one.get("id"), one.get("reason")]) for one in record.get("set_aside", [])
        )
        and all(isinstance(part, dict) and all(isinstance(made, dict) for made in part.values()) for part in parts)
    )


def _holds(record: Record, key: str, kind: type) -> bool:
    return isinstance(record.get(key), kind)


def _are_texts(entries: object) -> bool:
    return isinstance(entries, list) and all(isinstance(entry, str) for entry in entries)


def record_of(root: str) -> Record | None:
    """The record of the dataset in a folder, or in the folder above."""
    return load_record(root) or load_record(os.path.dirname(absolute(os.fspath(root))))


def notes_on(record: Record | None) -> tuple[str, ...]:
    """The note on a written dataset."""
    if record is None:
        return ()
    made = f"shiftproof {record['shiftproof']} from {record.get('source', {}).get('name')}"
    how = ", ".join(f"{key} {record[key]}" for key in ("edition", "output", "seed") if record.get(key) is not None)
    whole = "; it is not finished: the command that began it goes on with it" if record.get("unfinished") else ""
    return (f"written by {made}: {how}{whole}",)


def classes_in(record: Record | None) -> Classes | None:
    """The classes whose numbers are the labels of written arrays; None where a record names none."""
    found = (record or {}).get("classes")
    return None if not found else Classes(tuple(found["names"]), tuple(found["wnids"]) if found.get("wnids") else None)


def cut_in(record: Record | None) -> str | None:
    """How the pictures of a written dataset were cropped from the images; ``whole`` where they were not."""
    picture = (record or {}).get("picture")
    return "whole" if picture == "image" else picture


def ids_in(record: Record | None, rows: int) -> Sequence[str]:
    """The id of the image behind each row of written arrays; numbers where a record does not say."""
    aside = {entry["id"] for entry in (record or {}).get("set_aside", ())}
    ids = [found for found in (record or {}).get("images", ()) if found not in aside]
    return ids if len(ids) == rows == len(set(ids)) else [f"{row:05d}" for row in range(rows)]


def is_unlabelled(record: Record | None) -> bool:
    """Whether a dataset was made from images without labels, so that its folders are no classes."""
    return record is not None and not record.get("labelled", True)
