"""Drawn images for the tests of datasets."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow


def _pattern(height: int, width: int) -> NDArray[np.uint8]:
    """Smooth and different at every corner, so that any turn or swap of channels shows."""
    down, right = np.mgrid[0:height, 0:width]
    return np.stack([down * 200 // height + 20, right * 200 // width + 20, np.full((height, width), 90)], axis=2).astype(
        np.uint8
    )


@pytest.fixture
def pattern() -> Callable[[int, int], NDArray[np.uint8]]:
    return _pattern


@pytest.fixture
def encode() -> Callable[..., bytes]:
    """The bytes of an array or picture in a format."""

    def encoded(picture: NDArray[np.generic] | Pillow.Image, kind: str, **options: object) -> bytes:
        data = io.BytesIO()
        picture = picture if isinstance(picture, Pillow.Image) else Pillow.fromarray(picture)
        picture.save(data, kind, **options)
        return data.getvalue()

    return encoded


@pytest.fixture
def draw() -> Callable[..., Path]:
    """A small PNG or JPEG at a path, its folders made as needed."""

    def drawn(path: Path, *, height: int = 8, width: int = 12) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        Pillow.fromarray(_pattern(height, width)).save(path)
        return path

    return drawn
