"""Filters that several corruptions share: gaussian and motion blur, the published zoom, bytes to floats and back."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.types import Image

Pixels: TypeAlias = NDArray[np.float32]
"""Bytes as floats, 0 to 255, (height, width) or (height, width, channels)."""

Offsets: TypeAlias = NDArray[np.int64]
Weights: TypeAlias = NDArray[np.float32]

BORDERS = {"nearest": cv2.BORDER_REPLICATE, "reflect": cv2.BORDER_REFLECT}


def from_pixels(pixels: Pixels) -> Image:
    """The floats as bytes: clipped and cut, not rounded, as the published datasets were made.

    >>> from_pixels(np.float32([-3, 7.9, 7.99997, 300])).tolist()
    [0, 7, 8, 255]
    """
    image = np.empty(pixels.shape, np.uint8)
    _cut(np.ascontiguousarray(pixels).reshape(-1), image.reshape(-1))
    return image


@compiled
def _cut(pixels: Pixels, image: Image) -> None:
    # whole numbers that single precision leaves up to 5e-5 below themselves must not lose a level
    guard, least, most = np.float32(6e-5), np.float32(0), np.float32(255)
    for place in range(pixels.size):
        image[place] = np.uint8(np.int32(min(max(pixels[place] + guard, least), most)))


def strips(height: int, rows: int, reach: int = 0) -> Iterator[tuple[slice, slice]]:
    """A picture in strips of so many rows, at least one: the rows of each, and all that a filter of this reach sees of it.

    >>> list(strips(7, 4, 2))
    [(slice(0, 4, None), slice(0, 6, None)), (slice(4, 7, None), slice(2, 7, None))]
    """
    for top in range(0, height, max(rows, 1)):
        bottom = min(top + max(rows, 1), height)
        yield slice(top, bottom), slice(max(top - reach, 0), min(bottom + reach, height))


def gaussian(
    pixels: Pixels | Image,
    sigma: float,
    *,
    truncate: float = 4.0,
    border: Literal["nearest", "reflect"] = "nearest",
) -> Pixels:
    """The pixels under a gaussian window cut off at `truncate` sigmas; channels stay apart.

    Beyond the border the last pixel goes on (`nearest`), or the picture does in a mirror, its last pixel twice (`reflect`).
    """
    if sigma <= 0:
        return pixels.astype(np.float32)
    kernel = gaussian_kernel(sigma, truncate)
    blurred = cv2.sepFilter2D(pixels, cv2.CV_32F, kernel, kernel, borderType=BORDERS[border])
    return np.asarray(blurred, np.float32).reshape(pixels.shape)


@lru_cache(maxsize=64)
def gaussian_kernel(sigma: float, truncate: float = 4.0) -> NDArray[np.float64]:
    """The window's weights, their sum 1, to as many pixels each side as `truncate` sigmas round to."""
    reach = int(truncate * sigma + 0.5)
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel: NDArray[np.float64] = weights / weights.sum()
    kernel.flags.writeable = False
    return kernel


def motion(image: Image, radius: float, sigma: float, angle: float) -> Image:
    """The image smeared to one side along `angle` (degrees, clockwise), as ImageMagick does it.

    A pixel is the mean of itself and 2 x `radius` others, the nearer the heavier; beyond the border the last pixel goes on.
    The means are rounded to 16 bits, where 257 is a level, then cut to 8.
    """
    down, right, weights = _taps(math.ceil(radius), sigma, angle)
    height, width = image.shape[:2]
    top, left, bottom, far = max(0, -down.min()), max(0, -right.min()), max(0, down.max()), max(0, right.max())
    framed = np.asarray(cv2.copyMakeBorder(image, top, bottom, left, far, cv2.BORDER_REPLICATE), np.uint8)
    channels = image.size // (height * width)
    smeared = np.empty(image.shape, np.uint8)
    _add_up(
        framed.reshape(len(framed), -1),
        down + top,
        (right + left) * channels,
        weights,
        smeared.reshape(height, width * channels),
    )
    return smeared


def _taps(radius: int, sigma: float, angle: float) -> tuple[Offsets, Offsets, Weights]:
    """How far down and right each contributing pixel lies, and its weight; one entry a pixel."""
    steps, weights = _shares_along(radius, sigma)
    # ImageMagick's own way to sine and cosine: at 30 degrees every other step ends on a half, or an ulp beside it
    across, along = len(steps) * math.sin(math.pi * angle / 180), len(steps) * math.cos(math.pi * angle / 180)
    places = np.ceil(steps * np.array([[across], [along]]) / math.hypot(across, along) - 0.5).astype(np.int64)
    # a pixel that several steps end on, one after the other, has their sum
    begins = np.flatnonzero(np.concatenate([[True], (places[:, 1:] != places[:, :-1]).any(axis=0)]))
    shares, (down, right) = np.add.reduceat(weights, begins), places[:, begins]
    # the rest could not move a pixel by a thousandth of a level, all of them together
    kept = shares * 255 * len(shares) > 1e-3
    shares = shares[kept]
    return down[kept], right[kept], (shares / shares.sum()).astype(np.float32)


@lru_cache(maxsize=64)
def _shares_along(radius: int, sigma: float) -> tuple[Offsets, NDArray[np.float64]]:
    """The steps of a smear, and the weight of each, their sum 1."""
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2)) / np.exp(-(steps**2) / (2 * sigma**2)).sum()
    return steps, weights


@compiled
def _add_up(framed: Image, down: Offsets, right: Offsets, weights: Weights, summed: Image) -> None:
    height, width = summed.shape
    row = np.empty(width, np.float32)
    half_a_step, most, whole = np.float32(0.5 / 257), np.float32(255), len(weights) - len(weights) % 4
    for y in range(height):
        row[:] = half_a_step
        for tap in range(0, whole, 4):  # several at once, so that sums are loaded and stored less often
            first = framed[y + down[tap], right[tap] : right[tap] + width]
            second = framed[y + down[tap + 1], right[tap + 1] : right[tap + 1] + width]
            third = framed[y + down[tap + 2], right[tap + 2] : right[tap + 2] + width]
            fourth = framed[y + down[tap + 3], right[tap + 3] : right[tap + 3] + width]
            own, next_one, after, last = weights[tap], weights[tap + 1], weights[tap + 2], weights[tap + 3]
            for x in range(width):
                total = row[x] + own * first[x] + next_one * second[x]
                row[x] = total + after * third[x] + last * fourth[x]
        for tap in range(whole, len(weights)):
            source, weight = framed[y + down[tap], right[tap] : right[tap] + width], weights[tap]
            for x in range(width):
                row[x] += weight * source[x]
        for x in range(width):
            summed[y, x] = np.uint8(np.int32(min(row[x], most)))


def clipped_zoom(pixels: Pixels, zoom: float) -> Pixels:
    """The middle of the pixels, `zoom` times as large, bilinear from corner to corner, cut to the size they had."""
    rows, row_shares = zoom_places(pixels.shape[0], zoom)
    columns, column_shares = zoom_places(pixels.shape[1], zoom)
    layers = np.ascontiguousarray(pixels).reshape(*pixels.shape[:2], -1)
    zoomed = np.empty_like(layers)
    _resample(layers, rows, row_shares, columns, column_shares, zoomed)
    return zoomed.reshape(pixels.shape)


@lru_cache(maxsize=512)
def zoom_places(length: int, zoom: float) -> tuple[Offsets, Weights]:
    """For each pixel along one axis: the pixel it starts from, and the share of the next one.

    >>> zoom_places(4, 2.0)
    (array([1, 1, 1, 1]), array([0.        , 0.33333334, 0.6666667 , 1.        ], dtype=float32))
    """
    cropped = math.ceil(length / zoom)
    enlarged = round(cropped * zoom)
    first, trimmed = (length - cropped) // 2, (enlarged - length) // 2
    places = np.arange(trimmed, trimmed + length) * ((cropped - 1) / max(enlarged - 1, 1))
    starts = np.clip(np.floor(places).astype(np.int64), 0, max(cropped - 2, 0))
    shares = (places - starts).astype(np.float32)
    starts += first
    starts.flags.writeable = shares.flags.writeable = False
    return starts, shares


@compiled
def _resample(
    pixels: Pixels, rows: Offsets, row_shares: Weights, columns: Offsets, column_shares: Weights, zoomed: Pixels
) -> None:
    height, width, channels = zoomed.shape
    last_row, last_column = pixels.shape[0] - 1, pixels.shape[1] - 1
    first, past = rows[0], min(rows[-1] + 2, last_row + 1)
    wide = np.empty((past - first, width * channels), np.float32)
    for y in range(first, past):
        for x in range(width):
            left, share = columns[x], column_shares[x]
            right = min(left + 1, last_column)
            for channel in range(channels):
                here = pixels[y, left, channel]
                wide[y - first, x * channels + channel] = here + share * (pixels[y, right, channel] - here)
    flat = zoomed.reshape(height, width * channels)
    for y in range(height):
        upper, share = wide[rows[y] - first], row_shares[y]
        lower = wide[min(rows[y] - first + 1, past - first - 1)]
        for x in range(width * channels):
            flat[y, x] = upper[x] + share * (lower[x] - upper[x])
