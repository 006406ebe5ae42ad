"""Accuracy: over all images, by class and by group, confusions, and two models on the same images (paired tests)."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import FEW, in_blocks
from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import (
    LEAST_CLUSTERS,
    Groups,
    cluster_sizes,
    cluster_spread,
    normal_quantile,
    student_quantile,
)
from shiftproof.types import Gives, Labels, Logits, Top5

_ROWS_AT_ONCE = 2048  # keeps the comparisons of a thousand classes within the processor's cache


class Tally(NamedTuple):
    """Correct images of each class or group, of how many."""

    right: NDArray[np.integer]  # (groups,) or (models, groups)
    total: NDArray[np.integer]  # of the same shape, or (groups,) for all models

    @property
    def accuracy(self) -> NDArray[np.floating]:
        """Accuracy, nan where there is no image."""
        shares = np.full(self.right.shape, np.nan)
        return np.asarray(np.divide(self.right, self.total, out=shares, where=self.total > 0))


def top_k_accuracy(labels: Labels, logits: Logits, *, k: int = 1) -> float:
    """Share of images with a correct label among their `k` highest scores.

    1 is perfect. Labels are (images,) or, where several are correct, (images, labels) padded with -1. Of equal scores the
    lower class index counts as higher; a score that is not a number is never correct.

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
    """Which images have a correct label among their first `k` classes, (images,).

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
    """Correct and total of each class; an image with several correct labels counts once in each of them.

    >>> tally = per_class_accuracy(np.array([0, 0, 2]), np.array([True, False, True]), classes=3)
    >>> tally.accuracy
    array([0.5, nan, 1. ])
    """
    rows = label_rows(labels)
    _check_places(rows, classes)
    if rows.shape[1] == 1:
        # counted some at a time, where there may be millions; unlabelled images as a class behind the others
        right = total = np.zeros(classes + 1, np.int64)
        for start, some in in_blocks(rows[:, 0], FEW):
            places = np.where(some < 0, classes, some)
            total = total + np.bincount(places, minlength=classes + 1)
            right = right + np.bincount(places[correct[start : start + len(some)]], minlength=classes + 1)
        return Tally(right[:classes], total[:classes])
    images, columns = np.nonzero(rows >= 0)
    # labels of a row may repeat, where classes of the images were merged into one
    images, places = np.divmod(np.unique(images * classes + rows[images, columns]), classes)
    right = np.bincount(places[correct[images]], minlength=classes)
    return Tally(right, np.bincount(places, minlength=classes))


def grouped_accuracy(correct: NDArray[np.bool_], groups: NDArray[np.integer]) -> Tally:
    """Correct and total of each group; `groups` is the group of each image, -1 for an image in none.

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
    """How many images of each class were predicted as each class, (classes, classes predicted).

    Of several correct labels the one predicted counts, or else the first.

    >>> confusion_counts(np.array([0, 0, 1]), np.array([0, 1, 1]), classes=2)
    array([[1, 1],
           [0, 1]])
    """
    true = true_class(labels, predicted)
    _check_places(np.append(true, predicted), classes)
    return np.bincount(true * classes + predicted, minlength=classes**2).reshape(classes, classes)


def true_class(labels: Labels, predicted: NDArray[np.integer]) -> NDArray[np.integer]:
    """The one class each image is counted under: the predicted one where it is correct, else its first label.

    >>> true_class(np.array([[3, 5], [3, -1]]), np.array([5, 5]))
    array([5, 3])
    """
    rows = label_rows(labels)
    first = rows[np.arange(len(rows)), (rows >= 0).argmax(axis=1)]
    return np.where(is_correct(rows, predicted[:, None]), predicted, first)


def _classes_ahead(rows: Labels, logits: Logits) -> NDArray[np.integer]:
    """How many classes stand before the best-placed correct label, (images,)."""
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


def to_top5(scores: Logits, gives: Gives) -> Top5:
    """The five best classes of each image; ties break by the lower class index."""
    best = best_classes(scores, 5)
    if gives == "logits":
        peak = scores.max(axis=1, keepdims=True)
        peak = np.where(np.isfinite(peak), peak, 0)
        with np.errstate(divide="ignore"):  # where no class can win, the total is zero and its logarithm minus infinity
            log_total = np.log(np.exp(scores - peak, dtype=np.float64).sum(axis=1)) + peak[:, 0]
    else:
        log_total = np.full(len(scores), np.nan)
    return Top5(best, np.take_along_axis(scores, best, axis=1), log_total)


_FEW = 32
"""The classes that are looked for one after the other; more are sorted."""


def best_classes(scores: Logits, count: int) -> NDArray[np.integer]:
    """The classes with the highest scores, best first, (images, count); ties break by the lower class index.

    >>> best_classes(np.array([[1.0, 3.0, 3.0, 0.0, 3.0, 2.0]]), 2)
    array([[1, 2]])
    """
    if scores.shape[1] <= 4 * count or count > _FEW or scores.dtype.kind != "f":
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]
    # one after the other, in a tenth of the time of a partition
    left, rows, best = scores.copy(), np.arange(len(scores)), np.empty((len(scores), count), np.intp)
    # where one is not a number, or fewer are above minus infinity, a class would be taken twice
    doubtful = np.isnan(left.max(axis=1))
    for place in range(count):
        best[:, place] = left.argmax(axis=1)
        doubtful |= left[rows, best[:, place]] == -np.inf
        left[rows, best[:, place]] = -np.inf
    if doubtful.any():
        best[doubtful] = np.argsort(-scores[doubtful], axis=1, kind="stable")[:, :count]
    return best


Rightness: TypeAlias = NDArray[np.integer]
"""Outcome of each answer, (images, participants): 1 correct, 0 wrong, -1 where a participant did not answer."""

Subset = Literal["easy", "middle", "hard"]
SUBSETS: tuple[Subset, ...] = ("easy", "middle", "hard")
"""Correct by all participants who answered, by some of them, by none."""


def two_by_two(first: Rightness, second: Rightness) -> NDArray[np.integer]:
    """How many images two participants classified correctly, both over images that both answered, (2, 2).

    The first row is what the first participant got correct: with the second, and alone; the other what the first got wrong.

    >>> two_by_two(np.array([1, 1, 0, 0, 1]), np.array([1, 0, 1, 0, -1]))
    array([[1, 1],
           [1, 1]])
    """
    if first.shape != second.shape or first.ndim != 1:
        raise BadInput(f"answers of two participants should be (images,) for both, got {first.shape} and {second.shape}")
    both = (first >= 0) & (second >= 0)
    mine, theirs = first[both] == 1, second[both] == 1
    return np.array([[(mine & theirs).sum(), (mine & ~theirs).sum()], [(~mine & theirs).sum(), (~mine & ~theirs).sum()]])


def subsets_of(right: Rightness) -> NDArray[np.integer]:
    """The place in SUBSETS of each image, (images,); -1 where no participant answered.

    >>> subsets_of(np.array([[1, 1], [1, 0], [0, 0], [-1, 1], [-1, -1]]))
    array([ 0,  1,  2,  0, -1])
    """
    if right.ndim != 2:
        raise BadInput(f"answers should be (images, participants), got shape {right.shape}")
    answers, good = (right >= 0).sum(axis=1), (right == 1).sum(axis=1)
    found = np.where(good == 0, 2, np.where(good == answers, 0, 1))
    return np.where(answers == 0, -1, found)


class PairedCounts(NamedTuple):
    """Images by who classified them correctly."""

    both: int
    only_first: int
    only_second: int
    neither: int

    @property
    def images(self) -> int:
        return sum(self)

    @property
    def difference(self) -> float:
        """Accuracy of the first minus accuracy of the second."""
        return (self.only_first - self.only_second) / self.images


class PairedDifference(NamedTuple):
    """Accuracy of a first model minus that of a second on the same images."""

    difference: float
    interval: tuple[float, float] | None  # None of too few clusters
    p: float | None  # of the hypothesis that both are equally accurate


def paired_counts(first_correct: NDArray[np.bool_], second_correct: NDArray[np.bool_]) -> PairedCounts:
    """How many of the images both, only one or neither classified correctly; row by row the same images.

    >>> paired_counts(np.array([True, True, False]), np.array([True, False, False]))
    PairedCounts(both=1, only_first=1, only_second=0, neither=1)
    """
    if first_correct.shape != second_correct.shape or not len(first_correct):
        raise BadInput(
            f"two models are compared on the same images, at least one, got {len(first_correct)} and {len(second_correct)}"
        )
    both, first = int((first_correct & second_correct).sum()), int(first_correct.sum())
    second = int(second_correct.sum())
    return PairedCounts(both, first - both, second - both, len(first_correct) - first - second + both)


def mcnemar_p(only_first: int, only_second: int, *, mid_p: bool = False) -> float:
    """P-value of McNemar's test: of a split at least this uneven of the images that only one model classifies correctly.

    Exact (McNemar, 1947, by the binomial distribution): it errs too seldom rather than too often. `mid_p` counts the split
    itself by half, which is sharper and close to its level on average (Fagerland et al., 2013). 1 where they never differ.

    >>> mcnemar_p(5, 0)  # 2 / 2^5
    0.0625
    >>> mcnemar_p(5, 0, mid_p=True)
    0.03125
    """
    from scipy.special import bdtr, betaln

    fewer, images = min(only_first, only_second), only_first + only_second
    if fewer < 0:
        raise BadInput(f"counts of images cannot be negative, got {only_first} and {only_second}")
    if images == 0:
        return 1.0
    this_split = float(np.exp(-betaln(fewer + 1, images - fewer + 1) - images * np.log(2.0)) / (images + 1))
    if only_first == only_second:
        return 1 - this_split / 2 if mid_p else 1.0
    exact = min(1.0, 2 * float(bdtr(fewer, images, 0.5)))
    return exact - this_split if mid_p else exact


def difference_interval(counts: PairedCounts, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of the difference of two accuracies on the same images (Bonett & Price, 2012).

    A Wald interval after one image is added to each way of differing: close to its level also for few images, and never of
    no width.

    >>> low, high = difference_interval(PairedCounts(60, 20, 10, 10))
    >>> round(low, 3), round(high, 3)  # 10 / 102 +- 1.96 sqrt((32 / 102 - (10 / 102)^2) / 102)
    (-0.009, 0.205)
    """
    differing = (counts.only_first + counts.only_second) / counts.images
    middle, error = _adjusted(differing, counts.difference, counts.images)
    half = normal_quantile((1 + level) / 2) * error
    return max(-1.0, middle - half), min(1.0, middle + half)


def paired_difference(
    first_correct: NDArray[np.bool_],
    second_correct: NDArray[np.bool_],
    *,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> PairedDifference:
    """Difference of two accuracies on the same images, with its interval and p-value.

    Both are Bonett and Price's; of images in clusters Student's t with the variance by cluster (see `cluster_spread`). They
    agree, as McNemar's exact p-value would not: the interval leaves 0 out exactly where p is below one minus `level`. Of
    fewer than `LEAST_CLUSTERS` clusters there is neither.

    >>> first, second = np.arange(100) % 10 < 8, np.arange(100) % 10 < 7
    >>> found = paired_difference(first, second)
    >>> round(found.difference, 2), found.p < 0.01 < found.interval[0]
    (0.1, True)
    >>> copies = paired_difference(np.repeat(first, 9), np.repeat(second, 9), clusters=np.repeat(np.arange(100), 9))
    >>> bool(np.allclose(copies.interval, found.interval, atol=0.01))
    True
    """
    counts = paired_counts(first_correct, second_correct)
    if clusters is None or len(sizes := cluster_sizes(clusters)) == counts.images:
        differing = (counts.only_first + counts.only_second) / counts.images
        middle, error = _adjusted(differing, counts.difference, counts.images)
        return PairedDifference(
            counts.difference, difference_interval(counts, level=level), _two_sided_p(middle / error, np.inf)
        )
    if len(sizes) < LEAST_CLUSTERS:
        return PairedDifference(counts.difference, None, None)
    found = cluster_spread(first_correct.astype(float) - second_correct, clusters, lowest=-1.0)
    error, degrees = float(np.sqrt(found.variance)), len(sizes) - 1
    half = student_quantile((1 + level) / 2, degrees) * error
    bounds = max(-1.0, found.mean - half), min(1.0, found.mean + half)
    return PairedDifference(counts.difference, bounds, _two_sided_p(found.mean / error, degrees))


def _adjusted(differing: float, difference: float, images: float) -> tuple[float, float]:
    """Bonett and Price's centre and standard error: one image is added to each way of differing."""
    middle = difference * images / (images + 2)
    return middle, float(np.sqrt(((differing * images + 2) / (images + 2) - middle**2) / (images + 2)))


def _two_sided_p(deviation: float, degrees: float) -> float:
    from scipy.special import ndtr, stdtr

    return 2 * float(ndtr(-abs(deviation)) if np.isinf(degrees) else stdtr(degrees, -abs(deviation)))


def holm(p_values: NDArray[np.floating]) -> NDArray[np.floating]:
    """P-values corrected for multiple comparisons (Holm, 1979), in the order given.

    Below 0.05 after correction: the chance of even one false positive among all tests is at most 0.05.

    >>> holm(np.array([0.04, 0.01, 0.03]))  # 0.01 * 3, 0.03 * 2, and 0.04 no smaller than that
    array([0.06, 0.03, 0.06])
    """
    order = np.argsort(p_values, kind="stable")
    steps = p_values[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return corrected
