"""Frost is the published sum with the published choice of pictures, and our own pictures are as bright as the originals."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from corruptions import reference_weather as reference
from shiftproof.corruptions import weather
from shiftproof.corruptions.editions import severity_parameters
from shiftproof.corruptions.frost_pictures import ORIGINAL_FROST, OUR_FOLDER, frost_pictures, used_files
from shiftproof.corruptions.kernels.weather import add_weighted
from shiftproof.errors import BadInput
from shiftproof.types import Image

SIZES = {"imagenet-224": 224, "inception-299": 299, "tiny-64": 64, "cifar-32": 32}
TOOL = Path(__file__).parents[2] / "tools" / "make_frost.py"


def noisy(height: int, width: int, seed: int = 0) -> Image:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six pictures, the number of each in its red channel, its rows and columns counted in the others."""
    rows, columns = np.mgrid[0:40, 0:60].astype(np.uint8)
    for number in range(1, 7):
        picture = np.dstack([np.full_like(rows, 10 * number), rows, columns])
        Pillow.fromarray(picture).save(tmp_path / f"frost{number}.png")
    return tmp_path


def alone(image: Image, seed: int, folder: Path, scale: float = 1) -> Image:
    """The frost with nothing of the image."""
    rng = np.random.default_rng(seed)
    return weather.frost(image, rng, image_weight=0, frost_weight=1, frost_scale=scale, folder=str(folder))


@pytest.mark.parametrize("edition", SIZES)
@pytest.mark.parametrize("severity", range(1, 6))
def test_frost_over_an_image_is_the_published_sum_to_the_bit(edition: str, severity: int) -> None:
    parameters: Any = severity_parameters("frost", severity, edition)
    weights = {name: parameters[name] for name in ("image_weight", "frost_weight")}
    for number, (height, width) in enumerate([(SIZES[edition], SIZES[edition]), (SIZES[edition], 20), (31, SIZES[edition])]):
        image = noisy(height, width)
        ours = weather.frost(image, np.random.default_rng(number), **parameters)
        draws = np.random.default_rng(number)
        files = used_files(OUR_FOLDER)
        picture: Any = cv2.imread(str(files[draws.integers(len(files))]))
        picture = picture[..., [2, 1, 0]]
        if parameters["frost_scale"] != 1:
            picture = cv2.resize(picture, (0, 0), fx=parameters["frost_scale"], fy=parameters["frost_scale"])
        top, left = draws.integers(picture.shape[0] - height), draws.integers(picture.shape[1] - width)
        assert np.array_equal(ours, reference.frost(image, picture, int(top), int(left), **weights))


def test_every_pair_of_levels_is_summed_to_the_bit() -> None:
    image, picture = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    image, picture = (np.repeat(plane[..., None], 3, axis=2) for plane in (image, picture))
    picture.flags.writeable = False  # as pictures of frost are
    figures = {
        (c["image_weight"], c["frost_weight"])
        for e in SIZES
        for s in range(1, 6)
        for c in [severity_parameters("frost", s, e)]
    }
    for image_weight, frost_weight in figures:
        ours = np.empty_like(image)
        add_weighted(image, picture, 0, 0, float(image_weight), float(frost_weight), ours)
        weights = {"image_weight": image_weight, "frost_weight": frost_weight}
        assert np.array_equal(ours, reference.frost(image, picture, 0, 0, **weights))


def test_the_sixth_picture_is_never_used_and_the_others_equally(folder: Path) -> None:
    numbers = [alone(noisy(8, 8), seed, folder)[0, 0, 0] // 10 for seed in range(500)]
    counts = np.bincount(numbers, minlength=7)
    assert counts[6] == 0
    # 100 expected of each, with a spread of 9
    assert counts[1:6].min() > 60
    assert len(used_files(folder)) == reference.LAST_FROST_NEVER_DRAWN


def test_crops_begin_everywhere_but_at_the_last_place(folder: Path) -> None:
    places = {tuple(alone(noisy(36, 57), seed, folder)[0, 0, 1:].tolist()) for seed in range(300)}
    assert places == {(top, left) for top in range(4) for left in range(3)}


def test_a_picture_is_used_where_it_just_covers_the_image(folder: Path) -> None:
    assert (alone(noisy(40, 60), 0, folder)[..., 1:] == np.moveaxis(np.mgrid[0:40, 0:60], 0, 2)).all()


def test_a_picture_smaller_than_the_image_is_enlarged_to_cover_it(folder: Path) -> None:
    covered = alone(noisy(120, 70), 0, folder)
    assert covered.shape == (120, 70, 3)
    assert covered[..., 1].min() == 0
    assert covered[..., 1].max() == 39
    assert (np.diff(covered[..., 1].astype(int), axis=0) >= 0).all()


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_folder_with_fewer_than_five_pictures_uses_all(folder: Path, count: int) -> None:
    for number in range(count + 1, 7):
        (folder / f"frost{number}.png").unlink()
    assert {int(alone(noisy(8, 8), seed, folder)[0, 0, 0]) // 10 for seed in range(60)} == set(range(1, count + 1))


def test_a_folder_without_frost_pictures_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"frost1\.png"):
        frost_pictures(tmp_path)
    with pytest.raises(BadInput, match="no folder"):
        frost_pictures(tmp_path / "missing")


def test_a_file_that_is_no_picture_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "frost1.png").write_bytes(b"not a picture")
    with pytest.raises(BadInput, match=r"frost1\.png"):
        alone(noisy(8, 8), 0, tmp_path)


def test_the_digest_follows_the_bytes_of_the_five_used_pictures(folder: Path) -> None:
    before = frost_pictures(folder)
    assert before.folder == str(folder)
    (folder / "frost6.png").unlink()
    (folder / "notes.txt").write_text("not a picture")
    assert frost_pictures(folder) == before
    (folder / "frost5.png").write_bytes((folder / "frost4.png").read_bytes())
    assert frost_pictures(folder).digest != before.digest


@pytest.mark.real
def test_the_original_pictures_are_known_by_their_digest(real_data: Path) -> None:
    assert frost_pictures(real_data / "frost").digest == ORIGINAL_FROST
    assert frost_pictures(OUR_FOLDER).digest != ORIGINAL_FROST


@pytest.mark.real
@pytest.mark.parametrize("severity", range(1, 6))
def test_frost_with_the_originals_is_the_example_file_but_for_jpeg(severity: int, real_data: Path) -> None:
    """The example's crop is found by correlation among all six pictures: its makers, not the authors, drew the sixth too."""
    folder = real_data / "imagenet-c-examples"
    clean, example = (np.array(Pillow.open(folder / f"{name}.jpeg")) for name in ("clean", f"frost_{severity}"))
    parameters: Any = severity_parameters("frost", severity, "imagenet-224")
    weights = parameters["image_weight"], parameters["frost_weight"]
    seen = ((example - weights[0] * clean.astype(np.float32)) / weights[1]).mean(axis=2).astype(np.float32)
    mask: Any = (example < 250).all(axis=2).astype(np.float32)
    found = []
    for file in sorted((real_data / "frost").iterdir()):
        picture = np.asarray(Pillow.open(file).convert("RGB"))
        match = cv2.matchTemplate(picture.mean(axis=2).astype(np.float32), seen, cv2.TM_CCOEFF_NORMED, mask=mask)
        place = divmod(int(np.argmax(match)), match.shape[1])
        found.append((float(match.max()), picture, place))
    correlation, picture, (top, left) = max(found, key=lambda one: one[0])
    assert correlation > 0.7
    ours = np.empty_like(clean)
    add_weighted(clean, np.ascontiguousarray(picture), top, left, float(weights[0]), float(weights[1]), ours)
    assert 10 * np.log10(255**2 / ((ours.astype(float) - example) ** 2).mean()) > 28


def spectrum(grey: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean power (log10) of 224-pixel pieces in octaves of frequency."""
    window = np.outer(np.hanning(224), np.hanning(224))
    power = np.zeros((224, 224))
    for top in range(0, grey.shape[0] - 223, 80):
        for left in range(0, grey.shape[1] - 223, 80):
            piece = grey[top : top + 224, left : left + 224]
            power += np.abs(np.fft.fft2((piece - piece.mean()) * window)) ** 2 / 1e4
    radius = np.hypot(*np.meshgrid(*2 * [np.fft.fftfreq(224) * 224]))
    octaves = [(low, 2 * low) for low in (2, 4, 8, 16, 32)]
    means = np.array([power[(radius >= low) & (radius < high)].mean() for low, high in octaves])
    return np.asarray(np.log10(means / means.sum()))


@pytest.mark.real
@pytest.mark.parametrize("number", range(5))
def test_our_pictures_are_as_bright_and_as_rough_as_the_originals(number: int, real_data: Path) -> None:
    ours, original = (
        np.asarray(Pillow.open(used_files(place)[number]).convert("L"), np.float64)
        for place in (OUR_FOLDER, real_data / "frost")
    )
    assert ours.mean() == pytest.approx(original.mean(), abs=3)
    assert ours.std() == pytest.approx(original.std(), rel=0.1)
    # within a factor of 4 in power, so of 2 in contrast, at every scale
    assert np.abs(spectrum(ours) - spectrum(original)).max() < np.log10(4)


def test_frost_pictures_may_be_given_to_every_corruption(folder: Path) -> None:
    image = noisy(32, 32)
    for name in sp.IMAGENET_C:
        given, without = (
            sp.corrupt(image, name, 2, edition="cifar-32", frost=frost) for frost in (frost_pictures(folder), None)
        )
        assert np.array_equal(given, without) is (name != "frost")


def test_our_pictures_are_five_small_files_that_crops_fit_in() -> None:
    files = used_files(OUR_FOLDER)
    assert len(files) == 5
    assert sum(file.stat().st_size for file in files) < 700_000
    for file in files:
        with Pillow.open(file) as picture:
            assert min(picture.size) >= 450


def test_our_pictures_are_what_the_script_draws() -> None:
    tool = runpy.run_path(str(TOOL))
    number = 4
    name, draw = tool["PICTURES"][number]
    picture = draw(np.random.default_rng(number)).astype(float)
    kept = np.asarray(Pillow.open(OUR_FOLDER / name), np.float64)
    # what saving as JPEG loses
    assert np.sqrt(((picture - kept) ** 2).mean()) < 10
    assert np.corrcoef(picture.mean(2).ravel(), kept.mean(2).ravel())[0, 1] > 0.98
