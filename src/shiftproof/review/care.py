"""Signs that somebody answers carelessly; each is a reason to look and talk, and no verdict."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, groupby

import numpy as np

from shiftproof.metrics.intervals import clopper_pearson
from shiftproof.review.ballots import Ballots
from shiftproof.review.summary import Person

ENOUGH = 20
"""Answers of a person before anything is said of them."""

TIMES = 3.0
"""So many times faster or slower than the others is far from them."""

KNOWN_RIGHT = 0.8
"""Share of the known answers that a careful person gets right."""

RARE = 0.001
"""A run is long where careful people would give one so long, or longer, less often than this."""


def choices_of(votes: Ballots) -> dict[int, list[str]]:
    """What each person chose, in the order in which it was."""
    names = np.array(["" if answer is None else str(answer["choice"]) for answer in votes.answers], object)
    people = np.unique(votes.person).tolist()
    return {person: names[votes.answer[votes.person == person][::-1]].tolist() for person in people}


def signs_of(people: Sequence[Person], chosen: Mapping[int, Sequence[str]]) -> dict[int, list[str]]:
    """What is strange about the work of each person, in words, by the person's id; nothing for most.

    `chosen` is what each person said in the first votes that stand, in order.
    """
    common = Counter(chain.from_iterable(chosen.values()))
    found = {}
    for person in people:
        others = [
            one.median_seconds for one in people if one is not person and one.answered >= ENOUGH and one.median_seconds
        ]
        own = chosen.get(person.reviewer.id, ())
        signs = [*_wrong(person), *_pace(person, others), *_runs(own, common)]
        if signs:
            found[person.reviewer.id] = signs
    return found


def _wrong(person: Person) -> list[str]:
    """Known answers that are wrong more often than chance would have it of a careful person."""
    if person.known and clopper_pearson(person.right, person.known)[1] < KNOWN_RIGHT:
        return [f"{person.right} of {person.known} known answers are right"]
    return []


def _pace(person: Person, others: Sequence[float]) -> list[str]:
    if person.answered < ENOUGH or not person.median_seconds or not others:
        return []
    usual = statistics.median(others)
    told = f"{person.median_seconds:.1f} s an answer, where others take {usual:.1f} s"
    if person.median_seconds * TIMES <= usual:
        return [f"fast: {told}"]
    return [f"slow: {told}"] if person.median_seconds >= TIMES * usual else []


def _runs(choices: Sequence[str], common: Mapping[str, int]) -> list[str]:
    """A run of one answer that is longer than its share of everybody's answers explains."""
    runs = [(len(list(run)), choice) for choice, run in groupby(choices)]
    if len(choices) < ENOUGH or not runs or len(common) < 2:
        return []
    length, choice = max(runs)
    share = common[choice] / sum(common.values())
    chance = len(choices) * (1 - share) * math.pow(share, length)  # of a run so long, about
    return [f"{length} times “{choice}” in a row"] if chance < RARE else []
