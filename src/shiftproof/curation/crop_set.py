"""Crops of objects as a dataset (ImageNet-A-Plus): which objects, how much around them, and the review of the result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.curation.boxes import BoxedObject, UsualShares, boxed_objects
from shiftproof.curation.funnel import Funnel, save_outcomes
from shiftproof.curation.known_items import known_items
from shiftproof.curation.pictures import add_pictures
from shiftproof.curation.project import REVIEW, Item, Project, ReviewSettings
from shiftproof.curation.provenance import ID, SOURCE, making_of, origin
from shiftproof.curation.review_classes import joined_keys, review_class, review_classes
from shiftproof.curation.screens import CLARITY, EXTREME_POINTS
from shiftproof.datasets.boxed.crops import PHOTOS, CropsOf, Cut, Window, seen_from, window_around
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput
from shiftproof.files import csv_bytes, write_whole
from shiftproof.metrics.accuracy import is_correct
from shiftproof.metrics.objects import object_share
from shiftproof.options import PredictionSettings
from shiftproof.places import local_path
from shiftproof.runs.predict import Progress, predict_images
from shiftproof.runs.store import Store
from shiftproof.types import Classifier, Dataset, Fact, Image, Output, Sample
from shiftproof.writing.image_files import file_places
from shiftproof.writing.storage import FileStorage
from shiftproof.writing.writer import Plan, Written, write_set

TIMES_SMALLER = 8.0
"""An object whose proportion is this many times smaller than the mean of its class is not cropped."""

Shown = Literal["tight", "final"]
"""How much a crop shows: the tight box, or enough context for the usual object proportion."""


@dataclass(frozen=True)
class Candidate:
    """An object, and the usual object proportion of its class."""

    boxed: BoxedObject
    usual_share: float  # nan where unknown

    @property
    def id(self) -> str:
        return self.boxed.id

    @property
    def has_window(self) -> bool:
        return self.boxed.problem is None and not math.isnan(self.usual_share)

    @property
    def window(self) -> Window:
        """The window with the usual object proportion; the whole image where the object is larger than that."""
        return window_around(window_for_share(self.boxed.box, self.boxed.size, share=self.usual_share), 0)

    @property
    def share_in_crop(self) -> float:
        left, top, right, bottom = self.window
        return float(object_share(np.array([self.boxed.box]), np.array([[right - left, bottom - top]]))[0])

    @property
    def fills_too_much(self) -> bool:
        """Whether its proportion of the whole image is larger than usual, so that no window has the usual one."""
        return self.boxed.share > self.usual_share

    def facts(self) -> dict[str, Fact]:
        """Facts by which accuracy on crops may be sliced."""
        shares = {
            "share_in_image": self.boxed.share,
            "share_in_crop": self.share_in_crop,
            "usual_share": self.usual_share,
        }
        return {name: round(share, 6) for name, share in shares.items()}


def cropped(images: ImageList, candidates: Sequence[Candidate], shown: Shown) -> ImageList:
    """The candidates as a dataset, cropped on reading."""
    boxes = {one.id: one.boxed.box if shown == "tight" else one.window for one in candidates}
    samples = [Sample(one.id, (one.boxed.label,), one.facts()) for one in candidates]
    find = CropsOf(images, {sample.id: sample for sample in images.samples}, boxes, Cut("crop", 0.0, False))
    return ImageList(f"{shown} crops of {images.name}", samples, images.classes, find, credits=images.credits)


@dataclass(frozen=True)
class ReferenceModels:
    """Filter models: crops that they classify correctly are removed."""

    models: Sequence[Classifier]
    store: Store
    shown: Shown = "tight"
    scoring: Scoring | None = None

    def reasons(
        self,
        model: Classifier,
        images: ImageList,
        candidates: Sequence[Candidate],
        *,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Mapping[str, str]:
        """Why candidates are removed that a model classifies correctly or cannot predict, by id."""
        if not candidates:
            return {}
        shown = cropped(images, candidates, self.shown)
        settings = PredictionSettings(workers=workers)
        said = predict_images(model, shown, store=self.store, settings=settings, scoring=self.scoring, progress=progress)
        known = said.take(said.labelled)
        right = is_correct(known.labels, known.top5.classes) if len(known) else ()
        return {
            **{image.id: image.reason for image in said.skipped_images},
            **{crop_id: "classified correctly" for crop_id, is_right in zip(known.ids, right, strict=True) if is_right},
            **dict.fromkeys(set(said.ids).difference(known.ids), "the model has no such class"),
        }


CropChoice: TypeAlias = Funnel[Candidate, str]


def choose_crops(
    images: ImageList,
    usual: UsualShares,
    *,
    times_smaller: float = TIMES_SMALLER,
    reference: ReferenceModels | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> CropChoice:
    """The objects that are not too small for their class and that every filter model misclassifies (Li et al., 2021).

    Unreadable images are removed with their reason in the step that notices.
    """
    objects = boxed_objects(images)
    if not objects or images.classes is None:
        raise BadInput(f"{images.name} has no objects that could be cropped")
    usual_shares = usual.among(images.classes)
    shares, labels = np.array([one.share for one in objects]), np.array([one.label for one in objects])
    small = is_too_small(shares, labels, usual_shares, times=times_smaller)
    too_small = {one.id for one, is_small in zip(objects, small, strict=True) if is_small}
    choice = (
        CropChoice.start(Candidate(one, float(usual_shares[one.label])) for one in objects)
        .step("inside images that can be read", lambda one: one.boxed.problem)
        .step(
            "of classes with a usual object proportion",
            lambda one: None if one.has_window else "the usual proportion of its class is unknown",
        )
        .step(
            f"not {times_smaller:g} times smaller than usual", lambda one: _smallness(one) if one.id in too_small else None
        )
    )
    if reference is not None:
        for model in reference.models:
            reasons = reference.reasons(model, images, choice.left, workers=workers, progress=progress)
            name = f"misclassified by {model.ref.name} in the {reference.shown} crop"
            choice = choice.step(name, partial(_reason_in, reasons))
    return choice


def _smallness(one: Candidate) -> str:
    return f"object proportion {one.boxed.share:.2%}, usually {one.usual_share:.2%}"


def _reason_in(reasons: Mapping[str, str], one: Candidate) -> str | None:
    return reasons.get(one.id)


WHOLE = "the whole image, because the object proportion is larger than usual"
OBJECT_COLUMNS = ("id", "class", "box", "share", "usual_share", "window", "share_in_crop", "step", "reason")


@dataclass(frozen=True)
class CropSet:
    """How crops were chosen, and what was written."""

    choice: CropChoice
    written: Written
    notes: tuple[str, ...]  # on the boxed dataset

    @property
    def whole_images(self) -> int:
        """Number of crops that show the whole image, because the object proportion is larger than usual."""
        return sum(one.fills_too_much for one in self.choice.left)


def curate_crops(
    images: ImageList,
    folder: str | Path,
    usual: UsualShares,
    *,
    times_smaller: float = TIMES_SMALLER,
    reference: ReferenceModels | None = None,
    output: Output = "raw",
    workers: int | None = None,
    progress: Progress | None = None,
) -> CropSet:
    """Writes the chosen crops into a folder which `open_dataset` reads.

    Beside the crops it holds `manifest.csv`, which lists them, `objects.csv`, with the outcome of every object, and
    `usual_shares.csv`, which `load_shares` reads; ``crop-sources:FOLDER`` opens the uncropped photos. Stored predictions and
    written crops are not made again; a folder takes crops of one choice only.
    """
    choice = choose_crops(
        images, usual, times_smaller=times_smaller, reference=reference, workers=workers, progress=progress
    )
    shown = cropped(images, choice.left, "final")
    places = _places(shown, choice.left)
    written = write_crops(
        shown,
        folder,
        places=places,
        settings={"times_smaller": float(times_smaller), **_told(reference)},
        information={
            PHOTOS: images.location and seen_from(images.location, folder),
            "usual_shares": seen_from(usual.source, folder),
            "steps": [dataclasses.asdict(step) for step in choice.steps],
        },
        output=output,
        workers=workers,
        progress=progress,
    )
    unreadable = {image.id: image.reason for image in written.skipped_images}
    files = {one.id: f"{place}{ENDINGS[output]}" for one, place in zip(choice.left, places, strict=True)}
    choice = choice.step("cropped and written", lambda one: unreadable.get(one.id))
    write_whole(Path(folder) / "usual_shares.csv", csv_bytes(usual.table()))
    write_whole(Path(folder) / "objects.csv", csv_bytes([OBJECT_COLUMNS, *_objects(choice)]))
    # the manifest comes last: a folder that has it is whole
    write_whole(Path(folder) / "manifest.csv", csv_bytes(_manifest(choice.left, files)))
    return CropSet(choice, written, images.notes)


def _told(reference: ReferenceModels | None) -> dict[str, object]:
    if reference is None:
        return {"recognised_by": []}
    models = [f"{model.ref.name} {model.ref.fingerprint}" for model in reference.models]
    return {"recognised_by": models, "recognised_in": reference.shown}


def _places(shown: ImageList, candidates: Sequence[Candidate]) -> list[str]:
    """The path of each crop, named after its image, which has one crop per class."""
    pairs = zip(shown.samples, candidates, strict=True)
    named = [dataclasses.replace(sample, id=one.boxed.image) for sample, one in pairs]
    return file_places(View(shown, shown.classes, named))


def _manifest(kept: Sequence[Candidate], files: Mapping[str, str]) -> list[Sequence[object]]:
    facts = [one.facts() for one in kept]
    rows = [(files[one.id], one.id, one.boxed.key, *fact.values()) for one, fact in zip(kept, facts, strict=True)]
    return [("path", "id", "label", *(facts[0] if facts else ())), *rows]


def _objects(choice: CropChoice) -> list[tuple[str, ...]]:
    """A row for every object with its outcome, by id."""
    return sorted(
        _row(one, step, reason or (WHOLE if one.fills_too_much else "")) for one, step, reason in choice.outcomes()
    )


def _row(one: Candidate, step: str, reason: str) -> tuple[str, ...]:
    share = "" if one.boxed.problem else f"{one.boxed.share:.6f}"
    window = (f"{one.usual_share:.6f}", _corners(one.window), f"{one.share_in_crop:.6f}") if one.has_window else ("", "", "")
    return one.id, one.boxed.key, _corners(one.boxed.box), share, *window, step, reason


def _corners(box: Sequence[float]) -> str:
    return " ".join(f"{side:g}" for side in box)


def is_too_small(
    shares: NDArray[np.floating],
    labels: NDArray[np.integer],
    class_shares: NDArray[np.floating],
    *,
    times: float = TIMES_SMALLER,
) -> NDArray[np.bool_]:
    """Which objects have a smaller proportion than the mean of their class divided by `times`, (objects,).

    `class_shares` is the mean object proportion of each class in a dataset such as ILSVRC localization, nan where it has no
    such class: none of its objects is too small.

    >>> is_too_small(np.array([0.02, 0.04, 0.001]), np.array([0, 0, 1]), np.array([0.32, np.nan]))
    array([ True, False, False])
    """
    if times <= 0:
        raise BadInput(f"times should be above 0, got {times:g}")
    if labels.max(initial=-1) >= len(class_shares):
        raise BadInput(
            f"class {labels.max()} is beyond the {len(class_shares)} classes whose mean object proportion is given"
        )
    return np.asarray(shares < class_shares[labels] / times)


def window_for_share(
    box: tuple[float, float, float, float], size: tuple[float, float], *, share: float
) -> tuple[float, float, float, float]:
    """The window of an image, with the aspect ratio of the box where it fits, in which the object has this proportion.

    It is centred on the object, and shifted or stretched at the border of the image. An object with a larger proportion gets
    the whole image.

    >>> window_for_share((40, 40, 60, 60), (100, 100), share=0.25)
    (30.0, 30.0, 70.0, 70.0)
    >>> window_for_share((0, 40, 20, 60), (100, 100), share=0.25)
    (0.0, 30.0, 40.0, 70.0)
    """
    width, height = size
    left, top, right, bottom = box
    across, down = right - left, bottom - top
    if not 0 < share <= 1:
        raise BadInput(f"an object proportion should be above 0 and at most 1, got {share:g}")
    if min(left, top) < 0 or right > width or bottom > height or min(across, down) <= 0:
        raise BadInput(f"the box {list(box)} should lie inside the image of {width:g} x {height:g} pixels and have an area")
    area = across * down / share
    if area >= width * height:
        return 0.0, 0.0, float(width), float(height)
    wide, high = across / math.sqrt(share), down / math.sqrt(share)
    if wide > width:
        wide, high = width, area / width
    elif high > height:
        wide, high = area / height, height
    start = _kept_inside((left + right) / 2, wide, width), _kept_inside((top + bottom) / 2, high, height)
    return start[0], start[1], start[0] + wide, start[1] + high


def _kept_inside(middle: float, length: float, limit: float) -> float:
    """The start of an interval of this length around a centre, moved into 0 to the limit."""
    return float(min(max(middle - length / 2, 0), limit - length))


ENDINGS: Mapping[Output, str] = {"raw": ".png", "jpeg85": ".JPEG"}
PARTS_A_JOB = 16  # crops; enough that several wait for the disk together


@dataclass(frozen=True)
class Unchanged:
    """A product: the image as it is."""

    def __len__(self) -> int:
        return 1

    def base(self, image: Image) -> Image:
        return image

    def make(self, base: Image, part: int, *, key: str) -> NDArray[np.uint8]:  # noqa: ARG002 a Product
        return base


def write_crops(
    images: Dataset,
    folder: str | Path,
    *,
    places: Sequence[str],
    settings: Mapping[str, Any],
    information: Mapping[str, Any],
    output: Output = "raw",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Written:
    """Writes the missing crops, each at its path; `settings` say how they were chosen and cropped."""
    root = local_path(folder, "a dataset of crops")
    plan = Plan({"layout": "crops", "output": output, **settings}, "crops", {"final": {}}, ("final",), information)
    return write_set(
        images,
        Unchanged(),
        lambda scratch: FileStorage(root, scratch, ("",), ENDINGS[output], places),
        root=root,
        plan=plan,
        parts_a_job=PARTS_A_JOB,
        workers=workers,
        progress=progress,
    )


def box_project(
    images: ImageList,
    folder: str | Path,
    *,
    review: ReviewSettings = REVIEW,
    progress: Progress | None = None,
) -> Project:
    """A review project in which reviewers click the four extreme points of the object in each photo.

    A photo with several labels is an item for each of them. Unlabelled and unreadable photos are listed with the reason in
    `photos.csv` in the project.
    """
    folder = local_path(folder, "a dataset of crops")
    if images.classes is None:
        raise BadInput(f"{images.name} has no labels, so there are no objects to annotate")
    known_boxes = known_items(review.known, EXTREME_POINTS, folder)
    added = add_pictures(folder, {sample.id: images.source(sample) for sample in images.samples}, progress=progress)
    choice = (
        Funnel[Sample, str]
        .start(images.samples)
        .step("with a label", lambda sample: None if sample.labels else "has no label")
        .step("can be read", lambda sample: added.unreadable.get(sample.id))
    )
    keys = images.classes.keys
    asked = [
        Item(
            f"{sample.id} {keys[label]}",
            (added.names[sample.id],),
            joined_keys([keys[label]]),
            facts=origin(images, sample),
        )
        for sample in choice.left
        for label in sample.labels
    ]
    items = (*asked, *known_boxes)
    save_outcomes(folder / "photos.csv", choice, ("id",), lambda sample: (sample.id,))
    shown = review_classes(images.classes, [item.label for item in items if item.label])
    making = making_of([images, review.known], choice.steps)
    return review.save(folder, f"Objects of {images.name}", EXTREME_POINTS, items, shown, making)


def crop_project(
    made: CropSet,
    images: ImageList,
    folder: str | Path,
    *,
    reference: ReferenceModels | None = None,
    review: ReviewSettings = REVIEW,
    progress: Progress | None = None,
) -> Project:
    """A review project that asks whether each crop shows its class clearly; `images` is the boxed dataset."""
    folder, kept = local_path(folder, "a dataset of crops"), made.choice.left
    shown = cropped(images, kept, "final")
    added = add_pictures(folder, {sample.id: shown.source(sample) for sample in shown.samples}, progress=progress)
    place = str(made.written.destination.resolve())
    asked = [
        Item(one.id, (added.names[one.id],), joined_keys([one.boxed.key]), facts={**one.facts(), SOURCE: place, ID: one.id})
        for one in kept
        if one.id in added.names
    ]
    items = (*asked, *known_items(review.known, CLARITY, folder))
    classes = map(review_class, sorted({item.label for item in items if item.label}))
    models = [model.ref for model in reference.models] if reference else ()
    making = making_of([images, review.known], made.choice.steps, models=models)
    return review.save(folder, f"Crops of {images.name}", CLARITY, items, classes, making)
