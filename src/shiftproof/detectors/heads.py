"""Detectors that read features together with the model's last linear layer, and learn nothing."""

from __future__ import annotations

import numpy as np

from shiftproof.detectors.inputs import logits_of
from shiftproof.detectors.parts import in_parts
from shiftproof.detectors.scores import softened
from shiftproof.types import AnomalyScores, Features, Logits, Predictions


def max_cosine(predictions: Predictions) -> AnomalyScores:
    """Minus the cosine between the features and the weights of the class nearest in direction (Zhang & Xiang, 2023).

    A logit is this cosine times the lengths of both, plus the bias, which is left out here. Features of length 0 have no
    direction and count as at right angles to every class.
    """
    features = predictions.need_features()
    weights = predictions.need_head().weights.astype(np.float32)
    directions = weights / _lengths(weights)

    def scored(some: Features) -> AnomalyScores:
        vectors = some.astype(np.float32)
        return np.asarray(-(vectors / _lengths(vectors) @ directions.T).max(axis=1))

    return in_parts(scored, features)


def gradnorm(predictions: Predictions, *, temperature: float = 1.0) -> AnomalyScores:
    """Minus the sum of absolute gradients, on the last layer's weights, of the divergence from uniform (Huang et al., 2021).

    The divergence is KL(uniform || softmax). No gradient is taken: it is the outer product of (p - 1/classes) / temperature
    and the features, so its norm is the product of theirs. The authors' own number is `classes` times as large.
    """
    predictions.need_head()  # without one linear layer behind the logits there is no such gradient

    def scored(logits: Logits, features: Features) -> AnomalyScores:
        surprise = np.abs(softened(logits, temperature) - 1 / logits.shape[1]).sum(axis=1)
        return np.asarray(-surprise * np.abs(features).sum(axis=1, dtype=np.float64) / temperature)

    return in_parts(scored, logits_of(predictions), predictions.need_features())


def _lengths(rows: Features) -> Features:
    # a length of 0 becomes 1: the row stays all zero instead of becoming not a number
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, lengths, 1)
