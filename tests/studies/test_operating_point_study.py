"""A chosen threshold: that it does what was asked, what is said of it, and that it comes back from its file."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from shiftproof.catalog import OOD_DETECTORS
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics import split_half
from shiftproof.ood import ready
from shiftproof.studies.ood.study import OODStudy
from shiftproof.studies.threshold.expected import Share
from shiftproof.studies.threshold.exported import ExportedThreshold
from shiftproof.studies.threshold.study import HELD_OUT, WHERE_PICKED, OperatingPointStudy, ThresholdChoice
from shiftproof.types import DatasetCard, DatasetRef, Fact, Measurement, ModelCard, Predictions, Results, Run, Skipped
from studies.contracts import findings_of, skipped_by
from studies.ood_world import ALL_SETS, HATS, OTHER, PHOTOS, SHOES, SKETCHES, TOY, TRAINING, World, numbers, value

FEW_ALARMS = ThresholdChoice(false_alarms=0.1)
OUTSIDE: dict[str, Any] = {"ood_datasets": {"hats": HATS, "shoes": SHOES}}


def results_of(study: OperatingPointStudy, load: Callable[[Run], Predictions]) -> Results:
    """What `measure` would give, with a card for each model and set."""
    return Results(
        (*findings_of(study, load), *map(Skipped, skipped_by(study, load))),
        models=tuple(ModelCard(model.name, model.fingerprint, "logits", {}) for model in (TOY, OTHER)),
        datasets=tuple(DatasetCard(run.dataset.name, run.dataset.fingerprint, 9, 9) for run in study.runs()),
        made="2026-01-02T03:04:05+00:00",
        versions={"shiftproof": "0.1.0"},
    )


@pytest.fixture
def six_images(predictions_of: Any) -> Callable[[Run], Predictions]:
    """Confidences of correct predictions .9 .85 .5, of a wrong one .6, of hats .7 .4."""
    sides = {
        "photos": predictions_of([0, 1, 2, 3], [0, 1, 5, 3], [0.9, 0.85, 0.6, 0.5], with_logits=True),
        "hats": predictions_of([-1, -1], [0, 1], [0.7, 0.4], with_logits=True),
    }
    return lambda run: sides[run.dataset.name]


def test_six_images_by_hand(six_images: Any) -> None:
    few = ThresholdChoice(false_alarms=0.25, miss_cost=10, ood_share=0.01)
    study = OperatingPointStudy([TOY], PHOTOS, "msp", few, ood_datasets={"hats": HATS}, keep="logits")
    found = findings_of(study, six_images)
    # one photo of four may be flagged: that of .5, and with it the hat of .4
    assert value(found, "operating_threshold") == pytest.approx(-0.5)
    for where in ({}, {"set": "photos"}):
        assert [one.value for one in numbers(found, "operating_fpr", **where)] == [1 / 4] * (2 - len(where))
    assert value(found, "operating_tpr", set="hats") == 1 / 2
    assert value(found, "operating_cost") == pytest.approx(0.99 * 1 / 4 + 0.01 * 10 * 1 / 2)


def test_further_inside_sets_are_judged_but_not_picked_on(predictions_of: Any, six_images: Any) -> None:
    more = DatasetRef("more", "more")
    three = predictions_of([0, 1, 2], [0, 1, 2], [0.95, 0.45, 0.3], with_logits=True)
    sets: Any = {"id_datasets": {"more": more}, "ood_datasets": {"hats": HATS}}
    study = OperatingPointStudy([TOY], PHOTOS, "msp", ThresholdChoice(false_alarms=0.25), **sets, keep="logits")
    found = findings_of(study, lambda run: three if run.dataset == more else six_images(run))
    assert value(found, "operating_threshold") == pytest.approx(-0.5)  # as without them
    assert value(found, "operating_fpr", set="more") == pytest.approx(2 / 3)


def test_failures_of_six_images_by_hand(six_images: Any) -> None:
    most = ThresholdChoice(rejected=0.6)
    study = OperatingPointStudy([TOY], PHOTOS, "msp", most, ood_datasets={"hats": HATS}, goal="failure", keep="logits")
    found = findings_of(study, six_images)
    # to flag 60 % of the failures .7 .6 .4 takes two of them; the right answer of .5 goes with them
    assert value(found, "operating_threshold") == pytest.approx(-0.6)
    assert [one.value for one in numbers(found, "operating_fpr")] == [pytest.approx(1 / 3)] * 2
    whole, mistakes, hats = numbers(found, "operating_tpr")
    assert (whole.value, whole.images) == (2 / 3, 3)
    assert (mistakes.about["set"], mistakes.value, mistakes.images) == ("photos", 1, 1)
    assert (hats.about["set"], hats.value, hats.images) == ("hats", 1 / 2, 2)
    # three of six images fail, so half of those to come
    assert value(found, "operating_cost") == pytest.approx(1 / 2 * 1 / 3 + 1 / 2 * 1 / 3)


def scores(world: World, images: DatasetRef) -> Any:
    return -np.logaddexp.reduce(world(Run(TOY, images)).need_logits(), axis=1)


def test_every_image_is_judged_by_a_threshold_that_has_not_seen_it() -> None:
    world = World()
    found = findings_of(OperatingPointStudy([TOY], PHOTOS, "energy", FEW_ALARMS, **OUTSIDE), world)
    id_set, first = scores(world, PHOTOS), split_half(world(Run(TOY, PHOTOS)).ids)

    def lowest(some: Any) -> float:
        """The lowest score that at most a tenth of these reach."""
        every = np.append(np.concatenate([some, *(scores(world, one)[halves[one]] for one in (HATS, SHOES))]), np.inf)
        return float(min(score for score in every if (some >= score).mean() <= 0.1))

    flagged: dict[str, int] = {}
    for half in (True, False):
        halves = {one: split_half(world(Run(TOY, one)).ids) == half for one in (PHOTOS, HATS, SHOES)}
        threshold = lowest(id_set[first == half])
        for one, rows in halves.items():
            flagged[one.name] = flagged.get(one.name, 0) + int((scores(world, one)[~rows] >= threshold).sum())
    assert value(found, "operating_fpr", judged=HELD_OUT, set="photos") == flagged["photos"] / 150
    for name, images in (("hats", 60), ("shoes", 45)):
        assert value(found, "operating_tpr", judged=HELD_OUT, set=name) == flagged[name] / images
    kept = value(found, "operating_fpr", judged=WHERE_PICKED, set="photos")
    assert 0.1 - 1 / 150 < kept <= 0.1


@pytest.mark.parametrize("goal", ["new-class", "failure"])
def test_sets_add_up_to_the_whole_that_the_threshold_was_picked_on(goal: Any) -> None:
    found = findings_of(OperatingPointStudy([TOY], PHOTOS, "msp", FEW_ALARMS, **ALL_SETS, goal=goal), World())
    for how in (HELD_OUT, WHERE_PICKED):
        whole, *parts = numbers(found, "operating_tpr", judged=how)
        picked_on = [one for one in parts if one.about["set"] in ("photos", "hats", "shoes")]
        assert sum(one.value * one.images for one in picked_on) == pytest.approx(whole.value * whole.images)
        assert sum(one.images for one in picked_on) == whole.images
        alarms = {one.about.get("set") for one in numbers(found, "operating_fpr", judged=how)}
        assert alarms == {None, "photos", "sketches", "fog 3"}


def test_the_cheapest_threshold_costs_no_more_than_others_where_it_was_picked() -> None:
    world = World()

    def cost(**way: Any) -> float:
        choice = ThresholdChoice(miss_cost=3, ood_share=0.2, **way)
        found = findings_of(OperatingPointStudy([TOY], PHOTOS, "energy", choice, **OUTSIDE), world)
        return value(found, "operating_cost", judged=WHERE_PICKED)

    assert cost(cheapest=True) <= min(cost(rejected=share) for share in (0.2, 0.4, 0.6, 0.8, 1.0))


def test_runs_and_readings_are_those_of_the_study_of_novelty() -> None:
    study = OperatingPointStudy([TOY, OTHER], PHOTOS, "knn", FEW_ALARMS, **ALL_SETS)
    novelty = OODStudy([TOY, OTHER], PHOTOS, **ALL_SETS)
    assert study.runs() == novelty.runs()
    assert [study.reading(run) for run in study.runs()] == [novelty.reading(run) for run in novelty.runs()]


@pytest.mark.parametrize("name", [*sorted(set(OOD_DETECTORS) - {"confidence", "rotation", "rotation_upright"}), "msp+vim"])
def test_every_detector_comes_back_from_its_file_with_every_parameter(name: str) -> None:
    world = World()
    parameters: dict[str, dict[str, Fact]] = {"knn": {"neighbours": 7}, "react": {"clip": math.inf}}
    study = OperatingPointStudy([TOY], PHOTOS, name, FEW_ALARMS, **OUTSIDE, training=TRAINING, parameters=parameters)
    exported = ExportedThreshold.of(results_of(study, world))
    assert ExportedThreshold.from_json(exported.to_json()) == exported
    strictly = json.loads(exported.to_json(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert strictly["rule"].startswith("flag an image where its score is at least the threshold")
    assert (exported.model, exported.model_fingerprint) == ("toy", TOY.fingerprint)
    if "+" not in name:
        fitted = ready(name, world(Run(TOY, TRAINING)), parameters=parameters.get(name))
        assert exported.parameters == {**fitted.parameters, **({"clip": "inf"} if name == "react" else {})}
        assert exported.where_picked.sets["hats"]["found"].value == exported.flags(fitted(world(Run(TOY, HATS)))).mean()


def test_a_threshold_that_flags_none_is_null_in_the_file(six_images: Any) -> None:
    dear = ThresholdChoice(cheapest=True, false_alarm_cost=1000, ood_share=0.01)
    study = OperatingPointStudy([TOY], PHOTOS, "margin", dear, ood_datasets={"hats": HATS}, keep="logits")
    answers = {name: six_images(Run(TOY, images)) for name, images in (("photos", HATS), ("hats", PHOTOS))}
    exported = ExportedThreshold.of(results_of(study, lambda run: answers[run.dataset.name]))
    assert json.loads(exported.to_json())["threshold"] is None
    assert ExportedThreshold.from_json(exported.to_json()) == exported
    assert not exported.flags(np.array([1e300])).any()


def test_too_few_images_are_judged_where_the_threshold_was_picked_and_that_is_said(six_images: Any) -> None:
    study = OperatingPointStudy([TOY], PHOTOS, "msp", FEW_ALARMS, ood_datasets={"hats": HATS}, keep="logits")
    results = results_of(study, six_images)
    assert ExportedThreshold.of(results).expected is None
    assert "evaluated only on the images it was chosen on" in results.skipped[0]
    assert "optimistic" in ExportedThreshold.of(results).where_picked.judged


@pytest.mark.parametrize(
    ("wrong", "problem", "words"),
    [
        ({"detector": "enrgy"}, UnknownName, "did you mean energy"),
        ({"detector": "msp+vin"}, UnknownName, "did you mean vim"),
        ({"detector": "vim"}, BadInput, "vim learns from training images, and none were given .--training."),
        ({"detector": "msp+energy"}, BadInput, "learns from training images"),
        ({"parameters": {"msp": {"heat": 1}}}, UnknownName, "no parameter of msp called 'heat'"),
        ({"ood_datasets": {}}, BadInput, "--ood"),
        ({"ood_datasets": {"hats": PHOTOS}}, BadInput, "the same images"),
    ],
)
def test_what_cannot_be_had_is_told_before_anything_is_run(wrong: Mapping[str, Any], problem: Any, words: str) -> None:
    options: dict[str, Any] = {"detector": "msp", "choice": FEW_ALARMS, "ood_datasets": {"hats": HATS}, **wrong}
    with pytest.raises(problem, match=words):
        OperatingPointStudy([TOY], PHOTOS, **options)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({}, "one of the three, got none"),
        ({"false_alarms": 0.1, "rejected": 0.1}, "got 2"),
        ({"cheapest": True, "rejected": 0.1}, "got 2"),
        ({"false_alarms": 5}, "false_alarms should lie between 0 and 1, got 5"),
        ({"rejected": 0}, "rejected should lie above 0"),
        ({"cheapest": True, "ood_share": -0.1}, "ood_share should lie between 0 and 1"),
        ({"cheapest": True, "miss_cost": -1}, "miss_cost should be a number of at least 0"),
        ({"false_alarms": 0.1, "false_alarm_cost": math.nan}, "false_alarm_cost should be a number"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(wrong: Mapping[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        ThresholdChoice(**wrong)


def test_reasons_are_given_where_no_threshold_can_be_picked(predictions_of: Any) -> None:
    unlabelled = predictions_of([-1] * 3, [0, 1, 2], with_logits=True)
    failures = OperatingPointStudy([TOY], PHOTOS, "msp", FEW_ALARMS, goal="failure", ood_datasets={"hats": HATS})
    with pytest.raises(BadInput, match="no threshold could be chosen: photos: failure detection needs labels"):
        ExportedThreshold.of(results_of(failures, lambda run: unlabelled))
    blind = OperatingPointStudy([TOY], PHOTOS, "msp", FEW_ALARMS, ood_datasets={"hats": HATS})
    scores_alone = predictions_of([0, 1], [0, 1], gives="scores", with_logits=True)
    with pytest.raises(BadInput, match="msp on toy: it needs logits or prob"):
        ExportedThreshold.of(results_of(blind, lambda run: scores_alone))
    none, some = predictions_of([], [], skipped_images=3, with_logits=True), predictions_of([0, 1], [0, 1], with_logits=True)
    with pytest.raises(BadInput, match="hats: nothing to measure, all 3 images were skipped"):
        ExportedThreshold.of(results_of(blind, lambda run: none if run.dataset == HATS else some))


def test_a_file_holds_one_threshold_and_no_other_file_passes_for_one() -> None:
    both = OperatingPointStudy([TOY, OTHER], PHOTOS, "msp", FEW_ALARMS, **OUTSIDE)
    with pytest.raises(BadInput, match="2 thresholds were chosen"):
        ExportedThreshold.of(results_of(both, World()))
    for text in ("{}", "[]", "point", '{"rule": "", "threshold": 1}', "[" * 100_000):
        with pytest.raises(BadInput, match="this is no threshold"):
            ExportedThreshold.from_json(text)


def test_shifted_images_take_no_part_in_picking() -> None:
    world = World()
    sets: list[dict[str, Any]] = [{}, {"shifted": {"sketches": SKETCHES}}]
    alone, beside = (
        value(
            findings_of(OperatingPointStudy([TOY], PHOTOS, "msp", FEW_ALARMS, **OUTSIDE, **more), world),
            "operating_threshold",
        )
        for more in sets
    )
    assert alone == beside


def test_a_share_of_too_few_cases_has_no_interval_in_the_file() -> None:
    found = Measurement("operating_fpr", 0.1, {}, 90, {}, None, clusters=3)
    share = Share.of(found)
    assert (share.interval, json.dumps(dataclasses.asdict(share))) == (
        None,
        '{"value": 0.1, "low": null, "high": null, "images": 90}',
    )
