"""How often the right class is on top: over all images, for each class, for each group, and what it is mistaken for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types import Labels, Logits

_ROWS_AT_ONCE = 2048  # keeps the comparisons of a thousand classes within the processor's cache


class Tally(NamedTuple):
    """How many images of each class or group were right, of how many."""

    right: NDArray[np.integer]  # (groups,) or (models, groups)
    total: NDArray[np.integer]  # of the same shape, or (groups,) for all models

    @property
    def accuracy(self) -> NDArray[np.floating]:
        """Share right, nan where there is no image."""
        shares = np.full(self.right.shape, np.nan)
        return np.asarray(np.divide(self.right, self.total, out=shares, where=self.total > 0))


def top_k_accuracy(labels: Labels, logits: Logits, *, k: int = 1) -> float:
    """Share of images with a right label among their `k` highest scores.

    1 is perfect. Labels are (images,) or, where several are right, (images, labels) padded with -1. Of equal scores the
    lower class index counts as higher; a score that is not a number is never right.

    >>> logits = np.array([[0.1, 0.7, 0.2], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    >>> top_k_accuracy(np.array([1, 1, 2]), logits)  # the second image ties, and class 0 comes first
    0.6666666666666666
    >>> top_k_accuracy(np.array([1, 1, 2]), logits, k=2)
    1.0
    """
    rows = label_rows(labels)
    if logits.ndim != 2 or len(logits) != len(rows):
        raise BadInput(f"logits should be ({len(rows)} images, classes), got shape {logits.shape}")
    if rows.max() >= logits.shape[1]:
        raise BadInput(f"label {rows.max()} is beyond the {logits.shape[1]} classes of the logits")
    allowed = min(_checked_k(k), logits.shape[1])
    starts = range(0, len(rows), _ROWS_AT_ONCE)
    parts = [slice(start, start + _ROWS_AT_ONCE) for start in starts]
    return sum(int((_classes_ahead(rows[part], logits[part]) < allowed).sum()) for part in parts) / len(rows)


def is_correct(labels: Labels, top_classes: NDArray[np.integer], *, k: int = 1) -> NDArray[np.bool_]:
    """Which images have a right label among their first `k` classes, (images,).

    `top_classes` is (images, classes kept), best first, as stored.

    >>> is_correct(np.array([4, 2]), np.array([[4, 1, 2], [0, 2, 1]]))
    array([ True, False])
    >>> is_correct(np.array([4, 2]), np.array([[4, 1, 2], [0, 2, 1]]), k=2)
    array([ True,  True])
    """
    rows = label_rows(labels)
    if top_classes.ndim != 2 or len(top_classes) != len(rows):
        raise BadInput(f"top classes should be ({len(rows)} images, classes kept), got shape {top_classes.shape}")
    matches = (rows[:, :, None] == top_classes[:, None, : _checked_k(k)]) & (rows >= 0)[:, :, None]
    return np.asarray(matches.any(axis=(1, 2)))


def per_class_accuracy(labels: Labels, correct: NDArray[np.bool_], *, classes: int) -> Tally:
    """Right and total of each class; an image with several right labels counts once in each of them.

    >>> tally = per_class_accuracy(np.array([0, 0, 2]), np.array([True, False, True]), classes=3)
    >>> tally.accuracy
    array([0.5, nan, 1. ])
    """
    rows = label_rows(labels)
    _check_places(rows, classes)
    images, columns = np.nonzero(rows >= 0)
    # labels of a row may repeat, where classes of the images were merged into one
    images, places = np.divmod(np.unique(images * classes + rows[images, columns]), classes)
    right = np.bincount(places[correct[images]], minlength=classes)
    return Tally(right, np.bincount(places, minlength=classes))


def grouped_accuracy(correct: NDArray[np.bool_], groups: NDArray[np.integer]) -> Tally:
    """Right and total of each group; `groups` is the group of each image, -1 for an image in none.

    >>> grouped_accuracy(np.array([True, False, True, True]), np.array([0, 0, 1, -1])).accuracy
    array([0.5, 1. ])
    """
    inside = groups >= 0
    count = int(groups.max(initial=-1)) + 1
    return Tally(np.bincount(groups[inside & correct], minlength=count), np.bincount(groups[inside], minlength=count))


def worst_group(tally: Tally, *, at_least: int = 1) -> int | None:
    """The group with the lowest accuracy of those with `at_least` images, of equals the largest; None if there is none.

    >>> worst_group(Tally(np.array([0, 4, 5]), np.array([2, 8, 10])), at_least=5)  # 0 of 2 says too little
    2
    """
    eligible = np.flatnonzero(tally.total >= max(at_least, 1))
    if not len(eligible):
        return None
    order = np.lexsort((-tally.total[eligible], tally.accuracy[eligible]))
    return int(eligible[order[0]])


def confusion_counts(labels: Labels, predicted: NDArray[np.integer], *, classes: int) -> NDArray[np.integer]:
    """How many images of each class were taken for each class, (classes, classes predicted).

    Of several right labels the one predicted counts, or else the first.

    >>> confusion_counts(np.array([0, 0, 1]), np.array([0, 1, 1]), classes=2)
    array([[1, 1],
           [0, 1]])
    """
    true = true_class(labels, predicted)
    _check_places(np.append(true, predicted), classes)
    return np.bincount(true * classes + predicted, minlength=classes**2).reshape(classes, classes)


def true_class(labels: Labels, predicted: NDArray[np.integer]) -> NDArray[np.integer]:
    """The one class each image is counted under: the predicted one where it is right, else its first label.

    >>> true_class(np.array([[3, 5], [3, -1]]), np.array([5, 5]))
    array([5, 3])
    """
    rows = label_rows(labels)
    first = rows[np.arange(len(rows)), (rows >= 0).argmax(axis=1)]
    return np.where(is_correct(rows, predicted[:, None]), predicted, first)


def _classes_ahead(rows: Labels, logits: Logits) -> NDArray[np.integer]:
    """How many classes stand before the best-placed right label, (images,)."""
    classes = logits.shape[1]
    places = np.arange(classes)
    best = np.full(len(rows), classes)
    for column in rows.T:
        own = np.take_along_axis(logits, np.maximum(column, 0)[:, None], axis=1)
        # what is not behind is ahead, so that a score that is not a number puts its label last
        behind = (logits < own) | ((logits == own) & (places >= column[:, None]))
        best = np.minimum(best, np.where(column >= 0, classes - behind.sum(axis=1), classes))
    return best


def label_rows(labels: Labels) -> Labels:
    rows = labels[:, None] if labels.ndim == 1 else labels
    if rows.ndim != 2 or rows.size == 0:
        raise BadInput(f"labels should be (images,) or (images, labels) of at least one image, got shape {labels.shape}")
    unlabelled = int((rows < 0).all(axis=1).sum())
    if unlabelled:
        raise BadInput(f"{unlabelled} of {len(rows)} images have no label; leave them out before asking for accuracy")
    return rows


def _check_places(places: NDArray[np.integer], classes: int) -> None:
    if places.max() >= classes:
        raise BadInput(f"class {places.max()} is beyond the {classes} classes counted")


def _checked_k(k: int) -> int:
    if k < 1:
        raise BadInput(f"k should be at least 1, got {k}")
    return k
