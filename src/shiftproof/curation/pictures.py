"""The pictures of a review project, as browsers can show them."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from PIL import Image as Pillow

from shiftproof.datasets.image_list import decoded
from shiftproof.errors import ShiftproofError
from shiftproof.files import refusal, write_whole
from shiftproof.runs.digests import stamp_of
from shiftproof.runs.predict import Progress
from shiftproof.types import Image, ImageSource

BROWSER_FORMATS = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp"}
"""Formats that every browser shows; such files are copied."""

PLAIN_MODES = ("RGB", "RGBA", "L", "P")
MAX_SIDE = 2400
"""Pixels of the longer side of a picture: more would be slow to load for no visible gain."""

QUALITY = 95

REGISTER = ".put"
"""File beside the pictures that lists them by the stamp of their source, so that none is decoded twice."""

SAVERS = 4
"""Threads that save pictures, while the next are decoded in order, as clips need."""


class AddedPictures(NamedTuple):
    """File names of the pictures, and the reasons of images that cannot be read, by image id."""

    names: Mapping[str, str]
    unreadable: Mapping[str, str]


def add_picture(folder: Path, source: ImageSource) -> str:
    """Adds a picture to the project in a folder, and returns its file name; UnreadableImage where it cannot be decoded.

    A file that browsers can show is copied; anything else (a frame, a crop, a huge or unusual file) is encoded as JPEG.
    """
    data = source.read()
    return _add(folder, data, source.decode(data))


def add_pictures(folder: Path, sources: Mapping[str, ImageSource], *, progress: Progress | None = None) -> AddedPictures:
    """Adds many pictures, by image id; those that were added before are not decoded again."""
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
                waiting.append((image_id, threads.submit(_add, folder, sources[image_id].read(), image)))
            if len(waiting) > 2 * SAVERS:
                finish_first()
            if progress is not None:
                progress.advance(1)
        while waiting:
            finish_first()
    if progress is not None:
        progress.end()
    return AddedPictures(names, unreadable)


@contextmanager
def undone_on_error(folder: Path) -> Iterator[None]:
    """Removes a folder that was not there before, where no project comes of its pictures; an interrupted one is kept."""
    there = folder.exists()
    try:
        yield
    except ShiftproofError:
        if not there:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _registered(register: Path) -> dict[str, str]:
    """File names by the stamps of their sources; a truncated last line is ignored."""
    try:
        lines = [line.split() for line in register.read_text(encoding="utf-8", errors="replace").splitlines()]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {line[0]: line[1] for line in lines if len(line) == 2 and (register.parent / line[1]).exists()}


def _add(folder: Path, data: bytes, image: Image) -> str:
    suffix = browser_suffix(data, image)
    if suffix is None:
        data, suffix = _as_jpeg(image), ".jpg"
    name = hashlib.blake2b(data, digest_size=16).hexdigest() + suffix
    path = folder / "images" / name
    if not path.exists():
        write_whole(path, data)
    return name


def browser_suffix(data: bytes, image: Image) -> str | None:
    """The suffix of a file that browsers can show; None for one that they cannot, or that is not the image alone."""
    if max(image.shape[:2]) > MAX_SIDE:
        return None
    try:
        with Pillow.open(io.BytesIO(data)) as opened:
            upright = sorted(opened.size) == sorted(image.shape[:2])
            still = getattr(opened, "n_frames", 1) == 1
            return BROWSER_FORMATS.get(opened.format or "") if opened.mode in PLAIN_MODES and upright and still else None
    except (OSError, ValueError):
        return None


def _as_jpeg(image: Image) -> bytes:
    picture = Pillow.fromarray(image)
    picture.thumbnail((MAX_SIDE, MAX_SIDE), Pillow.Resampling.LANCZOS)
    held = io.BytesIO()
    picture.save(held, "JPEG", quality=QUALITY, subsampling=0)
    return held.getvalue()
