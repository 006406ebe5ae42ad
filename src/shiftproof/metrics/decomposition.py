"""What an AUROC is made of: right and wrong answers inside, several groups outside (Yang et al., 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.separation import auroc
from shiftproof.types import AnomalyScores


class DecomposedAuroc(NamedTuple):
    """AUROC of outside images against inside ones that are answered right, and against those that are answered wrong."""

    correct: float  # nan where no inside image is
    wrong: float  # nan where no inside image is
    accuracy: float

    @property
    def whole(self) -> float:
        """AUROC against all inside images, which is what the parts add up to.

        >>> round(DecomposedAuroc(86.9, 54.7, accuracy=0.7613).whole, 1)  # published of MSP and a ResNet-50
        79.2
        """
        weighed = ((self.accuracy, self.correct), (1 - self.accuracy, self.wrong))
        return sum(share * part for share, part in weighed if share)


def decomposed_auroc(in_scores: AnomalyScores, correct: NDArray[np.bool_], out_scores: AnomalyScores) -> DecomposedAuroc:
    """AUROC against the inside images answered right and against those answered wrong.

    Wrong answers look foreign too, so a detector may find new classes or only find mistakes: the parts tell which.

    >>> decomposed_auroc(np.array([1, 2, 6]), np.array([True, True, False]), np.array([5, 7]))
    DecomposedAuroc(correct=1.0, wrong=0.5, accuracy=0.6666666666666666)
    """
    if correct.shape != np.shape(in_scores) or correct.dtype != np.bool_:
        raise BadInput(
            f"correct should say yes or no of each of {len(in_scores)} inside images, got {correct.dtype} {correct.shape}"
        )
    right, wrong = (auroc(in_scores[chosen], out_scores) if chosen.any() else float("nan") for chosen in (correct, ~correct))
    return DecomposedAuroc(right, wrong, float(correct.mean()))


def pooled_auroc(parts: Sequence[float], images: Sequence[int]) -> float:
    """AUROC of several outside groups taken together, from that of each against the same inside images.

    >>> round(pooled_auroc([86.4, 86.9], [11_935, 31_807]), 2)  # wrong answers and new classes: failures, as published
    86.76
    """
    if len(parts) != len(images) or not sum(images):
        raise BadInput(f"each part needs its number of images, some of them above 0, got {len(parts)} and {list(images)}")
    return float(np.average(parts, weights=images))
