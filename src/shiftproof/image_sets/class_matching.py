"""Which column of a model's scores stands for which class of the images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from shiftproof.class_lists import BACKGROUND, WNID, usual_classes
from shiftproof.errors import ClassMismatch, listed
from shiftproof.image_sets.class_keys import is_numbered, numbered_classes, plain_name
from shiftproof.reference import ilsvrc_all_names, ilsvrc_classes
from shiftproof.types import Classes


@dataclass(frozen=True)
class Matching:
    """The column of every class, -1 for a class the model lacks, and how they were found."""

    columns: tuple[int, ...]
    how: str
    model: Classes  # what the columns mean, as far as it is known

    def unmatched(self) -> list[int]:
        """Places of the classes that the model lacks."""
        return [place for place, column in enumerate(self.columns) if column < 0]


def match_columns(of_set: Classes, of_model: Classes | None, outputs: int) -> Matching:
    """The column of each class by wnid, else by name; by number or order where one side has no names."""
    if of_model is not None and len(of_model) != outputs:
        raise ClassMismatch(f"the model has {outputs} outputs but names {len(of_model)} classes")
    of_set = with_wnids(of_set)
    if of_model is None:
        of_model, assumed = _assumed_model(of_set, outputs)
        if of_model is None:
            return _by_place(of_set, outputs)
    else:
        of_model, assumed = with_wnids(of_model), ""
    if is_numbered(of_set) and not is_numbered(of_model):
        return _by_place(of_set, outputs, of_model)
    how = "matched by wnid" if of_set.wnids and of_model.wnids else "matched by name"
    return Matching(_columns(of_set, of_model), f"{how}; {assumed}" if assumed else how, of_model)


def with_wnids(classes: Classes) -> Classes:
    """The same classes with their wnids, where nearly all names stand in the order of ILSVRC-2012."""
    if classes.wnids is not None or len(classes) not in (1000, 1001):
        return classes
    ahead = len(classes) - 1000
    in_place = sum(bool(_forms(name) & known) for name, known in zip(classes.names[ahead:], _ilsvrc_forms(), strict=True))
    if in_place < 900:
        return classes
    return Classes(classes.names, ((BACKGROUND,) if ahead else ()) + ilsvrc_classes().keys)


def resolve(keys: Iterable[str], of_model: Classes) -> tuple[dict[str, int], list[str]]:
    """The column that each wnid or name stands for, and those that stand for none."""
    by_key = {key: column for column, key in enumerate(of_model.keys)}
    by_name = _columns_by_name(of_model)
    found: dict[str, int] = {}
    missing: list[str] = []
    for key in keys:
        if key in by_key and (of_model.wnids or len(by_name[0].get(plain_name(key), [])) == 1):
            found[key] = by_key[key]
            continue
        column = _by_name(key, by_name)
        if column is None:
            missing.append(key)
        else:
            found[key] = column
    return found, missing


def _columns(of_set: Classes, of_model: Classes) -> tuple[int, ...]:
    if of_set.wnids and of_model.wnids:
        by_wnid = {wnid: column for column, wnid in enumerate(of_model.wnids)}
        return tuple(by_wnid.get(wnid, -1) for wnid in of_set.wnids)
    if of_set.wnids:
        # the model's own names lead to wnids where they are names of one ILSVRC class only
        by_wnid = {wnid: column for column, name in enumerate(of_model.names) if (wnid := _wnid_named(name))}
        pairs = list(zip(of_set.wnids, of_set.names, strict=True))
        by_name, _ = resolve((name for wnid, name in pairs if wnid not in by_wnid), of_model)
        return tuple(by_wnid.get(wnid, by_name.get(name, -1)) for wnid, name in pairs)
    found, _ = resolve(of_set.names, of_model)
    return tuple(found.get(name, -1) for name in of_set.names)


def _assumed_model(of_set: Classes, outputs: int) -> tuple[Classes | None, str]:
    """ILSVRC-2012 for a model of 1000 or 1001 outputs that does not name them, where the images are of its classes."""
    usual = usual_classes(outputs)
    if usual is None or not (of_set.wnids or all(map(_wnid_named, of_set.names))):
        return None, ""
    first = "background and " if usual.names[0] == BACKGROUND else ""
    return usual, f"the model's {outputs} outputs taken as {first}ILSVRC-2012"


def _by_place(of_set: Classes, outputs: int, of_model: Classes | None = None) -> Matching:
    """Class 0 is column 0 and so on."""
    columns = numbered_classes(outputs) if of_model is None else of_model
    if is_numbered(of_set):
        if len(of_set) > outputs:
            raise ClassMismatch(f"labels go up to {len(of_set) - 1} but the model has {outputs} outputs, 0 to {outputs - 1}")
        if outputs == 1001 and len(of_set) <= 1000:
            raise ClassMismatch(
                "labels are numbers and the model has 1001 outputs, so its output 0 may be a background class; "
                "name the classes of the images, as in classes='ilsvrc2012'"
            )
        return Matching(tuple(range(len(of_set))), "labels taken as numbers of the model's outputs", columns)
    if len(of_set) == outputs:
        return Matching(tuple(range(outputs)), "matched by order: the model does not name its outputs", of_set)
    raise ClassMismatch(
        f"the images have {len(of_set)} classes ({listed(of_set.names, most=3)}) and the model has {outputs} outputs "
        "without names; give the model its class names"
    )


def _columns_by_name(classes: Classes) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Columns by the class's own name, and by every other name WordNet has for it."""
    own: dict[str, list[int]] = {}
    others: dict[str, list[int]] = {}
    synonyms = dict(zip(ilsvrc_classes().keys, ilsvrc_all_names(), strict=True))
    wnids = classes.wnids or [_wnid_named(name) for name in classes.names]
    for column, (name, wnid) in enumerate(zip(classes.names, wnids, strict=True)):
        own.setdefault(plain_name(name), []).append(column)
        for synonym in dict.fromkeys(map(plain_name, synonyms.get(wnid or "", ()))):
            others.setdefault(synonym, []).append(column)
        if wnid:
            others.setdefault(wnid, []).append(column)
    return own, others


def _by_name(key: str, columns: tuple[dict[str, list[int]], dict[str, list[int]]]) -> int | None:
    plain = plain_name(key)
    for table in columns:
        places = table.get(plain, [])
        if len(places) > 1:
            raise ClassMismatch(f"{key!r} is the name of {len(places)} classes of the model; use wnids on both sides")
        if places:
            return places[0]
    return None


def _forms(name: str) -> set[str]:
    return {plain_name(name), plain_name(name.partition(",")[0])}


@cache
def _ilsvrc_forms() -> tuple[frozenset[str], ...]:
    return tuple(frozenset(map(plain_name, names)) for names in ilsvrc_all_names())


@cache
def _wnids_by_name() -> dict[str, str]:
    """The wnid of every name that only one ILSVRC class has, its first name going before other classes' second ones."""
    wnids: dict[str, set[str]] = {}
    firsts: dict[str, set[str]] = {}
    for wnid, names in zip(ilsvrc_classes().keys, ilsvrc_all_names(), strict=True):
        firsts.setdefault(plain_name(names[0]), set()).add(wnid)
        for name in names:
            wnids.setdefault(plain_name(name), set()).add(wnid)
    chosen = {name: firsts.get(name, among) for name, among in wnids.items()}
    return {name: next(iter(among)) for name, among in chosen.items() if len(among) == 1}


def _wnid_named(name: str) -> str | None:
    if WNID.fullmatch(name):
        return name
    return next((wnid for form in sorted(_forms(name)) if (wnid := _wnids_by_name().get(form))), None)


def described(classes: Classes, places: Sequence[int]) -> str:
    """Some classes in words, each with its wnid where it has one."""
    wnids = classes.wnids or classes.names
    return listed([classes.names[p] if wnids[p] == classes.names[p] else f"{classes.names[p]} ({wnids[p]})" for p in places])
