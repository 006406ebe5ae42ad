"""Small pictures that live inside the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from PIL import Image as Pillow

from shiftproof.errors import ShiftproofError
from shiftproof.reports.heat_overlays import with_heat
from shiftproof.types import DrawnHeat, Image, ImageSetRef

OpenImage: TypeAlias = Callable[[ImageSetRef, str], Image]
"""Pixels of one image of a set, by its id."""

LONG_SIDE = 320
QUALITY = 82


def thumbnail(image: Image, *, long_side: int = LONG_SIDE, quality: int = QUALITY, heat: DrawnHeat | None = None) -> str:
    """A JPEG of at most `long_side` pixels as a ``data:`` address, under its heat; small images keep their size."""
    picture = Pillow.fromarray(image)
    picture.thumbnail((long_side, long_side), Pillow.Resampling.BICUBIC, reducing_gap=2.0)
    if heat is not None:
        picture = Pillow.fromarray(with_heat(np.asarray(picture), heat))
    data = io.BytesIO()
    picture.save(data, "JPEG", quality=quality, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(data.getvalue()).decode("ascii")


def thumbnail_or_reason(
    open_image: OpenImage | None,
    image_set: ImageSetRef,
    image_id: str,
    *,
    long_side: int = LONG_SIDE,
    quality: int = QUALITY,
) -> tuple[str, str]:
    """The thumbnail and "", or "" and why there is none: a picture that is gone should not cost the report."""
    if open_image is None:
        return "", "no image set at hand"
    try:
        return thumbnail(open_image(image_set, image_id), long_side=long_side, quality=quality), ""
    except (ShiftproofError, OSError) as problem:
        return "", str(problem)
