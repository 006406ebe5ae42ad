"""Conformal prediction: sets of classes that hold the true one with a promised probability, on images like these."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.likelihood import best_right
from shiftproof.types import Labels

Probabilities = NDArray[np.floating]
"""Of every class, (images, classes), 0 to 1."""


def least_probability(labels: Labels, probabilities: Probabilities, *, coverage: float = 0.9) -> float:
    """The probability that classes of a prediction set have at least (split conformal; Sadinle et al., 2019).

    Sets of so probable classes hold the true class of a new image with a probability of at least `coverage`, where new
    images are exchangeable with these, whatever the model. Of several correct labels the most probable counts. With too few
    images for the promise it is 0: every class is in every set.

    >>> probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
    >>> least_probability(np.array([0, 1, 1, 0]), probabilities, coverage=0.5)  # 3 of 4 + 1 true classes: 0.9, 0.8, 0.7
    0.7
    >>> least_probability(np.array([0, 1, 1, 0]), probabilities, coverage=0.9)  # that would take nine images
    0.0
    """
    if not 0 < coverage < 1:
        raise BadInput(f"coverage is a share between 0 and 1, such as 0.9; got {coverage}")
    right = np.sort(best_right(labels, probabilities))[::-1]
    # rounding must not ask for one image more: 0.9 of 10 are 9
    needed = math.ceil((len(right) + 1) * coverage - 1e-9)
    return float(right[needed - 1]) if needed <= len(right) else 0.0


def prediction_sets(probabilities: Probabilities, least: float) -> NDArray[np.bool_]:
    """Which classes are in the set of each image, (images, classes): all that are at least so probable.

    >>> prediction_sets(np.array([[0.9, 0.1], [0.6, 0.4]]), 0.4).tolist()
    [[True, False], [True, True]]
    """
    return np.asarray(probabilities >= least)


def covered(labels: Labels, probabilities: Probabilities, least: float) -> NDArray[np.bool_]:
    """Whether the set of each image holds a correct class, (images,).

    >>> covered(np.array([0, 1]), np.array([[0.9, 0.1], [0.6, 0.4]]), 0.5)
    array([ True, False])
    """
    return np.asarray(best_right(labels, probabilities) >= least)
