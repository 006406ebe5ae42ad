"""An object detector run by another tool: its boxes come from a COCO results file, and no image is opened."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qsl

import numpy as np

from shiftproof.datasets.boxed.boxes import short, sized_box
from shiftproof.datasets.boxed.coco import category_names, image_id, images_by_number, load_coco
from shiftproof.datasets.classes import COCO_NUMBERS, classes_from
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.subsets import unlabelled
from shiftproof.errors import BadInput, listed
from shiftproof.files import read_json
from shiftproof.models.loaded import model_ref
from shiftproof.models.options import BOX_OPTIONS, ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.runs.digests import digest_of
from shiftproof.types import Classes, Companion, Dataset, Detections, Inputs, ModelRef, Sample, Seen


def load_coco_results(path: str | Path, images: Dataset, *, annotations: str | Path | None = None) -> Detections:
    """The boxes of a COCO results file, a list of ``{image_id, category_id, bbox, score}``, on the images of a dataset.

    Numbers of images and categories are those of the COCO file `annotations`. Without one, a number is the image whose file
    is called so, and a category a place in the dataset's classes, from 0. Images may also be named by their id or file name.
    """
    entries = read_json(path)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise BadInput(f"{path} should be a list of detections, each with image_id, category_id, bbox and score")
    files, categories = ({}, None) if annotations is None else _numbered(annotations)
    image_places = _image_places(images.samples, files)
    class_places = _class_places(images, categories)
    rows = [_row(entry, image_places, class_places, f"{path}, detection {n}") for n, entry in enumerate(entries, 1)]
    return Detections(
        tuple(sample.id for sample in images.samples),
        np.array([row[0] for row in rows], int),
        np.array([row[1] for row in rows], float).reshape(-1, 4),
        np.array([row[2] for row in rows], float),
        np.array([row[3] for row in rows], int),
    )


def _row(
    entry: Mapping[str, Any], images: Mapping[str, int], classes: Mapping[str, int], where: str
) -> tuple[int, tuple[float, float, float, float], float, int]:
    missing = [part for part in ("image_id", "category_id", "bbox", "score") if part not in entry]
    if missing:
        raise BadInput(f"{where}: no {listed(missing)}")
    image, category = str(entry["image_id"]), str(entry["category_id"])
    if image not in images:
        raise BadInput(f"{where}: the dataset has no image {image}; numbers are those of the COCO file named annotations=")
    if category not in classes:
        raise BadInput(f"{where}: no category {category}; name the COCO file whose categories these are as annotations=")
    try:
        score = float(entry["score"])
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not 0 <= score <= 1:
        raise BadInput(f"{where}: the score should be a number from 0 to 1, got {short(entry['score'])}")
    return images[image], sized_box(entry["bbox"], where), score, classes[category]


def _numbered(annotations: str | Path) -> tuple[dict[str, str], dict[str, str]]:
    """The id of each image and the name of each category by their numbers."""
    data = load_coco(annotations)
    files = {number: image_id(entry, annotations) for number, entry in images_by_number(data, annotations).items()}
    return files, category_names(data, annotations)


def _image_places(samples: Sequence[Sample], files: Mapping[str, str]) -> dict[str, int]:
    """The place of each image by all that may name it; a name of two images names neither."""
    names = [_names_of(sample) for sample in samples]
    counts = Counter(name for own in names for name in own)
    # a number of the list is that image or none, whatever files are called
    places = {n: place for place, own in enumerate(names) for n in own if counts[n] == 1 and n not in files}
    by_id = {sample.id: place for place, sample in enumerate(samples)}
    return places | by_id | {number: by_id[file] for number, file in files.items() if file in by_id}


def _names_of(sample: Sample) -> set[str]:
    file = sample.id.rpartition("/")[2]
    stem = Path(file).stem
    # the files of COCO are called after their numbers, as 000000397133.jpg
    number = {str(int(stem))} if stem.isdecimal() else set()
    return {file, stem, Path(sample.id).with_suffix("").as_posix()} | number


def _class_places(images: Dataset, categories: Mapping[str, str] | None) -> dict[str, int]:
    if images.classes is None:
        raise BadInput(f"{images.ref.name} has no classes that boxes could be of")
    if categories is None:
        return {str(place): place for place in range(len(images.classes))}
    places = places_of(categories.values(), images.classes)[1]
    return {number: places[name] for number, name in categories.items()}


AS_STORED = ImagePreprocessing(size=None, rule="none")


@dataclass(frozen=True)
class RecordedBoxes:
    """What stands in a results file, by image."""

    ref: ModelRef
    path: Path
    classes: Classes
    annotations: Path | None = None  # whose numbers of images and categories the file uses
    preprocessing: ImagePreprocessing = AS_STORED
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()
    companion: Companion | None = None
    default_batch_size: int = 32
    concurrent_batches: int = 1

    def detections_in(self, images: Dataset) -> Detections:
        """What was found in each image, in this detector's classes."""
        return load_coco_results(self.path, unlabelled(images, self.classes), annotations=self.annotations)

    def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> NoReturn:  # noqa: ARG002 an ObjectDetector
        """BadInput: there is no network to run."""
        raise BadInput(f"{self.ref.name} is a file of results: it has detections only for its own images, unchanged")


def load_recorded(place: str, options: ModelOptions) -> RecordedBoxes:
    """Detections from a COCO results file (``results:FILE?annotations=COCO.json``)."""
    options.refuse(
        "preprocess", "weights", "device", "precision", "threads", "version", *BOX_OPTIONS, what="a file of results"
    )
    path, annotations = _files(place)
    classes, notes = _classes(options, annotations)
    digests = "\0".join(digest_of(file.read_bytes()) for file in (path, annotations) if file is not None)
    return RecordedBoxes(
        ref=model_ref(options.name or path.stem, digests, AS_STORED, classes="\0".join(classes.keys)),
        path=path,
        classes=classes,
        annotations=annotations,
        seen=options.seen_or(),
        notes=(f"boxes from {path.name}", *notes),
    )


def _files(place: str) -> tuple[Path, Path | None]:
    file, _, query = place.rpartition("?")
    said = dict(parse_qsl(query)) if file and re.match(r"\w+=", query) and not Path(place).exists() else {}
    if said.keys() - {"annotations"}:
        raise BadInput(f"a file of results has one option, annotations; got {', '.join(said)}")
    files = [Path(file if said else place), *(Path(value) for value in said.values())]
    missing = [str(path) for path in files if not path.is_file()]
    if missing:
        raise BadInput(f"there is no file {', '.join(missing)}")
    return files[0], files[1] if said else None


def _classes(options: ModelOptions, annotations: Path | None) -> tuple[Classes, tuple[str, ...]]:
    """What the numbers of categories mean, and a note where it was assumed."""
    if annotations is not None:
        options.refuse("classes", what="a file of results with annotations")
        return classes_from(list(category_names(load_coco(annotations), annotations).values())), ()
    if options.classes is not None:
        return classes_from(options.classes), ()
    note = "numbers of categories taken as those of COCO; --classes or ?annotations=FILE names others"
    return classes_from(COCO_NUMBERS), (note,)
