"""Flips and distances between rankings, beside slow versions that follow the definitions word by word."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    flip_probability,
    sequence_flip_probability,
    sequence_top5_distance,
    sequence_zipf_distance,
    top5_distance,
    top5_distance_from_ranks,
    zipf_distance,
)
from shiftproof.metrics.accuracy import best_classes

RULES: list[dict[str, Any]] = [{"step": 1}, {"step": 2}, {"step": 3}, {"against": "first"}]


def ranks(scores: Any) -> list[int]:
    """The place of each class, from 1; of equal scores the lower class index comes first."""
    return [int(place) for place in rankdata(-np.asarray(scores), method="ordinal")]


def slow_top5_distance(first: Any, second: Any) -> int:
    before, after = ranks(first), ranks(second)
    total = 0
    for place in range(1, min(5, len(before)) + 1):
        total += abs(place - min(after[before.index(place)], 6))
    return total


def slow_zipf_distance(first: Any, second: Any) -> float:
    before, after = ranks(first), ranks(second)
    return sum(abs(1 / place - 1 / after[before.index(place)]) / place for place in range(1, len(before) + 1))


def slow_along(sequence: Any, distance: Any, *, against: str = "previous", step: int = 1) -> float:
    """The published walk over frames: as many interleaved strands as the step, each frame with the one before it."""
    found = []
    for start in range(step):
        strand = list(sequence[start::step])
        before = strand[0]
        for frame in strand[1:]:
            found.append(distance(before, frame))
            if against == "previous":
                before = frame
    return float(np.mean(found))


@pytest.fixture(params=[2, 4, 5, 6, 30])
def walks(request: pytest.FixtureRequest) -> Any:
    """Random walks of scores, rounded so that many tie, (sequences, frames, classes)."""
    generator = np.random.default_rng(request.param)
    steps = generator.normal(scale=0.6, size=(12, 9, request.param))
    return np.round(np.cumsum(steps, axis=1), 0)


@pytest.mark.parametrize("rule", RULES)
def test_flips_agree_with_the_slow_walk(walks: Any, rule: Any) -> None:
    classes = walks.argmax(axis=2)
    slow = [slow_along(sequence, lambda one, two: float(one != two), **rule) for sequence in classes]
    assert sequence_flip_probability(classes, **rule) == pytest.approx(slow)
    assert flip_probability(classes, **rule) == pytest.approx(np.mean(slow))


@pytest.mark.parametrize("rule", RULES)
def test_distances_agree_with_the_slow_walk_with_ties_and_few_classes(walks: Any, rule: Any) -> None:
    top5 = best_classes(walks.reshape(-1, walks.shape[2]), 5).reshape(*walks.shape[:2], -1)
    slow = [slow_along(sequence, slow_top5_distance, **rule) for sequence in walks]
    assert sequence_top5_distance(top5, **rule) == pytest.approx(slow)
    slow = [slow_along(sequence, slow_zipf_distance, **rule) for sequence in walks]
    assert sequence_zipf_distance(walks, **rule) == pytest.approx(slow)


def test_distances_from_logits_and_from_stored_ranks_agree(walks: Any) -> None:
    first, second = walks[:, 0], walks[:, -1]
    slow = [slow_top5_distance(one, two) for one, two in zip(first, second, strict=True)]
    assert top5_distance(first, second).tolist() == slow
    assert top5_distance_from_ranks(best_classes(first, 5), best_classes(second, 5)).tolist() == slow
    assert zipf_distance(first, second) == pytest.approx(
        [slow_zipf_distance(one, two) for one, two in zip(first, second, strict=True)]
    )


@pytest.mark.parametrize(
    ("order", "distance"),
    [
        ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 0),
        ((1, 0, 2, 3, 4, 5, 6, 7, 8, 9), 2),  # the first two swap
        ((0, 1, 2, 3, 5, 4, 6, 7, 8, 9), 1),  # the fifth and the sixth swap
        ((1, 2, 3, 4, 5, 6, 7, 8, 9, 0), 9),  # the first is gone, the others move up
        ((4, 3, 2, 1, 0, 5, 6, 7, 8, 9), 12),  # reversed
        ((5, 6, 7, 8, 9, 0, 1, 2, 3, 4), 15),  # all gone
    ],
)
def test_the_known_cases_from_logits_and_from_ranks(order: tuple[int, ...], distance: int) -> None:
    first = np.arange(10.0)[None, ::-1]
    second = np.empty((1, 10))
    second[0, list(order)] = np.arange(10.0)[::-1]
    assert top5_distance(first, second).tolist() == [distance]
    assert top5_distance_from_ranks(np.arange(5)[None], np.array([order[:5]])).tolist() == [distance]


def test_places_without_a_class_are_never_alike() -> None:
    empty = np.array([[3, 1, -1, -1, -1]])
    assert top5_distance_from_ranks(empty, empty).tolist() == [3 + 2 + 1]


def test_nothing_moves_where_nothing_changes_and_the_distance_never_passes_fifteen(walks: Any) -> None:
    first, second = walks[:, 0], walks[:, 1]
    assert not top5_distance(first, first).any()
    assert not zipf_distance(first, first).any()
    assert top5_distance(first, second).max() <= 15


def test_lists_longer_than_one_part_are_as_the_parts() -> None:
    generator = np.random.default_rng(0)
    first, second = (np.argsort(generator.random((70_000, 8)), axis=1)[:, :5] for _ in range(2))
    whole = top5_distance_from_ranks(first, second)
    assert np.array_equal(whole[-7:], top5_distance_from_ranks(first[-7:], second[-7:]))
    assert len(whole) == 70_000
    assert top5_distance_from_ranks(first[:0], second[:0]).tolist() == []


@pytest.mark.parametrize(
    ("frames", "options", "words"),
    [
        (np.zeros(4, int), {}, r"\(sequences, frames\)"),
        (np.zeros((0, 4), int), {}, "at least one sequence"),
        (np.zeros((2, 3), int), {"step": 3}, "step 3"),
        (np.zeros((2, 3), int), {"step": 0}, "step 0"),
        (np.zeros((2, 3), int), {"against": "last"}, "'previous' or 'first'"),
        (np.zeros((2, 3), int), {"against": "first", "step": 2}, "step 2"),
    ],
)
def test_what_is_no_sequence_is_refused(frames: Any, options: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        flip_probability(frames, **options)


def test_lists_of_other_shapes_are_refused() -> None:
    with pytest.raises(BadInput, match=r"\(images, 5\)"):
        top5_distance_from_ranks(np.zeros((2, 6), int), np.zeros((2, 6), int))
    with pytest.raises(BadInput, match="one shape"):
        top5_distance(np.zeros((2, 6)), np.zeros((2, 7)))
