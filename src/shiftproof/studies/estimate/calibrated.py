"""An estimate of accuracy without labels that is calibrated on shifts whose accuracy is known, and tried on others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shiftproof.metrics.intervals import student_quantile
from shiftproof.metrics.likelihood import fit_temperature, split_half
from shiftproof.metrics.unlabelled import (
    average_confidence,
    average_thresholded_confidence,
    confidence_by_transport,
    confidence_within_limits,
    difference_of_confidences,
    negative_entropy,
    smoothed_shares,
)
from shiftproof.types import Predictions

CALIBRATED = "calibrated"
"""Name of our own estimate, among the published ones."""


@dataclass(frozen=True)
class Answers:
    """What a model says of some labelled images under one shift, and what they are."""

    logits: NDArray[np.floating]  # (images, classes)
    labels: NDArray[np.integer]  # (images,)
    correct: NDArray[np.bool_]  # (images,)

    def take(self, rows: NDArray[np.bool_]) -> Answers:
        return Answers(self.logits[rows], self.labels[rows], self.correct[rows])

    def __len__(self) -> int:
        return len(self.labels)


class Look(NamedTuple):
    """What can be seen of answers without labels."""

    signal: float  # mean confidence where no class has more images than chance would give it; the estimate is made of it
    piled: float  # what the mean confidence loses by those limits: much where answers pile up on a few classes
    images: int


@dataclass(frozen=True)
class Source:
    """Labelled images without a shift: what every estimate starts from."""

    clean: Answers

    @cached_property
    def temperature(self) -> float:
        return fit_temperature(self.clean.labels[:, None], self.clean.logits)

    @cached_property
    def _probabilities(self) -> NDArray[np.floating]:
        return self.probabilities(self.clean.logits)

    @cached_property
    def label_shares(self) -> NDArray[np.floating]:
        return smoothed_shares(self.clean.labels, self.clean.logits.shape[1])

    def probabilities(self, logits: NDArray[np.floating]) -> NDArray[np.floating]:
        """Of every class, after temperature scaling."""
        scaled = np.asarray(logits, float) / self.temperature
        powers = np.exp(scaled - scaled.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def look(self, logits: NDArray[np.floating]) -> Look:
        """What can be seen of answers without labels."""
        probabilities = self.probabilities(logits)
        limited = confidence_within_limits(probabilities, self.label_shares)
        return Look(limited, average_confidence(probabilities) - limited, len(logits))

    def published(self, logits: NDArray[np.floating]) -> dict[str, float]:
        """The estimates of others, which know no shift but the one that is asked for."""
        source, correct, target = self._probabilities, self.clean.correct, self.probabilities(logits)
        counts = np.bincount(self.clean.labels, minlength=source.shape[1])
        return {
            "AC": average_confidence(target),
            "DoC": difference_of_confidences(source, correct, target),
            "ATC-MC": average_thresholded_confidence(source.max(axis=1), correct, target.max(axis=1)),
            "ATC-NE": average_thresholded_confidence(negative_entropy(source), correct, negative_entropy(target)),
            "COT": confidence_by_transport(target, counts / counts.sum()),
        }


def log_odds(share: float | NDArray[np.floating], images: int) -> NDArray[np.floating]:
    """Of a share of so many images, half an image from certainty at most.

    >>> log_odds(0.5, 10).round(3), log_odds(1.0, 10).round(3)
    (np.float64(0.0), np.float64(3.045))
    """
    hits = np.asarray(share) * images
    return np.asarray(np.log((hits + 0.5) / (images - hits + 0.5)))[()]


@dataclass(frozen=True)
class Line:
    """Log-odds of the accuracy as a straight line in those of the signal."""

    intercept: float
    slope: float

    @classmethod
    def through(cls, signals: ArrayLike, accuracies: ArrayLike, images: int) -> Line:
        """By least squares.

        >>> Line.through([0.2, 0.5, 0.8], [0.2, 0.5, 0.8], 100)
        Line(intercept=0.0, slope=1.0)
        """
        slope, intercept = np.polyfit(log_odds(np.array(signals), images), log_odds(np.array(accuracies), images), 1)
        return cls(round(float(intercept), 12), round(float(slope), 12))

    def at(self, look: Look) -> float:
        """Log-odds of the accuracy that the line gives."""
        return self.intercept + self.slope * float(log_odds(look.signal, look.images))


def _share(log_odds: float) -> float:
    return float(1 / (1 + np.exp(-log_odds)))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


@dataclass(frozen=True)
class Attempt:
    """One estimate of an accuracy that is known: of a shift, on photos, that took no part in the calibration."""

    shift: str
    group: str
    accuracy: float
    estimates: Mapping[str, float]  # by name; ours is `CALIBRATED`
    images: int
    miss: float  # of ours, in log-odds

    def error(self, name: str) -> float:
        return self.estimates[name] - self.accuracy


@dataclass(frozen=True)
class Calibration:
    """The line through all tried shifts, and how far estimates were off where a group of shifts was left out."""

    source: Source
    line: Line
    looks: Sequence[Look]  # of the shifts that the line goes through
    attempts: Sequence[Attempt]

    @classmethod
    def of(
        cls, clean: Answers, shifted: Mapping[str, Answers], groups: Mapping[str, str], half: NDArray[np.bool_]
    ) -> Calibration:
        """From answers to the same images under every shift; `half` of the images are kept apart in each try."""
        source = Source(clean)
        known = [clean, *shifted.values()]
        looks = [source.look(one.logits) for one in known]
        line = Line.through([one.signal for one in looks], [float(one.correct.mean()) for one in known], len(clean))
        return cls(source, line, looks, list(_attempts(clean, shifted, groups, half)))

    def estimate(self, look: Look) -> float:
        return _share(self.line.at(look))

    def interval(self, look: Look, level: float = 0.95) -> tuple[float, float]:
        """As wide as errors were on shifts that took no part, and wider for fewer images than those had."""
        return widened(self.line.at(look), look.images, self.attempts, level)

    def why_outside(self, look: Look) -> str | None:
        """Why nothing is known of such answers, or None: they lie outside all that was tried."""
        most, least = max(one.piled for one in self.looks), min(one.signal for one in self.looks)
        if look.piled > 2 * most:
            return (
                f"its predictions pile up on a few classes: they cost {_percent(look.piled)} of the mean confidence, and at "
                f"most {_percent(most)} under the shifts that were tried; are these images of other classes?"
            )
        if look.signal < least / 2:
            tried = f"the least of the shifts that were tried is {_percent(least)}"
            return f"its mean confidence within the limits of classes is {_percent(look.signal)}, and {tried}"
        return None

    def covered(self, level: float = 0.95) -> float:
        """Share of the tried accuracies within an interval that is made from the tries of the other groups."""
        within = []
        for one in self.attempts:
            others = [other for other in self.attempts if other.group != one.group]
            low, high = widened(float(log_odds(one.estimates[CALIBRATED], 10**9)), one.images, others, level)
            within.append(low <= one.accuracy <= high)
        return float(np.mean(within))


def widened(middle: float, images: int, attempts: Sequence[Attempt], level: float) -> tuple[float, float]:
    """An interval about log-odds, by the root mean square of what these attempts missed."""
    missed = np.array([one.miss for one in attempts])
    fewer = np.array([max(1.0, one.images / images) for one in attempts])
    spread = float(np.sqrt(np.mean(missed**2 * fewer)))
    groups = len({one.group for one in attempts})
    reach = student_quantile((1 + level) / 2, max(1, groups)) * spread
    return _share(middle - reach), _share(middle + reach)


def _attempts(
    clean: Answers, shifted: Mapping[str, Answers], groups: Mapping[str, str], half: NDArray[np.bool_]
) -> Iterator[Attempt]:
    """Every shift by a line through the shifts of other groups, on the half of the photos that the line does not know."""
    for rows in (half, ~half):
        source = Source(clean.take(rows))
        known = [source.clean, *(one.take(rows) for one in shifted.values())]
        signals = np.array([source.look(one.logits).signal for one in known])
        accuracies = np.array([one.correct.mean() for one in known])
        for name, answers in shifted.items():
            others = np.array([True, *(groups[other] != groups[name] for other in shifted)])  # the unshifted among them
            line = Line.through(signals[others], accuracies[others], len(source.clean))
            new = answers.take(~rows)
            middle = line.at(source.look(new.logits))
            accuracy = float(new.correct.mean())
            yield Attempt(
                shift=name,
                group=groups[name],
                accuracy=accuracy,
                estimates={CALIBRATED: _share(middle), **source.published(new.logits)},
                images=len(new),
                miss=middle - float(log_odds(accuracy, len(new))),
            )


def halves(predictions: Predictions) -> NDArray[np.bool_]:
    """Which images are of the first half, clusters whole."""
    return split_half(predictions.clusters.keys)
