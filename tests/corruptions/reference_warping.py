"""Elastic transform as published, slow and plain, in double precision; samples from 0 to 255 that are yet to be cut."""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from shiftproof.types import Image

Samples: TypeAlias = NDArray[np.float64]


def affine_of(height: int, width: int, moves: Samples) -> Samples:
    arm = min(height, width) // 3
    middle = np.array([width // 2, height // 2], np.float32)
    before = np.array([middle + arm, [middle[0] + arm, middle[1] - arm], middle - arm], np.float32)
    return np.asarray(cv2.getAffineTransform(before, (before + moves).astype(np.float32)), np.float64)


def tilt(image: Image, moves: Samples) -> Samples:
    """OpenCV's `warpAffine` of those days: places in 1/1024, whose sums are rounded to 1/32."""
    height, width = image.shape[:2]
    back = np.linalg.inv(np.vstack([affine_of(height, width, moves), [0, 0, 1]]))
    y, x = np.arange(height)[:, None], np.arange(width)
    across, down = (
        np.rint(back[axis, 0] * x * 1024) + np.rint((back[axis, 1] * y + back[axis, 2]) * 1024) for axis in (0, 1)
    )
    places = [np.floor((coordinate + 16) / 32) / 32 for coordinate in (down, across)]
    samples = np.moveaxis(image.astype(np.float64), 2, 0)
    return np.stack([ndimage.map_coordinates(channel, places, order=1, mode="mirror") for channel in samples], axis=2)


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
