"""From the names that folders and files carry to classes and places in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from shiftproof.class_lists import WNID
from shiftproof.errors import BadInput, ClassMismatch, listed
from shiftproof.reference import readable_names
from shiftproof.types import Classes

NUMBER = re.compile(r"0|[1-9]\d{0,4}")
MOST_CLASSES = 100_000
"""As many as `NUMBER` can tell apart: where labels are numbers, every number up to the highest is a class."""


LabelKeys: TypeAlias = tuple[str, ...]
"""The classes of one image, each by its name, wnid or number; none for an unlabelled image."""


def label_keys(entry: object) -> LabelKeys:
    """The labels of one image, given alone or in a list; None, -1, an empty text and not-a-number stand for no label.

    >>> label_keys("cat"), label_keys([3, 3.0, 5]), label_keys(-1)
    (('cat',), ('3', '5'), ())
    """
    entries = entry if isinstance(entry, (list, tuple, np.ndarray)) else [entry]
    keys = (_label_text(label) for label in entries)
    return tuple(dict.fromkeys(key for key in keys if key not in ("", "-1")))


def _label_text(label: object) -> str:
    if label is None or (isinstance(label, (float, np.floating)) and np.isnan(label)):
        return ""
    # tables with gaps keep whole numbers as 3.0
    return str(int(label)) if isinstance(label, (float, np.floating)) and label.is_integer() else str(label).strip()


def plain_name(name: str) -> str:
    """A class name without what writers differ in: case, underscores and spaces.

    >>> plain_name("Great_White  shark")
    'great white shark'
    """
    return re.sub(r"[\s_]+", " ", name).strip().casefold()


def classes_of_wnids(wnids: Iterable[str]) -> Classes:
    """Classes in the order of their wnids, which for ILSVRC-2012 is the order of its labels."""
    ordered = tuple(sorted(set(wnids)))
    return Classes(tuple(readable_names().get(wnid, wnid) for wnid in ordered), ordered)


def numbered_classes(count: int) -> Classes:
    """Classes that are known by their number alone.

    >>> numbered_classes(3).names
    ('0', '1', '2')
    """
    return Classes(tuple(map(str, range(count))))


def check_class_number(number: int, where: str) -> None:
    """BadInput where a label is so large that it is no number of a class."""
    if number >= MOST_CLASSES:
        raise BadInput(f"{where} has the label {number}; numbers of classes go from 0 to {MOST_CLASSES - 1:,}")


def is_numbered(classes: Classes) -> bool:
    """Whether the classes are numbers in order, so that a label is a number and not a name."""
    return classes.wnids is None and classes.names == numbered_classes(len(classes)).names


def places_of(keys: Iterable[str], classes: Classes | None = None) -> tuple[Classes, dict[str, int]]:
    """The classes that these keys name, and the place of each key among them.

    Wnids are ordered as wnids, whole numbers are places themselves, and other names are sorted. Classes that are given
    keep their order, and the keys are looked up in them.

    >>> places_of(["dog", "cat"])
    (Classes(names=('cat', 'dog'), wnids=None), {'dog': 1, 'cat': 0})
    >>> places_of(["2", "0"])[0].names
    ('0', '1', '2')
    """
    wanted = list(dict.fromkeys(keys))
    if classes is not None:
        return classes, _places_in(wanted, classes)
    if wanted and all(WNID.fullmatch(key) for key in wanted):
        classes = classes_of_wnids(wanted)
        return classes, {key: classes.keys.index(key) for key in wanted}
    if wanted and all(NUMBER.fullmatch(key) for key in wanted):
        return numbered_classes(max(map(int, wanted)) + 1), {key: int(key) for key in wanted}
    names = tuple(sorted(wanted))
    order = {name: place for place, name in enumerate(names)}
    return Classes(names), {key: order[key] for key in wanted}


def _places_in(keys: list[str], classes: Classes) -> dict[str, int]:
    by_key = {key: place for place, key in enumerate(classes.keys)}
    by_name: dict[str, list[int]] = {}
    for place, name in enumerate(classes.names):
        by_name.setdefault(plain_name(name), []).append(place)
    places: dict[str, int] = {}
    for key in keys:
        named = by_name.get(plain_name(key), [])
        if key in by_key:
            places[key] = by_key[key]
        elif len(named) == 1:
            places[key] = named[0]
        elif NUMBER.fullmatch(key) and int(key) < len(classes):
            places[key] = int(key)
    unknown = [key for key in keys if key not in places]
    if unknown:
        raise ClassMismatch(
            f"{len(unknown)} of {len(keys)} labels are not among the {len(classes)} classes given: {listed(unknown)}; "
            "name each class once, as the images do"
        )
    return places
