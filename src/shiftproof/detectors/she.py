"""SHE: how well an image's features match what the model remembers of the class it predicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.class_means import (
    class_means,
    predicted_class,
    rows_classified_correctly,
    unlearnt_classes,
    width_of,
)
from shiftproof.detectors.parts import in_parts
from shiftproof.types import AnomalyScores, Fact, Features, Predictions, Training


@dataclass(frozen=True)
class She:
    """The pattern of each class: its mean training features, or zeros where there are none to remember."""

    patterns: Features  # (classes, features)
    missing: int

    def __call__(self, predictions: Predictions) -> AnomalyScores:
        """Minus the inner product of the features and the pattern of the predicted class.

        A class without a pattern gives 0. Features behind a ReLU are never negative, so nothing is more foreign than that.
        """

        def scored(features: Features, predicted: NDArray[np.integer]) -> AnomalyScores:
            return np.asarray(-np.einsum("ij,ij->i", features, self.patterns[predicted], dtype=np.float64))

        return in_parts(scored, predictions.need_features(), predicted_class(predictions))

    def found(self) -> dict[str, Fact]:
        return {"classes without a pattern": self.missing}

    @property
    def notes(self) -> tuple[str, ...]:
        return unlearnt_classes(self.missing, len(self.patterns))


def fit_she(training: Training) -> She:
    """Mean features of the training images of each class that were classified correctly (Zhang et al., 2023)."""
    rows = rows_classified_correctly(training, Predictions.need_features)
    learnt = class_means(rows, width_of(training, Predictions.need_logits))
    return She(learnt.means.astype(np.float32), learnt.missing)
