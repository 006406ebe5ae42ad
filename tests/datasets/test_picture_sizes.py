"""The size of a set's pictures, found without decoding them, and the edition that fits them and the models."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

import shiftproof as sp
from command import Shiftproof
from shiftproof.corruptions.editions import fitting_edition
from shiftproof.datasets.boxed.boxes import upright_size
from shiftproof.datasets.image_list import FileImage, ImageList
from shiftproof.datasets.perturbed import edition_for, input_side, perturbed, shorter_side_of
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.studies.detection_corruption.study import DetectionCorruptionStudy
from shiftproof.studies.perturbation.study import PerturbationStudy
from shiftproof.types import Caution, Classifier, ModelRef, Predictions, Run, Study


def cautions(study: Study) -> list[str]:
    """What a study warns of before it reads anything."""
    found, nothing_stored = list[str](), dict[Run, Predictions]()
    with contextlib.suppress(LookupError):
        for one in study.measure(nothing_stored.__getitem__):
            assert isinstance(one, Caution)
            found.append(one.text)
    return found


def photos(folder: Path, *sizes: tuple[int, int]) -> ImageList:
    """One photo of each size, width and height."""
    for number, size in enumerate(sizes):
        (folder / "photos" / "a").mkdir(parents=True, exist_ok=True)
        Pillow.new("RGB", size, (90, 120, 40)).save(folder / "photos" / "a" / f"{number:02}.jpg")
    return sp.open_dataset(folder / "photos")


def model_of(size: int | None) -> Classifier:
    return sp.wrap_model(
        lambda inputs: np.asarray(inputs, np.float32).mean(axis=(2, 3)),
        name=f"takes {size}", version="1", class_names=["a", "b", "c"], size=None if size is None else (size, size),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pictures", "inputs", "edition"),
    [
        (32, 32, "cifar-32"),  # CIFAR
        (28, 28, "cifar-32"),  # MNIST
        (32, 224, "cifar-32"),  # a large network tuned on CIFAR: published numbers are of the small pictures
        (500, 32, "cifar-32"),  # photos, seen at 32 x 32
        (64, 64, "tiny-64"),  # Tiny-ImageNet
        (375, 64, "imagenet-64"),  # ImageNet at 64 x 64
        (375, 224, "imagenet-224"),
        (256, 244, "imagenet-224"),
        (375, 299, "inception-299"),
        (375, 384, "imagenet-224"),  # larger networks were measured on the files of 224 pixels
        (375, None, "imagenet-224"),
        (300, None, "imagenet-224"),  # 299 is for networks that take it
        (None, 299, "inception-299"),
        (None, 32, "cifar-32"),
        (None, None, "imagenet-224"),
    ],
)
def test_the_smaller_of_picture_and_input_decides(pictures: int | None, inputs: int | None, edition: str) -> None:
    fit = fitting_edition(pictures, inputs)
    assert (fit.edition, fit.warning) == (edition, None)
    assert all(f"{side} pixels" in fit.why for side in (pictures, inputs) if side is not None)


@pytest.mark.parametrize(
    ("pictures", "inputs", "nearest", "made_for"),
    [
        (100, 100, "imagenet-64", 64),
        (96, 96, "imagenet-64", 64),
        (50, 50, "tiny-64", 64),
        (128, 128, "imagenet-224", 224),
        (500, 16, "cifar-32", 32),
    ],
)
def test_where_none_fits_the_nearest_is_taken_with_a_warning(
    pictures: int, inputs: int, nearest: str, made_for: int
) -> None:
    fit = fitting_edition(pictures, inputs)
    assert fit.edition == nearest
    assert fit.warning is not None
    assert f"no edition is made for pictures of {pictures} pixels and a model input of {inputs} pixels" in fit.warning
    assert f"made for {made_for}" in fit.warning
    assert "--edition" in fit.warning


def test_sizes_are_read_from_the_headers_of_some_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = photos(tmp_path, (500, 375), (375, 500), (300, 200), (640, 480), (90, 1000))
    monkeypatch.setattr(FileImage, "read", lambda _: pytest.fail("a file was read whole"))
    assert shorter_side_of(images) == 375  # of 375, 375, 200, 480 and 90
    many = photos(tmp_path / "many", *[(40, 32)] * 200)
    opened: list[str] = []

    def sized(path: str) -> tuple[int, int] | None:
        opened.append(path)
        return upright_size(path)

    monkeypatch.setattr("shiftproof.datasets.perturbed.upright_size", sized)
    assert shorter_side_of(many) == 32
    assert len(opened) <= 20


def test_arrays_crops_and_broken_files_are_sized_too(tmp_path: Path) -> None:
    np.save(tmp_path / "small.npy", np.zeros((5, 20, 48, 3), np.uint8))
    assert shorter_side_of(sp.open_dataset(tmp_path / "small.npy")) == 20
    images = photos(tmp_path, (64, 64), (64, 64), (64, 64))
    (tmp_path / "photos" / "a" / "00.jpg").write_bytes(b"no picture")
    assert shorter_side_of(images) == 64
    for path in (tmp_path / "photos" / "a").iterdir():
        path.write_bytes(b"no picture")
    assert shorter_side_of(images) is None
    # of frames made from photos their own size counts, not that of the photo's file
    frames = perturbed(photos(tmp_path / "large", (300, 300)), "brightness", edition="cifar-32")
    assert shorter_side_of(frames) == 32


def test_what_is_corrupted_says_which_size_counts(tmp_path: Path) -> None:
    images, prepared = photos(tmp_path, (500, 400)), [("small", model_of(32).preprocessing.describe())]
    assert edition_for(images, prepared).edition == "cifar-32"
    assert edition_for(images, prepared, picture="model-size").edition == "cifar-32"
    assert edition_for(images, prepared, picture="image").edition == "imagenet-224"
    assert input_side(model_of(None).preprocessing.describe()) is None


def test_a_study_without_an_edition_takes_the_one_that_fits_and_tells_why(tmp_path: Path) -> None:
    images = photos(tmp_path, *[(32, 32)] * 3)
    found = CorruptionStudy([model_of(32)], images, corruptions=["fog"])
    assert {condition.edition for condition in found.conditions()[1:]} == {"cifar-32"}
    assert {condition.picture for condition in found.conditions()} == {"cifar-32"}
    assert found.fit is not None
    assert "pictures of 32 pixels and a model input of 32 pixels" in found.fit.why
    named = CorruptionStudy([model_of(32)], images, edition="imagenet-224")
    assert (named.edition, named.fit) == ("imagenet-224", None)
    by_name = CorruptionStudy([ModelRef("m", "f")], images.ref)
    assert by_name.edition == "imagenet-224"
    assert by_name.fit is not None
    assert "neither the size of the pictures" in by_name.fit.why


def test_the_edition_and_its_warning_stand_in_the_results(tmp_path: Path) -> None:
    fitting, model = photos(tmp_path, *[(32, 32)] * 3), model_of(32)
    odd, larger = photos(tmp_path / "odd", *[(100, 100)] * 3), model_of(96)
    for images, asked, edition in ((fitting, model, "cifar-32"), (odd, larger, "imagenet-64")):
        study = CorruptionStudy([asked], images, corruptions=["contrast"], severities=[1])
        for condition in study.conditions():
            sp.predict(asked, images, condition=condition, store=tmp_path / "runs")
        results = sp.measure(study, store=tmp_path / "runs", datasets=[images])
        error = next(one for one in results.measurements if one.metric == "mean_corrupted_error")
        assert error.convention["edition"] == edition
        assert "chosen for pictures of" in error.convention["why this edition"]
        warned = [warning for warning in results.warnings if "no edition is made for" in warning]
        assert len(warned) == (edition != "cifar-32")


def test_models_of_other_sizes_share_one_edition_and_are_warned_about_by_name(tmp_path: Path) -> None:
    images = photos(tmp_path, *[(500, 400)] * 3)
    small, large, larger = map(model_of, (32, 224, 240))
    study = CorruptionStudy([small, large, larger], images, corruptions=["contrast"], severities=[1])
    assert study.edition == "cifar-32"
    (warning,) = cautions(study)
    assert "cifar-32 is for takes 32; imagenet-224 is for takes 224, takes 240." in warning
    assert "all of these are of cifar-32" in warning
    for alike in ([large, larger], [small]):
        assert not cautions(CorruptionStudy(alike, images, corruptions=["contrast"], severities=[1]))
    whole = CorruptionStudy([small, large], images, corruptions=["contrast"], severities=[1], picture="image")
    assert not cautions(whole), "of whole images the inputs do not count"


def test_compare_says_its_edition_before_it_misses_what_was_run_under_another(
    tmp_path: Path, shiftproof: Shiftproof
) -> None:
    images = photos(tmp_path, *[(500, 400)] * 3)
    asked = ["compare", "takes 224", "takes 32", "photos", "--studies", "corruption", "--corruptions", "contrast"]
    models = [model_of(size) for size in (224, 32)]
    for model in models:
        alone = CorruptionStudy([model], images, corruptions=["contrast"], severities=[1])
        for condition in alone.conditions():
            sp.predict(model, images, condition=condition, store=tmp_path / "runs", workers=0)
    said = shiftproof(*asked, "--severities", "1")
    assert said.code == 1
    assert "edition cifar-32: chosen for pictures of 400 pixels and a model input of 32 pixels" in said.err
    assert "imagenet-224 is for takes 224; cifar-32 is for takes 32." in said.err
    study = CorruptionStudy(models, images, corruptions=["contrast"], severities=[1], edition="imagenet-224")
    for condition in study.conditions():
        sp.predict(models[1], images, condition=condition, store=tmp_path / "runs", workers=0)
    said = shiftproof(*asked, "--severities", "1", "--edition", "imagenet-224")
    assert (said.code, "inputs of different editions" in said.err) == (0, False)


def test_sequences_take_the_edition_that_fits(tmp_path: Path) -> None:
    images = photos(tmp_path, *[(32, 32)] * 3)
    frames = perturbed(images, "translate")
    assert (frames.edition, len(frames.samples)) == ("cifar-32", 3 * 16)  # 16 frames at 32 pixels, 41 at 224
    assert frames.samples[0].id.endswith("/translate/00")
    study = PerturbationStudy([model_of(32)], datasets=[frames])
    assert study.edition == "cifar-32"
    model = model_of(32)
    sp.predict(model, frames, condition=study.runs()[0].condition, store=tmp_path / "runs")
    results = sp.measure(study, store=tmp_path / "runs", datasets=[images, frames])
    flips = next(one for one in results.measurements if one.metric == "flip_probability")
    assert flips.convention["edition"] == "cifar-32"
    assert "pictures of 32 pixels" in flips.convention["why this edition"]
    assert perturbed(images, "translate", edition="tiny-64").fit is None


def test_boxes_lie_on_whole_images_so_those_alone_count(tmp_path: Path, draw_photos: Callable[..., Path]) -> None:
    images: Any = sp.open_dataset(draw_photos(2))  # 24 x 32
    study = DetectionCorruptionStudy([ModelRef("d", "f")], images, corruptions=["fog"])
    assert study.edition == "cifar-32"


@pytest.mark.real
def test_cifar_and_tiny_imagenet_are_known_by_their_pictures(real_data: Path, tmp_path: Path) -> None:
    import zipfile

    for archive, size, edition in (("cifar10-test-10000", 32, "cifar-32"), ("tiny-imagenet-val-10000", 64, "tiny-64")):
        with zipfile.ZipFile(real_data / f"{archive}.zip") as packed:
            for name in [name for name in packed.namelist() if name.lower().endswith((".jpg", ".jpeg"))][::500]:
                (tmp_path / archive).mkdir(exist_ok=True)
                (tmp_path / archive / Path(name).name).write_bytes(packed.read(name))
        images = sp.open_dataset(tmp_path / archive)
        assert shorter_side_of(images) == size
        assert edition_for(images, [("m", model_of(size).preprocessing.describe())]).edition == edition
    assert edition_for(sp.open_dataset(real_data / "ilsvrc-sample-1000")).edition == "imagenet-224"
