"""Pictures seen through something: water with caustics, whirls, ripples, a turning camera, a lens that splits colours.

All of them are corruptions of ImageNet-C-bar and CIFAR-10-C-bar; what is drawn at random is an argument.
"""

from __future__ import annotations

from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.corruptions.kernels.filters import gaussian_kernel
from shiftproof.corruptions.kernels.overlays import cosine, level, sine
from shiftproof.types import Image

Doubles: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

UNIT = (np.arange(256, dtype=np.float32) / np.float32(255)).astype(np.float64)
"""Levels between 0 and 1 in single precision, as published: their last bit decides which of them are cut."""

LEVELS = np.arange(256, dtype=np.float64)

TURN = 6.28318530718
FLAT = 0.999
"""Where water is this upright, or more, it does not refract."""


@compiled
def _between(image: Image, levels: Doubles, row: float, column: float, channel: int) -> float:
    """A sample between others, of which those outside the picture count as 0; in the published order of additions."""
    height, width = image.shape[:2]
    top, left = int(np.floor(row)), int(np.floor(column))
    total = 0.0
    for y in range(top, top + 2):
        for x in range(left, left + 2):
            if 0 <= y < height and 0 <= x < width:
                total += (1 - abs(row - y)) * (1 - abs(column - x)) * levels[image[y, x, channel]]
    return total


def under_water(image: Image, time: float, size: float, strength: float) -> Image:
    """The image refracted by, and lit through, a surface of water that focuses light into bright lines.

    `size` is the length in pixels after which the surface repeats itself.
    """
    height, width = image.shape[:2]
    surface = np.empty((height, width))
    _caustics(time, size, surface)
    kernel = gaussian_kernel(1.0)
    soft = cv2.sepFilter2D(surface, cv2.CV_64F, kernel, kernel, borderType=cv2.BORDER_REFLECT)
    smooth = np.asarray(soft, np.float64).reshape(height, width)
    result = np.empty_like(image)
    _refract(image, smooth, 0.05 * strength * min(height, width), 0.2 * strength, result)
    return result


@compiled
def _caustics(time: float, size: float, surface: Doubles) -> None:
    height, width = surface.shape
    right = np.empty(width)
    for x in range(width):
        place = x / size
        right[x] = (place - np.floor(place)) * TURN - 250
    moved_y, moved_x, light = np.empty(width), np.empty(width), np.empty(width)
    for y in range(height):
        place = y / size
        down = (place - np.floor(place)) * TURN - 250
        for x in range(width):
            moved_y[x], moved_x[x], light[x] = down, right[x], 1.0
        for number in range(5):
            t = time * (1 - 3.5 / (number + 1))
            for x in range(width):
                old_y, old_x = moved_y[x], moved_x[x]
                new_y = down + cosine(t - old_y) + sine(t + old_x)
                new_x = right[x] + sine(t - old_x) + cosine(t + old_y)
                moved_y[x], moved_x[x] = new_y, new_x
                own, other = sine(new_y + t), cosine(new_x + t)
                # 1 / sqrt((a / own)^2 + (b / other)^2), without the two divisions
                first, second = 0.005 * down * other, 0.005 * right[x] * own
                light[x] += abs(own * other) / np.sqrt(first * first + second * second)
        for x in range(width):
            bright = 1.17 - (light[x] / 5) ** 1.4
            squared = bright * bright
            squared *= squared
            surface[y, x] = min(squared * squared, 1.0)


@compiled
def _refract(image: Image, surface: Doubles, depth: float, light: float, result: Image) -> None:
    height, width = surface.shape
    for y in range(height):
        for x in range(width):
            below, above = surface[y + 1, x] if y + 1 < height else 0.0, surface[y - 1, x] if y > 0 else 0.0
            right, left = surface[y, x + 1] if x + 1 < width else 0.0, surface[y, x - 1] if x > 0 else 0.0
            slope_y, slope_x = below - above, right - left
            slope = np.sqrt(slope_y * slope_y + slope_x * slope_x)
            upright = 1 / np.sqrt(1 + slope * slope)
            row, column = float(y), float(x)
            if upright < FLAT:
                # the sine of (angle - refracted angle), from the sine and cosine of the angle; index of refraction 4
                tilted = slope * upright
                bend = depth * tilted * (np.sqrt(1 - tilted * tilted / 16) - upright / 4) / slope
                row += np.rint(1000 * bend * slope_y) / 1000
                column += np.rint(1000 * bend * slope_x) / 1000
            lit = light * (slope_y - slope_x)
            for channel in range(3):
                value = _between(image, UNIT, row, column, channel) + lit
                result[y, x, channel] = level(255 * min(max(value, 0.0), 1.0))


@compiled
def whirled(image: Image, angles: Doubles, amount: float) -> Image:
    """The image with a whirl in each field of a grid: pinched by `amount`, turned by up to an angle, (columns, rows)."""
    result, count = image.copy(), len(angles)
    height, width = image.shape[0] // count, image.shape[1] // count
    radius = 0.5 * min(height, width)
    for y in range(height):
        for x in range(width):
            down, right = y - 0.5 * height, x - 0.5 * width
            distance = np.sqrt(down * down + right * right)
            if distance > radius or distance <= 0.0005:
                continue
            part = distance / radius
            pinch, fade = np.sin(0.5 * np.pi * part) ** -amount, (1 - part) ** 2
            for place in range(count * count):  # the same place in every field
                over, beside = place // count, place % count
                turn = angles[beside, over] * fade
                cosine, sine = np.cos(turn), np.sin(turn)
                row = over * height + 0.5 * height + pinch * (down * cosine - right * sine)
                column = beside * width + 0.5 * width + pinch * (down * sine + right * cosine)
                for channel in range(3):
                    value = np.float32(_between(image, LEVELS, row, column, channel))
                    result[over * height + y, beside * width + x, channel] = level(np.float64(value))
    return result


@compiled
def rippled(image: Image, wavelengths: Doubles, phases: Doubles, amplitude: float) -> Image:
    """The image stretched and squeezed by a sine along either axis; numbers of the vertical axis come first."""
    height, width = image.shape[:2]
    result = np.empty_like(image)
    columns = np.empty(width)
    for x in range(width):
        columns[x] = x + amplitude * np.sin(2 * np.pi * x / wavelengths[1] + phases[1])
    for y in range(height):
        row = y + amplitude * np.sin(2 * np.pi * y / wavelengths[0] + phases[0])
        for x in range(width):
            for channel in range(3):
                result[y, x, channel] = level(_between(image, LEVELS, row, columns[x], channel))
    return result


def turned(image: Image, degrees: float) -> Image:
    """The mean of the image turned by -`degrees` to `degrees`, the middle the heaviest; outside it is black."""
    steps = np.linspace(-1, 1, 21)
    weights = np.exp(-2 * steps**2)
    planes = np.stack([ndimage.spline_filter(UNIT[image[..., channel]], 3, mode="mirror") for channel in range(3)], axis=2)
    result = np.empty_like(image)
    _add_turns(planes, np.radians(degrees * steps), weights / weights.sum(), result)
    return result


@compiled
def _add_turns(planes: Doubles, angles: Doubles, weights: Doubles, result: Image) -> None:
    height, width = planes.shape[:2]
    middle_y, middle_x = (height - 1) / 2, (width - 1) / 2
    rows, columns, down, right = np.empty(4, np.int64), np.empty(4, np.int64), np.empty(4), np.empty(4)
    cosines, sines = np.cos(angles), np.sin(angles)
    total = np.empty(3)
    for y in range(height):
        for x in range(width):
            total[:] = 0
            for turn in range(len(angles)):
                row = middle_y + cosines[turn] * (y - middle_y) + sines[turn] * (x - middle_x)
                column = middle_x - sines[turn] * (y - middle_y) + cosines[turn] * (x - middle_x)
                if row < 0 or row > height - 1 or column < 0 or column > width - 1:
                    continue
                _spline_taps(row, height, rows, down)
                _spline_taps(column, width, columns, right)
                red, green, blue = 0.0, 0.0, 0.0
                for first in range(4):
                    for second in range(4):
                        weight = down[first] * right[second]
                        red += weight * planes[rows[first], columns[second], 0]
                        green += weight * planes[rows[first], columns[second], 1]
                        blue += weight * planes[rows[first], columns[second], 2]
                # each turned picture in single precision, as published
                total[0] += weights[turn] * np.float32(red)
                total[1] += weights[turn] * np.float32(green)
                total[2] += weights[turn] * np.float32(blue)
            for channel in range(3):
                result[y, x, channel] = level(255 * total[channel])


@compiled
def _spline_taps(place: float, length: int, taps: Places, weights: Doubles) -> None:
    """The four pixels of a cubic B-spline around a place, and their weights; beyond its ends the picture is mirrored."""
    first = int(np.floor(place))
    share = place - first
    rest = 1 - share
    weights[0] = rest * rest * rest / 6
    weights[1] = (share * share * (3 * share - 6) + 4) / 6
    weights[2] = (rest * rest * (3 * rest - 6) + 4) / 6
    weights[3] = share * share * share / 6
    period = max(2 * (length - 1), 1)
    for tap in range(4):
        index = abs(first - 1 + tap) % period
        taps[tap] = index if index < length else period - index


@compiled
def with_colours_apart(image: Image, scales: Doubles) -> Image:
    """The image with each channel enlarged about the middle, by a cubic B-spline of raw pixels, which also blurs it."""
    height, width = image.shape[:2]
    result, wide = np.empty_like(image), np.empty((height, width))
    taps, weights = np.empty(4, np.int64), np.empty(4)
    for channel in range(3):
        for x in range(width):
            _spline_taps(_enlarged(x, width, scales[channel]), width, taps, weights)
            for y in range(height):
                total = 0.0
                for tap in range(4):
                    total += weights[tap] * image[y, taps[tap], channel]
                wide[y, x] = total
        for y in range(height):
            _spline_taps(_enlarged(y, height, scales[channel]), height, taps, weights)
            for x in range(width):
                total = 0.0
                for tap in range(4):
                    total += weights[tap] * wide[taps[tap], x]
                result[y, x, channel] = level(total + 0.5)
    return result


@compiled
def _enlarged(place: int, length: int, scale: float) -> float:
    """Where a pixel of the enlarged picture's middle comes from; corners fall on corners."""
    grown = int(np.rint(length * scale))
    return min((place + (grown - length) // 2) * ((length - 1) / max(grown - 1, 1)), length - 1.0)
