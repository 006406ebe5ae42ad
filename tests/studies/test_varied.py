from __future__ import annotations

import colorsys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.catalog import CORRUPTIONS
from shiftproof.corruptions.apply import corrupt
from shiftproof.errors import BadInput, UnknownName
from shiftproof.studies.probe.study import VARIATIONS, moved, recoloured, unchanged_at, values_of, varied, zoomed


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8)
    Pillow.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def pictures(photo: Path, by: str, steps: int = 5) -> list[np.ndarray]:
    images = varied(photo, by, steps=steps)
    sources = [images.source(sample) for sample in images.samples]
    return [source.decode(source.read()) for source in sources]


def test_zooming_twice_as_near_keeps_the_middle_half() -> None:
    image = np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3)
    assert np.array_equal(zoomed(image, 2.0), image[10:30, 15:45])
    assert np.array_equal(zoomed(image, 1.0), image)


def test_a_crop_goes_from_corner_to_corner() -> None:
    image = np.random.default_rng(1).integers(0, 256, (100, 50, 3), dtype=np.uint8)
    assert np.array_equal(moved(image, -1.0), image[:70, :35])
    assert np.array_equal(moved(image, 1.0), image[30:, 15:])


def test_a_third_of_a_turn_makes_red_green() -> None:
    red = np.full((2, 2, 3), (200, 0, 0), np.uint8)
    expected = [255 * part for part in colorsys.hsv_to_rgb(1 / 3, 1.0, 200 / 255)]
    assert np.allclose(recoloured(red, 120.0)[0, 0], expected, atol=3)
    grey = np.full((2, 2, 3), 128, np.uint8)
    assert np.array_equal(recoloured(grey, 77.0), grey)


@pytest.mark.parametrize("by", [*VARIATIONS, "fog", "gaussian_noise"])
def test_the_photo_itself_is_among_its_variations(photo: Path, by: str) -> None:
    original = np.asarray(Pillow.open(photo))
    place = values_of(by, 5).index(unchanged_at(by))
    if by == "crop":
        assert np.array_equal(pictures(photo, by)[place], original[6:34, 9:51])
    else:
        assert np.array_equal(pictures(photo, by)[place], original)


def test_corruptions_are_those_of_the_library_scaled_to_the_photo(photo: Path) -> None:
    original = np.asarray(Pillow.open(photo))
    expected = corrupt(original, "contrast", 3, key="photo.png", scale_severity=True)
    assert np.array_equal(pictures(photo, "contrast")[3], expected)


def test_every_variation_has_an_identity_of_its_own(photo: Path) -> None:
    sets = [varied(photo, by, steps=4) for by in ("zoom", "crop", "hue", "fog")]
    sources = [images.source(sample) for images in sets for sample in images.samples]
    assert len({source.read() for source in sources}) == len({source.stamp() for source in sources}) == 4 + 4 + 4 + 6


@pytest.mark.parametrize("by", CORRUPTIONS)
def test_a_corruption_is_shown_at_every_severity(by: str) -> None:
    assert values_of(by, 3) == [0, 1, 2, 3, 4, 5]


def test_what_cannot_be_varied_is_told(photo: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean zoom"):
        varied(photo, "zom")
    with pytest.raises(BadInput, match="at least 2 steps"):
        varied(photo, "hue", steps=1)
    with pytest.raises(BadInput, match="no photo at"):
        varied(photo.with_name("other.png"), "hue")
