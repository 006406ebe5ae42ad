"""Weaknesses that were put into toy classifiers on purpose are among the first three findings; sound ones show none."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.types import Inputs, Logits, Profile, Results

CLASSES = ("blue", "cyan", "green", "magenta", "red", "yellow")
HUES = np.array([[0, 0, 1], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0]], float)
DIRECTIONS = (HUES - HUES.mean(axis=1, keepdims=True)) / np.linalg.norm(HUES - HUES.mean(axis=1, keepdims=True), axis=1)[
    :, None
]
EACH = 25
SURE = 0.97

Predict = Callable[[Inputs], tuple[NDArray[np.integer], NDArray[np.floating]]]
"""Predicted classes, and the confidence in each."""


def draw(place: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """A square of the class's colour before a grey texture."""
    grey = generator.uniform(40, 210, size=(8, 8)).repeat(4, axis=0).repeat(4, axis=1)
    picture = np.repeat(grey[:, :, None], 3, axis=2)
    top, left = generator.integers(2, 12, size=2)
    picture[top : top + 18, left : left + 18] = 30 + 200 * HUES[place] + generator.uniform(-20, 20, size=3)
    return picture.clip(0, 255).round().astype(np.uint8)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each colour."""
    root, generator = tmp_path_factory.mktemp("drawn") / "photos", np.random.default_rng(5)
    for place, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True)
        for number in range(EACH):
            Pillow.fromarray(draw(place, generator)).save(root / name / f"{number:02d}.png")
    return root


def by_hue(inputs: Inputs) -> NDArray[np.integer]:
    """The colour that the picture leans to, however faint."""
    means = np.asarray(inputs, float).mean(axis=(2, 3))
    return np.asarray(((means - means.mean(axis=1, keepdims=True)) @ DIRECTIONS.T).argmax(axis=1))


def sound(inputs: Inputs) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    return by_hue(inputs), np.full(len(inputs), SURE)


def blind_to_contrast(inputs: Inputs) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Takes every faint picture for the first class."""
    faint = np.asarray(inputs, float).std(axis=(1, 2, 3)) < 0.16
    return np.where(faint, 0, by_hue(inputs)), np.where(faint, 0.3, SURE)


def sure_of_noise(inputs: Inputs) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Misclassifies every other noisy picture, in full confidence."""
    steps = np.abs(np.diff(np.asarray(inputs, float), axis=3)).mean(axis=(1, 2))
    noisy = (np.median(steps, axis=1) > 0.09) & (np.asarray(inputs, float).sum(axis=(1, 2, 3)) % 0.1 < 0.05)
    return np.where(noisy, (by_hue(inputs) + 1) % len(CLASSES), by_hue(inputs)), np.full(len(inputs), SURE)


def lost_after_a_cut(inputs: Inputs) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Misclassifies dark pictures, as the frames are that fade in after a cut."""
    dark = np.asarray(inputs, float).mean(axis=(1, 2, 3)) < 0.2
    return np.where(dark, (by_hue(inputs) + 1) % len(CLASSES), by_hue(inputs)), np.full(len(inputs), SURE)


def classifier(predict: Predict) -> sp.types.Classifier:
    def scores(inputs: Inputs) -> Logits:
        predicted, confidence = predict(inputs)
        chances = np.repeat(((1 - confidence) / (len(CLASSES) - 1))[:, None], len(CLASSES), axis=1)
        chances[np.arange(len(inputs)), predicted] = confidence
        return np.log(chances)

    return sp.wrap_model(scores, name="toy", version="1", class_names=CLASSES, size=(32, 32), preprocess="unit")


def judged(predict: Predict, photos: Path, tmp_path: Path, *studies: str) -> tuple[Profile, Results]:
    options = {"corruption": sp.CorruptionOptions(corruptions=("brightness", "contrast", "gaussian_noise"))}
    results = sp.run(
        classifier(predict),
        photos,
        studies={name: options.get(name) for name in studies},
        store=tmp_path / "runs",
        report=tmp_path / "report.html",
    )
    (found,) = results.profiles
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(one.sentence in page.replace("\N{NO-BREAK SPACE}", " ") for one in found.weaknesses)
    return found, results


ALL = ("accuracy", "calibration", "corruption")


def test_a_sound_classifier_shows_no_weakness(photos: Path, tmp_path: Path) -> None:
    found, _ = judged(sound, photos, tmp_path, *ALL)
    assert found.weaknesses == ()
    assert found.candidates >= 6 + 2 * 3 * 5


def test_swapped_labels_of_a_class_are_found(photos: Path, tmp_path: Path) -> None:
    rows = [(f"{name}/{number:02d}.png", name) for name in CLASSES for number in range(EACH)]
    swapped = {"green": "red", "red": "green"}
    manifest = photos.parent / "swapped.csv"
    with manifest.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label"])
        writer.writerows((f"photos/{path}", swapped.get(name, name)) for path, name in rows)
    found, _ = judged(sound, manifest, tmp_path, *ALL)
    first, second = sorted(one.sentence for one in found.weaknesses[:2])
    assert first == "Class green: 0 of 25 correct, 25 predicted as red"
    assert second == "Class red: 0 of 25 correct, 25 predicted as green"
    assert all(one.example and one.section == "accuracy" for one in found.weaknesses[:2])


def test_blindness_to_contrast_is_found(photos: Path, tmp_path: Path) -> None:
    found, _ = judged(blind_to_contrast, photos, tmp_path, *ALL)
    assert [one.found.about["corruption"] for one in found.weaknesses[:1]] == ["contrast"]
    first = found.weaknesses[0]
    assert first.sentence.startswith("Contrast at severity ")
    assert first.example is not None
    assert first.example.condition is not None
    assert (first.example.condition.name, first.example.condition.severity) == ("contrast", first.found.about["severity"])


def test_overconfidence_on_noise_is_found(photos: Path, tmp_path: Path) -> None:
    found, _ = judged(sure_of_noise, photos, tmp_path, *ALL)
    told = [one for one in found.weaknesses[:3] if one.sentence.startswith("Over-confident by ")]
    assert [one.found.about["corruption"] for one in told] == ["gaussian_noise"]
    assert told[0].found.value > 0.3


def test_failing_after_a_cut_is_found(tmp_path: Path) -> None:
    generator, folder = np.random.default_rng(8), tmp_path / "frames"
    folder.mkdir()
    rows = []
    for clip in range(40):
        place = clip % len(CLASSES)
        for offset in range(-3, 4):
            picture = draw(place, generator)
            if offset in (1, 2):  # right behind a cut
                picture //= 4
            path = folder / f"{clip:02d}_{offset}.png"
            Pillow.fromarray(picture).save(path)
            rows.append((path.name, path.name, CLASSES[place], f"clip{clip:02d}", f"{clip:02d}_0.png", offset))
    with (folder / "frames.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("id", "path", "label", "clip", "anchor", "offset"), *rows])
    found, _ = judged(lost_after_a_cut, folder / "frames.csv", tmp_path, "accuracy", "temporal")
    first = next(one for one in found.weaknesses[:3] if one.section == "temporal")
    assert first.sentence in {
        "1 frame after the anchor frames accuracy is 100.0 points lower",
        "2 frames after the anchor frames accuracy is 100.0 points lower",
    }
    assert first.example is not None
    assert first.example.offset in (1, 2)
