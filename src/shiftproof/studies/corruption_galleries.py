"""Photos worth looking at under corruption: the most fragile ones, and one under everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from shiftproof.corruptions import GROUPS, IMAGENET_C
from shiftproof.studies.cells import Cells
from shiftproof.types import About, Condition, Gallery, GalleryItem, ImageSetRef

Place = Callable[[str, str, int], tuple[str, Condition | None] | None]
"""Where an image lies under a corruption at a severity: an id and what to do to it; None where it cannot be had."""


class Photos(NamedTuple):
    """Where the images behind the cells are found."""

    image_set: ImageSetRef  # of the images unchanged, or nearly so
    ids: Mapping[str, str]  # by image
    corrupted_set: ImageSetRef
    place: Place


def fragile_photos(cells: Cells, names: Mapping[str, str], about: About, photos: Photos, *, shown: int) -> Iterator[Gallery]:
    """Photos that are right unchanged and wrong in most cells."""
    wrong = cells.wrong.reshape(len(cells), -1).sum(axis=1)
    right = np.ones(len(cells), bool) if cells.clean_wrong is None else ~cells.clean_wrong
    rows = np.flatnonzero(right & (wrong > 0))
    rows = rows[np.argsort(-wrong[rows], kind="stable")][:shown]
    count = len(cells.corruptions) * len(cells.severities)
    items = tuple(
        GalleryItem(photos.ids.get(image, image), f"{names[image]}: wrong in {times} of {count}")
        for image, times in ((cells.ids[row], wrong[row]) for row in rows.tolist())
    )
    if items:
        yield Gallery("fragile_photos", about, photos.image_set, "Most fragile photos", items)


def contact_sheet(cells: Cells, about: About, photos: Photos, *, judged: bool = True) -> Gallery:
    """The first photo that is right unchanged, under every corruption; with the fifteen also the four no mean counts.

    Whether it was still right is told where it was `judged` in every cell.
    """
    order = sorted(range(len(cells)), key=lambda row: cells.ids[row])
    right = order if cells.clean_wrong is None else [row for row in order if not cells.clean_wrong[row]]
    row = (right or order)[0]
    verdicts = {
        (name, severity): ": wrong" if cells.wrong[row, corruption, step] else ": right"
        for corruption, name in enumerate(cells.corruptions)
        for step, severity in enumerate(cells.severities)
        if judged
    }
    extra = GROUPS["extra"] if set(IMAGENET_C) <= set(cells.corruptions) else ()
    items = []
    for name in dict.fromkeys([*cells.corruptions, *extra]):
        for severity in cells.severities:
            found = photos.place(cells.ids[row], name, severity)
            if found is not None:
                items.append(GalleryItem(found[0], f"{name} {severity}{verdicts.get((name, severity), '')}", found[1]))
    return Gallery("contact_sheet", about, photos.corrupted_set, "One photo under every corruption", tuple(items))
