"""A picture added up at many zooms, as if the camera moved while the shutter was open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.compiled import compiled
from shiftproof.corruptions.filters import Offsets, Pixels, Weights, zoom_places
from shiftproof.types import Image

CHANNELS = 3
SAMPLES = 48  # of a row that are made from the same pixels: 16 pixels of 3 channels
TAPS = 3  # that are added at once

Starts: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True)
class Zooms:
    """Where the rows and samples of a picture of one size come from, at each of several zooms.

    Along a row a sample lies between two others. Which two changes from pixel to pixel, too often for long loops; so blocks
    of samples are made from a few equally shifted copies of the row, each under weights that are mostly 0.
    """

    rows: Offsets  # (zooms, height)
    row_shares: Weights  # (zooms, height), of the next row
    starts: Starts  # (zooms, blocks), of the first copy
    taps: Offsets  # (zooms,): copies, a multiple of TAPS
    weights: Weights  # (zooms, taps, blocks x SAMPLES)
    side: int  # room for copies that begin before the row


@lru_cache(maxsize=32)
def zooms_of(height: int, width: int, factors: tuple[float, ...]) -> Zooms:
    """The tables of these zooms for pictures of this size."""
    rows = [zoom_places(height, factor) for factor in factors]
    columns = [zoom_places(width, factor) for factor in factors]
    blocks = -(-width * CHANNELS // SAMPLES)
    sample = np.arange(blocks * SAMPLES)
    column, exists = np.minimum(sample // CHANNELS, width - 1), sample < width * CHANNELS
    shifts = np.array([starts[column] - column for starts, _ in columns]).reshape(len(factors), blocks, SAMPLES)
    lowest = shifts.min(axis=2)
    first = (shifts - lowest[:, :, None]).reshape(len(factors), -1)
    taps = -(-(first.max(axis=1) + 2) // TAPS) * TAPS
    weights = np.zeros((len(factors), taps.max(), len(sample)), np.float32)
    for number, (_, shares) in enumerate(columns):
        weights[number, first[number], sample] = np.where(exists, 1 - shares[column], 0)
        weights[number, first[number] + 1, sample] = np.where(exists, shares[column], 0)
    side = SAMPLES + CHANNELS * int(taps.max() + max(0, -lowest.min()))
    starts = (side + np.arange(0, len(sample), SAMPLES) + CHANNELS * lowest).astype(np.uint64)
    return Zooms(np.array([r for r, _ in rows]), np.array([s for _, s in rows]), starts, taps, weights, side)


def added_zooms(image: Image, factors: tuple[float, ...]) -> Pixels:
    """The sum of the image's `clipped_zoom` at all factors."""
    zooms = zooms_of(*image.shape[:2], factors)
    total = np.empty((image.shape[0], image.shape[1] * CHANNELS), np.float32)
    _add_up(
        image.astype(np.float32).reshape(-1),
        zooms.rows,
        zooms.row_shares,
        zooms.starts,
        zooms.taps,
        zooms.weights,
        np.uint64(zooms.side),
        total,
    )
    return total.reshape(image.shape)


@compiled
def _add_up(
    pixels: Pixels,
    rows: Offsets,
    row_shares: Weights,
    starts: Starts,
    taps: Offsets,
    weights: Weights,
    side: np.uint64,
    total: Pixels,
) -> None:
    height, width = np.uint64(total.shape[0]), np.uint64(total.shape[1])
    samples, one, two = np.uint64(SAMPLES), np.uint64(CHANNELS), np.uint64(2 * CHANNELS)
    between = np.zeros(side + np.uint64(weights.shape[2]) + side, np.float32)
    row = np.empty(weights.shape[2], np.float32)
    for y in range(height):
        row[:] = 0
        for zoom in range(len(rows)):
            share = row_shares[zoom, y]
            upper = np.uint64(rows[zoom, y]) * width
            lower = upper + width if share > 0 else upper
            for x in range(width):
                between[side + x] = pixels[upper + x] + share * (pixels[lower + x] - pixels[upper + x])
            for block in range(starts.shape[1]):
                begin = np.uint64(block) * samples
                for tap in range(0, taps[zoom], TAPS):
                    start = starts[zoom, block] + np.uint64(tap) * one
                    for x in range(samples):
                        row[begin + x] += (
                            weights[zoom, tap, begin + x] * between[start + x]
                            + weights[zoom, tap + 1, begin + x] * between[start + x + one]
                            + weights[zoom, tap + 2, begin + x] * between[start + x + two]
                        )
        for x in range(width):
            total[y, x] = row[x]
