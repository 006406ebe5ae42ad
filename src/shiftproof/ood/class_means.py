"""Class means and covariances of training features, learnt in passes over them, and detectors of class templates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import NotKept
from shiftproof.ood.entry import Fitted, OODDetector
from shiftproof.ood.graph import Graph, Tensor
from shiftproof.ood.inputs import by_probabilities, in_parts, parts_of, probabilities_of
from shiftproof.ood.shared import learnt_once
from shiftproof.types import Fact, Features, OODScores, Predictions, Training

ClassRows = tuple[NDArray[np.floating], NDArray[np.integer]]
"""Rows, (images, columns), and the class that each counts for, (images,)."""

RowsOf = Callable[[Predictions], NDArray[np.floating]]


@dataclass(frozen=True)
class ClassMeans:
    """The mean row of each class; zero for a class without images."""

    means: NDArray[np.floating]  # (classes, columns), in double precision
    images: NDArray[np.integer]  # (classes,)

    @property
    def missing(self) -> int:
        """Classes without images."""
        return int((self.images == 0).sum())


def class_means(blocks: Iterable[ClassRows], classes: int) -> ClassMeans:
    """Means over all blocks.

    >>> means = class_means([(np.array([[1.0], [3.0], [5.0]]), np.array([2, 2, 0]))], classes=3)
    >>> means.means.ravel(), means.images
    (array([5., 0., 2.]), array([1, 0, 2]))
    """
    sums: NDArray[np.floating] | None = None
    images = np.zeros(classes, np.int64)
    for rows, of_class in blocks:
        if sums is None:
            sums = np.zeros((classes, rows.shape[1]))
        # row by row: sorting rows by class first takes several times as long as adding them does
        for row, label in zip(rows, of_class.tolist(), strict=True):
            sums[label] += row
        images += np.bincount(of_class, minlength=classes)
    if sums is None or not images.any():
        raise NotKept("no training image can be learnt from: none was classified correctly, or there is none")
    return ClassMeans(sums / np.maximum(images, 1)[:, None], images)


def width_of(training: Training, rows_of: RowsOf) -> int:
    """How many columns the rows of the training images have."""
    for block in training.blocks():
        return int(rows_of(block).shape[1])
    raise NotKept("there are no training images to learn from")


def predicted_class(predictions: Predictions) -> NDArray[np.integer]:
    """The class with the highest score, (images,); of equal ones the lower index."""
    return np.asarray(predictions.need_logits().argmax(axis=1))


def rows_by_predicted_class(training: Training, rows_of: RowsOf) -> Iterator[ClassRows]:
    """All training images, each counted for the class it was predicted as; labels are not needed."""
    for block in training.blocks():
        yield rows_of(block), predicted_class(block)


def rows_by_label(training: Training, rows_of: RowsOf) -> Iterator[ClassRows]:
    """All training images that have a label, each counted once for every label it has."""
    for block in labelled_blocks(training):
        images, columns = np.nonzero(block.labels >= 0)
        yield _taken(rows_of(block), images), block.labels[images, columns]


def _taken(rows: NDArray[np.floating], images: NDArray[np.integer]) -> NDArray[np.floating]:
    """The rows of these images, without copying where they are all of them in order."""
    return rows if len(images) == len(rows) and (np.diff(images) == 1).all() else rows[images]


def rows_classified_correctly(training: Training, rows_of: RowsOf) -> Iterator[ClassRows]:
    """The training images that were predicted as one of their labels."""
    for block in labelled_blocks(training):
        predicted = predicted_class(block)
        right = (block.labels == predicted[:, None]).any(axis=1)
        yield rows_of(block)[right], predicted[right]


def labelled_blocks(training: Training) -> Iterator[Predictions]:
    """The blocks of training images; NotKept at their end where no image of them all has a label."""
    any_label = False
    for block in training.blocks():
        any_label |= bool(block.labelled.any())
        yield block
    if not any_label:
        raise NotKept("it is fitted on the images of each class, and the training images have no labels")


def unlearnt_classes(missing: int, classes: int) -> tuple[str, ...]:
    """A note where some classes have no training images.

    >>> unlearnt_classes(800, 1000)
    ('800 of 1,000 classes have no training images; images predicted as one of them count as OOD',)
    """
    lacking = f"{missing:,} of {classes:,} classes have no training images"
    return (f"{lacking}; images predicted as one of them count as OOD",) if missing else ()


@dataclass(frozen=True)
class KLMatching(Fitted):
    """Typical probabilities, one row for each class that some training image was predicted as."""

    log_templates: NDArray[np.floating]  # (templates, classes)

    def __call__(self, predictions: Predictions) -> OODScores:
        """Divergence KL(p || template) from the template nearest in that sense, in nats."""

        def scored(probabilities: NDArray[np.floating]) -> OODScores:
            logarithms = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
            negative_entropy = (probabilities * logarithms).sum(axis=1)
            return np.asarray(negative_entropy - (probabilities @ self.log_templates.T).max(axis=1))

        return by_probabilities(predictions, scored)

    def graph(self, graph: Graph) -> Tensor:
        probabilities = graph.probabilities()
        return probabilities.negative_entropy() - (probabilities @ self.log_templates.T).max()

    def found(self) -> dict[str, Fact]:
        return {"templates": len(self.log_templates)}


def fit_kl_matching(training: Training) -> KLMatching:
    """Minimum KL divergence to the class templates, mean probabilities by predicted class (Hendrycks et al., 2022).

    Labels are not needed. A class that no training image was predicted as has no template.
    """
    learnt = class_means(rows_by_predicted_class(training, probabilities_of), width_of(training, Predictions.need_logits))
    templates = learnt.means[learnt.images > 0]
    # no template quite excludes a class: 0 times minus infinity is not a number
    return KLMatching(np.log(np.maximum(templates, np.finfo(np.float64).tiny)))


KL_MATCHING = OODDetector("KL-matching", fit_kl_matching, needs_training=True)


@dataclass(frozen=True)
class She(Fitted):
    """The pattern of each class: its mean training features, or zeros where there are none to remember."""

    patterns: Features  # (classes, features)
    missing: int

    def __call__(self, predictions: Predictions) -> OODScores:
        """Minus the inner product of the features and the pattern of the predicted class.

        A class without a pattern gives 0. Features behind a ReLU are never negative, so no score is higher.
        """

        def scored(features: Features, predicted: NDArray[np.integer]) -> OODScores:
            return np.asarray(-np.einsum("ij,ij->i", features, self.patterns[predicted], dtype=np.float64))

        return in_parts(scored, predictions.need_features(), predicted_class(predictions))

    def graph(self, graph: Graph) -> Tensor:
        patterns = graph.rows(self.patterns, graph.scores.argmax())
        return -(graph.features.double() * patterns.double()).sum()

    def found(self) -> dict[str, Fact]:
        return {"classes without a pattern": self.missing}

    @property
    def notes(self) -> tuple[str, ...]:
        return unlearnt_classes(self.missing, len(self.patterns))


def fit_she(training: Training) -> She:
    """Minus the inner product with the mean correct training features of the predicted class (SHE; Zhang et al., 2023)."""
    rows = rows_classified_correctly(training, Predictions.need_features)
    learnt = class_means(rows, width_of(training, Predictions.need_logits))
    return She(learnt.means.astype(np.float32), learnt.missing)


SHE = OODDetector("SHE", fit_she, needs_training=True)


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

    @cached_property
    def overall(self) -> OverallMoments:
        """Mean and covariance of all these images, whatever their class."""
        rows = int(self.images.sum())
        mean = self.images @ self.centres / rows
        apart = (self.centres - mean) * np.sqrt(self.images / rows)[:, None]
        return OverallMoments(rows, mean, self.tied + apart.T @ apart)


@learnt_once
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
    scatter /= rows
    scatter -= np.outer(shift, shift)
    return OverallMoments(rows, near + shift, scatter)


@learnt_once
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
