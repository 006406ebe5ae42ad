"""Snow, fog, frost and spatter as they were published, slow and plain; every random draw is an argument.

Precision follows the published code, for it decides which levels are cut: single for images between 0 and 1, double for
layers. Quirks, by name: `LAST_FROST_NEVER_DRAWN`, `FLAKES_ALSO_UPSIDE_DOWN`, `AMPLITUDE_SQUARED`; levels are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from shiftproof.types import Image

Layer = NDArray[np.float64]

LAST_FROST_NEVER_DRAWN = 5
"""The index of the frost picture is below 5, though there are six."""

FLAKES_ALSO_UPSIDE_DOWN = 2
"""Quarter turns after which the flakes are added a second time."""

AMPLITUDE_SQUARED = 2
"""A plasma level of wibble w is moved by w times a number within w, so by up to its square."""


def cut(samples: NDArray[np.floating]) -> Image:
    """From the range 0 to 1 to whole levels, cut and not rounded."""
    levels: Image = (np.clip(samples, 0, 1) * 255).astype(np.uint8)
    return levels


def clipped_zoom(layer: Layer, zoom: float) -> Layer:
    """The middle enlarged from corner to corner, then trimmed on all sides to the size it had."""
    cropped = [math.ceil(length / zoom) for length in layer.shape]
    top, left = ((length - crop) // 2 for length, crop in zip(layer.shape, cropped, strict=True))
    # nearest: at some lengths, none of them published, rounding puts SciPy's last row just beyond the edge, into nothing
    enlarged = ndimage.zoom(layer[top : top + cropped[0], left : left + cropped[1]], zoom, order=1, mode="nearest")
    over, beside = ((grown - length) // 2 for grown, length in zip(enlarged.shape, layer.shape, strict=True))
    trimmed: Layer = enlarged[over : over + layer.shape[0], beside : beside + layer.shape[1]]
    return trimmed


def motion(layer: Image, radius: int, sigma: float, angle: float) -> Image:
    """ImageMagick's motion blur: a one-sided bell along the angle, pixels beyond the edge like the edge."""
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-(steps**2) / (2 * sigma**2))
    rows, columns = np.indices(layer.shape)
    total = np.zeros(layer.shape)
    for step, weight in zip(steps, weights / weights.sum(), strict=True):
        right = math.ceil(step * math.cos(math.radians(angle)) - 0.5)
        down = math.ceil(step * math.sin(math.radians(angle)) - 0.5)
        y, x = np.clip(rows + down, 0, layer.shape[0] - 1), np.clip(columns + right, 0, layer.shape[1] - 1)
        total += weight * layer[y, x]
    return (total + 1e-9).astype(np.uint8)  # whole sums that rounding left below themselves


def snow(
    image: Image,
    draws: Layer,
    angle: float,
    *,
    mean: float,
    spread: float,
    zoom: float,
    threshold: float,
    radius: int,
    sigma: float,
    kept: float,
) -> Image:
    layer = clipped_zoom(mean + spread * draws, zoom)
    layer[layer < threshold] = 0
    flakes = motion((np.clip(layer, 0, 1) * 255).astype(np.uint8), radius, sigma, angle)[..., None] / 255.0
    samples = image.astype(np.float32) / 255
    grey = cv2.cvtColor(samples, cv2.COLOR_RGB2GRAY)[..., None]
    samples = kept * samples + (1 - kept) * np.maximum(samples, grey * 1.5 + 0.5)
    return cut(samples + flakes + np.rot90(flakes, FLAKES_ALSO_UPSIDE_DOWN))


def every(field: Layer, step: int, top: int, left: int) -> Layer:
    """Every pixel that lies whole steps from this one; beyond an edge the opposite one goes on."""
    (down, row), (right, column) = divmod(top, step), divmod(left, step)
    pixels = field[row::step, column::step]
    return np.roll(pixels, (-down, -right), (0, 1)) if down or right else pixels


def plasma(draws: Callable[[int], Layer], size: int, decay: float) -> Layer:
    """Toroidal diamond-square; `draws` gives so many uniform numbers from -1 to 1, asked for level by level."""
    field = np.zeros((size, size))
    step, wibble = size, 100.0
    while step >= 2:
        half = step // 2
        for top, left, neighbours in (
            (half, half, ((-half, -half), (-half, half), (half, -half), (half, half))),
            (0, half, ((-half, 0), (half, 0), (0, -half), (0, half))),
            (half, 0, ((-half, 0), (half, 0), (0, -half), (0, half))),
        ):
            first, *others = (every(field, step, top + down, left + right) for down, right in neighbours)
            around = sum(others, first)
            moved = wibble**AMPLITUDE_SQUARED * draws(around.size).reshape(around.shape)
            field[top::step, left::step] = around / 4 + moved
        step, wibble = half, wibble / decay
    field -= field.min()
    stretched: Layer = field / field.max()
    return stretched


def fog(image: Image, clouds: Layer, strength: float) -> Image:
    samples = image / 255.0
    brightest = samples.max()
    samples = samples + strength * clouds[: image.shape[0], : image.shape[1], None]
    return cut(samples * brightest / (brightest + strength))


def frost(image: Image, picture: Image, top: int, left: int, *, image_weight: float, frost_weight: float) -> Image:
    cropped = picture[top : top + image.shape[0], left : left + image.shape[1]]
    levels: Image = np.clip(image_weight * image + frost_weight * cropped, 0, 255).astype(np.uint8)
    return levels


def spatter(
    image: Image, draws: Layer, *, mean: float, spread: float, sigma: float, threshold: float, finish: float, mud: bool
) -> Image:
    layer = liquid(draws, mean, spread, sigma)
    layer[layer < threshold] = 0
    return muddied(image, layer > threshold, finish) if mud else water(image, layer, finish)


def liquid(draws: Layer, mean: float, spread: float, sigma: float) -> Layer:
    blurred: Layer = ndimage.gaussian_filter(mean + spread * draws, sigma, mode="nearest", truncate=4.0)
    return blurred


def water(image: Image, layer: Layer, opacity: float) -> Image:
    thickness = (layer * 255).astype(np.uint8)
    distance = cv2.distanceTransform(255 - cv2.Canny(thickness, 50, 150), cv2.DIST_L2, 5)
    relief = cv2.equalizeHist(cv2.blur(np.minimum(distance, np.float32(20)), (3, 3)).astype(np.uint8))
    relief = cv2.filter2D(relief, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]]))
    shine = thickness * cv2.blur(relief, (3, 3)).astype(np.float32)
    shine = shine / shine.max() * opacity
    pale_turquoise = np.array([175, 238, 238], np.float32) / 255
    return cut(image.astype(np.float32) / 255 + shine[..., None] * pale_turquoise)


def muddied(image: Image, spots: NDArray[np.bool_], softness: float) -> Image:
    hidden = ndimage.gaussian_filter(spots.astype(np.float32), softness, mode="nearest", truncate=4.0)[..., None]
    hidden[hidden < 0.8] = 0
    brown = np.array([63, 42, 20], np.float32) / 255
    return cut(image.astype(np.float32) / 255 * (1 - hidden) + brown * hidden)
