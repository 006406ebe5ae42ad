"""Signs that a model is fed or read wrongly: most are worth a warning, what cannot be is an error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.preparation import ImagePreparation
from shiftproof.types import Gives, Logits

SURPRISE = 0.001
"""Accuracy that guessing reaches more often than this counts as near chance."""
ROUNDING = 0.01
"""How far the probabilities of an image may be from summing to 1."""
ENOUGH_IMAGES = 10
"""In fewer a good detector may find nothing."""


def accuracy_hint(accuracy: float, classes: int, images: int) -> str | None:
    """A warning where accuracy is no better than guessing would be (one-sided binomial test), else None.

    >>> accuracy_hint(0.88, classes=1000, images=200) is None
    True
    >>> accuracy_hint(0.005, classes=1000, images=200)
    '1 of 200 right is no better than guessing among 1000 classes; check the preparation and the order of the classes'
    """
    from scipy.special import betainc

    right = round(accuracy * images)
    # the chance that guessing gets at least as many right; with none right that is certain
    chance = betainc(right, images - right + 1, 1 / classes) if right else 1.0
    too_few = right > 0 and classes**-images >= SURPRISE  # all could be right and it would say nothing
    if images == 0 or classes < 2 or too_few or chance < SURPRISE:
        return None
    return (
        f"{right} of {images} right is no better than guessing among {classes} classes; "
        "check the preparation and the order of the classes"
    )


def precision_hint(precisions: Sequence[float], images: int) -> str | None:
    """A warning where a detector finds nothing in many images at any overlap, else None.

    >>> precision_hint([0.0, 0.0], images=100)
    'not one box is right in 100 images; check the layout of the outputs, the preparation and the order of the classes'
    """
    if not precisions or any(precisions) or images < ENOUGH_IMAGES:
        return None
    return (
        f"not one box is right in {images:,} images; check the layout of the outputs, the preparation and the order of the "
        "classes"
    )


def figures_hint(preparation: ImagePreparation) -> str | None:
    """A warning where mean and std belong to another range than the one named, else None.

    >>> from shiftproof.models.presets import parse_preparation
    >>> figures_hint(parse_preparation("imagenet,range=255"))
    'inputs run from -2.118 to 1136: mean and std look like figures for range=0..1, but range is 0..255'
    """
    if preparation.dtype == "uint8":
        return None
    low, high = preparation.bounds
    small = max(map(abs, (*preparation.mean, *preparation.std))) <= 1
    if preparation.value_range == "0..255" and small and max(preparation.std) < 1:
        other = "0..1"
    elif preparation.value_range != "0..255" and not small:
        other = "0..255"
    else:
        return None
    return (
        f"inputs run from {low:.4g} to {high:.4g}: mean and std look like figures for range={other}, "
        f"but range is {preparation.value_range}"
    )


def scores_hint(scores: Logits, gives: Gives) -> str | None:
    """A warning where scores that are said to be logits look like probabilities, else None."""
    if gives != "logits" or scores.size == 0 or scores.shape[1] < 2 or not _are_probabilities(scores).all():
        return None
    return "the model is said to give logits, but its scores look like probabilities; say gives=probabilities"


def check_probabilities(scores: NDArray[np.floating], name: str) -> None:
    """BadInput where the scores of an image, (images, classes), are no probabilities; rows that are not finite are let by.

    >>> check_probabilities(np.array([[0.25, 0.75], [0.5, 0.75]]), "m")
    Traceback (most recent call last):
    shiftproof.errors.BadInput: m gives no probabilities: an image got 0.5 to 0.75, in all 1.25; say --gives logits or scores
    """
    finite = np.isfinite(scores).all(axis=1)
    wrong = scores[finite & ~_are_probabilities(scores)]
    if len(wrong):
        row = wrong[0].astype(np.float64)
        got = f"{row.min():.4g} to {row.max():.4g}, in all {row.sum():.4g}"
        raise BadInput(f"{name} gives no probabilities: an image got {got}; say --gives logits or scores")


def _are_probabilities(scores: NDArray[np.floating]) -> NDArray[np.bool_]:
    """Whether each row is, up to rounding in half precision."""
    off = np.abs(scores.sum(axis=1, dtype=np.float64) - 1)
    return np.asarray((scores.min(axis=1) >= -ROUNDING) & (off <= ROUNDING))
