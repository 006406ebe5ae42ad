"""The operations that policies of augmentation choose from, each a picture and one figure in, a new picture out.

Pixels are Pillow's within a level or, rarely, two, which cuts where OpenCV rounds; what a warp brings in is black.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Image

Operation: TypeAlias = Callable[[Image, float], Image]

NEAREST, BILINEAR = cv2.INTER_NEAREST, cv2.INTER_LINEAR


def identity(image: Image, _: float) -> Image:
    """The picture itself."""
    return image


def autocontrast(image: Image, _: float) -> Image:
    """Each channel stretched from black to white."""
    rows = image.reshape(len(image), -1)  # whole rows are compared at once, then the channels of one
    low, high = (ends.reshape(-1, 3).astype(float) for ends in (rows.min(axis=0), rows.max(axis=0)))
    low, high = low.min(axis=0), high.max(axis=0)
    spread = high - low
    scale = np.divide(255.0, spread, out=np.ones(3), where=spread > 0)
    return _image(cv2.transform(image, np.column_stack([np.diag(scale), np.where(spread > 0, -low * scale, 0.0)])))


def equalize(image: Image, _: float) -> Image:
    """Each channel with its histogram made flat."""
    return _image(cv2.merge([_equalized(_image(plane)) for plane in cv2.split(image)]))


def _equalized(plane: Image) -> Image:
    counts = cv2.calcHist([plane], [0], None, [256], [0, 256]).reshape(-1).astype(np.int64)
    step = (plane.size - int(counts[np.flatnonzero(counts)[-1]])) // 255
    if step == 0:
        return plane
    below = np.cumsum(counts) - counts
    return _image(cv2.LUT(plane, np.minimum((below + step // 2) // step, 255).astype(np.uint8)))


def posterize(image: Image, bits: float) -> Image:
    """So many of the eight bits of each sample kept, the highest."""
    return np.bitwise_and(image, np.uint8(0xFF & ~(0xFF >> int(bits))))


def solarize(image: Image, threshold: float) -> Image:
    """Samples from a level on are inverted."""
    if threshold > 255:
        return image
    # all bits of a sample are turned where the comparison, 0 or 1, is taken from 0
    return np.bitwise_xor(image, -(image >= np.uint8(np.ceil(threshold))).view(np.uint8))


def shear_x(image: Image, slope: float, smooth: int = NEAREST) -> Image:
    """Rows moved to the left by so many pixels for each one further down."""
    return _warped(image, np.array([[1.0, slope, 0.0], [0.0, 1.0, 0.0]]), smooth)


def shear_y(image: Image, slope: float, smooth: int = NEAREST) -> Image:
    """Columns moved up by so many pixels for each one further right."""
    return _warped(image, np.array([[1.0, 0.0, 0.0], [slope, 1.0, 0.0]]), smooth)


def translate_x(image: Image, pixels: float) -> Image:
    """The picture moved to the left by whole pixels."""
    moved, count = np.zeros_like(image), int(pixels)
    if count >= 0:
        moved[:, : max(0, image.shape[1] - count)] = image[:, count:]
    else:
        moved[:, -count:] = image[:, :count]
    return moved


def translate_y(image: Image, pixels: float) -> Image:
    """The picture moved up by whole pixels."""
    moved, count = np.zeros_like(image), int(pixels)
    if count >= 0:
        moved[: max(0, image.shape[0] - count)] = image[count:]
    else:
        moved[-count:] = image[:count]
    return moved


def rotate(image: Image, degrees: float, smooth: int = NEAREST) -> Image:
    """The picture turned about its centre, counter-clockwise."""
    angle = np.deg2rad(degrees)
    cosine, sine = float(np.cos(angle)), float(np.sin(angle))
    x, y = image.shape[1] / 2, image.shape[0] / 2
    matrix = np.array([[cosine, -sine, x - cosine * x + sine * y], [sine, cosine, y - sine * x - cosine * y]])
    return _warped(image, matrix, smooth)


def brightness(image: Image, change: float) -> Image:
    """The picture lighter by a share of itself, or darker where it is negative."""
    return _image(cv2.addWeighted(image, 1 + change, image, 0.0, 0.0))


def contrast(image: Image, change: float) -> Image:
    """The picture further from its mean grey, or nearer to it."""
    grey = int(cv2.mean(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY))[0] + 0.5)
    return _image(cv2.addWeighted(image, 1 + change, image, 0.0, -change * grey))


def colour(image: Image, change: float) -> Image:
    """The picture further from its greys, or nearer to them."""
    grey = cv2.cvtColor(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.COLOR_GRAY2RGB)
    return _image(cv2.addWeighted(image, 1 + change, grey, -change, 0.0))


def sharpness(image: Image, change: float) -> Image:
    """The picture further from a smoothed one, or nearer to it; the outermost pixels stay."""
    changed = image.copy()
    if min(image.shape[:2]) > 2:
        # Pillow's kernel of 5 among eight 1s is nine parts of a box and four of the pixel
        box = cv2.boxFilter(image, -1, (3, 3))
        changed[1:-1, 1:-1] = cv2.addWeighted(image, 1 + change * 9 / 13, box, -change * 9 / 13, 0.0)[1:-1, 1:-1]
    return changed


def _warped(image: Image, matrix: NDArray[np.float64], smooth: int) -> Image:
    """The picture whose points lie where the matrix sends them in the old one, counted from the corner of a pixel."""
    centred = matrix.copy()
    centred[:, 2] += matrix[:, :2].sum(axis=1) / 2 - 0.5  # OpenCV counts from the centre of a pixel
    return _image(cv2.warpAffine(image, centred, image.shape[1::-1], flags=smooth | cv2.WARP_INVERSE_MAP))


def _image(pixels: object) -> Image:
    return np.asarray(pixels, dtype=np.uint8)
