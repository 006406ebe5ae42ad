"""Images with boxes drawn on them: what is right, what is wrong, and what is really there."""

from __future__ import annotations

from shiftproof.errors import ShiftproofError
from shiftproof.reports.contact_sheets import changed_by
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Picture, Pictures
from shiftproof.reports.thumbnails import thumbnail
from shiftproof.reports.words import kept_together, spoken
from shiftproof.types import Gallery, GalleryItem

SIDE = 480
"""Pixels: enough to read what boxes say, and about 30 kilobytes a picture."""
KINDS = {
    "right": "green, solid: right",
    "wrong": "red, dashed: wrong",
    "truth": "white, dotted: what is really there",
    "found": "blue: found, and nobody says whether rightly",
}


def boxed_pictures(gallery: Gallery, page: Page, *, abreast: int = 1, note: str = "") -> Pictures:
    """The images of a gallery whole, each under its condition and heat, named with the model where there are several."""
    several = len(page.models) > 1 and "model" in gallery.about
    title = f"{gallery.title}: {gallery.about['model']}" if several else gallery.title
    pictures = [_picture(item, gallery, page) for item in gallery.items]
    kinds = {box.kind for item in gallery.items for box in item.boxes}
    legend = "; ".join(told for kind, told in KINDS.items() if kind in kinds)
    told = " ".join(filter(None, [f"{legend[:1].upper()}{legend[1:]}." if legend else "", note]))
    return Pictures(title, pictures, told, abreast)


def _picture(item: GalleryItem, gallery: Gallery, page: Page) -> Picture:
    caption = kept_together(spoken(item.caption) if item.condition else item.caption)
    if page.open_image is None:
        return Picture(item.id, caption, "", "no image set at hand", item.boxes)
    try:
        image = page.open_image(item.image_set or gallery.image_set, item.id)
        shown = image if item.condition is None else changed_by(item.condition, image, key=item.id)
    except (ShiftproofError, OSError) as problem:
        return Picture(item.id, caption, "", str(problem), item.boxes)
    return Picture(item.id, caption, thumbnail(shown, long_side=SIDE, heat=item.heat), boxes=item.boxes)
