"""The perturbation sequences again, slow and obvious: formulas of the frame number, Pillow, SciPy and double precision.

What is random takes its draws as an argument. Slips of the published frames are kept: `CENTRE` and the shear of `affine`,
the sheet of `tilt` at depth 1, means of `zoom_blur` in single precision from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow
from scipy import ndimage
from skimage.color import hsv2rgb, rgb2hsv

from corruptions.reference_blur import motion_places
from shiftproof.types import Image

SIZES = {"imagenet-224": 224, "inception-299": 299, "tiny-64": 64, "cifar-32": 32}
SHORTER = {"imagenet-224": 256, "tiny-64": 64}
"""Editions that resized the shorter side and cut the middle out, ``Resize(64)`` and ``CenterCrop(64)``."""
FRAMES = {"translate": (41, 41, 31, 16), "motion_blur": (31, 31, 31, 21)}
CENTRE = 0.5
"""How far right and down of the middle the published affine maps turn."""

Draws = NDArray[np.generic]
Figure = TypeVar("Figure")


MOVING = (
    *("motion_blur", "zoom_blur", "snow", "brightness", "translate", "rotate"),
    *("tilt", "scale", "gaussian_blur", "spatter", "shear"),
)
"""The published sequences of which `sequence` has a slow version."""


def frame_count(name: str, edition: str) -> int:
    return FRAMES.get(name, (31,) * 4)[list(SIZES).index(edition)]


# --- what an edition is made from


def resized(image: Image, width: int, height: int) -> Image:
    return np.asarray(Pillow.fromarray(image).resize((width, height), Pillow.Resampling.BILINEAR))


def cropped(image: Image, height: int, width: int) -> Image:
    top, left = round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2)
    return np.asarray(Pillow.fromarray(image).crop((left, top, left + width, top + height)))


def resize_shorter(image: Image, length: int) -> Image:
    height, width = image.shape[:2]
    shorter = min(height, width)
    return resized(image, int(length * width / shorter), int(length * height / shorter))


def inner_299(image: Image) -> Image:
    height, width = image.shape[:2]
    return resized(cropped(image, int(0.875 * height), int(0.875 * width)), 299, 299)


def picture(image: Image, edition: str) -> Image:
    """The clean picture of an edition."""
    if edition in SHORTER:
        return cropped(resize_shorter(image, SHORTER[edition]), SIZES[edition], SIZES[edition])
    if edition == "inception-299":
        return inner_299(image)
    return resized(image, SIZES[edition], SIZES[edition])


def moved(image: Image, edition: str, move: Callable[[Image], Image], *, late: bool = False) -> Image:
    """A frame of a geometric sequence: the move comes before the crop, and at 299 before the resize unless it is `late`."""
    if edition in SHORTER:
        return cropped(move(resize_shorter(image, SHORTER[edition])), SIZES[edition], SIZES[edition])
    if edition == "inception-299":
        return move(inner_299(image)) if late else inner_299(move(image))
    return move(picture(image, edition))


# --- the moves


def affine(
    image: Image, *, angle: float = 0, right: float = 0, scale: float = 1, shear: float = 0, nearest: bool = False
) -> Image:
    height, width = image.shape[:2]
    x, y = width * 0.5 + CENTRE, height * 0.5 + CENTRE
    turn, slant = math.radians(angle), math.radians(angle) + math.radians(shear)
    determinant = math.cos(slant) * math.cos(turn) + math.sin(slant) * math.sin(turn)
    back = [math.cos(slant), math.sin(slant), 0.0, -math.sin(turn), math.cos(turn), 0.0]
    back = [1.0 / scale / determinant * entry for entry in back]
    back[2] = back[0] * (-x - right) + back[1] * -y + x
    back[5] = back[3] * (-x - right) + back[4] * -y + y
    rule = Pillow.Resampling.NEAREST if nearest else Pillow.Resampling.BILINEAR
    return np.asarray(Pillow.fromarray(image).transform((width, height), Pillow.Transform.AFFINE, tuple(back), rule))


def tilt(image: Image, degrees: float) -> Image:
    height, width = image.shape[:2]
    angle, focal = np.deg2rad(degrees), np.sqrt(width**2 + height**2)
    centred = np.array([[1, 0, -width / 2], [0, 1, -height / 2], [0, 0, 1], [0, 0, 1]])
    about_x = rotation(angle, 1, 2)
    about_y = rotation(angle, 0, 2)
    away = np.eye(4)
    away[2, 3] = focal
    projected = np.array([[focal, 0, width / 2, 0], [0, focal, height / 2, 0], [0, 0, 1, 0]])
    back = np.linalg.inv(projected @ away @ about_x @ about_y @ centred)
    rows, columns = np.mgrid[0:height, 0:width]
    x, y, depth = np.tensordot(back, np.stack([columns, rows, np.ones_like(rows)]), axes=1)
    layers = [
        ndimage.map_coordinates(np.pad(image[..., channel].astype(float), 1), [y / depth + 1, x / depth + 1], order=1)
        for channel in range(3)
    ]
    return to_bytes(np.rint(np.stack(layers, axis=2)))


def rotation(angle: float, first: int, second: int) -> NDArray[np.float64]:
    turned = np.eye(4)
    turned[first, first] = turned[second, second] = np.cos(angle)
    turned[first, second], turned[second, first] = -np.sin(angle), np.sin(angle)
    return turned


# --- what happens to the picture


def to_bytes(levels: NDArray[np.float64]) -> Image:
    """Cut, not rounded; whole numbers that a rounding error left just below themselves stay whole."""
    return np.asarray(np.floor(levels + 1e-9), np.uint8)


def motion(image: NDArray[np.uint8], radius: int, sigma: float, degrees: float) -> NDArray[np.uint8]:
    weights = np.array([math.exp(-(step**2) / (2 * sigma**2)) for step in range(2 * radius + 1)])
    weights /= weights.sum()
    height, width = image.shape[:2]
    margin = 2 * radius + 1
    around = np.pad(image, [(margin, margin), (margin, margin), (0, 0)][: image.ndim], mode="edge").astype(float)
    total = np.zeros(image.shape)
    for (down, right), weight in zip(motion_places(radius, degrees), weights, strict=True):
        total += weight * around[margin + down :, margin + right :][:height, :width]
    sixteen_bits = np.floor(total * 257 + 0.5)  # what ImageMagick keeps before it cuts to bytes
    return (sixteen_bits // 257).astype(np.uint8)


def brightness(hsv: NDArray[np.float64], lift: float) -> Image:
    lifted = np.concatenate([hsv[..., :2], np.clip(hsv[..., 2:] + lift, 0, 1)], axis=2)
    return np.asarray(hsv2rgb(lifted) * 255, np.uint8)  # cut as it comes: the last bit of the detour decides


def gaussian_blur(image: Image, sigma: float, truncate: float) -> Image:
    blurred = ndimage.gaussian_filter(image / 255, (sigma, sigma, 0), mode="nearest", truncate=truncate)
    return to_bytes(blurred * 255)


def snow(image: Image, flakes: NDArray[np.uint8], kept: float) -> Image:
    pixels, falling = image / 255, flakes[..., None] / 255
    grey = pixels @ np.array([0.299, 0.587, 0.114])
    pale = kept * pixels + (1 - kept) * np.maximum(pixels, 1.5 * grey[..., None] + 0.5)
    return to_bytes(np.clip(pale + falling + np.rot90(falling, 2), 0, 1) * 255)


def water(image: Image, layer: Draws, opacity: float) -> Image:
    liquid = (layer * 255).astype(np.uint8)
    distance = np.minimum(cv2.distanceTransform(255 - cv2.Canny(liquid, 50, 150), cv2.DIST_L2, 5), 20)
    relief = cv2.equalizeHist(cv2.blur(distance, (3, 3)).astype(np.uint8))
    relief = cv2.filter2D(relief, cv2.CV_8U, np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2.0]]))
    shine = liquid * cv2.blur(relief, (3, 3)).astype(float)
    if shine.max() == 0:
        return image
    colour = np.array([175, 238, 238]) / 255
    shown = np.clip(image / 255 + (shine / shine.max() * opacity)[..., None] * colour, 0, 1)
    return to_bytes(shown * 255)


# --- the sequences; `per` picks the figure of an edition in the order of SIZES


def sequence(name: str, image: Image, edition: str, draws: Draws | None = None) -> Iterator[Image]:
    """The frames of a sequence that is not noise; `draws` are the flakes of snow, or the layer of spatter."""

    def per(*figures: Figure) -> Figure:
        return figures[list(SIZES).index(edition)]

    clean = picture(image, edition)
    layer = np.zeros(0) if draws is None else draws.astype(np.float64)
    total = np.zeros(clean.shape, np.float32)
    hsv = rgb2hsv(clean / 255) if name == "brightness" else np.zeros(0)
    for i in range(frame_count(name, edition)):
        match name:
            case "motion_blur":
                radius, sigma = per((10, 3), (13, 3), (14, 3), (6, 1.8))
                degrees = per(4 * (i - 30), 4 * (i - 30), 5 * (i - 30), 9 * (i - 20))
                yield (
                    cropped(resize_shorter(motion(image, radius, sigma, degrees), 64), 64, 64)
                    if edition == "tiny-64"
                    else motion(clean, radius, sigma, degrees)
                )
            case "zoom_blur":
                zoomed = moved(image, edition, lambda before: affine(before, scale=1 + 0.004 * i), late=True)  # noqa: B023
                total += zoomed.astype(np.float32) / np.float32(255)
                yield (total / np.float32(i + 1) * np.float32(255)).astype(np.uint8)
            case "snow":
                radius, sigma = per((14, 4), (14, 4), (10, 2.5), (10, 2))
                yield snow(clean, motion(layer.astype(np.uint8), radius, sigma, 4 * i - 150), 0.85)
            case "brightness":
                yield brightness(hsv, (i - 15) * per(2, 2, 2, 1.5) / 100)
            case "translate":
                pixels = i - per(20, 20, 15, 7)
                yield moved(image, edition, lambda before: affine(before, right=pixels, nearest=True))  # noqa: B023
            case "rotate":
                yield moved(image, edition, lambda before: affine(before, angle=i - 15))  # noqa: B023
            case "shear":
                yield moved(image, edition, lambda before: affine(before, shear=i - 15))  # noqa: B023
            case "tilt":
                angle = per(1, 1, 1, 0.75) * (i - 15)
                yield moved(image, edition, lambda before: tilt(before, angle))  # noqa: B023
            case "scale":
                share = per(2.5 * i + 40, 2.5 * i + 40, 2.5 * i + 40, 2 * i + 70) / 100
                yield moved(image, edition, lambda before: affine(before, scale=share), late=True)  # noqa: B023
            case "gaussian_blur":
                sigma = per(0.25 + 0.035 * i, 0.35 + 0.035 * i, 0.35 + 0.014 * i, 0.3 + 0.015 * i)
                yield gaussian_blur(clean, sigma, per(6, 6, 7, 7))
            case "spatter":
                yield water(clean, layer, 0.6)
                drip = per([0.05, 0.1, 0.15, 0.7], [0.05, 0.1, 0.15, 0.7], [0.2, 0.8], [0.2, 0.8])
                layer = np.stack([np.convolve(column, drip, mode="same") for column in layer.T], axis=1)
