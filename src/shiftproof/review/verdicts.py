"""What becomes of each item, computed from the votes whenever it is asked: a strict majority of those it was given to."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from shiftproof.curation.project import Project
from shiftproof.metrics.box_overlap import box_overlap
from shiftproof.review.ballots import Answer, Ballots, added_up, as_ballots
from shiftproof.review.groups import Stand, closed_groups, derived_votes
from shiftproof.review.votes import Round, Vote, box_of

Outcome = Literal["kept", "rejected", "open"]

Said: TypeAlias = Sequence[tuple[Answer, int]]
"""The answers to one item, each with how many people gave it."""

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


def verdicts(project: Project, votes: Ballots | Iterable[Vote], assigned: Mapping[str, Sequence[int]]) -> dict[str, Verdict]:
    """The verdict on every item that is asked, by its id.

    `assigned` are the reviewers whom each item was given to so far. An item is kept by more than half of those it is for,
    ties are rejected, and it is open as long as votes that are missing could still decide. A group is closed, and each of
    its items rejected, where a strict majority says so of any of them; taking such a vote back opens it again. Where flags
    are verified, one vote keeps an item that nobody flagged, and no single vote rejects one.
    """
    return _verdicts(project, as_ballots(votes), assigned, ("qualification", "first", "open"))


def _verdicts(
    project: Project, votes: Ballots, assigned: Mapping[str, Sequence[int]], rounds: Sequence[Round]
) -> dict[str, Verdict]:
    stand = votes.during(*rounds).standing()
    said, people = _said(stand), _people(stand)
    closing = _closing(project, stand)
    for vote in derived_votes(project, closing, _unanswered(assigned, people) if closing else {}):
        said[vote.item].append((vote.answer or {}, 1))
    asked = [item for item in project.items if item.role == "asked"]
    for item in asked:
        people[item.id].update(assigned.get(item.id, ()))
    closed = closed_groups(project, closing, people)
    wanted = {item.id: _wanted(project, said[item.id], len(people[item.id])) for item in asked}
    found = {item.id: _verdict(project, item.id, said[item.id], wanted[item.id]) for item in asked}
    return {item.id: _closed(found[item.id]) if item.group in closed else found[item.id] for item in asked}


def _wanted(project: Project, said: Said, people: int) -> int:
    """How many people an item is for: items are handed out little by little, and who was not asked yet has a vote too.

    Where flags are verified, an item that nobody flagged is for those alone who read it.
    """
    if project.verify is None or any(not project.screen.choice(str(answer["choice"])).keeps for answer, _ in said):
        return max(people, project.reviewers_each)
    return max(sum(times for _, times in said), project.readers_each)


def _said(stand: Ballots) -> defaultdict[str, list[tuple[Answer, int]]]:
    """What was answered to each item and by how many, the latest answer first."""
    found: defaultdict[str, list[tuple[Answer, int]]] = defaultdict(list)
    different = Counter((stand.item * len(stand.answers) + stand.answer).tolist())
    for code, times in different.items():
        item, answer = divmod(code, len(stand.answers))
        found[stand.items[item]].append((stand.answers[answer] or {}, times))
    return found


def _people(stand: Ballots) -> defaultdict[str, set[int]]:
    """Who answered each item."""
    people = stand.person[np.argsort(stand.item)]
    ends = np.cumsum(np.bincount(stand.item, minlength=len(stand.items)))
    return defaultdict(set, zip(stand.items, (set(some.tolist()) for some in np.split(people, ends)), strict=False))


def _closing(project: Project, stand: Ballots) -> Stand:
    """The votes that speak for a group."""
    names = project.screen.closing
    closes = np.array([answer is not None and answer["choice"] in names for answer in stand.answers], bool)
    return {(vote.reviewer, vote.item): vote for vote in stand.some(closes[stand.answer]).votes()}


def _unanswered(assigned: Mapping[str, Sequence[int]], people: Mapping[str, set[int]]) -> dict[str, list[int]]:
    """The people each item was given to who have not answered it."""
    return {item: [one for one in some if one not in people.get(item, ())] for item, some in assigned.items()}


def needs_adjudication(verdict: Verdict) -> bool:
    """Whether people should look at an item together: everybody has answered, and not all for keeping it as it is."""
    answered = verdict.for_it + verdict.against
    far_apart = verdict.overlap is not None and verdict.overlap < LEAST_OVERLAP
    return not verdict.closed_by_group and answered >= verdict.assigned > 0 and (verdict.against > 0 or far_apart)


def disputed(project: Project, votes: Ballots | Iterable[Vote], assigned: Mapping[str, Sequence[int]]) -> list[str]:
    """The items that people look at together, by what they said before they saw each other's votes."""
    if not project.screen.adjudicated:
        return []
    blind = _verdicts(project, as_ballots(votes), assigned, ("first",))
    return [item for item, verdict in blind.items() if needs_adjudication(verdict)]


def _verdict(project: Project, item: str, said: Said, assigned: int) -> Verdict:
    screen = project.screen
    choices = added_up((str(answer["choice"]), times) for answer, times in said)
    answered = sum(choices.values())
    for_it = sum(times for name, times in choices.items() if screen.choice(name).keeps)
    boxes = [box_of(answer) for answer, times in said if answer.get("points") for _ in range(times)]
    seen = _named(said, "labels") if screen.form == "labels" else {}
    return Verdict(
        item,
        _outcome(for_it, assigned - answered, assigned),
        for_it,
        answered - for_it,
        assigned,
        choices,
        _named(said, "reasons"),
        labels=tuple(sorted(label for label, count in seen.items() if 2 * count > assigned)),
        tags=_named(said, "tags") if screen.form == "tags" else None,
        box=tuple(np.median(boxes, axis=0).tolist()) if boxes else None,
        overlap=_least_overlap(boxes),
    )


def _named(said: Said, part: str) -> dict[str, int]:
    """How many people named each reason, class or tag."""
    return added_up((name, times) for answer, times in said for name in dict.fromkeys(answer.get(part) or ()))


def overlap_of(one: Sequence[float], other: Sequence[float]) -> float:
    """Share of the area of two boxes that both have.

    >>> overlap_of((0, 0, 0.5, 1), (0.25, 0, 0.75, 1))  # a quarter of the picture, of three
    0.3333333333333333
    """
    return float(box_overlap(np.array([one], float), np.array([other], float), np.zeros(1, bool))[0])


def _least_overlap(boxes: Sequence[Sequence[float]]) -> float | None:
    if len(boxes) < 2:
        return None
    one, other = (np.array(boxes, float)[places] for places in np.triu_indices(len(boxes), 1))
    return float(box_overlap(one, other, np.zeros(len(one), bool)).min())


def _outcome(for_it: int, missing: int, assigned: int) -> Outcome:
    if 2 * for_it > assigned:
        return "kept"
    return "open" if 2 * (for_it + missing) > assigned else "rejected"


def _closed(verdict: Verdict) -> Verdict:
    return dataclasses.replace(verdict, outcome="rejected", closed_by_group=True)
