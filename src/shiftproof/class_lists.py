"""Lists of classes as people name them: in memory, in a file, or ILSVRC-2012 and COCO by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from shiftproof.errors import BadInput, listed
from shiftproof.files import parse_json, read_text, readable_file
from shiftproof.reference import ilsvrc_classes, load_table, readable_names
from shiftproof.types import Classes

ClassList: TypeAlias = Classes | Sequence[str] | Path | str
"""What `classes_from` reads; a path may come as text."""

ILSVRC = "ilsvrc2012"
COCO = "coco"
COCO_NUMBERS = "coco-91"
BACKGROUND = "background"
WNID = re.compile(r"n\d{8}")


def classes_from(named: ClassList) -> Classes:
    """The classes that were named: as they are, as a list of names or wnids, in a file, or by name.

    The names are ``ilsvrc2012``, ``coco`` (the 80 classes in a row) and ``coco-91`` (each at its number in COCO's files).

    A file has one name, or one wnid, or a wnid and a name, a line; or it is JSON, a list or a mapping from place to name.

    >>> classes_from(["n01440764", "n01443537"]).names
    ('tench', 'goldfish')
    """
    if isinstance(named, Classes):
        return named
    if named == ILSVRC:
        return ilsvrc_classes()
    if named == COCO:
        return coco_classes()
    if named == COCO_NUMBERS:
        return numbered_coco_classes()
    if isinstance(named, (str, Path)):
        return _from_entries(_file_entries(Path(named)))
    return _from_entries(list(named))


@cache
def coco_classes() -> Classes:
    """The 80 classes of COCO in the order of detectors' outputs; the one that WordNet has no noun for goes by its name.

    >>> coco_classes().names[:3], coco_classes().keys[11]
    (('person', 'bicycle', 'car'), 'stop sign')
    """
    rows = load_table("coco_classes")
    return Classes(tuple(row["name"] for row in rows), tuple(row["wnid"] or row["name"] for row in rows))


@cache
def numbered_coco_classes() -> Classes:
    """The classes of COCO at their numbers in its files, 1 to 90; numbers that no class has are called unused.

    >>> numbered_coco_classes().names[:3], len(numbered_coco_classes())
    (('unused 0', 'person', 'bicycle'), 91)
    """
    coco = coco_classes()
    numbers = [int(row["category"]) for row in load_table("coco_classes")]
    places = {number: place for place, number in enumerate(numbers)}
    unused = {number: f"unused {number}" for number in range(max(numbers) + 1) if number not in places}
    names, keys = (
        tuple(unused.get(number) or words[places[number]] for number in range(max(numbers) + 1))
        for words in (coco.names, coco.keys)
    )
    return Classes(names, keys)


def usual_classes(outputs: int | None) -> Classes | None:
    """What so many outputs without names usually are: ILSVRC-2012, or of 1001 a background class and ILSVRC-2012."""
    ilsvrc = ilsvrc_classes()
    if outputs == len(ilsvrc):
        return ilsvrc
    if outputs == len(ilsvrc) + 1:
        return Classes((BACKGROUND, *ilsvrc.names), (BACKGROUND, *ilsvrc.keys))
    return None


def _file_entries(path: Path) -> list[str]:
    try:
        text = read_text(readable_file(path))
    except BadInput as problem:
        raise BadInput(f"the list of classes cannot be read: {problem}") from problem
    if path.suffix.lower() != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    return json_entries(parse_json(text, path, unique=True), str(path))


def json_entries(data: object, where: str) -> list[str]:
    """Class names from a list, or from a mapping of places ("0", "1", ...) to names or [wnid, name] pairs.

    >>> json_entries({"1": "dog", "0": "cat"}, "names.json")
    ['cat', 'dog']
    """
    if isinstance(data, dict):
        data = _in_order(data, where)
    if not isinstance(data, list) or not data:
        raise BadInput(f"{where} should hold a list of class names")
    return [_entry(entry, f"{where}: class {place}") for place, entry in enumerate(data)]


def _in_order(named: dict[Any, Any], where: str) -> list[Any]:
    """The values of a mapping by their places, which must be 0 to the last: a gap would give later classes other numbers."""
    try:
        places = {int(key): value for key, value in named.items()}
    except (ValueError, TypeError):
        raise BadInput(f"{where} should map places 0, 1, 2, ... to names") from None
    missing = [str(place) for place in range(len(places)) if place not in places]
    if missing or len(places) < len(named):
        beyond = [str(place) for place in sorted(places) if not 0 <= place < len(named)]
        told = f"without {listed(missing)}, with {listed(beyond)}" if missing else "with one twice"
        raise BadInput(f"{where} should name its {len(named)} classes by the places 0 to {len(named) - 1}, got them {told}")
    return [places[place] for place in range(len(places))]


def _entry(entry: Any, where: str) -> str:
    """A name, or a wnid and a name, as one text."""
    words = entry if isinstance(entry, list) else [entry]
    if not all(isinstance(word, (str, int, float)) for word in words):
        raise BadInput(f"{where} should be a name, or a wnid and a name, got {type(entry).__name__}")
    text = " ".join(map(str, words))
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise BadInput(f"{where} has half a character in its name: {text!r}")
    return text


def _from_entries(entries: list[str]) -> Classes:
    if not entries:
        raise BadInput("the list of classes is empty")
    if not all(WNID.match(entry) for entry in entries):
        return Classes(tuple(entries))
    wnids = [entry[:9] for entry in entries]
    known = readable_names()
    names = [entry[9:].strip(" ,\t") or known.get(wnid, wnid) for entry, wnid in zip(entries, wnids, strict=True)]
    if len(set(wnids)) != len(wnids):
        raise BadInput("a wnid stands twice in the list of classes")
    return Classes(tuple(names), tuple(wnids))
