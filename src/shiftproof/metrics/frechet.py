"""Fréchet distance of two datasets in a feature space, as two normal distributions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.cores import eigenvectors, one_blas_thread
from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups, student_quantile, tail_of
from shiftproof.types import Features


@dataclass(frozen=True)
class Moments:
    """Mean and spread of the features of some images."""

    images: int
    mean: NDArray[np.floating]  # (features,)
    root: NDArray[np.floating]  # (at most features, features): root.T @ root is the sum of squares about the mean

    def with_images(self, features: Features) -> Moments:
        """The same with more images."""
        block = np.asarray(features, dtype=np.float64)
        if block.ndim != 2 or block.shape[1] != len(self.mean):
            raise BadInput(f"features should be (images, {len(self.mean)} features), got shape {block.shape}")
        if not np.isfinite(block).all():
            raise BadInput("some features are infinite or not numbers; leave such images out")
        if not len(block):
            return self
        centre = block.mean(axis=0)
        total = self.images + len(block)
        apart = np.sqrt(self.images * len(block) / total) * (centre - self.mean)
        # never squared: the root keeps twice the digits of a covariance, and of few images it is small
        root = np.concatenate([self.root, block - centre, apart[None]])
        if len(root) > len(self.mean):
            with one_blas_thread():
                root = np.asarray(np.linalg.qr(root, mode="r"))
        return Moments(total, self.mean + (centre - self.mean) * len(block) / total, root)


def moments_of(blocks: Iterable[Features]) -> Moments:
    """Mean and spread of features that come block by block, so that they need not be in memory together.

    >>> moments = moments_of([np.array([[0.0, 1.0]]), np.array([[2.0, 1.0], [4.0, 1.0]])])
    >>> moments.images, moments.mean
    (3, array([2., 1.]))
    >>> (moments.root.T @ moments.root).round(6)  # 2^2 + 0 + 2^2 along the first feature
    array([[8., 0.],
           [0., 0.]])
    """
    moments = None
    for block in blocks:
        if moments is None:
            moments = Moments(0, np.zeros(block.shape[-1]), np.zeros((0, block.shape[-1])))
        moments = moments.with_images(block)
    if moments is None:
        raise BadInput("there are no features to take moments of")
    return moments


def frechet_distance(first: Features | Moments, second: Features | Moments) -> float:
    """Squared Fréchet distance between normal distributions of the means and covariances of two sets of features.

    0 for sets that are alike in both (FID where the features are those of Inception; Heusel et al., 2017). Sets are given as
    features (images, features) or as their `Moments`. Of few images it comes out too large, the more so the more features
    there are: two halves of one set are not at 0, and only sets of about as many images compare.

    >>> first, second = np.array([[0.0], [2.0]]), np.array([[3.0], [9.0]])
    >>> round(frechet_distance(first, second), 6)  # means 1 and 6, standard deviations sqrt(2) and sqrt(18): 25 + 8
    33.0
    """
    one, other = (_checked(given if isinstance(given, Moments) else moments_of([given])) for given in (first, second))
    if one.mean.shape != other.mean.shape:
        raise BadInput(f"one dataset has {len(one.mean)} features an image and the other {len(other.mean)}")
    roots = [moments.root / np.sqrt(moments.images - 1) for moments in (one, other)]
    # tr (S1 S2)^1/2 is the sum of the singular values of R1 R2', where S = R'R: real whatever the rank
    with one_blas_thread():
        overlap = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    spread = sum((root**2).sum() for root in roots) - 2 * overlap
    return float(((one.mean - other.mean) ** 2).sum() + max(spread, 0.0))


def frechet_interval(
    first: Features,
    second: Features,
    *,
    first_clusters: Groups | None = None,
    second_clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the squared Fréchet distance that sets without end would have; None where these are too small to tell.

    `frechet_distance` comes out too large of few images, by about as much as it grows when each set is cut in half; that is
    taken off first, so the interval may lie below the number. Its width is that of what every image adds to the distance, by
    cluster, to first order: sets that are alike, of distance 0, it does not fit. Each half needs more images than there are
    features, and each set `LEAST_CLUSTERS` clusters. The two sets should share no cluster.

    >>> generator = np.random.default_rng(0)
    >>> first, second = generator.normal(size=(400, 2)), generator.normal(1, size=(400, 2))
    >>> low, high = frechet_interval(first, second)
    >>> low < 2 < high  # both features are moved by 1
    True
    """
    tail = tail_of(level)
    sides = [np.asarray(side, dtype=np.float64) for side in (first, second)]
    seen = frechet_distance(sides[0], sides[1])
    groups = [
        np.arange(len(side)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
        for side, clusters in zip(sides, (first_clusters, second_clusters), strict=True)
    ]
    halves = [np.random.default_rng(0).permutation(int(group.max()) + 1)[group] % 2 == 0 for group in groups]
    least = min(min(int(half.sum()), int((~half).sum())) for half in halves)
    if least <= sides[0].shape[1] or min(int(group.max()) + 1 for group in groups) < LEAST_CLUSTERS:
        return None
    cut = [
        frechet_distance(*(side[half == part] for side, half in zip(sides, halves, strict=True))) for part in (True, False)
    ]
    middle = seen - (float(np.mean(cut)) - seen)
    variances, free = [], []
    for values, group in zip(_added(*sides), groups, strict=True):
        sizes = np.bincount(group)
        sums = np.bincount(group, values - values.mean()) / len(values)
        variances.append(float((sums**2).sum()) * len(sizes) / (len(sizes) - 1))
        free.append(max(len(group) ** 2 / float((sizes**2).sum()) - 1, 1.0))
    variance = sum(variances)
    if variance <= 0:
        return None
    degrees = variance**2 / sum(part**2 / each for part, each in zip(variances, free, strict=True))
    reach = student_quantile(1 - tail, degrees) * float(np.sqrt(variance))
    return max(0.0, middle - reach), max(0.0, middle + reach)


def _added(first: Features, second: Features) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """What each image adds to the distance, but for a constant, (images,) of either dataset."""
    means = first.mean(axis=0), second.mean(axis=0)
    apart = means[0] - means[1]
    covariances = [np.atleast_2d(np.cov(side.T)) for side in (first, second)]
    root = _power(covariances[0], 0.5)
    # the linear map that takes the first normal distribution to the second, and the one back
    there = _power(covariances[0], -0.5) @ _power(root @ covariances[1] @ root, 0.5) @ _power(covariances[0], -0.5)
    back = root @ _power(root @ covariances[1] @ root, -0.5) @ root
    added = []
    for side, mean, sign, moved in ((first, means[0], 1, there), (second, means[1], -1, back)):
        around = side - mean
        added.append(2 * sign * around @ apart + (around * (around - around @ moved)).sum(axis=1))
    return added[0], added[1]


def _power(matrix: NDArray[np.floating], power: float) -> NDArray[np.floating]:
    """A power of a covariance, over the directions in which it has any spread."""
    values, vectors = eigenvectors(matrix)
    spread = values > 1e-10 * max(float(values.max()), 1e-300)
    return np.asarray((vectors[:, spread] * values[spread] ** power) @ vectors[:, spread].T)


def _checked(moments: Moments) -> Moments:
    if moments.images < 2:
        raise BadInput(f"a spread needs at least two images, got {moments.images}")
    return moments
