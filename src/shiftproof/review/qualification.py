"""Qualification: where a project has a pass mark, reviewers answer gold items first, and only who passes goes on.

The gold items of one group are one attempt, in the order in which the groups first occur.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof.curation.project import Item, Project
from shiftproof.review.validation import box_of
from shiftproof.review.verdicts import MIN_IOU, iou_of
from shiftproof.review.votes import Vote, standing


def is_correct_answer(item: Item, answer: Mapping[str, Any]) -> bool:
    """Whether the answer to a gold or training item is correct.

    Where several classes are correct, any one of them is. Labels must be exactly those of the item; a box needs an IoU of
    MIN_IOU with the known one.

    >>> item = Item("a", ("1.jpg",), role="gold", answer={"choice": "keep"})
    >>> is_correct_answer(item, {"choice": "keep"}), is_correct_answer(item, {"choice": "reject"})
    (True, False)
    """
    right = item.answer or {}
    if "class" in right:
        return answer.get("class") in (right["class"] if isinstance(right["class"], list) else [right["class"]])
    if answer.get("choice") != right.get("choice"):
        return False
    if "points" in right:
        return iou_of(box_of(right), box_of(answer)) >= MIN_IOU
    return "labels" not in right or set(answer["labels"]) == set(right["labels"])


@dataclass(frozen=True)
class Attempt:
    """One attempt to qualify."""

    items: tuple[Item, ...]
    answered: frozenset[str]
    right: int

    @property
    def is_over(self) -> bool:
        return len(self.answered) == len(self.items)

    @property
    def share(self) -> float:
        """Accuracy over all its items."""
        return self.right / len(self.items)


@dataclass(frozen=True)
class Qualification:
    """The attempts of a reviewer, one after the other until one is passed."""

    pass_mark: float
    attempts: tuple[Attempt, ...]

    @property
    def over(self) -> tuple[Attempt, ...]:
        """The finished attempts."""
        return tuple(attempt for attempt in self.attempts if attempt.is_over)

    @property
    def passed(self) -> bool:
        return any(attempt.share >= self.pass_mark for attempt in self.over)

    @property
    def current(self) -> Attempt | None:
        """The current attempt; None where one was passed, or none is left."""
        return None if self.passed else next((attempt for attempt in self.attempts if not attempt.is_over), None)


def attempts_of(project: Project) -> list[Sequence[Item]]:
    """The gold items of each attempt; none where they are mixed in among the others."""
    if project.pass_mark is None:
        return []
    attempts: dict[str | None, list[Item]] = {}
    for item in project.items:
        if item.role == "gold":
            attempts.setdefault(item.group, []).append(item)
    return list(attempts.values())


def qualification_of(project: Project, votes: Iterable[Vote]) -> Qualification | None:
    """The qualification of a reviewer by all their votes; None where the project has none."""
    every = attempts_of(project)
    if project.pass_mark is None or not every:
        return None
    stand = standing(vote for vote in votes if vote.round == "qualification")
    answers = {item: vote.answer or {} for (_, item), vote in stand.items()}
    attempts = [
        Attempt(
            tuple(items),
            frozenset(item.id for item in items if item.id in answers),
            sum(item.id in answers and is_correct_answer(item, answers[item.id]) for item in items),
        )
        for items in every
    ]
    return Qualification(project.pass_mark, tuple(attempts))
