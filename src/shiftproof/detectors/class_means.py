"""What training images of each class have in common, learnt in walks over them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import NotKept
from shiftproof.types import Predictions, Training

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
    """All training images, each counted for the class it was predicted as; labels are not asked for."""
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
        raise NotKept("it learns each class from its own images, and the training images have no labels")


def unlearnt_classes(missing: int, classes: int) -> tuple[str, ...]:
    """What to know where some classes had no training image to learn from.

    >>> unlearnt_classes(800, 1000)
    ('of 800 of 1,000 classes nothing was learnt, and whatever is predicted as one of them counts as foreign',)
    """
    lacking = f"of {missing:,} of {classes:,} classes nothing was learnt"
    return (f"{lacking}, and whatever is predicted as one of them counts as foreign",) if missing else ()
