"""The recipe for object detectors: what it brings, and the hyperparameters that two papers printed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shiftproof.errors import BadInput, UnknownName
from shiftproof.randomness import rng_for
from shiftproof.training.recipe import Begun, Pictures, Recipe
from shiftproof.types import Boxes, Image

BATCH_SIZE = 8
RATE_PER_IMAGE = 0.02 / 16
"""Learning rate for each image of a batch, where none is named: that of A-Plus, and of torchvision's own training."""

WEIGHT_DECAY = 1e-4
WARMUP_STEPS = 1000
"""Steps of linear warm-up, of the first epoch alone: what torchvision's own training does."""

LONGEST_EPOCH = 1 / 16
"""Of a number of iterations, the most that an epoch has: half and three quarters of them are whole epochs then."""

FIRST_BLOCK = "first-block"
"""What `--freeze` calls the stem of a backbone and its first block, whatever these are called in it."""

UNLABELLED = ("unknown", "background")
"""What objects of classes that were not annotated in an image count as."""


@dataclass(frozen=True)
class Preset:
    """Hyperparameters as a paper printed them; what it does not print is as without a preset."""

    learning_rate: float
    batch_size: int
    iterations: int | None = None  # instead of epochs; the rate goes down after half and three quarters of them
    epochs: int | None = None
    milestones: tuple[int, ...] = ()  # of these epochs
    size: tuple[int, int] | None = None  # height, width
    freezes_first_block: bool = False


PRESETS: Mapping[str, Preset] = {
    # Shankar et al., 2021: vid_robust_detector_training.csv, alike for ResNet-50 and ResNet-101
    "vid-robust": Preset(learning_rate=0.01, batch_size=8, iterations=40_000),
    # Li et al., 2021
    "a-plus": Preset(
        learning_rate=0.02, batch_size=16, epochs=11, milestones=(8, 10), size=(600, 800), freezes_first_block=True
    ),
}

DEFAULT_SIZE = (600, 800)


def size_of(preset: str) -> tuple[int, int]:
    """Height and width of pictures where nobody says otherwise."""
    return (PRESETS[preset].size if preset else None) or DEFAULT_SIZE


def published(begun: Begun, *, preset: str, **_: Any) -> dict[str, Any]:
    """The hyperparameters of the preset, around what the user says; without one those of torchvision's own training."""
    paper = PRESETS[preset] if preset else None
    batch = min(begun.batch_size or (paper.batch_size if paper else BATCH_SIZE), begun.images)
    steps = begun.images // batch
    found: dict[str, Any] = {
        "batch_size": batch,
        "learning_rate": paper.learning_rate if paper else batch * RATE_PER_IMAGE,
        "weight_decay": WEIGHT_DECAY,
        "warmup": min(1.0, WARMUP_STEPS / steps),
    }
    if paper is None:
        return found
    found |= {"schedule": "step"}
    if paper.iterations is not None:
        found |= {"epochs": max(1, round(paper.iterations / steps_of_epoch(begun.images, batch, preset)))}
    if paper.epochs is not None:
        epochs = begun.epochs or paper.epochs
        found |= {"epochs": epochs}
        if begun.schedule in (None, "step"):
            found |= {"milestones": _scaled(paper.milestones, epochs / paper.epochs)}
    if paper.freezes_first_block and begun.from_file:  # random weights would stay random
        found |= {"freeze": (FIRST_BLOCK,)}
    return found


def _scaled(milestones: tuple[int, ...], factor: float) -> tuple[int, ...]:
    return tuple(max(1, round(one * factor)) for one in milestones)


def steps_of_epoch(images: int, batch: int, preset: str) -> int:
    """Steps of an epoch: all images once, but of a preset by iterations not too many of these.

    >>> steps_of_epoch(800, 8, "vid-robust"), steps_of_epoch(1_000_000, 8, "vid-robust")
    (100, 2500)
    """
    iterations = PRESETS[preset].iterations if preset else None
    every = images // batch
    return every if iterations is None else min(every, round(iterations * LONGEST_EPOCH))


def mirror_at_random(
    image: Image,
    rng: np.random.Generator,
    others: Pictures,  # noqa: ARG001
    *,
    flip: float,
    **_: Any,
) -> Image:
    """The picture, mirrored with this probability."""
    return (image[:, ::-1] if rng.random() < flip else image).copy(order="C")


def is_mirrored(key: str, epoch: int, seed: int, flip: float) -> bool:
    """Whether `mirror_at_random` mirrors the picture of an image in an epoch."""
    return bool(rng_for(key, f"crop\0{epoch}", seed).random() < flip)


def mirrored(boxes: Boxes, width: float) -> Boxes:
    """Boxes in a mirrored picture of this width.

    >>> mirrored(np.array([[2.0, 3, 12, 9]]), 32).tolist()
    [[20.0, 3.0, 30.0, 9.0]]
    """
    left, top, right, bottom = boxes.T
    return np.stack([width - right, top, width - left, bottom], axis=1)


def _check(*, preset: str, flip: float, regions: int, unlabelled: str) -> None:
    if preset and preset not in PRESETS:
        raise UnknownName("preset of boxes", preset, PRESETS)
    if not 0 <= flip <= 1:
        raise BadInput(f"boxes: flip should be a probability, from 0 to 1, got {flip:g}")
    if regions < 1:
        raise BadInput(f"boxes: regions should be how many of a picture are classified in training, got {regions}")
    if unlabelled not in UNLABELLED:
        raise UnknownName("way to count classes that were not annotated", unlabelled, UNLABELLED)


BOXES = Recipe(
    title="Object detector",
    description="Faster R-CNN or RetinaNet on boxes, with random flips; hyperparameters of a paper by its preset.",
    cites=("ren2015faster", "lin2017feature", "lin2017focal", "shankar2021do", "li2021rethinking"),
    settings={"preset": "", "flip": 0.5, "regions": 512, "unlabelled": "unknown"},
    levels=("network",),
    check=_check,
    trainer="shiftproof.training.detectors.engine:DetectorTrainer",
    hyperparameters=published,
    crop=mirror_at_random,
)
