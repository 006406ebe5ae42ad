"""What the columns of a model's scores mean: a list in memory, a file, or the usual order of ILSVRC-2012."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes

WNID = re.compile(r"n\d{8}")


def classes_from(named: Classes | Sequence[str] | Path | str) -> Classes:
    """The classes that were named: as they are, as a list of names or wnids, or in a file.

    A file has one name, or one wnid, or a wnid and a name, a line; or it is JSON, a list or a mapping from place to name.

    >>> classes_from(["n01440764", "n01443537"]).names
    ('tench', 'goldfish')
    """
    if isinstance(named, Classes):
        return named
    if isinstance(named, (str, Path)):
        return _from_entries(_file_entries(Path(named)))
    return _from_entries(list(named))


def classes_for(
    outputs: int | None, named: Classes | Sequence[str] | Path | str | None
) -> tuple[Classes | None, tuple[str, ...]]:
    """The classes of a model with this many outputs, and a note where they were assumed rather than said."""
    if named is not None:
        classes = classes_from(named)
        if outputs is not None and outputs != len(classes):
            raise ClassMismatch(f"the model gives {outputs} scores an image but {len(classes)} classes are named")
        return classes, ()
    ilsvrc = ilsvrc_classes()
    if outputs == 1000:
        return ilsvrc, ("1000 outputs taken as ILSVRC-2012 in its usual order",)
    if outputs == 1001 and ilsvrc.wnids is not None:
        background = Classes(("background", *ilsvrc.names), ("background", *ilsvrc.wnids))
        return background, ("1001 outputs taken as background, then ILSVRC-2012 in its usual order",)
    return None, ("the model does not name its classes; --classes gives them",)


def _file_entries(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} cannot be read as a list of classes: {problem}") from problem
    if path.suffix.lower() != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        data = json.loads(text)
    except json.JSONDecodeError as problem:
        raise BadInput(f"{path} is not JSON: {problem}") from problem
    return json_entries(data, str(path))


def json_entries(data: object, where: str) -> list[str]:
    """Class names from a list, or from a mapping of places ("0", "1", ...) to names or [wnid, name] pairs."""
    if isinstance(data, dict):
        try:
            data = [data[place] for place in sorted(data, key=int)]
        except (ValueError, TypeError):
            raise BadInput(f"{where} should map places 0, 1, 2, ... to names") from None
    if not isinstance(data, list) or not data:
        raise BadInput(f"{where} should hold a list of class names")
    return [" ".join(map(str, entry)) if isinstance(entry, list) else str(entry) for entry in data]


def _from_entries(entries: list[str]) -> Classes:
    if not entries:
        raise BadInput("the list of classes is empty")
    if not all(WNID.match(entry) for entry in entries):
        return Classes(tuple(entries))
    ilsvrc = ilsvrc_classes()
    known = dict(zip(ilsvrc.keys, ilsvrc.names, strict=True))
    wnids = [entry[:9] for entry in entries]
    names = [entry[9:].strip(" ,\t") or known.get(wnid, wnid) for entry, wnid in zip(entries, wnids, strict=True)]
    if len(set(wnids)) != len(wnids):
        raise BadInput("a wnid stands twice in the list of classes")
    return Classes(tuple(names), tuple(wnids))
