"""Objects of a boxed dataset, one box over all instances of a class in an image, and their proportion of the image."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.boxed.boxes import clip_box, is_empty
from shiftproof.datasets.boxed.crops import Instance, instances, known_size
from shiftproof.datasets.classes import classes_from, match_columns
from shiftproof.datasets.image_list import ImageList, decoded
from shiftproof.errors import BadInput
from shiftproof.files import load_csv
from shiftproof.metrics.objects import mean_share_by_class, object_share
from shiftproof.types import Classes, Sample


@dataclass(frozen=True)
class BoxedObject:
    """All instances of a class in one image; `problem` says why its size is unknown."""

    id: str  # of its crop
    image: str
    label: int
    key: str  # of its class: the wnid where known, else the name
    box: tuple[float, float, float, float]
    size: tuple[int, int] = (0, 0)  # width and height of its image
    problem: str | None = None

    @property
    def share(self) -> float:
        """Object proportion: box area / image area; nan where there is a problem."""
        return math.nan if self.problem else float(object_share(np.array([self.box]), np.array([self.size]))[0])


def boxed_objects(images: ImageList) -> list[BoxedObject]:
    """One object per class and image, without crowd and ignored boxes; images of unknown size are decoded."""
    if images.truths is None or images.classes is None:
        raise BadInput(f"{images.name} has no boxes; name a dataset with boxes, e.g. the .json of COCO")
    samples, keys = {sample.id: sample for sample in images.samples}, images.classes.keys
    found = [one for one in instances(images.truths, together=True) if one.image in samples]
    sizes = {image: size_of(images, samples[image]) for image in dict.fromkeys(one.image for one in found)}
    return [_boxed(one, keys[one.label], sizes[one.image]) for one in found]


def size_of(images: ImageList, sample: Sample) -> tuple[int, int] | str:
    """Width and height of an image, or why it cannot be read."""
    known = known_size(sample)
    if known is not None:
        return known
    image = decoded(images.source(sample))
    return image if isinstance(image, str) else (image.shape[1], image.shape[0])


def _boxed(one: Instance, key: str, size: tuple[int, int] | str) -> BoxedObject:
    if isinstance(size, str):
        return BoxedObject(one.id, one.image, one.label, key, one.box, problem=size)
    box = clip_box(one.box, size)
    if is_empty(box):
        problem = f"its box lies outside the image of {size[0]} x {size[1]} pixels"
        return BoxedObject(one.id, one.image, one.label, key, one.box, size, problem)
    return BoxedObject(one.id, one.image, one.label, key, box, size)


CLASS_COLUMNS = ("wnid", "class", "label")


@dataclass(frozen=True)
class UsualShares:
    """The mean object proportion of each class."""

    source: str  # where they come from
    classes: Classes
    shares: NDArray[np.floating]  # (classes,): nan for a class without objects

    def among(self, classes: Classes) -> NDArray[np.floating]:
        """The object proportion of each of these classes, matched by wnid or name, (classes,); nan where it is unknown."""
        columns = np.array(match_columns(classes, self.classes, len(self.classes)).columns)
        found = np.where(columns >= 0, self.shares[columns], np.nan)
        if np.isnan(found).all():
            raise BadInput(f"{self.source} has the object proportion of none of the {len(classes)} classes of the images")
        return found

    def table(self) -> list[tuple[str, str]]:
        """The known object proportions, as rows that `load_shares` reads."""
        known = [pair for pair in zip(self.classes.keys, self.shares.tolist(), strict=True) if not math.isnan(pair[1])]
        return [("class", "share"), *((key, f"{share:.6f}") for key, share in known)]


def measured_shares(images: ImageList) -> UsualShares:
    """The mean object proportion of each class in a boxed dataset, e.g. ILSVRC localization."""
    objects = [one for one in boxed_objects(images) if one.problem is None]
    if not objects or images.classes is None:
        raise BadInput(f"{images.name} has no objects whose proportion could be measured")
    shares, labels = np.array([one.share for one in objects]), np.array([one.label for one in objects])
    return UsualShares(images.name, images.classes, mean_share_by_class(shares, labels, classes=len(images.classes)))


def load_shares(path: str | Path) -> UsualShares:
    """The object proportions in a CSV file with a column `wnid` or `class`, and `share` between 0 and 1."""
    rows = load_csv(path, "a table of object proportions")
    column = next((name for name in CLASS_COLUMNS if rows and name in rows[0]), None)
    if column is None or "share" not in rows[0]:
        raise BadInput(f"{path} should be a table with columns 'wnid' or 'class', and 'share', and a row for each class")
    keys = [row[column] for row in rows]
    if len(set(keys)) < len(keys):
        raise BadInput(f"{path} names {len(keys) - len(set(keys))} classes twice")
    return UsualShares(str(path), classes_from(keys), np.array(list(_shares(rows, path))))


def _shares(rows: list[dict[str, str]], path: str | Path) -> Iterator[float]:
    for line, row in enumerate(rows, 2):
        try:
            share = float(row["share"])
        except (TypeError, ValueError):
            share = math.nan
        if not 0 < share <= 1:
            raise BadInput(f"{path}, row {line}: the share should be above 0 and at most 1, got {row['share']!r}")
        yield share
