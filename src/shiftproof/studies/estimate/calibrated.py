"""An estimate of accuracy without labels that is calibrated on shifts whose accuracy is known, and tried on others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.intervals import student_quantile
from shiftproof.metrics.likelihood import fit_temperature, row_blocks
from shiftproof.metrics.unlabelled import (
    AT_ONCE,
    average_confidence,
    average_thresholded_confidence,
    class_limits,
    confidence_by_transport,
    difference_of_confidences,
    likeliest_within_limits,
    negative_entropy,
    parts_of,
    smoothed_shares,
)
from shiftproof.types import Logits

CALIBRATED = "calibrated"
"""Name of our own estimate, among the published ones."""

IN_A_SLICE = 20
"""Images of a slice below which it has no estimate of its own, nor counts in the tries."""

MOST_BEYOND = 0.25
"""Share of predictions, beyond what any shift gave their class, above which nothing is known of the images."""

LEAST_TRIES = 8
"""Slices of left-out shifts that must have been tried before slices are estimated."""

Grouping = NDArray[np.integer]
"""Which group each image is in, by one fact or by its predicted class, (images,)."""


@dataclass(frozen=True)
class Answers:
    """What a model says of some images under one shift, and what the images are."""

    logits: Logits
    labels: NDArray[np.integer]  # (images,)
    correct: NDArray[np.bool_]  # (images,)
    cases: NDArray[np.integer]  # the cluster of each image, (images,)
    groupings: tuple[Grouping, ...] = ()  # by facts

    def take(self, rows: NDArray[np.bool_]) -> Answers:
        groupings = tuple(one[rows] for one in self.groupings)
        return Answers(self.logits[rows], self.labels[rows], self.correct[rows], self.cases[rows], groupings)

    def __len__(self) -> int:
        return len(self.labels)


class Signals(NamedTuple):
    """What the estimate is made of, by image; the limit of a class is the most images that chance would give it."""

    confidence: NDArray[np.floating]  # probability of the likeliest labels that keep the limits
    evened: NDArray[np.floating]  # the same where the logits of every image have one spread: fog shrinks them, and no more
    within: NDArray[np.floating]  # whether the prediction keeps the limits: under strong shifts many images get few names


class Look(NamedTuple):
    """What can be seen of answers without labels."""

    signals: NDArray[np.floating]  # means of each of `Signals`, (3,); of several parts the share of their mean log-odds
    images: int
    cases: int  # clusters: what chance is reckoned by


@dataclass(frozen=True)
class View:
    """Signals of the images of one target, which all looks at it and at its slices share."""

    predicted: NDArray[np.integer]  # class of each image, (images,)
    signals: Signals
    cases: NDArray[np.integer]
    at_once: int  # images of a part

    def look(self, rows: NDArray[np.bool_] | None = None) -> Look:
        """At some images, or at all by their parts: log-odds of few images are on average further from 0 than of many."""
        parts = parts_of(len(self.cases), self.at_once) if rows is None else [np.flatnonzero(rows)]
        means = np.array([[signal[part].mean() for signal in self.signals] for part in parts])
        cases = self.cases if rows is None else self.cases[rows]
        return Look(mean_share(means, self.at_once), len(cases), len(np.unique(cases)))


@dataclass(frozen=True)
class Source:
    """Labelled images without a shift: what every estimate starts from."""

    clean: Answers

    @cached_property
    def _temperature(self) -> float:
        return fit_temperature(self.clean.labels[:, None], self.clean.logits)

    @cached_property
    def _evened_temperature(self) -> float:
        return fit_temperature(self.clean.labels[:, None], np.concatenate([*map(evened, row_blocks(self.clean.logits))]))

    @cached_property
    def label_shares(self) -> NDArray[np.floating]:
        return smoothed_shares(self.clean.labels, self.clean.logits.shape[1])

    def probabilities(self, logits: Logits) -> NDArray[np.floating]:
        """Of every class, after temperature scaling."""
        return softmax(np.asarray(logits, float) / self._temperature)

    def _evened_probabilities(self, logits: Logits) -> NDArray[np.floating]:
        return softmax(evened(logits) / self._evened_temperature)

    def view(self, logits: Logits, cases: NDArray[np.integer], at_once: int) -> View:
        """What can be seen of answers without labels, by parts of so many images: limits are alike where these are."""
        limited = (
            likeliest_within_limits(RowsOf(logits, how), self.label_shares, at_once=at_once)
            for how in (self.probabilities, self._evened_probabilities, predicted_alone)
        )
        return View(logits.argmax(axis=1), Signals(*limited), cases, at_once)

    @cached_property
    def _sureness(self) -> Sureness:
        return self._sureness_of(self.clean.logits)

    def _sureness_of(self, logits: Logits) -> Sureness:
        probabilities = map(self.probabilities, row_blocks(logits))
        return Sureness(
            *map(np.concatenate, zip(*((rows.max(axis=1), negative_entropy(rows)) for rows in probabilities), strict=True))
        )

    def published(self, logits: Logits) -> dict[str, float]:
        """The estimates of others, which know no shift but the one that is asked for.

        COT takes the shares of the classes from the labelled images, so these must be at least as many as classes are.
        """
        source, correct, target = self._sureness, self.clean.correct, self._sureness_of(logits)
        counts = np.bincount(self.clean.labels, minlength=logits.shape[1])
        highest, sure = source.highest[:, None], target.highest[:, None]  # of all probabilities these alone are used
        told = {
            "AC": average_confidence(sure),
            "DoC": difference_of_confidences(highest, correct, sure),
            "ATC-MC": average_thresholded_confidence(source.highest, correct, target.highest),
            "ATC-NE": average_thresholded_confidence(source.negative_entropy, correct, target.negative_entropy),
        }
        if min(len(correct), len(logits)) < logits.shape[1]:
            return told
        return {**told, "COT": confidence_by_transport(RowsOf(logits, self.probabilities), counts / counts.sum())}


@dataclass(frozen=True)
class RowsOf:
    """What is made of logits, row by row, only when rows are asked for: of all at once it would not fit in memory."""

    logits: Logits
    how: Callable[[Logits], NDArray[np.floating]]

    def __len__(self) -> int:
        return len(self.logits)

    def __getitem__(self, rows: NDArray[np.integer]) -> NDArray[np.floating]:
        return self.how(self.logits[rows])


class Sureness(NamedTuple):
    """How sure a model is of each image, (images,)."""

    highest: NDArray[np.floating]  # probability
    negative_entropy: NDArray[np.floating]


def predicted_alone(logits: Logits) -> NDArray[np.floating]:
    """1 for the predicted class and 0 for all others, (images, classes).

    >>> predicted_alone(np.array([[3.0, 1.0], [0.3, 0.4]]))
    array([[1., 0.],
           [0., 1.]])
    """
    return np.asarray(np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None], float)


def softmax(logits: Logits) -> NDArray[np.floating]:
    """Probabilities of the classes, (images, classes).

    >>> softmax(np.log([[3.0, 1.0]]))
    array([[0.75, 0.25]])
    """
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def evened(logits: Logits) -> Logits:
    """Logits of mean 0 and standard deviation 1 over the classes of each image.

    >>> evened(np.array([[3.0, 1.0], [0.3, 0.1]]))
    array([[ 1., -1.],
           [ 1., -1.]])
    """
    logits = np.asarray(logits, float)
    around = logits - logits.mean(axis=1, keepdims=True)
    return np.asarray(around / np.maximum(around.std(axis=1, keepdims=True), 1e-12))


def log_odds(share: float | NDArray[np.floating], images: int) -> NDArray[np.floating]:
    """Of a share of so many images, half an image from certainty at most.

    >>> log_odds(0.5, 10).round(3), log_odds(1.0, 10).round(3)
    (np.float64(0.0), np.float64(3.045))
    """
    hits = np.asarray(share) * images
    return np.asarray(np.log((hits + 0.5) / (images - hits + 0.5)))[()]


def mean_share(shares: NDArray[np.floating], images: int) -> NDArray[np.floating]:
    """The share that has the mean log-odds of these, each of so many images.

    >>> mean_share(np.array([0.2, 0.8]), 10).round(3)
    np.float64(0.5)
    """
    odds = np.exp(log_odds(shares, images).mean(axis=0))
    return np.asarray((odds / (1 + odds) * (images + 1) - 0.5) / images)[()]


BEFORE = np.array([0.5, 0.5, 0.0])
"""Weights of the signals before anything is known: the mean of both confidences."""

DRAWN = 0.03
"""How strongly weights are drawn there, a shift; from a tenth of it to ten times as much the errors are about the same."""


@dataclass(frozen=True)
class Trend:
    """Log-odds of the accuracy, linear in those of the signals."""

    level: float
    centre: NDArray[np.floating]  # log-odds of the signals there
    weights: NDArray[np.floating]
    at_once: int  # images of a part: signals are known to half of one

    @classmethod
    def through(
        cls, signals: NDArray[np.floating], accuracies: NDArray[np.floating], images: int, at_once: int | None = None
    ) -> Trend:
        """By least squares over shifts, signals (shifts, 3), with a ridge towards `BEFORE`.

        Signals are of parts of `at_once` images, or of all: of few images all may keep the limits, and are not certain to.

        >>> shares = np.array([0.2, 0.5, 0.8])  # where confidence is accuracy, the weights stay what they were
        >>> Trend.through(np.stack([shares, shares, shares], axis=1), shares, 100).weights.round(3) + 0
        array([0.5, 0.5, 0. ])
        """
        at_once = at_once or images
        seen, known = log_odds(signals, at_once), log_odds(accuracies, images)
        centre, level = seen.mean(axis=0), float(known.mean())
        apart = seen - centre
        unexplained = known - level - apart @ BEFORE
        ridge = DRAWN * len(apart) * np.eye(len(BEFORE))
        return cls(level, centre, BEFORE + np.linalg.solve(apart.T @ apart + ridge, apart.T @ unexplained), at_once)

    def at(self, look: Look) -> float:
        """Log-odds of the accuracy of what looks like this."""
        return float(self.level + (log_odds(look.signals, self.at_once) - self.centre) @ self.weights)


def share_of(log_odds: float) -> float:
    """The share that has these log-odds.

    >>> share_of(0.0)
    0.5
    """
    return float(1 / (1 + np.exp(-log_odds)))


def angle(share: float) -> float:
    """Arcsine of the root: chance moves it by as much at every share.

    >>> round(angle(0.5) / np.pi, 3), round(angle(1.0) / np.pi, 3)
    (0.25, 0.5)
    """
    return float(np.arcsin(np.sqrt(share)))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


class Miss(NamedTuple):
    """By how much an estimate was off, as angles."""

    by: float
    group: str  # the group of shifts that took no part in it
    cases: int


@dataclass(frozen=True)
class Attempt:
    """One estimate of an accuracy that is known: of a shift, on photos, that took no part in the calibration."""

    shift: str
    accuracy: float
    estimates: Mapping[str, float]  # by name; ours is `CALIBRATED`
    images: int
    miss: Miss  # of ours
    in_slices: Sequence[Miss]  # the same in each slice that has enough images

    def error(self, name: str) -> float:
        return self.estimates[name] - self.accuracy


class Trial(NamedTuple):
    """What is seen of a shift on images that took no part in a calibration, and what is known of them."""

    view: View
    correct: NDArray[np.bool_]
    groupings: tuple[Grouping, ...]
    published: Mapping[str, float]

    @classmethod
    def of(cls, source: Source, new: Answers, at_once: int) -> Trial:
        view = source.view(new.logits, new.cases, at_once)
        return cls(view, new.correct, (*new.groupings, view.predicted), source.published(new.logits))

    def attempt(self, trend: Trend, shift: str, group: str) -> Attempt:
        """By a trend through shifts of other groups."""

        def miss(look: Look, correct: NDArray[np.bool_]) -> Miss:
            return Miss(angle(share_of(trend.at(look))) - angle(float(correct.mean())), group, look.cases)

        look = self.view.look()
        return Attempt(
            shift=shift,
            accuracy=float(self.correct.mean()),
            estimates={CALIBRATED: share_of(trend.at(look)), **self.published},
            images=len(self.correct),
            miss=miss(look, self.correct),
            in_slices=[
                miss(self.view.look(grouping == value), self.correct[grouping == value])
                for grouping in self.groupings
                for value in large_enough(grouping)
            ],
        )


@dataclass(frozen=True)
class Calibration:
    """The trend through all tried shifts, and how far estimates were off where a group of shifts was left out."""

    source: Source
    trend: Trend
    looks: Sequence[Look]  # of the shifts that the trend goes through
    predicted: NDArray[np.floating]  # the largest share of the images that any of them gave to a class, (classes,)
    attempts: Sequence[Attempt]
    at_once: int  # images of a part, of the shifts' and of the target's

    def view(self, logits: Logits, cases: NDArray[np.integer]) -> View:
        """What can be seen of the target, in the way of the shifts."""
        return self.source.view(logits, cases, self.at_once)

    def estimate(self, look: Look) -> float:
        return share_of(self.trend.at(look))

    def interval(self, look: Look, level: float = 0.95) -> tuple[float, float]:
        """As wide as errors were on shifts that took no part, and wider for fewer clusters than those had."""
        return widened(self.estimate(look), look.cases, [one.miss for one in self.attempts], level)

    def interval_in_slice(self, look: Look, level: float = 0.95) -> tuple[float, float] | None:
        """The same by the errors in slices; None where too few have been tried."""
        missed = [miss for one in self.attempts for miss in one.in_slices]
        if len(missed) < LEAST_TRIES or len({miss.group for miss in missed}) < 2:
            return None
        return widened(self.estimate(look), look.cases, missed, level)

    def why_outside(self, view: View, names: Callable[[int], str] = str) -> str | None:
        """Why nothing is known of such answers, or None: they lie outside all that was tried."""
        counts = np.bincount(view.predicted, minlength=len(self.predicted))
        allowed = np.maximum(self.predicted, 2 / len(self.source.clean))  # a class that was rare may be twice as frequent
        beyond = np.maximum(0, counts - class_limits(allowed, len(view.predicted))) / len(view.predicted)
        if beyond.sum() > MOST_BEYOND:
            likes = ", ".join(names(int(place)) for place in np.argsort(-beyond, kind="stable")[:3] if beyond[place])
            return (
                f"{_percent(float(beyond.sum()))} of the predictions exceed what any of the shifts gave their class "
                f"({likes}): do these images show other classes, or only a few?"
            )
        signal, least = view.look().signals[0], min(one.signals[0] for one in self.looks)
        if signal < least / 2:
            lowest = f"the lowest under any of the shifts is {_percent(least)}"
            return f"its mean confidence within the class limits is {_percent(signal)}; {lowest}"
        return None

    def covered(self, level: float = 0.95) -> float:
        """Share of the tried accuracies within an interval that is made from the tries of the other groups."""
        within = []
        for one in self.attempts:
            others = [other.miss for other in self.attempts if other.miss.group != one.miss.group]
            low, high = widened(one.estimates[CALIBRATED], one.miss.cases, others, level)
            within.append(low <= one.accuracy <= high)
        return float(np.mean(within))


@dataclass(frozen=True)
class KnownShifts:
    """Answers to the same labelled images under every shift: a calibration is made from them for each size of target.

    Those of a shift are used one after another and not kept, so that they may be read anew whenever they are asked for.
    """

    clean: Answers
    shifted: Mapping[str, Answers]
    groups: Mapping[str, str]  # the group of each shift
    half: NDArray[np.bool_]  # of the images, kept apart in each try
    _made: dict[int, Calibration] = field(default_factory=dict, init=False, repr=False, compare=False)

    def calibration(self, images: int) -> Calibration:
        """For so many unlabelled images; one that is made is kept.

        Where these are fewer than the labelled ones, shifts are looked at by parts of so many: limits of classes are looser
        for fewer images, and a trend through looks of other limits would be off.
        """
        at_once = min(AT_ONCE, len(self.clean), images)
        if at_once not in self._made:
            self._made[at_once] = self._calibration(at_once)
        return self._made[at_once]

    @cached_property
    def _source(self) -> Source:
        return Source(self.clean)

    def _calibration(self, at_once: int) -> Calibration:
        source, classes = self._source, self.clean.logits.shape[1]
        looks, accuracies, predicted = [], [], np.zeros(classes, np.int64)
        for known in chain([self.clean], self.shifted.values()):
            view = source.view(known.logits, known.cases, at_once)
            looks.append(view.look())
            accuracies.append(known.correct.mean())
            predicted = np.maximum(predicted, np.bincount(view.predicted, minlength=classes))
        signals = np.array([one.signals for one in looks])
        trend = Trend.through(signals, np.array(accuracies), len(self.clean), at_once)
        shares = predicted / len(self.clean)
        return Calibration(source, trend, looks, shares, list(self._attempts(at_once)), at_once)

    def _attempts(self, at_once: int) -> Iterator[Attempt]:
        """Every shift by the shifts of other groups, on the half of the photos that took no part."""
        at_once = min(at_once, int(self.half.sum()), int((~self.half).sum()))  # halves are about equal only
        for rows in (self.half, ~self.half):
            source = Source(self.clean.take(rows))
            signals = [source.view(source.clean.logits, source.clean.cases, at_once).look().signals]
            accuracies, trials = [source.clean.correct.mean()], []
            for known in self.shifted.values():
                own = known.take(rows)
                signals.append(source.view(own.logits, own.cases, at_once).look().signals)
                accuracies.append(own.correct.mean())
                trials.append(Trial.of(source, known.take(~rows), at_once))
            for name, trial in zip(self.shifted, trials, strict=True):
                group = self.groups[name]
                others = np.array([True, *(self.groups[other] != group for other in self.shifted)])  # the unshifted too
                trend = Trend.through(np.array(signals)[others], np.array(accuracies)[others], len(source.clean), at_once)
                yield trial.attempt(trend, name, group)


def widened(estimate: float, cases: int, missed: Sequence[Miss], level: float) -> tuple[float, float]:
    """An interval about an estimate, by the root mean square of these misses and Student's t of their groups.

    Degrees of freedom are Satterthwaite's, from as many as groups to three times as many: more where groups miss alike. The
    angle of a share of n cases varies by 1 / 4n, which is added for fewer cases than the misses are of.

    >>> low, high = widened(0.5, 100, [Miss(0.05, "blur", 100), Miss(0.0, "noise", 100)], 0.95)
    >>> round(low, 3), round(high, 3)  # t of two degrees is 4.303, the mean square .00125; sin(pi / 4 +- .152) squared
    (0.35, 0.65)
    """
    by_group: dict[str, list[float]] = {}
    for miss in missed:
        fewer = max(0.0, 1 / cases - 1 / miss.cases) / 4
        by_group.setdefault(miss.group, []).append(miss.by**2 + fewer)
    squares = np.array([np.mean(found) for found in by_group.values()])
    groups, mean, varied = len(squares), squares.mean(), squares.var(ddof=1) if len(squares) > 1 else np.inf
    freedom = min(max(2 * groups * mean**2 / max(varied, 1e-12), groups), 3 * groups)
    reach = student_quantile((1 + level) / 2, freedom) * float(np.sqrt(mean))
    low, high = np.clip([angle(estimate) - reach, angle(estimate) + reach], 0, np.pi / 2)
    return float(np.sin(low) ** 2), float(np.sin(high) ** 2)


def large_enough(grouping: Grouping) -> list[int]:
    """Groups that have enough images for an estimate of their own, and are not all of them.

    >>> large_enough(np.repeat([0, 1, 2], [30, 5, 20]))
    [0, 2]
    """
    values, counts = np.unique(grouping, return_counts=True)
    return [int(value) for value, count in zip(values, counts, strict=True) if IN_A_SLICE <= count < len(grouping)]
