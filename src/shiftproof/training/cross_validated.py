"""Out-of-sample logits: heads fitted to the features of some images answer for the others, by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from shiftproof.errors import BadInput
from shiftproof.randomness import rng_for
from shiftproof.runs.workers import Workers
from shiftproof.training.heads import PENALTIES, Design, Fit, Linear, fit, fit_head

PRUNED = 0.1
"""Share of the images, those whose label is least likely, that take no part in the second round."""


def folds_of(classes: NDArray[np.integer], keys: Sequence[str], folds: int, *, seed: int = 0) -> NDArray[np.intp]:
    """The fold of each image, (images,): clusters of every class are dealt out in a random order, and none is parted.

    A cluster of several classes counts as of that of its first image. BadInput where a fold would be empty.

    >>> folds_of(np.array([0, 0, 0, 1, 1]), ["a", "a", "b", "c", "d"], 2)
    array([0, 0, 1, 1, 0])
    """
    of_class: dict[int, list[str]] = {}
    for key, of in dict(zip(reversed(keys), reversed(classes.tolist()), strict=True)).items():
        of_class.setdefault(of, []).append(key)
    fold_of: dict[str, int] = {}
    for of in sorted(of_class):
        for key in sorted(of_class[of], key=lambda key: (rng_for(key, "fold", seed).random(), key)):
            fold_of[key] = len(fold_of) % folds
    if len(set(fold_of.values())) < folds:
        raise BadInput(f"{len(fold_of):,} clusters cannot be dealt out to {folds} folds; take fewer folds")
    return np.array([fold_of[key] for key in keys], np.intp)


def out_of_sample_logits(
    features: NDArray[np.floating], classes: NDArray[np.integer], folds: NDArray[np.intp], *, pruned: float = PRUNED
) -> NDArray[np.floating]:
    """Logits of each image by a logistic regression that was fitted to the other folds, (images, classes).

    The L2 penalty is the best on the first fold. Then everything is done again without the share of the images whose label
    was least likely: a head that learns from wrong labels repeats some of them.
    """
    first, l2 = _answers(features, classes, folds, np.ones(len(classes)), PENALTIES)
    own = log_softmax(first, axis=1)[np.arange(len(classes)), classes]
    kept = np.ones(len(classes))
    kept[np.argsort(own, kind="stable")[: int(pruned * len(classes))]] = 0
    # where that leaves a class or a fold without any image, it was no noise
    still = np.bincount(classes, kept)[np.unique(classes)].min() > 0 and np.bincount(folds, kept).min() > 0
    if not still or kept.all():
        return first
    # cleaner labels want less of a penalty, if another one
    return _answers(features, classes, folds, kept, (l2, l2 / 10**0.5))[0]


def _answers(
    features: NDArray[np.floating],
    classes: NDArray[np.integer],
    folds: NDArray[np.intp],
    weights: NDArray[np.floating],
    penalties: Sequence[float],
) -> tuple[NDArray[np.floating], float]:
    targets, logits = np.eye(int(classes.max()) + 1)[classes], np.empty((len(classes), int(classes.max()) + 1))

    def design(rows: NDArray[np.bool_]) -> Design:
        used = rows & (weights > 0)
        return Design(features[used], targets[used], weights[used] / weights[used].sum())

    first = fit_head(design(folds != 0), design(folds == 0), penalties=penalties)
    logits[folds == 0] = first.head(features[folds == 0])
    rest = range(1, int(folds.max()) + 1)
    jobs = [Fit(design(folds != fold), design(folds == fold), "logistic", (first.l2,), first.head) for fold in rest]
    with Workers(1) as pool:
        for fold, block in zip(rest, pool.blocks(fit, jobs), strict=True):
            weight, bias = (np.array(part) for part in block.batch)
            logits[folds == fold] = Linear(weight, bias)(features[folds == fold])
    return logits, first.l2
