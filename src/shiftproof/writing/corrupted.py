"""A set of corrupted pictures, as files in the layout of ImageNet-C or as arrays in that of CIFAR-10-C."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from shiftproof.corruptions import DEFAULT_EDITION, IMAGENET_C
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.frost_pictures import OUR_FOLDER, frost_pictures
from shiftproof.corruptions.strengths import strengths_of
from shiftproof.errors import BadInput, UnknownName
from shiftproof.preparing import check_condition
from shiftproof.types import Condition, FrostPictures, ImageSet, Output
from shiftproof.writing.arrays import ArrayStorage, Table
from shiftproof.writing.destination import Plan
from shiftproof.writing.files import FileStorage
from shiftproof.writing.places import array_record, file_places, first_labels
from shiftproof.writing.products import CorruptedPictures
from shiftproof.writing.runs import Progress, Written, write_set
from shiftproof.writing.work import Storage

CorruptedLayout = Literal["imagenet-c", "cifar-c"]
OUTPUTS: dict[str, Output] = {"imagenet-c": "jpeg85", "cifar-c": "raw"}
"""How the published sets of each layout were saved."""

SEVERITIES = (1, 2, 3, 4, 5)
PARTS_A_JOB = 100  # more than all conditions of one image, so that each is decoded once


def write_corrupted(
    images: ImageSet,
    folder: str | Path,
    *,
    corruptions: Sequence[str] = IMAGENET_C,
    severities: Sequence[int] = SEVERITIES,
    edition: str = DEFAULT_EDITION,
    output: Output | None = None,
    seed: int = 0,
    frost: FrostPictures | None = None,
    scale_strengths: bool = False,
    picture: str | None = None,
    layout: CorruptedLayout = "imagenet-c",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes what is missing of a corrupted set; whoever reads it back gets what `output` names.

    ``imagenet-c`` has a file ``corruption/severity/class/name.JPEG`` for each picture, ``.png`` where the output is raw;
    ``cifar-c`` an array for each corruption. The output is that of the published set of the layout where none is given.
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
            scale_strengths=scale_strengths,
            frost=frost if name == "frost" else None,
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
    root = Path(folder)
    store = _arrays(images, root, conditions) if in_arrays else _files(images, root, conditions)
    return write_set(
        images,
        CorruptedPictures(shown),
        store,
        root=root,
        plan=plan,
        parts_a_job=PARTS_A_JOB,
        workers=workers,
        progress=progress,
    )


def _arrays(images: ImageSet, root: Path, conditions: Sequence[Condition]) -> Callable[[Path], Storage]:
    size = edition_of(conditions[0].picture).size
    names = tuple(dict.fromkeys(condition.name for condition in conditions))
    tables = tuple(Table(name, len(SEVERITIES), (size, size, 3)) for name in names)
    rows = tuple((names.index(condition.name), condition.severity - 1) for condition in conditions)
    labels = first_labels(images)
    return lambda scratch: ArrayStorage(root, scratch, tables, rows, len(images.samples), labels)


def _files(images: ImageSet, root: Path, conditions: Sequence[Condition]) -> Callable[[Path], Storage]:
    folders = tuple(f"{condition.name}/{condition.severity}" for condition in conditions)
    ending = ".JPEG" if conditions[0].output == "jpeg85" else ".png"
    places = file_places(images)
    return lambda scratch: FileStorage(root, scratch, folders, ending, places)


def _plan(conditions: Sequence[Condition], layout: CorruptedLayout, classes: Mapping[str, Any]) -> Plan:
    first = conditions[0]
    edition = first.edition or DEFAULT_EDITION
    making: dict[str, dict[str, Any]] = {}
    for condition in conditions:
        figures = making.setdefault(condition.name, {})
        figures[str(condition.severity)] = strengths_of(condition.name, condition.severity, edition)
        if condition.name == "frost":
            figures["pictures"] = (condition.frost or frost_pictures(OUR_FOLDER)).digest
    settings = {
        "layout": layout,
        "edition": edition,
        "output": first.output,
        "picture": first.picture,
        "seed": first.seed,
        "scale_strengths": first.scale_strengths,
    }
    about = "the image as it is" if first.picture == "image" else edition_of(first.picture).about
    return Plan(settings, "corruptions", making, tuple(map(str, conditions)), {"picture_rule": about, **classes})
