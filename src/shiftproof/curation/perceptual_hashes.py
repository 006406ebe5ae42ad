"""What a picture looks like in 64 bits, which a resize, a JPEG save or more light hardly change, and which of many are near.

Each bit says whether a low frequency of the grey picture is above the median of all that are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.errors import BadInput
from shiftproof.types import Image

Hashes: TypeAlias = NDArray[np.uint64]
"""One for each image, (images,); PLAIN for one that shows nothing."""

Places: TypeAlias = NDArray[np.intp]

BITS = 64
SIDE = 32
"""Pixels of the square that a picture is shrunk to."""

PLAIN = np.uint64(0)
"""The hash of a picture of one colour: no frequency is above the others."""

BANDS = 4
BAND_BITS = BITS // BANDS


def _lowest_frequencies() -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of the 64 lowest frequencies, up and across, without the mean."""
    ordered = sorted(product(range(SIDE), repeat=2), key=lambda place: (sum(place), place))
    down, across = np.array(ordered[1 : BITS + 1]).T
    return down, across


DOWN, ACROSS = _lowest_frequencies()
WAVES = np.cos(np.pi / SIDE * np.outer(np.arange(ACROSS.max() + 1), np.arange(SIDE) + 0.5))
"""The discrete cosine transform of so many frequencies, (frequencies, pixels)."""

WEIGHTS = 2 ** np.arange(BITS, dtype=np.uint64)


def perceptual_hash(image: Image) -> np.uint64:
    """The 64 bits of an image.

    >>> steps = np.tile(np.arange(0, 256, 4, np.uint8), (48, 1))
    >>> image = np.stack([steps, steps[:, ::-1] // 2, steps // 3], axis=-1)
    >>> perceptual_hash(image) == perceptual_hash(image[::2, ::2] // 2)
    np.True_
    """
    grey = Pillow.fromarray(image).convert("L").resize((SIDE, SIDE), Pillow.Resampling.BOX)
    strengths = (WAVES @ np.asarray(grey, np.float64) @ WAVES.T)[DOWN, ACROSS]
    strengths[np.abs(strengths) < 1e-6] = 0  # of one colour, but for rounding
    return np.uint64(WEIGHTS[strengths > np.median(strengths)].sum())


def differing_bits(hashes: Hashes, others: Hashes) -> NDArray[np.uint8]:
    """How many bits differ, row by row."""
    return np.asarray(np.bitwise_count(hashes ^ others))


def near_hashes(hashes: Hashes, others: Hashes | None = None, *, bits: int) -> tuple[Places, Places]:
    """The places of all pairs that differ in at most so many bits, exactly and in order; without others, pairs within.

    Of the four parts of two such hashes one at least differs in a quarter of these bits or fewer, so only hashes that
    nearly share a part are compared. Pairs within are there once, the earlier place first.

    >>> near_hashes(np.array([0b1111, 0b1110, 1 << 40], np.uint64), bits=1)
    (array([0]), array([1]))
    """
    if not 0 <= bits < BITS // 2:
        raise BadInput(f"hashes are near where fewer than {BITS // 2} bits differ, got {bits}")
    references = hashes if others is None else others
    found = [np.empty(0, np.intp)]
    for band in range(BANDS):
        for rows, places in _sharing_a_part(hashes, references, band, bits // BANDS):
            near = differing_bits(hashes[rows], references[places]) <= bits
            if others is None:
                near &= rows < places
            found.append(rows[near] * len(references) + places[near])
    rows, places = np.divmod(np.unique(np.concatenate(found)), max(len(references), 1))
    return rows, places


def _sharing_a_part(hashes: Hashes, references: Hashes, band: int, bits: int) -> Iterator[tuple[Places, Places]]:
    """Pairs whose parts in this band differ in at most so many bits, those of one pattern of differences at a time."""
    part, parts = _parts(hashes, band), _parts(references, band)
    order = np.argsort(parts, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(parts, minlength=2**BAND_BITS))])
    for pattern in (
        sum(2**bit for bit in some) for count in range(bits + 1) for some in combinations(range(BAND_BITS), count)
    ):
        first = starts[part ^ pattern]
        counts = starts[(part ^ pattern) + 1] - first
        rows = np.repeat(np.arange(len(hashes)), counts)
        yield rows, order[np.arange(len(rows)) + np.repeat(first - np.cumsum(counts) + counts, counts)]


def _parts(hashes: Hashes, band: int) -> Places:
    return ((hashes >> np.uint64(band * BAND_BITS)) & np.uint64(2**BAND_BITS - 1)).astype(np.intp)
