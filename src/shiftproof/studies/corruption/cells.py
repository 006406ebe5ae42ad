"""Which images a model misclassifies under every corruption at every severity, and the baseline they are compared with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import IMAGENET_C, corruption_groups
from shiftproof.errors import UnknownName
from shiftproof.metrics import is_correct
from shiftproof.reference import load_table
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, model_ref
from shiftproof.types import (
    EXAMPLES,
    About,
    BaselineRef,
    Classifier,
    Clusters,
    Condition,
    DatasetRef,
    Gallery,
    GalleryItem,
    ModelRef,
    Predictions,
)


@dataclass(frozen=True)
class Cells:
    """Which images a model misclassifies in every cell, a corruption at a severity; where known, also unchanged."""

    ids: tuple[str, ...]
    corruptions: tuple[str, ...]
    severities: tuple[int, ...]
    # (images, corruptions, severities); where some were not run, numbers that are unbiased for what they would be
    wrong: NDArray[np.bool_] | NDArray[np.floating]
    clean_wrong: NDArray[np.bool_] | None  # (images,)
    grouped: Clusters | None = None  # None: every image is a case of its own
    confidence: NDArray[np.floating] | None = None  # in the predicted class, (images, corruptions, severities)

    @property
    def clusters(self) -> Clusters:
        """The clusters of the images."""
        return self.grouped or Clusters("image", self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> NDArray[np.bool_] | NDArray[np.floating]:
        """All cells of an image side by side, the unchanged image last, (images, columns)."""
        table = self.wrong.reshape(len(self), -1)
        return table if self.clean_wrong is None else np.column_stack([table, self.clean_wrong])

    def take(self, ids: Sequence[str]) -> Cells:
        """The same for these images, in this order."""
        if tuple(ids) == self.ids:
            return self
        row_of = {image: row for row, image in enumerate(self.ids)}
        rows = np.array([row_of[image] for image in ids], dtype=np.intp)
        clean = None if self.clean_wrong is None else self.clean_wrong[rows]
        grouped = None if self.grouped is None else self.grouped.take(rows)
        confidence = None if self.confidence is None else self.confidence[rows]
        return Cells(tuple(ids), self.corruptions, self.severities, self.wrong[rows], clean, grouped, confidence)


class Part(NamedTuple):
    """What a model said of some images in one cell."""

    known: frozenset[str]  # every image, those skipped too
    read: frozenset[str]
    ids: tuple[str, ...]  # those with a label
    wrong: NDArray[np.bool_]  # (images with a label,)
    confidence: NDArray[np.floating]  # in the predicted class, nan where there is none, (images with a label,)
    clusters: Clusters  # of the images with a label

    @classmethod
    def of(cls, predictions: Predictions, image_of: Callable[[str], str] = str) -> Part:
        """The predictions, under the names of the images they are of."""
        ids = predictions.ids if image_of is str else tuple(map(image_of, predictions.ids))
        labelled = evidence.labelled_only(predictions)
        wrong = ~is_correct(labelled.labels, labelled.top5.classes) if len(labelled) else np.empty(0, bool)
        aside = (image_of(image.id) for image in predictions.skipped_images)
        named = tuple(ids) if len(labelled) == len(ids) else tuple(compress(ids, predictions.labelled.tolist()))
        confidence = evidence.confidence_or_nan(labelled)
        read = frozenset(ids)
        return cls(read.union(aside), read, named, wrong, confidence, labelled.clusters)


def common_cells(parts: Sequence[Part], corruptions: Sequence[str], severities: Sequence[int]) -> Cells:
    """The images that were read and labelled in all parts: cells by corruption and severity, then the clean one if any.

    They come in the order of their ids, so that the same images are drawn again whatever order they were stored in.
    """
    ids = tuple(sorted(frozenset.intersection(*(frozenset(part.ids) for part in parts))))
    table, sure = np.empty((len(ids), len(parts)), bool), np.empty((len(ids), len(parts)))
    rows_of: dict[tuple[str, ...], list[int]] = {}  # most parts have the same images in the same order
    for column, part in enumerate(parts):
        if part.ids not in rows_of:
            row_of = {image: row for row, image in enumerate(part.ids)}
            rows_of[part.ids] = [row_of[image] for image in ids]
        rows = rows_of[part.ids]
        table[:, column], sure[:, column] = part.wrong[rows], part.confidence[rows]
    count = len(corruptions) * len(severities)
    shape = len(ids), len(corruptions), len(severities)
    wrong, confidence = table[:, :count].reshape(shape), sure[:, :count].reshape(shape)
    clean = table[:, count] if len(parts) > count else None
    grouped = parts[0].clusters.take(np.array(rows_of[parts[0].ids], np.intp))
    return Cells(ids, tuple(corruptions), tuple(severities), wrong, clean, grouped, confidence)


def left_out(parts: Sequence[Part]) -> dict[str, str]:
    """How many images the numbers go without, because some part has no prediction or they have no label."""
    known = frozenset[str]().union(*(part.known for part in parts))
    read = len(frozenset.intersection(*(part.read for part in parts)))
    labelled = len(frozenset.intersection(*(frozenset(part.ids) for part in parts)))
    return evidence.left_out(skipped_images=len(known) - read, read=read, labelled=labelled)


def right_classes(predictions: Predictions, image_of: Callable[[str], str] = str) -> Mapping[str, str]:
    """The ground-truth classes of each image, in words."""
    names = ClassNames(predictions.classes)
    pairs = zip(predictions.ids, predictions.labels, strict=True)
    return {image_of(image): names.of_labels(labels) for image, labels in pairs}


Place = Callable[[str, str, int], tuple[str, Condition | None] | None]
"""Where an image lies under a corruption at a severity: an id and what to do to it; None where it cannot be had."""


class Photos(NamedTuple):
    """Where the images behind the cells are found."""

    dataset: DatasetRef  # of the images unchanged, or nearly so
    ids: Mapping[str, str]  # by image
    corrupted_set: DatasetRef
    place: Place


class ModelCells(NamedTuple):
    """One model in every cell: what it misclassified, and what is said of these numbers."""

    cells: Cells
    names: Mapping[str, str]  # ground-truth classes of each image, in words
    convention: Mapping[str, str]
    clean_convention: Mapping[str, str]
    photos: Photos
    reasons: tuple[str, ...] = ()  # what cannot be measured, and why


def fragile_photos(cells: Cells, names: Mapping[str, str], about: About, photos: Photos, *, shown: int) -> Iterator[Gallery]:
    """Photos that are classified correctly unchanged and misclassified in most cells."""
    wrong = cells.wrong.reshape(len(cells), -1).sum(axis=1)
    right = np.ones(len(cells), bool) if cells.clean_wrong is None else ~cells.clean_wrong
    rows = np.flatnonzero(right & (wrong > 0))
    rows = rows[np.argsort(-wrong[rows], kind="stable")][:shown]
    count = len(cells.corruptions) * len(cells.severities)
    items = tuple(
        GalleryItem(photos.ids.get(image, image), f"{names[image]}: misclassified in {times} of {count}")
        for image, times in ((cells.ids[row], wrong[row]) for row in rows.tolist())
    )
    if items:
        yield Gallery("fragile_photos", about, photos.dataset, "Least robust photos", items)


def cell_examples(cells: Cells, names: Mapping[str, str], about: About, photos: Photos) -> Iterator[Gallery]:
    """Of each cell the first photo that is correct when clean and misclassified there."""
    right = np.ones(len(cells), bool) if cells.clean_wrong is None else ~cells.clean_wrong
    for place, name in enumerate(cells.corruptions):
        for step, severity in enumerate(cells.severities):
            rows = np.flatnonzero(right & (cells.wrong[:, place, step] > 0))
            found = photos.place(cells.ids[rows[0]], name, severity) if len(rows) else None
            if found is not None:
                caption = f"{names[cells.ids[rows[0]]]}, misclassified"
                item = GalleryItem(found[0], caption, found[1], correct=False, corruption=name, severity=severity)
                cell = {**about, "corruption": name, "severity": severity}
                yield Gallery(EXAMPLES, cell, photos.corrupted_set, "Misclassified under corruption", (item,))


def contact_sheet(cells: Cells, about: About, photos: Photos, *, judged: bool = True) -> Gallery:
    """The first photo that is correct when clean, under every corruption; with the fifteen also the four no mean counts.

    Whether it is still correct is said where it was `judged` in every cell.
    """
    order = sorted(range(len(cells)), key=lambda row: cells.ids[row])
    right = order if cells.clean_wrong is None else [row for row in order if not cells.clean_wrong[row]]
    row = (right or order)[0]
    correct = {
        (name, severity): not cells.wrong[row, corruption, step]
        for corruption, name in enumerate(cells.corruptions)
        for step, severity in enumerate(cells.severities)
        if judged
    }
    extra = corruption_groups()["extra"] if set(IMAGENET_C) <= set(cells.corruptions) else ()
    items = []
    for name in dict.fromkeys([*cells.corruptions, *extra]):
        for severity in cells.severities:
            found = photos.place(cells.ids[row], name, severity)
            if found is not None:
                outcome = correct.get((name, severity))
                item = GalleryItem(found[0], f"{name} {severity}", found[1], correct=outcome)
                items.append(replace(item, corruption=name, severity=severity))
    return Gallery("contact_sheet", about, photos.corrupted_set, "One photo under every corruption", tuple(items))


ALEXNET = "alexnet"
"""The name under which the published numbers are asked for."""

EVERY_SEVERITY = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Baseline:
    """What errors are divided by: those of a model on the same images, or published means, which are constants."""

    ref: BaselineRef
    cells: Cells | None = None
    errors: NDArray[np.floating] | None = None  # (corruptions,), means over the severities; nan where there is none
    clean_error: float | None = None
    reasons: tuple[str, ...] = ()  # why some errors are not known


def alexnet_errors(corruptions: Sequence[str], severities: Sequence[int], *, measured_on: str | None = None) -> Baseline:
    """The published errors of these corruptions over these severities, not a number where there is none.

    `measured_on` says what they were measured on that this is not.

    >>> found = alexnet_errors(["brightness", "spatter"], [1])
    >>> found.errors, found.reasons
    (array([0.4514,    nan]), ("of spatter AlexNet's error is published over all five severities alone",))
    """
    rows = {row["corruption"]: row for row in load_table("alexnet_corruption_errors")}
    means, reasons = [], []
    for name in corruptions:
        row = rows.get(name, {"mean": "", "s1": ""})
        if row["mean"] and tuple(sorted(severities)) == EVERY_SEVERITY:
            means.append(float(row["mean"]))
        elif row["s1"]:
            means.append(float(np.mean([float(row[f"s{severity}"]) for severity in severities])))
        else:
            means.append(np.nan)
            over = "published over all five severities alone" if row["mean"] else "not published"
            reasons.append(f"of {name} AlexNet's error is {over}")
    of = f", which are {measured_on}" if measured_on else " on these images"
    ref = BaselineRef(f"AlexNet's published errors{of}", alexnet=True, published=True, same_images=not measured_on)
    return Baseline(ref, errors=np.array(means), clean_error=float(rows["clean"]["mean"]), reasons=tuple(reasons))


def alexnet_flips() -> dict[str, float]:
    """The published flip probability of each perturbation."""
    rows = load_table("alexnet_flip_probabilities")
    return {row["perturbation"]: float(row["flip_probability"]) for row in rows}


def checked_baseline(given: ModelRef | Classifier | str | None) -> ModelRef | str | None:
    """The baseline by reference; UnknownName where it is a name that is not the published one's."""
    if isinstance(given, str) and given != ALEXNET:
        raise UnknownName("published baseline", given, [ALEXNET])
    return given if given is None or isinstance(given, str) else model_ref(given)


def why_unnormalised(measured_on: str) -> str:
    """Why errors stand as they are, and what to do for ratios."""
    return (
        f"errors are not divided by a baseline's, because AlexNet's published ones are {measured_on}; give --baseline MODEL "
        f"for a model run on the same images, or --baseline {ALEXNET} for the published errors all the same"
    )
