"""Similar names: which classes of a model the classes of some images may be, and class maps that say so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from shiftproof.datasets.classes import columns_by_name, described, match_columns, plain_name, resolve, with_wnids
from shiftproof.errors import ClassMismatch, listed
from shiftproof.types import Classes


class Near(NamedTuple):
    """A class of a model that a name may stand for, and how alike the two names are, from 0 to 1."""

    column: int
    likeness: float


ALIKE = 0.8
"""Likeness of names that are worth proposing."""

CLEARLY = 0.1
"""How much less alike all other classes must be, before a name is taken for the nearest one."""


def near_classes(names: Iterable[str], of_model: Classes, most: int = 2) -> list[list[Near]]:
    """For each name the classes of the model with the most similar names, most alike first.

    Punctuation and a plural s make no difference; of names that have all the words of the other, and of WordNet's synonyms
    for an ILSVRC class, the most similar counts.

    >>> pets = Classes(("tabby cat", "T-shirt", "eel"))
    >>> [[pets.names[near.column] for near in found] for found in near_classes(["tabby", "tshirts", "zebra"], pets)]
    [['tabby cat'], ['T-shirt'], []]
    """
    spelled: dict[str, set[int]] = {}
    for table in columns_by_name(of_model):
        for name, columns in table.items():
            spelled.setdefault(name, set()).update(columns)
    return [_near(plain_name(name), spelled)[:most] for name in names]


def _near(name: str, spelled: Mapping[str, set[int]]) -> list[Near]:
    best: dict[int, float] = {}
    matcher = SequenceMatcher(b=_bare(name))
    for other, columns in spelled.items():
        likeness = _likeness(matcher, name, other)
        for column in columns if likeness >= ALIKE else ():
            best[column] = max(likeness, best.get(column, 0.0))
    return sorted((Near(*pair) for pair in best.items()), key=lambda near: (-near.likeness, near.column))


def _likeness(matcher: SequenceMatcher[str], name: str, other: str) -> float:
    matcher.set_seq1(_bare(other))
    words, others = set(name.split()), set(other.split())
    least = ALIKE if words and (words <= others or others <= words) else 0.0
    could_be = matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE
    return max(least, matcher.ratio() if could_be else 0.0)


def _bare(name: str) -> str:
    """Letters and digits alone, each word without a plural s."""
    words = re.findall(r"[^\W_]+", name)
    return "".join(word.removesuffix("s") if len(word) > 3 else word for word in words)


def near_told(of_set: Classes, places: Sequence[int], of_model: Classes) -> str:
    """Some classes for an error message, each with the most similar names of the model's classes."""
    shown = places[:8]
    near = near_classes((of_set.names[place] for place in shown), of_model)
    told = [_with_near(described(of_set, [place]), found, of_model) for place, found in zip(shown, near, strict=True)]
    return listed([*told, *map(str, places[len(shown) :])], most=len(shown))


def _with_near(name: str, near: Sequence[Near], of_model: Classes) -> str:
    return f"{name} (near: {' or '.join(of_model.names[one.column] for one in near)})" if near else name


def renamed(of_set: Classes, of_model: Classes, names: Mapping[str, str] | None) -> tuple[Classes, dict[str, str]]:
    """The classes of the images, some by the names of the model's classes: those that `names` says, by name or wnid, or
    where it is None those whose name is similar to that of one class alone; and what was renamed.

    >>> renamed(Classes(("kitty", "eels")), Classes(("cat", "eel")), {"kitty": "cat"})
    (<Classes: cat, eels>, {'kitty': 'cat'})
    >>> renamed(Classes(("kitty", "eels")), Classes(("cat", "eel")), None)[1]
    {'eels': 'eel'}
    """
    of_model = with_wnids(of_model)
    columns = _clearly_near(of_set, of_model) if names is None else _columns_said(of_set, of_model, names)
    new_names, new_keys = list(of_set.names), list(of_set.keys)
    for place, column in columns.items():
        new_names[place], new_keys[place] = of_model.names[column], of_model.keys[column]
    told = {of_set.names[place]: of_model.names[column] for place, column in columns.items()}
    return Classes(tuple(new_names), tuple(new_keys) if of_set.wnids else None), told


def _clearly_near(of_set: Classes, of_model: Classes) -> dict[int, int]:
    lacking = match_columns(of_set, of_model, len(of_model)).unmatched()
    found: dict[int, int] = {}
    for place, near in zip(lacking, near_classes((of_set.names[place] for place in lacking), of_model), strict=True):
        # names that merely share their words, as dog and hot dog do, are proposed and not taken
        if near and near[0].likeness > ALIKE and (len(near) == 1 or near[0].likeness - near[1].likeness >= CLEARLY):
            found[place] = near[0].column
    return found


def _columns_said(of_set: Classes, of_model: Classes, names: Mapping[str, str]) -> dict[int, int]:
    places, strangers = resolve(names, of_set)
    columns, missing = resolve(names.values(), of_model)
    if strangers:
        raise ClassMismatch(f"the class map names classes that the images do not have: {listed(strangers)}")
    if missing:
        told = near_told(Classes(tuple(missing)), range(len(missing)), of_model)
        raise ClassMismatch(f"the class map leads to classes that the model does not have: {told}")
    return {places[name]: columns[target] for name, target in names.items()}
