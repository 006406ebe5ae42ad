"""Frames around an anchor side by side, in the order of time, with what a model said of each."""

from __future__ import annotations

import re
from typing import NamedTuple

from shiftproof.reports.page import Page
from shiftproof.reports.parts import Filmstrip, Frame, Picture
from shiftproof.reports.thumbnails import thumbnail_or_reason
from shiftproof.reports.words import count, kept_together
from shiftproof.types import Gallery, GalleryItem

SIDE = 144
"""Pixels; 21 of these come to about a hundred kilobytes."""
QUALITY = 76
OFFSET = re.compile(r"([+−-]?\d+): ")
WRONG = " (wrong)"


class Said(NamedTuple):
    """A caption taken apart; the offset is empty where the caption names none."""

    offset: str
    answer: str
    wrong: bool


def filmstrip(gallery: Gallery, page: Page) -> Filmstrip:
    """The frames of one gallery, named with its model where the page has several."""
    several = len(page.models) > 1 and "model" in gallery.about
    title = f"{gallery.title}: {gallery.about['model']}" if several else gallery.title
    note = f"{count(len(gallery.items))} frames in the order of time; the row scrolls sideways."
    return Filmstrip(title, [_frame(item, gallery, page) for item in gallery.items], note)


def said_of(caption: str) -> Said:
    """Where a frame stands, what was said of it and whether that is wrong.

    >>> said_of("-3: tabby 54 % (wrong)"), said_of("+0: otter")
    (Said(offset='−3', answer='tabby 54 %', wrong=True), Said(offset='anchor', answer='otter', wrong=False))
    """
    offset = OFFSET.match(caption)
    number = offset[1].replace("-", "−") if offset else ""
    answer = caption[offset.end() :] if offset else caption
    right = answer.removesuffix(WRONG)
    return Said("anchor" if number.lstrip("+−") == "0" else number, right, right != answer)


def _frame(item: GalleryItem, gallery: Gallery, page: Page) -> Frame:
    said = said_of(item.caption)
    image_set = item.image_set or gallery.image_set
    shown = thumbnail_or_reason(page.open_image, image_set, item.id, long_side=SIDE, quality=QUALITY)
    return Frame(Picture(item.id, kept_together(said.answer), *shown), said.offset, said.wrong)
