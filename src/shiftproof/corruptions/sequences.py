"""Perturbation sequences (ImageNet-P): one image as a short film in which little changes from frame to frame.

The parameters are those of the authors' generator (Hendrycks & Dietterich, 2019), by edition and level. What moves begins at
`first` and goes on by `step` a frame: degrees, pixels or percent, as the sequence's own docstring says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import noise
from shiftproof.corruptions.editions import DEFAULT_EDITION, centre, edition_of, plain, resized_whole, shorter_side
from shiftproof.corruptions.entry import Parameter, Perturbation, Severities, check_kernels, perturbation_of
from shiftproof.errors import BadInput
from shiftproof.randomness import rng_for
from shiftproof.types import Image

Frames: TypeAlias = NDArray[np.uint8]
"""One image after the other, (frames, height, width, 3)."""


def perturb(
    image: Image, name: str, level: int = 1, *, seed: int = 0, key: str = "", edition: str = DEFAULT_EDITION
) -> Frames:
    """The frames of a perturbation sequence, of the edition's size, made from an image that is not cropped yet.

    The same (seed, name, level, edition, key) draws the same random numbers: give each image of a dataset its own `key`.

    >>> photo = np.full((300, 400, 3), 128, np.uint8)
    >>> perturb(photo, "translate").shape, perturb(photo, "rotate", edition="cifar-32").shape
    ((41, 224, 224, 3), (31, 32, 32, 3))
    """
    parameters = parameters_of(name, level, edition)
    check_kernels(f"perturbation {name!r}")
    from shiftproof.corruptions.apply import to_rgb

    size, make = edition_of(edition).size, perturbation_of(name).function
    rng = rng_for(key, f"sequence\0{name}\0{level}\0{edition}", seed)
    canvas = canvas_for(name, to_rgb(image), edition)
    frames = np.empty((int(parameters["frames"]), size, size, 3), np.uint8)
    count = 0
    for count, frame in enumerate(make(canvas, rng, **parameters), start=1):
        if count <= len(frames):
            frames[count - 1] = to_frame(frame, edition)
    if count != len(frames):
        raise BadInput(f"perturbation {name!r} should yield {len(frames)} frames, got {count}")
    return frames


def parameters_of(name: str, level: int = 1, edition: str = DEFAULT_EDITION) -> dict[str, Parameter]:
    """The parameters of a sequence at this level of this edition.

    >>> parameters_of("gaussian_noise", 2), parameters_of("tilt", edition="cifar-32")
    ({'spread': 0.05, 'frames': 31}, {'first': -11.25, 'step': 0.75, 'frames': 31})
    """
    column = edition_of(edition).severities
    check_level(name, level)
    return perturbation_of(name).levels.at(level, column)


def check_level(name: str, level: int) -> None:
    """UnknownName or BadInput where there is no such sequence or level."""
    levels = len(perturbation_of(name).levels)
    if level in range(1, levels + 1):
        return
    if levels > 1:
        raise BadInput(f"level of {name} should be 1 to {levels}, got {level}")
    raise BadInput(
        f"{name} has level 1 alone, got {level}: what makes a sequence that moves more difficult is the step between the "
        "frames compared, as in flip_probability(predictions, step=2)"
    )


@dataclass(frozen=True)
class Canvas:
    """An image and the window of it that every frame shows: what lies around the window can move into it."""

    image: Image
    top: int
    left: int
    height: int
    width: int

    @cached_property
    def picture(self) -> Image:
        """What the window shows while nothing moves."""
        window = self.image[self.top : self.top + self.height, self.left : self.left + self.width]
        return np.ascontiguousarray(window)


def whole(image: Image) -> Canvas:
    """The image without surroundings: what moves in is black."""
    return Canvas(image, 0, 0, *image.shape[:2])


def middle(image: Image, height: int, width: int) -> Canvas:
    """The image with a window in its middle."""
    return Canvas(image, round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2), height, width)


def canvas_for(name: str, image: Image, edition: str) -> Canvas:
    """The image as this sequence of this edition was made from it."""
    chosen = edition_of(edition)
    if edition in perturbation_of(name).before_resizing:
        return middle(plain(image), *(max(1, int(chosen.middle * side)) for side in image.shape[:2]))
    if chosen.sequence_side is not None:
        return middle(plain(shorter_side(image, chosen.sequence_side)), chosen.size, chosen.size)
    return whole(plain(chosen.picture(image)))


def to_frame(frame: Image, edition: str) -> Image:
    """What was made before resizing, at the edition's size; what has that size already stays as it is.

    Published motion blur at 64 pixels kept the image's aspect, a slip that no network can use: our frames are square, of
    tiny-64 the middle of the shorter side as in its other sequences.
    """
    chosen = edition_of(edition)
    if chosen.sequence_side is not None:
        return centre(shorter_side(frame, chosen.size), chosen.size, chosen.size)
    return resized_whole(frame, chosen.size, chosen.size)


def gaussian_noise(canvas: Canvas, rng: np.random.Generator, *, spread: float, frames: int) -> Iterator[Image]:
    """The image, then independent Gaussian noise of standard deviation `spread` in every frame."""
    yield canvas.picture
    for _ in range(1, frames):
        yield noise.gaussian_noise(canvas.picture, rng, spread=spread)


GAUSSIAN_NOISE = Perturbation(
    gaussian_noise,
    "gaussian noise",
    Severities(
        "spread frames",
        imagenet_224=((0.03, 31), (0.05, 31), (0.08, 31)),
        inception_299=((0.035, 31), (0.055, 31), (0.085, 31)),
        tiny_64=((0.025, 31), (0.05, 31), (0.075, 31)),
        cifar_32=((0.02, 31), (0.04, 31), (0.06, 31)),
    ),
    imagenet_p=True,
    independent_frames=True,
)


def shot_noise(canvas: Canvas, rng: np.random.Generator, *, photons: float, frames: int) -> Iterator[Image]:
    """The image, then independent Poisson noise in every frame; `photons` is the rate of white."""
    yield canvas.picture
    for _ in range(1, frames):
        yield noise.shot_noise(canvas.picture, rng, photons=photons)


SHOT_NOISE = Perturbation(
    shot_noise,
    "shot noise",
    Severities(
        "photons frames",
        imagenet_224=((300, 31), (120, 31), (60, 31)),
        inception_299=((250, 31), (100, 31), (50, 31)),
        tiny_64=((500, 31), (250, 31), (125, 31)),
        cifar_32=((700, 31), (400, 31), (200, 31)),
    ),
    imagenet_p=True,
    independent_frames=True,
)


def speckle_noise(canvas: Canvas, rng: np.random.Generator, *, spread: float, frames: int) -> Iterator[Image]:
    """The image, then independent multiplicative Gaussian noise in every frame."""
    yield canvas.picture
    for _ in range(1, frames):
        yield noise.speckle_noise(canvas.picture, rng, spread=spread)


SPECKLE_NOISE = Perturbation(
    speckle_noise,
    "speckle noise",
    Severities(
        "spread frames",
        imagenet_224=((0.05, 31), (0.1, 31), (0.15, 31)),
        inception_299=((0.06, 31), (0.11, 31), (0.16, 31)),
        tiny_64=((0.05, 31), (0.1, 31), (0.15, 31)),
        cifar_32=((0.05, 31), (0.07, 31), (0.1, 31)),
    ),
    independent_frames=True,
)


def motion_blur(
    canvas: Canvas, _: np.random.Generator, *, radius: float, sigma: float, first: float, step: float, frames: int
) -> Iterator[Image]:
    """Motion blur with an angle that rotates by `step` degrees per frame."""
    from shiftproof.corruptions.kernels.filters import motion

    for frame in range(frames):
        yield motion(canvas.picture, radius, sigma, first + step * frame)


MOTION_BLUR = Perturbation(
    motion_blur,
    "motion blur",
    Severities(
        "radius sigma first step frames",
        imagenet_224=((10, 3, -120, 4, 31),),
        inception_299=((13, 3, -120, 4, 31),),
        tiny_64=((14, 3, -150, 5, 31),),
        cifar_32=((6, 1.8, -180, 9, 21),),
    ),
    imagenet_p=True,
    before_resizing=frozenset({"imagenet-64", "tiny-64"}),
)


def gaussian_blur(
    canvas: Canvas, _: np.random.Generator, *, first: float, step: float, truncate: float, frames: int
) -> Iterator[Image]:
    """Gaussian blur whose sigma grows by `step` per frame; the kernel is truncated at `truncate` sigmas."""
    import cv2

    # double precision: a window much narrower than a pixel leaves samples just below or above a whole level
    pixels = canvas.picture.astype(np.float64)
    for frame in range(frames):
        sigma = first + step * frame
        window = cv2.getGaussianKernel(2 * int(truncate * sigma + 0.5) + 1, sigma, cv2.CV_64F)
        blurred = cv2.sepFilter2D(pixels, cv2.CV_64F, window, window, borderType=cv2.BORDER_REPLICATE)
        yield (blurred + 1e-9).astype(np.uint8)


GAUSSIAN_BLUR = Perturbation(
    gaussian_blur,
    "gaussian blur",
    Severities(
        "first step truncate frames",
        imagenet_224=((0.25, 0.035, 6, 31),),
        inception_299=((0.35, 0.035, 6, 31),),
        tiny_64=((0.35, 0.014, 7, 31),),
        cifar_32=((0.3, 0.015, 7, 31),),
    ),
)


def zoom_blur(canvas: Canvas, _: np.random.Generator, *, step: float, frames: int) -> Iterator[Image]:
    """Zoom blur: each frame is the mean of all zooms so far, from 1 in steps of `step`."""
    from shiftproof.corruptions.kernels.blur import add_to_mean
    from shiftproof.corruptions.kernels.geometry import about_middle, warped

    total = np.zeros(canvas.picture.shape, np.float32)
    for frame in range(frames):
        zoomed = warped(canvas, about_middle(canvas.image, scale=1 + step * frame))
        mean = np.empty_like(zoomed)
        add_to_mean(zoomed.reshape(-1), total.reshape(-1), frame + 1, mean.reshape(-1))
        yield mean


ZOOM_BLUR = Perturbation(
    zoom_blur,
    "zoom blur",
    Severities(
        "step frames",
        imagenet_224=((0.004, 31),),
        inception_299=((0.004, 31),),
        tiny_64=((0.004, 31),),
        cifar_32=((0.004, 31),),
    ),
    imagenet_p=True,
)


def brightness(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """Brightness from dark to bright, in percent of the full range."""
    from shiftproof.corruptions.kernels.colour import brightened

    for frame in range(frames):
        yield brightened(canvas.picture, (first + step * frame) / 100)


BRIGHTNESS = Perturbation(
    brightness,
    "brightness",
    Severities(
        "first step frames",
        imagenet_224=((-30, 2, 31),),
        inception_299=((-30, 2, 31),),
        tiny_64=((-30, 2, 31),),
        cifar_32=((-22.5, 1.5, 31),),
    ),
    imagenet_p=True,
)


def snow(
    canvas: Canvas,
    rng: np.random.Generator,
    *,
    mean: float,
    spread: float,
    zoom: float,
    threshold: float,
    radius: float,
    sigma: float,
    kept: float,
    first: float,
    step: float,
    frames: int,
) -> Iterator[Image]:
    """The same snowflakes in every frame, with a blur angle that rotates by `step` degrees per frame."""
    from shiftproof.corruptions.kernels.filters import motion
    from shiftproof.corruptions.kernels.weather import snow_layer, snowed

    shape = canvas.picture.shape
    layer = snow_layer(rng, shape, mean=mean, spread=spread, zoom=zoom, threshold=threshold)
    for frame in range(frames):
        yield snowed(canvas.picture, motion(layer, radius, sigma, first + step * frame), kept)


SNOW = Perturbation(
    snow,
    "snow",
    Severities(
        "mean spread zoom threshold radius sigma kept first step frames",
        imagenet_224=((0.05, 0.3, 3, 0.5, 14, 4, 0.85, -150, 4, 31),),
        inception_299=((0.05, 0.3, 3, 0.5, 14, 4, 0.85, -150, 4, 31),),
        tiny_64=((0.05, 0.28, 2, 0.5, 10, 2.5, 0.85, -150, 4, 31),),
        cifar_32=((0.05, 0.3, 2, 0.5, 10, 2, 0.85, -150, 4, 31),),
    ),
    imagenet_p=True,
)


def spatter(
    canvas: Canvas,
    rng: np.random.Generator,
    *,
    mean: float,
    spread: float,
    sigma: float,
    threshold: float,
    opacity: float,
    below: float,
    here: float,
    above: float,
    higher: float,
    frames: int,
) -> Iterator[Image]:
    """Drops of water that run down: a pixel next has these shares of what lay `below` it, `here`, `above` and `higher`."""
    from shiftproof.corruptions.kernels.weather import spatter_layer, water

    shape = canvas.picture.shape
    # double precision: rims of drops are found by thresholds, and rounding errors would add up from frame to frame
    layer = spatter_layer(rng, shape, mean=mean, spread=spread, sigma=sigma, threshold=threshold).astype(np.float64)
    for _ in range(frames):
        yield water(canvas.picture, layer, opacity)
        padded = np.pad(layer, ((2, 1), (0, 0)))
        layer = below * padded[3:] + here * padded[2:-1] + above * padded[1:-2] + higher * padded[:-3]


SPATTER = Perturbation(
    spatter,
    "spatter",
    Severities(
        "mean spread sigma threshold opacity below here above higher frames",
        imagenet_224=((0.65, 0.27, 3.7, 0.69, 0.6, 0.05, 0.1, 0.15, 0.7, 31),),
        inception_299=((0.65, 0.3, 4, 0.69, 0.6, 0.05, 0.1, 0.15, 0.7, 31),),
        tiny_64=((0.6, 0.25, 1.75, 0.7, 0.6, 0, 0.2, 0.8, 0, 31),),
        cifar_32=((0.6, 0.265, 1.75, 0.7, 0.6, 0, 0.2, 0.8, 0, 31),),
    ),
)


def translate(canvas: Canvas, _: np.random.Generator, *, first: int, step: int, frames: int) -> Iterator[Image]:
    """Translation from left to right, in whole pixels."""
    for frame in range(frames):
        yield _shifted(canvas, first + step * frame)


TRANSLATE = Perturbation(
    translate,
    "translate",
    Severities(
        "first step frames",
        imagenet_224=((-20, 1, 41),),
        inception_299=((-20, 1, 41),),
        tiny_64=((-15, 1, 31),),
        cifar_32=((-7, 1, 16),),
    ),
    imagenet_p=True,
    before_resizing=frozenset({"inception-299"}),
    also_called=("translation", "affine"),
)


def _shifted(canvas: Canvas, right: int) -> Image:
    shown = np.zeros((canvas.height, canvas.width, 3), np.uint8)
    begin = min(max(right - canvas.left, 0), canvas.width)
    end = max(min(canvas.image.shape[1] + right - canvas.left, canvas.width), begin)
    source = canvas.left - right
    rows = canvas.image[canvas.top : canvas.top + canvas.height]
    shown[:, begin:end] = rows[:, source + begin : source + end]
    return shown


def rotate(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """Clockwise rotation, in degrees."""
    from shiftproof.corruptions.kernels.geometry import about_middle, warped

    for frame in range(frames):
        yield warped(canvas, about_middle(canvas.image, angle=first + step * frame))


ROTATE = Perturbation(
    rotate,
    "rotate",
    Severities(
        "first step frames",
        imagenet_224=((-15, 1, 31),),
        inception_299=((-15, 1, 31),),
        tiny_64=((-15, 1, 31),),
        cifar_32=((-15, 1, 31),),
    ),
    imagenet_p=True,
    before_resizing=frozenset({"inception-299"}),
    also_called=("rotation", "affine"),
)


def tilt(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """Perspective tilt about both axes, in degrees."""
    import cv2

    height, width = canvas.image.shape[:2]
    to_window = np.array([[1.0, 0.0, -canvas.left], [0.0, 1.0, -canvas.top], [0.0, 0.0, 1.0]])
    for frame in range(frames):
        seen = to_window @ tilted(height, width, first + step * frame)
        yield np.asarray(cv2.warpPerspective(canvas.image, seen, (canvas.width, canvas.height)), np.uint8)


TILT = Perturbation(
    tilt,
    "tilt",
    Severities(
        "first step frames",
        imagenet_224=((-15, 1, 31),),
        inception_299=((-15, 1, 31),),
        tiny_64=((-15, 1, 31),),
        cifar_32=((-11.25, 0.75, 31),),
    ),
    imagenet_p=True,
    before_resizing=frozenset({"inception-299"}),
)


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


def scale(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """Zoom, in percent."""
    from shiftproof.corruptions.kernels.geometry import about_middle, warped

    for frame in range(frames):
        yield warped(canvas, about_middle(canvas.image, scale=(first + step * frame) / 100))


SCALE = Perturbation(
    scale,
    "scale",
    Severities(
        "first step frames",
        imagenet_224=((40, 2.5, 31),),
        inception_299=((40, 2.5, 31),),
        tiny_64=((40, 2.5, 31),),
        cifar_32=((70, 2, 31),),
    ),
    imagenet_p=True,
    also_called=("scaling", "affine"),
)


def shear(canvas: Canvas, _: np.random.Generator, *, first: float, step: float, frames: int) -> Iterator[Image]:
    """Shear, in degrees of the vertical lines."""
    from shiftproof.corruptions.kernels.geometry import about_middle, warped

    for frame in range(frames):
        yield warped(canvas, about_middle(canvas.image, shear=first + step * frame))


SHEAR = Perturbation(
    shear,
    "shear",
    Severities(
        "first step frames",
        imagenet_224=((-15, 1, 31),),
        inception_299=((-15, 1, 31),),
        tiny_64=((-15, 1, 31),),
        cifar_32=((-15, 1, 31),),
    ),
    before_resizing=frozenset({"inception-299"}),
    also_called=("shearing", "affine"),
)
