"""ImageNet-C and -P (Hendrycks & Dietterich, 2019): CE, mCE and relative mCE; flip rates and top-5 distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import best_classes
from shiftproof.types import Logits

Errors = NDArray[np.floating]
"""Error, (corruptions, severities); a baseline's may be means over severities, (corruptions,)."""


def corruption_error(errors: ArrayLike, baseline_errors: ArrayLike) -> NDArray[np.floating]:
    """Error over all severities of each corruption as a multiple of the baseline's, (corruptions,).

    1 is as bad as the baseline, 0 perfect. Errors are shares, (corruptions, severities); the baseline's may be given as
    means over the same severities, (corruptions,).

    >>> corruption_error([[0.1, 0.3], [0.2, 0.6]], [[0.3, 0.5], [0.4, 0.4]])  # 0.4 / 0.8 and 0.8 / 0.8
    array([0.5, 1. ])
    >>> corruption_error([[0.1, 0.3], [0.2, 0.6]], [0.4, 0.4])
    array([0.5, 1. ])
    """
    own, baseline = _means(errors, baseline_errors)
    return _divided(own, baseline, "has no errors", "CE")


def mean_corruption_error(errors: ArrayLike, baseline_errors: ArrayLike) -> float:
    """Mean of the corruption errors, each divided by the baseline's before the mean is taken (mCE).

    1 is as bad as the baseline, 0 perfect. Published tables print it times 100.

    >>> mean_corruption_error([[0.1, 0.3], [0.2, 0.6]], [[0.3, 0.5], [0.4, 0.4]])
    0.75
    """
    return float(corruption_error(errors, baseline_errors).mean())


def relative_corruption_error(
    errors: ArrayLike, clean_error: float, baseline_errors: ArrayLike, baseline_clean_error: float
) -> NDArray[np.floating]:
    """Error that each corruption adds to the clean one, as a multiple of what it adds to the baseline's, (corruptions,).

    1 is to lose as much as the baseline, 0 to lose nothing; a model that is good on clean images alone scores high.

    >>> relative_corruption_error([[0.1, 0.3], [0.2, 0.7]], 0.1, [[0.3, 0.5], [0.4, 0.6]], 0.2).round(3)
    array([0.5  , 1.167])
    """
    own, baseline = _means(errors, baseline_errors)
    return _divided(own - clean_error, baseline - baseline_clean_error, "loses no accuracy", "relative CE")


def relative_mean_corruption_error(
    errors: ArrayLike, clean_error: float, baseline_errors: ArrayLike, baseline_clean_error: float
) -> float:
    """Mean of the relative corruption errors (relative mCE).

    1 is to lose as much as the baseline, 0 to lose nothing.

    >>> round(relative_mean_corruption_error([[0.1, 0.3], [0.2, 0.7]], 0.1, [[0.3, 0.5], [0.4, 0.6]], 0.2), 3)
    0.833
    """
    return float(relative_corruption_error(errors, clean_error, baseline_errors, baseline_clean_error).mean())


def _means(errors: ArrayLike, baseline_errors: ArrayLike) -> tuple[Errors, Errors]:
    """The mean error of each corruption, of both."""
    own, baseline = np.asarray(errors, dtype=float), np.asarray(baseline_errors, dtype=float)
    if own.ndim != 2 or 0 in own.shape:
        raise BadInput(f"errors should be (corruptions, severities), got shape {own.shape}")
    if baseline.shape not in (own.shape, own.shape[:1]):
        raise BadInput(
            f"baseline errors should be of shape {own.shape} like the errors, or {own.shape[:1]} as means over severities, "
            f"got {baseline.shape}"
        )
    return own.mean(axis=1), baseline.mean(axis=1) if baseline.ndim == 2 else baseline


def _divided(own: Errors, baseline: Errors, why: str, ratio: str) -> Errors:
    zero = np.flatnonzero(baseline == 0)
    if len(zero):
        places = ", ".join(str(place) for place in zero)
        raise BadInput(f"the baseline {why} under corruption {places} (counted from 0), so the {ratio} is undefined")
    return np.asarray(own / baseline)


def mean_performance_under_corruption(performance: ArrayLike) -> float:
    """Mean over corruptions and severities of what was reached, (corruptions, severities) in (mPC).

    Of a mean average precision 1 is perfect.

    >>> mean_performance_under_corruption([[0.75, 0.25], [0.5, 0.0]])
    0.375
    """
    reached = np.asarray(performance, dtype=float)
    if reached.ndim != 2 or not reached.size:
        raise BadInput(f"performance should be (corruptions, severities), got shape {reached.shape}")
    return float(reached.mean())


def relative_performance_under_corruption(performance: ArrayLike, clean_performance: float) -> float:
    """Share of the performance on clean images that is left under corruption (rPC).

    1 is to lose nothing.

    >>> relative_performance_under_corruption([[0.75, 0.25], [0.5, 0.0]], 0.75)
    0.5
    """
    if not clean_performance > 0:
        raise BadInput(f"performance on clean images should be above 0, got {clean_performance}; the rPC is undefined")
    return mean_performance_under_corruption(performance) / clean_performance


Against = Literal["previous", "first"]
"""What a frame is compared with: the one `step` before it, or the first of its sequence (the rule for noise)."""

Top5Classes = NDArray[np.integer]
"""The best classes, (images, up to 5), best first; -1 where there is none."""

_LENGTH = 5
_PAIRS_AT_ONCE = 65_536  # the five columns of both lists stay within the processor's cache


def flip_probability(predictions: NDArray[np.integer], *, against: Against = "previous", step: int = 1) -> float:
    """Share of frames whose class differs from that of the frame `step` before, averaged over sequences.

    0 is perfectly stable. Predictions are (sequences, frames). Frames of noise do not follow from each other: compare them
    with the first, ``against="first"`` (Hendrycks & Dietterich, 2019).

    >>> frames = np.array([[7, 7, 3, 7], [5, 5, 5, 5]])  # two flips in three steps, and none
    >>> round(flip_probability(frames), 4), round(flip_probability(frames, against="first"), 4)
    (0.3333, 0.1667)
    """
    return float(sequence_flip_probability(predictions, against=against, step=step).mean())


def sequence_flip_probability(
    predictions: NDArray[np.integer], *, against: Against = "previous", step: int = 1
) -> NDArray[np.floating]:
    """Share of frames of each sequence whose class differs from that of the frame `step` before, (sequences,).

    >>> sequence_flip_probability(np.array([[7, 7, 3, 7], [5, 5, 5, 5]]), step=2)  # 7 to 3, and 7 to 7
    array([0.5, 0. ])
    """
    earlier, later = _compared(predictions, 2, against, step)
    return np.asarray((earlier != later).mean(axis=1))


def top5_distance(first_logits: Logits, second_logits: Logits) -> NDArray[np.integer]:
    """Sum of rank changes of the top-5 classes of each image in the second ranking, (images,), 0 to 15.

    The sum over the five of how many places each moves, where every place below the fifth counts as the sixth. It is not
    symmetric. Of equal scores the lower class index comes first.

    >>> first = np.array([[9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0]])
    >>> top5_distance(first, first[:, [1, 0, 2, 3, 4, 5, 6]])  # the first two swap: one place each
    array([2])
    >>> top5_distance(first, first[:, [0, 1, 2, 3, 5, 4, 6]])  # the fifth falls to the sixth place
    array([1])
    """
    _check_scores(first_logits, second_logits)
    return top5_distance_from_ranks(best_classes(first_logits, _LENGTH), best_classes(second_logits, _LENGTH))


def top5_distance_from_ranks(first_top5: Top5Classes, second_top5: Top5Classes) -> NDArray[np.integer]:
    """Sum of rank changes of the top-5 classes of each image, (images,), from the two lists alone.

    Lists are (images, 5), best first, or as long as there are classes.

    >>> before = np.array([[10, 11, 12, 13, 14]])
    >>> top5_distance_from_ranks(before, np.array([[14, 13, 12, 11, 10]]))  # 4 + 2 + 0 + 2 + 4
    array([12])
    >>> top5_distance_from_ranks(before, np.array([[11, 12, 13, 14, 15]]))  # five places lost, four gained
    array([9])
    >>> top5_distance_from_ranks(before, np.array([[20, 21, 22, 23, 24]]))  # 5 + 4 + 3 + 2 + 1
    array([15])
    """
    if first_top5.ndim != 2 or first_top5.shape != second_top5.shape or not 0 < first_top5.shape[1] <= _LENGTH:
        raise BadInput(
            f"both lists of best classes should be (images, 5), got shapes {first_top5.shape} and {second_top5.shape}"
        )
    parts = [slice(start, start + _PAIRS_AT_ONCE) for start in range(0, len(first_top5), _PAIRS_AT_ONCE)]
    distances = [_moved(first_top5[part].T.copy(), second_top5[part].T.copy()) for part in parts]
    return np.concatenate(distances).astype(np.intp) if distances else np.empty(0, np.intp)


def sequence_top5_distance(top5: Top5Classes, *, against: Against = "previous", step: int = 1) -> NDArray[np.floating]:
    """Mean distance of the five best classes along each sequence, (sequences,), from lists (sequences, frames, 5).

    0 is perfectly stable, 15 as unlike as can be.

    >>> frames = np.array([[[1, 2, 3, 4, 5], [2, 1, 3, 4, 5], [2, 1, 3, 4, 5]]])
    >>> sequence_top5_distance(frames), sequence_top5_distance(frames, against="first")  # 2 and 0; 2 and 2
    (array([1.]), array([2.]))
    """
    earlier, later = _compared(top5, 3, against, step)
    earlier = np.broadcast_to(earlier, later.shape)
    flat = top5_distance_from_ranks(earlier.reshape(-1, top5.shape[2]), later.reshape(-1, top5.shape[2]))
    return np.asarray(flat.reshape(later.shape[:2]).mean(axis=1))


def zipf_distance(first_logits: Logits, second_logits: Logits) -> NDArray[np.floating]:
    """Sum of rank changes of all classes of each image, (images,), with weight 1 / i for rank i.

    The sum over places i of ``|1 / i - 1 / s| / i``, with s the place in the second ranking of the class at place i in the
    first. The variant stands in the code behind ImageNet-P and not in the paper.

    >>> zipf_distance(np.array([[9.0, 5.0]]), np.array([[5.0, 9.0]]))  # (1 - 1/2) / 1 + (1 - 1/2) / 2
    array([0.75])
    """
    _check_scores(first_logits, second_logits)
    order = np.argsort(-first_logits, axis=1, kind="stable")
    weights = 1 / np.arange(1, first_logits.shape[1] + 1)
    second = np.empty_like(weights, shape=order.shape)
    np.put_along_axis(second, np.argsort(-second_logits, axis=1, kind="stable"), weights[None], axis=1)
    return np.asarray(np.abs(weights - np.take_along_axis(second, order, axis=1)) @ weights)


def sequence_zipf_distance(logits: Logits, *, against: Against = "previous", step: int = 1) -> NDArray[np.floating]:
    """Mean Zipf distance along each sequence, (sequences,), from scores (sequences, frames, classes).

    >>> sequence_zipf_distance(np.array([[[9.0, 5.0], [5.0, 9.0], [5.0, 9.0]]]))
    array([0.375])
    """
    earlier, later = _compared(logits, 3, against, step)
    return np.array([zipf_distance(*pair).mean() for pair in _each(earlier, later)])


def _each(earlier: Logits, later: Logits) -> Iterator[tuple[Logits, Logits]]:
    """One sequence at a time: all classes of all frames at once would fill the memory."""
    for before, after in zip(earlier, later, strict=True):
        yield np.broadcast_to(before, after.shape), after


def _moved(first: Top5Classes, second: Top5Classes) -> NDArray[np.int8]:
    """The distance of lists given column by column, (places, images)."""
    places = len(first)
    # every class is taken to have left the list, and what is too much is given back where it is found
    distance = np.full(first.shape[1], places * (places + 1) // 2, np.int8)
    for place, classes in enumerate(first):
        known = classes >= 0
        for other in range(places):
            found = ((classes == second[other]) & known).view(np.int8)
            distance += found * np.int8(abs(place - other) - (places - place))
    return distance


def _compared(frames: NDArray[Any], axes: int, against: Against, step: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """What stands earlier and later in each comparison, along the second axis."""
    if frames.ndim != axes or not len(frames):
        words = ("sequences", "frames", "classes")[:axes]
        raise BadInput(f"expected ({', '.join(words)}) of at least one sequence, got shape {frames.shape}")
    if against not in ("previous", "first"):
        raise BadInput(f"frames are compared against 'previous' or 'first', got {against!r}")
    if against == "first" and step != 1:
        raise BadInput(f"against the first frame every frame counts once; step {step} belongs to against='previous'")
    if not 1 <= step < frames.shape[1]:
        raise BadInput(f"step {step} needs sequences of more frames than that, and at least 1; these have {frames.shape[1]}")
    return (frames[:, :1] if against == "first" else frames[:, :-step]), frames[:, step:]


def _check_scores(first: Logits, second: Logits) -> None:
    if first.ndim != 2 or first.shape != second.shape:
        raise BadInput(f"both logits should be (images, classes) of one shape, got {first.shape} and {second.shape}")
