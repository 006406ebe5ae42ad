"""Reviewers: their names, and the classes that some of them are asked about."""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable

from shiftproof.curation.project import Project
from shiftproof.curation.review_classes import classes_of
from shiftproof.errors import BadInput, UnknownName, listed

JOINERS = "\u200c\u200d"
"""Zero-width joiners, which some scripts need inside names."""

BLANK = frozenset(
    map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10), 0xFFA0])
) | frozenset(map(chr, [0x1D159, *range(0xE0100, 0xE01F0)]))
"""Invisible characters of visible categories: fillers, variation selectors, the blank Braille pattern."""

ALIKE = str.maketrans(
    # Cyrillic, Greek and other letters, and the Latin ones that they look like
    "АВЕЅІЈКМНОРСТХУԚԜаеѕіјорсухԛԝһԁӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρυɑɡıԌᎪᎬᎢꓮꓐꓰ0|1l",
    "ABESIJKMHOPCTXYQWaesijopcyxqwhdIABEZHIKMNOPTYXovpuagiGAETABEOIII",
)
"""Homoglyphs: letters of other scripts, digits and signs, and the letters that they look like."""


def reviewer_name(text: str) -> str:
    r"""The name of a reviewer, normalised (NFC, single spaces); BadInput for invisible characters.

    >>> reviewer_name(" Zoe\u0308  Ng\u00a0 ")
    'Zoë Ng'
    """
    name = " ".join(unicodedata.normalize("NFC", text).split())
    invisible = (
        next((letter for letter in name if _is_invisible(letter)), None) or (name if not name.strip(JOINERS) else "")[:1]
    )
    if invisible:
        raise BadInput(f"the name {name!r:.220} holds an invisible character; write it without U+{ord(invisible):04X}")
    return name


def _is_invisible(letter: str) -> bool:
    return letter in BLANK or (unicodedata.category(letter)[0] == "C" and letter not in JOINERS)


def looks_like(name: str) -> str:
    r"""Equal for names that look alike: full-width, ligatures, homoglyphs of another script, joiners.

    >>> looks_like("Ａda") == looks_like("A\u200dda") == looks_like("\u0410d\u0430") == looks_like("Ada")
    True
    """
    plain = unicodedata.normalize("NFKC", name).translate(ALIKE)
    return " ".join("".join(letter for letter in plain if letter not in JOINERS).split())


def part_for(project: Project, reviewer: str) -> Project:
    """The items of a reviewer's classes and those without a class; all for a reviewer without classes of their own."""
    own = project.reviewer_classes.get(reviewer)
    if own is None:
        return project
    some = [item for item in project.items if not (told := classes_of(item)) or not told.isdisjoint(own)]
    return dataclasses.replace(project, items=tuple(some))


def with_own_classes(project: Project, said: Iterable[str]) -> Project:
    """The project with classes of their own for some reviewers, from texts like ``Ada=tabby,otter``; ``Ada=`` gives her all.

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
    """A warning that names the classes with too few reviewers; None where there are enough."""
    names, own = set(people), project.reviewer_classes
    everywhere = sum(name not in own for name in names)
    known = sorted({part for item in project.items if item.role == "asked" for part in classes_of(item)})
    people_for = {key: everywhere + sum(key in own[name] for name in names & own.keys()) for key in known}
    short = [key for key, count in people_for.items() if count < project.reviewers_each]
    if not short:
        return None
    told = listed(project.class_of[key].name if key in project.class_of else key for key in short)
    return f"each item needs {project.reviewers_each} reviewers, and fewer are asked about {told}"
