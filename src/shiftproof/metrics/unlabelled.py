"""Accuracy on images without labels, from probabilities alone: the published estimates.

Each takes labelled images of one distribution (the *source*), and the probabilities of unlabelled ones (the *target*).
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.randomness import rng_for

Scores = NDArray[np.floating]
"""A confidence of each image, (images,): the higher, the likelier is its prediction correct."""


class ProbabilityRows(Protocol):
    """Probabilities of all classes, (images, classes), that are asked for by parts: an array, or what makes them then."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: NDArray[np.int64], /) -> NDArray[np.floating]: ...


AT_ONCE = 1000
"""Images that are assigned to labels at once: the work grows with the cube of them."""

QUANTILE = 0.975
"""How likely a class has at most as many images as its limit."""


def negative_entropy(probabilities: NDArray[np.floating]) -> Scores:
    """Sum of p log p over the classes, at most 0.

    >>> negative_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3)
    array([ 0.   , -0.693])
    """
    logarithms = np.log(np.where(probabilities > 0, probabilities, 1.0))
    return np.asarray((probabilities * logarithms).sum(axis=1))


def average_confidence(probabilities: NDArray[np.floating]) -> float:
    """Mean probability of the predicted class (AC).

    >>> average_confidence(np.array([[0.75, 0.25], [0.5, 0.5]]))
    0.625
    """
    return float(_some(probabilities).max(axis=1).mean())


def difference_of_confidences(
    source: NDArray[np.floating], correct: NDArray[np.bool_], target: NDArray[np.floating]
) -> float:
    """The source's accuracy less the fall of the average confidence (DoC, Guillory et al. 2021), within 0 and 1.

    >>> difference_of_confidences(np.array([[0.75, 0.25]]), np.array([True]), np.array([[0.5, 0.5]]))
    0.75
    """
    estimate = float(correct.mean()) - (average_confidence(source) - average_confidence(target))
    return min(max(estimate, 0.0), 1.0)


def atc_threshold(scores: Scores, correct: NDArray[np.bool_]) -> float:
    """The score below which there are as many images of the source as it has errors.

    >>> atc_threshold(np.array([0.9, 0.4, 0.8, 0.6]), np.array([True, True, True, False]))  # one error, so one below
    0.5
    """
    ordered = np.sort(_some(scores))
    errors = int((~correct).sum())
    if errors == 0:
        return -np.inf
    if errors == len(ordered):
        return np.inf
    return float((ordered[errors - 1] + ordered[errors]) / 2)


def average_thresholded_confidence(source: Scores, correct: NDArray[np.bool_], target: Scores) -> float:
    """Share of the target above the threshold that gives the source its own accuracy (ATC, Garg et al. 2022).

    With `target` the source itself it is the accuracy of the source, where no two scores are equal:

    >>> scores, correct = np.array([0.9, 0.4, 0.8, 0.6]), np.array([True, True, True, False])
    >>> average_thresholded_confidence(scores, correct, scores)
    0.75
    >>> average_thresholded_confidence(scores, correct, np.array([0.45, 0.7]))
    0.5
    """
    return float((_some(target) > atc_threshold(source, correct)).mean())


def confidence_by_transport(probabilities: ProbabilityRows, label_shares: NDArray[np.floating]) -> float:
    """Mean probability of labels that are shared out as in the source, to the images that they suit best.

    COT of Lu et al. (2023), 1 less the optimal transport cost between predictions and labels. More than a thousand images
    are taken by parts.

    >>> alike = np.array([[0.9, 0.1], [0.8, 0.2]])  # both look like class 0, but only half of the source is
    >>> round(confidence_by_transport(alike, np.array([0.5, 0.5])), 3)  # .9 and .2
    0.55
    """
    labels = np.arange(len(label_shares))
    return float(_assigned(probabilities, lambda images: np.repeat(labels, _shared_out(label_shares, images))).mean())


def likeliest_within_limits(
    probabilities: ProbabilityRows, label_shares: NDArray[np.floating], *, at_once: int = AT_ONCE
) -> Scores:
    """Of each image the probability of its label, where no class has more images than chance would give it.

    Labels are the likeliest together that keep these limits: of a class the 97.5 % quantile of how many images it has by
    `label_shares`. A model that calls everything by a few names, as under strong shifts, is not believed; unlike
    `confidence_by_transport` it asks for no exact shares, which are unknown where classes are many and images few.

    Images are taken by parts of `at_once`, or all where they are fewer. Limits are the looser the smaller a part is, so two
    datasets are compared by parts of one size.

    >>> alike = np.array([[0.9, 0.1]] * 8)  # of eight images at most seven are of a class that half of the images have
    >>> sorted(likeliest_within_limits(alike, np.array([0.5, 0.5])).tolist())
    [0.1, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9]
    """
    labels = np.arange(len(label_shares))
    return _assigned(probabilities, lambda images: np.repeat(labels, class_limits(label_shares, images)), at_once)


def class_limits(shares: NDArray[np.floating], images: int) -> NDArray[np.int64]:
    """The most images that chance would give classes of these shares: the 97.5 % quantile, at least 1.

    >>> class_limits(np.array([0.5, 0.001]), 8)  # eight of eight have a chance of 0.4 %, seven or more of 3.5 %
    array([7, 1])
    """
    from scipy.special import bdtr

    limits = np.zeros(len(shares), dtype=np.int64)
    open_ones = np.arange(len(shares))
    while len(open_ones):  # a step of one: limits are small where classes are many
        limits[open_ones] += 1
        within = bdtr(limits[open_ones], images, shares[open_ones]) < QUANTILE
        open_ones = open_ones[within & (limits[open_ones] < images)]
    return limits


def smoothed_shares(labels: NDArray[np.integer], classes: int) -> NDArray[np.floating]:
    """Shares of the classes, each counted once more than it was seen: one that was not seen is not impossible.

    >>> smoothed_shares(np.array([0, 0, 1]), 3)
    array([0.5       , 0.33333333, 0.16666667])
    """
    return np.asarray((np.bincount(labels, minlength=classes) + 1) / (len(labels) + classes))


def parts_of(images: int, at_once: int) -> list[NDArray[np.int64]]:
    """Places of the images of each part, drawn at random: `at_once` in each, or all where there are fewer.

    The last part is filled up with images of the one before, so that all are of one size.

    >>> [len(part) for part in parts_of(7, 3)], len(np.unique(np.concatenate(parts_of(7, 3))))
    ([3, 3, 3], 7)
    """
    order, size = rng_for("transport", "unlabelled", 0).permutation(images), min(at_once, images)
    return [order[min(start, images - size) :][:size] for start in range(0, images, size)]


def _assigned(probabilities: ProbabilityRows, labels: Callable[[int], NDArray[np.int64]], at_once: int = AT_ONCE) -> Scores:
    """Probability of the label of each image, by the best assignment of the labels that there are for a part."""
    from scipy.optimize import linear_sum_assignment

    images = len(_some(probabilities))
    places, found, times = labels(min(at_once, images)), np.zeros(images), np.zeros(images)
    for part in parts_of(images, at_once):
        chances = probabilities[part][:, places]
        rows, columns = linear_sum_assignment(chances, maximize=True)
        found[part[rows]] += chances[rows, columns]
        times[part] += 1
    return found / times


def _shared_out(shares: NDArray[np.floating], images: int) -> NDArray[np.int64]:
    """Whole numbers in these proportions that add up to `images`, by largest remainders.

    >>> _shared_out(np.array([0.5, 0.3, 0.2]), 4)
    array([2, 1, 1])
    """
    exact = shares / shares.sum() * images
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    largest = np.argsort(counts - exact, kind="stable")[: images - int(counts.sum())]
    counts[largest] += 1
    return counts


Some = TypeVar("Some", bound=Sized)


def _some(values: Some) -> Some:
    if not len(values):
        raise BadInput("an accuracy is estimated from at least one image, got none")
    return values
