"""The corruption study within a budget, from choosing to the numbers, with a toy classifier."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import shiftproof as sp
from shiftproof.cli import cli
from shiftproof.corruptions import IMAGENET_C
from shiftproof.errors import BadInput, MissingRuns
from shiftproof.models import wrap_model
from shiftproof.prediction import fill_studies
from shiftproof.store import Store
from shiftproof.studies import measure
from shiftproof.studies.budgeted_corruption import BudgetedCorruptionStudy
from shiftproof.studies.corruption import CorruptionStudy
from shiftproof.studies.results import Results
from shiftproof.types import Classifier, Curve, Gallery, ImageSet, Inputs, Logits
from toys import COLOURS, colour_scores, save_colour_network

NAMES = ("gaussian_noise", "contrast", "brightness", "pixelate")


@pytest.fixture
def images(draw_photos: Callable[..., Path]) -> ImageSet:
    return sp.open_images(str(draw_photos(20)))


@pytest.fixture
def model() -> Classifier:
    """A colour model that texture leads astray, the more so the stronger the picture was changed."""

    def scores(inputs: Inputs) -> Logits:
        pixels = np.asarray(inputs, np.float32)
        return np.asarray(colour_scores(inputs) + 9 * np.sin(40 * pixels.std(axis=(2, 3)) + 30 * pixels.mean(axis=(2, 3))))

    return wrap_model(
        scores, name="astray", version="1", class_names=sorted(COLOURS), size=(16, 16), prepare="squash,mean=0,std=1"
    )


def filled(study: CorruptionStudy, model: Classifier, images: ImageSet, store: Store) -> Results:
    fill_studies(model, [study], [images], store=store, workers=0)
    return measure(study, store=store, image_sets=[images])


def numbers(results: Results) -> dict[tuple[str, str], float]:
    return {(one.metric, json.dumps(dict(one.about), sort_keys=True)): one.value for one in results.measurements}


def test_a_budget_for_everything_gives_the_full_answer_without_doubt(
    model: Classifier, images: ImageSet, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs")
    settings = {"corruptions": NAMES, "edition": "cifar-32", "baseline": "alexnet"}
    full = filled(CorruptionStudy([model], images, **settings), model, images, store)  # type: ignore[arg-type]
    study = BudgetedCorruptionStudy([model], images, **settings, budget=60 * 21)  # type: ignore[arg-type]
    spent = filled(study, model, images, store)
    expected = numbers(full)
    found = numbers(spent)
    assert set(found) == set(expected)
    for key, value in found.items():
        assert value == pytest.approx(expected[key], abs=1e-9), key
    for one in spent.measurements:
        if one.metric != "clean_error":
            assert one.interval == pytest.approx((one.value, one.value), abs=1e-9)


def test_a_small_budget_is_kept_and_its_interval_holds_the_full_answer(
    model: Classifier, images: ImageSet, tmp_path: Path
) -> None:
    small, large = Store(tmp_path / "small"), Store(tmp_path / "large")
    settings = {"corruptions": NAMES, "edition": "cifar-32"}
    study = BudgetedCorruptionStudy([model], images, **settings, budget=360)  # type: ignore[arg-type]
    results = filled(study, model, images, small)
    stored = sum(len(small.run(model.ref, condition).contents().rows) for condition in study.conditions())
    assert stored == 360
    full = filled(CorruptionStudy([model], images, **settings), model, images, large)  # type: ignore[arg-type]
    (mean,) = [one for one in results.measurements if one.metric == "mean_corrupted_error"]
    (truth,) = [one.value for one in full.measurements if one.metric == "mean_corrupted_error"]
    assert mean.interval is not None
    assert mean.interval[0] < truth < mean.interval[1]
    assert 0.005 < mean.interval[1] - mean.interval[0] < 0.3
    assert mean.convention["passes"] == "360 of 1,260"
    (sheet,) = results.galleries
    assert not any(word in item.caption for item in sheet.items for word in (": right", ": wrong"))
    assert {finding.name for finding in results.findings if isinstance(finding, (Curve, Gallery))} == {
        "degradation",
        "contact_sheet",
    }


def test_going_on_with_a_larger_budget_does_nothing_twice(model: Classifier, images: ImageSet, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    settings = {"corruptions": NAMES, "edition": "cifar-32"}
    for budget in (300, 600):
        study = BudgetedCorruptionStudy([model], images, **settings, budget=budget)  # type: ignore[arg-type]
        with pytest.raises(MissingRuns):
            measure(study, store=store, image_sets=[images])
        filled(study, model, images, store)
        assert sum(len(store.run(model.ref, one).contents().rows) for one in study.conditions()) == budget


def test_a_precision_is_reached(model: Classifier, images: ImageSet, tmp_path: Path) -> None:
    study = BudgetedCorruptionStudy([model], images, corruptions=NAMES, edition="cifar-32", precision=0.03)
    results = filled(study, model, images, Store(tmp_path / "runs"))
    (mean,) = [one for one in results.measurements if one.metric == "mean_corrupted_error"]
    assert mean.interval is not None
    assert mean.interval[1] - mean.interval[0] <= 0.06


def test_a_budget_needs_a_figure_and_one_mean(model: Classifier, images: ImageSet) -> None:
    with pytest.raises(BadInput, match="give a budget, a precision or both"):
        BudgetedCorruptionStudy([model], images)
    with pytest.raises(BadInput, match="speckle_noise"):
        BudgetedCorruptionStudy([model], images, corruptions=[*IMAGENET_C, "speckle_noise"], budget=100)


def test_the_command_spends_a_budget(images: ImageSet, tmp_path: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("blue\ngreen\nred\n")
    what = [f"onnx:{tmp_path / 'colours.onnx'}", str(tmp_path / "photos"), "--classes", str(tmp_path / "classes.txt")]
    how = ["--prepare", "squash,mean=0,std=1,size=16", "--store", str(tmp_path / "runs"), "--workers", "0", "--quiet"]
    study = ["--studies", "corruption", "--corruptions", ",".join(NAMES), "--edition", "cifar-32", "--budget", "300"]
    ran = CliRunner().invoke(cli, ["run", *what, *how, *study, "--json", "-o", str(tmp_path / "report.html")])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    (mean,) = [one for one in found["findings"] if one.get("metric") == "mean_corrupted_error"]
    assert mean["convention"]["passes"] == "300 of 1,260"
