"""Perceptual hashes: 64 bits per image that a resize, a JPEG save or a change of brightness hardly alters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.datasets.image_list import ImageList, decoded
from shiftproof.errors import BadInput
from shiftproof.runs.predict import Progress
from shiftproof.runs.remembered import Job, remembered
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Arrays
from shiftproof.types import Image

Hashes: TypeAlias = NDArray[np.uint64]
"""One per image, (images,); PLAIN for a uniform one."""

Indices: TypeAlias = NDArray[np.intp]

BITS = 64
SIDE = 32
"""Side of the square that an image is resized to."""

PLAIN = np.uint64(0)
"""The hash of a uniform image: no frequency is above the median."""

BANDS = 4
BAND_BITS = BITS // BANDS


def _lowest_frequencies() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The indices of the 64 lowest frequencies, vertical and horizontal, without the mean."""
    ordered = sorted(product(range(SIDE), repeat=2), key=lambda place: (sum(place), place))
    down, across = np.array(ordered[1 : BITS + 1]).T
    return down, across


DOWN, ACROSS = _lowest_frequencies()
WAVES = np.cos(np.pi / SIDE * np.outer(np.arange(ACROSS.max() + 1), np.arange(SIDE) + 0.5))
"""The discrete cosine transform, (frequencies, pixels)."""

WEIGHTS = 2 ** np.arange(BITS, dtype=np.uint64)


def perceptual_hash(image: Image) -> np.uint64:
    """The perceptual hash (pHash, 64 bits) of an image.

    >>> steps = np.tile(np.arange(0, 256, 4, np.uint8), (48, 1))
    >>> image = np.stack([steps, steps[:, ::-1] // 2, steps // 3], axis=-1)
    >>> perceptual_hash(image) == perceptual_hash(image[::2, ::2] // 2)
    np.True_
    """
    grey = Pillow.fromarray(image).convert("L").resize((SIDE, SIDE), Pillow.Resampling.BOX)
    coefficients = (WAVES @ np.asarray(grey, np.float64) @ WAVES.T)[DOWN, ACROSS]
    coefficients[np.abs(coefficients) < 1e-6] = 0  # a uniform image, up to rounding
    return np.uint64(WEIGHTS[coefficients > np.median(coefficients)].sum())


def differing_bits(hashes: Hashes, others: Hashes) -> NDArray[np.uint8]:
    """Hamming distance, row by row."""
    return np.asarray(np.bitwise_count(hashes ^ others))


def near_hashes(hashes: Hashes, others: Hashes | None = None, *, bits: int) -> tuple[Indices, Indices]:
    """The indices of all pairs within a Hamming distance of `bits`, in order; without `others`, pairs within `hashes`.

    Exact: of the four bands of two such hashes at least one differs in a quarter of these bits or fewer, so only hashes that
    nearly share a band are compared. Pairs within are listed once, the earlier index first.

    >>> near_hashes(np.array([0b1111, 0b1110, 1 << 40], np.uint64), bits=1)
    (array([0]), array([1]))
    """
    if not 0 <= bits < BITS // 2:
        raise BadInput(f"hashes are near where fewer than {BITS // 2} bits differ, got {bits}")
    references = hashes if others is None else others
    found = [np.empty(0, np.intp)]
    for band in range(BANDS):
        for rows, places in _sharing_a_band(hashes, references, band, bits // BANDS):
            near = differing_bits(hashes[rows], references[places]) <= bits
            if others is None:
                near &= rows < places
            found.append(rows[near] * len(references) + places[near])
    rows, places = np.divmod(np.unique(np.concatenate(found)), max(len(references), 1))
    return rows, places


def _sharing_a_band(hashes: Hashes, references: Hashes, band: int, bits: int) -> Iterator[tuple[Indices, Indices]]:
    """Pairs whose values in this band differ in at most so many bits, one pattern of differences at a time."""
    part, parts = _band_values(hashes, band), _band_values(references, band)
    order = np.argsort(parts, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=2**BAND_BITS))])
    for pattern in (
        sum(2**bit for bit in some) for count in range(bits + 1) for some in combinations(range(BAND_BITS), count)
    ):
        first = starts[part ^ pattern]
        counts = starts[(part ^ pattern) + 1] - first
        rows = np.repeat(np.arange(len(hashes)), counts)
        yield rows, order[np.arange(len(rows)) + np.repeat(first - np.cumsum(counts) + counts, counts)]


def _band_values(hashes: Hashes, band: int) -> Indices:
    return ((hashes >> np.uint64(band * BAND_BITS)) & np.uint64(2**BAND_BITS - 1)).astype(np.intp)


HEX_DIGITS = 16
FILE = "perceptual_hashes.sqlite"
"""In the store; a cache, recomputed where it is missing."""


class HashedDataset(NamedTuple):
    """The hashes of the readable images, and why the others are unreadable."""

    ids: tuple[str, ...]
    hashes: Hashes
    unreadable: Mapping[str, str]


def hash_dataset(
    images: ImageList, store: str | Path, *, workers: int | None = None, progress: Progress | None = None
) -> HashedDataset:
    """The perceptual hash of every image; those in the store's cache are not decoded."""
    texts, unreadable = remembered(
        images, Store(store), FILE, HEX_DIGITS, hash_images, what="hashes", workers=workers, progress=progress
    )
    return HashedDataset(tuple(texts), np.array([int(text, 16) for text in texts.values()], np.uint64), unreadable)


def hash_images(job: Job) -> tuple[Arrays, list[tuple[str, bool]]]:
    """No arrays; for each image its hash in hexadecimal or why it is unreadable, and which of the two it is."""
    images = [decoded(source) for source in job.sources]
    return [], [(one, False) if isinstance(one, str) else (_hex_hash(one), True) for one in images]


def _hex_hash(image: Image) -> str:
    return f"{perceptual_hash(image):0{HEX_DIGITS}x}"
