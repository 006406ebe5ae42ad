"""Who may judge: where a project has a pass mark, people show on items of a known answer that they can, before the others.

The known items of one group are one try, in the order in which the groups first come; who passes none is asked no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shiftproof.curation.project import Item, Project
from shiftproof.review.verdicts import LEAST_OVERLAP, overlap_of
from shiftproof.review.votes import Vote, box_of, standing


def is_right(item: Item, answer: Mapping[str, Any]) -> bool:
    """Whether an answer to an item whose answer is known is the right one; any of several classes is.

    Of the classes that are there all must be named and no other; a box is right that overlaps the known one as far as two
    people's boxes should.

    >>> item = Item("a", ("1.jpg",), role="gold", answer={"choice": "keep"})
    >>> is_right(item, {"choice": "keep"}), is_right(item, {"choice": "reject"})
    (True, False)
    """
    right = item.answer or {}
    if "class" in right:
        return answer.get("class") in (right["class"] if isinstance(right["class"], list) else [right["class"]])
    if answer.get("choice") != right.get("choice"):
        return False
    if "points" in right:
        return overlap_of(box_of(right), box_of(answer)) >= LEAST_OVERLAP
    return "labels" not in right or set(answer["labels"]) == set(right["labels"])


@dataclass(frozen=True)
class Attempt:
    """What became of one try."""

    items: tuple[Item, ...]
    answered: frozenset[str]
    right: int

    @property
    def is_over(self) -> bool:
        return len(self.answered) == len(self.items)

    @property
    def share(self) -> float:
        """Share of all its items that were answered rightly."""
        return self.right / len(self.items)


@dataclass(frozen=True)
class Qualification:
    """How far a person is in showing that they can judge: one try after the other until one is passed."""

    pass_mark: float
    attempts: tuple[Attempt, ...]

    @property
    def over(self) -> tuple[Attempt, ...]:
        """The tries that are over."""
        return tuple(attempt for attempt in self.attempts if attempt.is_over)

    @property
    def passed(self) -> bool:
        return any(attempt.share >= self.pass_mark for attempt in self.over)

    @property
    def current(self) -> Attempt | None:
        """The try that the person is at; None where one was passed, or none is left."""
        return None if self.passed else next((attempt for attempt in self.attempts if not attempt.is_over), None)


def tries_of(project: Project) -> list[Sequence[Item]]:
    """The known items of each try; none where they are strewn in among the others."""
    if project.pass_mark is None:
        return []
    tries: dict[str | None, list[Item]] = {}
    for item in project.items:
        if item.role == "gold":
            tries.setdefault(item.group, []).append(item)
    return list(tries.values())


def qualification_of(project: Project, votes: Iterable[Vote]) -> Qualification | None:
    """How far a person is, by all votes of theirs; None where the project asks for no qualification."""
    tries = tries_of(project)
    if project.pass_mark is None or not tries:
        return None
    stand = standing(vote for vote in votes if vote.round == "qualification")
    said = {item: vote.answer or {} for (_, item), vote in stand.items()}
    attempts = [
        Attempt(
            tuple(items),
            frozenset(item.id for item in items if item.id in said),
            sum(item.id in said and is_right(item, said[item.id]) for item in items),
        )
        for items in tries
    ]
    return Qualification(project.pass_mark, tuple(attempts))
