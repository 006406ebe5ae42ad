"""Several detectors as one: scores of different scales, brought to one scale by what they say of training images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from shiftproof.errors import BadInput, NotKept
from shiftproof.types import AnomalyScores, Predictions, Training


@dataclass(frozen=True)
class Ensemble:
    """Detectors with the mean and the standard deviation of their scores over the training images."""

    members: tuple[Callable[[Predictions], AnomalyScores], ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]

    def __call__(self, predictions: Predictions) -> AnomalyScores:
        """Mean of the members' scores, each counted in standard deviations above its mean."""
        each = zip(self.members, self.means, self.spreads, strict=True)
        return np.asarray(np.mean([(score(predictions) - mean) / spread for score, mean, spread in each], axis=0))


def fit_ensemble(training: Training, members: Mapping[str, Callable[[Predictions], AnomalyScores]]) -> Ensemble:
    """The members on one scale; they are fitted already, by name."""
    if len(members) < 2:
        raise BadInput(f"an ensemble takes two or more different detectors, got {', '.join(members) or 'none'}")
    scored = [[score(block) for score in members.values()] for block in training.blocks()]
    if not scored:
        raise NotKept("there are no training images to learn from")
    scores = [np.concatenate(blocks).astype(np.float64) for blocks in zip(*scored, strict=True)]
    alike = [name for name, one in zip(members, scores, strict=True) if not one.std() > 0]
    if alike:
        raise NotKept(f"{alike[0]} says the same of every training image, so its scale is unknown")
    return Ensemble(
        tuple(members.values()), tuple(float(one.mean()) for one in scores), tuple(float(one.std()) for one in scores)
    )
