"""The shared filters against scipy, ImageMagick and plain loops."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow
from scipy import ndimage

from corruptions import reference_blur
from corruptions.agreement import assert_agrees, drawn
from shiftproof.corruptions.kernels.filters import clipped_zoom, from_pixels, gaussian, motion, zoom_places

SHAPES = ((64, 64, 3), (37, 91, 3), (37, 91), (5, 9), (1, 7, 3), (3, 3, 3), (1, 1, 3), (40, 1, 3), (1, 1))


def noise(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return (np.random.default_rng(0).random(shape) * 255).astype(np.float32)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sigma", [0.05, 0.4, 1, 2.5, 6, 19.5])
@pytest.mark.parametrize("truncate", [3.0, 4.0, 6.0])
def test_gaussian_is_that_of_scipy_even_where_the_window_is_longer_than_the_picture(
    shape: tuple[int, ...], sigma: float, truncate: float
) -> None:
    pixels = noise(*shape)
    for border in ("nearest", "reflect"):
        sigmas = (sigma, sigma, 0)[: len(shape)]
        expected = ndimage.gaussian_filter(pixels.astype(np.float64), sigmas, mode=border, truncate=truncate)
        result = gaussian(pixels, sigma, truncate=truncate, border=border)
        assert result.dtype == np.float32
        assert np.abs(result - expected).max() < 5e-4


def test_gaussian_of_sigma_0_is_a_copy_and_bytes_do_as_well_as_floats() -> None:
    pixels = noise(9, 8, 3)
    same = gaussian(pixels, 0)
    assert np.array_equal(same, pixels)
    assert not np.shares_memory(same, pixels)
    image = drawn(20, 30)
    assert np.array_equal(gaussian(image, 0), image.astype(np.float32))
    assert np.abs(gaussian(image, 1.5) - gaussian(image.astype(np.float32), 1.5)).max() < 1e-3


def test_bytes_are_cut_and_not_rounded_but_whole_numbers_stay_whole() -> None:
    levels = np.arange(256, dtype=np.float32)
    for error in (-4.5e-5, 0, 4.5e-5):
        assert np.array_equal(from_pixels(levels + np.float32(error)), levels.astype(np.uint8))
    assert np.array_equal(from_pixels(levels[:-1] + np.float32(0.99)), levels[:-1].astype(np.uint8))
    assert from_pixels(np.array([-1e6, -0.5, 255.9, 1e6], np.float32)).tolist() == [0, 0, 255, 255]
    image = drawn(7, 5)
    assert np.array_equal(from_pixels(image.astype(np.float32)[:, ::-1]), image[:, ::-1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("zoom", [1, 1.01, 1.11, 1.12, 1.31, 1.75, 2, 2.25, 2.5, 3, 4, 4.5])
def test_clipped_zoom_crops_enlarges_and_trims_as_published(shape: tuple[int, ...], zoom: float) -> None:
    pixels = noise(*shape)
    expected = reference_blur.clipped_zoom(pixels.astype(np.float64), zoom)
    result = clipped_zoom(pixels, zoom)
    assert result.shape == pixels.shape
    assert np.abs(result - expected).max() < 1e-3


def test_a_zoom_of_1_changes_nothing() -> None:
    for length in (1, 2, 31, 224):
        starts, shares = zoom_places(length, 1.0)
        assert np.array_equal(starts + shares, np.arange(length))


def some_motions() -> list[tuple[int, float, float]]:
    return [
        (10, 3, 17.3),
        (15, 8, -45),
        (20, 15, 45),
        (12, 4, -90),
        (12, 12, -135),
        (6, 1, 0),
        (15, 12, -7),
        (14, 3, 120),
        (1, 1, 60),
        # sine or cosine one half: every other step ends on a tie
        (10, 2.5, -150),
        (20, 15, -30),
        (20, 15, 30),
        (14, 3, -120),
        (10, 3, 60),
        (14, 3, 150),
    ]


@pytest.mark.parametrize(("radius", "sigma", "angle"), some_motions())
def test_motion_adds_up_the_same_pixels_as_the_slow_version(radius: int, sigma: float, angle: float) -> None:
    for shape in ((90, 70), (33, 101), (5, 4), (1, 1), (1, 30)):
        image = drawn(*shape)
        assert_agrees(motion(image, radius, sigma, angle), reference_blur.motion_blur(image, radius, sigma, angle))
        grey = np.ascontiguousarray(image[:, :, 1])
        assert np.array_equal(motion(grey, radius, sigma, angle), motion(image, radius, sigma, angle)[:, :, 1])


def test_motion_looks_one_way_only() -> None:
    image = np.zeros((9, 41, 3), np.uint8)
    image[4, 20] = 255
    smeared = motion(image, 5, 4, 0)[4, :, 0]
    # pixels to the left of the light look at it, those to the right look away
    assert (smeared[10:20] > 0).all()
    assert (smeared[21:] == 0).all()
    assert (np.diff(smeared[10:21].astype(int)) > 0).all()


def image_magick() -> str:
    """The command of a real ImageMagick 6 or 7, or a skip."""
    for command in ("convert-im6", "magick", "convert"):
        if path := shutil.which(command):
            said = subprocess.run([path, "-version"], capture_output=True, check=False, text=True, errors="replace").stdout
            if said.startswith("Version: ImageMagick"):
                return path
    pytest.skip("no ImageMagick here")


@pytest.mark.parametrize(("radius", "sigma", "angle"), some_motions())
def test_motion_is_that_of_image_magick(tmp_path: Path, radius: int, sigma: float, angle: float) -> None:
    command = image_magick()
    for shape in ((90, 70), (33, 101)):
        image = drawn(*shape)
        before, after = tmp_path / "before.png", tmp_path / "after.png"
        Pillow.fromarray(image).save(before)
        blur = ["-motion-blur", f"{radius}x{sigma}{angle:+}", "-depth", "8"]
        subprocess.run([command, str(before), *blur, f"PNG24:{after}"], check=True, capture_output=True)
        assert_agrees(motion(image, radius, sigma, angle), np.asarray(Pillow.open(after).convert("RGB")).astype(np.float64))
