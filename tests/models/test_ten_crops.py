"""Ten views of an image: pixels that say where they lie tell which part each view shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.models import PRESETS, ImagePreprocessing, parse_preprocessing
from shiftproof.runs.prepare import Job, prepare
from shiftproof.types import CLEAN, CORNERS, CROPS, Condition, CroppingPreprocessing, Image

RULES = (
    "imagenet",
    "imagenet,clahe",
    "imagenet,layout=nhwc,dtype=float16",
    "lite",
    "squash",
    "yolov5,engine=pillow,size=64",
    "resize=none,size=any,layout=nhwc",
)


def _where(height: int, width: int) -> Image:
    """A picture whose red tells the row and whose green the column, in shares of 200."""
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows * 200 / height, columns * 200 / width, 0 * rows], axis=2).astype(np.uint8)


def _span(view: NDArray[np.generic]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The rows and the columns of the image that the middle of the view's edges shows, from 0 to 1."""
    shares = np.asarray(view, np.float64) * 255 / 200
    middle = [side // 2 for side in view.shape[1:]]
    return shares[0, [0, -1], middle[1]], shares[1, middle[0], [0, -1]]


def _noise(height: int, width: int) -> Image:
    return np.random.default_rng(5).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [(300, 400), (400, 300), (256, 256), (30, 20), (1, 5)])
def test_there_are_ten_of_the_models_size_and_the_centre_is_what_the_model_sees(rule: str, size: tuple[int, int]) -> None:
    preprocessing = parse_preprocessing(rule)
    image = _noise(*size)
    crops, seen = preprocessing.from_crops(image), preprocessing.from_image(image)
    assert isinstance(preprocessing, CroppingPreprocessing)
    assert tuple(crops) == CROPS
    assert np.array_equal(crops["centre"], seen)
    assert preprocessing.size is None or {(crop.shape, crop.dtype) for crop in crops.values()} == {(seen.shape, seen.dtype)}
    across = 1 if preprocessing.layout == "nhwc" else 2
    for name in CROPS[:5]:
        assert np.array_equal(crops[f"mirrored {name}"], np.flip(crops[name], across))


@pytest.mark.parametrize("rule", [rule for rule in RULES if "size=any" not in rule])
@pytest.mark.parametrize("size", [(300, 400), (31, 20)])
def test_crops_are_the_same_in_their_places_in_a_batch(rule: str, size: tuple[int, int], tmp_path: Path) -> None:
    preprocessing = parse_preprocessing(rule)
    Pillow.fromarray(_noise(*size)).save(tmp_path / "noise.png")
    images = sp.open_dataset(tmp_path, labels="none")
    crops = preprocessing.from_crops(_noise(*size))
    job = Job.of(images, [*images.samples] * len(CROPS), CLEAN, preprocessing)
    batch, _ = prepare(job._replace(conditions=[Condition("clean", picture=crop) for crop in CROPS], again=True))
    assert isinstance(batch, np.ndarray), "written in their places at once"
    assert np.array_equal(batch, np.stack([*crops.values()]))


def test_crops_of_another_form_than_other_inputs_are_a_list(tmp_path: Path) -> None:
    class LargerCorners(ImagePreprocessing):
        def from_crops(self, image: Image) -> dict[str, NDArray[np.generic]]:
            crops = super().from_crops(image)
            return {name: crop if "centre" in name else np.pad(crop, 1) for name, crop in crops.items()}

    Pillow.fromarray(_noise(30, 40)).save(tmp_path / "noise.png")
    images, preprocessing = sp.open_dataset(tmp_path, labels="none"), LargerCorners(size=(8, 8), shorter=16)
    job = Job.of(images, [*images.samples] * len(CROPS), CLEAN, preprocessing)
    batch, _ = prepare(job._replace(conditions=[Condition("clean", picture=crop) for crop in CROPS]))
    for crop, expected in zip(batch, preprocessing.from_crops(_noise(30, 40)).values(), strict=True):
        assert np.array_equal(crop, expected)


def test_of_a_resized_image_the_corners_are_its_own() -> None:
    image = _noise(512, 682)
    crops = PRESETS["imagenet"].from_crops(image)
    resized = replace(PRESETS["imagenet"], rule="squash", size=(256, 341)).from_image(image)
    assert np.array_equal(crops["top left"], resized[:, :224, :224])
    assert np.array_equal(crops["top right"], resized[:, :224, -224:])
    assert np.array_equal(crops["bottom left"], resized[:, -224:, :224])
    assert np.array_equal(crops["bottom right"], resized[:, -224:, -224:])


@pytest.mark.parametrize(
    ("rule", "part"),
    [("imagenet", (224 / 256, 224 / 341)), ("lite", (0.875, 0.875 * 0.75)), ("squash", (0.875, 0.875))],
)
def test_every_rule_shows_as_large_a_part_in_each_corner(rule: str, part: tuple[float, float]) -> None:
    crops = parse_preprocessing(f"{rule},range=1,mean=0,std=1").from_crops(_where(300, 400))
    for corner in CORNERS:
        below, right = corner.startswith("bottom"), corner.endswith("right")
        rows, columns = _span(crops[corner])
        assert rows == pytest.approx((1 - part[0], 1) if below else (0, part[0]), abs=0.02)
        assert columns == pytest.approx((1 - part[1], 1) if right else (0, part[1]), abs=0.02)


def test_a_square_image_seen_whole_to_its_edges_has_the_same_view_in_every_corner() -> None:
    crops = ImagePreprocessing(shorter=224).from_crops(_noise(256, 256))
    assert all(np.array_equal(crops[corner], crops["centre"]) for corner in CORNERS)
