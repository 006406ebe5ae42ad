"""What becomes of each item, computed from the votes whenever it is asked: a strict majority of those it was given to."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from shiftproof.curation.project import Project
from shiftproof.metrics.box_overlap import box_overlap
from shiftproof.review.groups import closed_groups, derived_votes
from shiftproof.review.votes import Vote, box_of, standing

Outcome = Literal["kept", "rejected", "open"]

LEAST_OVERLAP = 0.5
"""Of two boxes around the same thing; those that share less are looked at together."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one item and what it rests on."""

    item: str
    outcome: Outcome
    for_it: int
    against: int
    assigned: int
    choices: Mapping[str, int]  # how often each answer was given
    reasons: Mapping[str, int]
    closed_by_group: bool = False  # another item of its group was judged to speak for all of them
    labels: tuple[str, ...] = ()  # classes that a strict majority saw
    tags: Mapping[str, int] | None = None
    box: tuple[float, float, float, float] | None = None  # the median of the boxes drawn, as shares
    overlap: float | None = None  # of the two boxes drawn that share least of their area; None below two

    @property
    def agreed(self) -> bool:
        """Whether everybody who answered gave the same answer."""
        return len(self.choices) <= 1


def verdicts(project: Project, votes: Iterable[Vote], assigned: Mapping[str, Sequence[int]]) -> dict[str, Verdict]:
    """The verdict on every item that is asked, by its id.

    `assigned` are the reviewers whom each item was given to so far. An item is kept by more than half of those it is for,
    ties are rejected, and it is open as long as votes that are missing could still decide. A group is closed, and each of
    its items rejected, where a strict majority says so of any of them; taking such a vote back opens it again.
    """
    stand = standing(vote for vote in votes if vote.round != "training")
    by_item: dict[str, list[Vote]] = defaultdict(list)
    for vote in [*stand.values(), *derived_votes(project, stand, assigned)]:
        by_item[vote.item].append(vote)
    asked = [item for item in project.items if item.role == "asked"]
    people = {item.id: {*assigned.get(item.id, ()), *(vote.reviewer for vote in by_item[item.id])} for item in asked}
    closed = closed_groups(project, stand, people)
    # items are handed out little by little: who was not asked yet has a vote too
    wanted = {item: max(len(some), project.reviewers_each) for item, some in people.items()}
    found = {item.id: _verdict(project, item.id, by_item[item.id], wanted[item.id]) for item in asked}
    return {item.id: _closed(found[item.id]) if item.group in closed else found[item.id] for item in asked}


def needs_adjudication(verdict: Verdict) -> bool:
    """Whether people should look at an item together: everybody has answered, and not all for keeping it as it is."""
    answered = verdict.for_it + verdict.against
    far_apart = verdict.overlap is not None and verdict.overlap < LEAST_OVERLAP
    return not verdict.closed_by_group and answered >= verdict.assigned > 0 and (verdict.against > 0 or far_apart)


def disputed(project: Project, votes: Iterable[Vote], assigned: Mapping[str, Sequence[int]]) -> list[str]:
    """The items that people look at together, by what they said before they saw each other's votes."""
    if not project.screen.adjudicated:
        return []
    blind = verdicts(project, (vote for vote in votes if vote.round == "first"), assigned)
    return [item for item, verdict in blind.items() if needs_adjudication(verdict)]


def _verdict(project: Project, item: str, votes: Sequence[Vote], assigned: int) -> Verdict:
    screen = project.screen
    answers = [vote.answer for vote in votes if vote.answer is not None]
    choices = Counter(str(answer["choice"]) for answer in answers)
    for_it = sum(count for name, count in choices.items() if screen.choice(name).keeps)
    missing = assigned - len(answers)
    boxes = [box_of(answer) for answer in answers if answer.get("points")]
    seen = Counter(label for answer in answers for label in set(answer.get("labels") or ()))
    return Verdict(
        item,
        _outcome(for_it, missing, assigned),
        for_it,
        len(answers) - for_it,
        assigned,
        dict(choices),
        dict(Counter(reason for answer in answers for reason in answer.get("reasons") or ())),
        labels=tuple(sorted(label for label, count in seen.items() if 2 * count > assigned)),
        tags=dict(Counter(tag for answer in answers for tag in answer.get("tags") or ())) if screen.form == "tags" else None,
        box=tuple(np.median(boxes, axis=0).tolist()) if boxes else None,
        overlap=_least_overlap(boxes),
    )


def overlap_of(one: Sequence[float], other: Sequence[float]) -> float:
    """Share of the area of two boxes that both have.

    >>> overlap_of((0, 0, 0.5, 1), (0.25, 0, 0.75, 1))  # a quarter of the picture, of three
    0.3333333333333333
    """
    return float(box_overlap(np.array([one], float), np.array([other], float), np.zeros(1, bool))[0])


def _least_overlap(boxes: Sequence[Sequence[float]]) -> float | None:
    return min((overlap_of(one, other) for one, other in combinations(boxes, 2)), default=None)


def _outcome(for_it: int, missing: int, assigned: int) -> Outcome:
    if 2 * for_it > assigned:
        return "kept"
    return "open" if 2 * (for_it + missing) > assigned else "rejected"


def _closed(verdict: Verdict) -> Verdict:
    return dataclasses.replace(verdict, outcome="rejected", closed_by_group=True)
