"""Mahalanobis distance to the nearest class mean, with a covariance that all classes share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.cores import eigenvectors
from shiftproof.errors import NotKept
from shiftproof.ood.class_means import Matrix, class_moments_of
from shiftproof.ood.entry import Fitted, OODDetector
from shiftproof.ood.graph import Graph, Tensor
from shiftproof.ood.inputs import in_parts
from shiftproof.ood.shared import learnt_once, scored_once
from shiftproof.types import Fact, Features, OODScores, Predictions, Training

_SINGLE_IS_ENOUGH = 1e3
"""Axes that differ more in length are computed in double precision: rounding of the long ones would hide the short."""


@dataclass(frozen=True)
class Whitening:
    """A space in which a Gaussian spreads alike in all directions; directions without any spread are not in it."""

    mean: Matrix  # (features,)
    axes: NDArray[np.floating]  # (features, rank): directions, each over the spread along it
    cut: float  # variances up to this share of the largest count as none

    @property
    def rank(self) -> int:
        return int(self.axes.shape[1])

    def __call__(self, features: Features) -> Features:
        """The images in this space, (images, rank); the mean is its origin."""
        return np.asarray((features - self.mean).astype(self.axes.dtype) @ self.axes)

    def graph(self, graph: Graph) -> Tensor:
        """The same in an ONNX graph."""
        apart = graph.features.double() - self.mean
        return (apart.single() if self.axes.dtype == np.float32 else apart) @ self.axes


def whitening_of(mean: Matrix, covariance: Matrix, tolerance: float | None = None) -> Whitening:
    """The space in which this covariance is the identity; squared lengths in it are by its pseudo-inverse.

    >>> whitening_of(np.zeros(2), np.diag([4.0, 0.0]))(np.array([[6.0, 7.0]])).tolist()  # three spreads away; 7 is not seen
    [[3.0]]
    """
    variances, directions = eigenvectors(covariance)
    cut = len(covariance) * float(np.finfo(np.float64).eps) if tolerance is None else tolerance
    kept = variances > cut * variances[-1]
    spreads = np.sqrt(variances[kept])
    axes = directions[:, kept] / spreads
    single = spreads.max(initial=0) <= _SINGLE_IS_ENOUGH * spreads.min(initial=np.inf)
    # row by row in memory, as it is kept: a product with its transpose is rounded otherwise on some processors
    return Whitening(mean, np.ascontiguousarray(axes, np.float32 if single else np.float64), cut)


@dataclass(frozen=True)
class Mahalanobis(Fitted):
    """The class centres, in a space where every class spreads alike in all directions."""

    whitening: Whitening
    centres: Features  # (classes, rank), already whitened
    notes: tuple[str, ...] = ()

    @scored_once
    def __call__(self, predictions: Predictions) -> OODScores:
        """Squared distance of each image to the centre nearest it."""
        half_squares = (self.centres**2).sum(axis=1) / 2

        def nearest(features: Features) -> OODScores:
            points = self.whitening(features)
            # |p - c|^2 = |p|^2 - 2 (p.c - |c|^2 / 2): a matrix product says which centre is nearest, and how near it is
            # is then measured, for the sum of three large terms would be a small one with few digits
            centres = self.centres[(points @ self.centres.T - half_squares).argmax(axis=1)]
            return np.asarray(((points - centres) ** 2).sum(axis=1, dtype=np.float64))

        return in_parts(nearest, predictions.need_features())

    def graph(self, graph: Graph) -> Tensor:
        points = self.whitening.graph(graph)
        nearest = (points @ self.centres.T - (self.centres**2).sum(axis=1) / 2).argmax()
        apart = points - graph.rows(self.centres, nearest)
        return (apart * apart).double().sum()

    def found(self) -> dict[str, Fact]:
        return {"tolerance": self.whitening.cut, "classes": len(self.centres), "rank": self.whitening.rank}


@dataclass(frozen=True)
class RelativeMahalanobis(Fitted):
    """The class centres, and the one Gaussian that all training images make together."""

    of_classes: Mahalanobis
    background: Whitening

    @property
    def notes(self) -> tuple[str, ...]:
        return self.of_classes.notes

    def __call__(self, predictions: Predictions) -> OODScores:
        """Squared Mahalanobis distance to the nearest class mean minus that to the mean of all training images."""

        def at_large(features: Features) -> OODScores:
            return np.asarray((self.background(features) ** 2).sum(axis=1, dtype=np.float64))

        return self.of_classes(predictions) - in_parts(at_large, predictions.need_features())

    def graph(self, graph: Graph) -> Tensor:
        at_large = self.background.graph(graph)
        return self.of_classes.graph(graph) - (at_large * at_large).double().sum()

    def found(self) -> dict[str, Fact]:
        return {**self.of_classes.found(), "background rank": self.background.rank}


def fit_mahalanobis(training: Training, *, tolerance: float | None = None) -> Mahalanobis:
    """Mahalanobis distance to the nearest class mean, shared covariance, in the features of the head (Lee et al., 2018).

    The paper also changes the image and asks layers below; neither is done here. The covariance is inverted without
    directions whose variance is at most `tolerance` times the largest; None is what the pseudo-inverse of scipy and
    scikit-learn takes, the number of features times the rounding of double precision. Features are taken relative to their
    class, so it makes no difference whether their mean is assumed to be zero.
    """
    return _of_classes(training, tolerance)


MAHALANOBIS = OODDetector("Mahalanobis", fit_mahalanobis, needs_training=True)


def fit_relative_mahalanobis(training: Training, *, tolerance: float | None = None) -> RelativeMahalanobis:
    """Mahalanobis distance minus that to the Gaussian of all training images, the background (Ren et al., 2021).

    The distance to the background is taken off, so that what is unusual in every class, such as a direction that no class
    is about, counts less.
    """
    of_classes, overall = _of_classes(training, tolerance), class_moments_of(training).overall
    return RelativeMahalanobis(of_classes, whitening_of(overall.mean, overall.covariance, tolerance))


RELATIVE_MAHALANOBIS = OODDetector("Rel. Mahalanobis", fit_relative_mahalanobis, needs_training=True)


@learnt_once
def _of_classes(training: Training, tolerance: float | None) -> Mahalanobis:
    moments = class_moments_of(training)
    whitening = whitening_of(moments.overall.mean, moments.tied, tolerance)
    if whitening.rank == 0:
        raise NotKept("it estimates the within-class covariance, and no class has training images that differ")
    features = len(moments.tied)
    note = (
        f"the within-class covariance is rank-deficient ({whitening.rank} of {features} directions of feature space): "
        "the other directions are ignored"
    )
    return Mahalanobis(whitening, whitening(moments.centres), (note,) if whitening.rank < features else ())
