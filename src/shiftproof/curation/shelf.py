"""The pictures of a review project, as a browser shows them."""

from __future__ import annotations

import hashlib
import io
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from PIL import Image as Pillow

from shiftproof.digests import stamp_of
from shiftproof.files import refusal, write_whole
from shiftproof.image_sets.opener import decoded
from shiftproof.prediction import Progress
from shiftproof.types import Image, ImageSource

SHOWN_AS_THEY_ARE = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}
"""Files that every browser shows; their bytes are taken over."""

PLAIN_MODES = ("RGB", "RGBA", "L", "P")
LONGEST = 2400
"""Pixels of the longer side of a picture: more would be slow to fetch and none of it be seen."""

QUALITY = 95

REGISTER = ".put"
"""Beside the pictures: what was put there, by the stamp of its source, so that nothing is opened twice."""

SAVERS = 4
"""Threads that save pictures, while the next are opened in their order, as clips want it."""


class Shelved(NamedTuple):
    """What became of images: the names of the pictures, and why others have none, both by the image's id."""

    names: Mapping[str, str]
    unreadable: Mapping[str, str]


def put(folder: Path, source: ImageSource) -> str:
    """Adds a picture to the project in a folder; the name it has there. UnreadableImage where there is none to see.

    A file that a browser can show is taken over as it is, anything else (a frame, a crop, a huge or odd file) is saved anew.
    """
    data = source.read()
    return _shelve(folder, data, source.decode(data))


def put_all(folder: Path, sources: Mapping[str, ImageSource], *, progress: Progress | None = None) -> Shelved:
    """Adds many pictures, by the ids of the images; those that were put there before are not opened again."""
    register = folder / "images" / REGISTER
    there = _registered(register)
    stamps = {image_id: stamp_of(source) for image_id, source in sources.items()}
    names = {image_id: there[stamp] for image_id, stamp in stamps.items() if stamp is not None and stamp in there}
    unreadable: dict[str, str] = {}
    missing = [image_id for image_id in sources if image_id not in names]
    try:
        register.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refusal(error, register.parent) from error
    if progress is not None:
        progress.begin("pictures", len(sources), len(names))
    with ThreadPoolExecutor(SAVERS) as threads, register.open("a", encoding="utf-8") as lines:
        waiting: deque[tuple[str, Future[str]]] = deque()

        def finish_first() -> None:
            image_id, saved = waiting.popleft()
            names[image_id] = saved.result()
            lines.write(f"{stamps[image_id]} {names[image_id]}\n")
            lines.flush()

        for image_id in missing:
            image = decoded(sources[image_id])
            if isinstance(image, str):
                unreadable[image_id] = image
            else:
                waiting.append((image_id, threads.submit(_shelve, folder, sources[image_id].read(), image)))
            if len(waiting) > 2 * SAVERS:
                finish_first()
            if progress is not None:
                progress.advance(1)
        while waiting:
            finish_first()
    if progress is not None:
        progress.end()
    return Shelved(names, unreadable)


def _registered(register: Path) -> dict[str, str]:
    """The names of pictures by the stamps of their sources; a line that a kill cut off names none that is there."""
    try:
        lines = [line.split() for line in register.read_text(encoding="utf-8", errors="replace").splitlines()]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {line[0]: line[1] for line in lines if len(line) == 2 and (register.parent / line[1]).exists()}


def _shelve(folder: Path, data: bytes, image: Image) -> str:
    suffix = ending_as_it_is(data, image)
    if suffix is None:
        data, suffix = _saved(image), ".jpg"
    name = hashlib.blake2b(data, digest_size=16).hexdigest() + suffix
    path = folder / "images" / name
    if not path.exists():
        write_whole(path, data)
    return name


def ending_as_it_is(data: bytes, image: Image) -> str | None:
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
