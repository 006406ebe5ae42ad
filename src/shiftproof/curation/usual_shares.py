"""How much of an image the objects of a class usually fill: measured in a boxed set, or as a table says."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shiftproof.class_lists import classes_from
from shiftproof.curation.boxed_objects import boxed_objects
from shiftproof.curation.tables import load_rows
from shiftproof.errors import BadInput
from shiftproof.image_sets.class_matching import match_columns
from shiftproof.image_sets.image_list import ImageList
from shiftproof.metrics.object_size import mean_share_by_class
from shiftproof.types import Classes

CLASS_COLUMNS = ("wnid", "class", "label")


@dataclass(frozen=True)
class UsualShares:
    """The mean share of their image that the objects of each class fill."""

    source: str  # where they come from
    classes: Classes
    shares: NDArray[np.floating]  # (classes,): nan for a class without objects

    def among(self, classes: Classes) -> NDArray[np.floating]:
        """The share of each of these classes, matched by wnid or name, (classes,); nan where it is not known."""
        columns = np.array(match_columns(classes, self.classes, len(self.classes)).columns)
        found = np.where(columns >= 0, self.shares[columns], np.nan)
        if np.isnan(found).all():
            raise BadInput(f"{self.source} tells the usual share of none of the {len(classes)} classes of the images")
        return found

    def table(self) -> list[tuple[str, str]]:
        """The shares that are known, under the headings that `load_shares` looks for."""
        known = [pair for pair in zip(self.classes.keys, self.shares.tolist(), strict=True) if not math.isnan(pair[1])]
        return [("class", "share"), *((key, f"{share:.6f}") for key, share in known)]


def measured_shares(images: ImageList) -> UsualShares:
    """The mean share of each class in a boxed set, such as the localization set of ILSVRC."""
    objects = [one for one in boxed_objects(images) if one.problem is None]
    if not objects or images.classes is None:
        raise BadInput(f"{images.name} has no objects whose share of an image could be measured")
    shares, labels = np.array([one.share for one in objects]), np.array([one.label for one in objects])
    return UsualShares(images.name, images.classes, mean_share_by_class(shares, labels, classes=len(images.classes)))


def load_shares(path: str | Path) -> UsualShares:
    """The shares of a CSV file with a column `wnid` or `class`, and `share` between 0 and 1."""
    rows = load_rows(path, "a table of shares")
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
            raise BadInput(f"{path}, row {line}: a share should be above 0 and at most 1, got {row['share']!r}")
        yield share
