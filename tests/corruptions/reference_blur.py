"""The blurs as published, slow and plain, in double precision; samples from 0 to 255 that are yet to be cut to bytes."""

from __future__ import annotations

import math
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from shiftproof.types import Image

Samples: TypeAlias = NDArray[np.float64]


def gaussian_blur(image: Image, sigma: float) -> Samples:
    blurred: Samples = ndimage.gaussian_filter(image / 255.0, (sigma, sigma, 0), mode="nearest", truncate=4) * 255
    return blurred


def disk_kernel(radius: float, softness: float) -> NDArray[np.float32]:
    """Softened inside an array of 17 x 17, or as large as the disk: from radius 8 on, the border mirrors and adds weight."""
    places = np.arange(-8, 9) if radius <= 8 else np.arange(-radius, radius + 1)
    right, down = np.meshgrid(places, places)
    disk = np.array(right**2 + down**2 <= radius**2, dtype=np.float32)
    disk /= disk.sum()
    window = (3, 3) if radius <= 8 else (5, 5)
    return np.asarray(cv2.GaussianBlur(disk, window, sigmaX=softness), np.float32)


def defocus_blur(image: Image, radius: float, softness: float) -> Samples:
    kernel = disk_kernel(radius, softness)
    channels = [cv2.filter2D(np.ascontiguousarray(image[:, :, channel]) / 255.0, -1, kernel) for channel in range(3)]
    return np.stack(channels, axis=2).astype(np.float64) * 255


def glass_blur(image: Image, sigma: float, reach: int, steps: NDArray[np.int8], *, swap: bool = False) -> Samples:
    """`swap` is what was meant, and what happens to grey images."""
    pixels = (gaussian_blur(image, sigma) + 1e-9).astype(np.uint8)
    height, width = pixels.shape[:2]
    for round_steps in steps.tolist():
        draws = iter(round_steps)
        for y in range(height - reach, reach, -1):
            for x in range(width - reach, reach, -1):
                right, down = next(draws)
                if swap:
                    pixels[[y, y + down], [x, x + right]] = pixels[[y + down, y], [x + right, x]]
                else:
                    pixels[y, x], pixels[y + down, x + right] = pixels[y + down, x + right], pixels[y, x]
    return gaussian_blur(pixels, sigma)


def motion_blur(image: Image, radius: int, sigma: float, angle: float) -> Samples:
    """ImageMagick's: one-sided weights, whole steps rounded half down, the last pixel goes on, sums of 16 bits."""
    weights = [math.exp(-(step**2) / (2 * sigma**2)) for step in range(2 * radius + 1)]
    rows, columns = (np.arange(length) for length in image.shape[:2])
    smeared = np.zeros(image.shape)
    for (down, right), weight in zip(motion_places(radius, angle), weights, strict=True):
        row, column = np.clip(rows + down, 0, len(rows) - 1), np.clip(columns + right, 0, len(columns) - 1)
        smeared += weight / sum(weights) * image[row][:, column]
    return np.floor(smeared * 257 + 0.5) / 257


def motion_places(radius: int, degrees: float) -> list[tuple[int, int]]:
    """How far down and right ImageMagick looks: on a line as long as its window, divided by that length again."""
    width = 2 * radius + 1
    down, right = width * math.sin(math.pi * degrees / 180), width * math.cos(math.pi * degrees / 180)
    length = math.hypot(down, right)
    return [(math.ceil(step * down / length - 0.5), math.ceil(step * right / length - 0.5)) for step in range(width)]


def clipped_zoom(pixels: Samples, zoom: float) -> Samples:
    cropped = pixels
    for axis in (0, 1):
        length = pixels.shape[axis]
        kept = math.ceil(length / zoom)
        cropped = np.take(cropped, range((length - kept) // 2, (length - kept) // 2 + kept), axis=axis)
    # one channel at a time, or SciPy would also interpolate between them
    channels = [ndimage.zoom(channel, zoom, order=1) for channel in np.moveaxis(np.atleast_3d(cropped), 2, 0)]
    zoomed: Samples = np.stack(channels, axis=2).reshape(*channels[0].shape, *pixels.shape[2:])
    for axis in (0, 1):
        length = pixels.shape[axis]
        trimmed = (zoomed.shape[axis] - length) // 2
        zoomed = np.take(zoomed, range(trimmed, trimmed + length), axis=axis)
    return zoomed


def zoom_blur(image: Image, stop: float, step: float) -> Samples:
    """The clean image counts twice; `np.arange` may reach `stop`."""
    factors = np.arange(1, stop, step)
    pixels = image / 255.0
    blurred: Samples = (pixels + sum(clipped_zoom(pixels, factor) for factor in factors)) / (len(factors) + 1) * 255
    return blurred
