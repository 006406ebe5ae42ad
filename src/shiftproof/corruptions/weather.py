"""Weather: snow, frost, fog, brightness and spatter."""

from __future__ import annotations

import numpy as np

from shiftproof.corruptions.entry import COLOUR_JITTER, Corruption, Severities
from shiftproof.types import Image


def snow(
    image: Image,
    rng: np.random.Generator,
    *,
    mean: float,
    spread: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    kept: float,
) -> Image:
    """The image whitened, and a layer of motion-blurred snowflakes added."""
    from shiftproof.corruptions.kernels.filters import motion
    from shiftproof.corruptions.kernels.weather import snow_layer, snowed

    layer = snow_layer(rng, image.shape[:2], mean=mean, spread=spread, zoom=zoom, threshold=threshold)
    return snowed(image, motion(layer, radius, sigma, rng.uniform(-135, -45)), kept)


SNOW = Corruption(
    snow,
    "snow",
    Severities(
        "mean spread zoom threshold radius sigma kept",
        imagenet_224=(
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        inception_299=(
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
        tiny_64=(
            (0.1, 0.2, 1, 0.6, 8, 3, 0.8),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.8),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.7),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        cifar_32=(
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        pixels="sigma",
        whole_pixels="radius",
    ),
    "weather",
)


def frost(
    image: Image,
    rng: np.random.Generator,
    *,
    image_weight: float,
    frost_weight: float,
    frost_scale: float,
    folder: str | None = None,
) -> Image:
    """Overlay of a random crop of a random frost picture, ours or a folder's."""
    from shiftproof.corruptions.frost_pictures import picture_covering
    from shiftproof.corruptions.kernels.weather import add_weighted

    height, width = image.shape[:2]
    picture = picture_covering(height, width, rng, scale=frost_scale, folder=folder)
    # as published, the last place where the picture would still cover the image is never drawn
    top = rng.integers(max(1, picture.shape[0] - height))
    left = rng.integers(max(1, picture.shape[1] - width))
    result = np.empty_like(image)
    add_weighted(image, picture, top, left, float(image_weight), float(frost_weight), result)
    return result


FROST = Corruption(
    frost,
    "frost",
    Severities(
        "image_weight frost_weight frost_scale",
        imagenet_224=((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
        inception_299=((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
        tiny_64=((1, 0.3, 0.3), (0.9, 0.4, 0.3), (0.8, 0.45, 0.3), (0.75, 0.5, 0.3), (0.7, 0.55, 0.3)),
        cifar_32=((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
        pixels="frost_scale",
    ),
    "weather",
    takes_frost=True,
)


def fog(image: Image, rng: np.random.Generator, *, strength: float, decay: float) -> Image:
    """Plasma-fractal (diamond-square) fog added, then rescaled to the image's own maximum."""
    from shiftproof.corruptions.kernels.fields import plasma
    from shiftproof.corruptions.kernels.weather import fogged, power_of_two

    height, width = image.shape[:2]
    return fogged(image, plasma(rng, power_of_two(max(height, width)), decay, height, width), strength)


FOG = Corruption(
    fog,
    "fog",
    Severities(
        "strength decay",
        imagenet_224=((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
        inception_299=((1.5, 2), (2, 2), (2.5, 1.8), (2.5, 1.6), (3, 1.5)),
        tiny_64=((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        cifar_32=((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
    ),
    "weather",
)


def brightness(image: Image, rng: np.random.Generator, *, lift: float) -> Image:  # noqa: ARG001
    """Increases the HSV value of every pixel by `lift` times the full range."""
    from shiftproof.corruptions.kernels.colour import brightened

    return brightened(image, lift)


BRIGHTNESS = Corruption(
    brightness,
    "brightness",
    Severities(
        "lift",
        imagenet_224=(0.1, 0.2, 0.3, 0.4, 0.5),
        inception_299=(0.1, 0.2, 0.3, 0.4, 0.5),
        tiny_64=(0.1, 0.2, 0.3, 0.4, 0.5),
        cifar_32=(0.05, 0.1, 0.15, 0.2, 0.3),
    ),
    "weather",
    random=False,
    also_called=COLOUR_JITTER,
    revision=2,
)


def spatter(
    image: Image,
    rng: np.random.Generator,
    *,
    mean: float,
    spread: float,
    sigma: float,
    threshold: float,
    finish: float,
    mud: bool,
) -> Image:
    """Spatter on the lens: water of opacity `finish`, or mud whose edges are blurred by `finish` pixels."""
    from shiftproof.corruptions.kernels.weather import muddied, spatter_layer, water

    layer = spatter_layer(rng, image.shape[:2], mean=mean, spread=spread, sigma=sigma, threshold=threshold)
    return muddied(image, layer, finish) if mud else water(image, layer, finish)


SPATTER = Corruption(
    spatter,
    "spatter",
    Severities(
        "mean spread sigma threshold finish mud",
        imagenet_224=(
            (0.65, 0.3, 4, 0.69, 0.6, False),
            (0.65, 0.3, 3, 0.68, 0.6, False),
            (0.65, 0.3, 2, 0.68, 0.5, False),
            (0.65, 0.3, 1, 0.65, 1.5, True),
            (0.67, 0.4, 1, 0.65, 1.5, True),
        ),
        inception_299=(
            (0.65, 0.3, 4, 0.69, 0.9, False),
            (0.65, 0.3, 3.5, 0.68, 0.9, False),
            (0.65, 0.3, 3, 0.68, 0.8, False),
            (0.65, 0.3, 1.2, 0.65, 1.8, True),
            (0.67, 0.4, 1.2, 0.65, 1.8, True),
        ),
        tiny_64=(
            (0.62, 0.1, 0.7, 0.7, 0.6, False),
            (0.65, 0.1, 0.8, 0.7, 0.6, False),
            (0.65, 0.3, 1, 0.69, 0.6, False),
            (0.65, 0.1, 0.7, 0.68, 0.6, True),
            (0.65, 0.1, 0.5, 0.67, 0.6, True),
        ),
        cifar_32=(
            (0.62, 0.1, 0.7, 0.7, 0.5, False),
            (0.65, 0.1, 0.8, 0.7, 0.5, False),
            (0.65, 0.3, 1, 0.69, 0.5, False),
            (0.65, 0.1, 0.7, 0.69, 0.6, True),
            (0.65, 0.1, 0.5, 0.68, 0.6, True),
        ),
        pixels="sigma",
    ),
    also_called=("weather",),
)
