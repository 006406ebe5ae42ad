"""Likelihoods against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import log_loss

from shiftproof.errors import BadInput
from shiftproof.metrics import negative_log_likelihood, to_probabilities
from shiftproof.metrics.likelihood import negative_log_likelihoods


@pytest.mark.parametrize("images", [1, 2000])  # one block of rows and two
def test_the_likelihood_is_scikit_learns_log_loss(images: int) -> None:
    generator = np.random.default_rng(0)
    logits, labels = generator.normal(size=(images, 12)) * 5, generator.integers(12, size=images)
    probabilities = to_probabilities(logits, "logits")
    expected = log_loss(labels, probabilities, labels=np.arange(12))
    assert negative_log_likelihood(labels, logits, "logits") == pytest.approx(expected, rel=1e-12)
    assert negative_log_likelihood(labels, probabilities, "probabilities") == pytest.approx(expected, rel=1e-12)


def test_large_logits_in_half_precision_do_not_overflow() -> None:
    logits = np.array([[60000.0, 59999.0], [-60000.0, 0.0]]).astype(np.float16)
    assert negative_log_likelihoods(np.array([0, 0]), logits, "logits") == pytest.approx([np.log(2), 60000], rel=1e-3)


def test_of_several_right_labels_the_most_probable_is_the_truth() -> None:
    logits = np.array([[0.1, 0.7, 0.2]])
    several = negative_log_likelihood(np.array([[0, 1, -1]]), logits, "logits")
    assert several == negative_log_likelihood(np.array([1]), logits, "logits")


def test_a_truth_that_cannot_win_is_an_infinite_surprise_and_another_class_that_cannot_is_none() -> None:
    logits = np.array([[0.0, -np.inf, 0.0], [0.0, -np.inf, 0.0]])
    assert negative_log_likelihoods(np.array([0, 1]), logits, "logits").tolist() == pytest.approx([np.log(2), np.inf])


def test_scores_have_no_likelihood() -> None:
    with pytest.raises(BadInput, match="gives scores"):
        negative_log_likelihood(np.array([0]), np.array([[3.0]]), "scores")
