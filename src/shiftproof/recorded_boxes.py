"""A detector that another tool asked: its boxes come from a results file of COCO, and no image is opened for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from urllib.parse import parse_qsl

from shiftproof.class_lists import COCO_NUMBERS, classes_from
from shiftproof.digests import digest_of
from shiftproof.errors import BadInput
from shiftproof.image_sets.coco import category_names, load_coco
from shiftproof.image_sets.detection_results import load_coco_results
from shiftproof.image_sets.views import unlabelled
from shiftproof.models.loaded import model_ref
from shiftproof.models.options import OF_BOXES, ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.types import Classes, Detections, ImageSet, Inputs, ModelRef, Seen

AS_STORED = ImagePreparation(size=None, rule="none")


@dataclass(frozen=True)
class RecordedBoxes:
    """What stands in a results file, by image."""

    ref: ModelRef
    path: Path
    classes: Classes
    annotations: Path | None = None  # whose numbers of images and categories the file uses
    preparation: ImagePreparation = AS_STORED
    seen: Seen = field(default_factory=Seen)
    notes: tuple[str, ...] = ()

    def answers_for(self, images: ImageSet) -> Detections:
        """What was found in each image, in this detector's classes."""
        return load_coco_results(self.path, unlabelled(images, self.classes), annotations=self.annotations)

    def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> NoReturn:  # noqa: ARG002 an ObjectDetector
        """BadInput: nobody can be asked."""
        raise BadInput(f"{self.ref.name} is a file of results: it has answers to the images it was made from, unchanged")


def load_recorded(place: str, options: ModelOptions) -> RecordedBoxes:
    """The boxes that another tool found, in a results file of COCO (``results:FILE?annotations=COCO.json``)."""
    options.refuse("prepare", "weights", "device", "precision", "threads", "version", *OF_BOXES, what="a file of results")
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
