"""One model under every corruption at every severity: which images it got wrong where, row by row the same images."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import is_correct
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames
from shiftproof.types import Clusters, Predictions


@dataclass(frozen=True)
class Cells:
    """Which images a model got wrong in every cell, a corruption at a severity; where known, also unchanged."""

    ids: tuple[str, ...]
    corruptions: tuple[str, ...]
    severities: tuple[int, ...]
    # (images, corruptions, severities); where some were not run, numbers that are unbiased for what they would be
    wrong: NDArray[np.bool_] | NDArray[np.floating]
    clean_wrong: NDArray[np.bool_] | None  # (images,)
    grouped: Clusters | None = None  # None: every image is a case of its own

    @property
    def clusters(self) -> Clusters:
        """Which images are one case."""
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
        return Cells(tuple(ids), self.corruptions, self.severities, self.wrong[rows], clean, grouped)


@dataclass(frozen=True)
class Baseline:
    """What errors are divided by: those of a model on the same images, or published means, which are constants."""

    told: str  # what stands beside the numbers
    cells: Cells | None = None
    errors: NDArray[np.floating] | None = None  # (corruptions,), means over the severities; nan where there is none
    clean_error: float | None = None
    reasons: tuple[str, ...] = ()  # why some errors are not known


class Part(NamedTuple):
    """What a model said of some images in one cell."""

    known: frozenset[str]  # every image, those set aside too
    read: frozenset[str]
    ids: tuple[str, ...]  # those with a label
    wrong: NDArray[np.bool_]  # (images with a label,)
    clusters: Clusters  # of the images with a label

    @classmethod
    def of(cls, predictions: Predictions, image_of: Callable[[str], str] = str) -> Part:
        """The answers, under the names of the images they are of."""
        ids = np.array([image_of(image) for image in predictions.ids], dtype=object)
        labelled = evidence.labelled_only(predictions)
        wrong = ~is_correct(labelled.labels, labelled.top5.classes) if len(labelled) else np.empty(0, bool)
        aside = (image_of(image.id) for image in predictions.set_aside)
        named = tuple(ids[predictions.labelled])
        return cls(frozenset(ids) | frozenset(aside), frozenset(ids), named, wrong, labelled.clusters)


def common_cells(parts: Sequence[Part], corruptions: Sequence[str], severities: Sequence[int]) -> Cells:
    """The images that were read and labelled in all parts: cells by corruption and severity, then the clean one if any.

    They come in the order of their ids, so that the same images are drawn again whatever order they were stored in.
    """
    ids = tuple(sorted(frozenset.intersection(*(frozenset(part.ids) for part in parts))))
    table = np.empty((len(ids), len(parts)), bool)
    rows_of: dict[tuple[str, ...], list[int]] = {}  # most parts have the same images in the same order
    for column, part in enumerate(parts):
        if part.ids not in rows_of:
            row_of = {image: row for row, image in enumerate(part.ids)}
            rows_of[part.ids] = [row_of[image] for image in ids]
        table[:, column] = part.wrong[rows_of[part.ids]]
    count = len(corruptions) * len(severities)
    wrong = table[:, :count].reshape(len(ids), len(corruptions), len(severities))
    clean = table[:, count] if len(parts) > count else None
    grouped = parts[0].clusters.take(np.array(rows_of[parts[0].ids], np.intp))
    return Cells(ids, tuple(corruptions), tuple(severities), wrong, clean, grouped)


def left_out(parts: Sequence[Part]) -> dict[str, str]:
    """How many images the numbers go without, because some part has no answer or they have no label."""
    known = frozenset[str]().union(*(part.known for part in parts))
    read = len(frozenset.intersection(*(part.read for part in parts)))
    labelled = len(frozenset.intersection(*(frozenset(part.ids) for part in parts)))
    return evidence.left_out(set_aside=len(known) - read, read=read, labelled=labelled)


def right_classes(predictions: Predictions, image_of: Callable[[str], str] = str) -> Mapping[str, str]:
    """The right classes of each image, in words."""
    names = ClassNames(predictions.classes)
    pairs = zip(predictions.ids, predictions.labels, strict=True)
    return {image_of(image): names.of_labels(labels) for image, labels in pairs}
