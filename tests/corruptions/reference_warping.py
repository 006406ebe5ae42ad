"""Elastic transform as published, slow and plain, in double precision; samples from 0 to 255 that are yet to be cut."""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from shiftproof.types import Image

Samples: TypeAlias = NDArray[np.float64]


def tilt(image: Image, moves: Samples) -> Samples:
    height, width = image.shape[:2]
    arm = min(height, width) // 3
    middle = np.array([width // 2, height // 2], np.float32)
    before = np.array([middle + arm, [middle[0] + arm, middle[1] - arm], middle - arm], np.float32)
    after = (before + moves).astype(np.float32)
    affine = cv2.getAffineTransform(before, after)
    warped = cv2.warpAffine(
        image.astype(np.float64), affine, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
    )
    return np.asarray(warped, np.float64)


def smooth_field(field: Samples, sigma: float) -> Samples:
    smooth: Samples = ndimage.gaussian_filter(field, sigma, mode="reflect", truncate=3)
    return smooth


def displaced(pixels: Samples, right: Samples, down: Samples) -> Samples:
    rows, columns = np.mgrid[0 : pixels.shape[0], 0 : pixels.shape[1]]
    places = [rows + down, columns + right]
    channels = [ndimage.map_coordinates(channel, places, order=1, mode="reflect") for channel in np.moveaxis(pixels, 2, 0)]
    return np.stack(channels, axis=2)


def elastic_transform(image: Image, amplitude: float, sigma: float, moves: Samples, fields: Samples) -> Samples:
    """`fields` are two of uniform draws from -1 to 1, (2, height, width): right and down."""
    tilted = tilt(image, moves)
    if amplitude == 0:
        return tilted
    right, down = (smooth_field(field.astype(np.float64), sigma) * amplitude for field in fields)
    return displaced(tilted, right, down)
