"""Sequences that move the picture: translate, rotate, tilt, scale, shear. Frame `i` is moved by `first` + `step` x i."""

from __future__ import annotations

import math
from collections.abc import Iterator

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.affine import about_middle, warped
from shiftproof.corruptions.canvas import Canvas
from shiftproof.types import Image


def translate(canvas: Canvas, _: np.random.Generator, *, first: int, step: int, frames: int) -> Iterator[Image]:
    """The picture drifting from left to right, in whole pixels."""
    for frame in range(frames):
        yield _shifted(canvas, first + step * frame)


def _shifted(canvas: Canvas, right: int) -> Image:
    shown = np.zeros((canvas.height, canvas.width, 3), np.uint8)
    begin = min(max(right - canvas.left, 0), canvas.width)
    end = max(min(canvas.image.shape[1] + right - canvas.left, canvas.width), begin)
    source = canvas.left - right
    rows = canvas.image[canvas.top : canvas.top + canvas.height]
    shown[:, begin:end] = rows[:, source + begin : source + end]
    return shown


def rotate(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """The picture turning clockwise, in degrees."""
    for frame in range(frames):
        yield warped(canvas, about_middle(canvas.image, angle=first + step * frame))


def shear(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """The picture slanting, its vertical lines turned by degrees."""
    for frame in range(frames):
        yield warped(canvas, about_middle(canvas.image, shear=first + step * frame))


def scale(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """The picture growing, in per cent of its size."""
    for frame in range(frames):
        yield warped(canvas, about_middle(canvas.image, scale=(first + step * frame) / 100))


def tilt(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """The picture as a sheet that turns in depth about both its axes at once, by degrees."""
    height, width = canvas.image.shape[:2]
    to_window = np.array([[1.0, 0.0, -canvas.left], [0.0, 1.0, -canvas.top], [0.0, 0.0, 1.0]])
    for frame in range(frames):
        seen = to_window @ tilted(height, width, first + step * frame)
        yield np.asarray(cv2.warpPerspective(canvas.image, seen, (canvas.width, canvas.height)), np.uint8)


def tilted(height: int, width: int, angle: float) -> NDArray[np.float64]:
    """Where a camera sees the points of a sheet tilted by degrees, (3, 3); it stands as far away as the sheet's diagonal."""
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    distance = math.hypot(width, height)
    about_y = np.array([[cos, 0, -sin], [0, 1, 0], [sin, 0, cos]])
    about_x = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])
    # the published maps put the sheet at depth 1 before they turn it
    sheet = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1]])
    points = about_x @ about_y @ sheet
    points[2, 2] += distance
    camera = np.array([[distance, 0, width / 2], [0, distance, height / 2], [0, 0, 1]])
    seen: NDArray[np.float64] = camera @ points
    return seen
