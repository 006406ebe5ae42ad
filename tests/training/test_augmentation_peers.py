"""Second opinions on augmentations: Pillow's operations, and the policies of torchvision, timm and albumentations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from PIL import ImageEnhance, ImageFilter, ImageOps

from shiftproof.training.augmentations import operations as do
from shiftproof.training.augmentations.policies import _choices, augmix, augmix_choices
from shiftproof.training.augmentations.simple import _resized_crop
from shiftproof.types import Image

SHAPES = ((32, 32), (61, 90))


def drawn(height: int, width: int, seed: int = 0) -> Image:
    """A smooth picture with an edge, some noise, and neither black nor white."""
    down, right = np.mgrid[0:height, 0:width] / max(height, width)
    image = np.stack([40 + 150 * down, 210 - 150 * right, 127 + 80 * np.sin(7 * (down + right))], axis=2)
    image[height // 3 : height // 2, width // 4 : width // 2] = (200, 60, 90)
    picture: Image = np.clip(image + np.random.default_rng(seed).normal(0, 4, image.shape), 0, 255).astype(np.uint8)
    return picture


def affine(*figures: float, smooth: Pillow.Resampling = Pillow.Resampling.NEAREST) -> Callable[[Pillow.Image], Pillow.Image]:
    return lambda picture: picture.transform(picture.size, Pillow.Transform.AFFINE, figures, resample=smooth)


POINTWISE: Mapping[str, tuple[do.Operation, float, Callable[[Pillow.Image], Pillow.Image]]] = {
    "autocontrast": (do.autocontrast, 0, ImageOps.autocontrast),
    "equalize": (do.equalize, 0, ImageOps.equalize),
    "posterize 1": (do.posterize, 1, lambda picture: ImageOps.posterize(picture, 1)),
    "posterize 3": (do.posterize, 3, lambda picture: ImageOps.posterize(picture, 3)),
    "posterize 8": (do.posterize, 8, lambda picture: ImageOps.posterize(picture, 8)),
    "solarize 0": (do.solarize, 0, lambda picture: ImageOps.solarize(picture, 0)),
    "solarize 100": (do.solarize, 100, lambda picture: ImageOps.solarize(picture, 100)),
    "solarize 178.5": (do.solarize, 178.5, lambda picture: ImageOps.solarize(picture, 178.5)),  # type: ignore[arg-type]
    "solarize 256": (do.solarize, 256, lambda picture: ImageOps.solarize(picture, 256)),
    **{
        f"{operation.__name__} {change}": (
            operation,
            change,
            lambda picture, enhance=enhance, change=change: enhance(picture).enhance(1 + change),  # type: ignore[misc]
        )
        for operation, enhance in [
            (do.brightness, ImageEnhance.Brightness),
            (do.contrast, ImageEnhance.Contrast),
            (do.colour, ImageEnhance.Color),
            (do.sharpness, ImageEnhance.Sharpness),
        ]
        for change in (-0.99, -0.3, 0.4, 0.9)
    },
    "translate_x": (do.translate_x, 7, affine(1, 0, 7, 0, 1, 0)),
    "translate_x far": (do.translate_x, -999, affine(1, 0, -999, 0, 1, 0)),
    "translate_y": (do.translate_y, -5, affine(1, 0, 0, 0, 1, -5)),
    "translate_y far": (do.translate_y, 999, affine(1, 0, 0, 0, 1, 999)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", POINTWISE)
def test_an_operation_is_pillows_within_a_level(name: str, shape: tuple[int, int]) -> None:
    operation, figure, peer = POINTWISE[name]
    for picture in (drawn(*shape), drawn(*shape) // 3, np.full((*shape, 3), 77, np.uint8)):
        ours, theirs = operation(picture, figure), np.asarray(peer(Pillow.fromarray(picture)))
        apart = np.abs(ours.astype(int) - theirs)
        assert apart.max() <= 2
        assert (apart > 1).mean() < 0.01  # Pillow cuts twice where we round once


WARPS: Mapping[str, tuple[do.Operation, float, Any]] = {
    "shear_x": (do.shear_x, 0.3, lambda smooth: affine(1, 0.3, 0, 0, 1, 0, smooth=smooth)),
    "shear_y": (do.shear_y, -0.23, lambda smooth: affine(1, 0, 0, -0.23, 1, 0, smooth=smooth)),
    "rotate": (do.rotate, 30, lambda smooth: lambda picture: picture.rotate(30, resample=smooth)),
    "rotate back": (do.rotate, -131, lambda smooth: lambda picture: picture.rotate(-131, resample=smooth)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("name", WARPS)
def test_a_warp_is_pillows_but_for_its_border(name: str, smooth: bool, shape: tuple[int, int]) -> None:
    operation, figure, peer = WARPS[name]
    # noise would tell the fixed-point weights of the two apart, not where pixels come from
    picture = np.asarray(Pillow.fromarray(drawn(*shape)).filter(ImageFilter.GaussianBlur(1)))
    ours = operation(picture, figure, smooth=do.BILINEAR if smooth else do.NEAREST)  # type: ignore[call-arg]
    theirs = np.asarray(peer(Pillow.Resampling.BILINEAR if smooth else Pillow.Resampling.NEAREST)(Pillow.fromarray(picture)))
    outside = np.asarray(peer(Pillow.Resampling.NEAREST)(Pillow.fromarray(np.full_like(picture, 255)))) == 0
    apart = np.abs(ours.astype(int) - theirs).max(axis=2)
    # Pillow keeps the outermost half pixel, which is mixed with black here
    inside = ~_grown(outside.any(axis=2)) if smooth else ~outside.any(axis=2)
    assert inside.mean() > 0.3
    assert np.quantile(apart[inside], 0.99) <= (2 if smooth else 0)
    assert not ours[outside.any(axis=2) & (apart > 0)].any() or smooth


def _grown(mask: Any) -> Any:
    """The mask and two pixels about it, and at the frame."""
    padded = np.pad(mask, 2, constant_values=True)
    height, width = mask.shape
    return np.any([padded[down : down + height, right : right + width] for down in range(5) for right in range(5)], axis=0)


@pytest.mark.parametrize("wide", [False, True])
def test_the_operations_of_torchvisions_policies_are_ours(wide: bool) -> None:
    """Every operation at some magnitudes, both signs, by torchvision's own function on Pillow images."""
    autoaugment = pytest.importorskip("torchvision.transforms.autoaugment", exc_type=ImportError)
    from torchvision.transforms.functional import InterpolationMode

    policy = autoaugment.TrivialAugmentWide() if wide else autoaugment.RandAugment()
    space = policy._augmentation_space(31) if wide else policy._augmentation_space(31, (90, 120))
    choices = _choices(wide=wide)
    assert len(space) == len(choices)
    picture = drawn(90, 120)
    for choice, (name, (magnitudes, signed)) in zip(choices, space.items(), strict=True):
        assert choice.signed == signed
        for place in (3, 11, 23, 29):  # a shear by a fifth would ask for what lies just between two pixels
            magnitude = float(magnitudes[place]) if magnitudes.ndim else 0.0
            figure = choice.figure(place / 30, picture)
            for sign in (1, -1) if signed else (1,):
                ours = choice.operation(picture, sign * figure)
                # which way a sign points is a matter of taste: both come as often
                theirs = [
                    np.asarray(
                        autoaugment._apply_op(Pillow.fromarray(picture), name, turned, InterpolationMode.NEAREST, None)
                    )
                    for turned in ((magnitude, -magnitude) if signed else (magnitude,))
                ]
                apart = min(np.mean(np.abs(ours.astype(int) - one).max(axis=2) > 1) for one in theirs)
                assert apart < 0.03, (name, place, apart)


def test_the_operations_of_augmix_are_timms_without_those_of_imagenet_c() -> None:
    """Their names; timm draws strengths from a law of its own."""
    timm = pytest.importorskip("timm.data.auto_augment", exc_type=ImportError)
    theirs = {re.sub("Increasing|Rel", "", name).lower() for name in timm._AUGMIX_TRANSFORMS}
    ours = [getattr(choice.operation, "func", choice.operation).__name__.replace("_", "") for choice in augmix_choices()]
    assert len(ours) == 9
    assert set(ours) == theirs - {"color", "contrast", "brightness", "sharpness"}


def test_mixtures_lie_as_far_from_the_picture_as_those_of_a_plain_augmix_on_pillow() -> None:
    """The published procedure, written out on Pillow images, beside ours: the same mean and spread of the distance."""
    picture = drawn(32, 32)
    rng = np.random.default_rng(0)
    ours = [np.abs(augmix(picture, rng, ()).astype(float) - picture).mean() for _ in range(1500)]
    theirs = [np.abs(_plain_augmix(picture, rng) - picture).mean() for _ in range(1500)]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.06)
    assert np.std(ours) == pytest.approx(np.std(theirs), rel=0.1)


def _plain_augmix(picture: Image, rng: np.random.Generator) -> Any:
    def level(most: float) -> float:
        return float(rng.uniform(0.1, 3.0)) * most / 10

    def signed(value: float) -> float:
        return -value if rng.random() > 0.5 else value

    smooth = Pillow.Resampling.BILINEAR
    ways: list[Callable[[Pillow.Image], Pillow.Image]] = [
        ImageOps.autocontrast,
        ImageOps.equalize,
        lambda one: ImageOps.posterize(one, 4 - int(level(4))),
        lambda one: one.rotate(signed(int(level(30))), resample=smooth),
        lambda one: ImageOps.solarize(one, 256 - int(level(256))),
        lambda one: affine(1, signed(level(0.3)), 0, 0, 1, 0, smooth=smooth)(one),
        lambda one: affine(1, 0, 0, signed(level(0.3)), 1, 0, smooth=smooth)(one),
        lambda one: affine(1, 0, signed(int(level(32 / 3))), 0, 1, 0, smooth=smooth)(one),
        lambda one: affine(1, 0, 0, 0, 1, signed(int(level(32 / 3))), smooth=smooth)(one),
    ]
    weights, weight = rng.dirichlet([1.0] * 3), rng.beta(1.0, 1.0)
    mixture = np.zeros(picture.shape)
    for part in weights:
        one = Pillow.fromarray(picture)
        for _ in range(rng.integers(1, 4)):
            one = ways[rng.integers(9)](one)
        mixture += part * np.asarray(one)
    return (1 - weight) * picture + weight * mixture


def test_crops_have_the_areas_of_torchvisions() -> None:
    """Where parts lie and how large they are, told by a picture whose colours are its coordinates."""
    transforms = pytest.importorskip("torchvision.transforms", exc_type=ImportError)
    down, right = np.mgrid[0:240, 0:240]
    picture = np.stack([down, right, down], axis=2).astype(np.uint8)
    rng = np.random.default_rng(0)

    def sides(part: Any) -> tuple[float, float]:
        return float(np.ptp(part[:, 120, 0].astype(int))), float(np.ptp(part[120, :, 1].astype(int)))

    ours = np.array([sides(_resized_crop(picture, rng, 0.08, 4 / 3)) for _ in range(1500)])
    peer = transforms.RandomResizedCrop(240)
    theirs = np.array([sides(np.asarray(peer(Pillow.fromarray(picture)))) for _ in range(1500)])
    for tail in (0.1, 0.5, 0.9):
        assert np.quantile(ours, tail) == pytest.approx(np.quantile(theirs, tail), rel=0.08)


def test_clahe_is_albumentations() -> None:
    albumentations = pytest.importorskip("albumentations", exc_type=ImportError)
    from shiftproof.models.preprocessing import _equalised

    picture = drawn(96, 128)
    theirs = albumentations.CLAHE(clip_limit=(2, 2), tile_grid_size=(8, 8), p=1)(image=picture)["image"]
    assert np.abs(_equalised(picture, 2.0).astype(int) - theirs).max() <= 1
