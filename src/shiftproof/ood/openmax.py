"""OpenMax: the best classes hand part of their logits over to an unknown class, the more the farther the image is off."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.accuracy import best_classes
from shiftproof.ood.class_means import (
    class_means,
    rows_by_label,
    rows_classified_correctly,
    unlearnt_classes,
    width_of,
)
from shiftproof.ood.entry import Fitted, OODDetector
from shiftproof.ood.graph import Graph, Tensor
from shiftproof.ood.inputs import in_parts, logits_of, parts_of
from shiftproof.ood.scores import free_energy
from shiftproof.types import Fact, Logits, OODScores, Predictions, Training

_STEPS = 50  # five to seven are enough in practice
_CLOSE_ENOUGH = 1e-12


class Weibull(NamedTuple):
    """Distributions of positive numbers: the share above x is exp(-(x / scale)^shape)."""

    shape: NDArray[np.floating]  # (samples,)
    scale: NDArray[np.floating]  # (samples,)


def fit_weibull(values: NDArray[np.floating]) -> Weibull:
    """The most likely distribution of each row of positive numbers, (samples, values) padded with nan.

    The best scale for a shape is known, so a root in one variable is left, found by Newton's method in the logarithm of the
    shape. Equal numbers have no best shape: the more peaked, the likelier; their shape is infinite. A row without numbers
    has nan for both.

    >>> drawn = np.random.default_rng(0).weibull(3, size=(1, 100_000)) * 7
    >>> fitted = fit_weibull(drawn)
    >>> fitted.shape.round(1), fitted.scale.round(1)
    (array([3.]), array([7.]))
    """
    counted = ~np.isnan(values)
    count = counted.sum(axis=1)
    peak = np.where(counted, values, -np.inf).max(axis=1, initial=-np.inf)
    # of logarithms of nearly equal numbers the last digits matter, and a plain logarithm would lose them
    logs = np.log1p(np.where(counted, values - peak[:, None], 0) / np.where(count, peak, 1)[:, None])
    varied = logs.min(axis=1, initial=0) < 0
    shape = np.where(count, np.inf, np.nan)
    shape[varied] = _likeliest_shape(logs[varied], counted[varied])
    with np.errstate(invalid="ignore"):
        weights = np.where(counted & varied[:, None], np.exp(shape[:, None] * logs), counted)
        scale = np.where(count, peak, np.nan) * (weights.sum(axis=1) / np.maximum(count, 1)) ** (1 / shape)
    return Weibull(shape, scale)


def _likeliest_shape(logs: NDArray[np.floating], counted: NDArray[np.bool_]) -> NDArray[np.floating]:
    count = counted.sum(axis=1)
    mean = logs.sum(axis=1) / count
    spread = np.sqrt((np.where(counted, logs - mean[:, None], 0) ** 2).sum(axis=1) / count)
    shape = np.pi / np.sqrt(6) / spread  # where the spread of the logarithms would be that of the distribution
    for _ in range(_STEPS):
        weights = np.where(counted, np.exp(shape[:, None] * logs), 0)
        total = weights.sum(axis=1)
        first = (weights * logs).sum(axis=1) / total
        second = (weights * (logs - first[:, None]) ** 2).sum(axis=1) / total
        step = (first - mean - 1 / shape) / (shape * second + 1 / shape)
        shape = shape * np.exp(-np.clip(step, -1, 1))  # at most e times as large or as small, so that it stays positive
        if (np.abs(step) < _CLOSE_ENOUGH).all():
            break
    return np.asarray(shape)


Distance = Literal["eucos", "euclidean"]
"""Between logits and their class's mean: Euclidean, or a 200th of it plus one minus the cosine."""
MeanOf = Literal["correct", "all"]
"""Which training images make up a class: those classified correctly, or all that are labelled so."""

SHIFT = 10_000.0
"""The authors' library moves the smallest distance of a tail here before it fits."""

_ROWS_AT_ONCE = 128  # these rows and as many class means stay in the processor's cache


@dataclass(frozen=True)
class OpenMax(Fitted):
    """The mean logits of each class, and how its farthest training images are spread around them."""

    means: Logits  # (classes, classes)
    nearest: NDArray[np.floating]  # (classes,): the smallest distance of the tail; nan for a class without images
    tails: Weibull  # of each class's largest distances, moved so that the smallest is at `SHIFT`
    alpha: int
    distance: Distance

    def __call__(self, predictions: Predictions) -> OODScores:
        """Log-odds of the unknown class: as probabilities most OOD images would be alike, 1 but for rounding."""
        return in_parts(self._log_odds, logits_of(predictions), at_once=_ROWS_AT_ONCE)

    def found(self) -> dict[str, Fact]:
        return {"alpha": min(self.alpha, len(self.means)), "classes without images": self._missing}

    @property
    def notes(self) -> tuple[str, ...]:
        return unlearnt_classes(self._missing, len(self.nearest))

    @property
    def _missing(self) -> int:
        return int(np.isnan(self.nearest).sum())

    def _log_odds(self, logits: Logits) -> OODScores:
        logits = logits.astype(np.float64)
        alpha = min(self.alpha, logits.shape[1])
        best = best_classes(logits, alpha)
        lengths = np.linalg.norm(logits, axis=1)
        outlying = np.stack([self._outlying(logits, best[:, rank], lengths) for rank in range(alpha)], axis=1)
        best_logits = np.take_along_axis(logits, best, axis=1)
        handed_over = best_logits * outlying * (np.arange(alpha, 0, -1) / alpha)
        np.put_along_axis(logits, best, best_logits - handed_over, axis=1)
        return np.asarray(handed_over.sum(axis=1) + free_energy(logits))

    def graph(self, graph: Graph) -> Tensor:
        alpha = min(self.alpha, graph.classes)
        best = graph.logits.top(alpha)
        handed_over = [
            best.values.column(rank, keep=True)
            * self._outlying_in(graph, best.places.column(rank))
            * ((alpha - rank) / alpha)
            for rank in range(alpha)
        ]
        taken = graph.side_by_side(handed_over)
        return taken.sum() + graph.logits.replaced(best.places, best.values - taken).free_energy()

    def _outlying_in(self, graph: Graph, of_class: Tensor) -> Tensor:
        """As `_outlying`, in an ONNX graph, (images, 1)."""
        known = ~np.isnan(self.tails.shape)
        nearest, shape, scale = (
            graph.rows(np.where(known, column, 1.0)[:, None], of_class)
            for column in (self.nearest, self.tails.shape, self.tails.scale)
        )
        means, seen = graph.rows(self.means.astype(np.float64), of_class), graph.rows(known[:, None].astype(float), of_class)
        apart = graph.logits - means
        moved = (apart * apart).sum(keep=True).sqrt()
        if self.distance == "eucos":
            lengths = (graph.logits * graph.logits).sum(keep=True).sqrt() * (means * means).sum(keep=True).sqrt()
            none = lengths.equals(0).double()
            cosine = (graph.logits * means).sum(keep=True) / (lengths + none)
            moved = moved / 200 + 1 - cosine
        beyond = ((moved - nearest + SHIFT).at_least(0) / scale).power(shape)
        return (1 - (-beyond).exp()) * seen + (1 - seen)

    @cached_property
    def _lengths(self) -> NDArray[np.floating]:
        """Of the means, (classes,)."""
        return np.asarray(np.linalg.norm(self.means.astype(np.float64, copy=False), axis=1))

    def _outlying(
        self, logits: Logits, of_class: NDArray[np.integer], lengths: NDArray[np.floating] | None = None
    ) -> NDArray[np.floating]:
        """Probability that a tail image of its class is nearer to the mean; 1 for a class without images."""
        both = None if lengths is None else lengths * self._lengths[of_class]
        moved = _distances(logits, self.means[of_class], self.distance, both) - self.nearest[of_class] + SHIFT
        shape, scale = self.tails.shape[of_class], self.tails.scale[of_class]
        with np.errstate(over="ignore"):  # beyond all doubt: infinity is correct
            beyond = (np.maximum(moved, 0) / scale) ** shape
        return np.where(np.isnan(shape), 1, -np.expm1(-beyond))


def fit_openmax(
    training: Training,
    *,
    tail: int = 20,
    alpha: int = 10,
    distance: Distance = "eucos",
    mean_of: MeanOf = "correct",
) -> OpenMax:
    """Log-odds of the unknown class, by a Weibull tail of the distances from class means (Bendale & Boult, 2016).

    It is fitted to the `tail` largest distances of each class from its mean logits, and revises the `alpha` best classes of
    an image. Of a class whose tail has one distance only, everything farther is OOD; of one without images, everything is.
    """
    if tail < 1 or alpha < 1 or distance not in ("eucos", "euclidean") or mean_of not in ("correct", "all"):
        raise BadInput(
            "openmax takes a tail and an alpha of at least 1, distance eucos or euclidean, and mean_of correct or all; "
            f"got {tail}, {alpha}, {distance} and {mean_of}"
        )
    rows_of_classes = rows_classified_correctly if mean_of == "correct" else rows_by_label
    means = class_means(rows_of_classes(training, logits_of), width_of(training, Predictions.need_logits)).means
    if not np.isfinite(means).all():
        raise NotKept("it measures distances between logits, and some are infinite, as of a class that the model lacks")
    tails = np.full((len(means), tail), -np.inf)
    for rows, of_class in rows_of_classes(training, logits_of):
        for part in parts_of(len(rows)):
            tails = _with_largest(tails, _distances(rows[part], means[of_class[part]], distance), of_class[part])
    tails[np.isneginf(tails)] = np.nan
    nearest = np.fmin.reduce(tails, axis=1)
    return OpenMax(means, nearest, fit_weibull(tails - nearest[:, None] + SHIFT), alpha, distance)


OPENMAX = OODDetector(
    "OpenMax",
    fit_openmax,
    needs_training=True,
    presets={
        "openood": {"alpha": 3, "distance": "euclidean"},
        "pytorch-ood": {"tail": 25, "distance": "euclidean", "mean_of": "all"},
    },
)


def _distances(
    logits: Logits, means: Logits, distance: Distance, lengths: NDArray[np.floating] | None = None
) -> NDArray[np.floating]:
    """From each row to the mean beside it, (images,), in double precision: a cosine near 1 leaves few digits of its gap.

    `lengths` are those of a row and its mean, multiplied, where they are known.
    """
    logits = logits.astype(np.float64, copy=False)
    euclidean = np.linalg.norm(logits - means, axis=1)
    if distance == "euclidean":
        return np.asarray(euclidean)
    if lengths is None:
        lengths = np.linalg.norm(logits, axis=1) * np.linalg.norm(means, axis=1)
    products = np.einsum("ij,ij->i", logits, means)
    cosine = np.divide(products, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.asarray(euclidean / 200 + 1 - cosine)


def _with_largest(
    tails: NDArray[np.floating], distances: NDArray[np.floating], of_class: NDArray[np.integer]
) -> NDArray[np.floating]:
    """The largest distances of each class, these taken in."""
    classes, tail = tails.shape
    all_classes = np.concatenate([np.repeat(np.arange(classes), tail), of_class])
    all_distances = np.concatenate([tails.ravel(), distances])
    order = np.lexsort((-all_distances, all_classes))
    firsts = np.searchsorted(all_classes[order], np.arange(classes))
    return np.asarray(all_distances[order][firsts[:, None] + np.arange(tail)])
