"""What recipes of training gain over a baseline, when both images and seeds are samples.

A training with another seed gives another model, and another set of photos another accuracy: a gain that counts one of the
two alone looks surer than it is. Images are crossed with seeds and shared by all recipes; each recipe has seeds of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups, student_quantile, tail_of

Correct: TypeAlias = NDArray[np.bool_ | np.floating]
"""Which images are correct, (seeds, images), or (seeds, images, conditions), whose mean over conditions counts."""


class Gain(NamedTuple):
    """The accuracy that a recipe adds to the baseline's, with intervals over images and seeds."""

    gain: float
    image_error: float  # standard error that other images would bring
    seed_error: float  # standard error that other seeds would bring
    degrees_of_freedom: float
    interval: tuple[float, float] | None  # of this gain alone; None of one seed, or of too few clusters
    simultaneous: tuple[float, float] | None  # holds together with those of all other recipes
    p: float | None  # corrected for the number of recipes


def recipe_gains(
    baseline: Correct, recipes: Sequence[Correct], *, clusters: Groups | None = None, level: float = 0.95
) -> list[Gain]:
    """Gains in accuracy of recipes over a baseline on the same images, each trained with two or more seeds.

    The variance of a gain has a part of images, by cluster and paired between recipe and baseline, and parts of the seeds of
    both: the variance of their accuracies, less what the interaction of seeds with images brings to either. Intervals are
    Student's with Satterthwaite's degrees of freedom; those that hold together, and p-values, have Bonferroni's correction
    for the number of recipes, which stays on the safe side where few seeds tell the variance. Above 0 the recipe helps.

    >>> plain = np.array([[1, 0, 1, 0, 1, 0, 1, 0], [1, 0, 1, 0, 1, 0, 0, 1]])
    >>> better = np.array([[1, 1, 1, 0, 1, 1, 1, 0], [1, 1, 1, 0, 1, 1, 1, 1]])
    >>> (found,) = recipe_gains(plain, [better])
    >>> found.gain, found.seed_error  # 13 of 16 beside 8 of 16; its seeds differ by an image, those of the baseline by none
    (0.3125, 0.0)
    """
    tail = tail_of(level)
    tables = [_over_conditions(table) for table in (baseline, *recipes)]
    if len({table.shape[1] for table in tables}) != 1:
        sizes = ", ".join(str(table.shape[1]) for table in tables)
        raise BadInput(f"recipes should be measured on the images of the baseline, got {sizes} images")
    images = tables[0].shape[1]
    places = np.arange(images) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    count = int(places.max()) + 1
    own, *others = (_seeds(table, places) for table in tables)
    differences = np.array([other.image_means - own.image_means for other in others]).reshape(len(others), images)
    estimates = differences.mean(axis=1)
    by_cluster = _cluster_sums(differences - estimates[:, None], places) / images
    image_variances = (by_cluster**2).sum(axis=1) * count / max(count - 1, 1)
    told = [count >= LEAST_CLUSTERS and min(own.seeds, other.seeds) >= 2 for other in others]
    found = []
    for known, gain, of_images, other in zip(told, estimates.tolist(), image_variances.tolist(), others, strict=True):
        of_seeds = own.variance + other.variance
        error, parts = np.sqrt(of_images + of_seeds), (float(np.sqrt(of_images)), float(np.sqrt(of_seeds)))
        if not known:
            found.append(Gain(gain, *parts, float("nan"), None, None, None))
            continue
        degrees = _satterthwaite(
            of_images + of_seeds, [(of_images, count - 1), (own.seen, own.seeds - 1), (other.seen, other.seeds - 1)]
        )
        reach, wider = (float(student_quantile(1 - part, degrees) * error) for part in (tail, tail / sum(told)))
        p = min(1.0, sum(told) * _student_p(gain, float(error), degrees))
        found.append(Gain(gain, *parts, degrees, (gain - reach, gain + reach), (gain - wider, gain + wider), p))
    return found


def _student_p(gain: float, error: float, degrees: float) -> float:
    from scipy.special import stdtr

    if error == 0:
        return 1.0 if gain == 0 else 0.0
    return float(2 * stdtr(degrees, -abs(gain) / error))


class _Seeds(NamedTuple):
    """The trainings of one recipe: their mean on each image, and the variance of their mean accuracy by seeds."""

    seeds: int
    image_means: NDArray[np.floating]  # (images,)
    seen: float  # variance of the mean over seeds, with what their interaction with images adds
    variance: float  # without it


def _seeds(table: NDArray[np.floating], places: Groups) -> _Seeds:
    seeds, images = table.shape
    if seeds < 2:
        return _Seeds(seeds, table[0], 0.0, 0.0)
    image_means, seed_means = table.mean(axis=0), table.mean(axis=1)
    residuals = table - image_means - seed_means[:, None] + table.mean()
    clusters = int(places.max()) + 1
    # what a mean over these images would vary by from seed to seed, if seeds differed in nothing but single images
    interaction = (_cluster_sums(residuals, places) ** 2).sum() / images**2 / (seeds - 1) * clusters / max(clusters - 1, 1)
    seen = float(seed_means.var(ddof=1))
    return _Seeds(seeds, image_means, seen / seeds, max(seen - float(interaction), 0.0) / seeds)


def _satterthwaite(variance: float, parts: Sequence[tuple[float, int]]) -> float:
    """Degrees of freedom of a variance made of parts, each with its own; seeds with all that is seen of their variance.

    What is left of it without the interaction would pretend to be surer the smaller it happens to be.
    """
    spread = sum(part**2 / degrees for part, degrees in parts if degrees > 0)
    most = max(degrees for _, degrees in parts)
    return float(min(max(variance**2 / spread, 1.0), most)) if spread > 0 else float(most)


def _cluster_sums(values: NDArray[np.floating], places: Groups) -> NDArray[np.floating]:
    """Sums over the images of each cluster, (rows, clusters)."""
    return np.array([np.bincount(places, row) for row in values]).reshape(len(values), int(places.max()) + 1)


def _over_conditions(correct: Correct) -> NDArray[np.floating]:
    if correct.ndim not in (2, 3) or 0 in correct.shape:
        raise BadInput(f"correct should be (seeds, images) or (seeds, images, conditions), got shape {correct.shape}")
    return np.asarray(correct if correct.ndim == 2 else correct.mean(axis=2), dtype=float)
