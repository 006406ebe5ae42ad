"""Labels that are likely wrong, by confident learning (Northcutt et al., 2021), from out-of-sample probabilities.

A label may be one class of an image or several, any of which is correct: labels are (images, labels), padded with -1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import in_blocks
from shiftproof.errors import BadInput
from shiftproof.metrics.likelihood import ROWS_AT_ONCE
from shiftproof.types import Labels

Probabilities = NDArray[np.floating]
"""Of every class, (images, classes)."""

NONE = -1
"""In place of a class: of none, a probability reaches the threshold."""

NEARLY = 1e-6
"""How far below a threshold a probability may lie to reach it: that of a class's only image is the threshold itself."""


def given_labels(labels: Labels, probabilities: Probabilities) -> NDArray[np.integer]:
    """The label that each image is held to, (images,): of several the likeliest.

    >>> given_labels(np.array([[0, -1], [0, 1]]), np.array([[0.3, 0.7], [0.3, 0.7]]))
    array([0, 1])
    """
    if not (labels >= 0).any(axis=1).all():
        raise BadInput("every image should have a label to be judged by; leave out those without")
    own = np.where(labels >= 0, np.take_along_axis(probabilities, np.maximum(labels, 0), axis=1), -1.0)
    return np.asarray(np.take_along_axis(labels, own.argmax(axis=1)[:, None], axis=1)[:, 0])


def self_confidence(labels: Labels, probabilities: Probabilities) -> NDArray[np.floating]:
    """Probability of each image's label, (images,); the lower, the likelier is the label wrong.

    >>> self_confidence(np.array([[0], [1]]), np.array([[0.75, 0.25], [0.75, 0.25]]))
    array([0.75, 0.25])
    """
    given = given_labels(labels, probabilities)
    return np.asarray(probabilities[np.arange(len(given)), given])


def class_thresholds(labels: Labels, probabilities: Probabilities, *, least: int = 1) -> NDArray[np.floating]:
    """Mean probability of each class over the images labelled as it, (classes,).

    Infinite for a class of fewer than the `least` images: of one, its threshold would be its own probability.

    >>> class_thresholds(np.array([[0], [0], [1]]), np.array([[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]))
    array([0.5, 0.5])
    """
    given, classes = given_labels(labels, probabilities), probabilities.shape[1]
    images = np.bincount(given, minlength=classes)
    total = np.bincount(given, probabilities[np.arange(len(given)), given], minlength=classes)
    return np.asarray(np.where(images >= max(least, 1), total / np.maximum(images, 1), np.inf))


def confident_classes(labels: Labels, probabilities: Probabilities, *, least: int = 1) -> NDArray[np.integer]:
    """The class that each image confidently is of, (images,): its probability reaches the threshold of the class.

    Of several such classes the likeliest; -1 where there is none.

    >>> confident_classes(np.array([[0], [0], [1]]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]))
    array([0, 1, 1])
    """
    thresholds = class_thresholds(labels, probabilities, least=least)
    found = np.full(len(probabilities), NONE)
    for start, rows in in_blocks(probabilities, ROWS_AT_ONCE):
        reached = np.where(rows >= thresholds - NEARLY, rows, -1.0)
        found[start : start + len(rows)] = np.where(reached.max(axis=1) >= 0, reached.argmax(axis=1), NONE)
    return found


class ConfidentJoint(NamedTuple):
    """How many images of each label are confidently of which class; pairs without any are left out."""

    given: NDArray[np.integer]  # the label of each pair
    confident: NDArray[np.integer]  # the class
    images: NDArray[np.integer]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which pairs are of a label and another class."""
        return np.asarray(self.given != self.confident)


def confident_joint(labels: Labels, probabilities: Probabilities, *, least: int = 1) -> ConfidentJoint:
    """Images counted by their label and the class that they confidently are of; those of no such class are left out.

    >>> confident_joint(np.array([[0], [0], [1]]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])).images
    array([1, 1, 1])
    """
    given, confident = given_labels(labels, probabilities), confident_classes(labels, probabilities, least=least)
    sure = confident >= 0
    classes = probabilities.shape[1]
    codes, images = np.unique(given[sure] * classes + confident[sure], return_counts=True)
    return ConfidentJoint(codes // classes, codes % classes, images)


def label_error_rate(labels: Labels, probabilities: Probabilities, *, least: int = 1) -> float:
    """Estimated share of labels that are wrong; 0 is best.

    Of the images of each label, the share that is confidently of another class, among those that are confidently of any.

    >>> label_error_rate(np.array([[0], [0], [1]]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]]))  # 1/2 of 2, 0 of 1
    0.3333333333333333
    """
    joint, classes = confident_joint(labels, probabilities, least=least), probabilities.shape[1]
    counts = np.bincount(given_labels(labels, probabilities), minlength=classes)
    wrong = np.bincount(joint.given, joint.images * joint.wrong, minlength=classes)
    right = np.bincount(joint.given, joint.images * ~joint.wrong, minlength=classes)
    # a class none of whose images is confidently its own still has one that is: nothing is known of it otherwise
    shares = wrong / np.maximum(wrong + np.maximum(right, 1), 1)
    return float((shares * counts).sum() / counts.sum())


class RankedLabels(NamedTuple):
    """Images by how likely their label is wrong, the likeliest first."""

    order: NDArray[np.intp]  # places of the images
    self_confidence: NDArray[np.floating]  # of each image, not in this order
    suggested: NDArray[np.integer]  # the class that the probabilities are for instead, of each image
    confident: NDArray[np.bool_]  # whether it reaches its threshold and is no label of the image


def rank_label_errors(labels: Labels, probabilities: Probabilities, *, least: int = 1) -> RankedLabels:
    """All images, the one whose label has the least probability first.

    >>> rank_label_errors(np.array([[0], [0], [1]]), np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])).order
    array([1, 2, 0])
    """
    own, best = self_confidence(labels, probabilities), np.zeros(len(labels), np.intp)
    for start, some in in_blocks(probabilities, ROWS_AT_ONCE):
        others, given = some.copy(), labels[start : start + len(some)]
        rows, columns = np.nonzero(given >= 0)
        others[rows, given[rows, columns]] = -1.0
        best[start : start + len(some)] = others.argmax(axis=1)
    confident = confident_classes(labels, probabilities, least=least)
    elsewhere = (confident >= 0) & ~(labels == confident[:, None]).any(axis=1)
    return RankedLabels(np.argsort(own, kind="stable"), own, np.where(elsewhere, confident, best), elsewhere)
