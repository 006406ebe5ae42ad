"""Classes as reviewers meet them: by name, with the other words for them and what they are kinds of."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from shiftproof.class_lists import WNID
from shiftproof.curation.project import Item, Project, ReviewClass
from shiftproof.errors import BadInput, UnknownName, listed
from shiftproof.image_sets.manifest import SEPARATOR, joined_labels
from shiftproof.image_sets.wordnet import wordnet
from shiftproof.types import Classes

TOGETHER = SEPARATOR
"""Stands between the keys of several classes that an image shows at once, as between labels in manifests."""


def review_class(key: str, name: str | None = None, references: Sequence[str] = ()) -> ReviewClass:
    """A class by its wnid with what WordNet knows of it, or by its name alone; references are files of the project.

    >>> tabby = review_class("n02123045")
    >>> tabby.name, tabby.gloss, tabby.path[-3:]
    ('tabby', 'also called tabby cat', ('animal', 'domestic animal', 'domestic cat'))
    """
    if WNID.fullmatch(key) is None or key not in wordnet():
        return ReviewClass(key, name or key, references=tuple(references))
    tree = wordnet()
    word, *others = tree.words(key)
    _, *above = min(tree.paths(key), key=len)
    gloss = f"also called {', '.join(others)}" if others else ""
    shown = word if name in (None, key) else name  # folders are often named by the wnid alone
    return ReviewClass(key, shown, gloss, tuple(tree.name(one) for one in reversed(above)), tuple(references))


def review_classes(
    classes: Classes, keys: Iterable[str] | None = None, references: Mapping[str, Sequence[str]] | None = None
) -> tuple[ReviewClass, ...]:
    """The classes of an image set, or those of these keys; a key of several classes together is told as all of them."""
    names, shown = dict(zip(classes.keys, classes.names, strict=True)), references or {}

    def name_of(key: str) -> str:
        return " and ".join(review_class(part, names.get(part)).name for part in key.split(TOGETHER))

    wanted = classes.keys if keys is None else sorted(set(keys))
    return tuple(review_class(key, name_of(key), shown.get(key, ())) for key in wanted)


def joined_keys(keys: Iterable[str]) -> str | None:
    """The key of classes that an image shows together; None where there are none, BadInput where one looks like several."""
    return joined_labels(keys) or None


def classes_of(item: Item) -> frozenset[str]:
    """Keys of the classes that an item is about: those it is said to show, or those that are right in a test of people.

    >>> sorted(classes_of(Item("a", ("1.jpg",), "cat|dog"))), sorted(classes_of(Item("b", (), answer={"class": ["cat"]})))
    (['cat', 'dog'], ['cat'])
    """
    right = (item.answer or {}).get("class", ())
    told = item.label.split(TOGETHER) if item.label else [right] if isinstance(right, str) else right
    return frozenset(told)


JOINERS = "\u200c\u200d"
"""Invisible letters that some scripts need inside names."""

BLANK = frozenset(
    map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10), 0xFFA0])
) | frozenset(map(chr, [0x1D159, *range(0xE0100, 0xE01F0)]))
"""Letters and marks by their kind that nobody sees: fillers, variation selectors, the empty pattern of braille."""

ALIKE = str.maketrans(
    # Cyrillic, Greek and other letters, and the Latin ones that they look like
    "АВЕЅІЈКМНОРСТХУԚԜаеѕіјорсухԛԝһԁӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρυɑɡıԌᎪᎬᎢꓮꓐꓰ0|1l",
    "ABESIJKMHOPCTXYQWaesijopcyxqwhdIABEZHIKMNOPTYXovpuagiGAETABEOIII",
)
"""Letters of other scripts, digits and signs that a name may hold instead of those that they look like."""


def reviewer_name(text: str) -> str:
    r"""The name of a person as it is kept: one spelling of each letter, single spaces; BadInput for letters nobody sees.

    >>> reviewer_name(" Zoe\u0308  Ng\u00a0 ")
    'Zoë Ng'
    """
    name = " ".join(unicodedata.normalize("NFC", text).split())
    unseen = next((letter for letter in name if _is_unseen(letter)), None) or (name if not name.strip(JOINERS) else "")[:1]
    if unseen:
        raise BadInput(f"the name {name!r:.220} holds a letter that nobody sees; write it without U+{ord(unseen):04X}")
    return name


def _is_unseen(letter: str) -> bool:
    return letter in BLANK or (unicodedata.category(letter)[0] == "C" and letter not in JOINERS)


def looks_like(name: str) -> str:
    r"""Equal for names that look alike: of wide, small and joined letters or those of another script, with unseen joiners.

    >>> looks_like("Ａda") == looks_like("A\u200dda") == looks_like("\u0410d\u0430") == looks_like("Ada")
    True
    """
    plain = unicodedata.normalize("NFKC", name).translate(ALIKE)
    return " ".join("".join(letter for letter in plain if letter not in JOINERS).split())


def part_for(project: Project, reviewer: str) -> Project:
    """What one person is asked: the items of the classes that are theirs, and those of none; all where nobody said."""
    own = project.reviewer_classes.get(reviewer)
    if own is None:
        return project
    some = [item for item in project.items if not (told := classes_of(item)) or not told.isdisjoint(own)]
    return dataclasses.replace(project, items=tuple(some))


def with_own_classes(project: Project, said: Iterable[str]) -> Project:
    """The project with classes of their own for some people, out of texts like ``Ada=tabby,otter``; ``Ada=`` gives her all.

    Classes go by their keys or names.
    """
    known = {part for item in project.items for part in classes_of(item)}
    keys = {**{one.name: one.key for one in project.classes if one.key in known}, **{key: key for key in known}}
    chosen = dict(project.reviewer_classes)
    for text in said:
        name, equals, classes = text.partition("=")
        if not name or not equals:
            raise BadInput(f"say whose classes they are, as Ada=tabby,otter; got {text!r}")
        name = reviewer_name(name)
        words = [word.strip() for word in classes.split(",") if word.strip()]
        for word in words:
            if word not in keys:
                raise UnknownName(f"class of {project.title}", word, keys)
        chosen.pop(name, None)
        if words:
            chosen[name] = tuple(dict.fromkeys(keys[word] for word in words))
    return dataclasses.replace(project, reviewer_classes=chosen)


def too_few_for(project: Project, people: Iterable[str]) -> str | None:
    """Which classes fewer of these people are asked about than each item is for, in words; None where there are enough."""
    names, own = set(people), project.reviewer_classes
    everywhere = sum(name not in own for name in names)
    known = sorted({part for item in project.items if item.role == "asked" for part in classes_of(item)})
    people_for = {key: everywhere + sum(key in own[name] for name in names & own.keys()) for key in known}
    short = [key for key, count in people_for.items() if count < project.reviewers_each]
    if not short:
        return None
    told = listed(project.class_of[key].name if key in project.class_of else key for key in short)
    return f"each item is for {project.reviewers_each} people, and fewer are asked about {told}"
