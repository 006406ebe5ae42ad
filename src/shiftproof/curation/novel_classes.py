"""Selection of OOD classes in WordNet: candidates without ID classes and their relatives.

The steps are those of ImageNet-OOD (Yang et al., 2024), as far as they can be automated. Every removed class has its
reason, for review by a person.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from shiftproof.curation.funnel import Funnel, Step
from shiftproof.datasets.classes import WNID, classes_from
from shiftproof.datasets.wordnet import WordNet, wordnet
from shiftproof.errors import BadInput, ShiftproofError, listed
from shiftproof.files import load_csv

Boundary = Literal["before", "after"]
"""Whether what lies under the most general decision boundary is removed before or after the classes are chosen."""

ORGANISM = "n00004475"


@dataclass(frozen=True)
class Removal:
    """A removed class, the reason, and the synset that caused it."""

    wnid: str
    step: str
    reason: str
    cause: str | None


@dataclass(frozen=True)
class Selection:
    """The candidates that are left, in their order, and the steps that led there."""

    steps: tuple[Step, ...]
    classes: tuple[str, ...]
    removed: tuple[Removal, ...]


class Why(NamedTuple):
    """Why a class is removed, and the ID class or other synset that is the cause, where there is one."""

    reason: str
    cause: str | None = None


Rule: TypeAlias = Callable[[str], Why | None]
"""Why a candidate is removed; None where it is kept."""


def select_novel_classes(
    id_classes: Sequence[str],
    candidates: Sequence[str],
    *,
    subtrees: Sequence[str] = (ORGANISM,),
    boundary: Boundary | None = None,
    sisters_only: bool = False,
    chosen: Collection[str] | None = None,
    tree: WordNet | None = None,
) -> Selection:
    """Candidates that are neither ID classes (`id_classes`) nor their hyponyms or hypernyms; all are wnids.

    What lies under `subtrees` is removed too. Then classes may be chosen: by `sisters_only`, the siblings of ID classes in
    WordNet, and by `chosen`, those that a person picked. `boundary` removes what lies under the most general decision
    boundary of the ID classes, before or after that choice.

    >>> cats = ["n02123045", "n02123394"]  # tabby, Persian cat
    >>> found = select_novel_classes(cats, ["n02123045", "n02121808", "n02084071", "n04266014"])
    >>> [(step.name, step.left) for step in found.steps]
    [('start', 4), ('no ID classes', 3), ('no hypernyms or hyponyms of them', 2), ('nothing under organism', 1)]
    >>> [removal.reason for removal in found.removed]
    ['is an ID class', 'is a hypernym of tabby', 'lies under organism']
    """
    tree = tree or wordnet()
    check_wnids(id_classes, "ID classes", tree)
    check_wnids(candidates, "candidates", tree)
    known = IDClasses(tree, frozenset(id_classes))
    rules: list[tuple[str, Rule]] = [
        ("no ID classes", known.is_inside),
        ("no hypernyms or hyponyms of them", known.is_related),
        *((f"nothing under {tree.name(top)}", _lies_under(top, tree)) for top in subtrees),
    ]
    within: list[tuple[str, Rule]] = [("nothing under the most general decision boundary", known.is_within_boundary)]
    rules += within if boundary == "before" else []
    rules += [("sisters of ID classes", known.is_no_sister)] if sisters_only else []
    rules += [] if chosen is None else [("chosen by hand", lambda wnid: None if wnid in chosen else Why("was not chosen"))]
    rules += within if boundary == "after" else []
    return _filtered(list(dict.fromkeys(candidates)), rules)


def sister_pairs(
    id_classes: Collection[str], ood_classes: Sequence[str], *, tree: WordNet | None = None
) -> list[tuple[str, str]]:
    """Every pair of an OOD class and an ID class that are siblings in WordNet."""
    tree = tree or wordnet()
    known = frozenset(id_classes)
    return [(one, sister) for one in ood_classes for sister in sorted(tree.siblings(one) & known)]


def check_wnids(wnids: Collection[str], what: str, tree: WordNet) -> None:
    """BadInput where there are none, or some are not in WordNet."""
    if not wnids:
        raise BadInput(f"there are no {what}")
    unknown = [wnid for wnid in wnids if wnid not in tree]
    if unknown:
        raise BadInput(f"{len(unknown)} of {len(wnids)} {what} are not in WordNet 3.0: {listed(unknown)}")


@dataclass(frozen=True)
class IDClasses:
    """The ID classes, and their surroundings in WordNet."""

    tree: WordNet
    classes: frozenset[str]

    @cached_property
    def holders(self) -> Mapping[str, Mapping[str, int]]:
        """Every synset at or above an ID class, with the ID classes below it and the steps down to each."""
        holders: dict[str, dict[str, int]] = {}
        for wnid in sorted(self.classes):
            for above, steps in self.tree.steps_up(wnid).items():
                holders.setdefault(above, {})[wnid] = steps
        return holders

    @cached_property
    def boundary(self) -> Mapping[str, str]:
        """The most general decision boundary: the synsets that each ID class can be widened to, and that class.

        They are the highest on each path up without another ID class below, so a class may have several.
        """
        own = {above: next(iter(held)) for above, held in self.holders.items() if len(held) == 1}
        return {above: held for above, held in own.items() if any(up not in own for up in self.tree.hypernyms(above))}

    def is_inside(self, wnid: str) -> Why | None:
        return Why("is an ID class", wnid) if wnid in self.classes else None

    def is_related(self, wnid: str) -> Why | None:
        if wnid in self.holders:
            nearest = _nearest(self.holders[wnid])
            return Why(f"is a hypernym of {self.tree.name(nearest)}", nearest)
        above = {up: steps for up, steps in self.tree.steps_up(wnid).items() if up in self.classes}
        return Why(f"is a hyponym of {self.tree.name(_nearest(above))}", _nearest(above)) if above else None

    def is_within_boundary(self, wnid: str) -> Why | None:
        above = {up: steps for up, steps in self.tree.steps_up(wnid).items() if up in self.boundary}
        if not above:
            return None
        node = _nearest(above)
        only = self.tree.name(self.boundary[node])
        return Why(f"lies under {self.tree.name(node)}, which holds no ID class but {only}", node)

    def is_no_sister(self, wnid: str) -> Why | None:
        return None if self.tree.siblings(wnid) & self.classes else Why("is no sister of an ID class")


def _lies_under(top: str, tree: WordNet) -> Rule:
    return lambda wnid: Why(f"lies under {tree.name(top)}", top) if top in tree.steps_up(wnid) else None


def _nearest(steps: Mapping[str, int]) -> str:
    return min(steps, key=lambda wnid: (steps[wnid], wnid))


def _filtered(candidates: list[str], rules: Sequence[tuple[str, Rule]]) -> Selection:
    funnel = Funnel[str, Why].start(candidates)
    for name, rule in rules:
        funnel = funnel.step(name, rule)
    removed = tuple(Removal(gone.item, gone.step, gone.reason.reason, gone.reason.cause) for gone in funnel.removed)
    return Selection(funnel.steps, funnel.left, removed)


def wnids_from(named: str | Path) -> tuple[str, ...]:
    """The wnids of a list: ``ilsvrc2012``, a CSV file with a column `wnid`, or a file of wnids or names, one per line.

    A name should belong to one synset; ambiguous words need the wnid.
    """
    if Path(named).suffix.lower() == ".csv":
        return _column(Path(named))
    entries = classes_from(named).keys
    found = [_nouns(entry) for entry in entries]
    strange = [entry for entry, nouns in zip(entries, found, strict=True) if not nouns]
    if strange:
        shown = listed((repr(entry[:40]) for entry in strange), most=3)
        told = f"{len(strange)} of {len(entries)} lines are neither wnids nor nouns of WordNet 3.0: {shown}"
        raise BadInput(f"{named} is not a list of classes: {told}")
    unclear = {entry: nouns for entry, nouns in zip(entries, found, strict=True) if len(nouns) > 1}
    if unclear:
        raise BadInput(f"{named}: words of several meanings; use wnids: {listed(map(_meanings, unclear), most=3)}")
    return tuple(dict.fromkeys(nouns[0] for nouns in found))


def noun_named(word: str) -> str:
    """A synset by its wnid or by a word: of several meanings the one with most hyponyms.

    >>> noun_named("organism"), noun_named("n00015388")
    ('n00004475', 'n00015388')
    """
    return wordnet().find(word)[0] if WNID.fullmatch(word) is None else _known(word)


def _known(wnid: str) -> str:
    wordnet().words(wnid)
    return wnid


def _column(path: Path) -> tuple[str, ...]:
    rows = load_csv(path, "a list of classes")
    if not rows or "wnid" not in rows[0]:
        raise BadInput(f"{path} should be a table with a column 'wnid' and a row for each class")
    return tuple(dict.fromkeys(str(row["wnid"]) for row in rows))


def _nouns(entry: str) -> Sequence[str]:
    if WNID.match(entry):
        return [entry[:9]]
    try:
        return wordnet().find(entry)
    except ShiftproofError:
        return []


def _meanings(word: str) -> str:
    tree = wordnet()
    told = (f"{wnid} ({', '.join(tree.name(above) for above in tree.hypernyms(wnid))})" for wnid in tree.find(word))
    return f"{word} is {' or '.join(told)}"
