"""Selective prediction: accuracy and risk as a model predicts more and more images, by descending confidence.

Confidence is any real score where higher is more confident, as minus an OOD score; only its order counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import Tally
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups, tail_of
from shiftproof.metrics.resampling import StatisticWithout, interval_without, intervals_without

Confidence = NDArray[np.floating]
"""Confidence in each prediction, (images,): any real score, higher is more confident; minus an OOD score is one."""

_Keys = NDArray[np.uint64]
"""Bits of a confidence, and in the lowest one whether the image is correct."""

_IN_CACHE = 2**14
"""Images that are worked on together, in some choices of them."""


class Levels(NamedTuple):
    """Levels of confidence: the places of the first image of each and of the first one after it."""

    first: NDArray[np.intp]  # (levels,)
    end: NDArray[np.intp]  # (levels,)

    def rows(self) -> NDArray[np.intp]:
        """The places of all their images, rising."""
        sizes = self.end - self.first
        rows: NDArray[np.intp] = np.arange(sizes.sum()) + np.repeat(self.first - (np.cumsum(sizes) - sizes), sizes)
        return rows


class Ranked(NamedTuple):
    """Predictions by descending confidence; of ties the correct ones come first."""

    right: NDArray[np.bool_]  # (images,)
    drops: NDArray[np.bool_]  # (images - 1,): whether an image is less confident than the one before it

    def ends(self) -> NDArray[np.intp]:
        """How many images are at least as confident as each level of confidence, (levels,)."""
        return np.append(np.flatnonzero(self.drops) + 1, len(self.right))

    def levels(self) -> Tally:
        """Images covered, and how many of them are correct, at each level of confidence, the highest first."""
        ends = self.ends()
        return Tally(np.cumsum(self.right, dtype=np.intp)[ends - 1], ends)

    def accuracy(self) -> NDArray[np.floating]:
        """Share correct of the most confident 1, 2, 3 and so on, (images,)."""
        reached = self.expected_right()
        reached /= np.arange(1, len(reached) + 1)
        return reached

    def wrong_area(self) -> int:
        """Twice the area under how many are wrong of those covered; between two levels of confidence it grows evenly."""
        levels = self.levels()
        wrong = np.append(0, levels.total - levels.right)
        return int((wrong[1:] + wrong[:-1]) @ np.diff(levels.total, prepend=0))

    def expected_right(self) -> NDArray[np.floating]:
        """How many of the most confident 1, 2, 3 and so on are correct, on average over all orders of ties, (images,)."""
        reached = np.cumsum(self.right, dtype=np.intp).astype(float)
        mixed = self.mixed_levels()
        if len(mixed.first):
            before, sizes = np.where(mixed.first > 0, reached[mixed.first - 1], 0.0), mixed.end - mixed.first
            share = (reached[mixed.end - 1] - before) / sizes
            rows = mixed.rows()
            within = rows + 1 - np.repeat(mixed.first, sizes)
            reached[rows] = np.repeat(before, sizes) + np.repeat(share, sizes) * within
        return reached

    def mixed_levels(self) -> Levels:
        """The levels of confidence that have both correct and wrong images."""
        # correct comes before wrong, so such a level is seen where one follows the other
        mixed = np.flatnonzero((self.right[:-1] > self.right[1:]) & ~self.drops)
        if not len(mixed):
            return Levels(mixed, mixed)
        ends = self.ends()
        level = np.searchsorted(ends, mixed, side="right")
        return Levels(np.where(level > 0, ends[level - 1], 0), ends[level])


class Untied(NamedTuple):
    """Several choices of predictions by descending confidence, of which no two with the same are correct and wrong."""

    right: NDArray[np.bool_]  # (choices, images)

    def accuracy(self) -> NDArray[np.floating]:
        """As of `Ranked`, (choices, images)."""
        # counted in whole numbers, a fifth of the time of floats
        return np.asarray(np.cumsum(self.right, axis=1, dtype=np.intp) / np.arange(1, self.right.shape[1] + 1))

    def wrong_area(self) -> NDArray[np.integer]:
        """As of `Ranked`, (choices,)."""
        wrong = ~self.right
        return np.asarray(2 * (wrong @ np.arange(wrong.shape[1], 0, -1)) - np.count_nonzero(wrong, axis=1))


Areas = NDArray[np.floating]
"""Of one order, (), or of several choices of predictions, (choices,)."""


def ranked(confidence: Confidence, correct: NDArray[np.bool_]) -> Ranked:
    """Whether each image is correct, by descending confidence, and where confidence drops.

    >>> ranked(np.array([0.5, 0.9, 0.5]), np.array([False, False, True]))
    Ranked(right=array([False,  True, False]), drops=array([ True, False]))
    """
    _check(confidence, correct)
    upper, lower = (_single_keys if confidence.dtype == np.float32 else _double_keys)(confidence, correct.astype(bool))
    keys = np.concatenate([upper, lower]) if len(lower) else upper
    drops = keys[1:] ^ keys[:-1] > 1
    drops[len(upper) - 1 : len(upper)] = True  # the two parts share no confidence, but may share a key
    return Ranked((keys & np.uint64(1)).astype(bool), drops)


def answered_levels(confidence: Confidence, correct: NDArray[np.bool_], *, most: int | None = None) -> Tally:
    """Images covered, and how many of them are correct, at each level of confidence, the highest first.

    Of more than `most` levels some are left out, so that about as many images lie between any two; the last, which covers
    all images, stays.

    >>> answered_levels(np.array([0.5, 0.9, 0.5]), np.array([False, False, True]))
    Tally(right=array([0, 1]), total=array([1, 3]))
    """
    levels = ranked(confidence, correct).levels()
    if most is None or len(levels.total) <= most:
        return levels
    wanted = np.arange(1, most + 1) * len(confidence) / most
    some = np.unique(np.searchsorted(levels.total, wanted))
    return Tally(levels.right[some], levels.total[some])


def _double_keys(confidence: Confidence, correct: NDArray[np.bool_]) -> tuple[_Keys, _Keys]:
    """Sorted keys of the images that are not below zero, and of those that are."""
    doubles = confidence.astype(np.float64)
    negative = doubles < 0
    keys = doubles.view(np.uint64)
    keys <<= np.uint64(1)  # out goes the sign
    keys |= correct
    if not negative.any():
        keys.sort()
        return keys[::-1], keys[:0]
    # of negative numbers the smaller is more confident, and correct still comes before wrong
    return np.sort(keys[~negative])[::-1], np.sort(keys[negative] ^ np.uint64(1)) ^ np.uint64(1)


def _single_keys(confidence: Confidence, correct: NDArray[np.bool_]) -> tuple[_Keys, _Keys]:
    """Sorted keys of all images, and none: with 32 bits to spare nothing need go."""
    bits = (confidence + np.float32(0)).view(np.int32)  # -0.0 becomes 0.0
    keys = (bits ^ (bits >> 31 & 0x7FFFFFFF)).astype(np.int64)  # whole numbers in the order of the real ones
    keys <<= 1
    keys |= correct
    keys.sort()
    return keys[::-1].view(np.uint64), np.empty(0, np.uint64)


def _check(confidence: Confidence, correct: NDArray[np.bool_]) -> None:
    if confidence.ndim != 1 or not len(confidence):
        raise BadInput(f"confidence should be (images,) of at least one image, got shape {confidence.shape}")
    if confidence.shape != correct.shape:
        raise BadInput(f"{len(confidence)} confidences but correct has shape {correct.shape}; both should be (images,)")
    if np.isnan(confidence).any():
        raise BadInput("some confidence is not a number; leave such images out first")


class ResponseCurve(NamedTuple):
    """Accuracy on the images covered, from the most confident alone to all of them, (images,)."""

    response_rate: NDArray[np.floating]
    accuracy: NDArray[np.floating]


class RiskCoverage(NamedTuple):
    """Risk (error among the images covered), at some of the levels of confidence, the highest first."""

    coverage: NDArray[np.floating]
    risk: NDArray[np.floating]


def aurra(confidence: Confidence, correct: NDArray[np.bool_]) -> float:
    """Mean accuracy on the `n` most confident images over all `n`: the area under the response-rate accuracy curve.

    1 is perfect, the plain accuracy is what guessing the order gives on average (Hendrycks et al., 2021). Images of equal
    confidence are taken in every order: the mean of all of these is given, and `aurra_bounds` has the extremes.

    >>> round(aurra(np.array([0.9, 0.8, 0.7]), np.array([True, False, True])), 4)  # (1 + 1/2 + 2/3) / 3
    0.7222
    >>> aurra(np.array([0.8, 0.8]), np.array([True, False]))  # 1 and 1/2, or 0 and 1/2
    0.5
    """
    return _aurra(ranked(confidence, correct))


def aurra_bounds(confidence: Confidence, correct: NDArray[np.bool_]) -> tuple[float, float]:
    """Lowest and highest AURRA that sorting can give, depending on how it orders images of equal confidence.

    >>> aurra_bounds(np.array([0.8, 0.8]), np.array([True, False]))  # 0 and 1/2, or 1 and 1/2
    (0.25, 0.75)
    """
    wrong = ~np.asarray(correct, dtype=bool)
    return 1 - _right_first(confidence, wrong), _right_first(confidence, ~wrong)


def aurra_interval(
    confidence: Confidence, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the AURRA by the jackknife over clusters; None of too few clusters. That of the AURC is one minus it.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = aurra_interval(confidence, correct)
    >>> low < aurra(confidence, correct) < high
    True
    """
    order, groups = _in_order(confidence, correct, clusters)
    return interval_without(_aurra_without(order), groups, bounds=(0.0, 1.0), level=level)


def aurc_interval(
    confidence: Confidence,
    correct: NDArray[np.bool_],
    *,
    rule: Literal["mean", "trapezoid"] = "mean",
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the AURC by the jackknife over clusters; None of too few clusters.

    With a handful of wrong predictions it covers the true value less often than it says: `docs/intervals.md` has how often.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = aurc_interval(confidence, correct)
    >>> low < aurc(confidence, correct) < high
    True
    """
    return _intervals(lambda order: [_aurc(order, rule)], confidence, correct, clusters, level)[0]


def e_aurc_interval(
    confidence: Confidence, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the E-AURC by the jackknife over clusters; None of too few clusters.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = e_aurc_interval(confidence, correct)
    >>> low < e_aurc(confidence, correct) < high
    True
    """
    return _intervals(lambda order: [_aurc(order) - _best_aurc(order)], confidence, correct, clusters, level)[0]


def augrc_interval(
    confidence: Confidence, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the AUGRC by the jackknife over clusters; None of too few clusters.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = augrc_interval(confidence, correct)
    >>> low < augrc(confidence, correct) < high
    True
    """
    return _intervals(lambda order: [_augrc(order)], confidence, correct, clusters, level)[0]


def selection_intervals(
    confidence: Confidence, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> list[tuple[float, float] | None]:
    """The intervals of AURC, E-AURC and AUGRC, for which images are sorted and left out once.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> selection_intervals(confidence, correct)[2] == augrc_interval(confidence, correct)
    True
    """

    def areas(order: Ranked | Untied) -> list[Areas]:
        area = _aurc(order)
        return [area, area - _best_aurc(order), _augrc(order)]

    return _intervals(areas, confidence, correct, clusters, level)


def coverage_interval(
    confidence: Confidence,
    correct: NDArray[np.bool_],
    risk: float,
    *,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of `coverage_at_risk`; None of fewer than `LEAST_CLUSTERS` clusters.

    From the largest share of images at which too many wrong predictions are ruled out, to the largest at which no more than
    allowed are not: by the exact test of a share, at as many independent images as tell as much. It jumps with the images,
    and errs on the wide side.

    >>> confidence, correct = np.linspace(1, 0, 200), np.arange(200) < 150
    >>> coverage_at_risk(confidence, correct, 0.1)
    0.83
    >>> low, high = coverage_interval(confidence, correct, 0.1)
    >>> low, high
    (0.79, 0.89)
    """
    tail = tail_of(level)
    seen = coverage_at_risk(confidence, correct, risk)
    images = len(confidence)
    groups = np.arange(images) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    if groups.max() + 1 < LEAST_CLUSTERS:
        return None
    order = np.argsort(-confidence, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(confidence[order]) != 0) + 1, images)
    wrong = 1 - np.asarray(correct, dtype=float)[order]
    answered, mistakes = ends.astype(float), np.cumsum(wrong)[ends - 1]
    design = _design_effects(wrong - risk, groups[order], risk * (1 - risk))[ends - 1]
    too_many, few_enough = _rarely(mistakes / design, answered / design, risk, tail)
    shares = answered / images
    low, high = shares[too_many].max(initial=0.0), shares[~few_enough].max(initial=0.0)
    return min(float(low), seen), max(float(high), seen)


def response_rate_accuracy(confidence: Confidence, correct: NDArray[np.bool_]) -> ResponseCurve:
    """Accuracy on the `n` most confident images against their share of all, for every `n`; its mean is the AURRA.

    >>> curve = response_rate_accuracy(np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, True]))
    >>> curve.response_rate, curve.accuracy.round(2)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([1.  , 0.5 , 0.67, 0.75]))
    """
    accuracy = ranked(confidence, correct).accuracy()
    return ResponseCurve(np.arange(1, len(accuracy) + 1) / len(accuracy), accuracy)


def aurc(confidence: Confidence, correct: NDArray[np.bool_], *, rule: Literal["mean", "trapezoid"] = "mean") -> float:
    """Mean risk (error) of the `n` most confident images over all `n`: the area under the risk-coverage curve.

    It is one minus the AURRA.

    0 is perfect (Geifman et al., 2019). The `trapezoid` rule counts the first and the last half, as torch-uncertainty does.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7]), np.array([True, False, True])
    >>> round(aurc(confidence, correct), 4)  # (0 + 1/2 + 1/3) / 3
    0.2778
    >>> round(aurc(confidence, correct, rule="trapezoid"), 4)  # (0 / 2 + 1/2 + 1/3 / 2) / 2
    0.3333
    """
    return float(_aurc(ranked(confidence, correct), rule))


def _aurc(order: Ranked | Untied, rule: Literal["mean", "trapezoid"] = "mean") -> Areas:
    risk = 1 - order.accuracy()
    images = risk.shape[-1]
    if rule == "mean" or images == 1:
        return np.asarray(risk.mean(axis=-1))
    if rule != "trapezoid":
        raise BadInput(f"rule should be mean or trapezoid, got {rule!r}")
    return np.asarray((risk.sum(axis=-1) - (risk[..., 0] + risk[..., -1]) / 2) / (images - 1))


def e_aurc(confidence: Confidence, correct: NDArray[np.bool_], *, published_optimum: bool = False) -> float:
    """AURC above that of a perfect order of the same predictions, every correct one before every wrong one.

    0 is perfect. With `published_optimum` the best AURC is taken to be e + (1 - e) log(1 - e) for an error e, its limit
    for many images (Geifman et al., 2019); of few images that is too low.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7]), np.array([True, False, True])
    >>> round(e_aurc(confidence, correct), 4)  # perfect is (0 + 0 + 1/3) / 3
    0.1667
    """
    order = ranked(confidence, correct)
    return float(_aurc(order) - _best_aurc(order, published_optimum=published_optimum))


def _best_aurc(order: Ranked | Untied, *, published_optimum: bool = False) -> Areas:
    """The AURC of a perfect order."""
    best = _published_optimum if published_optimum else _optimum
    right = np.count_nonzero(order.right, axis=-1)
    return np.array([best(int(one), order.right.shape[-1]) for one in np.atleast_1d(right)]).reshape(np.shape(right))


@lru_cache(1024)  # the same of all detectors
def _optimum(right: int, images: int) -> float:
    return float((images - right - right * (1 / np.arange(right + 1, images + 1)).sum()) / images)


def _published_optimum(right: int, images: int) -> float:
    return float((images - right + (right * np.log(right / images) if right else 0.0)) / images)


def augrc(confidence: Confidence, correct: NDArray[np.bool_]) -> float:
    """Share of all images that are covered and wrong, averaged over coverage from none to all (Traub et al., 2024).

    0 is perfect, half the error is what guessing the order gives. Between two levels of confidence the share grows evenly.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7]), np.array([True, False, True])
    >>> round(augrc(confidence, correct), 4)  # the share goes 0, 0, 1/3, 1/3
    0.1667
    """
    return float(_augrc(ranked(confidence, correct)))


def _augrc(order: Ranked | Untied) -> Areas:
    return np.asarray(order.wrong_area() / (2 * order.right.shape[-1] ** 2))


def coverage_at_risk(confidence: Confidence, correct: NDArray[np.bool_], risk: float) -> float:
    """Largest coverage, as a share of images, at which the risk (error among the covered) is at most `risk`.

    1 is perfect; 0 where not even the most confident can be. Images of equal confidence are covered together or not at all.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, True, False, False])
    >>> coverage_at_risk(confidence, correct, 0.35)  # 1 of 3 is wrong, of 4 it is 2
    0.75
    """
    if not 0 <= risk <= 1:
        raise BadInput(f"risk should lie between 0 and 1, got {risk}")
    levels = answered_levels(confidence, correct)
    allowed = (levels.total - levels.right) / levels.total <= risk
    return float(levels.total[allowed].max(initial=0) / len(confidence))


def risk_coverage(confidence: Confidence, correct: NDArray[np.bool_], *, points: int = 200) -> RiskCoverage:
    """Risk (error among the images covered) against the coverage, at no more than `points` levels of confidence.

    >>> curve = risk_coverage(np.array([0.9, 0.8, 0.8, 0.6]), np.array([True, False, True, True]))
    >>> curve.coverage, curve.risk.round(2)
    (array([0.25, 0.75, 1.  ]), array([0.  , 0.33, 0.25]))
    """
    levels = answered_levels(confidence, correct, most=points)
    return RiskCoverage(levels.total / len(confidence), 1 - levels.accuracy)


def _aurra(order: Ranked) -> float:
    return float(order.accuracy().mean())


def _right_first(confidence: Confidence, correct: NDArray[np.bool_]) -> float:
    """The AURRA if of ties the correct ones come first."""
    right = ranked(confidence, correct).right
    return float((np.cumsum(right) / np.arange(1, len(right) + 1)).mean())


def _in_order(confidence: Confidence, correct: NDArray[np.bool_], clusters: Groups | None) -> tuple[Ranked, Groups]:
    """Predictions by descending confidence and the cluster of each; without some of them they are still in order."""
    _check(confidence, correct)
    doubles = confidence.astype(float)
    rows = np.argsort(-doubles)
    right, drops = np.asarray(correct, dtype=bool)[rows], np.diff(doubles[rows]) != 0
    if not drops.all():
        keys = 2 * np.append(0, np.cumsum(drops)) + ~right
        # numbers of two bytes are sorted by counting
        right_first = np.argsort(keys.astype(np.min_scalar_type(keys.max())), kind="stable")
        rows, right = rows[right_first], right[right_first]
    groups = rows if clusters is None else clusters[rows]
    return Ranked(right, drops), groups


def _intervals(
    areas: Callable[[Ranked | Untied], list[Areas]],
    confidence: Confidence,
    correct: NDArray[np.bool_],
    clusters: Groups | None,
    level: float,
) -> list[tuple[float, float] | None]:
    """Intervals of areas by the jackknife, from the images that are kept."""
    order, groups = _in_order(confidence, correct, clusters)
    numbers, images = len(areas(order)), len(order.right)  # areas refuse what they cannot take
    tied = len(order.mixed_levels().first) > 0
    of_level = np.append(0, np.cumsum(order.drops, dtype=np.int32))

    def without(choices: Sequence[NDArray[np.intp]]) -> NDArray[np.floating]:
        found = np.empty((len(choices), numbers))
        for some in _of_one_size(choices, at_once=1 if tied else max(1, _IN_CACHE // images)):
            kept = np.ones((len(some), images), bool)
            np.put_along_axis(kept, np.stack([choices[one] for one in some]), False, axis=1)
            right = np.broadcast_to(order.right, kept.shape)[kept].reshape(len(some), -1)
            levels = of_level[kept[0]]
            left = Ranked(right[0], levels[1:] != levels[:-1]) if tied else Untied(right)
            found[some] = np.stack(areas(left), axis=-1)
        return found

    return intervals_without(without, groups, bounds=(0.0, 1.0), level=level) or [None] * numbers


def _of_one_size(choices: Sequence[NDArray[np.intp]], *, at_once: int) -> Iterator[list[int]]:
    """The places of choices that leave equally many images out, so many at a time."""
    by_size: dict[int, list[int]] = {}
    for place, gone in enumerate(choices):
        by_size.setdefault(len(gone), []).append(place)
    for places in by_size.values():
        yield from (places[start : start + at_once] for start in range(0, len(places), at_once))


def _aurra_without(order: Ranked) -> StatisticWithout:
    """The AURRA without some images, from the places of the wrong ones alone.

    A wrong image at place p of n is among the first p, p + 1, ..., n, so it costs (1/p + ... + 1/n) / n; one among ties, the
    mean of this over their places. Where fewer images are correct than wrong, what each correct one adds is summed instead.
    """
    images, wrong = len(order.right), ~order.right
    fewer_wrong = 2 * int(np.count_nonzero(wrong)) <= images
    few = wrong if fewer_wrong else order.right
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, images + 1)))  # 1/1 + ... + 1/p at place p
    ties = order.mixed_levels()
    lone = few.copy()
    lone[ties.rows()] = False
    places = np.flatnonzero(lone)
    lone_before: NDArray[np.intp] = np.cumsum(lone) - lone

    def without(gone: NDArray[np.intp]) -> float:
        at: NDArray[np.intp] = lone_before[gone]
        gone_before = np.repeat(np.arange(len(gone) + 1), np.diff(at, prepend=0, append=len(places)))
        earlier = harmonic[places - gone_before]
        out = at[lone[gone]]  # places that are gone themselves
        last = harmonic[images - len(gone)]
        cost = (len(places) - len(out)) * last - (earlier.sum() - earlier[out].sum())
        if len(ties.first):
            cost += cost_of_ties(gone, last)
        share = float(cost / (images - len(gone)))
        return 1 - share if fewer_wrong else share

    few_before = np.append(0, np.cumsum(few))

    def cost_of_ties(gone: NDArray[np.intp], last: float) -> float:
        gone_before, few_gone_before = (np.searchsorted(some, ties) for some in (gone, gone[few[gone]]))
        first, end = np.asarray(ties) - gone_before
        count = np.diff(few_before[np.asarray(ties)] - few_gone_before, axis=0)[0]
        # the mean of the harmonic numbers of the places from first to end
        earlier = harmonic[end] + first * (harmonic[end] - harmonic[first]) / np.maximum(end - first, 1) - 1
        return float((count * (last - earlier)).sum())

    return without


def _design_effects(residuals: NDArray[np.floating], groups: Groups, spread: float) -> NDArray[np.floating]:
    """How many images tell as much as one independent one, among the first 1, 2, 3 and so on, (images,); at least 1."""
    if spread == 0:
        return np.ones(len(residuals))
    by_group = np.argsort(groups, kind="stable")
    sums = np.cumsum(residuals[by_group])
    starts = np.flatnonzero(np.append(True, np.diff(groups[by_group]) != 0))
    sizes = np.diff(np.append(starts, len(groups)))
    before = np.empty(len(residuals))  # the sum over the same group's more confident images
    before[by_group] = sums - residuals[by_group] - np.repeat(sums[starts] - residuals[by_group][starts], sizes)
    squares = np.cumsum(2 * before * residuals + residuals**2)  # of the groups' sums
    return np.asarray(np.maximum(squares / (spread * np.arange(1, len(residuals) + 1)), 1.0))


def _rarely(
    mistakes: NDArray[np.floating], answered: NDArray[np.floating], risk: float, tail: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where so few mistakes, or so many, are as rare as `tail` at this risk (Clopper & Pearson), both (levels,)."""
    from scipy.special import betainc

    if risk in (0.0, 1.0):
        return mistakes < 0, mistakes > risk * answered
    few = 1 - betainc(np.minimum(mistakes, answered - 1e-9) + 1, np.maximum(answered - mistakes, 1e-9), risk)
    many = np.where(mistakes > 0, betainc(np.maximum(mistakes, 1e-9), answered - mistakes + 1, risk), 1.0)
    return np.where(mistakes < answered, few, 1.0) <= tail, many <= tail
