"""Photos are the unit of evidence: numbers as `sp.measure` tells them, beside photos drawn again in a plain loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.metrics import auroc
from shiftproof.models import wrap_model
from shiftproof.types import Classifier, Dataset, Inputs, Logits, Measurement, Study

PHOTOS, VERSIONS = 31, tuple((name, severity) for name in ("contrast", "fog", "snow") for severity in range(1, 6))


def light(seed: int = 31) -> NDArray[np.integer]:
    """How light each photo is under each version, (photos, versions): the photo decides far more than the version."""
    generator = np.random.default_rng(seed)
    own, version = generator.normal(0, 40, (PHOTOS, 1)), np.array([8 * severity for _, severity in VERSIONS])
    drawn = 145 + own - version + generator.normal(0, 8, (PHOTOS, len(VERSIONS)))
    return np.asarray(np.clip(np.round(drawn), 0, 255), int)


OTHER_PHOTOS = np.concatenate([light(seed)[:, 0] for seed in range(32, 40)])


def draw(folder: Path, values: Iterable[int], name: Callable[[int], str] = "{:02}".format) -> None:
    """Grey pictures, all of a class that light ones are taken for."""
    (folder / "cat").mkdir(parents=True)
    for number, value in enumerate(values):
        Pillow.new("L", (4, 4), int(value)).save(folder / "cat" / f"{name(number)}.png")
    (folder / "dog").mkdir()


@pytest.fixture(scope="module")
def model() -> Classifier:
    def scores(inputs: Inputs) -> Logits:
        mean = np.asarray(inputs, np.float32).mean(axis=(1, 2, 3)) - 0.5
        return np.stack([20 * mean, np.zeros_like(mean)], axis=1)

    return wrap_model(scores, name="light", version="1", class_names=["cat", "dog"], size=(4, 4), preprocess="unit")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """31 photos under 15 corruptions, as a published set has them, and other photos."""
    made: Path = tmp_path_factory.mktemp("cases")
    for (name, severity), values in zip(VERSIONS, light().T, strict=True):
        draw(made / "photos-c" / name / str(severity), values)
    draw(made / "photos", OTHER_PHOTOS, "other {}".format)
    return made


@pytest.fixture(scope="module")
def measured(model: Classifier, folder: Path) -> Callable[..., list[Measurement]]:
    def ask(study: Study, *images: Dataset) -> list[Measurement]:
        for one in images:
            sp.predict(model, one, store=folder / "runs", keep="logits", workers=0)
        return list(sp.measure(study, store=folder / "runs", datasets=images).measurements)

    return ask


def drawn_again(number: Callable[[NDArray[np.integer]], float]) -> tuple[float, float]:
    """The middle 95 % of what a number comes to when the photos are drawn again, each with all that was made of it."""
    generator = np.random.default_rng(5)
    low, high = np.quantile([number(generator.integers(0, PHOTOS, PHOTOS)) for _ in range(1500)], [0.025, 0.975])
    return float(low), float(high)


def assert_as_wide(found: Measurement, expected: tuple[float, float]) -> None:
    assert found.ends is not None
    low, high = found.ends
    assert high - low == pytest.approx(expected[1] - expected[0], rel=0.2)
    assert low < found.value < high


def test_accuracy_over_versions_of_31_photos_is_known_as_well_as_of_31_photos(
    model: Classifier, folder: Path, measured: Callable[..., list[Measurement]]
) -> None:
    images = sp.open_dataset(str(folder / "photos-c"))
    (accuracy,) = [one for one in measured(sp.AccuracyStudy([model], images), images) if one.metric == "top1_accuracy"]
    right = light() > 127
    assert (accuracy.value, accuracy.images) == (right.mean(), PHOTOS * len(VERSIONS))
    assert_as_wide(accuracy, drawn_again(lambda photos: float(right[photos].mean())))


def test_auroc_of_versions_of_31_photos_is_known_as_well_as_of_31_photos(
    model: Classifier, folder: Path, measured: Callable[..., list[Measurement]]
) -> None:
    """Corrupted versions on one side and other photos, one case each, on the other."""
    images, shifted = sp.open_dataset(str(folder / "photos")), sp.open_dataset(str(folder / "photos-c"))
    study = sp.OODStudy([model], images, shifted={"photos-c": shifted}, detectors=["msp"], keep="logits")
    (found,) = [one for one in measured(study, images, shifted) if one.metric == "shift_auroc"]
    inside, outside = (-np.abs(values / 255 - 0.5) for values in (OTHER_PHOTOS, light()))  # surest where far from grey

    def area(some: NDArray[np.integer], photos: NDArray[np.integer]) -> float:
        return float(auroc(inside[some], outside[photos].ravel()))

    others = len(OTHER_PHOTOS)
    assert found.value == pytest.approx(
        area(np.arange(others), np.arange(PHOTOS)), abs=0.002
    )  # single floats part some equals
    generator = np.random.default_rng(6)
    assert_as_wide(found, drawn_again(lambda photos: area(generator.integers(0, others, others), photos)))


def test_pictures_whose_names_give_a_common_source_away_are_warned_about(model: Classifier, tmp_path: Path) -> None:
    draw(tmp_path / "ward", light().ravel()[:40], lambda place: f"patient{place // 5}_{place % 5:03}")
    images = sp.open_dataset(str(tmp_path / "ward"))
    sp.predict(model, images, store=tmp_path / "runs", workers=0)
    results = sp.measure(sp.AccuracyStudy([model], images), store=tmp_path / "runs", datasets=[images])
    assert "40 images look like 8 series of numbered pictures" in " ".join(results.warnings)
