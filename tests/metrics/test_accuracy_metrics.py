"""Accuracy against loops that sort, on cases with ties, several labels, missing classes and a single image."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    Tally,
    confusion_counts,
    grouped_accuracy,
    is_correct,
    per_class_accuracy,
    top_k_accuracy,
    worst_group,
)
from shiftproof.metrics.accuracy import best_classes


def by_sorting(labels: NDArray[np.integer], logits: NDArray[np.floating], k: int) -> float:
    right = 0
    for row, scores in zip(labels.reshape(len(labels), -1), logits, strict=True):
        ranked = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
        right += any(label in ranked[:k] for label in row if label >= 0)
    return right / len(labels)


def random_case(
    seed: int, *, images: int = 60, classes: int = 7, several: bool
) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Scores of few different values, so that nearly every row has ties; the last class is nobody's label."""
    generator = np.random.default_rng(seed)
    labels = generator.integers(classes - 1, size=(images, 3 if several else 1))
    if several:
        labels[:, 1:][generator.random((images, 2)) < 0.5] = -1
    return labels, generator.integers(4, size=(images, classes)).astype(np.float32)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 5, 7, 9])
@pytest.mark.parametrize("several", [False, True])
def test_accuracy_is_what_sorting_every_row_gives(seed: int, k: int, several: bool) -> None:
    labels, logits = random_case(seed, several=several)
    assert top_k_accuracy(labels, logits, k=k) == pytest.approx(by_sorting(labels, logits, k))


@pytest.mark.parametrize("several", [False, True])
def test_stored_rows_give_the_same_accuracy_as_all_logits(several: bool) -> None:
    labels, logits = random_case(3, several=several)
    top = np.argsort(-logits, axis=1, kind="stable")[:, :5].astype(np.uint16)
    for k in (1, 3, 5):
        assert is_correct(labels, top, k=k).mean() == pytest.approx(top_k_accuracy(labels, logits, k=k))


def test_more_images_than_are_compared_at_once_are_all_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, logits = random_case(1, images=100, several=True)
    whole = top_k_accuracy(labels, logits)
    monkeypatch.setattr("shiftproof.metrics.accuracy._ROWS_AT_ONCE", 7)
    assert top_k_accuracy(labels, logits) == whole


def test_a_label_column_before_the_padding_or_after_it_is_the_same_label() -> None:
    logits = np.array([[0.0, 1.0, 0.0]])
    assert top_k_accuracy(np.array([[-1, 1]]), logits) == top_k_accuracy(np.array([[1, -1]]), logits) == 1.0


def test_padding_of_labels_never_meets_padding_of_stored_classes() -> None:
    assert is_correct(np.array([[2, -1]]), np.array([[1, -1, -1]]), k=3).tolist() == [False]


def test_scores_that_are_not_numbers_are_never_right() -> None:
    logits = np.array([[np.nan, 0.0], [np.nan, np.nan]])
    assert top_k_accuracy(np.array([0, 0]), logits, k=2) == 0.0


def test_classes_outside_the_label_space_at_minus_infinity_are_never_ahead() -> None:
    logits = np.array([[-np.inf, -5.0, -np.inf, -7.0]])
    assert top_k_accuracy(np.array([3]), logits, k=2) == 1.0


def test_unlabelled_images_are_refused_with_their_number() -> None:
    with pytest.raises(BadInput, match="1 of 2 images have no label"):
        top_k_accuracy(np.array([0, -1]), np.eye(2))
    with pytest.raises(BadInput, match="1 of 2 images have no label"):
        is_correct(np.array([[0, -1], [-1, -1]]), np.array([[0], [0]]))


@pytest.mark.parametrize(
    ("labels", "logits", "k", "message"),
    [
        (np.array([0, 1]), np.eye(3), 1, "logits should be"),
        (np.array([0]), np.zeros(1), 1, "logits should be"),
        (np.array([5]), np.eye(1, 3), 1, "beyond the 3 classes"),
        (np.array([0]), np.eye(1, 3), 0, "k should be at least 1"),
        (np.array([], dtype=int), np.zeros((0, 3)), 1, "at least one image"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_what_was_expected(
    labels: NDArray[np.integer], logits: NDArray[np.floating], k: int, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        top_k_accuracy(labels, logits, k=k)


def test_each_class_is_what_a_loop_over_its_images_counts() -> None:
    labels, logits = random_case(4, several=True)
    labels[:, 1:][labels[:, 1:] == labels[:, :1]] = -1
    labels[:, 2][labels[:, 2] == labels[:, 1]] = -1
    correct = is_correct(labels, logits.argmax(axis=1)[:, None])
    tally = per_class_accuracy(labels, correct, classes=7)
    for place in range(7):
        members = [bool(right) for row, right in zip(labels, correct, strict=True) if place in row]
        assert (tally.right[place], tally.total[place]) == (sum(members), len(members))
    assert np.isnan(tally.accuracy[6])


def test_groups_are_counted_apart_and_images_in_none_are_left_out() -> None:
    correct, groups = np.array([True, False, True, True, False]), np.array([2, 2, 0, -1, -1])
    tally = grouped_accuracy(correct, groups)
    assert (tally.right.tolist(), tally.total.tolist()) == ([1, 0, 1], [1, 0, 2])
    assert len(grouped_accuracy(correct, np.full(5, -1)).total) == 0


def test_the_worst_group_is_large_enough_and_of_equals_the_largest() -> None:
    tally = Tally(np.array([0, 5, 10, 30]), np.array([3, 10, 20, 40]))
    assert worst_group(tally) == 0
    assert worst_group(tally, at_least=5) == 2
    assert worst_group(tally, at_least=41) is None


def test_confusions_are_counted_once_an_image_and_the_diagonal_is_what_was_right() -> None:
    labels, logits = random_case(6, several=True)
    predicted = logits.argmax(axis=1)
    counts = confusion_counts(labels, predicted, classes=7)
    assert counts.sum() == len(labels)
    assert np.trace(counts) == is_correct(labels, predicted[:, None]).sum()
    assert counts.sum(axis=0).tolist() == np.bincount(predicted, minlength=7).tolist()


def test_a_label_given_twice_counts_its_image_once() -> None:
    tally = per_class_accuracy(np.array([[1, 1], [1, 2], [2, -1]]), np.array([True, False, True]), classes=3)
    assert (tally.right.tolist(), tally.total.tolist()) == ([0, 1, 1], [0, 2, 2])


def test_classes_beyond_those_counted_are_refused() -> None:
    with pytest.raises(BadInput, match="class 5 is beyond the 3 classes"):
        per_class_accuracy(np.array([5]), np.array([True]), classes=3)
    with pytest.raises(BadInput, match="class 2 is beyond the 2 classes"):
        confusion_counts(np.array([0, 1]), np.array([2, 0]), classes=2)


def test_a_label_one_beyond_the_classes_of_the_logits_is_refused() -> None:
    with pytest.raises(BadInput, match="label 3 is beyond the 3 classes"):
        top_k_accuracy(np.array([3]), np.zeros((1, 3)))


@pytest.mark.parametrize("strange", [None, -np.inf, np.inf, np.nan])
@pytest.mark.parametrize("count", [1, 5, 40])
def test_the_best_classes_are_those_of_a_stable_sort(count: int, strange: float | None) -> None:
    generator = np.random.default_rng(count)
    scores = np.round(generator.normal(size=(50, 300)), 1).astype(np.float32)
    if strange is not None:
        scores[generator.random(scores.shape) < generator.random((50, 1))] = strange
        scores[0, 1:] = strange
    assert np.array_equal(best_classes(scores, count), np.argsort(-scores, axis=1, kind="stable")[:, :count])
