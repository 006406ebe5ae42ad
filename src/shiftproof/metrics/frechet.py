"""How far apart two image sets lie in a feature space, seen as two normal distributions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
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
        root = np.asarray(np.linalg.qr(root, mode="r")) if len(root) > len(self.mean) else root
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
        raise BadInput(f"one set has {len(one.mean)} features an image and the other {len(other.mean)}")
    roots = [moments.root / np.sqrt(moments.images - 1) for moments in (one, other)]
    # tr (S1 S2)^1/2 is the sum of the singular values of R1 R2', where S = R'R: real whatever the rank
    overlap = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    spread = sum((root**2).sum() for root in roots) - 2 * overlap
    return float(((one.mean - other.mean) ** 2).sum() + max(spread, 0.0))


def _checked(moments: Moments) -> Moments:
    if moments.images < 2:
        raise BadInput(f"a spread needs at least two images, got {moments.images}")
    return moments
