"""An object detector as a classifier: the best box of each class speaks for it (Algorithm 1 of Li et al., 2021)."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, UnknownName
from shiftproof.models import detector_with
from shiftproof.models.kind import model_kind
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.object_detectors.loaded import batch_shape
from shiftproof.models.options import PROPOSAL_OPTIONS, Fill, ModelOptions
from shiftproof.randomness import rng_for
from shiftproof.runs.digests import digest_of
from shiftproof.types import Classes, Found, Inputs, ModelRef, ObjectDetector, Outputs, fingerprint_of

PLACES = 5
"""Ranks without a class, at most: as many as are kept of a ranking."""

NOTHING = "nothing found"

RULE = 1
"""Raised whenever the same boxes give other scores."""


@model_kind(goes_by_boxes=True)
def load_boxes_as_classes(spec: str, options: ModelOptions) -> LoadedClassifier:
    """The object detector of this name as a classifier."""
    options.refuse("gives", "features", "output", "extra_output", "channels_last", *PROPOSAL_OPTIONS, what=f"boxes:{spec}")
    detector = detector_with(spec, dataclasses.replace(options, name=None))
    return boxes_as_classes(detector, fill=options.fill or "random", seed=options.fill_seed, name=options.name)


def boxes_as_classes(
    detector: ObjectDetector, *, fill: Fill = "random", seed: int = 0, name: str | None = None
) -> LoadedClassifier:
    """The detector as a classifier: classes in the order of their best boxes' scores.

    Few images have boxes of five classes. With ``random`` fill, as published, the other classes follow in an order drawn for
    each image from its pixels and the seed, whatever batch it comes in. With ``empty`` fill nothing follows: there are five
    more classes, all called "nothing found", which stand before those without a box and are never correct.
    """
    if fill not in get_args(Fill):
        raise UnknownName("way to rank classes without a detection", fill, get_args(Fill))
    if detector.classes is None:
        raise BadInput(f"{detector.ref.name} does not name its classes, so its boxes cannot stand for classes")
    followed = f"in random order, seed {seed}" if fill == "random" else f'behind "{NOTHING}"'
    return LoadedClassifier(
        ref=_ref(detector.ref, fill, seed, name),
        preprocessing=detector.preprocessing,
        gives="scores",
        forward=BestBoxes(detector, len(detector.classes), fill, seed),
        classes=detector.classes if fill == "random" else with_nothing(detector.classes),
        seen=detector.seen,
        notes=(
            *detector.notes,
            f"the best box of each class is its score; classes without a box follow {followed}",
        ),
        default_batch_size=detector.default_batch_size,
        concurrent_batches=detector.concurrent_batches,
        has_features=False,
    )


@dataclass(frozen=True)
class BestBoxes:
    """The score of the best box of each class."""

    detector: ObjectDetector
    classes: int
    fill: Fill
    seed: int

    def __call__(self, inputs: Inputs, _features: bool) -> Outputs:
        # where in the original a box lies does not matter here, so the input stands for it
        images, height, width = batch_shape(inputs, self.detector.preprocessing.layout)
        found = self.detector.detect(inputs, [(height, width)] * images)
        return Outputs(np.stack([self._scores(one, pixels) for one, pixels in zip(found, inputs, strict=True)]))

    def _scores(self, found: Found, pixels: NDArray[np.generic]) -> NDArray[np.floating]:
        if self.fill == "empty":
            return scores_behind_nothing(found, self.classes)
        return scores_in_random_order(
            found, self.classes, rng_for(digest_of(pixels.tobytes()), "boxes as classes", self.seed)
        )


def scores_in_random_order(found: Found, classes: int, rng: np.random.Generator) -> NDArray[np.floating]:
    """The best box's score of each class, (classes,); those without a box lie below all that have one, in random order.

    >>> found = Found(np.zeros((3, 4)), np.array([0.5, 0.9, 0.7]), np.array([2, 0, 2]))
    >>> scores_in_random_order(found, 3, np.random.default_rng(0))
    array([ 0.9, -1. ,  0.7])
    """
    best = _best_scores(found, classes)
    without = np.flatnonzero(np.isneginf(best))
    best[without] = _floor(found) - (1 + rng.permutation(len(without))) / max(len(without), 1)
    return best


def scores_behind_nothing(found: Found, classes: int) -> NDArray[np.floating]:
    """The best box's score of each class, then "nothing found" five times, (classes + 5,), above all without a box.

    >>> scores_behind_nothing(Found(np.zeros((1, 4)), np.array([0.5]), np.array([1])), 3)
    array([-2. ,  0.5, -2. , -1. , -1. , -1. , -1. , -1. ])
    """
    best = _best_scores(found, classes)
    best[np.isneginf(best)] = _floor(found) - 2
    return np.concatenate([best, np.full(PLACES, _floor(found) - 1)])


def _best_scores(found: Found, classes: int) -> NDArray[np.floating]:
    best = np.full(classes, -np.inf)
    np.maximum.at(best, found.classes, found.scores)
    return best


def _floor(found: Found) -> float:
    """What no box's score lies below; 0 for the usual scores from 0 to 1."""
    return float(found.scores.min(initial=0))


def with_nothing(classes: Classes) -> Classes:
    """The classes, and behind them "nothing found" five times."""
    keys = classes.wnids and (*classes.wnids, *(f"{NOTHING} {place + 1}" for place in range(PLACES)))
    return Classes((*classes.names, *[NOTHING] * PLACES), keys)


def _ref(ref: ModelRef, fill: Fill, seed: int, name: str | None) -> ModelRef:
    drawn = {"random": "" if seed == 0 else f", seed {seed}", "empty": ", places left empty"}[fill]
    chosen = {"fill": fill, "seed": seed if fill == "random" else None}
    return ModelRef(name or f"{ref.name} as classifier{drawn}", fingerprint_of(ref.fingerprint, chosen, RULE))
