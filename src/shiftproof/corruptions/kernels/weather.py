"""Flakes, clouds, frost, water and mud laid over a picture."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.corruptions.kernels.fields import Field, normals
from shiftproof.corruptions.kernels.filters import clipped_zoom, gaussian, gaussian_kernel, strips, zoom_places
from shiftproof.types import Image

WATER = np.array([175, 238, 238], np.float32) / np.float32(255)
"""Pale turquoise."""

MUD = np.array([63, 42, 20], np.float32) / np.float32(255)


def snow_layer(
    rng: np.random.Generator, shape: tuple[int, ...], *, mean: float, spread: float, zoom: float, threshold: float
) -> NDArray[np.uint8]:
    """Flakes that hang in the air, (height, width): the brightest parts of enlarged noise."""
    rows, columns = (zoom_places(length, zoom)[0] for length in shape[:2])
    noise = np.zeros(shape[:2], np.float32)
    seen = noise[rows[0] : rows[-1] + 2, columns[0] : columns[-1] + 2]
    seen[:] = normals(rng, *seen.shape)
    return flakes(noise, mean=mean, spread=spread, zoom=zoom, threshold=threshold)


def flakes(noise: Field, *, mean: float, spread: float, zoom: float, threshold: float) -> NDArray[np.uint8]:
    """The layer that this normal noise makes, of which only the middle is seen."""
    levels = clipped_zoom(noise, zoom)
    _keep_above(levels, np.float32(mean), np.float32(spread), np.float32(threshold))
    return levels.astype(np.uint8)


@compiled
def _keep_above(levels: Field, mean: np.float32, spread: np.float32, threshold: np.float32) -> None:
    """Standard numbers become levels of 0 to 255; those under the threshold become 0."""
    flat = levels.reshape(-1)
    for place in range(flat.size):
        level = mean + spread * flat[place]
        flat[place] = min(level, np.float32(1)) * np.float32(255) if level >= threshold else np.float32(0)


def snowed(image: Image, layer: NDArray[np.uint8], kept: float) -> Image:
    """The image whitened but for a share of `kept`, behind falling flakes and the same flakes upside down."""
    whitened = np.empty_like(image)
    _whiten(image, np.float32(kept), np.float32(1 - kept), whitened)
    flakes = cv2.cvtColor(cv2.add(layer, cv2.flip(layer, -1)), cv2.COLOR_GRAY2RGB)
    return np.asarray(cv2.add(whitened, flakes), np.uint8).reshape(image.shape)


@compiled
def _whiten(image: Image, kept: np.float32, lost: np.float32, result: Image) -> None:
    """A share of each level gives way to the pixel's grey, half as bright again and lifted by half of white."""
    height, width = image.shape[:2]
    level, pale = np.empty(3 * width, np.float32), np.empty(3 * width, np.float32)
    for y in range(height):
        row, out = image[y].reshape(-1), result[y].reshape(-1)
        for place in range(3 * width):
            level[place] = np.float32(row[place]) / np.float32(255)
        for x in range(width):
            red, green, blue = level[3 * x], level[3 * x + 1], level[3 * x + 2]
            grey = np.float32(0.299) * red + np.float32(0.587) * green + np.float32(0.114) * blue
            for channel in range(3):
                pale[3 * x + channel] = grey * np.float32(1.5) + np.float32(0.5)
        for place in range(3 * width):
            mixed = kept * level[place] + lost * max(level[place], pale[place])
            # single precision up to here and double from here, as published, so that the same levels are cut
            out[place] = np.uint8(np.int32(min(np.float64(mixed) * 255.0, 255.0)))


def power_of_two(length: int) -> int:
    """The next one that is no smaller.

    >>> [power_of_two(length) for length in (1, 32, 224, 299)]
    [1, 32, 256, 512]
    """
    return 1 << (length - 1).bit_length()


def fogged(image: Image, clouds: Field, strength: float) -> Image:
    """The image under the upper left part of a map of clouds."""
    brightest = float(image.max()) / 255
    share = brightest / (brightest + strength)
    result = np.empty_like(image)
    _fog(image, clouds, np.float32(share), np.float32(255 * strength * share), result)
    return result


@compiled
def _fog(image: Image, clouds: Field, share: np.float32, thickness: np.float32, result: Image) -> None:
    height, width = image.shape[:2]
    white = np.empty(3 * width, np.float32)
    for y in range(height):
        row, out = image[y].reshape(-1), result[y].reshape(-1)
        for x in range(width):
            for channel in range(3):
                white[3 * x + channel] = clouds[y, x] * thickness
        for place in range(3 * width):
            # the guard: whole numbers that single precision leaves just below themselves keep their level
            out[place] = np.uint8(np.int32(np.float32(row[place]) * share + white[place] + np.float32(1e-4)))


@compiled
def add_weighted(
    image: Image, picture: Image, top: int, left: int, image_weight: float, picture_weight: float, result: Image
) -> None:
    """A sum in double precision, cut to bytes: levels that it leaves just below a whole number fall, as published."""
    height, width = image.shape[0], image.shape[1] * 3
    images, pictures, results = (
        image.reshape(height, width),
        picture.reshape(len(picture), -1),
        result.reshape(height, width),
    )
    for y in range(height):
        row, over, out = images[y], pictures[top + y, 3 * left : 3 * left + width], results[y]
        for place in range(width):
            out[place] = np.uint8(np.int32(min(image_weight * row[place] + picture_weight * over[place], 255.0)))


def spatter_layer(
    rng: np.random.Generator, shape: tuple[int, ...], *, mean: float, spread: float, sigma: float, threshold: float
) -> Field:
    """How thick the liquid lies on each pixel, (height, width): 0, or more than `threshold`."""
    return drops(normals(rng, *shape[:2]), mean=mean, spread=spread, sigma=sigma, threshold=threshold)


def drops(noise: Field, *, mean: float, spread: float, sigma: float, threshold: float) -> Field:
    """The liquid that this normal noise makes."""
    layer = gaussian(noise, sigma)
    layer *= np.float32(spread)
    layer += np.float32(mean)
    return np.asarray(cv2.threshold(layer, threshold, 0, cv2.THRESH_TOZERO, dst=layer)[1], np.float32)


RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], np.float32)
"""Light from the upper left."""


def water(image: Image, layer: NDArray[np.floating], opacity: float) -> Image:
    """The image behind drops of water that catch the light along their rims; without drops the image itself."""
    thickness: NDArray[np.uint8] = (layer * 255).astype(np.uint8)
    shine = _rims(thickness).astype(np.float32)
    shine *= thickness
    brightest = shine.max()
    if brightest == 0:
        return image.copy()
    shine /= brightest
    shine *= np.float32(opacity)
    result = np.empty_like(image)
    _add_water(image, shine, result)
    return result


def _rims(thickness: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """How much light the surface throws back, by the distance to the nearest edge."""
    distance = cv2.distanceTransform(255 - cv2.Canny(thickness, 50, 150), cv2.DIST_L2, 5)
    cv2.threshold(distance, 20, 20, cv2.THRESH_TRUNC, dst=distance)
    relief = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    return np.asarray(cv2.blur(cv2.filter2D(relief, cv2.CV_8U, RELIEF), (3, 3)), np.uint8)


@compiled
def _add_water(image: Image, shine: Field, result: Image) -> None:
    height, width = shine.shape
    added = np.empty(3 * width, np.float32)
    for y in range(height):
        row, out = image[y].reshape(-1), result[y].reshape(-1)
        for x in range(width):
            for channel in range(3):
                added[3 * x + channel] = shine[y, x] * WATER[channel]
        for place in range(3 * width):
            level = np.float32(row[place]) / np.float32(255) + added[place]
            out[place] = np.uint8(np.int32(min(level, np.float32(1)) * np.float32(255)))


ROWS_AT_ONCE = 256  # have their spots softened


def muddied(image: Image, layer: Field, softness: float) -> Image:
    """The image behind brown spots, opaque but for their edges, which are softened by `softness` pixels."""
    # double precision: pixels covered by less than 0.8 are left clean, and straight edges bring many of them close to it
    weights = gaussian_kernel(softness)
    result, reach = np.empty_like(image), len(weights) // 2
    for rows, seen in strips(len(layer), ROWS_AT_ONCE, reach):
        wet = (layer[seen] > 0).astype(np.float64)
        spots = cv2.sepFilter2D(wet, cv2.CV_64F, weights, weights, borderType=cv2.BORDER_REPLICATE)
        inner = spots.reshape(wet.shape)[rows.start - seen.start : rows.stop - seen.start]
        _cover_with_mud(image[rows], inner.astype(np.float32), result[rows])
    return result


@compiled
def _cover_with_mud(image: Image, spots: Field, result: Image) -> None:
    height, width = spots.shape
    clean, brown = np.empty(3 * width, np.float32), np.empty(3 * width, np.float32)
    for y in range(height):
        row, out = image[y].reshape(-1), result[y].reshape(-1)
        for x in range(width):
            hidden = spots[y, x] if spots[y, x] >= np.float32(0.8) else np.float32(0)
            for channel in range(3):
                clean[3 * x + channel] = np.float32(1) - hidden
                brown[3 * x + channel] = hidden * MUD[channel]
        for place in range(3 * width):
            level = np.float32(row[place]) / np.float32(255) * clean[place] + brown[place]
            out[place] = np.uint8(np.int32(level * np.float32(255)))
