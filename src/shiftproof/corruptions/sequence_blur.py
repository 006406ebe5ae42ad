"""Sequences that blur: a camera that shakes in turning directions, zooms in, loses its focus."""

from __future__ import annotations

from collections.abc import Iterator

import cv2
import numpy as np

from shiftproof.corruptions.affine import about_middle, warped
from shiftproof.corruptions.canvas import Canvas
from shiftproof.corruptions.compiled import compiled
from shiftproof.corruptions.filters import Pixels, motion
from shiftproof.types import Image


def motion_blur(
    canvas: Canvas, _: np.random.Generator, *, radius: float, sigma: float, first: float, step: float, frames: int
) -> Iterator[Image]:
    """The picture smeared as much in every frame, in a direction that turns by `step` degrees a frame."""
    for frame in range(frames):
        yield motion(canvas.picture, radius, sigma, first + step * frame)


def gaussian_blur(
    canvas: Canvas, _: np.random.Generator, *, first: float, step: float, truncate: float, frames: int
) -> Iterator[Image]:
    """The picture under a gaussian window whose sigma grows by `step` a frame and is cut off at `truncate` sigmas."""
    # double precision: a window much narrower than a pixel leaves samples just below or above a whole level
    pixels = canvas.picture.astype(np.float64)
    for frame in range(frames):
        sigma = first + step * frame
        window = cv2.getGaussianKernel(2 * int(truncate * sigma + 0.5) + 1, sigma, cv2.CV_64F)
        blurred = cv2.sepFilter2D(pixels, cv2.CV_64F, window, window, borderType=cv2.BORDER_REPLICATE)
        yield (blurred + 1e-9).astype(np.uint8)


def zoom_blur(canvas: Canvas, _: np.random.Generator, *, step: float, frames: int) -> Iterator[Image]:
    """The picture while the camera moves in: each frame is the mean of all scales so far, from 1 in steps of `step`."""
    total = np.zeros(canvas.picture.shape, np.float32)
    for frame in range(frames):
        zoomed = warped(canvas, about_middle(canvas.image, scale=1 + step * frame))
        mean = np.empty_like(zoomed)
        _add_to_mean(zoomed.reshape(-1), total.reshape(-1), frame + 1, mean.reshape(-1))
        yield mean


@compiled
def _add_to_mean(frame: Image, total: Pixels, frames: int, mean: Image) -> None:
    # single precision from 0 to 1, as published: where a mean is a whole level, its last bit decides which byte it is cut to
    unit, count = np.float32(255), np.float32(frames)
    for place in range(frame.size):
        total[place] += np.float32(frame[place]) / unit
        mean[place] = np.uint8(np.int32(total[place] / count * unit))
