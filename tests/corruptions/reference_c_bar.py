"""The corruptions of ImageNet-C-bar and CIFAR-10-C-bar as they were published, slow and plain.

Of each there is what it draws, in the published order from NumPy's legacy generator, and the picture that these draws make.
The published code takes square images alone; on others lengths are shares of the shorter side, and places are drawn along
each side. Precision follows the published code, for it decides which levels are cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy import ndimage

from shiftproof.types import Image

Layer = NDArray[np.float64]
Draws = dict[str, Any]


def cut(samples: NDArray[np.floating]) -> Image:
    """Clipped and cut, not rounded."""
    levels: Image = np.clip(samples, 0, 255).astype(np.uint8)
    return levels


def grid(image: Image) -> tuple[Layer, Layer]:
    """Row and column of every pixel."""
    rows, columns = np.mgrid[0.0 : image.shape[0], 0.0 : image.shape[1]]
    return rows, columns


def inner(random: RandomState) -> RandomState:
    """The generator that a published corruption makes from a seed that it drew."""
    return RandomState(random.randint(0, 2**32, dtype=np.int64))


def bilinear(pixels: NDArray[np.floating], rows: Layer, columns: Layer) -> Layer:
    """Pixels between others, (height, width, channels); each of the four outside the picture counts as 0."""
    height, width = pixels.shape[:2]
    top, left = np.floor(rows).astype(int), np.floor(columns).astype(int)
    total = np.zeros((*rows.shape, pixels.shape[2]))
    for y, x in ((top, left), (top, left + 1), (top + 1, left), (top + 1, left + 1)):
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        weight = np.where(inside, (1 - np.abs(rows - y)) * (1 - np.abs(columns - x)), 0)
        total += weight[..., None] * pixels[np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)]
    return total


def single_frequency_greyscale_draws(random: RandomState, height: int, width: int) -> Draws:
    first = random.uniform(-np.pi, np.pi)
    second = random.uniform(-abs(first), abs(first))
    across, down = np.array([first, second])[random.permutation(2)]
    return {"across": across, "down": down, "phase": random.uniform(0, 2 * np.pi)}


def single_frequency_greyscale(image: Image, strength: float, *, across: float, down: float, phase: float) -> Image:
    y, x = grid(image)
    return cut(image + (19.6 * strength * np.sin(x * across + y * down + phase))[..., None])


def cocentric_sine_waves_draws(random: RandomState, height: int, width: int) -> Draws:
    side = min(height, width)
    return {
        "centre_x": random.uniform(0, width),
        "centre_y": random.uniform(0, height),
        "petals": random.uniform(0, 10),
        "amplitude": random.uniform(0, side / 10),
        "ring_width": random.uniform(0, side / 10),
    }


def cocentric_sine_waves(
    image: Image,
    strength: float,
    *,
    centre_x: float,
    centre_y: float,
    petals: float,
    amplitude: float,
    ring_width: float,
) -> Image:
    y, x = grid(image)
    radius = np.sqrt((x - centre_x) ** 2 + (y - centre_y) ** 2)
    wavy = radius + amplitude * np.sin(petals * np.arctan2(x - centre_x, y - centre_y))
    return cut(image + (12.8 * strength * ((wavy % ring_width) / ring_width - 0.5))[..., None])


def plasma_noise_draws(random: RandomState, height: int, width: int) -> Draws:
    return {
        "time": random.uniform(0, 6 * np.pi),
        "rounds": random.randint(4, 7),
        "sharpness": random.uniform(0.5, 1),
        "scale": random.uniform(0.075, 0.2) * min(height, width),
    }


def plasma_noise(image: Image, strength: float, *, time: float, rounds: int, sharpness: float, scale: float) -> Image:
    y, x = grid(image)
    x, y = x / scale, y / scale
    for number in range(rounds):
        gain = (2.25 - sharpness) ** number
        u = np.cos(1.93**number * y + time / 1.15**number) / gain
        v = np.sin(1.93**number * x + time / 1.15**number) / gain
        x, y = x + u - 0.3 * v, y + v + 0.3 * u
    noise = np.stack([np.sin(x - time), np.sin((x + y + np.sin(time)) / 2), np.sin(y + time)], axis=2)
    intensity = 6.4 * strength
    return cut((1 - intensity / 255) * image + intensity * noise)


def rays(image: Image, centre_y: float, centre_x: float, lengths: Layer, exponent: float) -> Layer:
    """How much of a star of rays of these lengths each pixel sees."""
    y, x = grid(image)
    place = (np.arctan2(x - centre_x, y - centre_y) + np.pi) / (2 * np.pi) * len(lengths)
    ray = np.floor(place).astype(int)
    share = place - ray
    length = (1 - share) * lengths[ray % len(lengths)] + share * lengths[(ray + 1) % len(lengths)]
    distance = (x - centre_x) ** 2 + (y - centre_y) ** 2
    return np.asarray(np.clip((1 - (share - 0.5) ** 2) * (length**2 / (distance + 1e-4)) ** exponent, 0, 1))


def sparkles_draws(random: RandomState, height: int, width: int) -> Draws:
    centres = random.uniform(0, 1, (5, 2)) * (height, width)
    generator = inner(random)
    counts = random.randint(50, 200, size=5)
    return {"centres": centres, "normals": [generator.randn(count) for count in counts]}


def sparkles(image: Image, strength: float, *, centres: Layer, normals: list[Layer]) -> Image:
    radius = strength * 0.1 / 10 * min(image.shape[:2])
    pixels = image.astype(np.float32)
    for (y, x), drawn in zip(centres, normals, strict=True):
        seen = rays(image, y, x, np.maximum(1, radius + 0.25 * radius * drawn), 1)[..., None]
        pixels = (pixels * (1 - seen) + seen * 255).astype(np.float32)
    return cut(pixels)


def inverse_sparkles_draws(random: RandomState, height: int, width: int) -> Draws:
    centre = random.uniform(0.25, 0.75, 2) * (height, width)
    generator = inner(random)
    return {"centre": centre, "normals": generator.randn(random.randint(50, 200))}


def inverse_sparkles(image: Image, strength: float, *, centre: Layer, normals: Layer) -> Image:
    radius = min(image.shape[:2]) / 4
    seen = rays(image, centre[0], centre[1], radius + 0.25 * radius * normals, 0.13 * strength)[..., None]
    return cut(255 + seen * (image - 255.0))


def perlin_noise_draws(random: RandomState, height: int, width: int) -> Draws:
    generator = inner(random)
    slopes = generator.randint(0, 2**31, (514, 2), dtype=np.int64) % 512 - 256
    # each place is swapped with any of the 256, so that not all orders are equally likely
    swaps = [generator.randint(0, 2**31, dtype=np.int64) % 256 for _ in range(256)]
    return {"slopes": slopes[:256], "swaps": np.array(swaps)}


def perlin_noise(image: Image, strength: float, *, slopes: NDArray[np.integer], swaps: NDArray[np.integer]) -> Image:
    with np.errstate(invalid="ignore"):
        gradients = slopes / np.sqrt((slopes**2).sum(axis=1, keepdims=True))
    gradients[~slopes.any(axis=1)] = 0  # published: not a number, so that one image in a thousand has black spots
    order = np.arange(256)
    for place, other in zip(range(255, -1, -1), swaps, strict=True):
        order[[place, other]] = order[[other, place]]
    y, x = grid(image)
    cell = 32 * min(image.shape[:2]) / 224
    turbulence = np.zeros(y.shape)
    for frequency in (1, 2, 4, 8, 16):
        turbulence += np.abs(_perlin(frequency * y / cell, frequency * x / cell, gradients, order)) / frequency
    height = np.clip(0.5 * turbulence + 0.5, 0, 1)
    alpha = 0.05 * strength
    return cut((1 - alpha) * image.astype(np.float32) + (255 * alpha * height)[..., None])


def _perlin(y: Layer, x: Layer, gradients: Layer, order: NDArray[np.integer]) -> Layer:
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    down, right = y - top, x - left

    def slope(row: int, column: int) -> Layer:
        found = gradients[order[(order[(top + row) % 256] + left + column) % 256]]
        return np.asarray(found[..., 0] * (down - row) + found[..., 1] * (right - column))

    across, along = right**2 * (3 - 2 * right), down**2 * (3 - 2 * down)
    upper = slope(0, 0) + across * (slope(0, 1) - slope(0, 0))
    lower = slope(1, 0) + across * (slope(1, 1) - slope(1, 0))
    return np.asarray(1.5 * (upper + along * (lower - upper)))


def phases_of(random: RandomState, height: int, width: int) -> Layer:
    """Phases of the left half of a spectrum, and below them, where the width is odd, of half of its middle column."""
    return np.concatenate(
        [
            random.uniform(0, 2 * np.pi, (height, width // 2)).ravel(),
            random.uniform(0, 2 * np.pi, height // 2 if width % 2 else 0),
        ]
    )


def field(phases: Layer, height: int, width: int, power: Callable[[Layer], Layer]) -> Layer:
    """Noise whose spectrum falls or rises with the distance from its middle, of standard deviation 1."""
    left = phases[: height * (width // 2)].reshape(height, width // 2)
    middle = phases[left.size :]
    column = np.concatenate([middle, np.zeros(height % 2), middle[::-1]])[:, None] if width % 2 else np.empty((height, 0))
    # turned round the phases should change their sign, for a field that is real by itself
    every = np.concatenate([left, column, left[::-1, ::-1]], axis=1)
    side = min(height, width)
    y, x = np.mgrid[0:height, 0:width]
    distance = np.sqrt(((y - height // 2) * side / height) ** 2 + ((x - width // 2) * side / width) ** 2)
    noise = np.real(np.fft.ifft2(np.fft.ifftshift(power(distance) * np.exp(1j * every))))
    return np.asarray(noise / noise.std())


def blue_noise_sample_draws(random: RandomState, height: int, width: int) -> Draws:
    return {"phases": phases_of(inner(random), height, width)}


def blue_noise_sample(image: Image, strength: float, *, phases: Layer) -> Image:
    noise = field(phases, image.shape[0], image.shape[1], lambda distance: distance)
    kept: Image = np.where((noise > 0.3 * strength - 2.5)[..., None], image, np.uint8(0))
    return kept


def brownish_noise_draws(random: RandomState, height: int, width: int) -> Draws:
    generator = inner(random)
    return {"phases": np.array([phases_of(generator, height, width) for _ in range(3)])}


def brownish_noise(image: Image, strength: float, *, phases: Layer) -> Image:
    noise = [field(each, image.shape[0], image.shape[1], lambda distance: 1 / (distance**2 + 1)) for each in phases]
    return cut(image + 6.4 * strength * np.stack(noise, axis=2))


def checkerboard_cutout_draws(random: RandomState, height: int, width: int) -> Draws:
    angle = random.uniform(0, 2 * np.pi)
    side = max(random.uniform(0.1, 0.25) * min(height, width), 1)
    cells = int(4 * max(height, width) // side)
    return {"angle": angle, "side": side, "draws": inner(random).uniform(size=(cells, cells))}


def checkerboard_cutout(image: Image, strength: float, *, angle: float, side: float, draws: Layer) -> Image:
    y, x = grid(image)
    p, q = (y * np.cos(angle) + x * np.sin(angle)) / side, (-y * np.sin(angle) + x * np.cos(angle)) / side
    same = (p % 2).astype(int) == (q % 2).astype(int)
    # cut towards zero, so that the rows of squares on both sides of 0 share a number
    hidden = same & (draws < strength / 10)[p.astype(int), q.astype(int)]
    covered: Image = np.where(hidden[..., None], np.uint8(128), image)
    return covered


def caustic_refraction_draws(random: RandomState, height: int, width: int) -> Draws:
    return {"time": random.uniform(0.5, 2), "size": random.uniform(0.75, 1.25) * min(height, width)}


def caustic_refraction(image: Image, strength: float, *, time: float, size: float) -> Image:
    y, x = grid(image)
    down, right = (axis / size % 1 * 6.28318530718 - 250 for axis in (y, x))
    moved_y, moved_x = down, right
    light = np.ones(y.shape)
    for number in range(5):
        t = time * (1 - 3.5 / (number + 1))
        moved_y, moved_x = (
            down + np.cos(t - moved_y) + np.sin(t + moved_x),
            right + np.sin(t - moved_x) + np.cos(t + moved_y),
        )
        light += 1 / np.sqrt((0.005 * down / np.sin(moved_y + t)) ** 2 + (0.005 * right / np.cos(moved_x + t)) ** 2)
    height = np.clip(np.abs(1.17 - (light / 5) ** 1.4) ** 8, 0, 1)
    height = np.pad(ndimage.gaussian_filter(height, 1, mode="reflect", truncate=4), 1)
    slope_y, slope_x = height[2:, 1:-1] - height[:-2, 1:-1], height[1:-1, 2:] - height[1:-1, :-2]
    slope = np.sqrt(slope_y**2 + slope_x**2)
    upright = 1 / np.sqrt(1 + slope**2)
    tilt = np.arccos(upright)
    bend = 0.05 * strength * min(image.shape[:2]) * np.sin(tilt - np.arcsin(np.sin(tilt) / 4))
    with np.errstate(invalid="ignore", divide="ignore"):
        rows, columns = (np.where(upright >= 0.999, 0, np.round(bend * part / slope, 3)) for part in (slope_y, slope_x))
    lit = bilinear(image.astype(np.float32) / 255, y + rows, x + columns)
    return cut(np.clip(lit + (0.2 * strength * (slope_y - slope_x))[..., None], 0, 1) * 255)


LARGE = 85
"""Where 32 pixels, which have 3 whirls a side, and 224, which have 5, are equally far, in factors."""


def pinch_and_twirl_draws(random: RandomState, height: int, width: int) -> Draws:
    count = 5 if min(height, width) >= LARGE else 3
    return {"turns": np.array([random.choice([1, -1]) for _ in range(count * count)]).reshape(count, count)}


def pinch_and_twirl(image: Image, strength: float, *, turns: NDArray[np.integer]) -> Image:
    count, amount = len(turns), 0.04 * strength + 0.1
    height, width = image.shape[0] // count, image.shape[1] // count
    radius = min(height, width) / 2
    result = image.astype(np.float32)
    for row in range(count):
        for column in range(count):
            y, x = np.mgrid[row * height : (row + 1) * height, column * width : (column + 1) * width].astype(float)
            middle_y, middle_x = row * height + height / 2, column * width + width / 2
            down, right = y - middle_y, x - middle_x
            distance = np.sqrt(down**2 + right**2)
            still = (distance > radius) | (np.round(distance, 3) == 0)
            part = np.where(still, 0.5, distance / radius if radius else 0)
            pinch = np.sin(np.pi * part / 2) ** -amount
            turn = turns[column, row] * strength * np.pi / 20 * (1 - part) ** 2
            rows = middle_y + pinch * (down * np.cos(turn) - right * np.sin(turn))
            columns = middle_x + pinch * (down * np.sin(turn) + right * np.cos(turn))
            warped = bilinear(image.astype(float), np.where(still, y, rows), np.where(still, x, columns))
            result[row * height : (row + 1) * height, column * width : (column + 1) * width] = warped
    return cut(result)


def ripple_draws(random: RandomState, height: int, width: int) -> Draws:
    lengths = random.uniform(0.1, 0.3, 2) * min(height, width)
    return {"wavelengths": lengths, "phases": random.uniform(0, 2 * np.pi, 2)}


def ripple(image: Image, strength: float, *, wavelengths: Layer, phases: Layer) -> Image:
    y, x = grid(image)
    swing = 0.0025 * strength * min(image.shape[:2])
    rows, columns = (
        axis + swing * np.sin(2 * np.pi * axis / length + phase)
        for axis, length, phase in zip((y, x), wavelengths, phases, strict=True)
    )
    return cut(bilinear(image.astype(float), rows, columns))


def circular_motion_blur_draws(random: RandomState, height: int, width: int) -> Draws:
    return {}


def circular_motion_blur(image: Image, strength: float) -> Image:
    pixels = image.astype(np.float32) / 255
    # what `rotate` begins with for each angle anew
    splines = np.stack([ndimage.spline_filter(pixels[..., channel], 3) for channel in range(3)], axis=2)
    steps = np.linspace(-1, 1, 21)
    weights = np.exp(-2 * steps**2)
    total = np.zeros(image.shape)
    for step, weight in zip(steps, weights / weights.sum(), strict=True):
        angle = step * 1.5 * strength
        total += weight * ndimage.rotate(splines, angle, reshape=False, output=np.float32, order=3, cval=0, prefilter=False)
    return cut(np.clip(total, 0, 1) * 255)


def lines_draws(random: RandomState, height: int, width: int) -> Draws:
    return {"angle": random.uniform(0, 2 * np.pi), "variation": random.uniform(0.1, 1), "random": inner(random)}


def lines(image: Image, strength: float, *, angle: float, variation: float, random: RandomState) -> Image:
    height, width = image.shape[:2]
    length = min(height, width)
    result = image.copy()
    for _ in range(int(strength / 10 * length)):
        row, column = height * random.uniform(), width * random.uniform()
        own = angle + 2 * np.pi * variation * (random.uniform() - 0.5)
        down, right = length * math.cos(own), length * math.sin(own)
        drawn = line_aa(int(row - down), int(column - right), int(row + down), int(column + right))
        before = result.copy()
        for y, x, share in drawn:
            if 0 <= y < height and 0 <= x < width:
                result[y, x] = ((1 - share) * before[y, x] + 128 * share).astype(np.uint8)
    return result


def line_aa(row: int, column: int, last_row: int, last_column: int) -> list[tuple[int, int, float]]:
    """Pixels of a smooth line and how much of each it covers (Zingl, 2012), as scikit-image draws it."""
    rows, columns = abs(row - last_row), abs(column - last_column)
    down, right = (1 if row < last_row else -1), (1 if column < last_column else -1)
    error, length = columns - rows, math.hypot(rows, columns) if rows + columns else 1.0
    found = []
    while True:
        found.append((row, column, 1 - abs(error - columns + rows) / length))
        before, own = error, column
        if 2 * before >= -columns:
            if column == last_column:
                break
            if before + rows < length:
                found.append((row + down, column, 1 - abs(before + rows) / length))
            error -= rows
            column += right
        if 2 * before <= rows:
            if row == last_row:
                break
            if columns - before < length:
                found.append((row, own + right, 1 - abs(columns - before) / length))
            error += columns
            row += down
    return found


def transverse_chromatic_abberation_draws(random: RandomState, height: int, width: int) -> Draws:
    return {"order": random.permutation(3)}


def transverse_chromatic_abberation(image: Image, strength: float, *, order: NDArray[np.integer]) -> Image:
    height, width = image.shape[:2]
    result = np.empty_like(image)
    for channel, scale in enumerate(np.array([1, 1 + 0.025 * strength, 1 + 0.05 * strength])[order]):
        zoomed = ndimage.zoom(image[..., channel], scale, order=3, prefilter=False)
        top, left = (zoomed.shape[0] - height) // 2, (zoomed.shape[1] - width) // 2
        result[..., channel] = zoomed[top : top + height, left : left + width]
    return result
