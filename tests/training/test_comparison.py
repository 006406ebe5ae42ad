"""A grid of recipes as findings and as a section of the report, on made-up models."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics import recipe_gains
from shiftproof.reports.build import build_report
from shiftproof.reports.page import Page
from shiftproof.reports.parts import Chart
from shiftproof.training.comparison import TrainedRecipe, compare_recipes
from shiftproof.training.comparison_section import NAMES, draw_recipes
from shiftproof.types import Caution, Measurement, Results, Skipped

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
    assert "augmix helps on unseen shifts" in report


def test_one_seed_and_no_unseen_shift_are_said() -> None:
    baseline, *recipes = trained(seeds=1, noise=set(SHIFTS))
    told = list(compare_recipes(baseline, recipes, dataset="photos"))
    assert [one for one in told if isinstance(one, Caution) and "one seed" in one.text]
    assert [one for one in told if isinstance(one, Skipped) and "every shift" in one.reason]
    assert all(one.interval is None and one.no_interval for one in told if isinstance(one, Measurement))
    with pytest.raises(BadInput, match="same shifts"):
        list(compare_recipes(baseline, [TrainedRecipe("x", {"clean": recipes[0].correct["clean"]})], dataset="photos"))
