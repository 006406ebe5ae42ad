"""Patterns laid over a picture: waves, plasma, Perlin noise, stars, a checkerboard, lines (ImageNet-C-bar).

What is drawn at random is an argument, so that a test can give the same draws to another implementation. Precision is that
of the published code, for it decides which levels are cut: double, and single from star to star and under Perlin noise.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled
from shiftproof.types import Image

Doubles: TypeAlias = NDArray[np.float64]
Places: TypeAlias = NDArray[np.int64]

GREY = 128
"""What a checkerboard and lines are filled with."""

OCTAVES = 5
FIRST_CELLS = 7
"""Cells of the coarsest Perlin noise along the shorter side: 224 pixels by 32."""

PI_HIGH, PI_LOW = 3.1415926535897931, 1.2246467991473532e-16


@compiled
def sine(angle: float) -> float:
    """The sine to 1e-13, of angles up to some thousands: without a branch or a call, so that loops of it are vectorised."""
    half_turns: float = np.floor(angle * (1 / np.pi) + 0.5)
    rest = angle - half_turns * PI_HIGH - half_turns * PI_LOW
    square = rest * rest
    series = 1 / 355687428096000.0
    series = series * square - 1 / 1307674368000.0
    series = series * square + 1 / 6227020800.0
    series = series * square - 1 / 39916800.0
    series = series * square + 1 / 362880.0
    series = series * square - 1 / 5040.0
    series = series * square + 1 / 120.0
    series = series * square - 1 / 6.0
    odd: float = half_turns - 2 * np.floor(0.5 * half_turns)
    return (1 - 2 * odd) * (rest + rest * square * series)


@compiled
def cosine(angle: float) -> float:
    return sine(angle + 0.5 * np.pi)


@compiled
def angle_of(right: float, down: float) -> float:
    """The arc tangent of `right` over `down` in all four quadrants, to 1e-15; without a branch or a call, as `sine`."""
    across, along = abs(right), abs(down)
    large = across if across > along else along
    small = along if across > along else across
    slope = small / (large if large > 0.0 else 1.0)
    steep = slope > 0.4142135623730950  # the tangent of an eighth of half a turn, beyond which the series is slow
    rest = (slope - 1) / (slope + 1) if steep else slope
    square = rest * rest
    series = 0.0
    for term in range(35, 0, -2):
        series = 1 / term - square * series
    angle = rest * series + (0.25 * np.pi if steep else 0.0)
    angle = 0.5 * np.pi - angle if across > along else angle
    angle = np.pi - angle if down < 0.0 else angle
    return -angle if right < 0.0 else angle


@compiled
def level(value: float) -> np.uint8:
    """Clipped to the range and cut, as the published datasets were made."""
    value = value if value > 0.0 else 0.0
    value = value if value < 255.0 else 255.0
    return np.uint8(np.int32(value))


@compiled
def _add_to_row(row: Image, added: Doubles, result: Image) -> None:
    for x in range(added.size):
        for channel in range(3):
            result[x, channel] = level(row[x, channel] + added[x])


@compiled
def with_sine_wave(image: Image, across: float, down: float, phase: float, intensity: float) -> Image:
    """The image with one plane wave added to all channels."""
    height, width = image.shape[:2]
    result, added = np.empty_like(image), np.empty(width)
    # the sine of a sum, from those of its parts
    sines, cosines = np.sin(across * np.arange(width)), np.cos(across * np.arange(width))
    for y in range(height):
        own, other = intensity * np.cos(down * y + phase), intensity * np.sin(down * y + phase)
        for x in range(width):
            added[x] = sines[x] * own + cosines[x] * other
        _add_to_row(image[y], added, result[y])
    return result


@compiled
def with_rings(
    image: Image,
    centre_x: float,
    centre_y: float,
    petals: float,
    amplitude: float,
    ring_width: float,
    intensity: float,
) -> Image:
    """The image with saw-tooth rings around a centre, bent by a sine of the angle, added to all channels."""
    height, width = image.shape[:2]
    result, added = np.empty_like(image), np.empty(width)
    for y in range(height):
        down = y - centre_y
        for x in range(width):
            right = x - centre_x
            radius = np.sqrt(right * right + down * down) + amplitude * sine(petals * angle_of(right, down))
            rings = radius / ring_width
            added[x] = intensity * (rings - np.floor(rings) - 0.5)
        _add_to_row(image[y], added, result[y])
    return result


@compiled
def under_plasma(image: Image, time: float, rounds: int, sharpness: float, scale: float, intensity: float) -> Image:
    """The image mixed with bands of colour, along coordinates that waves of ever higher frequency have bent."""
    height, width = image.shape[:2]
    result = np.empty_like(image)
    right, down = np.empty(width), np.empty(width)
    red, green, blue = np.empty(width), np.empty(width), np.empty(width)
    kept, swing = 1 - intensity / 255, np.sin(time)
    for y in range(height):
        for x in range(width):
            right[x], down[x] = x / scale, y / scale
        for number in range(rounds):
            share, speed, start = 1 / (2.25 - sharpness) ** number, 1.93**number, time / 1.15**number
            for x in range(width):
                along = share * cosine(speed * down[x] + start)
                across = share * sine(speed * right[x] + start)
                right[x] += along - 0.3 * across
                down[x] += across + 0.3 * along
        for x in range(width):
            red[x] = intensity * sine(right[x] - time)
            green[x] = intensity * sine(0.5 * (right[x] + down[x] + swing))
            blue[x] = intensity * sine(down[x] + time)
        for x in range(width):
            result[y, x, 0] = level(kept * image[y, x, 0] + red[x])
            result[y, x, 1] = level(kept * image[y, x, 1] + green[x])
            result[y, x, 2] = level(kept * image[y, x, 2] + blue[x])
    return result


@compiled
def _star(y: int, centre_y: float, centre_x: float, lengths: Doubles, exponent: float, seen: Doubles) -> None:
    """Writes how much of a star each pixel of a row sees, from 0 to 1; its rays have these lengths."""
    count, down = len(lengths), y - centre_y
    for x in range(seen.size):
        seen[x] = (angle_of(x - centre_x, down) + np.pi) / (2 * np.pi) * count
    for x in range(seen.size):
        right, ray = x - centre_x, int(seen[x])
        share = seen[x] - ray
        length = (1 - share) * lengths[ray % count] + share * lengths[(ray + 1) % count]
        nearness = length * length / (right * right + down * down + 1e-4)
        if exponent != 1:
            nearness = nearness**exponent
        seen[x] = min(max((1 - (share - 0.5) * (share - 0.5)) * nearness, 0.0), 1.0)


@compiled
def under_stars(image: Image, centres: Doubles, lengths: Doubles, ends: Places) -> Image:
    """The image with white stars on it, one after the other; their rays end to end in `lengths`, up to `ends`."""
    height, width = image.shape[:2]
    result, seen = np.empty_like(image), np.empty(width)
    pixels = np.empty((width, 3), np.float32)
    for y in range(height):
        for x in range(width):
            for channel in range(3):
                pixels[x, channel] = np.float32(image[y, x, channel])
        begin = 0
        for star in range(len(ends)):
            _star(y, centres[star, 0], centres[star, 1], lengths[begin : ends[star]], 1.0, seen)
            begin = ends[star]
            for x in range(width):
                for channel in range(3):
                    pixels[x, channel] = np.float32(np.float64(pixels[x, channel]) * (1 - seen[x]) + seen[x] * 255)
        for x in range(width):
            for channel in range(3):
                result[y, x, channel] = level(np.float64(pixels[x, channel]))
    return result


@compiled
def seen_through_star(image: Image, centre: Doubles, lengths: Doubles, exponent: float) -> Image:
    """The image where a star is, fading to white around it."""
    height, width = image.shape[:2]
    result, seen = np.empty_like(image), np.empty(width)
    for y in range(height):
        _star(y, centre[0], centre[1], lengths, exponent, seen)
        for x in range(width):
            for channel in range(3):
                result[y, x, channel] = level(255 + seen[x] * (np.float64(image[y, x, channel]) - 255))
    return result


@compiled
def gradients_of(slopes: Places) -> Doubles:
    """Directions of length 1, (256, 2); a draw without direction is flat, where published code divided by zero."""
    gradients = np.zeros(slopes.shape)
    for place in range(len(slopes)):
        length = np.sqrt(np.float64(slopes[place, 0] ** 2 + slopes[place, 1] ** 2))
        if length > 0:
            gradients[place, 0], gradients[place, 1] = slopes[place, 0] / length, slopes[place, 1] / length
    return gradients


@compiled
def shuffled(swaps: Places) -> Places:
    """The numbers 0 to 255, each place from the last swapped with any: not all orders are equally likely, as published."""
    order = np.arange(256)
    for number in range(256):
        place = 255 - number
        order[place], order[swaps[number]] = order[swaps[number]], order[place]
    return order


@compiled
def under_turbulence(image: Image, slopes: Places, swaps: Places, alpha: float) -> Image:
    """The image mixed with the added magnitudes of five octaves of Perlin noise (Perlin, 1985)."""
    height, width = image.shape[:2]
    gradients, order = gradients_of(slopes), shuffled(swaps)
    cell = 32 * min(height, width) / 224
    result, turbulence = np.empty_like(image), np.empty(width)
    columns = np.empty((OCTAVES, width), np.int64)
    rights, smooth = np.empty((OCTAVES, width)), np.empty((OCTAVES, width))
    for octave in range(OCTAVES):
        for x in range(width):
            place = 2.0**octave * x / cell
            columns[octave, x] = int(np.floor(place))
            right = place - np.floor(place)
            rights[octave, x], smooth[octave, x] = right, right * right * (3 - 2 * right)
    most = columns[OCTAVES - 1, width - 1] + 2
    # of the corners of a row of cells: slope to the right, and what they add at this row
    upper, upper_at, lower, lower_at = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    kept, white = np.float32(1 - alpha), 255 * alpha
    for y in range(height):
        turbulence[:] = 0
        for octave in range(OCTAVES):
            place = 2.0**octave * y / cell
            row = int(np.floor(place))
            down = place - row
            along = down * down * (3 - 2 * down)
            for corner in range(columns[octave, width - 1] + 2):
                above = gradients[order[(order[row & 255] + corner) & 255]]
                below = gradients[order[(order[(row + 1) & 255] + corner) & 255]]
                upper[corner], upper_at[corner] = above[1], above[0] * down
                lower[corner], lower_at[corner] = below[1], below[0] * (down - 1)
            share = 1.5 / 2**octave
            for x in range(width):
                corner, right, across = columns[octave, x], rights[octave, x], smooth[octave, x]
                first = upper_at[corner] + upper[corner] * right
                first += across * (upper_at[corner + 1] + upper[corner + 1] * (right - 1) - first)
                second = lower_at[corner] + lower[corner] * right
                second += across * (lower_at[corner + 1] + lower[corner + 1] * (right - 1) - second)
                turbulence[x] += share * abs(first + along * (second - first))
        for x in range(width):
            added = white * min(0.5 * turbulence[x] + 0.5, 1.0)
            for channel in range(3):
                result[y, x, channel] = level(np.float64(kept * np.float32(image[y, x, channel])) + added)
    return result


@compiled
def under_checkerboard(image: Image, angle: float, side: float, hidden: NDArray[np.bool_]) -> Image:
    """The image with grey squares: those of one colour of a turned checkerboard that are `hidden`.

    Squares are numbered by cutting towards zero, as published, so that the rows on both sides of 0 share a number.
    """
    height, width = image.shape[:2]
    result = image.copy()
    cos, sin, count = np.cos(angle), np.sin(angle), len(hidden)
    for y in range(height):
        for x in range(width):
            p, q = (y * cos + x * sin) / side, (-y * sin + x * cos) / side
            if int(p % 2) == int(q % 2) and hidden[int(p) % count, int(q) % count]:
                for channel in range(3):
                    result[y, x, channel] = GREY
    return result


@compiled
def under_lines(image: Image, ends: Places) -> Image:
    """The image with smooth grey lines from end to end, (lines, 4): row and column of both ends.

    Of pixels that a line meets twice the last meeting counts, as published.
    """
    height, width = image.shape[:2]
    result = image.copy()
    longest = 0
    for number in range(len(ends)):
        longest = max(longest, abs(ends[number, 2] - ends[number, 0]) + abs(ends[number, 3] - ends[number, 1]))
    places, shares = np.empty((2 * longest + 2, 2), np.int64), np.empty(2 * longest + 2)
    levels = np.empty((2 * longest + 2, 3), np.uint8)
    for number in range(len(ends)):
        met = _walk(ends[number], places, shares)
        for meeting in range(met):
            row, column = places[meeting]
            if 0 <= row < height and 0 <= column < width:
                for channel in range(3):
                    before = result[row, column, channel]
                    levels[meeting, channel] = level((1 - shares[meeting]) * before + GREY * shares[meeting])
        for meeting in range(met):
            row, column = places[meeting]
            if 0 <= row < height and 0 <= column < width:
                for channel in range(3):
                    result[row, column, channel] = levels[meeting, channel]
    return result


@compiled
def _walk(ends: Places, places: Places, shares: Doubles) -> int:
    """Writes the pixels that a line meets and how much of each it covers (Zingl, 2012), as scikit-image draws it."""
    row, column, last_row, last_column = ends[0], ends[1], ends[2], ends[3]
    rows, columns = abs(row - last_row), abs(column - last_column)
    down, right = (1 if row < last_row else -1), (1 if column < last_column else -1)
    error = columns - rows
    length = math.sqrt(float(rows * rows + columns * columns)) if rows + columns > 0 else 1.0
    met = 0
    while True:
        places[met, 0], places[met, 1], shares[met] = row, column, 1 - abs(error - columns + rows) / length
        met += 1
        now, own = error, column
        if 2 * now >= -columns:
            if column == last_column:
                break
            if now + rows < length:
                places[met, 0], places[met, 1], shares[met] = row + down, column, 1 - abs(now + rows) / length
                met += 1
            error -= rows
            column += right
        if 2 * now <= rows:
            if row == last_row:
                break
            if columns - now < length:
                places[met, 0], places[met, 1], shares[met] = row, own + right, 1 - abs(columns - now) / length
                met += 1
            error += columns
            row += down
    return met
