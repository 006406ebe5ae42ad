"""The corruptions of ImageNet-C-bar and CIFAR-10-C-bar (Mintun et al., 2021), chosen to be unlike those of ImageNet-C.

`strength` is the number of the authors' tables, on a scale of 0 to 10. They made pictures of 224 and of 32 pixels: every
length is a share of the shorter side, and other editions take the strengths of ImageNet. Five corruptions are of both
datasets, five of ImageNet alone, five of CIFAR alone. Names are as published, slips of the pen included.
"""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.entry import Corruption, Severities
from shiftproof.types import Image

OF_IMAGENET, OF_CIFAR = frozenset({"imagenet-c-bar"}), frozenset({"cifar-c-bar"})
BOTH = OF_IMAGENET | OF_CIFAR

FULL_TURN = 2 * np.pi

MOST_CELLS = 1024
"""Cells of a checkerboard along either side; only on strips a hundred times as long as wide do they repeat."""

MANY_WHIRLS = 85
"""The shorter side from which on there are five whirls along it, as of 224 pixels, and not three, as of 32."""


def shorter_side(image: Image) -> int:
    return min(int(side) for side in image.shape[:2])


def blue_noise_sample(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Black pixels, spread evenly: where blue noise is low."""
    from shiftproof.corruptions.kernels.spectra import kept_above, noise_of, phases_needed

    height, width = image.shape[:2]
    phases = rng.uniform(0, FULL_TURN, phases_needed(height, width))
    return kept_above(image, noise_of(phases, height, width, brown=False), 0.3 * strength - 2.5)


BLUE_NOISE_SAMPLE = Corruption(
    blue_noise_sample,
    "blue noise sample",
    Severities("strength", (0.8, 1.6, 2.4, 4, 5.6), cifar_32=(0.7, 1.4, 2.1, 3.5, 4.2)),
    "c-bar",
    published_in=BOTH,
)


def brownish_noise(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Additive noise whose power falls with the frequency: clouds of colour."""
    from shiftproof.corruptions.kernels.spectra import noise_of, phases_needed, with_channel

    height, width = image.shape[:2]
    result = np.empty_like(image)
    for channel in range(3):
        phases = rng.uniform(0, FULL_TURN, phases_needed(height, width))
        with_channel(image, noise_of(phases, height, width, brown=True), 6.4 * strength, channel, result)
    return result


BROWNISH_NOISE = Corruption(
    brownish_noise,
    "brownish noise",
    Severities("strength", (1, 2, 3, 4, 5), cifar_32=(2.5, 4, 5.5, 6.5, 7)),
    "c-bar",
    published_in=BOTH,
)


def checkerboard_cutout(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Grey squares: some of one colour of a turned checkerboard."""
    from shiftproof.corruptions.kernels.overlays import under_checkerboard

    angle = rng.uniform(0, FULL_TURN)
    side = max(rng.uniform(0.1, 0.25) * shorter_side(image), 1.0)
    cells = min(int(4 * max(image.shape[:2]) // side), MOST_CELLS)
    return under_checkerboard(image, angle, side, rng.random((cells, cells)) < strength / 10)


CHECKERBOARD_CUTOUT = Corruption(
    checkerboard_cutout,
    "checkerboard cutout",
    Severities("strength", (2, 3, 4, 5, 6), cifar_32=(1, 2, 3, 4, 5)),
    "c-bar",
    also_called=("grid mask", "hide and seek"),
    published_in=BOTH,
)


def inverse_sparkles(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """White all around, but for a star-shaped opening near the middle."""
    from shiftproof.corruptions.kernels.overlays import seen_through_star

    centre = rng.uniform(0.25, 0.75, 2) * image.shape[:2]
    radius = shorter_side(image) / 4
    lengths = radius + 0.25 * radius * rng.standard_normal(rng.integers(50, 200))
    return seen_through_star(image, centre, lengths, 0.13 * strength)


INVERSE_SPARKLES = Corruption(
    inverse_sparkles,
    "inverse sparkles",
    Severities("strength", (1, 2, 4, 9, 10), cifar_32=(1, 1.5, 2.5, 4.5, 5)),
    "c-bar",
    published_in=BOTH,
)


def sparkles(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Five white stars with many rays."""
    from shiftproof.corruptions.kernels.overlays import under_stars

    centres = rng.uniform(0, 1, (5, 2)) * image.shape[:2]
    counts = rng.integers(50, 200, 5)
    radius = 0.01 * strength * shorter_side(image)
    lengths = np.maximum(1.0, radius + 0.25 * radius * rng.standard_normal(counts.sum()))
    return under_stars(image, centres, lengths, counts.cumsum())


SPARKLES = Corruption(
    sparkles,
    "sparkles",
    Severities("strength", (1, 2, 3, 5, 6), cifar_32=(0.7, 3.5, 5.6, 6.3, 7)),
    "c-bar",
    also_called=("sun flare", "lens flare"),
    published_in=BOTH,
)


def caustic_refraction(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """The image under moving water: refracted, and lit in bright lines."""
    from shiftproof.corruptions.kernels.lenses import under_water

    return under_water(image, rng.uniform(0.5, 2), rng.uniform(0.75, 1.25) * shorter_side(image), strength)


CAUSTIC_REFRACTION = Corruption(
    caustic_refraction,
    "caustic refraction",
    Severities("strength", (2.35, 3.2, 4.9, 6.6, 9.15)),
    "c-bar",
    published_in=OF_IMAGENET,
)


def cocentric_sine_waves(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Additive rings around a random centre, light and dark, bent like petals."""
    from shiftproof.corruptions.kernels.overlays import with_rings

    (height, width), widest = image.shape[:2], shorter_side(image) / 10
    centre_x, centre_y, petals = rng.uniform(0, width), rng.uniform(0, height), rng.uniform(0, 10)
    amplitude, ring_width = rng.uniform(0, widest), rng.uniform(0, widest)
    return with_rings(image, centre_x, centre_y, petals, amplitude, ring_width, 12.8 * strength)


COCENTRIC_SINE_WAVES = Corruption(
    cocentric_sine_waves,
    "cocentric sine waves",
    Severities("strength", (3, 5, 8, 9, 10)),
    "c-bar",
    published_in=OF_IMAGENET,
)


def perlin_noise(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """The image mixed with grey turbulence: five octaves of Perlin noise."""
    from shiftproof.corruptions.kernels.overlays import under_turbulence

    slopes, swaps = rng.integers(-256, 256, (256, 2)), rng.integers(0, 256, 256)
    return under_turbulence(image, slopes, swaps, 0.05 * strength)


PERLIN_NOISE = Corruption(
    perlin_noise,
    "Perlin noise",
    Severities("strength", (4.6, 5.2, 5.8, 7.6, 8.8)),
    "c-bar",
    published_in=OF_IMAGENET,
)


def plasma_noise(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """The image mixed with bent bands of changing colour."""
    from shiftproof.corruptions.kernels.overlays import under_plasma

    time, rounds, sharpness = rng.uniform(0, 3 * FULL_TURN), int(rng.integers(4, 7)), rng.uniform(0.5, 1)
    return under_plasma(image, time, rounds, sharpness, rng.uniform(0.075, 0.2) * shorter_side(image), 6.4 * strength)


PLASMA_NOISE = Corruption(
    plasma_noise,
    "plasma noise",
    Severities("strength", (4.75, 7, 8.5, 9.25, 10)),
    "c-bar",
    published_in=OF_IMAGENET,
)


def single_frequency_greyscale(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """An additive plane wave of one random frequency, the same in all channels."""
    from shiftproof.corruptions.kernels.overlays import with_sine_wave

    first = rng.uniform(-np.pi, np.pi)
    second = abs(first) * rng.uniform(-1, 1)
    across, down = rng.permutation([first, second])
    return with_sine_wave(image, across, down, rng.uniform(0, FULL_TURN), 19.6 * strength)


SINGLE_FREQUENCY_GREYSCALE = Corruption(
    single_frequency_greyscale,
    "single frequency greyscale",
    Severities("strength", (1, 1.5, 2, 4.5, 5)),
    "c-bar",
    also_called=("fourier noise", "patch fourier"),
    published_in=OF_IMAGENET,
)


def circular_motion_blur(image: Image, rng: np.random.Generator, *, strength: float) -> Image:  # noqa: ARG001
    """Motion blur of a camera that turns about the line of sight; corners darken."""
    from shiftproof.corruptions.kernels.lenses import turned

    return turned(image, 1.5 * strength)


CIRCULAR_MOTION_BLUR = Corruption(
    circular_motion_blur,
    "circular motion blur",
    Severities("strength", (2.8, 3.6, 4.4, 5.2, 6)),
    "c-bar",
    random=False,
    published_in=OF_CIFAR,
)


def lines(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Thin grey lines across the image, more or less in one direction."""
    from shiftproof.corruptions.kernels.overlays import under_lines

    length = shorter_side(image)
    angle, variation = rng.uniform(0, FULL_TURN), rng.uniform(0.1, 1)
    down, right, turns = rng.random((int(strength / 10 * length), 3)).T
    angles = angle + FULL_TURN * variation * (turns - 0.5)
    middles = np.stack([image.shape[0] * down, image.shape[1] * right])
    reach = length * np.stack([np.cos(angles), np.sin(angles)])
    return under_lines(image, np.concatenate([middles - reach, middles + reach]).T.astype(np.int64, order="C"))


LINES = Corruption(
    lines,
    "lines",
    Severities("strength", (0.5, 1, 1.5, 2, 2.5)),
    "c-bar",
    published_in=OF_CIFAR,
)


def pinch_and_twirl(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Whirls in a grid, each pinched and turned to a random side."""
    from shiftproof.corruptions.kernels.lenses import whirled

    count = 5 if shorter_side(image) >= MANY_WHIRLS else 3
    sides = np.array([1.0, -1.0])[rng.integers(0, 2, (count, count))]  # the draws of `choice`, which is slower
    return whirled(image, sides * (strength * np.pi / 20), 0.04 * strength + 0.1)


PINCH_AND_TWIRL = Corruption(
    pinch_and_twirl,
    "pinch and twirl",
    Severities("strength", (5.5, 6, 6.5, 8.5, 10)),
    "c-bar",
    also_called=("swirl",),
    published_in=OF_CIFAR,
)


def ripple(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Pixels displaced by a sine along either axis."""
    from shiftproof.corruptions.kernels.lenses import rippled

    side = shorter_side(image)
    return rippled(image, rng.uniform(0.1, 0.3, 2) * side, rng.uniform(0, FULL_TURN, 2), 0.0025 * strength * side)


RIPPLE = Corruption(
    ripple,
    "ripple",
    Severities("strength", (5.5, 6, 6.5, 7.5, 8)),
    "c-bar",
    published_in=OF_CIFAR,
)


def transverse_chromatic_abberation(image: Image, rng: np.random.Generator, *, strength: float) -> Image:
    """Channels enlarged by different factors, so that colours part towards the edges."""
    from shiftproof.corruptions.kernels.lenses import with_colours_apart

    return with_colours_apart(image, rng.permutation([1.0, 1 + 0.025 * strength, 1 + 0.05 * strength]))


TRANSVERSE_CHROMATIC_ABBERATION = Corruption(
    transverse_chromatic_abberation,
    "transverse chromatic aberration",
    Severities("strength", (1, 2, 5, 9, 10)),
    "c-bar",
    also_called=("chromatic aberration", "channel shift"),
    published_in=OF_CIFAR,
)
