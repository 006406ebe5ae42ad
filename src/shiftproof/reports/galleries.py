"""Galleries of generated pictures: contact sheets of one photo under many conditions, images with boxes and heat."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial

import numpy as np

from shiftproof import catalog
from shiftproof.corruptions import DEFAULT_EDITION
from shiftproof.registry import missing_extra
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Part, Picture, Pictures, Prose, Sheet, SheetRow
from shiftproof.reports.words import kept_together, spoken
from shiftproof.types import CLEAN, Condition, Gallery, GalleryItem, Image

BOXED_SIDE = 480
"""Pixels: enough to read what boxes say, and about 30 kilobytes a picture."""
BOX_KINDS = {
    "right": "green, solid: true positive",
    "wrong": "red, dashed: false positive",
    "truth": "white, dotted: ground truth",
    "found": "blue: detected, without ground truth to compare with",
}

OUTCOMES = {True: "correct", False: "misclassified", None: ""}
SIDE = 112
"""Pixels; 95 of these come to less than half a megabyte."""
UNCHANGED_SIDE = 224
QUALITY = 56
LARGEST = 1_000_000
"""Pixels; larger photos would take minutes under all conditions."""


def boxed_pictures(gallery: Gallery, page: Page, *, abreast: int = 1, note: str = "") -> Pictures:
    """The images of a gallery whole, each under its condition and heat, named with the model where there are several."""
    kinds = {box.kind for item in gallery.items for box in item.boxes}
    legend = "; ".join(told for kind, told in BOX_KINDS.items() if kind in kinds)
    told = " ".join(filter(None, [f"{legend[:1].upper()}{legend[1:]}." if legend else "", note]))
    return Pictures(page.title_by_model(gallery), [_boxed(item, gallery, page) for item in gallery.items], told, abreast)


def _boxed(item: GalleryItem, gallery: Gallery, page: Page) -> Picture:
    condition = item.condition
    under = "" if condition is None else f"{spoken(condition.name)} {condition.severity}: "
    change = None if condition is None else partial(changed_by, condition, key=item.id)
    shown = page.thumbnail(item.dataset or gallery.dataset, item.id, long_side=BOXED_SIDE, change=change, heat=item.heat)
    return Picture(item.id, kept_together(f"{under}{item.caption}"), *shown, boxes=item.boxes)


def contact_sheet(gallery: Gallery, page: Page, *, with_captions: bool = True) -> Part:
    """A row for each corruption, a column for each severity; a sentence where none of the pictures can be made."""
    pictures = {
        (item.corruption, item.severity): _picture(
            item, item.condition, gallery, page, said=OUTCOMES[item.correct] if with_captions else ""
        )
        for item in gallery.items
        if item.corruption
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


def _place(name: str) -> tuple[int, str]:
    """The order of the paper; what is not in it comes last, by name."""
    known = list(catalog.CORRUPTIONS)
    return (known.index(name) if name in known else len(known), name)


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
    change = None if condition is None else partial(picture_under, condition, key=item.id)
    shown = page.thumbnail(gallery.dataset, item.id, long_side=side, quality=QUALITY, change=change)
    return Picture(item.id, said, *shown)


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
        from shiftproof.corruptions.apply import apply
    except ModuleNotFoundError as missing:
        raise missing_extra("a picture under a corruption", missing) from missing
    return apply(condition, np.ascontiguousarray(image), key=key)


def _note(conditions: Sequence[Condition | None]) -> str:
    made = [condition for condition in conditions if condition is not None]
    if not made:
        return "A column for each severity: thumbnails of the stored pictures."
    saved = ", after JPEG encoding" if any(condition.output == "jpeg85" for condition in made) else ""
    if all(condition.picture in catalog.EDITIONS for condition in made):
        return f"A column for each severity: thumbnails of the pixels that the models were given{saved}."
    return f"A column for each severity: the stored photo{saved}, before the model's own resize and crop."
