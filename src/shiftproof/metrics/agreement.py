"""Inter-annotator agreement: in percent, and beyond chance (Fleiss' kappa, Krippendorff's alpha)."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

Ratings: TypeAlias = NDArray[np.integer]
"""What each reviewer answered, (items, reviewers), as numbers of answers; -1 where a reviewer did not answer."""


def percent_agreement(ratings: Ratings) -> float:
    """Share of the pairs of answers to the same item that are the same; 1 is perfect, nan where no item has two answers.

    >>> percent_agreement(np.array([[0, 0, 0], [0, 1, -1], [1, 1, 0]]))  # 3 + 0 + 1 of 3 + 1 + 3 pairs
    0.5714285714285714
    """
    counts = _counts(ratings)
    people = counts.sum(axis=1)
    pairs, alike = people * (people - 1), (counts * (counts - 1)).sum(axis=1)
    return float(alike.sum() / pairs.sum()) if pairs.sum() else float("nan")


def fleiss_kappa(ratings: Ratings) -> float:
    """Agreement beyond chance where every item has the same number of answers (Fleiss, 1971).

    1 is perfect, 0 what chance gives; nan where all reviewers always gave one answer, which chance would give too.

    >>> fleiss_kappa(np.array([[0, 0], [1, 1], [0, 1], [1, 0]]))
    0.0
    """
    counts = _counts(ratings)
    people = counts.sum(axis=1)
    if not len(counts) or people[0] < 2 or (people != people[0]).any():
        raise BadInput("Fleiss' kappa needs two answers or more to every item, and as many to each; alpha does not")
    observed = ((counts * (counts - 1)).sum(axis=1) / (people * (people - 1))).mean()
    shares = counts.sum(axis=0) / counts.sum()
    return _beyond(float(observed), float((shares**2).sum()))


def krippendorff_alpha(ratings: Ratings) -> float:
    """Agreement beyond chance of answers without an order, whoever gave them and however many there are of each item.

    1 is perfect, 0 what chance gives (Krippendorff, 2011); nan where no item has two answers, or all answers are one.

    >>> round(krippendorff_alpha(np.array([[0, 0], [1, 1], [0, 1], [1, -1]])), 4)  # 1 - (2 / 6) / (18 / 30)
    0.4444
    """
    counts = _counts(ratings)
    counts = counts[counts.sum(axis=1) > 1]  # a single answer agrees with no other
    if not len(counts):
        return float("nan")
    people = counts.sum(axis=1)
    alike = ((counts * (counts - 1)).sum(axis=1) / (people - 1)).sum()
    totals, answers = counts.sum(axis=0), counts.sum()
    return _beyond(float(alike / answers), float((totals * (totals - 1)).sum() / (answers * (answers - 1))))


def confusions_with_others(ratings: Ratings, answers: int) -> list[NDArray[np.integer]]:
    """For each reviewer how often they gave each answer where others gave each, (answers, answers); a row is an own answer.

    >>> confusions_with_others(np.array([[0, 0], [1, 0], [1, 1], [-1, 1]]), 2)[0]
    array([[1, 0],
           [1, 1]])
    """
    counts = _counts(ratings, answers)
    return [_confusion(own, counts) for own in ratings.T]


def _confusion(own: NDArray[np.integer], counts: NDArray[np.integer]) -> NDArray[np.integer]:
    answers = counts.shape[1]
    both = counts[own >= 0]
    own = own[own >= 0]
    both[np.arange(len(own)), own] -= 1  # no reviewer is compared with themselves
    item, other = np.nonzero(both)
    pairs = np.bincount(own[item] * answers + other, both[item, other], minlength=answers * answers)
    return pairs.astype(int).reshape(answers, answers)


def _beyond(observed: float, by_chance: float) -> float:
    return (observed - by_chance) / (1 - by_chance) if by_chance < 1 else float("nan")


def _counts(ratings: Ratings, answers: int | None = None) -> NDArray[np.integer]:
    """How many reviewers gave each answer to each item, (items, answers)."""
    if ratings.ndim != 2:
        raise BadInput(f"ratings should be (items, reviewers), got shape {ratings.shape}")
    answers = int(ratings.max(initial=-1)) + 1 if answers is None else answers
    item, person = np.nonzero(ratings >= 0)
    cells = np.bincount(item * answers + ratings[item, person], minlength=len(ratings) * answers)
    return cells.reshape(len(ratings), answers)
