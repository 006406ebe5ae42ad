"""Class lists, in memory, in a file or by name, and matching them with the outputs of a model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from shiftproof.errors import BadInput, ClassMismatch, listed
from shiftproof.files import parse_json, read_text, readable_file
from shiftproof.places import as_path
from shiftproof.reference import ilsvrc_all_names, ilsvrc_classes, load_table, readable_names, wnids_of
from shiftproof.types import Classes

ClassList: TypeAlias = Classes | Sequence[str] | Path | str
"""What `classes_from` reads; a path may come as text."""

ILSVRC = "ilsvrc2012"
COCO = "coco"
COCO_NUMBERS = "coco-91"
BACKGROUND = "background"
WNID = re.compile(r"n\d{8}")


def classes_from(named: ClassList) -> Classes:
    """The classes of a list of names or wnids, a file, or a known list by name.

    The names are ``ilsvrc2012``, ``coco`` (the 80 classes in a row) and ``coco-91`` (each at its number in COCO's files).

    A file has one name, or one wnid, or a wnid and a name, a line; or it is JSON, a list, a mapping from place to name, or
    one from name to place (``class_to_idx``).

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
        return _from_entries(_file_entries(as_path(named)))
    return _from_entries(list(named))


def wnids_named(named: str) -> Sequence[str]:
    """The wnids of a published list of classes, or of a file."""
    published = named in ("imagenet-a", "imagenet-o", "imagenet-r")
    return wnids_of(f"{named.replace('-', '_')}_classes") if published else classes_from(as_path(named)).keys


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
    """The classes of COCO at their numbers in its files, 1 to 90; unused numbers are called ``unused N``.

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
    """The classes of 1000 or 1001 outputs without names: ILSVRC-2012, of 1001 with a background class first."""
    ilsvrc = ilsvrc_classes()
    if outputs == len(ilsvrc):
        return ilsvrc
    if outputs == len(ilsvrc) + 1:
        return Classes((BACKGROUND, *ilsvrc.names), (BACKGROUND, *ilsvrc.keys))
    return None


def plain_name(name: str) -> str:
    """A class name in lower case, with single spaces for underscores and spaces.

    >>> plain_name("Great_White  shark")
    'great white shark'
    """
    return re.sub(r"[\s_]+", " ", name).strip().casefold()


def numbered_classes(count: int) -> Classes:
    """Classes that are known by their number alone.

    >>> numbered_classes(3).names
    ('0', '1', '2')
    """
    return Classes(tuple(map(str, range(count))))


def is_numbered(classes: Classes) -> bool:
    """Whether the classes are numbers in order, so that a label is a number and not a name."""
    return classes.wnids is None and classes.names == numbered_classes(len(classes)).names


def _file_entries(path: Path) -> list[str]:
    try:
        text = read_text(readable_file(path))
    except BadInput as problem:
        raise BadInput(f"the class list cannot be read: {problem}") from problem
    if path.suffix.lower() != ".json":
        return [line.strip() for line in text.splitlines() if line.strip()]
    return json_entries(parse_json(text, path, unique=True), str(path))


MAPPINGS = ("id2label", "idx_to_class", "class_to_idx", "label2id")
"""Keys under which larger files keep the names of a model's outputs."""


def json_entries(data: object, where: str) -> list[str]:
    """Class names from a list, or from a mapping of places ("0", "1", ...) to names or [wnid, name] pairs, or of names to
    places; also one of the `MAPPINGS` of a larger file.

    >>> json_entries({"1": "dog", "0": "cat"}, "names.json"), json_entries({"dog": 1, "cat": 0}, "class_to_idx.json")
    (['cat', 'dog'], ['cat', 'dog'])
    """
    if isinstance(data, dict):
        data = next((data[key] for key in MAPPINGS if isinstance(data.get(key), dict)), data)
        data = _in_order(_by_places(data, where), where)
    if not isinstance(data, list) or not data:
        raise BadInput(f"{where} should hold a list of class names")
    return [_entry(entry, f"{where}: class {place}") for place, entry in enumerate(data)]


def _by_places(named: dict[Any, Any], where: str) -> dict[Any, Any]:
    """A mapping of names to places the other way round; any other as it is. BadInput where numbers could be either."""
    places = list(named.values())
    if not all(type(place) is int for place in places) or sorted(places) != list(range(len(places))):
        return named
    if {str(name) for name in named} != {str(place) for place in places}:
        return {place: name for name, place in named.items()}
    if all(str(name) == str(place) for name, place in named.items()):
        return named
    raise BadInput(
        f"{where} maps numbers to numbers: which are the classes? name them in a list, in the order of the outputs"
    )


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
        raise BadInput("the class list is empty")
    if not all(WNID.match(entry) for entry in entries):
        return Classes(tuple(entries))
    wnids = [entry[:9] for entry in entries]
    known = readable_names()
    names = [entry[9:].strip(" ,\t") or known.get(wnid, wnid) for entry, wnid in zip(entries, wnids, strict=True)]
    if len(set(wnids)) != len(wnids):
        raise BadInput("a wnid is in the class list twice")
    return Classes(tuple(names), tuple(wnids))


@dataclass(frozen=True)
class Matching:
    """The output of every class, -1 for a class that the model lacks, and how they were matched."""

    columns: tuple[int, ...]
    how: str
    model: Classes  # what the columns mean, as far as it is known

    def unmatched(self) -> list[int]:
        """Places of the classes that the model lacks."""
        return [place for place, column in enumerate(self.columns) if column < 0]


def match_columns(of_set: Classes, of_model: Classes | None, outputs: int) -> Matching:
    """The output of each class by wnid, else by name; by number or order where one side has no names."""
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
    """The classes with their wnids, where nearly all names are in the order of ILSVRC-2012."""
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
    by_name = columns_by_name(of_model)
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


def columns_by_name(classes: Classes) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
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
    """Some classes for an error message, each with its wnid where it has one."""
    wnids = classes.wnids or classes.names
    return listed([classes.names[p] if wnids[p] == classes.names[p] else f"{classes.names[p]} ({wnids[p]})" for p in places])
