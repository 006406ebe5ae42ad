"""Elastic transform: the picture tilted a little, then drawn on a rubber sheet."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.compiled import compiled
from shiftproof.corruptions.fields import Field, symmetric_draws
from shiftproof.corruptions.filters import Pixels, from_pixels, gaussian, gaussian_kernel
from shiftproof.corruptions.random_bits import seed_of
from shiftproof.types import Image

CUT_OFF = 3.0  # sigmas, where everything else is cut off at 4
SUMMED_AT_ONCE = 256  # products of matrices cut longer sums up, each number of threads in another way

Moves: TypeAlias = NDArray[np.float64]
"""How far three points move, (3, 2): right and down."""

Places: TypeAlias = NDArray[np.int64]
"""Where pixels come from, (2, length): right and down, in 1/1024 of a pixel."""


def elastic_transform(image: Image, rng: np.random.Generator, *, amplitude: float, sigma: float, jitter: float) -> Image:
    """The image with three of its points moved by up to `jitter`, then every pixel by a random field, smooth over `sigma`.

    Without an amplitude the three points are all that moves.
    """
    height, width = image.shape[:2]
    tilted = tilt(image, rng.uniform(-jitter, jitter, size=(3, 2)))
    if amplitude == 0:
        return from_pixels(tilted)
    right, down = (
        smooth_field(field, sigma) * np.float32(amplitude)
        for field in symmetric_draws(seed_of(rng), 2 * height * width).reshape(2, height, width)
    )
    return displaced(tilted, right, down)


def tilt(image: Image, moves: Moves) -> Pixels:
    """The image under the affine map that moves three points about its middle so; beyond its border it goes on in a mirror.

    Places are rounded to 1/32 of a pixel, as OpenCV did with all pictures when the sets were made.
    """
    height, width = image.shape[:2]
    arm = max(1, min(height, width) // 3)
    points = np.array([width // 2, height // 2]) + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    affine = cv2.getAffineTransform(points.astype(np.float32), (points + moves).astype(np.float32))
    back = np.asarray(cv2.invertAffineTransform(affine), np.float64)
    # the two parts of a place are rounded apart, to 1/1024, before their sum is
    of_column = np.rint(back[:, :1] * np.arange(width) * 1024).astype(np.int64)
    of_row = np.rint((back[:, 1:2] * np.arange(height) + back[:, 2:]) * 1024).astype(np.int64) + 16
    tilted = np.empty(image.shape, np.float32)
    _tilt(image.reshape(-1), of_column, of_row, tilted)
    return tilted


@compiled
def _tilt(image: Image, of_column: Places, of_row: Places, tilted: Pixels) -> None:
    height, width = tilted.shape[:2]
    stride, channels, thousandth = np.uint64(width), np.uint64(3), np.float32(1 / 1024)
    for y in range(height):
        for x in range(width):
            right, down = (of_row[0, y] + of_column[0, x]) >> 5, (of_row[1, y] + of_column[1, x]) >> 5
            right_share, down_share = np.int32(right & 31), np.int32(down & 31)
            left, above = right >> 5, down >> 5
            next_x, next_y = left + 1, above + 1
            if left < 0 or next_x >= width or above < 0 or next_y >= height:
                left, next_x = _mirrored_about_last(left, width), _mirrored_about_last(next_x, width)
                above, next_y = _mirrored_about_last(above, height), _mirrored_about_last(next_y, height)
            upper_row, lower_row = np.uint64(above) * stride, np.uint64(next_y) * stride
            upper_left, upper_right = (upper_row + np.uint64(left)) * channels, (upper_row + np.uint64(next_x)) * channels
            lower_left, lower_right = (lower_row + np.uint64(left)) * channels, (lower_row + np.uint64(next_x)) * channels
            for channel in range(channels):
                upper = np.int32(image[upper_left + channel]) * np.int32(32 - right_share)
                upper = np.int32(upper + np.int32(image[upper_right + channel]) * right_share)
                lower = np.int32(image[lower_left + channel]) * np.int32(32 - right_share)
                lower = np.int32(lower + np.int32(image[lower_right + channel]) * right_share)
                tilted[y, x, channel] = np.float32(np.int32(upper * (32 - down_share) + lower * down_share)) * thousandth


def smooth_field(field: Field, sigma: float) -> Field:
    """The field under a gaussian window cut off early; beyond the border it goes on in a mirror."""
    height, width = field.shape
    if 8 * CUT_OFF * sigma < min(height, width):
        return gaussian(field, sigma, truncate=CUT_OFF, border="reflect")
    return np.ascontiguousarray(mixed(mixed(field, mixing_of(height, sigma)).T, mixing_of(width, sigma)).T)


@lru_cache(maxsize=4)  # both axes at two sigmas, which severities 1 and 2 have; for 4000 pixels one takes 64 MB
def mixing_of(length: int, sigma: float) -> Field:
    """How much of each place along an axis the window brings to each other, (length, length)."""
    kernel = gaussian_kernel(sigma, CUT_OFF)
    reach = len(kernel) // 2
    places = (np.arange(length)[:, None] + np.arange(-reach, reach + 1)) % (2 * length)
    mixing = np.zeros((length, length))
    np.add.at(mixing, (np.arange(length)[:, None], np.minimum(places, 2 * length - 1 - places)), kernel)
    return mixing.astype(np.float32)


def mixed(field: Field, mixing: Field) -> Field:
    """The rows of a field, each become a sum of all."""
    total: Field = mixing[:, :SUMMED_AT_ONCE] @ field[:SUMMED_AT_ONCE]
    for at in range(SUMMED_AT_ONCE, len(field), SUMMED_AT_ONCE):
        total += mixing[:, at : at + SUMMED_AT_ONCE] @ field[at : at + SUMMED_AT_ONCE]
    return total


def displaced(pixels: Pixels, right: Field, down: Field) -> Image:
    """The image whose pixels come from so far right and down, bilinear, cut to bytes; beyond its border it is mirrored."""
    image = np.empty(pixels.shape, np.uint8)
    _displace(np.ascontiguousarray(pixels).reshape(-1), right, down, image)
    return image


@compiled
def _displace(pixels: Pixels, right: Field, down: Field, image: Image) -> None:
    height, width = right.shape
    stride, channels = np.uint64(width), np.uint64(3)
    guard, most = np.float32(6e-5), np.float32(255)
    for y in range(height):
        for x in range(width):
            # casts cut towards zero, which is downwards only above it
            whole_right, whole_down = np.int64(right[y, x] + 1048576.0) - 1048576, np.int64(down[y, x] + 1048576.0) - 1048576
            right_share, down_share = np.float32(right[y, x] - whole_right), np.float32(down[y, x] - whole_down)
            left, above = int(x + whole_right), int(y + whole_down)
            next_x, next_y = left + 1, above + 1
            if left < 0 or next_x >= width or above < 0 or next_y >= height:
                left, next_x = _mirrored(left, width), _mirrored(next_x, width)
                above, next_y = _mirrored(above, height), _mirrored(next_y, height)
            upper_row, lower_row = np.uint64(above) * stride, np.uint64(next_y) * stride
            upper_left, upper_right = (upper_row + np.uint64(left)) * channels, (upper_row + np.uint64(next_x)) * channels
            lower_left, lower_right = (lower_row + np.uint64(left)) * channels, (lower_row + np.uint64(next_x)) * channels
            for channel in range(channels):
                upper, lower = pixels[upper_left + channel], pixels[lower_left + channel]
                upper += right_share * (pixels[upper_right + channel] - upper)
                lower += right_share * (pixels[lower_right + channel] - lower)
                image[y, x, channel] = np.uint8(np.int32(min(upper + down_share * (lower - upper) + guard, most)))


@compiled
def _mirrored(place: int, length: int) -> int:
    place %= 2 * length
    return min(place, 2 * length - 1 - place)


@compiled
def _mirrored_about_last(place: int, length: int) -> int:
    period = max(2 * length - 2, 1)
    place %= period
    return min(place, period - place) if length > 1 else 0
