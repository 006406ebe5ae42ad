"""The pictures of a review project, as a browser shows them."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

from PIL import Image as Pillow

from shiftproof.files import write_whole
from shiftproof.types import Image, ImageSource

SHOWN_AS_THEY_ARE = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}
"""Files that every browser shows; their bytes are taken over."""

PLAIN_MODES = ("RGB", "RGBA", "L", "P")
LONGEST = 2400
"""Pixels of the longer side of a picture: more would be slow to fetch and none of it be seen."""

QUALITY = 95


def put(folder: Path, source: ImageSource) -> str:
    """Adds a picture to the project in a folder; the name it has there. UnreadableImage where there is none to see.

    A file that a browser can show is taken over as it is, anything else (a frame, a crop, a huge or odd file) is saved anew.
    """
    data = source.read()
    image = source.decode(data)
    suffix = _suffix(data, image)
    if suffix is None:
        data, suffix = _saved(image), ".jpg"
    name = hashlib.blake2b(data, digest_size=16).hexdigest() + suffix
    path = folder / "images" / name
    if not path.exists():
        write_whole(path, data)
    return name


def _suffix(data: bytes, image: Image) -> str | None:
    """The ending of a file that can be shown as it is; None for one that cannot, or is not the image alone."""
    if max(image.shape[:2]) > LONGEST:
        return None
    try:
        with Pillow.open(io.BytesIO(data)) as opened:
            upright = sorted(opened.size) == sorted(image.shape[:2])
            still = getattr(opened, "n_frames", 1) == 1
            return SHOWN_AS_THEY_ARE.get(opened.format or "") if opened.mode in PLAIN_MODES and upright and still else None
    except (OSError, ValueError):
        return None


def _saved(image: Image) -> bytes:
    picture = Pillow.fromarray(image)
    picture.thumbnail((LONGEST, LONGEST), Pillow.Resampling.LANCZOS)
    held = io.BytesIO()
    picture.save(held, "JPEG", quality=QUALITY, subsampling=0)
    return held.getvalue()
