"""Estimates of accuracy without labels: identities, and assignments tried one by one."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binom

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    average_confidence,
    average_thresholded_confidence,
    class_limits,
    confidence_by_transport,
    difference_of_confidences,
    likeliest_within_limits,
)
from shiftproof.metrics.unlabelled import parts_of


def some_probabilities(images: int, classes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.5), size=images)


def test_on_the_labelled_images_themselves_atc_and_doc_are_their_accuracy() -> None:
    probabilities = some_probabilities(50, 4)
    correct = np.random.default_rng(1).random(50) < 0.7
    scores = probabilities.max(axis=1)
    assert average_thresholded_confidence(scores, correct, scores) == pytest.approx(correct.mean())
    assert difference_of_confidences(probabilities, correct, probabilities) == pytest.approx(correct.mean())


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_where_all_or_none_is_correct_so_is_the_estimate(share: float) -> None:
    scores, correct = np.array([0.3, 0.6, 0.9]), np.full(3, share == 1.0)
    assert average_thresholded_confidence(scores, correct, np.array([0.1, 0.95])) == share


def test_transport_is_the_best_of_all_assignments() -> None:
    for seed in range(5):
        probabilities = some_probabilities(6, 3, seed)
        labels = [0, 0, 0, 1, 1, 2]
        best = max(np.mean([probabilities[row, label] for row, label in enumerate(one)]) for one in permutations(labels))
        assert confidence_by_transport(probabilities, np.array([3, 2, 1]) / 6) == pytest.approx(best)


def test_within_limits_it_is_the_best_of_all_labellings_that_keep_them() -> None:
    shares = np.array([0.2, 0.3, 0.5])
    for seed in range(5):
        probabilities = some_probabilities(4, 3, seed)
        limits = class_limits(shares, 4)
        labellings = np.array(np.meshgrid(*[range(3)] * 4)).reshape(4, -1).T
        kept = [one for one in labellings if (np.bincount(one, minlength=3) <= limits).all()]
        best = max(probabilities[np.arange(4), one].mean() for one in kept)
        assert likeliest_within_limits(probabilities, shares).mean() == pytest.approx(best)


def test_limits_are_the_quantile_of_another_library() -> None:
    shares = np.array([0.001, 0.01, 0.2, 0.9])
    for images in (1, 7, 150):
        assert (class_limits(shares, images) == np.maximum(1, binom.ppf(0.975, images, shares))).all()


def test_limits_that_bind_nobody_leave_the_confidence() -> None:
    probabilities = np.eye(4)[np.arange(40) % 4] * 0.7 + 0.075
    found = likeliest_within_limits(probabilities, np.full(4, 0.25))
    assert found == pytest.approx(probabilities.max(axis=1))
    assert found.mean() == pytest.approx(average_confidence(probabilities))


def test_many_images_are_taken_by_parts() -> None:
    alike = np.tile([[0.9, 0.1]], (16, 1))
    assert likeliest_within_limits(alike, np.array([0.5, 0.5]), at_once=8).mean() == pytest.approx((14 * 0.9 + 2 * 0.1) / 16)


@pytest.mark.parametrize("images", [17, 20, 23])
def test_all_parts_are_of_one_size(images: int) -> None:
    # seven of eight in each part, and images that are in two parts have the mean of both
    alike = np.tile([[0.9, 0.1]], (images, 1))
    assert likeliest_within_limits(alike, np.array([0.5, 0.5]), at_once=8).mean() == pytest.approx(
        0.8, abs=0.4 / images + 1e-9
    )
    parts = parts_of(images, 8)
    assert [len(part) for part in parts] == [8, 8, 8]
    assert {*np.concatenate(parts).tolist()} == {*range(images)}


def test_no_images_are_no_estimate() -> None:
    with pytest.raises(BadInput, match="at least one image"):
        average_confidence(np.zeros((0, 3)))
