"""The corruption study within a budget, from choosing to the numbers, with a toy classifier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image as Pillow

import shiftproof as sp
from shiftproof.cli.main import cli
from shiftproof.corruptions import IMAGENET_C
from shiftproof.errors import BadInput, MissingRuns
from shiftproof.models import wrap_model
from shiftproof.options import PredictionSettings
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import fill_studies
from shiftproof.runs.store import Store
from shiftproof.studies.corruption import budgeted
from shiftproof.studies.corruption.budget import Benchmark
from shiftproof.studies.corruption.budgeted import BudgetedCorruptionStudy
from shiftproof.studies.corruption.study import CorruptionStudy
from shiftproof.studies.measure import measure
from shiftproof.types import CLEAN, EXAMPLES, Classifier, Curve, Dataset, Gallery, Inputs, Logits, Measurement, Results
from toys import COLOURS, colour_scores, save_colour_network

NAMES = ("gaussian_noise", "contrast", "brightness", "pixelate")


SETTINGS: dict[str, Any] = {"corruptions": NAMES, "edition": "cifar-32"}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Twenty noisy photos of each colour."""
    folder, rng = tmp_path_factory.mktemp("drawn"), np.random.default_rng(3)
    for colour, rgb in COLOURS.items():
        (folder / colour).mkdir()
        for number in range(20):
            pixels = np.clip(np.array(rgb) + rng.normal(0, 60, (24, 32, 3)), 0, 255).astype(np.uint8)
            Pillow.fromarray(pixels).save(folder / colour / f"{number:03}.png")
    return sp.open_dataset(str(folder))


@pytest.fixture(scope="module")
def model() -> Classifier:
    return astray("astray", 60, texture=40, light=30)


@pytest.fixture(scope="module")
def other() -> Classifier:
    return astray("other", 80, texture=41, light=30)


@pytest.fixture(scope="module")
def whole(model: Classifier, other: Classifier, images: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store in which both models have every photo in every cell: nothing is left to be run there."""
    store = Store(tmp_path_factory.mktemp("whole") / "runs")
    for one in (model, other):
        filled(CorruptionStudy([one], images, **SETTINGS), one, images, store)
    return store


def astray(name: str, strength: float, *, texture: float, light: float) -> Classifier:
    """A colour model that texture leads astray, the more so the stronger the picture was changed."""

    def scores(inputs: Inputs) -> Logits:
        pixels = np.asarray(inputs, np.float32)
        wave = np.sin(texture * pixels.std(axis=(2, 3)) + light * pixels.mean(axis=(2, 3)))
        return np.asarray(colour_scores(inputs) + strength * wave)

    return wrap_model(
        scores, name=name, version="1", class_names=sorted(COLOURS), size=(16, 16), preprocess="squash,mean=0,std=1"
    )


def filled(study: CorruptionStudy, model: Classifier, images: Dataset, store: Store) -> Results:
    fill_studies(model, [study], [images], store=store, settings=PredictionSettings(workers=0))
    return measure(study, store=store, datasets=[images])


OF_WHOLE_CELLS = {"corruption_loss", "corrupted_overconfidence"}
"""What only the full study has: a budget runs some photos of each cell."""


def numbers(results: Results) -> dict[tuple[str, str], Measurement]:
    found = [one for one in results.measurements if one.metric not in OF_WHOLE_CELLS]
    return {(one.metric, json.dumps(dict(one.about), sort_keys=True)): one for one in found}


def the(results: Results, metric: str, model: str = "astray") -> Measurement:
    """The one number of this name that is about a model and nothing else."""
    (found,) = [one for one in results.measurements if one.metric == metric and set(one.about) == {"model", "dataset"}]
    assert found.about["model"] == model
    return found


def sampling_errors(results: Results) -> dict[tuple[str, str], float]:
    """By the number they are of."""
    found = {}
    for one in results.measurements:
        if one.metric == "sampling_error":
            about = {key: value for key, value in one.about.items() if key != "number"}
            found[str(one.about["number"]), json.dumps(about, sort_keys=True)] = one.value
    return found


def sampling_error(results: Results, metric: str) -> float:
    (found,) = [value for (number, _), value in sampling_errors(results).items() if number == metric]
    return found


def width(found: Measurement) -> float:
    assert found.ends is not None
    return found.ends[1] - found.ends[0]


def assert_alike(budgeted: Results, full: Results) -> None:
    """Every number and every interval of the full study, and nothing left open beside them."""
    expected = numbers(full)
    found = {key: one for key, one in numbers(budgeted).items() if one.metric != "sampling_error"}
    assert set(found) == set(expected)
    for key, one in found.items():
        assert one.value == pytest.approx(expected[key].value, abs=1e-9), key
        assert (one.ends is None) == (expected[key].ends is None), key
        assert (one.ends or (0, 0)) == pytest.approx(expected[key].ends or (0, 0), abs=1e-9), key
    errors = [one.value for one in budgeted.measurements if one.metric == "sampling_error"]
    assert len(errors) == len(found) - 1  # the clean error is never sampled
    assert errors == pytest.approx([0.0] * len(errors), abs=1e-9)


def test_with_everything_run_all_numbers_and_intervals_are_those_of_the_full_study(
    model: Classifier, images: Dataset, whole: Store
) -> None:
    full = filled(CorruptionStudy([model], images, **SETTINGS, baseline="alexnet"), model, images, whole)
    study = BudgetedCorruptionStudy([model], images, **SETTINGS, baseline="alexnet", budget=60 * 21)
    spent = filled(study, model, images, whole)
    assert_alike(spent, full)
    curves = {json.dumps(dict(one.about), sort_keys=True): one for one in full.findings if isinstance(one, Curve)}
    for one in (one for one in spent.findings if isinstance(one, Curve)):
        expected = curves[json.dumps(dict(one.about), sort_keys=True)]
        assert one.y == pytest.approx(expected.y)
        assert one.low == pytest.approx(expected.low)
        assert one.high == pytest.approx(expected.high)


def test_less_work_does_not_look_surer(model: Classifier, images: Dataset, whole: Store, tmp_path: Path) -> None:
    """A run that knows these photos almost exactly is no surer of others than the full run is."""
    full = filled(CorruptionStudy([model], images, **SETTINGS), model, images, whole)
    almost = filled(BudgetedCorruptionStudy([model], images, **SETTINGS, precision=0.001), model, images, whole)
    for metric in ("mean_corrupted_error", "relative_corrupted_error"):
        assert width(the(almost, metric)) == pytest.approx(width(the(full, metric)), rel=0.02)
    assert sampling_error(almost, "mean_corrupted_error") <= 0.001
    study = BudgetedCorruptionStudy([model], images, **SETTINGS, budget=200)
    loose = filled(study, model, images, Store(tmp_path / "runs"))
    assert width(the(loose, "mean_corrupted_error")) > 1.1 * width(the(full, "mean_corrupted_error"))
    assert "those that were not run estimated" in the(loose, "mean_corrupted_error").how_sure


def test_a_small_budget_is_kept_and_its_sampling_error_reaches_the_full_answer(
    model: Classifier, images: Dataset, whole: Store, tmp_path: Path
) -> None:
    small = Store(tmp_path / "small")
    study = BudgetedCorruptionStudy([model], images, **SETTINGS, budget=360)
    results = filled(study, model, images, small)
    stored = sum(len(small.run(model.ref, condition).contents().rows) for condition in study.conditions())
    assert stored == 360
    full = filled(CorruptionStudy([model], images, **SETTINGS), model, images, whole)
    mean, truth = the(results, "mean_corrupted_error"), the(full, "mean_corrupted_error").value
    left_open = sampling_error(results, "mean_corrupted_error")
    assert abs(mean.value - truth) < left_open
    assert 0.0025 < left_open < 0.15
    assert mean.ends is not None
    assert mean.ends[0] < truth < mean.ends[1]
    assert mean.convention["passes"] == "360 of 1,260"
    sheet, *examples = results.galleries
    assert all(item.correct is None for item in sheet.items)
    assert {finding.name for finding in results.findings if isinstance(finding, (Curve, Gallery))} == {
        "degradation",
        "contact_sheet",
        EXAMPLES,
    }
    assert {str(one.about["corruption"]) for one in examples} <= set(NAMES)
    label_of = {sample.id: sample.labels[0] for sample in images.samples}
    for (item,) in (one.items for one in examples):
        assert item.condition is not None
        rows = small.run(model.ref, item.condition).contents().rows
        assert item.id in {image for image, _ in rows}, "it was run there"
        clean, lost = (sp.predict(model, images, condition=one, store=whole) for one in (CLEAN, item.condition))
        predicted = [dict(zip(one.ids, one.top5.classes[:, 0].tolist(), strict=True))[item.id] for one in (clean, lost)]
        assert predicted[0] == label_of[item.id] != predicted[1]


def test_a_baseline_that_was_run_in_full_is_paired_photo_by_photo(
    model: Classifier, other: Classifier, images: Dataset, whole: Store
) -> None:
    against = {**SETTINGS, "baseline": other.ref}
    full = filled(CorruptionStudy([model], images, **against), model, images, whole)
    study = BudgetedCorruptionStudy([model], images, **against, budget=60 * 21)
    assert_alike(filled(study, model, images, whole), full)


def test_two_budgets_give_an_mce_of_the_same_pairs(
    model: Classifier, other: Classifier, images: Dataset, whole: Store, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs")
    filled(BudgetedCorruptionStudy([other], images, **SETTINGS, budget=500), other, images, store)
    against = {**SETTINGS, "baseline": other.ref}
    study = BudgetedCorruptionStudy([model], images, **against, budget=500)
    results = filled(study, model, images, store)
    for condition in study.conditions():
        ids = [{key for key, _ in store.run(one.ref, condition).contents().rows} for one in (model, other)]
        assert ids[0] == ids[1]
    full = filled(CorruptionStudy([model], images, **against), model, images, whole)
    assert not [reason for reason in results.skipped if "baseline" in reason]
    found, truth, left_open = numbers(results), numbers(full), sampling_errors(results)
    ratios = [key for key in found if key[0] in ("corruption_error", "mean_corruption_error", "relative_corruption_error")]
    assert set(ratios) <= set(truth)
    of = {"corruption_error": "brightness", "relative_corruption_error": "gaussian_noise", "mean_corruption_error": ""}
    some = [key for key in ratios if of[key[0]] in key[1]]
    assert len(some) == 3
    for key in some:
        low, high = found[key].ends or (np.inf, -np.inf)
        assert low < truth[key].value < high
        assert abs(found[key].value - truth[key].value) < 1.5 * left_open[key] < width(found[key])
    assert the(results, "mean_corruption_error").convention["baseline"] == "other"


def test_a_precision_is_of_the_models_own_passes_and_what_a_sampled_baseline_leaves_open_is_said(
    model: Classifier, other: Classifier, images: Dataset, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs")
    filled(BudgetedCorruptionStudy([other], images, **SETTINGS, budget=500), other, images, store)
    study = BudgetedCorruptionStudy([model], images, **SETTINGS, baseline=other.ref, precision=1e-4)
    results = filled(study, model, images, store)
    left_open = {
        one.about["number"]: one
        for one in results.measurements
        if one.metric == "sampling_error" and not {"corruption", "group"} & set(one.about)
    }
    mean, ratio = left_open["mean_corrupted_error"], left_open["mean_corruption_error"]
    assert mean.value <= 1e-4 < ratio.value, "the model was run until nothing was open; the baseline was not"
    assert "baseline" not in mean.convention
    assert "sampled too and included" in ratio.convention.get("baseline", "")


def test_a_baseline_without_a_budget_of_its_own_is_told_what_to_do(
    model: Classifier, other: Classifier, images: Dataset, tmp_path: Path
) -> None:
    store = Store(tmp_path / "runs")
    one_cell = CorruptionStudy([other], images, corruptions=NAMES[:1], severities=[1], edition="cifar-32")
    filled(one_cell, other, images, store)
    study = BudgetedCorruptionStudy([model], images, **SETTINGS, baseline=other.ref, budget=300)
    results = filled(study, model, images, store)
    (reason,) = [reason for reason in results.skipped if "baseline" in reason]
    assert "run other with the same --budget or --half-width, or in full" in reason


def test_a_budgeted_baseline_is_a_hundred_percent_of_itself(model: Classifier, images: Dataset, tmp_path: Path) -> None:
    study = BudgetedCorruptionStudy([model], images, corruptions=NAMES, edition="cifar-32", baseline=model.ref, budget=300)
    results = filled(study, model, images, Store(tmp_path / "runs"))
    assert the(results, "mean_corruption_error").value == pytest.approx(1.0)
    assert sampling_error(results, "mean_corruption_error") == 0


def test_going_on_with_a_larger_budget_does_nothing_twice(model: Classifier, images: Dataset, tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    for budget in (300, 600):
        study = BudgetedCorruptionStudy([model], images, **SETTINGS, budget=budget)
        with pytest.raises(MissingRuns):
            measure(study, store=store, datasets=[images])
        filled(study, model, images, store)
        assert sum(len(store.run(model.ref, one).contents().rows) for one in study.conditions()) == budget


def test_pairs_are_chosen_by_how_peaked_clean_predictions_are(
    model: Classifier, images: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def recorded(*given: Any, **named: Any) -> Benchmark:
        told.append(Benchmark(*given, **named))
        return told[-1]

    monkeypatch.setattr(budgeted, "Benchmark", recorded)
    study = BudgetedCorruptionStudy([model], images, corruptions=NAMES, edition="cifar-32", budget=300)
    store = Store(tmp_path / "runs")
    filled(study, model, images, store)
    clean = load_predictions(study.runs()[0], images, store=store)
    peak_of = dict(zip(clean.ids, clean.top5.scores[:, 0] - clean.top5.scores[:, -1], strict=True))
    assert told
    assert len(set(peak_of.values())) > 1
    for one in told:
        assert one.clean_peaks == pytest.approx([peak_of[image] for image in one.ids])


def test_scores_without_end_have_no_peak() -> None:
    scores = np.array([[3.0, 1.0], [np.inf, 1.0], [1.0, -np.inf], [np.inf, np.inf]])
    assert budgeted.peaks_of(scores).tolist() == [2.0, 0.0, 0.0, 0.0]


def test_a_precision_is_reached(model: Classifier, images: Dataset, tmp_path: Path) -> None:
    study = BudgetedCorruptionStudy([model], images, corruptions=NAMES, edition="cifar-32", precision=0.03)
    results = filled(study, model, images, Store(tmp_path / "runs"))
    assert 0 < sampling_error(results, "mean_corrupted_error") <= 0.03


def test_a_budget_needs_a_figure_and_one_mean(model: Classifier, images: Dataset) -> None:
    with pytest.raises(BadInput, match="give a budget, a precision or both"):
        BudgetedCorruptionStudy([model], images)
    with pytest.raises(BadInput, match="speckle_noise"):
        BudgetedCorruptionStudy([model], images, corruptions=[*IMAGENET_C, "speckle_noise"], budget=100)


def test_the_command_spends_a_budget_and_then_another_against_it(images: Dataset, tmp_path: Path) -> None:
    photos = str(images.ref.location)
    save_colour_network(tmp_path / "colours.onnx")
    (tmp_path / "classes.txt").write_text("blue\ngreen\nred\n")
    what = [f"onnx:{tmp_path / 'colours.onnx'}", photos, "--classes", str(tmp_path / "classes.txt")]
    how = ["--store", str(tmp_path / "runs"), "--workers", "0", "--quiet"]
    study = ["--studies", "corruption", "--corruptions", ",".join(NAMES), "--edition", "cifar-32", "--budget", "300"]
    made = ["--preprocess", "squash,mean=0,std=1,size=16", "--name", "plain"]
    ran = CliRunner().invoke(cli, ["run", *what, *how, *study, *made, "--json", "-o", str(tmp_path / "report.html")])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.stdout)
    (mean,) = [one for one in found["findings"] if one.get("metric") == "mean_corrupted_error"]
    assert mean["convention"]["passes"] == "300 of 1,260"
    # every answer is right, and then, as of a full run, drawing photos again tells nothing
    assert mean["interval"] is None
    assert mean["value"] == pytest.approx(0, abs=0.01)
    other = ["--preprocess", "squash,mean=0.5,std=1,size=16", "--name", "shifted", "--baseline", "plain"]
    ran = CliRunner().invoke(cli, ["run", *what, *how, *study, *other, "--verbose", "-o", str(tmp_path / "report.html")])
    assert ran.exit_code == 0, ran.output
    assert "exactly these photos" in ran.stdout
    assert "no prediction" not in ran.output
