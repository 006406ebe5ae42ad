"""What a review has come to, counted vote by vote: slow, and plain enough to be believed."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from shiftproof.curation.project import Project
from shiftproof.review.qualification import is_correct_answer
from shiftproof.review.validation import box_of
from shiftproof.review.verdicts import closed_groups, derived_votes, iou_of
from shiftproof.review.votes import Vote

Assigned = Mapping[str, Sequence[int]]


def stand_of(votes: Iterable[Vote], *rounds: str) -> dict[tuple[int, str], Vote]:
    """Which votes stand, from the latest to the first: a superseded one supersedes nothing."""
    superseded: set[str] = set()
    found: dict[tuple[int, str], Vote] = {}
    for vote in sorted((vote for vote in votes if vote.round in rounds), key=lambda vote: -vote.number):
        if vote.id in superseded:
            continue
        if vote.supersedes is not None:
            superseded.add(vote.supersedes)
        if vote.answer is not None:
            found.setdefault((vote.reviewer, vote.item), vote)
    return found


def verdicts_vote_by_vote(project: Project, votes: Sequence[Vote], assigned: Assigned) -> list[dict[str, Any]]:
    """The verdicts as JSON has them."""
    stand = stand_of(votes, "qualification", "first", "open")
    everything = [*stand.values(), *derived_votes(project, stand, assigned)]
    by_item = {item: [vote for vote in everything if vote.item == item] for item in project.asked}
    people = {item: {*assigned[item], *(vote.reviewer for vote in some)} for item, some in by_item.items()}
    closed = closed_groups(project, stand, people)
    return [
        _verdict(project, item, some, _wanted(project, some, people[item]), project.by_id[item].group in closed)
        for item, some in by_item.items()
    ]


def _wanted(project: Project, votes: Sequence[Vote], people: Iterable[int]) -> int:
    against = [vote for vote in votes if not project.screen.choice(str(vote.choice)).keeps]
    if project.verify and not against:
        return len(votes) or 1
    return max(len(set(people)), project.reviewers_each)


def _verdict(project: Project, item: str, votes: Sequence[Vote], assigned: int, is_closed: bool) -> dict[str, Any]:
    answers = [vote.answer or {} for vote in votes]
    for_it = sum(project.screen.choice(answer["choice"]).keeps for answer in answers)
    missing = assigned - len(answers)
    boxes = [box_of(answer) for answer in answers if "points" in answer]
    overlap = min((iou_of(one, other) for one, other in combinations(boxes, 2)), default=None)
    seen = Counter(label for answer in answers for label in answer.get("labels", ()))
    kept, may_be = 2 * for_it > assigned, 2 * (for_it + missing) > assigned
    apart = overlap is not None and overlap < 0.5
    return {
        "item": item,
        "outcome": "rejected" if is_closed else "kept" if kept else "open" if may_be else "rejected",
        "for_it": for_it,
        "against": len(answers) - for_it,
        "assigned": assigned,
        "choices": dict(Counter(answer["choice"] for answer in answers)),
        "reasons": dict(Counter(reason for answer in answers for reason in answer.get("reasons", ()))),
        "closed_by_group": is_closed,
        "labels": tuple(sorted(label for label, count in seen.items() if 2 * count > assigned)),
        "tags": dict(Counter(tag for one in answers for tag in one["tags"])) if project.screen.form == "tags" else None,
        "box": tuple(np.median(boxes, axis=0).tolist()) if boxes else None,
        "overlap": overlap,
        "disputed": not is_closed and missing <= 0 and (len(answers) > for_it or apart),
    }


def people_vote_by_vote(
    project: Project, votes: Sequence[Vote], assigned: Assigned, names: Sequence[str]
) -> list[dict[str, Any]]:
    """How each of those worked who were given anything, as JSON has it but for their names."""
    first = stand_of(votes, "qualification", "first")
    people = sorted({one for some in assigned.values() for one in some})
    return [_person(project, first, assigned, person, names) for person in people]


def _person(
    project: Project, first: Mapping[tuple[int, str], Vote], assigned: Assigned, person: int, names: Sequence[str]
) -> dict[str, Any]:
    own = [vote for vote in first.values() if vote.reviewer == person]
    blind = [vote for vote in own if vote.round == "first"]
    known = [vote for vote in own if project.by_id[vote.item].role == "gold"]
    right = sum(is_correct_answer(project.by_id[vote.item], vote.answer or {}) for vote in known)
    spent = [vote.milliseconds for vote in blind if vote.milliseconds is not None]
    confusion = np.zeros((len(names), len(names)), int)
    for one in own:
        for other in first.values():
            if one.item == other.item and other.reviewer != person and one.item in project.asked:
                confusion[names.index(rating(project, one)), names.index(rating(project, other))] += 1
    return {
        "given": sum(person in some for some in assigned.values()),
        "answered": len(blind),
        "known": len(known),
        "right": right,
        "median_seconds": statistics.median(spent) / 1000 if spent else None,
        "choices": dict(Counter(rating(project, vote) for vote in blind)),
        "lookups": 0,
        "gold_accuracy": right / len(known) if known else None,
        "agreement": float(np.trace(confusion)) / int(confusion.sum()) if confusion.any() else None,
        "confusion": confusion.tolist(),
    }


def rating(project: Project, vote: Vote) -> str:
    """What is compared between people."""
    answer = vote.answer or {}
    match project.screen.form:
        case "class":
            return str(answer["class"])
        case "tags":
            return ", ".join(sorted(answer["tags"]))
    return str(answer["choice"])
