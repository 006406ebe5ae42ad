"""A grid of recipes as findings and as a section of the report, on made-up models."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.bench.grid import refuse_twins
from shiftproof.errors import BadInput
from shiftproof.metrics import recipe_gains
from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import fill_conditions
from shiftproof.runs.shared_features import fill_from_features
from shiftproof.runs.store import Store
from shiftproof.training.comparison import TrainedRecipe, compare_recipes
from shiftproof.training.comparison_section import NAMES, draw_recipes
from shiftproof.types import Caution, Condition, Measurement, Results, Run, Skipped
from toys import save_colour_network
from training.small_jobs import noisy_colours

pytestmark = pytest.mark.usefixtures("one_worker")

SHIFTS = ("clean", "fog", "snow", "gaussian_noise", "jpeg_compression")
BETTER = {
    "baseline": (0.0, 0.0),  # on clean images, on shifts
    "augmix": (-0.02, 0.6),
    "cutout": (0.05, 0.0),
    "harmful": (-0.5, -0.7),
    "noise": (0.0, 0.3),
}


def trained(seeds: int = 3, images: int = 300, **seen: set[str]) -> list[TrainedRecipe]:
    rng = np.random.default_rng(0)
    ease = rng.normal(size=images)
    made = []
    for name, (clean, shifted) in BETTER.items():
        correct = {}
        for shift in SHIFTS:
            level = 1.0 + clean if shift == "clean" else 0.2 + shifted
            moved = rng.normal(scale=0.05, size=(seeds, 1))
            correct[shift] = ease + moved + rng.normal(scale=0.5, size=(seeds, images)) > -level
        made.append(TrainedRecipe(name, correct, frozenset(seen.get(name, ()))))
    return made


@pytest.fixture(scope="module")
def found() -> list[Measurement | Skipped | Caution]:
    baseline, *recipes = trained(noise={"gaussian_noise"})
    return list(compare_recipes(baseline, recipes, dataset="photos"))


def numbers(found: list[Measurement | Skipped | Caution], metric: str) -> dict[str, Measurement]:
    return {
        "/".join(str(one.about[key]) for key in ("recipe", "shift") if key in one.about): one
        for one in found
        if isinstance(one, Measurement) and one.metric == metric
    }


def test_all_are_judged_on_the_shifts_that_no_training_had(found: list[Measurement | Skipped | Caution]) -> None:
    baseline, *recipes = trained(noise={"gaussian_noise"})
    kept = ("fog", "snow", "jpeg_compression")
    tables = [np.stack([one.correct[shift] for shift in kept], axis=2) for one in (baseline, *recipes)]
    for one, gain in zip(recipes, recipe_gains(tables[0], tables[1:]), strict=True):
        told = numbers(found, "recipe_gain")[one.name]
        assert told.value == pytest.approx(gain.gain)
        assert told.ends == gain.simultaneous
        assert told.convention["shifts"] == "3 of 4, in no training"
        assert numbers(found, "recipe_gain_p")[one.name].value == gain.p
    by_shift = numbers(found, "recipe_shift_gain")
    assert "noise/gaussian_noise" not in by_shift
    assert "augmix/gaussian_noise" in by_shift
    assert {*numbers(found, "recipe_clean_change")} == {"augmix", "cutout", "harmful", "noise"}


def test_the_answer_says_who_helps_who_harms_and_who_is_open(found: list[Measurement | Skipped | Caution]) -> None:
    findings = [one for one in found if isinstance(one, Measurement)]
    page = Page(Results(tuple(findings)))
    section = draw_recipes([one for one in findings if one.metric in NAMES], page)
    first, *_, last = section.answer
    assert first.startswith("augmix helps on unseen shifts: +")
    assert last.startswith("harmful does harm on unseen shifts: −")
    assert any("cutout does not help or harm" in sentence for sentence in section.answer)
    (chart,) = (part for part in section.main if isinstance(part, Chart))
    rows = {row["name"]: row for row in chart.spec["data"]["values"]}
    change, gain = (numbers(found, metric)["augmix"] for metric in ("recipe_clean_change", "recipe_gain"))
    assert (rows["augmix"]["x"], rows["augmix"]["y"]) == (change.value, gain.value)
    assert (rows["augmix"]["y_low"], rows["augmix"]["y_high"]) == gain.ends
    low = min(one.ends[0] for one in numbers(found, "recipe_gain").values() if one.ends)
    assert chart.spec["layer"][-1]["encoding"]["y"]["scale"]["domain"][0] <= low


def test_a_report_has_the_section(found: list[Measurement | Skipped | Caution]) -> None:
    report = build_report(Results(tuple(found)))
    assert "Recipes of training" in report
    assert report.count("augmix helps on unseen shifts") == 1
    assert "On unseen shifts augmix, noise help; harmful does harm; no effect of cutout is sure, by these" in report


def test_what_all_recipes_have_stands_once_and_names_are_short(found: list[Measurement | Skipped | Caution]) -> None:
    def longer(name: object) -> str:
        return "baseline?scale=0.35+lp-ft" if name == "baseline" else f"baseline?scale=0.35+{name}+lp-ft"

    findings = [
        dataclasses.replace(one, about={**one.about, **{key: longer(one.about[key]) for key in ("recipe", "versus")}})
        for one in found
        if isinstance(one, Measurement)
    ]
    section = draw_recipes(findings, Page(Results(tuple(findings))))
    first, second, *_ = section.answer
    assert first == "All recipes have baseline?scale=0.35+lp-ft, and are named by what else they have."
    assert second.startswith("augmix helps on unseen shifts: +")
    (chart,) = (part for part in section.main if isinstance(part, Chart))
    assert {row["name"] for row in chart.spec["data"]["values"]} == {"augmix", "cutout", "harmful", "noise"}
    assert chart.note.startswith("What all have, and nothing else, is at zero.")
    assert str(section).count("lp-ft") == 1


def test_heads_on_one_network_follow_from_features_that_are_stored_once(tmp_path: Path) -> None:
    """The rows are those of running each head's network: top 5 and scores, also where an image cannot be read."""
    save_colour_network(tmp_path / "colours.onnx")
    photos = sp.open_dataset(str(noisy_colours(tmp_path / "photos", 6).location))
    (tmp_path / "photos" / "red" / "003.png").write_bytes(b"no picture")
    models, settings = [], sp.ModelSettings(preprocess="squash,size=16,mean=0,std=1")
    for place, recipe in enumerate(("linear-probe", "noise", "cutout")):
        options = sp.TrainOptions(recipe=recipe, copies=1, l2=0.1)
        sp.train(str(tmp_path / "colours.onnx"), photos, tmp_path / str(place), options=options, model_options=settings)
        models.append(sp.load_model(str(tmp_path / str(place))))
    first, *others = models
    conditions = [Condition("clean"), Condition("fog", 3)]
    quick, slow = Store(tmp_path / "quick"), Store(tmp_path / "slow")
    fill_conditions(first, photos, dict.fromkeys(conditions), store=quick, keep="features")
    for model in others:
        assert fill_from_features(model, first.ref, photos, conditions, store=quick, keep="logits") == 2 * 17
        assert fill_from_features(model, first.ref, photos, conditions, store=quick, keep="logits") == 0
        assert fill_conditions(model, photos, dict.fromkeys(conditions), store=quick, keep="logits").predicted == 0
        fill_conditions(model, photos, dict.fromkeys(conditions), store=slow, keep="logits")
        for condition in conditions:
            one, two = (
                load_predictions(Run(model.ref, photos.ref, condition), photos, store=store, keep="logits")
                for store in (quick, slow)
            )
            assert one.ids == two.ids
            assert [image.id for image in one.skipped_images] == ["red/003.png"]
            np.testing.assert_allclose(one.need_logits(), two.need_logits(), rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(one.top5.log_total, two.top5.log_total, rtol=1e-5, atol=1e-5)


def test_one_seed_and_no_unseen_shift_are_said() -> None:
    baseline, *recipes = trained(seeds=1, noise=set(SHIFTS))
    told = list(compare_recipes(baseline, recipes, dataset="photos"))
    assert [one for one in told if isinstance(one, Caution) and "one seed" in one.text]
    assert [one for one in told if isinstance(one, Skipped) and "every shift" in one.reason]
    assert all(one.interval is None and one.no_interval for one in told if isinstance(one, Measurement))
    with pytest.raises(BadInput, match="same shifts"):
        list(compare_recipes(baseline, [TrainedRecipe("x", {"clean": recipes[0].correct["clean"]})], dataset="photos"))


@pytest.mark.parametrize(
    ("first", "second"), [("cutout", "cutout:0.5"), ("tta", "baseline+tta"), ("noise+balanced", "balanced+noise")]
)
def test_one_recipe_under_two_names_is_not_compared_with_itself(first: str, second: str) -> None:
    refuse_twins(["baseline", first, "cutout:0.25", "tta:crops"])
    with pytest.raises(BadInput, match="are the same recipe; name each once"):
        refuse_twins(["baseline", first, second])
