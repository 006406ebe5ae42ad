"""Corrupted and perturbed datasets as published: files as in ImageNet-C and -P, arrays as in CIFAR-10-C and -P."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_C, IMAGENET_P, corruption_of, perturbation_of
from shiftproof.corruptions.editions import edition_of, severity_parameters
from shiftproof.corruptions.frost_pictures import OUR_FOLDER, frost_pictures
from shiftproof.corruptions.sequences import check_level, parameters_of
from shiftproof.errors import BadInput, UnknownName
from shiftproof.places import local_path
from shiftproof.runs.engines import Engine
from shiftproof.runs.prepare import check_condition
from shiftproof.types import Condition, Dataset, FrostPictures, Output
from shiftproof.writing.image_files import array_record, file_places, first_labels
from shiftproof.writing.storage import ArrayStorage, FileStorage, Table, check_video
from shiftproof.writing.writer import CorruptedPictures, PerturbedFrames, Plan, Progress, Storage, Written, write_set

OUTPUTS: dict[str, Output] = {"imagenet-c": "jpeg85", "cifar-c": "raw"}
"""How the published datasets of each layout were encoded."""

SEVERITIES = (1, 2, 3, 4, 5)
CORRUPTED_PARTS_A_JOB = 100  # more than all conditions of one image, so that each is decoded once
PERTURBED_PARTS_A_JOB = 2  # a video of noise takes seconds, beside which decoding an image again is nothing

CorruptedLayout = Literal["imagenet-c", "cifar-c"]
PerturbedLayout = Literal["imagenet-p", "cifar-p"]


def write_corrupted(
    images: Dataset,
    folder: str | Path,
    *,
    corruptions: Sequence[str] = IMAGENET_C,
    severities: Sequence[int] = SEVERITIES,
    edition: str = DEFAULT_EDITION,
    output: Output | None = None,
    seed: int = 0,
    frost: FrostPictures | None = None,
    scale_severity: bool = False,
    picture: str | None = None,
    layout: CorruptedLayout = "imagenet-c",
    workers: int | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes what is missing of a corrupted dataset.

    ``imagenet-c`` has a file ``corruption/severity/class/name.JPEG`` for each picture, ``.png`` where the output is raw;
    ``cifar-c`` an array for each corruption. The output is that of the published dataset of the layout where none is given.
    `picture` is the edition's cut, or ``image`` for images as they are.
    """
    if layout not in OUTPUTS:
        raise UnknownName("layout", layout, OUTPUTS)
    output, picture = output or OUTPUTS[layout], picture or edition
    if layout == "cifar-c" and (picture == "image" or set(severities) != set(SEVERITIES)):
        raise BadInput("layout cifar-c holds pictures of one size at all five severities; choose imagenet-c for others")
    conditions = tuple(
        Condition(
            name,
            severity,
            edition=edition,
            output=output,
            picture=picture,
            seed=seed,
            scale_severity=scale_severity,
            frost=frost if corruption_of(name).takes_frost else None,
        )
        for name in dict.fromkeys(corruptions)
        for severity in sorted(set(severities))
    )
    for condition in conditions:
        check_condition(condition)
    in_arrays = layout == "cifar-c"
    plan = _plan(conditions, layout, array_record(images) if in_arrays else {})
    # files of the layout are saved as their output says, so what goes into them is raw
    shown = conditions if in_arrays else tuple(replace(condition, output="raw") for condition in conditions)
    if in_arrays:
        size, names = edition_of(picture).size, list(plan.making)
        tables = [Table(name, len(SEVERITIES), (size, size, 3)) for name in names]
        rows = [(names.index(condition.name), condition.severity - 1) for condition in conditions]
        storage = _in_arrays(images, folder, tables, rows)
    else:
        folders = [f"{condition.name}/{condition.severity}" for condition in conditions]
        storage = _in_files(images, folder, folders, ".JPEG" if output == "jpeg85" else ".png")
    return write_set(
        images,
        CorruptedPictures(shown),
        storage,
        root=local_path(folder, "a dataset"),
        plan=plan,
        parts_a_job=CORRUPTED_PARTS_A_JOB,
        workers=workers,
        engine=engine,
        progress=progress,
    )


def _plan(conditions: Sequence[Condition], layout: CorruptedLayout, classes: Mapping[str, Any]) -> Plan:
    first = conditions[0]
    edition = first.edition or DEFAULT_EDITION
    making: dict[str, dict[str, Any]] = {}
    for condition in conditions:
        figures = making.setdefault(condition.name, {})
        figures[str(condition.severity)] = severity_parameters(condition.name, condition.severity, edition)
        if corruption_of(condition.name).takes_frost:
            figures["pictures"] = (condition.frost or frost_pictures(OUR_FOLDER)).digest
    settings = {
        "layout": layout,
        "edition": edition,
        "output": first.output,
        "picture": first.picture,
        "seed": first.seed,
        "scale_strengths": first.scale_severity,
    }
    about = "the image as it is" if first.picture == "image" else edition_of(first.picture).about
    return Plan(settings, "corruptions", making, tuple(map(str, conditions)), {"picture_rule": about, **classes})


def write_perturbed(
    images: Dataset,
    folder: str | Path,
    *,
    perturbations: Sequence[str] = IMAGENET_P,
    levels: Sequence[int] = (1,),
    edition: str = DEFAULT_EDITION,
    seed: int = 0,
    layout: PerturbedLayout = "imagenet-p",
    workers: int | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes what is missing of the sequences.

    ``imagenet-p`` has a file ``perturbation/class/name.mp4`` for each sequence, lossy as published; ``cifar-p`` an array for
    each perturbation, (images, frames, height, width, 3). Noise comes in levels, in folders or files such as
    ``gaussian_noise_2``; what moves has the first alone.
    """
    if layout not in get_args(PerturbedLayout):
        raise UnknownName("layout", layout, get_args(PerturbedLayout))
    sequences = sequences_of(perturbations, levels)
    making: dict[str, dict[str, Any]] = {}
    for name, level in sequences:
        making.setdefault(name, {})[str(level)] = parameters_of(name, level, edition)
    stems = tuple(name if level == 1 else f"{name}_{level}" for name, level in sequences)
    classes: dict[str, Any] = {}
    if layout == "imagenet-p":
        check_video()
        noisy = [perturbation_of(name).independent_frames for name, _ in sequences]
        storage = _in_files(images, folder, stems, ".mp4", noisy)
    else:
        classes, size = array_record(images), edition_of(edition).size
        frames = [int(making[name][str(level)]["frames"]) for name, level in sequences]
        tables = [Table(stem, 1, (count, size, size, 3)) for stem, count in zip(stems, frames, strict=True)]
        storage = _in_arrays(images, folder, tables, [(number, 0) for number in range(len(stems))])
    return write_set(
        images,
        PerturbedFrames(sequences, edition, seed),
        storage,
        root=local_path(folder, "a dataset"),
        plan=Plan({"layout": layout, "edition": edition, "seed": seed}, "perturbations", making, stems, classes),
        parts_a_job=PERTURBED_PARTS_A_JOB,
        workers=workers,
        engine=engine,
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
            there = level if len(perturbation_of(name).levels) > 1 else 1
            check_level(name, there)
            found[name, there] = None
    return tuple(found)


def _in_files(
    images: Dataset, folder: str | Path, stems: Sequence[str], ending: str, noisy: Sequence[bool] = ()
) -> Callable[[Path], Storage]:
    places = file_places(images)
    return lambda scratch: FileStorage(Path(folder), scratch, tuple(stems), ending, places, tuple(noisy))


def _in_arrays(
    images: Dataset, folder: str | Path, tables: Sequence[Table], rows: Sequence[tuple[int, int]]
) -> Callable[[Path], Storage]:
    labels = first_labels(images)
    return lambda scratch: ArrayStorage(Path(folder), scratch, tuple(tables), tuple(rows), len(images.samples), labels)
