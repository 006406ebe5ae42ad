"""What is right of items whose answer is known, as the columns of a manifest tell it, checked before anybody is asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from shiftproof.curation.boxed_objects import size_of
from shiftproof.curation.screens import Screen
from shiftproof.errors import BadInput, UnknownName, listed
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.manifest import SEPARATOR
from shiftproof.types import Sample

ROLES = ("training", "gold")


def known_answer(known: ImageList, sample: Sample, screen: Screen, classes: Collection[str]) -> dict[str, Any]:
    """The right answer to an image, in the form of the screen; `classes` are the keys of those that people choose among.

    The columns are `role` (training or gold), `answer` and, if need be, `reason`; `shows` has the classes that are there,
    where they are not those of the label, and `box` the left, top, right and bottom of the right box in pixels.
    """
    who = f"{sample.id} of {known.name}"
    role, answer, reason = (sample.facts.get(fact) for fact in ("role", "answer", "reason"))
    if role not in ROLES or not answer:
        raise BadInput(f"{who} should have a role, {' or '.join(ROLES)}, and an answer; got {role}, {answer}")
    choice = screen.choice(str(answer))
    reasons = [one.name for one in choice.reasons]
    if reason and reason not in reasons:
        raise BadInput(f"{who} has the reason {reason!r}; {answer} knows {listed(reasons) or 'none'}")
    right: dict[str, Any] = {"choice": choice.name, **({"reasons": [reason]} if reason else {})}
    if choice.keeps and screen.form == "labels":
        right["labels"] = _labels(known, sample, classes, who)
    if choice.keeps and screen.form == "box":
        right["points"] = _points(known, sample, who)
    return right


def _labels(known: ImageList, sample: Sample, classes: Collection[str], who: str) -> list[str]:
    told, keys = sample.facts.get("shows"), known.classes.keys if known.classes else ()
    labels = str(told).split(SEPARATOR) if told else [keys[label] for label in sample.labels]
    if not labels:
        raise BadInput(f"{who} should say which classes are there: in the column shows, with {SEPARATOR} between them")
    for label in labels:
        if label not in classes:
            raise UnknownName("class to choose", label, classes)
    return labels


def _points(known: ImageList, sample: Sample, who: str) -> list[list[float]]:
    """The middles of the sides of the right box, in shares of the picture, as if people had clicked there."""
    size, told = size_of(known, sample), str(sample.facts.get("box") or "")
    if isinstance(size, str):
        raise BadInput(f"{who} cannot be read: {size}")
    width, height = size
    try:
        left, top, right, bottom = (float(side) for side in told.split())
        lies_inside = 0 <= left < right <= width and 0 <= top < bottom <= height
    except ValueError:
        lies_inside = False
    if not lies_inside:
        raise BadInput(
            f"{who} should have the right box in the column box: left, top, right and bottom in its {width} x {height} "
            f"pixels, as 10 20 30 40; got {told!r}"
        )
    across, down = (left + right) / 2, (top + bottom) / 2
    points = [(across, top), (left, down), (across, bottom), (right, down)]
    return [[x / width, y / height] for x, y in points]
