"""Residual: distance of the features from the principal space of training features; ViM: that against the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.cores import eigenvectors, one_blas_thread
from shiftproof.errors import BadInput, NotKept
from shiftproof.ood.class_means import Matrix, OverallMoments, overall_moments_of
from shiftproof.ood.entry import Fitted, OODDetector
from shiftproof.ood.graph import Graph, Tensor
from shiftproof.ood.inputs import head_of, in_parts, logits_of
from shiftproof.ood.scores import energy
from shiftproof.ood.shared import learnt_once, scored_once
from shiftproof.types import Fact, Features, Head, OODScores, Predictions, Training

_NEARLY_SINGULAR = 1e-4
"""A head whose smallest singular value is below this share of the largest, a thousand roundings of its weights."""

_SOUND = 1e-3
"""A head whose smallest singular value is above this share of the largest has an origin that rounding hardly moves."""

_NEAR_THE_CUT = 10
"""Times the tolerance; a singular value below that might as well have been counted as zero."""

_ROUNDING = 1e-5
"""Training images of which less than this share of all variance is outside the principal space lie within it."""

_WITHIN = "within the principal space; give it more images or fewer dimensions"


@dataclass(frozen=True)
class Origin:
    """The features at which a head gives logits nearest zero, and how safely they are known."""

    place: Matrix  # (features,)
    tolerance: float  # singular values up to this share of the largest count as zero
    smallest: float  # singular value, as a share of the largest
    rank: int
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Residual(Fitted):
    """What lies outside the principal space: its directions or, where these are fewer to multiply by, those inside it."""

    origin: Origin
    dimension: int  # of the principal space
    mean: NDArray[np.float32]  # (features,), of the training images
    axes: NDArray[np.float32]  # (features, directions)
    inside: bool
    offset: NDArray[np.float32]  # the residual of the mean: along the axes outside, or in all features
    holds_training: bool  # whether all training images lie in the principal space, but for rounding

    @property
    def notes(self) -> tuple[str, ...]:
        return (*self.origin.notes, *([f"the training images lie {_WITHIN}"] if self.holds_training else []))

    @scored_once
    def __call__(self, predictions: Predictions) -> OODScores:
        """Distance of each image from the principal space."""
        return in_parts(self._distance, predictions.need_features())

    def _distance(self, features: Features) -> OODScores:
        # from the mean, not from the origin: that of a nearly singular head is too far off for single precision
        apart = features.astype(np.float32, copy=False) - self.mean
        along = apart @ self.axes
        # never as |x|^2 less the part inside: nearly all of it is, and few digits would be left
        outside = apart - along @ self.axes.T if self.inside else along
        outside += self.offset
        return np.asarray(np.sqrt(np.square(outside, out=outside).sum(axis=1, dtype=np.float64)))

    def graph(self, graph: Graph) -> Tensor:
        apart = graph.features - self.mean
        along = apart @ self.axes
        outside = (apart - along @ self.axes.T if self.inside else along) + self.offset
        return (outside * outside).double().sum().sqrt()

    def found(self) -> dict[str, Fact]:
        return {
            "dimension": self.dimension,
            "tolerance": self.origin.tolerance,
            "head rank": self.origin.rank,
            "sigma_min/sigma_max of the head": self.origin.smallest,
        }


@dataclass(frozen=True)
class Vim(Fitted):
    """The residual as one more logit, scaled to be as large as the highest one of training images."""

    residual: Residual
    scale: float

    @property
    def notes(self) -> tuple[str, ...]:
        return self.residual.notes

    def __call__(self, predictions: Predictions) -> OODScores:
        """The scaled residual and the free energy of the logits, added."""
        return self.scale * self.residual(predictions) + energy(predictions)

    def graph(self, graph: Graph) -> Tensor:
        return self.residual.graph(graph) * self.scale + graph.logits.free_energy()

    def found(self) -> dict[str, Fact]:
        return {**self.residual.found(), "alpha": self.scale}


def fit_residual(training: Training, *, dimension: int | None = None, tolerance: float | None = None) -> Residual:
    """Distance to the principal space of the training features, about the head's origin (Wang et al., 2022).

    `dimension` is that of the principal space; None is the authors' rule, 1000 of 2048 features or more, 512 of 768 or more,
    else half. The origin is minus the head's pseudo-inverse times its bias, in which singular values up to `tolerance` times
    the largest count as zero. None is the larger side of the head times the rounding of single precision, as torch takes it;
    the authors' 1e-15 is below the rounding of the weights, and sends the origin of a nearly singular head far off.
    """
    if dimension is not None and dimension < 0:
        raise BadInput(f"a principal space has 0 dimensions or more, got {dimension}")
    return _fitted_residual(training, dimension, tolerance)


RESIDUAL = OODDetector(
    "Residual", fit_residual, needs_training=True, presets={"openood": {"dimension": 512, "tolerance": 1e-15}}
)


def fit_vim(training: Training, *, dimension: int | None = None, tolerance: float | None = None) -> Vim:
    """Virtual-logit matching (ViM): the scaled residual against the logits (Wang et al., 2022); see `residual`.

    The scale, the authors' alpha, is the mean highest logit of training images over their mean residual; 0 where that is 0.
    """
    residual = fit_residual(training, dimension=dimension, tolerance=tolerance)
    if residual.holds_training and residual.dimension < len(residual.mean):
        raise NotKept(f"its residual cannot be scaled: all {len(training)} training images lie {_WITHIN}")
    highest = outside = 0.0
    for block in training.blocks():
        highest += float(logits_of(block).max(axis=1).sum(dtype=np.float64))
        outside += float(residual(block).sum())
    return Vim(residual, highest / outside if outside > 0 else 0.0)


VIM = OODDetector("ViM", fit_vim, needs_training=True, presets={"openood": {"dimension": 256, "tolerance": 1e-15}})


def principal_dimension(features: int) -> int:
    """The authors' choice for so many features.

    >>> [principal_dimension(features) for features in (2048, 1280, 512)]
    [1000, 512, 256]
    """
    return 1000 if features >= 2048 else 512 if features >= 768 else features // 2


def origin_of(head: Head, tolerance: float | None = None) -> Origin:
    """The point at which the logits are nearest zero: minus the pseudo-inverse of the weights times the bias.

    >>> origin_of(Head(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 4.0]))).place
    array([-1., -1.])
    """
    cut = max(head.weights.shape) * float(np.finfo(np.float32).eps) if tolerance is None else tolerance
    if (sound := _origin_of_sound(head, cut)) is not None:
        return sound
    with one_blas_thread():
        left, values, right = np.linalg.svd(head.weights.astype(np.float64), full_matrices=False)
    shares = values / values[0] if values[0] > 0 else values
    kept = shares > cut
    place = -(right[kept].T @ (left[:, kept].T @ head.bias / values[kept]))
    return Origin(place, cut, float(shares[-1]), int(kept.sum()), tuple(_doubts(shares, cut)))


def _origin_of_sound(head: Head, cut: float) -> Origin | None:
    """The same, in a quarter of the time, of a head that is far from singular; None of any other.

    By its weights times themselves, which has half the digits of them, so that the origin is found to about as many; what is
    left of the logits there is then taken off once more, which doubles them.
    """
    weights, bias = head.weights.astype(np.float64), head.bias.astype(np.float64)
    wide = weights.shape[0] <= weights.shape[1]
    squared = weights @ weights.T if wide else weights.T @ weights
    with one_blas_thread():
        squares = np.linalg.eigvalsh(squared)
    if squares[0] <= (max(_SOUND, _NEAR_THE_CUT * cut)) ** 2 * squares[-1]:
        return None
    from scipy.linalg import cho_factor, cho_solve  # slow to import

    with one_blas_thread():
        factor = cho_factor(squared, overwrite_a=True, check_finite=False)

    def nearest(logits: Matrix) -> Matrix:
        """The features that give logits nearest these."""
        given = logits if wide else weights.T @ logits
        solved = cho_solve(factor, given, check_finite=False)
        return np.asarray(weights.T @ solved if wide else solved)

    place = -nearest(bias)
    place -= nearest(weights @ place + bias)
    return Origin(place, cut, float(np.sqrt(squares[0] / squares[-1])), len(squares), ())


def _doubts(shares: NDArray[np.float64], cut: float) -> list[str]:
    """What to say of a head whose origin hangs on the tolerance."""
    if shares[-1] >= max(_NEARLY_SINGULAR, _NEAR_THE_CUT * cut):
        return []
    kept = shares > cut
    return [
        f"the model's head is nearly singular: its smallest singular value is {shares[-1]:.1e} of the largest, and the "
        f"smallest of the {kept.sum()} kept at tolerance {cut:.1e} is {shares[kept].min(initial=1):.1e}, so that the origin "
        "hangs on the tolerance"
    ]


class PrincipalAxes(NamedTuple):
    """Directions of feature space as seen from the origin, those in which training images spread least first."""

    origin: Origin
    moments: OverallMoments
    variances: Matrix  # (features,)
    directions: Matrix  # (features, as many as are wanted), a column each


@learnt_once
def _principal_axes(training: Training, tolerance: float | None, wanted: int | None) -> PrincipalAxes:
    origin, moments = origin_of(head_of(training), tolerance), overall_moments_of(training)
    from_origin = moments.mean - origin.place
    return PrincipalAxes(origin, moments, *eigenvectors(moments.covariance + np.outer(from_origin, from_origin), wanted))


@learnt_once
def _fitted_residual(training: Training, dimension: int | None, tolerance: float | None) -> Residual:
    features = head_of(training).weights.shape[1]
    dimension = min(features, principal_dimension(features) if dimension is None else dimension)
    # seen from the principal space where that takes fewer multiplications, there and back
    inside = 2 * dimension < features - dimension
    wanted = None if inside else features - dimension
    origin, moments, variances, directions = _principal_axes(training, tolerance, wanted)
    outside = directions[:, : features - dimension]
    mean = moments.mean.astype(np.float32)
    along = outside.T @ (mean - origin.place)
    return Residual(
        origin,
        dimension,
        mean,
        axes=(directions[:, features - dimension :] if inside else outside).astype(np.float32),
        inside=inside,
        offset=(outside @ along if inside else along).astype(np.float32),
        holds_training=bool(variances[: features - dimension].sum() <= _ROUNDING * np.trace(moments.covariance)),
    )
