"""Classes that a model has never seen and that mean something else: candidates less all that is like its own classes.

The steps are those by which ImageNet-OOD was chosen (Yang et al., 2024), as far as a machine can take them. Every class that
goes is kept with its reason, so that a person can look it all through.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

from shiftproof.curation.sifting import Sifted, Step
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.wordnet import WordNet, wordnet

Boundary = Literal["before", "after"]
"""Whether what lies under the most general decision boundary goes before or after the classes are chosen."""

ORGANISM = "n00004475"


@dataclass(frozen=True)
class Removal:
    """A class that went: why, and the noun because of which."""

    wnid: str
    step: str
    reason: str
    cause: str | None


@dataclass(frozen=True)
class Selection:
    """What is left of the candidates, in their order, and how it came to that."""

    steps: tuple[Step, ...]
    classes: tuple[str, ...]
    removed: tuple[Removal, ...]


class Why(NamedTuple):
    """Why a class goes, and the inside class or other noun that is the cause, where there is one."""

    reason: str
    cause: str | None = None


Rule: TypeAlias = Callable[[str], Why | None]
"""Why a candidate goes; None where it stays."""


def select_novel_classes(
    inside: Sequence[str],
    candidates: Sequence[str],
    *,
    subtrees: Sequence[str] = (ORGANISM,),
    boundary: Boundary | None = None,
    sisters_only: bool = False,
    chosen: Collection[str] | None = None,
    tree: WordNet | None = None,
) -> Selection:
    """Candidates that are no inside class, no kind of one, and nothing that one is a kind of; all are wnids.

    What lies under `subtrees` goes too. Then classes may be chosen: by `sisters_only`, those right beside an inside class in
    the tree, and by `chosen`, those that a person picked. `boundary` takes out what lies under the most general decision
    boundary of the inside, before or after that choice.

    >>> cats = ["n02123045", "n02123394"]  # tabby, Persian cat
    >>> found = select_novel_classes(cats, ["n02123045", "n02121808", "n02084071", "n04266014"])
    >>> [(step.name, step.left) for step in found.steps]
    [('start', 4), ('no inside classes', 3), ('no hypernyms or hyponyms of them', 2), ('nothing under organism', 1)]
    >>> [removal.reason for removal in found.removed]
    ['is an inside class', 'is a hypernym of tabby', 'lies under organism']
    """
    tree = tree or wordnet()
    check_wnids(inside, "inside classes", tree)
    check_wnids(candidates, "candidates", tree)
    known = Inside(tree, frozenset(inside))
    rules: list[tuple[str, Rule]] = [
        ("no inside classes", known.is_inside),
        ("no hypernyms or hyponyms of them", known.is_related),
        *((f"nothing under {tree.name(top)}", _lies_under(top, tree)) for top in subtrees),
    ]
    within: list[tuple[str, Rule]] = [("nothing under the most general decision boundary", known.is_within_boundary)]
    rules += within if boundary == "before" else []
    rules += [("sisters of inside classes", known.is_no_sister)] if sisters_only else []
    rules += [] if chosen is None else [("chosen by hand", lambda wnid: None if wnid in chosen else Why("was not chosen"))]
    rules += within if boundary == "after" else []
    return _sifted(list(dict.fromkeys(candidates)), rules)


def sister_pairs(inside: Collection[str], outside: Sequence[str], *, tree: WordNet | None = None) -> list[tuple[str, str]]:
    """Every outside class with every inside class that it stands right beside in the tree."""
    tree = tree or wordnet()
    known = frozenset(inside)
    return [(one, sister) for one in outside for sister in sorted(tree.siblings(one) & known)]


def check_wnids(wnids: Collection[str], what: str, tree: WordNet) -> None:
    """BadInput where there are none, or some are not in the tree."""
    if not wnids:
        raise BadInput(f"there are no {what}")
    unknown = [wnid for wnid in wnids if wnid not in tree]
    if unknown:
        raise BadInput(f"{len(unknown)} of {len(wnids)} {what} are not in WordNet 3.0: {listed(unknown)}")


@dataclass(frozen=True)
class Inside:
    """The inside classes, and what the tree has around them."""

    tree: WordNet
    classes: frozenset[str]

    @cached_property
    def holders(self) -> Mapping[str, Mapping[str, int]]:
        """Everything at or above an inside class, with the classes it holds and the steps down to each."""
        holders: dict[str, dict[str, int]] = {}
        for wnid in sorted(self.classes):
            for above, steps in self.tree.steps_up(wnid).items():
                holders.setdefault(above, {})[wnid] = steps
        return holders

    @cached_property
    def boundary(self) -> Mapping[str, str]:
        """The most general decision boundary: the nouns that each inside class can be widened to, and that class.

        They are the highest on each path up that hold no other inside class, so a class may have several.
        """
        own = {above: next(iter(held)) for above, held in self.holders.items() if len(held) == 1}
        return {above: held for above, held in own.items() if any(up not in own for up in self.tree.hypernyms(above))}

    def is_inside(self, wnid: str) -> Why | None:
        return Why("is an inside class", wnid) if wnid in self.classes else None

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
        return Why(f"lies under {self.tree.name(node)}, which holds no inside class but {only}", node)

    def is_no_sister(self, wnid: str) -> Why | None:
        return None if self.tree.siblings(wnid) & self.classes else Why("is no sister of an inside class")


def _lies_under(top: str, tree: WordNet) -> Rule:
    return lambda wnid: Why(f"lies under {tree.name(top)}", top) if top in tree.steps_up(wnid) else None


def _nearest(steps: Mapping[str, int]) -> str:
    return min(steps, key=lambda wnid: (steps[wnid], wnid))


def _sifted(candidates: list[str], rules: Sequence[tuple[str, Rule]]) -> Selection:
    sifted = Sifted[str, Why].start(candidates)
    for name, rule in rules:
        sifted = sifted.step(name, rule)
    removed = tuple(Removal(gone.item, gone.step, gone.reason.reason, gone.reason.cause) for gone in sifted.gone)
    return Selection(sifted.steps, sifted.left, removed)
