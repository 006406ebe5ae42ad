"""Blurs: the gaussian window on bytes, frosted glass, the lens out of focus, and many zooms added up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import BLOCK, compiled, fill_with_random_bits, seed_of
from shiftproof.corruptions.kernels.filters import (
    Offsets,
    Pixels,
    Weights,
    from_pixels,
    gaussian,
    gaussian_kernel,
    strips,
    zoom_places,
)
from shiftproof.corruptions.kernels.vectors import (
    CHANNELS,
    ROWS,
    SAMPLES,
    add_five_copies,
    add_four_copies,
    add_six_copies,
    add_three_copies,
)
from shiftproof.types import Image

Displacements: TypeAlias = NDArray[np.int8]
"""Where pixels are taken from, (rounds, pixels, 2): steps to the right and down, in the order of the visits."""


SAMPLES_AT_ONCE = 1 << 20  # are worked on as floats or sums: large pictures in strips


def blurred(image: Image, sigma: float) -> Image:
    """The image under a gaussian window, cut to bytes."""
    if sigma == 0 or (sigma >= 0.7 and image.size <= SAMPLES_AT_ONCE):
        return from_pixels(gaussian(image, sigma))
    if sigma >= 0.7:
        result, reach = np.empty_like(image), len(gaussian_kernel(sigma)) // 2
        for rows, seen in strips(len(image), max(SAMPLES_AT_ONCE // image[0].size, 16 * reach), reach):
            first = rows.start - seen.start
            result[rows] = from_pixels(gaussian(image[seen], sigma)[first : first + rows.stop - rows.start])
        return result
    # so narrow a window moves many pixels by less than single precision can tell from a whole level
    kernel = gaussian_kernel(sigma)
    exact = cv2.sepFilter2D(image, cv2.CV_64F, kernel, kernel, borderType=cv2.BORDER_REPLICATE)
    return (exact + 1e-9).astype(np.uint8)


def displacements(rng: np.random.Generator, reach: int, rounds: int, visited: int) -> Displacements:
    """Steps from -`reach` to `reach` - 1: the published dataset never drew its upper end."""
    drawn = np.empty((rounds, visited, 2), np.int8)
    _draw_steps(seed_of(rng), np.uint64(2 * reach), drawn.reshape(-1))
    return drawn


@compiled
def _draw_steps(seed: np.uint64, choices: np.uint64, steps: NDArray[np.int8]) -> None:
    bits = np.empty(BLOCK, np.uint32)
    half = np.int64(choices) // 2
    for block in range(-(-steps.size // BLOCK)):
        fill_with_random_bits(bits, seed, block)
        start = block * BLOCK
        for place in range(min(BLOCK, steps.size - start)):
            steps[start + place] = np.int8(np.int64((np.uint64(bits[place]) * choices) >> np.uint64(32)) - half)


def through_glass(image: Image, sigma: float, reach: int, steps: Displacements) -> Image:
    """Frosted glass with these displacements."""
    # four bytes a pixel move at once
    pixels = cv2.cvtColor(blurred(image, sigma), cv2.COLOR_RGB2RGBA).view(np.uint32)[:, :, 0]
    _take_from_neighbours(pixels, reach, steps)
    taken = cv2.cvtColor(pixels[:, :, None].view(np.uint8), cv2.COLOR_RGBA2RGB)
    del pixels  # a third more than the image, while it is blurred
    return blurred(np.asarray(taken, np.uint8), sigma)


@compiled
def _take_from_neighbours(pixels: NDArray[np.uint32], reach: int, steps: Displacements) -> None:
    """Copies a neighbour onto each pixel, from the lower right corner to the upper left.

    A swap was meant. But on colour images the published code wrote through views, so that the neighbour keeps its colour.
    """
    height, width = pixels.shape
    flat, moves, number = pixels.reshape(-1), steps.reshape(-1), np.uint64(0)
    for _ in range(len(steps)):
        for y in range(height - reach, reach, -1):
            place = y * width + width - reach
            for _ in range(width - reach, reach, -1):
                source = place + moves[number + np.uint64(1)] * width + moves[number]
                # without a sign, so that nobody looks for indices below 0
                flat[np.uint64(place)] = flat[np.uint64(source)]
                place -= 1
                number += np.uint64(2)


Places: TypeAlias = NDArray[np.int64]
Starts: TypeAlias = NDArray[np.uint64]
"""Where rows begin in the bytes of a framed picture; without a sign, so that kernels do not look for indices below 0."""

Sums: TypeAlias = NDArray[np.int32]

TAPS_AT_ONCE = 64  # so many bytes, or differences of bytes, add up within 16 bits


@dataclass(frozen=True, eq=False)  # told apart as objects, so that what is made of them can be kept
class Disk:
    """A disk, the small window that softens it, and the ring by which the published kernel differs from the two.

    The published disk is softened in an array whose border a radius of 8, and any above it, touches: what the window
    carries over the border is lost, and a mirror image comes in instead. So such a kernel brightens by 1 %.
    """

    columns: Places  # (columns, 3): right, first row, last row
    window: NDArray[np.float64]  # (2 x margin + 1,), along both axes
    share: float  # of one pixel in the sum over the disk
    ring: Places  # (pixels, 2): down, right; those of equal weight together
    ring_ends: Places  # (weights,): the end of each such group
    ring_weights: Weights

    @property
    def margin(self) -> int:
        return len(self.window) // 2

    @property
    def frame(self) -> tuple[int, int, int, int]:
        """How far it looks beyond a picture: above, below, left, right."""
        rows, columns = self.columns[:, 1:], self.columns[:, 0]
        above, below, left, right = -rows.min(), rows.max(), -columns.min(), columns.max()
        return int(above) + self.margin, int(below) + self.margin, int(left) + self.margin, int(right) + self.margin


def published_kernel(radius: float, softness: float) -> tuple[NDArray[np.bool_], Weights, Weights]:
    """The disk, the window along one axis, and the disk softened by the window, as the published datasets were made."""
    places = np.arange(-8, 9) if radius <= 8 else np.arange(-radius, radius + 1)
    disk = places[:, None] ** 2 + places[None, :] ** 2 <= radius**2
    size = 3 if radius <= 8 else 5
    kernel = cv2.GaussianBlur(disk.astype(np.float32) / np.float32(disk.sum()), (size, size), sigmaX=softness)
    window = cv2.getGaussianKernel(size, softness, cv2.CV_32F)
    return disk, np.asarray(window, np.float32)[:, 0], np.asarray(kernel, np.float32)


@lru_cache(maxsize=64)
def disk_of(radius: float, softness: float) -> Disk:
    """The disk of this radius, ready to be moved over pictures."""
    disk, window, kernel = published_kernel(radius, softness)
    middle, margin = len(disk) // 2, len(window) // 2
    pixel = 1.0 / disk.sum()
    whole = cv2.sepFilter2D(np.pad(disk * pixel, margin), -1, window, window, borderType=cv2.BORDER_CONSTANT)
    difference = np.pad(kernel.astype(np.float64), margin) - whole
    # fainter ones only through their sum, by which the rest is made heavier
    difference[np.abs(difference) < 1e-3 * pixel] = 0
    while len(window) > 1 and window[0] < 1e-7:
        window = window[1:-1]
    ring, ends, weights = _grouped(difference, middle + margin)
    columns = [
        (x, column.argmax(), len(column) - 1 - column[::-1].argmax()) for x, column in enumerate(disk.T) if column.any()
    ]
    share = (kernel.sum(dtype=np.float64) - difference.sum()) * pixel / window.sum(dtype=np.float64) ** 2
    return Disk(np.array(columns) - middle, window.astype(np.float64), float(share), ring, ends, weights)


def _grouped(weights: NDArray[np.float64], middle: int) -> tuple[Places, Places, Weights]:
    """Pixels that have a weight, equal weights together; where each group ends; the weight of each."""
    pixels: list[tuple[int, int]] = []
    ends: list[int] = []
    values: list[float] = []
    rounded = np.round(weights, 9)
    for value in np.unique(rounded[rounded != 0]).tolist():
        places = np.argwhere(rounded == value) - middle
        for start in range(0, len(places), TAPS_AT_ONCE):
            pixels += places[start : start + TAPS_AT_ONCE].tolist()
            ends.append(len(pixels))
            values.append(value)
    return np.array(pixels, np.int64).reshape(-1, 2), np.array(ends, np.int64), np.array(values, np.float32)


def under_disk(image: Image, disk: Disk) -> Image:
    """The image with every pixel spread over the disk, cut to bytes; beyond its border it goes on in a mirror."""
    height, width, channels = image.shape
    above, below, left, right = disk.frame
    framed = cv2.copyMakeBorder(image, above, below, left, right, cv2.BORDER_REFLECT_101)
    stride, margin = framed.shape[1] * channels, disk.margin
    flat, spread = np.asarray(framed, np.uint8).reshape(-1), np.empty_like(image)
    beginning, entering, leaving, ring = _starts_of(disk, stride, channels)
    window = disk.window * np.sqrt(disk.share)
    for rows, _ in strips(height, SAMPLES_AT_ONCE // (width * channels)):
        count, down = rows.stop - rows.start, np.uint64(rows.start * stride)
        sums = np.empty((count + 2 * margin, (width + 2 * margin) * channels), np.int32)
        _move_down(flat, np.uint64(stride), beginning + down, entering + down, leaving + down, sums)
        added = np.empty((count if len(disk.ring) else 0, width * channels), np.float32)
        _add_ring(flat, np.uint64(stride), ring + down, disk.ring_ends, disk.ring_weights, added)
        _soften(sums, window, channels, added, spread[rows].reshape(count, width * channels))
    return spread


@lru_cache(maxsize=64)
def _starts_of(disk: Disk, stride: int, channels: int) -> tuple[Starts, Starts, Starts, Starts]:
    """Where, in a framed picture of so many bytes a row, those rows begin that make up the first row of sums, that enter
    with the next and leave, and those of the ring.
    """
    above, _, left, _ = disk.frame

    def starts(down: Places, across: Places) -> Starts:
        return np.asarray(down * stride + across * channels).astype(np.uint64)

    across, first, last = disk.columns.T
    across, first, last = across + left - disk.margin, first + above - disk.margin, last + above - disk.margin
    beginning = np.concatenate([starts(np.arange(top, end + 1), x) for x, top, end in zip(across, first, last, strict=True)])
    ring = starts(disk.ring[:, 0] + above, disk.ring[:, 1] + left)
    return beginning, starts(last, across), starts(first - 1, across), ring


@compiled
def _move_down(framed: Image, stride: np.uint64, beginning: Starts, enter: Starts, leave: Starts, sums: Sums) -> None:
    """Sums over the disk: the first row in full, each other from the one above it and what enters and leaves."""
    height, width = np.uint64(sums.shape[0]), np.uint64(sums.shape[1])
    for x in range(width):
        sums[0, x] = 0
    for tap in range(beginning.size):
        start = beginning[tap]
        for x in range(width):
            sums[0, x] += framed[start + x]
    change = np.empty(width, np.int16)
    for y in range(np.uint64(1), height):
        for x in range(width):
            sums[y, x] = sums[y - np.uint64(1), x]
        for block in range(0, enter.size, TAPS_AT_ONCE):
            for x in range(width):
                change[x] = 0
            past = min(block + TAPS_AT_ONCE, enter.size)
            for column in range(block, past - 2, 3):  # several at once, so that the sums are loaded and stored less often
                start, end = leave[column] + y * stride, enter[column] + y * stride
                next_start, next_end = leave[column + 1] + y * stride, enter[column + 1] + y * stride
                last_start, last_end = leave[column + 2] + y * stride, enter[column + 2] + y * stride
                for x in range(width):
                    entering = np.int16(framed[end + x]) + np.int16(framed[next_end + x]) + np.int16(framed[last_end + x])
                    left = np.int16(framed[start + x]) + np.int16(framed[next_start + x]) + np.int16(framed[last_start + x])
                    change[x] += np.int16(np.int16(entering) - np.int16(left))
            for column in range(past - (past - block) % 3, past):
                start, end = leave[column] + y * stride, enter[column] + y * stride
                for x in range(width):
                    change[x] += np.int16(framed[end + x]) - np.int16(framed[start + x])
            for x in range(width):
                sums[y, x] += change[x]


@compiled
def _add_ring(framed: Image, stride: np.uint64, ring: Starts, ends: Places, weights: Weights, added: Weights) -> None:
    """The pixels of the ring times their weights."""
    height, width = np.uint64(added.shape[0]), np.uint64(added.shape[1])
    group = np.empty(width, np.int16)
    for y in range(height):
        for x in range(width):
            added[y, x] = np.float32(0)
        begin = 0
        for number in range(ends.size):
            for x in range(width):
                group[x] = 0
            past = ends[number]
            for tap in range(begin, past - 3, 4):
                start, second = ring[tap] + y * stride, ring[tap + 1] + y * stride
                third, fourth = ring[tap + 2] + y * stride, ring[tap + 3] + y * stride
                for x in range(width):
                    upper = np.int16(np.int16(framed[start + x]) + np.int16(framed[second + x]))
                    group[x] += np.int16(upper + np.int16(np.int16(framed[third + x]) + np.int16(framed[fourth + x])))
            for tap in range(past - (past - begin) % 4, past):
                start = ring[tap] + y * stride
                for x in range(width):
                    group[x] += np.int16(framed[start + x])
            begin, weight = ends[number], weights[number]
            for x in range(width):
                added[y, x] += weight * np.float32(group[x])


@compiled
def _soften(sums: Sums, window: NDArray[np.float64], channels: int, added: Weights, spread: Image) -> None:
    """The sums under the window, something added, as bytes.

    In double precision and without a guard: where all pixels of a disk are alike, or weigh alike, it depends on the eighth
    digit of the published weights whether a whole number stays what it is or is cut to the next below.
    """
    height, width = np.uint64(spread.shape[0]), np.uint64(spread.shape[1])
    margin, step = np.uint64(window.size // 2), np.uint64(channels)
    column, row = np.empty(sums.shape[1], np.float64), np.empty(width, np.float64)
    one, two, beside, next_weight = np.uint64(1), np.uint64(2), np.uint64(0), 0.0
    if margin > 0:
        beside, next_weight = step, window[margin + one]
    for y in range(height):
        middle, weight, start = y + margin, window[margin], margin * step
        if margin == 0:
            for x in range(np.uint64(column.size)):
                column[x] = weight * sums[middle, x]
        else:  # the middle and its neighbours at once, so that sums are loaded and stored less often
            for x in range(np.uint64(column.size)):
                neighbours = np.int32(sums[middle - one, x] + sums[middle + one, x])
                column[x] = weight * sums[middle, x] + next_weight * neighbours
        for tap in range(two, margin + one):
            above, below, outer = middle - tap, middle + tap, window[margin + tap]
            for x in range(np.uint64(column.size)):
                column[x] += outer * np.int32(sums[above, x] + sums[below, x])
        left, right = start - beside, start + beside
        if added.size > 0:
            for x in range(width):
                row[x] = added[y, x] + weight * column[start + x] + next_weight * (column[left + x] + column[right + x])
        elif margin > 0:
            for x in range(width):
                row[x] = weight * column[start + x] + next_weight * (column[left + x] + column[right + x])
        else:
            for x in range(width):
                row[x] = weight * column[x]
        for tap in range(two, margin + one):
            left, right, outer = start - tap * step, start + tap * step, window[margin + tap]
            for x in range(width):
                row[x] += outer * (column[left + x] + column[right + x])
        for x in range(width):
            spread[y, x] = np.uint8(np.int32(min(max(row[x], 0.0), 255.0)))


TAPS = 6  # that are added at once: more come by so many


@dataclass(frozen=True)
class Zooms:
    """Where the rows and samples of a picture of one size come from, at each of several zooms.

    Along a row a sample lies between two others. Which two changes from pixel to pixel, too often for long loops; so blocks
    of samples are made from a few equally shifted copies of the row, each under weights that are mostly 0.
    """

    rows: Offsets  # (zooms, height)
    row_shares: Weights  # (zooms, height), of the next row
    starts: Starts  # (zooms, blocks), of the first copy
    taps: Offsets  # (zooms,): copies, at least 3
    weights: Weights  # (zooms, taps, blocks x SAMPLES)
    side: int  # room for copies that begin before the row


@lru_cache(maxsize=32)
def zooms_of(height: int, width: int, factors: tuple[float, ...]) -> Zooms:
    """The tables of these zooms for pictures of this size."""
    rows = [zoom_places(height, factor) for factor in factors]
    columns = [zoom_places(width, factor) for factor in factors]
    blocks = -(-width * CHANNELS // SAMPLES)
    sample = np.arange(blocks * SAMPLES)
    column, exists = np.minimum(sample // CHANNELS, width - 1), sample < width * CHANNELS
    shifts = np.array([starts[column] - column for starts, _ in columns]).reshape(len(factors), blocks, SAMPLES)
    lowest = shifts.min(axis=2)
    first = (shifts - lowest[:, :, None]).reshape(len(factors), -1)
    taps = np.maximum(first.max(axis=1) + 2, 3)
    kept = int(taps.max()) if taps.max() < TAPS else -(-int(taps.max()) // TAPS) * TAPS
    weights = np.zeros((len(factors), kept, len(sample)), np.float32)
    for number, (_, shares) in enumerate(columns):
        weights[number, first[number], sample] = np.where(exists, 1 - shares[column], 0)
        weights[number, first[number] + 1, sample] = np.where(exists, shares[column], 0)
    side = SAMPLES + CHANNELS * int(weights.shape[1] + max(0, -lowest.min()))
    starts = (side + np.arange(0, len(sample), SAMPLES) + CHANNELS * lowest).astype(np.uint64)
    return Zooms(np.array([r for r, _ in rows]), np.array([s for _, s in rows]), starts, taps, weights, side)


def mean_with_zooms(image: Image, factors: tuple[float, ...]) -> Image:
    """The mean of the image and of its `clipped_zoom` at all factors, cut to bytes."""
    mean, share = np.empty_like(image), np.float32(1 / (len(factors) + 1))
    for rows, _ in strips(len(image), SAMPLES_AT_ONCE // image[0].size):
        total = added_zooms(image, factors, rows)
        _cut_mean(total.reshape(-1), image[rows].reshape(-1), share, mean[rows].reshape(-1))
    return mean


@compiled
def _cut_mean(total: Pixels, image: Image, share: np.float32, mean: Image) -> None:
    # the guard of `from_pixels`
    guard, most = np.float32(6e-5), np.float32(255)
    for place in range(total.size):
        level = (total[place] + np.float32(image[place])) * share + guard
        mean[place] = np.uint8(np.int32(level if level < most else most))


def added_zooms(image: Image, factors: tuple[float, ...], rows: slice | None = None) -> Pixels:
    """The sum of the image's `clipped_zoom` at all factors; all of its rows, or some."""
    height, width = image.shape[:2]
    zooms, wanted = zooms_of(height, width, factors), rows or slice(0, height)
    sources, shares = zooms.rows[:, wanted], np.ascontiguousarray(zooms.row_shares[:, wanted])
    first, past = min(int(sources.min()), wanted.start), min(max(int(sources.max()) + 2, wanted.stop), height)
    total = np.empty((wanted.stop - wanted.start, width * CHANNELS), np.float32)
    _add_up(
        image[first:past].reshape(-1),
        sources - first,
        shares,
        zooms.starts,
        zooms.taps,
        zooms.weights,
        np.uint64(zooms.side),
        int(factors[0] == 1),
        np.uint64(wanted.start - first),
        total,
    )
    return total.reshape(-1, width, CHANNELS)


@compiled
def _add_up(
    pixels: Image,
    rows: Offsets,
    row_shares: Weights,
    starts: Starts,
    taps: Offsets,
    weights: Weights,
    side: np.uint64,
    known: int,
    own: np.uint64,
    total: Pixels,
) -> None:
    height, width = np.uint64(total.shape[0]), np.uint64(total.shape[1])
    samples, step, stride = np.uint64(SAMPLES), np.uint64(TAPS * CHANNELS), side + np.uint64(weights.shape[2]) + side
    blocks, last, between = np.uint64(starts.shape[1]), height - np.uint64(1), np.zeros(ROWS * stride, np.float32)
    sums = np.empty(ROWS * weights.shape[2], np.float32)  # (blocks, rows, samples)
    every, next_weight = weights.reshape(-1), np.uint64(weights.shape[2])
    for top in range(np.uint64(0), height, np.uint64(ROWS)):
        sums[:] = 0
        if known == 1:  # the zoom of 1
            for row in range(np.uint64(ROWS)):
                begin = (own + (top + row if top + row < height else last)) * width
                for block in range(blocks):
                    at, left = (np.uint64(ROWS) * block + row) * samples, block * samples
                    for x in range(min(samples, width - left)):
                        sums[at + x] = np.float32(pixels[begin + left + x])
        for zoom in range(known, len(rows)):
            for row in range(np.uint64(ROWS)):
                y = top + row if top + row < height else last
                share = row_shares[zoom, y]
                upper, at = np.uint64(rows[zoom, y]) * width, row * stride + side
                lower = upper + width if share > 0 else upper
                for x in range(width):
                    above = np.float32(pixels[upper + x])
                    between[at + x] = above + share * (np.float32(pixels[lower + x]) - above)
            count, of_zoom = taps[zoom], np.uint64(zoom) * np.uint64(weights.shape[1]) * next_weight
            for block in range(blocks):
                start, weight, at = starts[zoom, block], of_zoom + block * samples, np.uint64(ROWS) * block * samples
                if count == 3:
                    add_three_copies(every, weight, next_weight, between, start, stride, sums, at)
                elif count == 4:
                    add_four_copies(every, weight, next_weight, between, start, stride, sums, at)
                elif count == 5:
                    add_five_copies(every, weight, next_weight, between, start, stride, sums, at)
                else:  # none of a benchmark has more than 6
                    for _ in range(0, count, TAPS):
                        add_six_copies(every, weight, next_weight, between, start, stride, sums, at)
                        start, weight = start + step, weight + np.uint64(TAPS) * next_weight
        for row in range(min(np.uint64(ROWS), height - top)):
            for block in range(blocks):
                left, at = block * samples, (np.uint64(ROWS) * block + row) * samples
                for x in range(min(samples, width - left)):
                    total[top + row, left + x] = sums[at + x]


@compiled
def add_to_mean(frame: Image, total: Pixels, frames: int, mean: Image) -> None:
    """Adds one more frame to the total, and writes the mean of so many frames."""
    # single precision from 0 to 1, as published: where a mean is a whole level, its last bit decides which byte it is cut to
    unit, count = np.float32(255), np.float32(frames)
    for place in range(frame.size):
        total[place] += np.float32(frame[place]) / unit
        mean[place] = np.uint8(np.int32(total[place] / count * unit))
