"""Facts of pixels: by hand, of boxes, and kept in the store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.datasets import open_dataset
from shiftproof.datasets.subsets import View
from shiftproof.runs import image_facts
from shiftproof.runs.image_facts import FACTS, OBJECT_SIZE, with_image_facts
from shiftproof.runs.store import Store


def test_what_pixels_tell_by_hand() -> None:
    half = np.zeros((100, 200, 3), np.uint8)
    half[:, 100:] = 255
    found = image_facts.image_facts(half)
    assert found["brightness"] == pytest.approx(0.5)
    assert found["contrast"] == pytest.approx(0.5)
    assert found["aspect"] == 2
    assert found["megapixels"] == 0.02
    assert found["saturation"] == 0
    red = np.zeros((40, 40, 3), np.uint8)
    red[..., 0] = 255
    assert image_facts.image_facts(red)["saturation"] == 1
    assert image_facts.image_facts(red)["brightness"] == pytest.approx(0.299, abs=0.002)


def test_a_blurred_picture_is_less_sharp_and_a_larger_copy_about_as_sharp() -> None:
    noise = np.random.default_rng(0).integers(0, 255, size=(512, 512, 3)).astype(np.uint8)
    picture = Pillow.fromarray(noise).resize((1024, 1024), Pillow.Resampling.BICUBIC)
    sharp, small, blurred = (
        image_facts.image_facts(np.asarray(one))["sharpness"]
        for one in (picture, picture.resize((512, 512), Pillow.Resampling.BOX), picture.reduce(16).resize((1024, 1024)))
    )
    assert small == pytest.approx(sharp, rel=0.1)
    assert blurred < sharp / 3


def test_a_picture_of_one_pixel_has_facts() -> None:
    assert image_facts.image_facts(np.zeros((1, 1, 3), np.uint8))["sharpness"] == 0


def test_facts_are_measured_once_and_those_of_the_images_stay(
    draw_photos: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    photos, store = open_dataset(draw_photos(2)), Store(tmp_path / "runs")
    own = [dataclasses.replace(sample, facts={"contrast": "mine", "site": "pier"}) for sample in photos.samples]
    found = with_image_facts(View(photos, photos.classes, own), store)
    facts = found.samples[0].facts
    assert facts["contrast"] == "mine"
    assert facts["site"] == "pier"
    assert {*FACTS} <= facts.keys()
    assert OBJECT_SIZE not in facts
    assert 0.1 < float(facts["brightness"] or 0) < 0.9
    monkeypatch.setattr(image_facts, "decoded", None)  # whoever decodes again, fails
    again = with_image_facts(photos, store)
    assert [one.facts["brightness"] for one in again.samples] == [one.facts["brightness"] for one in found.samples]
    assert with_image_facts(again, store) is again


def test_an_unreadable_image_has_no_facts(draw_photos: Callable[..., Path], tmp_path: Path) -> None:
    folder = draw_photos(2)
    (folder / "blue" / "bad.png").write_bytes(b"no picture")
    found = with_image_facts(open_dataset(folder), Store(tmp_path / "runs"))
    told = {sample.id: sample.facts["brightness"] for sample in found.samples}
    assert told.pop("blue/bad.png") is None
    assert None not in told.values()


def test_objects_are_as_large_as_their_boxes(draw_photos: Callable[..., Path], tmp_path: Path) -> None:
    photos = open_dataset(draw_photos(1))  # 32 x 24 pixels
    boxes = [np.array([[0, 0, 16, 12], [16, 12, 32, 24]], float), None, np.empty((0, 4))]
    samples = [dataclasses.replace(one, boxes=some) for one, some in zip(photos.samples, boxes, strict=True)]
    found = with_image_facts(View(photos, photos.classes, samples), Store(tmp_path / "runs"))
    assert [one.facts[OBJECT_SIZE] for one in found.samples] == [0.5, None, None]
