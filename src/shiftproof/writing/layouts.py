"""Layouts in which any dataset can be written with its source pixels, and read back with the same labels."""

from __future__ import annotations

import dataclasses
import io
import json
import tarfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO

from shiftproof.datasets import manifest, tar
from shiftproof.datasets.boxed import coco
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.video.frame_sets import frame_itself
from shiftproof.datasets.video.released import CLASSES, LABELS, SETS
from shiftproof.errors import BadInput, listed
from shiftproof.types import Classes, Dataset, Fact, Sample, Truths
from shiftproof.writing.atomic_folder import File, json_file, plain_file
from shiftproof.writing.image_files import original_places, picture_files, read_original

FACTS = frozenset({"anchor", "offset"})


def vid_robust_files(images: ImageList) -> Iterator[File]:
    """ImageNet-Vid-Robust: frames as images, the frame sets and labels in two JSON files, and a list of classes."""
    if images.classes is None or any(not sample.facts.keys() >= FACTS for sample in images.samples):
        raise BadInput(f"layout vid-robust holds labelled frames around anchors, and {images.name} has others")
    frames = {frame_itself(sample.id): sample for sample in images.samples}
    shown = ImageList(images.name, [Sample(frame) for frame in frames], None, lambda frame: images.source(frames[frame]))
    places = dict(zip(frames, (f"val/{place}" for place in original_places(shown)), strict=True))
    yield json_file(f"metadata/{SETS}", _sets(images, places))
    yield json_file(f"metadata/{LABELS}", {places[frame]: sample.labels for frame, sample in frames.items()})
    yield plain_file(f"metadata/{CLASSES}", "".join(f"{key}\n" for key in images.classes.keys))
    yield from picture_files(shown, list(places.values()))


def _sets(images: ImageList, places: Mapping[str, str]) -> dict[str, list[str]]:
    """The frames around each anchor."""
    sets: dict[str, list[str]] = {}
    for sample in images.samples:
        around = sets.setdefault(places[str(sample.facts["anchor"])], [])
        if sample.facts["offset"]:
            around.append(places[frame_itself(sample.id)])
    return sets


IMAGES_A_SHARD = 1000
MANIFEST = "manifest.jsonl"
FIRST_FOLDER = "^([^/]+)/"


@dataclass(frozen=True)
class Layout:
    """The files of a dataset, and the location that `open_dataset` reads."""

    files: Callable[[ImageList], Iterator[File]]
    opened_as: str = "{root}"
    with_facts: bool = False  # whether the facts of images are written too
    class_in_path: str | None = None  # pattern whose group is the class of an image, by its path


def folder_files(images: ImageList) -> Iterator[File]:
    """One folder per class."""
    keys = _classes(images, "folder").keys
    places = original_places(images)
    for sample, place in zip(images.samples, places, strict=True):
        if len(sample.labels) != 1 or place.split("/")[0] != keys[sample.labels[0]]:
            raise BadInput(f"{sample.id} has no class, several, or one that is no name of a folder; choose layout manifest")
    yield from picture_files(images, places)


def manifest_files(images: ImageList) -> Iterator[File]:
    """A manifest with labels and facts, beside the folder of images."""
    places = [f"images/{place}" for place in original_places(images)]
    yield plain_file(MANIFEST, manifest_text(images, places))
    yield from picture_files(images, places)


def webdataset_files(images: ImageList) -> Iterator[File]:
    """Reproducible tar archives of images, each followed by its id, labels and facts as JSON."""
    for number, start in enumerate(range(0, len(images.samples), IMAGES_A_SHARD)):
        yield File(f"images-{number:06}.tar", _shard(images, range(len(images.samples))[start : start + IMAGES_A_SHARD]))


def coco_files(images: ImageList) -> Iterator[File]:
    """Images and COCO annotations."""
    if images.truths is None:
        raise BadInput(f"layout coco holds boxes, and {images.name} has none; choose another layout")
    places = original_places(images)
    yield json_file("annotations.json", _coco(images, images.truths, places))
    yield from picture_files(images, [f"images/{place}" for place in places])


def imagenet_a_files(images: ImageList) -> Iterator[File]:
    """One folder per wnid and a list of class names, as ImageNet-A was released."""
    classes = _wnids(images, "imagenet-a")
    yield _class_names(classes)
    yield from folder_files(images)


def imagenet_o_files(images: ImageList) -> Iterator[File]:
    """One folder per wnid as in ImageNet-O, and a manifest that has their classes as a fact: OOD images have no labels."""
    classes = _wnids(images, "imagenet-o")
    places, keys = original_places(images), classes.keys
    novel = [
        Sample(sample.id, facts={**sample.facts, "folder": manifest.joined_labels(keys[label] for label in sample.labels)})
        for sample in images.samples
    ]
    yield _class_names(classes)
    yield plain_file(MANIFEST, manifest_text(dataclasses.replace(images, samples=novel, classes=None), places))
    yield from picture_files(images, places)


def imagenet_ood_files(images: ImageList) -> Iterator[File]:
    """One folder per wnid and the list of files, as ImageNet-OOD is published."""
    _wnids(images, "imagenet-ood")
    places = original_places(images)
    yield plain_file("imagenetood.txt", "".join(f"{place}\n" for place in places))
    yield from picture_files(images, places)


LAYOUTS: Mapping[str, Layout] = {
    "folder": Layout(folder_files, class_in_path=FIRST_FOLDER),
    "manifest": Layout(manifest_files, with_facts=True),
    "webdataset": Layout(webdataset_files, with_facts=True),
    "coco": Layout(coco_files, "{root}/annotations.json", with_facts=True),
    "imagenet-a": Layout(imagenet_a_files, class_in_path=FIRST_FOLDER),
    "imagenet-o": Layout(imagenet_o_files, with_facts=True, class_in_path=FIRST_FOLDER),
    "imagenet-ood": Layout(imagenet_ood_files, "imagenet-ood:{root}", class_in_path=FIRST_FOLDER),
    "vid-robust": Layout(vid_robust_files),
}


def _classes(images: ImageList, layout: str) -> Classes:
    if images.classes is None:
        raise BadInput(f"layout {layout} holds images by class, and {images.name} has no labels; choose layout manifest")
    return images.classes


def _wnids(images: ImageList, layout: str) -> Classes:
    classes = _classes(images, layout)
    if classes.wnids is None:
        raise BadInput(f"layout {layout} has a folder for each wnid, and {listed(classes.names, most=3)} are none")
    return classes


def _class_names(classes: Classes) -> File:
    lines = (f"{key} {name}\n" for key, name in zip(classes.keys, classes.names, strict=True))
    return plain_file("README.txt", "".join(lines))


def manifest_columns(images: ImageList, layout: str) -> list[str]:
    """The columns of the manifest that every image has in this layout; none where it has no manifest."""
    if layout == "imagenet-o":
        return ["path", "id", "folder"]
    if layout != "manifest":
        return []
    return ["path", "id", *([_label_column(images)] if images.classes else [])]


def _label_column(images: Dataset) -> str:
    return "labels" if any(len(sample.labels) > 1 for sample in images.samples) else "label"


def manifest_text(images: Dataset, places: Sequence[str]) -> str:
    """A JSON line per image; the column is `labels` where any image has several, else `label`."""
    column = _label_column(images)
    # one credit applies to every image; of several, only the data card's sources tell which belongs to which
    credit = {"credit": images.credits[0]} if len(images.credits) == 1 else {}
    rows = (
        {
            "path": place,
            "id": sample.id,
            **_labels(images, sample, column),
            **_facts(sample, manifest.OWN_COLUMNS),
            **credit,
        }
        for sample, place in zip(images.samples, places, strict=True)
    )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _labels(images: Dataset, sample: Sample, column: str) -> dict[str, Any]:
    if images.classes is None:
        return {}
    keys = [images.classes.keys[label] for label in sample.labels]
    return {column: keys if column == "labels" else next(iter(keys), None)}


def _facts(sample: Sample, taken: Collection[str]) -> dict[str, Fact]:
    """The facts, renamed where the format uses their names itself."""
    return {f"fact_{name}" if name in taken else name: fact for name, fact in sample.facts.items()}


def _shard(images: ImageList, rows: Iterable[int]) -> Callable[[BinaryIO], None]:
    """A writer of an archive; members are numbered, as names up to the first dot must be unique."""

    def write(stream: BinaryIO) -> None:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for row in rows:
                sample = images.samples[row]
                told = {"id": sample.id, **_labels(images, sample, "labels"), **_facts(sample, tar.LABEL_FIELDS)}
                _add(
                    archive, f"{row:08}{PurePosixPath(places[row]).suffix}", read_original(sample.id, images.source(sample))
                )
                _add(archive, f"{row:08}.json", json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogateescape"))

    places = original_places(images)
    return write


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """Adds a member without time and owner, so that archives are reproducible."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def _coco(images: ImageList, truths: Truths, places: Sequence[str]) -> dict[str, Any]:
    classes = _classes(images, "coco")
    numbers = {sample.id: number for number, sample in enumerate(images.samples, 1)}
    entries = [
        {"id": numbers[sample.id], "file_name": place, **_facts(sample, coco.OWN_FIELDS - {"width", "height"})}
        for sample, place in zip(images.samples, places, strict=True)
    ]
    named = zip(classes.keys, classes.names, strict=True)
    categories = [{"id": number, "name": key, "readable_name": name} for number, (key, name) in enumerate(named, 1)]
    return {"images": entries, "annotations": list(_annotations(truths, numbers)), "categories": categories}


def _annotations(truths: Truths, numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    for place, (left, top, right, bottom) in enumerate(truths.boxes.tolist()):
        yield {
            "id": place + 1,
            "image_id": numbers[truths.ids[truths.image[place]]],
            "category_id": int(truths.classes[place]) + 1,
            "bbox": [left, top, right - left, bottom - top],
            "area": float(truths.areas[place]),
            "iscrowd": int(truths.crowd[place]),
            "ignore": int(truths.ignored[place]),
        }
