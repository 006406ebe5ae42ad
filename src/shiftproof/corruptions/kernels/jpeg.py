"""Saving as JPEG and reading it back: bytes by libjpeg-turbo through OpenCV, and the same pixels without any bytes.

What a save loses, it loses where it halves the resolution of colours and rounds coefficients. The entropy coding between
loses nothing and takes most of the time, so that a round trip leaves it out. The rest is integer arithmetic, done here as
libjpeg-turbo does it, to the bit: fixed-point colours, 4:2:0 with fancy upsampling, and the accurate DCT (Loeffler et al.,
1989) with 13 fractional bits.

Planes are stored as rows of blocks: eight long lines, the first of which has the top line of every block. So 4 bytes are
half a line of a block, and the same place of many blocks fills a vector register.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions.kernels.compiled import compiled, inlined
from shiftproof.types import Image


def jpeg_round_trip(image: Image, quality: int) -> Image:
    """The image after a save as JPEG (4:2:0) and a decode."""
    height, width = image.shape[:2]
    if width < NARROW:
        return np.asarray(cv2.imdecode(_saved(image, quality), cv2.IMREAD_COLOR_RGB), np.uint8)
    planes, pairs, light, colour, own = _MEMORY.of(height, width)
    result: Image = np.empty(image.shape, np.uint8)
    of_light, of_colour = _tables(quality)
    _to_planes(image.reshape(-1), Place(height), Place(width), planes, pairs)
    _quantise(light, *of_light, own)
    _quantise(colour, *of_colour, own)
    _from_planes(Place(height), Place(width), planes, pairs, result.reshape(-1))
    return result


def to_jpeg(image: Image, quality: int, *, optimised: bool = False) -> bytes:
    """The bytes of the image saved as JPEG (4:2:0)."""
    return _saved(image, quality, optimised).tobytes()


def jpeg85(image: Image) -> Image:
    """The image as the published files hold it: quality 85, 4:2:0.

    The published files are also saved with optimised Huffman tables, which change their length and not their pixels.
    """
    return jpeg_round_trip(image, 85)


def _saved(image: Image, quality: int, optimised: bool = False) -> NDArray[np.uint8]:
    options = [cv2.IMWRITE_JPEG_QUALITY, quality, cv2.IMWRITE_JPEG_OPTIMIZE, int(optimised)]
    _, saved = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), options)
    return np.asarray(saved, np.uint8)


NARROW = 5  # pixels: colours of narrower images are not interpolated

Bytes: TypeAlias = NDArray[np.uint8]
Pairs: TypeAlias = NDArray[np.uint16]
Words: TypeAlias = NDArray[np.uint32]
Steps: TypeAlias = NDArray[np.float32]

LIGHT = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)
COLOUR = np.pad([[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]], (0, 4), constant_values=99)
"""Quantisation tables of the standard (Annex K) at quality 50."""


Table: TypeAlias = tuple[NDArray[np.int32], Steps, Steps]


@lru_cache(maxsize=100)
def _tables(quality: int) -> tuple[Table, Table]:
    """For light and for colour: quantisation steps by column and line, (64,), and by what to multiply and what to add before
    quotients are cut.

    Coefficients are 8 times as large as the steps are for. Those half-way go away from 0: a quarter of the least distance
    between quotients is added to the half, far more than single precision errs.

    >>> [steps[:4].tolist() for steps, *_ in _tables(85)]
    [[5, 4, 4, 4], [5, 5, 7, 14]]
    """
    quality = min(max(quality, 1), 100)
    percent = 5000 // quality if quality < 50 else 200 - 2 * quality
    light, colour = (np.clip((table.T * percent + 50) // 100, 1, 255).reshape(-1) for table in (LIGHT, COLOUR))
    return _table(light), _table(colour)


def _table(steps: NDArray[np.integer]) -> Table:
    least = 1 / (8 * steps)
    return steps.astype(np.int32), least.astype(np.float32), (0.5 + least / 4).astype(np.float32)


Planes: TypeAlias = tuple[Bytes, Pairs, Words, Words, NDArray[np.int32]]
"""Planes and a few rows as bytes and as pairs of bytes, light and colour as words, coefficients of some blocks."""


class _Memory(threading.local):
    """Memory of each thread for the planes of an image, kept for small ones: to get it takes as long as to fill it."""

    def __init__(self) -> None:
        self.kept: tuple[tuple[int, int], Planes] | None = None

    def of(self, height: int, width: int) -> Planes:
        if self.kept and self.kept[0] == (height, width):
            return self.kept[1]
        wide, tall = -(-width // 16) * 16, -(-height // 16) * 16
        planes = np.zeros(wide * tall * 3 // 2 + 9 * wide, np.uint8)
        light, colour, _ = np.split(planes.view(np.uint32), [wide * tall // 4, wide * tall // 8 * 3])
        arrays = planes, planes.view(np.uint16), light, colour, np.empty(64 * BLOCKS, np.int32)
        if height * width <= KEPT:
            self.kept = (height, width), arrays
        return arrays


KEPT = 1 << 19  # pixels
BLOCKS = 64  # transformed at a time: 16 KB of coefficients
_MEMORY = _Memory()

Whole, Half, Place = np.int32, np.uint16, np.uintp  # places without a sign: nobody looks for negative ones
ONE, TWO, THREE, SEVEN, EIGHT = (np.uintp(number) for number in (1, 2, 3, 7, 8))

# by red, green and blue, and what is added before all is cut to 16 bits less; and by light, blueness and redness
FROM_RGB = np.array(
    [[19595, 38470, 7471, 32768], [-11059, -21709, 32768, 8421375], [32768, -27439, -5329, 8421375]], np.int32
)
TO_RGB = np.array(
    [
        [65536, 0, 91881, 32768 - 128 * 91881],
        [65536, -22554, -46802, 32768 + 128 * (22554 + 46802)],
        [65536, 116130, 0, 32768 - 128 * 116130],
    ],
    np.int32,
)


@compiled
def _to_planes(samples: Bytes, height: np.uintp, width: np.uintp, planes: Bytes, pairs: Pairs) -> None:
    """Writes light and halved colours; beyond the image their last column and row are repeated."""
    wide, tall = (width + Place(15)) & ~Place(15), (height + Place(15)) & ~Place(15)
    half, line, colour_line = wide >> ONE, wide * (tall >> THREE), wide * (tall >> Place(4))
    colours, channels = EIGHT * line, EIGHT * (line + colour_line)  # channels: a row of red, green and blue
    full = channels + THREE * wide  # and of each of the two colours, an even and an odd row
    for y in range(height):
        start = THREE * width * y
        for x in range(width):
            planes[channels + x] = samples[start + THREE * x]
            planes[channels + wide + x] = samples[start + THREE * x + ONE]
            planes[channels + TWO * wide + x] = samples[start + THREE * x + TWO]
        for channel in range(THREE):
            for x in range(width, wide):
                planes[channels + channel * wide + x] = planes[channels + channel * wide + width - ONE]
        for channel in range(THREE):
            of_red, of_green, of_blue, rest = FROM_RGB[channel]
            place = full + (TWO * channel - TWO + (y & ONE)) * wide if channel else (y & SEVEN) * line + (y >> THREE) * wide
            for x in range(wide):
                red, green = Whole(planes[channels + x]), Whole(planes[channels + wide + x])
                blue = Whole(planes[channels + TWO * wide + x])
                planes[place + x] = np.uint8(Whole(of_red * red + of_green * green + of_blue * blue + rest) >> 16)
        if y & ONE or y == height - ONE:
            row = colours + ((y >> ONE) & SEVEN) * colour_line + (y >> Place(4)) * half
            for colour in range(TWO):
                even = (full + TWO * colour * wide) >> ONE
                odd = even + half if y & ONE else even
                place = row + colour * (colour_line >> ONE)
                for x in range(half):
                    upper, lower = pairs[even + x], pairs[odd + x]
                    left, right = (
                        Half((upper & Half(255)) + (lower & Half(255))),
                        Half((upper >> Half(8)) + (lower >> Half(8))),
                    )
                    planes[place + x] = np.uint8(Half(left + right + Half(1) + Half(x & ONE)) >> Half(2))
    last = height - ONE
    for y in range(height, tall):
        place, source = (y & SEVEN) * line + (y >> THREE) * wide, (last & SEVEN) * line + (last >> THREE) * wide
        for x in range(wide):
            planes[place + x] = planes[source + x]
    last = last >> ONE
    for y in range(last + ONE, tall >> ONE):
        place = colours + (y & SEVEN) * colour_line + (y >> THREE) * half
        source = colours + (last & SEVEN) * colour_line + (last >> THREE) * half
        for x in range(half):
            planes[place + x] = planes[source + x]
            planes[place + (colour_line >> ONE) + x] = planes[source + (colour_line >> ONE) + x]


@compiled
def _from_planes(height: np.uintp, width: np.uintp, planes: Bytes, pairs: Pairs, result: Bytes) -> None:
    """Colours between four of their samples are those in shares of 9, 3, 3 and 1 sixteenths."""
    wide, tall = (width + Place(15)) & ~Place(15), (height + Place(15)) & ~Place(15)
    half, line, colour_line = wide >> ONE, wide * (tall >> THREE), wide * (tall >> Place(4))
    colours, channels = EIGHT * line, EIGHT * (line + colour_line)
    full = channels + THREE * wide
    sums, seen, last = (full + TWO * wide) >> ONE, (width + ONE) >> ONE, (height - ONE) >> ONE
    for y in range(height):
        near = y >> ONE
        far = near + ONE if y & ONE else near - (ONE if y else Place(0))
        far = far if far < last else last
        for colour in range(TWO):
            plane = colours + colour * (colour_line >> ONE)
            own = plane + (near & SEVEN) * colour_line + (near >> THREE) * half
            other = plane + (far & SEVEN) * colour_line + (far >> THREE) * half
            for x in range(seen):
                pairs[sums + ONE + x] = Half(Half(3) * planes[own + x] + planes[other + x])
            pairs[sums] = pairs[sums + ONE]
            pairs[sums + seen + ONE] = pairs[sums + seen]
            place = (full + colour * wide) >> ONE
            for x in range(seen):
                here = Half(Half(3) * pairs[sums + ONE + x])
                left = Half(here + pairs[sums + x] + Half(8)) >> Half(4)
                right = Half(here + pairs[sums + TWO + x] + Half(7)) >> Half(4)
                pairs[place + x] = Half(left | (right << Half(8)))
        light = (y & SEVEN) * line + (y >> THREE) * wide
        for channel in range(THREE):
            of_light, of_blueness, of_redness, rest = TO_RGB[channel]
            place = channels + channel * wide
            for x in range(width):
                blueness, redness = Whole(planes[full + x]), Whole(planes[full + wide + x])
                level = Whole(of_light * planes[light + x] + of_blueness * blueness + of_redness * redness + rest) >> 16
                planes[place + x] = _byte(Whole(level))
        start = THREE * width * y
        for x in range(width):
            result[start + THREE * x] = planes[channels + x]
            result[start + THREE * x + ONE] = planes[channels + wide + x]
            result[start + THREE * x + TWO] = planes[channels + TWO * wide + x]


BITS = 13  # after the point
Eight: TypeAlias = tuple[np.int32, np.int32, np.int32, np.int32, np.int32, np.int32, np.int32, np.int32]


@inlined
def _forward(
    a: np.int32, b: np.int32, c: np.int32, d: np.int32, e: np.int32, f: np.int32, g: np.int32, h: np.int32, bits: int
) -> Eight:
    """The coefficients of eight samples, cut by so many bits and rounded."""
    half = Whole(1 << (bits - 1))
    outer, inner, far, near = Whole(a + d + e + h), Whole(b + c + f + g), Whole(a + h - d - e), Whole(b + g - c - f)
    turned = Whole(4433 * (far + near) + half)
    first, third, fifth, seventh = _odd(Whole(a - h), Whole(b - g), Whole(c - f), Whole(d - e), half)
    return (
        Whole(((outer + inner) << BITS) + half) >> bits,
        first >> bits,
        Whole(turned + 6270 * far) >> bits,
        third >> bits,
        Whole(((outer - inner) << BITS) + half) >> bits,
        fifth >> bits,
        Whole(turned - 15137 * near) >> bits,
        seventh >> bits,
    )


@inlined
def _inverse(
    a: np.int32,
    b: np.int32,
    c: np.int32,
    d: np.int32,
    e: np.int32,
    f: np.int32,
    g: np.int32,
    h: np.int32,
    rest: np.int32,
    bits: int,
) -> Eight:
    """The samples of eight coefficients with a rest added, cut by so many bits."""
    turned, outer, inner = Whole(4433 * (c + g)), Whole(((a + e) << BITS) + rest), Whole(((a - e) << BITS) + rest)
    far, near = Whole(turned + 6270 * c), Whole(turned - 15137 * g)
    one, two, three, four = Whole(outer + far), Whole(inner + near), Whole(inner - near), Whole(outer - far)
    first, third, fifth, seventh = _odd(b, d, f, h, Whole(0))
    return (
        Whole(one + first) >> bits,
        Whole(two + third) >> bits,
        Whole(three + fifth) >> bits,
        Whole(four + seventh) >> bits,
        Whole(four - seventh) >> bits,
        Whole(three - fifth) >> bits,
        Whole(two - third) >> bits,
        Whole(one - first) >> bits,
    )


@inlined
def _odd(
    a: np.int32, b: np.int32, c: np.int32, d: np.int32, rest: np.int32
) -> tuple[np.int32, np.int32, np.int32, np.int32]:
    """Odd coefficients from differences of samples, by distance from the ends; or the other way round.

    Factors are sums of cosines, times 2^13.
    """
    common = Whole(9633 * (a + b + c + d) + rest)
    ends, inner, even, odd = Whole(7373 * (a + d)), Whole(20995 * (b + c)), Whole(16069 * (b + d)), Whole(3196 * (a + c))
    return (
        Whole(12299 * a + common - ends - odd),
        Whole(25172 * b + common - inner - even),
        Whole(16819 * c + common - inner - odd),
        Whole(2446 * d + common - ends - even),
    )


@inlined
def _rounded(coefficient: np.int32, step: np.int32, inverse: np.float32, half: np.float32) -> np.int32:
    """The multiple of the step that is nearest to an eighth of the coefficient."""
    eighth = np.float32(Whole(coefficient)) * inverse
    return Whole(Whole(eighth + (half if coefficient > 0 else -half)) * step)


@inlined
def _byte(level: np.int32) -> np.uint8:
    level = level if level > 0 else Whole(0)
    return np.uint8(level if level < 255 else Whole(255))


@inlined
def _level(word: np.uint32, bits: int) -> np.int32:
    """One of four bytes, about 0."""
    return Whole(Whole((word >> np.uint32(bits)) & np.uint32(255)) - 128)


@inlined
def _word(a: np.int32, b: np.int32, c: np.int32, d: np.int32) -> np.uint32:
    first, second, third, last = np.uint32(_byte(a)), np.uint32(_byte(b)), np.uint32(_byte(c)), np.uint32(_byte(d))
    return np.uint32(first | second << np.uint32(8) | third << np.uint32(16) | last << np.uint32(24))


@compiled
def _quantise(words: Words, steps: NDArray[np.int32], inverses: Steps, halves: Steps, own: NDArray[np.int32]) -> None:
    """Rounds the coefficients of all blocks and writes their samples back.

    `own` has a row for each place in a block, by column and then by line, with what so many blocks have there.
    """
    length = words.size // 8
    for start in range(0, length // 2, BLOCKS):
        blocks = min(BLOCKS, length // 2 - start)
        for line in range(8):
            these = words[line * length + 2 * start : line * length + 2 * (start + blocks)]
            at = line * BLOCKS
            for n in range(blocks):
                left, right = these[2 * n], these[2 * n + 1]
                (
                    own[at + n],
                    own[at + 8 * BLOCKS + n],
                    own[at + 16 * BLOCKS + n],
                    own[at + 24 * BLOCKS + n],
                    own[at + 32 * BLOCKS + n],
                    own[at + 40 * BLOCKS + n],
                    own[at + 48 * BLOCKS + n],
                    own[at + 56 * BLOCKS + n],
                ) = _forward(
                    _level(left, 0),
                    _level(left, 8),
                    _level(left, 16),
                    _level(left, 24),
                    _level(right, 0),
                    _level(right, 8),
                    _level(right, 16),
                    _level(right, 24),
                    BITS - 2,
                )
        for column in range(8):
            step = steps[8 * column : 8 * column + 8]
            inverse, half = inverses[8 * column : 8 * column + 8], halves[8 * column : 8 * column + 8]
            at = column * 8 * BLOCKS
            for n in range(blocks):
                a, b, c, d, e, f, g, h = _forward(
                    own[at + n],
                    own[at + BLOCKS + n],
                    own[at + 2 * BLOCKS + n],
                    own[at + 3 * BLOCKS + n],
                    own[at + 4 * BLOCKS + n],
                    own[at + 5 * BLOCKS + n],
                    own[at + 6 * BLOCKS + n],
                    own[at + 7 * BLOCKS + n],
                    BITS + 2,
                )
                (
                    own[at + n],
                    own[at + BLOCKS + n],
                    own[at + 2 * BLOCKS + n],
                    own[at + 3 * BLOCKS + n],
                    own[at + 4 * BLOCKS + n],
                    own[at + 5 * BLOCKS + n],
                    own[at + 6 * BLOCKS + n],
                    own[at + 7 * BLOCKS + n],
                ) = _inverse(
                    _rounded(a, step[0], inverse[0], half[0]),
                    _rounded(b, step[1], inverse[1], half[1]),
                    _rounded(c, step[2], inverse[2], half[2]),
                    _rounded(d, step[3], inverse[3], half[3]),
                    _rounded(e, step[4], inverse[4], half[4]),
                    _rounded(f, step[5], inverse[5], half[5]),
                    _rounded(g, step[6], inverse[6], half[6]),
                    _rounded(h, step[7], inverse[7], half[7]),
                    Whole(1 << (BITS - 3)),
                    BITS - 2,
                )
        for line in range(8):
            these = words[line * length + 2 * start : line * length + 2 * (start + blocks)]
            at = line * BLOCKS
            for n in range(blocks):
                a, b, c, d, e, f, g, h = _inverse(
                    own[at + n],
                    own[at + 8 * BLOCKS + n],
                    own[at + 16 * BLOCKS + n],
                    own[at + 24 * BLOCKS + n],
                    own[at + 32 * BLOCKS + n],
                    own[at + 40 * BLOCKS + n],
                    own[at + 48 * BLOCKS + n],
                    own[at + 56 * BLOCKS + n],
                    Whole((128 << (BITS + 5)) + (1 << (BITS + 4))),
                    BITS + 5,
                )
                these[2 * n], these[2 * n + 1] = _word(a, b, c, d), _word(e, f, g, h)
