from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image as Pillow

from shiftproof.cli.main import cli
from shiftproof.errors import UnknownName
from shiftproof.metrics.accuracy import to_top5
from shiftproof.reports.build import unpacked
from shiftproof.studies.probe.study import ProbeStudy, place_among, varied
from shiftproof.types import Classes, Curve, DatasetRef, Finding, Gallery, Measurement, ModelRef, Predictions, Run
from studies.contracts import findings_of, skipped_by
from toys import save_colour_network

MODEL, OUTSIDE = ModelRef("net", "m"), DatasetRef("clothes", "clothes")


def answers(logits: np.ndarray, **facts: tuple[str | float, ...]) -> Predictions:
    ids = tuple(f"{place}.png" for place in range(len(logits)))
    classes = Classes(("cat", "dog", "eel"))
    labels = np.full((len(logits), 1), -1)
    return Predictions(ids, labels, "logits", to_top5(logits, "logits"), classes, logits, facts=dict(facts))


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    Pillow.new("RGB", (32, 32), (200, 40, 30)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def found(photo: Path, detectors: list[str]) -> list[Finding]:
    images = varied(photo, "zoom", steps=3)
    zoomed = answers(
        np.log(np.array([[8.0, 1, 1], [3, 6, 1], [2, 2, 6]])),
        photo=("photo.png",) * 3,
        varied=("zoom",) * 3,
        strength=(1.0, 2.0, 4.0),
    )
    clothes = answers(np.log(np.array([[9.0, 0.5, 0.5], [7, 2, 1], [5, 4, 1], [4, 3, 3]])))
    study = ProbeStudy([MODEL], [images], ood_dataset=OUTSIDE, detectors=detectors)
    return findings_of(study, lambda run: clothes if run.dataset == OUTSIDE else zoomed)


def test_the_first_answer_is_followed_and_the_surest_told(photo: Path) -> None:
    curves = {one.name: one for one in found(photo, ["msp"]) if isinstance(one, Curve)}
    assert curves["probe_probability"].about["class"] == "cat"
    assert np.allclose(curves["probe_probability"].y, [0.8, 0.3, 0.2])
    assert np.allclose(curves["probe_confidence"].y, [0.8, 0.6, 0.6])
    assert curves["probe_confidence"].x == (1.0, 2.0, 4.0)


def test_the_answer_that_is_followed_is_that_to_the_photo_as_it_is(photo: Path) -> None:
    turned = answers(
        np.log(np.array([[1.0, 8, 1], [6, 3, 1], [2, 2, 6]])),
        photo=("photo.png",) * 3,
        varied=("hue",) * 3,
        strength=(-180.0, 0.0, 180.0),
    )
    study = ProbeStudy([MODEL], [varied(photo, "hue", steps=3)], detectors=["msp"])
    curves = {one.name: one for one in findings_of(study, lambda _: turned) if isinstance(one, Curve)}
    assert curves["probe_probability"].about["class"] == "cat"
    assert np.allclose(curves["probe_probability"].y, [0.1, 0.6, 0.2])


def test_how_many_pictures_are_named_as_the_photo_itself_is_told(photo: Path) -> None:
    (kept,) = (one for one in found(photo, ["msp"]) if isinstance(one, Measurement))
    assert (kept.metric, kept.value, kept.images) == ("prediction_kept_share", 1 / 3, 3)
    assert (kept.about["dataset"], kept.about["class"]) == ("photo.png", "cat")


def test_scores_are_placed_among_those_of_the_outside_images(photo: Path) -> None:
    (place,) = (one for one in found(photo, ["msp"]) if isinstance(one, Curve) and one.name == "probe_percentile")
    # sureness of the OOD images is 0.9, 0.7, 0.5, 0.4: 0.8 is more foreign than one of them, 0.6 than two
    assert place.y == (0.25, 0.5, 0.5)
    assert place.about["ood_detector"] == "msp"


def test_each_picture_says_what_was_said_of_it(photo: Path) -> None:
    (gallery,) = (one for one in found(photo, ["msp"]) if isinstance(one, Gallery))
    assert [item.caption for item in gallery.items] == ["zoom 1: cat 80%", "zoom 2: dog 60%", "zoom 4: eel 60%"]


def test_a_score_between_two_others_is_above_half_of_them() -> None:
    assert place_among(np.array([1.5, 2.0]), np.array([1.0, 2.0])).tolist() == [0.5, 0.75]


def test_detectors_that_cannot_answer_are_told_once_measured(photo: Path) -> None:
    study = ProbeStudy([MODEL], [varied(photo, "hue", steps=2)], ood_dataset=OUTSIDE, detectors=["msp", "knn", "gradnorm"])
    hues = answers(np.eye(3)[:2], photo=("photo.png",) * 2, varied=("hue",) * 2, strength=(-180.0, 180.0))

    def load(run: Run) -> Predictions:
        return hues

    told = skipped_by(study, load)
    assert [sentence.split(" on net: ")[0] for sentence in told] == ["knn", "gradnorm"]
    assert "--training" in told[0]


def test_without_outside_images_only_answers_are_told(photo: Path) -> None:
    study = ProbeStudy([MODEL], [varied(photo, "hue", steps=2)])
    turned = answers(np.eye(3)[:2], photo=("photo.png",) * 2, varied=("hue",) * 2, strength=(0.0, 90.0))
    (reason,) = skipped_by(study, lambda _: turned)
    assert "--ood" in reason


def test_the_command_writes_a_report_of_one_photo(photo: Path, tmp_path: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    for place in range(5):
        (tmp_path / "clothes").mkdir(exist_ok=True)
        Pillow.new("RGB", (16, 16), (40 * place, 90, 200 - 30 * place)).save(tmp_path / "clothes" / f"{place}.png")
    asked = [
        "probe", str(photo), "--model", f"onnx:{tmp_path / 'colours.onnx'}", "--vary", "hue", "--steps", "4",
        "--ood", str(tmp_path / "clothes"), "--store", str(tmp_path / "runs"), "-o", str(tmp_path / "probe.html"),
        "--preprocess", "imagenet,size=16", "--set", "energy.temperature=3", "--quiet", "--json",
    ]  # fmt: skip
    result = CliRunner().invoke(cli, asked, catch_exceptions=False)
    assert result.exit_code == 0
    curves = [one for one in json.loads(result.stdout)["findings"] if one["kind"] == "Curve"]
    assert {one["name"] for one in curves} == {"probe_probability", "probe_confidence", "probe_percentile"}
    assert {tuple(one["x"]) for one in curves} == {(-180.0, -60.0, 60.0, 180.0)}
    (energy,) = [one["convention"]["parameters"] for one in curves if one["about"].get("ood_detector") == "energy"]
    assert energy == "temperature 3"
    page = (tmp_path / "probe.html").read_text(encoding="utf-8")
    assert "One photo, varied" in page
    assert "hue -180" in page
    assert "Hue: 3 of 4 variations are predicted as class 0, like the photo." in page
    assert "GradNorm" in unpacked(page, "data")
    assert re.search(r"100 % above all of them\. \d+ more are in the data\.", page)


def test_the_command_prints_how_long_the_answer_is_kept(photo: Path, tmp_path: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    asked = [
        "probe", str(photo), "--model", f"onnx:{tmp_path / 'colours.onnx'}", "--vary", "zoom", "--steps", "3",
        "--store", str(tmp_path / "runs"), "-o", str(tmp_path / "probe.html"), "--preprocess", "imagenet,size=16", "--quiet",
    ]  # fmt: skip
    printed = CliRunner().invoke(cli, asked, catch_exceptions=False).stdout
    assert "Prediction kept" in printed
    assert "100.0" in printed  # the photo is red all over, however near


def test_a_variation_that_there_is_not_costs_no_time(photo: Path) -> None:
    result = CliRunner().invoke(cli, ["probe", str(photo), "--vary", "zoom,fogg"])
    assert result.exit_code == 1
    assert "did you mean fog" in str(result.exception)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"detectors": ["enrgy"]}, "did you mean energy"),
        ({"preset": "author"}, "did you mean authors"),
        ({"parameters": {"knn": {"neighbors": 5}}}, "did you mean neighbours"),
    ],
)
def test_a_slip_in_a_detector_is_told_before_anything_is_run(photo: Path, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UnknownName, match=words):
        ProbeStudy([MODEL], [varied(photo, "hue", steps=2)], ood_dataset=OUTSIDE, **wrong)
