"""Detectors of features and head: the closed form of GradNorm against gradients taken, and what a logit is made of."""

from __future__ import annotations

import numpy as np
import pytest

from ood.made_up import a_head, inside, outside, predictions_of
from shiftproof.errors import BadInput
from shiftproof.ood.scores import gradnorm, max_cosine
from shiftproof.types import Predictions


def gradients_taken(predictions: Predictions, temperature: float) -> list[float]:
    """Minus the absolute gradients of KL(uniform || softmax) on the last layer's weights, image by image, by torch."""
    torch = pytest.importorskip("torch")
    head, features = predictions.need_head(), predictions.need_features()
    norms = []
    for row in features:
        weights = torch.tensor(head.weights, dtype=torch.float64, requires_grad=True)
        logits = weights @ torch.tensor(row, dtype=torch.float64) + torch.tensor(head.bias, dtype=torch.float64)
        uniform = torch.full_like(logits, 1 / len(logits))
        log_softmax = torch.log_softmax(logits / temperature, dim=0)
        (uniform * (uniform.log() - log_softmax)).sum().backward()
        norms.append(-float(weights.grad.abs().sum()))
    return norms


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_gradnorm_is_the_norm_of_the_gradients_that_torch_takes(temperature: float) -> None:
    for predictions in (inside(24), outside(24)):
        taken = gradients_taken(predictions, temperature)
        np.testing.assert_allclose(gradnorm(predictions, temperature=temperature), taken, rtol=1e-4)


def test_gradnorm_of_exact_logits_is_exact() -> None:
    head = a_head()
    features = np.random.default_rng(4).normal(size=(10, head.weights.shape[1]))  # negative ones too
    predictions = predictions_of(features, head)
    np.testing.assert_allclose(gradnorm(predictions), gradients_taken(predictions, 1.0), rtol=1e-12)


def test_gradnorm_of_a_uniform_answer_is_zero() -> None:
    flat = a_head()
    flat.weights[:], flat.bias[:] = 0, 3
    np.testing.assert_allclose(gradnorm(predictions_of(np.ones((2, flat.weights.shape[1])), flat)), 0, atol=1e-12)


def test_gradnorm_refuses_a_temperature_of_zero() -> None:
    with pytest.raises(BadInput, match="temperature is above 0"):
        gradnorm(inside(3), temperature=0.0)


def test_a_logit_is_a_cosine_times_two_lengths_plus_the_bias() -> None:
    predictions = inside(50)
    head, features = predictions.need_head(), predictions.need_features()
    cosines = (predictions.need_logits() - head.bias) / np.linalg.norm(features, axis=1, keepdims=True)
    cosines = cosines / np.linalg.norm(head.weights, axis=1)
    np.testing.assert_allclose(-max_cosine(predictions), cosines.max(axis=1), rtol=1e-5)


def test_max_cosine_minds_neither_the_length_of_features_nor_the_bias() -> None:
    predictions = inside(50)
    features, head = predictions.need_features(), predictions.need_head()
    moved = predictions_of(features * 7, type(head)(head.weights, head.bias + 5))
    np.testing.assert_allclose(max_cosine(moved), max_cosine(predictions), rtol=1e-5)


def test_features_along_the_weights_of_a_class_have_a_cosine_of_one_and_none_at_all_of_zero() -> None:
    head = a_head()
    along = predictions_of(np.stack([head.weights[3] * 2, np.zeros_like(head.weights[3])]), head)
    np.testing.assert_allclose(max_cosine(along), [-1, 0], atol=1e-6)
