"""One photo under many conditions, each picture made anew from the stored image, as the models got to see it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION, GROUPS
from shiftproof.errors import ShiftproofError
from shiftproof.registry import missing_extra
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Part, Picture, Prose, Sheet, SheetRow
from shiftproof.reports.thumbnails import thumbnail
from shiftproof.reports.words import spoken
from shiftproof.types import CLEAN, Condition, Gallery, GalleryItem, Image

SIDE = 112
"""Pixels; 95 of these come to less than half a megabyte."""
UNCHANGED_SIDE = 224
QUALITY = 80
LARGEST = 1_000_000
"""Pixels; larger photos would take minutes under all conditions."""
ORDER = [name for names in GROUPS.values() for name in names]


class Cell(NamedTuple):
    """A place on the sheet, and what its caption says beside that."""

    corruption: str
    severity: int
    said: str


def contact_sheet(gallery: Gallery, page: Page, *, with_captions: bool = True) -> Part:
    """A row for each corruption, a column for each severity; a sentence where none of the pictures can be made."""
    items = [(item, cell_of(item.caption)) for item in gallery.items]
    pictures = {
        (cell.corruption, cell.severity): _picture(item, item.condition, gallery, page, said=cell.said * with_captions)
        for item, cell in items
        if cell is not None
    }
    reasons = sorted({picture.reason for picture in pictures.values()})
    if all(reasons):
        return Prose([f"{gallery.title}: not shown, {'; '.join(reasons) or 'it has no pictures'}."])
    severities = sorted({severity for _, severity in pictures})
    return Sheet(
        gallery.title,
        _unchanged(gallery, page),
        [str(severity) for severity in severities],
        [
            SheetRow(spoken(name), [pictures.get((name, severity)) for severity in severities])
            for name in sorted({name for name, _ in pictures}, key=_place)
        ],
        _note([item.condition for item in gallery.items]),
    )


def cell_of(caption: str) -> Cell | None:
    """Where a picture belongs: captions begin with the corruption and the severity, as conditions are written.

    >>> cell_of("jpeg_compression 3: wrong"), cell_of("fog 1"), cell_of("an otter")
    (Cell(corruption='jpeg_compression', severity=3, said='wrong'), Cell(corruption='fog', severity=1, said=''), None)
    """
    found = re.fullmatch(r"(\S+) (\d+)(?:: (.*))?", caption)
    return Cell(found[1], int(found[2]), found[3] or "") if found else None


def _place(name: str) -> tuple[int, str]:
    """The order of the paper; what is not in it comes last, by name."""
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _unchanged(gallery: Gallery, page: Page) -> Picture | None:
    """The photo itself, where pictures are made from it; stored ones do not tell which it is."""
    made = next((item for item in gallery.items if item.condition is not None), None)
    if made is None or made.condition is None:
        return None
    plain = dataclasses.replace(CLEAN, picture=made.condition.picture, edition=made.condition.edition)
    return _picture(made, plain, gallery, page, side=UNCHANGED_SIDE, said="unchanged")


def _picture(
    item: GalleryItem, condition: Condition | None, gallery: Gallery, page: Page, *, said: str, side: int = SIDE
) -> Picture:
    if page.open_image is None:
        return Picture(item.id, said, "", "no image set at hand")
    try:
        image = page.open_image(gallery.image_set, item.id)
        shown = image if condition is None else picture_under(condition, image, key=item.id)
    except (ShiftproofError, OSError) as problem:
        return Picture(item.id, said, "", str(problem))
    return Picture(item.id, said, thumbnail(shown, long_side=side, quality=QUALITY))


def picture_under(condition: Condition, image: Image, *, key: str) -> Image:
    """The image cut as the condition says, and changed by it."""
    edition = condition.picture if condition.picture in catalog.EDITIONS else None
    if edition is None and image.shape[0] * image.shape[1] > LARGEST:
        edition = condition.edition or DEFAULT_EDITION
    cut = image if edition is None else catalog.EDITIONS.load(edition).picture(image)
    return changed_by(condition, cut, key=key)


def changed_by(condition: Condition, image: Image, *, key: str) -> Image:
    """The image as a condition leaves it; MissingExtra where a library for that is not installed."""
    try:
        from shiftproof.corruptions.applying import apply
    except ModuleNotFoundError as missing:
        raise missing_extra("a picture under a corruption", missing) from missing
    return apply(condition, np.ascontiguousarray(image), key=key)


def _note(conditions: Sequence[Condition | None]) -> str:
    made = [condition for condition in conditions if condition is not None]
    if not made:
        return "A column for each severity: small copies of the stored pictures."
    saved = ", after the JPEG save" if any(condition.output == "jpeg85" for condition in made) else ""
    if all(condition.picture in catalog.EDITIONS for condition in made):
        return f"A column for each severity: small copies of the very pixels that the models were given{saved}."
    return f"A column for each severity: the stored photo{saved}, without what the models do to its size."
