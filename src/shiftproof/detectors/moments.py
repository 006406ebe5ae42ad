"""Where training features lie and how they spread, learnt block by block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.class_means import class_means, rows_by_label, width_of
from shiftproof.detectors.parts import parts_of
from shiftproof.errors import NotKept
from shiftproof.types import Predictions, Training

Matrix = NDArray[np.floating]
"""In double precision."""

_ROWS_AT_ONCE = 4096  # so many rows outweigh adding the matrix they make


@dataclass(frozen=True)
class OverallMoments:
    """Mean and covariance of all rows; the covariance is divided by their number."""

    rows: int
    mean: Matrix  # (features,)
    covariance: Matrix  # (features, features)


@dataclass(frozen=True)
class ClassMoments:
    """The centre of each class that has images, and the covariance that they share."""

    images: NDArray[np.integer]  # (classes,): how many each centre is the mean of
    centres: Matrix  # (classes, features)
    tied: Matrix  # (features, features): of the images about the centres of their classes, divided by their number

    @property
    def overall(self) -> OverallMoments:
        """Mean and covariance of all these images, whatever their class."""
        rows = int(self.images.sum())
        mean = self.images @ self.centres / rows
        apart = (self.centres - mean) * np.sqrt(self.images / rows)[:, None]
        return OverallMoments(rows, mean, self.tied + apart.T @ apart)


def overall_moments_of(training: Training) -> OverallMoments:
    """Mean and covariance of the features of all training images, in one walk.

    In double precision, though single takes half the time: axes of nearly equal variance would change places from one
    division into blocks to another, and scores with them in their fifth digit.

    >>> from shiftproof.types import Top5
    >>> nothing = Top5(np.zeros((2, 1), int), np.zeros((2, 1)), np.zeros(2))
    >>> two = Predictions(("a", "b"), np.full((2, 1), -1), "logits", nothing, features=np.array([[1.0, 0.0], [3.0, 4.0]]))
    >>> found = overall_moments_of(two)
    >>> found.mean, found.covariance
    (array([2., 2.]), array([[1., 2.],
           [2., 4.]]))
    """
    near: Matrix | None = None
    rows = 0
    for features in (block.need_features() for block in training.blocks() if len(block)):
        if near is None:
            # sums about a point among the images: about a far one, few digits would be left of the spread
            near = features.mean(axis=0, dtype=np.float64)
            total, scatter = np.zeros(len(near)), np.zeros((len(near), len(near)))
            room = np.empty((_ROWS_AT_ONCE, len(near)))
        for part in parts_of(len(features), _ROWS_AT_ONCE):
            apart = np.subtract(features[part], near, out=room[: part.stop - part.start])
            total += apart.sum(axis=0)
            scatter += apart.T @ apart
        rows += len(features)
    if near is None:
        raise NotKept("there are no training images")
    shift = total / rows
    return OverallMoments(rows, near + shift, scatter / rows - np.outer(shift, shift))


def class_moments_of(training: Training) -> ClassMoments:
    """Centres and shared covariance of the classes, in two walks; NotKept where no image has a label.

    An image with several labels counts once in each of its classes; one without counts in none. Spread is taken about
    centres that are known by then and not as a difference of sums, mostly rounding where classes lie far apart.
    """
    found = class_means(rows_by_label(training, Predictions.need_features), width_of(training, Predictions.need_logits))
    scatter = np.zeros((found.means.shape[1],) * 2)
    for features, of_class in rows_by_label(training, Predictions.need_features):
        for part in parts_of(len(features), _ROWS_AT_ONCE):
            apart = found.means[of_class[part]]
            np.subtract(features[part], apart, out=apart)
            scatter += apart.T @ apart
    present = found.images > 0
    return ClassMoments(found.images[present], found.means[present], scatter / found.images.sum())
