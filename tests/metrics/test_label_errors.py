"""Confident learning: cases by hand, cleanlab as the referee, and planted errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    class_thresholds,
    confident_classes,
    confident_joint,
    label_error_rate,
    rank_label_errors,
    self_confidence,
)


def drawn(
    seed: int, images: int = 400, classes: int = 5, noise: float = 0.1
) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Labels, some of them wrong, and probabilities of a fair network; the last class may be missing."""
    generator = np.random.default_rng(seed)
    truth = generator.integers(classes, size=images)
    logits = generator.normal(size=(images, classes))
    logits[np.arange(images), truth] += 2.5
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.where(generator.random(images) < noise, generator.integers(classes, size=images), truth)
    return labels[:, None], probabilities


@pytest.fixture(params=range(6))
def case(request: pytest.FixtureRequest) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    return drawn(
        request.param, images=[400, 30, 1000, 12, 200, 5][request.param], classes=[5, 3, 10, 2, 40, 4][request.param]
    )


def test_thresholds_are_those_of_cleanlab(case: tuple[NDArray[np.integer], NDArray[np.floating]]) -> None:
    count = pytest.importorskip("cleanlab.count")
    labels, probabilities = case
    ours, theirs = class_thresholds(labels, probabilities), count.get_confident_thresholds(labels[:, 0], probabilities)
    missing = np.bincount(labels[:, 0], minlength=probabilities.shape[1]) == 0
    assert np.isinf(ours[missing]).all()
    assert ours[~missing] == pytest.approx(theirs[~missing])


def test_self_confidence_and_its_order_are_those_of_cleanlab(case: tuple[NDArray[np.integer], NDArray[np.floating]]) -> None:
    rank = pytest.importorskip("cleanlab.rank")
    labels, probabilities = case
    theirs = rank.get_label_quality_scores(labels[:, 0], probabilities, method="self_confidence")
    assert self_confidence(labels, probabilities) == pytest.approx(theirs)
    assert rank_label_errors(labels, probabilities).order.tolist() == np.argsort(theirs, kind="stable").tolist()


def test_contradicted_labels_are_those_of_cleanlab(case: tuple[NDArray[np.integer], NDArray[np.floating]]) -> None:
    """Where several classes reach their thresholds, cleanlab takes the likeliest of all; the paper, and we, of those."""
    count = pytest.importorskip("cleanlab.count")
    labels, probabilities = case
    _, theirs = count.compute_confident_joint(labels[:, 0], probabilities, return_indices_of_off_diagonals=True)
    reached = probabilities >= class_thresholds(labels, probabilities) - 1e-6
    likeliest = reached[np.arange(len(labels)), probabilities.argmax(axis=1)]
    told_apart = (reached.sum(axis=1) > 1) & ~likeliest
    ours = np.flatnonzero(rank_label_errors(labels, probabilities).confident & ~told_apart)
    assert set(ours.tolist()) == set(theirs) - set(np.flatnonzero(told_apart).tolist())


@pytest.mark.parametrize("seed", range(5))
def test_the_rate_is_the_share_off_the_diagonal_of_cleanlabs_joint(seed: int) -> None:
    count = pytest.importorskip("cleanlab.count")
    labels, probabilities = drawn(seed, images=2000, classes=3)
    joint = count.estimate_joint(labels[:, 0], probabilities)
    # 1 of 2,000 and more: theirs is rounded to whole images, and takes another class where several reach their thresholds
    assert label_error_rate(labels, probabilities) == pytest.approx(1 - np.trace(joint), abs=0.01)


def test_counts_by_hand() -> None:
    labels = np.array([[0], [0], [1], [1]])
    probabilities = np.array([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8], [0.6, 0.4]])
    assert class_thresholds(labels, probabilities) == pytest.approx([0.6, 0.6])
    assert confident_classes(labels, probabilities).tolist() == [0, 1, 1, 0]
    joint = confident_joint(labels, probabilities)
    assert list(zip(*(some.tolist() for some in joint), strict=True)) == [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]
    assert label_error_rate(labels, probabilities) == 0.5
    found = rank_label_errors(labels, probabilities)
    assert found.order.tolist() == [1, 3, 2, 0]
    assert found.confident.tolist() == [False, True, False, True]
    assert found.suggested.tolist() == [1, 1, 0, 0]


def test_any_of_several_labels_will_do() -> None:
    probabilities = np.array([[0.1, 0.2, 0.7], [0.1, 0.2, 0.7]])
    found = rank_label_errors(np.array([[0, 2], [0, -1]]), probabilities)
    assert found.self_confidence.tolist() == [0.7, 0.1]
    assert found.suggested.tolist() == [1, 2]
    assert not found.confident[0]


def test_a_class_of_one_image_has_no_threshold_where_two_are_wanted() -> None:
    labels, probabilities = np.array([[0], [1], [1]]), np.array([[0.01, 0.99], [0.1, 0.9], [0.4, 0.6]])
    assert class_thresholds(labels, probabilities, least=2).tolist() == [np.inf, 0.75]
    assert confident_classes(labels, probabilities).tolist() == [1, 1, 0]  # 0.4 is far above 0.01
    assert confident_classes(labels, probabilities, least=2).tolist() == [1, 1, -1]


def test_an_image_without_a_label_is_refused() -> None:
    with pytest.raises(BadInput, match="should have a label"):
        self_confidence(np.array([[-1]]), np.array([[1.0]]))


def test_planted_errors_come_first() -> None:
    generator = np.random.default_rng(0)
    labels, probabilities = drawn(0, images=2000, noise=0.0)
    rows = generator.choice(2000, 100, replace=False)
    labels[rows] = (labels[rows] + generator.integers(1, 5, size=(100, 1))) % 5
    first = rank_label_errors(labels, probabilities).order[:200]
    assert len(set(first.tolist()) & set(rows.tolist())) >= 80
