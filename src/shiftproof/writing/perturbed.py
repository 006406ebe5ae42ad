"""A set of perturbation sequences, as videos in the layout of ImageNet-P or as arrays in that of CIFAR-10-P."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_P
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.sequences import LEVELS, check_level, parameters_of
from shiftproof.errors import UnknownName
from shiftproof.types import ImageSet
from shiftproof.writing.arrays import ArrayStorage, Table
from shiftproof.writing.destination import Plan
from shiftproof.writing.files import FileStorage, check_video
from shiftproof.writing.places import array_record, file_places, first_labels
from shiftproof.writing.products import PerturbedFrames
from shiftproof.writing.runs import Progress, Written, write_set
from shiftproof.writing.work import Storage

PerturbedLayout = Literal["imagenet-p", "cifar-p"]
LAYOUTS = ("imagenet-p", "cifar-p")
PARTS_A_JOB = 2  # a video of noise takes seconds, beside which decoding an image again is nothing


def write_perturbed(
    images: ImageSet,
    folder: str | Path,
    *,
    perturbations: Sequence[str] = IMAGENET_P,
    levels: Sequence[int] = (1,),
    edition: str = DEFAULT_EDITION,
    seed: int = 0,
    layout: PerturbedLayout = "imagenet-p",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes what is missing of a set of sequences.

    ``imagenet-p`` has a file ``perturbation/class/name.mp4`` for each sequence, lossy as published; ``cifar-p`` an array for
    each perturbation, (images, frames, height, width, 3). Noise comes in levels, in folders or files such as
    ``gaussian_noise_2``; what moves has the first alone.
    """
    if layout not in LAYOUTS:
        raise UnknownName("layout", layout, LAYOUTS)
    sequences = sequences_of(perturbations, levels)
    making: dict[str, dict[str, Any]] = {}
    for name, level in sequences:
        catalog.PERTURBATIONS.load(name)
        making.setdefault(name, {})[str(level)] = parameters_of(name, level, edition)
    root, stems = Path(folder), tuple(name if level == 1 else f"{name}_{level}" for name, level in sequences)
    classes: dict[str, Any] = {}
    if layout == "imagenet-p":
        check_video()
        store = _files(images, root, stems)
    else:
        classes = array_record(images)
        frames = [int(making[name][str(level)]["frames"]) for name, level in sequences]
        store = _arrays(images, root, stems, frames, edition_of(edition).size)
    return write_set(
        images,
        PerturbedFrames(sequences, edition, seed),
        store,
        root=root,
        plan=Plan({"layout": layout, "edition": edition, "seed": seed}, "perturbations", making, stems, classes),
        parts_a_job=PARTS_A_JOB,
        workers=workers,
        progress=progress,
    )


def sequences_of(perturbations: Sequence[str], levels: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """Every perturbation at every level it has; one that has not even the lowest of them keeps its first.

    >>> sequences_of(["tilt", "shot_noise"], [1, 2])
    (('tilt', 1), ('shot_noise', 1), ('shot_noise', 2))
    """
    found: dict[tuple[str, int], None] = {}
    for name in perturbations:
        check_level(name, 1)
        for level in sorted(levels):
            there = level if LEVELS[name] > 1 else 1
            check_level(name, there)
            found[name, there] = None
    return tuple(found)


def _files(images: ImageSet, root: Path, stems: tuple[str, ...]) -> Callable[[Path], Storage]:
    places = file_places(images)
    return lambda scratch: FileStorage(root, scratch, stems, ".mp4", places)


def _arrays(
    images: ImageSet, root: Path, stems: Sequence[str], frames: Sequence[int], size: int
) -> Callable[[Path], Storage]:
    tables = tuple(Table(stem, 1, (count, size, size, 3)) for stem, count in zip(stems, frames, strict=True))
    rows = tuple((number, 0) for number in range(len(stems)))
    labels = first_labels(images)
    return lambda scratch: ArrayStorage(root, scratch, tables, rows, len(images.samples), labels)
