"""The pictures of the editions, beside the published cuts by Pillow, where rounding decides which pixels are seen."""

from __future__ import annotations

import numpy as np
import pytest

from corruptions.reference_sequences import SIZES, picture, resized
from shiftproof.corruptions.editions import edition_of, shorter_side

# whole and half pixels over: 256 x 319 / 214 is 381.6, and 343 - 224 is an odd number whose half is rounded up
SHAPES = [(214, 319), (300, 402), (300, 500), (256, 256), (97, 250)]


@pytest.mark.parametrize("edition", SIZES)
@pytest.mark.parametrize("shape", [*SHAPES, *((width, height) for height, width in SHAPES)])
def test_a_picture_is_cut_out_as_published(shape: tuple[int, int], edition: str) -> None:
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3), np.uint8)
    # corrupted pictures of Tiny-ImageNet were resized whole, its sequences by their shorter side
    published = resized(image, 64, 64) if edition == "tiny-64" else picture(image, edition)
    assert np.array_equal(edition_of(edition).picture(image), published)


def test_64_pixels_of_imagenet_are_the_whole_image_as_those_of_tiny_imagenet() -> None:
    image = np.random.default_rng(2).integers(0, 256, (100, 150, 3), np.uint8)
    assert np.array_equal(edition_of("imagenet-64").picture(image), edition_of("tiny-64").picture(image))


def test_a_long_strip_is_cut_and_not_blown_up() -> None:
    strip = np.tile(np.arange(30_000, dtype=np.uint32).astype(np.uint8)[None, :, None], (1, 1, 3))
    assert shorter_side(strip, 256).shape == (256, 64 * 256, 3)
    assert edition_of("imagenet-224").picture(strip).shape == (224, 224, 3)
