"""Signs of wrong preprocessing or output kind: most are warnings, impossible ones errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Gives, Logits

ROUNDING = 0.01
"""How far the probabilities of an image may be from summing to 1."""


def figures_hint(preprocessing: ImagePreprocessing) -> str | None:
    """A warning where mean and std belong to another range than the one named, else None.

    >>> from shiftproof.models.options import parse_preprocessing
    >>> figures_hint(parse_preprocessing("imagenet,range=255"))
    'inputs run from -2.118 to 1136: mean and std look like figures for range=0..1, but range is 0..255'
    """
    if preprocessing.dtype == "uint8":
        return None
    low, high = preprocessing.bounds
    small = max(map(abs, (*preprocessing.mean, *preprocessing.std))) <= 1
    if preprocessing.value_range == "0..255" and small and max(preprocessing.std) < 1:
        other = "0..1"
    elif preprocessing.value_range != "0..255" and not small:
        other = "0..255"
    else:
        return None
    return (
        f"inputs run from {low:.4g} to {high:.4g}: mean and std look like figures for range={other}, "
        f"but range is {preprocessing.value_range}"
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
