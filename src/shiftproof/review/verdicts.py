"""The verdict on each item, computed from the votes that stand: a strict majority of its reviewers keeps it."""

from __future__ import annotations

import dataclasses
import itertools
import string
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from shiftproof.curation.project import Project
from shiftproof.metrics.boxes import box_overlap
from shiftproof.review.validation import box_of
from shiftproof.review.votes import Answer, Round, Standing, Vote, VoteColumns, as_columns, total_counts

Outcome = Literal["kept", "rejected", "open"]

CountedAnswers: TypeAlias = Sequence[tuple[Answer, int]]
"""The different answers to one item, each with the number of reviewers who gave it."""

MIN_IOU = 0.5
"""Two boxes around the same object with a lower IoU go to adjudication."""


@dataclass(frozen=True)
class Verdict:
    """The outcome of one item, and the counts behind it."""

    item: str
    outcome: Outcome
    for_it: int
    against: int
    assigned: int
    choices: Mapping[str, int]  # number of votes by choice
    reasons: Mapping[str, int]
    closed_by_group: bool = False  # a vote on an item of its group closed all of them
    labels: tuple[str, ...] = ()  # classes marked by a strict majority
    tags: Mapping[str, int] | None = None
    box: tuple[float, float, float, float] | None = None  # median of the boxes drawn, in fractions of width and height
    overlap: float | None = None  # lowest IoU of any two boxes drawn; None below two

    @property
    def agreed(self) -> bool:
        """Whether all votes are for the same choice."""
        return len(self.choices) <= 1


def verdicts(
    project: Project, votes: VoteColumns | Iterable[Vote], assigned: Mapping[str, Sequence[int]]
) -> dict[str, Verdict]:
    """The verdict on every item that is asked, by its id; training votes do not count.

    `assigned` are the reviewers of each item so far. More than half of the reviewers an item needs keep it, ties reject it,
    and it is open as long as missing votes could still decide. A group is closed, and all its items rejected, where a strict
    majority closes it at any of them; undoing such a vote opens it again. Where flags are verified, one vote keeps an item
    that nobody flagged, and no single vote rejects one.
    """
    return _verdicts(project, as_columns(votes), assigned, ("qualification", "first", "open"))


def _verdicts(
    project: Project, votes: VoteColumns, assigned: Mapping[str, Sequence[int]], rounds: Sequence[Round]
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


def _wanted(project: Project, said: CountedAnswers, people: int) -> int:
    """The number of reviewers an item needs; more where more are assigned.

    Where flags are verified, an item that nobody flagged needs only its readers.
    """
    if project.verify is None or any(not project.screen.choice(str(answer["choice"])).keeps for answer, _ in said):
        return max(people, project.reviewers_each)
    return max(sum(times for _, times in said), project.readers_each)


def _said(stand: VoteColumns) -> defaultdict[str, list[tuple[Answer, int]]]:
    """The counted answers to each item, the latest answer first."""
    found: defaultdict[str, list[tuple[Answer, int]]] = defaultdict(list)
    different = Counter((stand.item * len(stand.answers) + stand.answer).tolist())
    for code, times in different.items():
        item, answer = divmod(code, len(stand.answers))
        found[stand.items[item]].append((stand.answers[answer] or {}, times))
    return found


def _people(stand: VoteColumns) -> defaultdict[str, set[int]]:
    """The reviewers who answered each item."""
    people = stand.reviewer[np.argsort(stand.item)]
    ends = np.cumsum(np.bincount(stand.item, minlength=len(stand.items)))
    return defaultdict(set, zip(stand.items, (set(some.tolist()) for some in np.split(people, ends)), strict=False))


def _closing(project: Project, stand: VoteColumns) -> Standing:
    """The votes that close a group."""
    names = project.screen.closing
    closes = np.array([answer is not None and answer["choice"] in names for answer in stand.answers], bool)
    return {(vote.reviewer, vote.item): vote for vote in stand.take(closes[stand.answer]).votes()}


def _unanswered(assigned: Mapping[str, Sequence[int]], people: Mapping[str, set[int]]) -> dict[str, list[int]]:
    """The reviewers of each item who have not answered it."""
    return {item: [one for one in some if one not in people.get(item, ())] for item, some in assigned.items()}


def needs_adjudication(verdict: Verdict) -> bool:
    """Whether an item goes to adjudication: all its reviewers have answered, and not all to keep it with the same box."""
    answered = verdict.for_it + verdict.against
    far_apart = verdict.overlap is not None and verdict.overlap < MIN_IOU
    return not verdict.closed_by_group and answered >= verdict.assigned > 0 and (verdict.against > 0 or far_apart)


def disputed(project: Project, votes: VoteColumns | Iterable[Vote], assigned: Mapping[str, Sequence[int]]) -> list[str]:
    """The items in adjudication, by the first votes, which are blind."""
    if not project.screen.adjudicated:
        return []
    blind = _verdicts(project, as_columns(votes), assigned, ("first",))
    return [item for item, verdict in blind.items() if needs_adjudication(verdict)]


def _verdict(project: Project, item: str, said: CountedAnswers, assigned: int) -> Verdict:
    screen = project.screen
    choices = total_counts((str(answer["choice"]), times) for answer, times in said)
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
        overlap=_lowest_iou(boxes),
    )


def _named(said: CountedAnswers, part: str) -> dict[str, int]:
    """The number of reviewers who named each reason, class or tag."""
    return total_counts((name, times) for answer, times in said for name in dict.fromkeys(answer.get(part) or ()))


def iou_of(one: Sequence[float], other: Sequence[float]) -> float:
    """Intersection over union (IoU) of two boxes.

    >>> iou_of((0, 0, 0.5, 1), (0.25, 0, 0.75, 1))  # a quarter of the picture, of three
    0.3333333333333333
    """
    return float(box_overlap(np.array([one], float), np.array([other], float), np.zeros(1, bool))[0])


def _lowest_iou(boxes: Sequence[Sequence[float]]) -> float | None:
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


def derived_votes(project: Project, stand: Standing, assigned: Mapping[str, Iterable[int]]) -> list[Vote]:
    """The votes of reviewers who closed a group on its other items that are assigned to them and not answered."""
    return [
        dataclasses.replace(vote, item=item.id, derived=True)
        for group, closing in _groups_closing(project, stand).items()
        for item in project.by_group[group]
        for person in assigned.get(item.id, ())
        if (vote := closing.get(person)) is not None and (person, item.id) not in stand
    ]


def closed_groups(project: Project, stand: Standing, people: Mapping[str, Iterable[int]]) -> set[str]:
    """The groups closed by more than half of the reviewers of any one of their items, there or at another item."""
    return {
        group
        for group, closing in _groups_closing(project, stand).items()
        for asked in (set(people[item.id]) for item in project.by_group[group])
        if 2 * len(asked & closing.keys()) > max(len(asked), project.reviewers_each)
    }


def _groups_closing(project: Project, stand: Standing) -> dict[str, dict[int, Vote]]:
    """For each group that anybody closed, the latest closing vote of each reviewer."""
    found: dict[str, dict[int, Vote]] = defaultdict(dict)
    closing = [vote for vote in stand.values() if vote.choice in project.screen.closing]
    for vote in sorted(closing, key=lambda vote: vote.number):
        item = project.by_id.get(vote.item)
        if item is not None and item.group is not None and item.role == "asked":
            found[item.group][vote.reviewer] = vote
    return found


CLOSED_GROUP = "went with its group"


def rejection_reason(project: Project, verdict: Verdict) -> str:
    """The most frequent reason against an item, or the most frequent choice that does not keep it."""
    if verdict.closed_by_group:
        return CLOSED_GROUP
    against = {name: count for name, count in verdict.choices.items() if not project.screen.choice(name).keeps}
    return _most_frequent(verdict.reasons) or _most_frequent(against) or "too few for it"


def rejection_reasons(project: Project, verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """The number of rejected items by reason, the most frequent first."""
    rejected = [verdict for verdict in verdicts.values() if verdict.outcome == "rejected"]
    return _sorted_counts(Counter(rejection_reason(project, verdict) for verdict in rejected))


def answers_given(project: Project, verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """The number of standing votes for each choice, by its title and in the screen's order."""
    found: Counter[str] = Counter()
    for verdict in verdicts.values():
        found.update(verdict.choices)
    return {choice.title: found[choice.name] for choice in project.screen.choices if found[choice.name]}


def failure_modes(verdicts: Mapping[str, Verdict]) -> dict[str, int]:
    """The number of items by failure mode; empty where the screen does not ask for them."""
    found = Counter(mode for verdict in verdicts.values() for mode in failure_modes_of(verdict))
    return _sorted_counts(found)


def failure_modes_of(verdict: Verdict) -> list[str]:
    """The failure modes that more than half of the reviewers marked."""
    return sorted(mode for mode, count in (verdict.tags or {}).items() if 2 * count > verdict.assigned)


def _most_frequent(counts: Mapping[str, int]) -> str | None:
    return min(counts, key=lambda name: (-counts[name], name), default=None)


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def pseudonyms() -> Iterator[str]:
    """A letter for each of any number of people, where names would reveal who voted what.

    >>> [letter for letter, _ in zip(pseudonyms(), range(28), strict=False)][24:]
    ['Y', 'Z', 'AA', 'AB']
    """
    for length in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_uppercase, repeat=length))
