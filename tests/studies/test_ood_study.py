"""the OOD study: who is asked, who is ID and OOD, and that its numbers are those of the images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import auc, precision_recall_curve

from shiftproof.catalog import OOD_DETECTORS
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics import auroc, clopper_pearson
from shiftproof.metrics.delong import auroc_difference
from shiftproof.metrics.roc import pooled_auroc
from shiftproof.metrics.two_sample import bootstrap_auroc_interval
from shiftproof.ood import needs_training, ready
from shiftproof.studies.ood import goals
from shiftproof.studies.ood import study as ood_study
from shiftproof.studies.ood.study import OODStudy
from shiftproof.types import (
    CLEAN,
    Caution,
    Condition,
    DatasetRef,
    Finding,
    Gallery,
    Measurement,
    ModelRef,
    Predictions,
    Reading,
    Run,
    Skipped,
)
from studies.contracts import findings_of, skipped_by
from studies.ood_world import ALL_SETS, FOG, HATS, OTHER, PHOTOS, SHOES, SKETCHES, TOY, TRAINING, World, numbers, value


@pytest.fixture(scope="module")
def full() -> tuple[list[Finding], list[str], World]:
    """Everything the study finds in a world where there is everything."""
    world, study = World(), OODStudy([TOY], PHOTOS, **ALL_SETS)
    found = list(study.measure(world))
    measured = [one for one in found if not isinstance(one, (Skipped, Caution))]
    return measured, [one.reason for one in found if isinstance(one, Skipped)], world


def test_every_network_is_asked_about_every_set_it_is_needed_for() -> None:
    random, odin, ruler = (ModelRef(name, name) for name in ("toy redrawn 1", "toy odin 0.1", "ruler"))
    study = OODStudy(
        [TOY, OTHER], PHOTOS, **ALL_SETS, random_networks={"toy": [random]}, odin={"toy": odin}, distance_model=ruler
    )
    variants = [(PHOTOS, CLEAN), (SKETCHES, CLEAN), (PHOTOS, FOG), (HATS, CLEAN), (SHOES, CLEAN)]
    asked: dict[ModelRef, list[tuple[DatasetRef, Condition]]] = {}
    for run in study.runs():
        asked.setdefault(run.model, []).append((run.dataset, run.condition))
    learning = [*variants, (TRAINING, CLEAN)]
    assert asked == {TOY: learning, random: learning, odin: variants, ruler: variants, OTHER: learning}


def test_sets_are_read_among_the_classes_inside_and_outside_images_without_labels() -> None:
    ruler = ModelRef("ruler", "ruler")
    study = OODStudy([TOY], PHOTOS, **ALL_SETS, distance_model=ruler)
    assert study.reading(Run(TOY, PHOTOS)) is None
    assert study.reading(Run(TOY, PHOTOS, FOG)) is None
    assert {study.reading(Run(TOY, images)) for images in (SKETCHES, TRAINING)} == {Reading(PHOTOS, labelled=True)}
    assert study.reading(Run(TOY, HATS)) == Reading(PHOTOS, labelled=False)
    assert study.reading(Run(ruler, PHOTOS)) == Reading(None, labelled=False)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"ood_datasets": {"hats": PHOTOS}}, "photos .ID. and hats .OOD. are the same images"),
        ({"ood_datasets": {"hats": HATS}, "training": HATS}, "hats .OOD. and hats .training. are the same"),
        ({"ood_datasets": {"photos": HATS}}, "given twice: photos"),
        ({"shifted": {"fog 3": SKETCHES}, "conditions": [FOG]}, "given twice: fog 3"),
        ({"ood_datasets": {"all OOD": HATS}}, "given twice: all OOD"),
        ({"id_datasets": {"more": PHOTOS}}, "photos .ID. and more .ID. are the same images"),
        ({"id_datasets": {"hats": SKETCHES}, "ood_datasets": {"hats": HATS}}, "given twice: hats"),
        ({"rejected": 75}, "rejected is a share between 0 and 1"),
        ({"area": "simpson"}, "area should be average-precision or trapezoid"),
        ({"auroc_interval": "guess"}, "interval should be delong or bootstrap"),
        ({"groups": 4}, "in 5 groups or more, got 4"),
        ({"pairs_at": (50, 101)}, "percentiles from 0 to 100, got 50, 101"),
        ({"scores_at": (-1,)}, "examples are shown at percentiles from 0 to 100, got -1"),
        ({"disagree": ("vim", "vim")}, "two detectors can disagree"),
        ({"parameters": {"msp+vim": {"vim.dimension": 5}}}, "no parameters but those of its members: msp and vim"),
    ],
)
def test_what_makes_no_sense_is_told_before_anything_is_run(wrong: Mapping[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        OODStudy([TOY], PHOTOS, **wrong)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"detectors": ["mps"]}, "did you mean msp"),
        ({"detectors": ["msp+vin"]}, "did you mean vim"),
        ({"baseline": "enery"}, "did you mean energy"),
        ({"parameters": {"knn": {"neighbors": 5}}}, "did you mean neighbours"),
        ({"preset": "author"}, "did you mean authors"),
        ({"random_networks": {"tov": [OTHER]}}, "did you mean toy"),
        ({"disagree": ("vin", "msp")}, "did you mean vim"),
        ({"disagree": ("odin_eps", "msp")}, "did you mean odin"),
    ],
)
def test_unknown_names_are_answered_with_the_nearest(wrong: Mapping[str, Any], words: str) -> None:
    with pytest.raises(UnknownName, match=words):
        OODStudy([TOY], PHOTOS, **wrong)


def test_four_photos_and_two_hats_by_hand(predictions_of: Any) -> None:
    """Confidences of correct predictions .9 .85 .5, of a wrong one .6, of hats .7 .4."""
    sides = {
        "photos": predictions_of([0, 1, 2, 3], [0, 1, 5, 3], [0.9, 0.85, 0.6, 0.5], with_logits=True),
        "hats": predictions_of([-1, -1], [0, 1], [0.7, 0.4], with_logits=True),
    }
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp"], keep="logits")
    found = findings_of(study, lambda run: sides[run.dataset.name])
    # the hat of .7 is surer than two photos, the one of .4 than none
    assert value(found, "auroc", goal="new-class") == pytest.approx(6 / 8)
    # failures are .6, .7 and .4, against the right ones: 2, 2 and 3 of 3 are surer
    assert value(found, "auroc", goal="failure") == pytest.approx(7 / 9)
    assert value(found, "auroc_correct_id") == pytest.approx(5 / 6)
    assert value(found, "auroc_misclassified_id") == pytest.approx(1 / 2)
    assert value(found, "auroc_correct_wrong") == pytest.approx(2 / 3)
    # the side that is to be found stands beside the number
    for metric, positive in (
        ("auroc", "OOD"),
        ("aupr_out", "OOD"),
        ("aupr_in", "ID"),
        ("fpr_at_tpr", "OOD"),
        ("fpr_in_at_tpr", "ID"),
    ):
        assert {one.convention["positive"] for one in numbers(found, metric)} == {positive}
    # to flag both hats, everything up to .7 goes: two of four photos, and one of the three right ones
    assert value(found, "fpr_at_tpr", goal="new-class") == pytest.approx(2 / 4)
    # to let all photos through, everything down to .5 stays: one of two hats
    assert value(found, "fpr_in_at_tpr", goal="new-class") == pytest.approx(1 / 2)
    assert value(found, "correct_discarded", rejected="75 %") == pytest.approx(1 / 3)
    # surest first: right, right, hat, wrong, right, hat; answers are wrong in 0, 0, 1/3, 2/4, 2/5, 3/6
    assert value(found, "aurc") == pytest.approx((1 / 3 + 2 / 4 + 2 / 5 + 3 / 6) / 6)
    assert value(found, "coverage_at_risk", risk="5 %") == pytest.approx(2 / 6)
    (failure,) = numbers(found, "auroc", goal="failure")
    assert failure.images == 6
    assert failure.convention["id"] == "3 correct images"
    assert failure.convention["ood"] == "3 images (failure: 1 wrong + 2 new)"


MORE = DatasetRef("more photos", "fingerprint of more photos")


def test_further_inside_sets_are_measured_at_both_goals_and_are_no_shift() -> None:
    world, random, ruler = World(), ModelRef("toy redrawn 1", "drawn"), ModelRef("ruler", "another")
    study = OODStudy(
        [TOY],
        PHOTOS,
        id_datasets={"more photos": MORE},
        shifted={"sketches": SKETCHES},
        ood_datasets={"hats": HATS},
        detectors=["msp", "energy"],
        random_networks={"toy": [random]},
        distance_model=ruler,
    )
    assert [run.model for run in study.runs() if run.dataset == MORE] == [TOY]
    assert study.reading(Run(TOY, MORE)) == Reading(PHOTOS, labelled=True)
    findings = findings_of(study, world)
    more, hats = world(Run(TOY, MORE)), world(Run(TOY, HATS))
    for name in ("msp", "energy"):
        scores, foreign = ready(name)(more), ready(name)(hats)
        right = more.labels[:, 0] == more.top5.classes[:, 0]
        where = {"ood_detector": name, "id": "more photos", "ood": "hats"}
        assert value(findings, "auroc", goal="new-class", **where) == pytest.approx(auroc(scores, foreign))
        failures = np.append(scores[~right], foreign)
        assert value(findings, "auroc", goal="failure", **where) == pytest.approx(auroc(scores[right], failures))
    assert {one.about["shift"] for one in numbers(findings, "shift_auroc")} == {"sketches", "hats"}
    assert {one.about["shift"] for one in numbers(findings, "random_network_auroc")} == {"sketches", "hats"}
    assert {one.about["set"] for one in numbers(findings, "frechet_distance")} == {"sketches", "hats"}
    assert {one.about["id"] for one in numbers(findings, "rank_shift")} == {"photos"}
    assert skipped_by(study, world) == []


def test_without_a_further_inside_set_the_others_are_measured_and_without_the_first_none(predictions_of: Any) -> None:
    world, nothing = World(), predictions_of([], [], skipped_images=3, with_logits=True)
    study = OODStudy([TOY], PHOTOS, id_datasets={"more photos": MORE}, ood_datasets={"hats": HATS}, detectors=["msp"])
    without_more = lambda run: nothing if run.dataset == MORE else world(run)  # noqa: E731 studies remember functions
    assert {one.about["id"] for one in numbers(findings_of(study, without_more), "auroc")} == {"photos"}
    assert skipped_by(study, without_more) == ["more photos: nothing to measure, all 3 images were skipped"]
    assert findings_of(study, lambda run: nothing if run.dataset == PHOTOS else world(run)) == []


def test_accuracy_is_that_of_the_labelled_images(predictions_of: Any) -> None:
    """Of four photos two are right, one is wrong and one has no label."""
    sides = {
        "photos": predictions_of([0, 1, 2, -1], [0, 1, 5, 3], [0.9, 0.85, 0.6, 0.5], with_logits=True),
        "hats": predictions_of([-1, -1], [0, 1], [0.7, 0.4], with_logits=True),
    }
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp"], keep="logits")
    (found,) = numbers(findings_of(study, lambda run: sides[run.dataset.name]), "id_accuracy")
    assert found.value == pytest.approx(2 / 3)
    assert (found.images, found.about["id"]) == (3, "photos")
    assert found.ends == pytest.approx(clopper_pearson(2, 3))
    assert found.convention["without label"] == "1 of 4, left out of what needs labels"


def test_area_and_interval_are_those_asked_for_and_printed() -> None:
    world = World()
    names: dict[str, Any] = {"ood_datasets": {"hats": HATS}, "detectors": ["msp"]}
    study = OODStudy([TOY], PHOTOS, **names, area="trapezoid", auroc_interval="bootstrap")
    findings = findings_of(study, world)
    sides = [ready("msp")(world(Run(TOY, images))) for images in (PHOTOS, HATS)]
    truth = np.repeat([0, 1], [len(side) for side in sides])
    precision, recall, _ = precision_recall_curve(truth, np.concatenate(sides))
    (area,) = numbers(findings, "aupr_out", goal="new-class")
    assert area.value == pytest.approx(auc(recall, precision), abs=1e-12)
    assert area.convention["area"] == "trapezoid"
    (found,) = numbers(findings, "auroc", goal="new-class")
    assert found.ends == bootstrap_auroc_interval(*sides)
    for metric in ("auroc", "shift_auroc", "auroc_correct_id"):
        assert numbers(findings, metric)[0].how_sure == "95 %, bootstrap over the images of either side"
    plain = findings_of(OODStudy([TOY], PHOTOS, **names), world)
    assert numbers(plain, "aupr_out")[0].convention["area"] == "average precision"
    assert numbers(plain, "auroc")[0].how_sure == "95 %, Wilson with DeLong's variance"


def test_every_detector_of_the_catalog_is_measured_or_left_out_with_a_reason(full: Any) -> None:
    findings, reasons, _ = full
    measured = {found.about["ood_detector"] for found in numbers(findings, "auroc")}
    left_out = {reason.partition(" on toy: ")[0] for reason in reasons}
    assert measured | left_out >= set(OOD_DETECTORS)
    assert measured & left_out == set()
    assert {name for name in OOD_DETECTORS if needs_training(name)} <= measured


def test_without_training_images_what_learns_is_left_out_and_says_so() -> None:
    world, study = World(), OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS})
    measured = {found.about["ood_detector"] for found in numbers(findings_of(study, world), "auroc")}
    reasons = skipped_by(study, world)
    for name in OOD_DETECTORS:
        assert (name in measured) == (
            not needs_training(name) and name not in ("confidence", "rotation", "rotation_upright")
        )
    assert "knn on toy: it learns from training images, and none were given (--training)" in reasons


def test_parts_of_the_auroc_add_up_whoever_is_inside_and_outside(full: Any) -> None:
    findings, _, world = full
    counted, parts = (
        0,
        [one for metric in ("auroc_correct_id", "auroc_misclassified_id") for one in numbers(findings, metric)],
    )
    for whole in numbers(findings, "auroc", goal="new-class"):
        where = {key: whole.about[key] for key in ("ood_detector", "id", "ood")}
        run = Run(TOY, SKETCHES if where["id"] == "sketches" else PHOTOS, FOG if where["id"] == "fog 3" else CLEAN)
        predictions = world(run)
        accuracy = float((predictions.labels[:, 0] == predictions.top5.classes[:, 0]).mean())
        right, wrong = (value(parts, f"auroc_{part}_id", **where) for part in ("correct", "misclassified"))
        assert accuracy * right + (1 - accuracy) * wrong == pytest.approx(whole.value, abs=1e-12)
        counted += 0 < accuracy < 1
    assert counted == 3 * 3 * len({found.about["ood_detector"] for found in numbers(findings, "auroc")})


def test_outside_sets_and_failures_are_pooled_at_natural_size(full: Any) -> None:
    findings, _, world = full
    photos = world(Run(TOY, PHOTOS))
    wrong = int((photos.labels[:, 0] != photos.top5.classes[:, 0]).sum())
    for whole in numbers(findings, "auroc", goal="new-class", id="photos", ood="all OOD"):
        of = {"ood_detector": whole.about["ood_detector"], "id": "photos"}
        parts = [value(findings, "auroc", goal="new-class", ood=name, **of) for name in ("hats", "shoes")]
        assert pooled_auroc(parts, [60, 45]) == pytest.approx(whole.value, abs=1e-12)
        failure = value(findings, "auroc", goal="failure", ood="all OOD", **of)
        mistakes = value(findings, "auroc_correct_wrong", **of)
        new = value(findings, "auroc_correct_id", ood="all OOD", **of)
        assert pooled_auroc([mistakes, new], [wrong, 105]) == pytest.approx(failure, abs=1e-12)


def test_unlabelled_photos_leave_new_classes_to_be_found_and_say_what_is_missing(predictions_of: Any) -> None:
    sides = {
        "photos": predictions_of([-1] * 20, [0] * 20, np.linspace(0.5, 0.9, 20), with_logits=True),
        "hats": predictions_of([-1] * 9, [0] * 9, np.linspace(0.3, 0.7, 9), with_logits=True),
    }
    study, load = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}), lambda run: sides[run.dataset.name]
    findings = findings_of(study, load)
    assert {found.about["goal"] for found in numbers(findings, "auroc")} == {"new-class"}
    assert numbers(findings, "correct_discarded") == []
    assert "photos: failure detection needs labels, and no image has one" in skipped_by(study, load)


def test_without_an_outside_set_mistakes_are_to_be_found_alone() -> None:
    findings = findings_of(OODStudy([TOY], PHOTOS, conditions=[FOG]), World())
    found = numbers(findings, "auroc")
    assert {(one.about["goal"], one.about["ood"]) for one in found} == {("failure", "mistakes alone")}
    for one in found:
        where = {key: one.about[key] for key in ("ood_detector", "id")}
        assert one.value == pytest.approx(value(findings, "auroc_correct_wrong", **where), abs=1e-12)


def test_a_model_that_gives_scores_alone_is_measured_by_none_and_the_reasons_are_given(predictions_of: Any) -> None:
    answers = predictions_of([0, 1, 2, 3], [0, 1, 5, 3], gives="scores", with_logits=True)
    study, load = OODStudy([TOY], PHOTOS), lambda _: answers
    assert findings_of(study, load) == []
    assert any(reason.startswith("msp on toy: it needs logits or prob") for reason in skipped_by(study, load))


def test_a_detector_whose_scores_are_not_numbers_is_left_out_of_every_set() -> None:
    world = World()

    def load(run: Run) -> Predictions:
        predictions = world(run)
        if run.dataset == HATS:
            assert predictions.features is not None
            predictions.features[3] = np.inf
        return predictions

    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp", "max_cosine"])
    findings = findings_of(study, load)
    assert {found.about["ood_detector"] for found in findings if "ood_detector" in found.about} == {"msp"}
    assert any("max_cosine on toy: its scores of 1 of 60" in reason for reason in skipped_by(study, load))


def test_every_detector_is_held_against_the_baseline_and_the_best(full: Any) -> None:
    findings, _, _ = full
    where = {"goal": "failure", "id": "photos", "ood": "hats"}
    aurocs = {str(found.about["ood_detector"]): found.value for found in numbers(findings, "auroc", **where)}
    best = max(aurocs, key=lambda name: aurocs[name])
    differences = numbers(findings, "auroc_difference", **where)
    assert {found.about["versus"] for found in differences} == {"msp", best}
    for found in differences:
        detector, versus = str(found.about["ood_detector"]), str(found.about["versus"])
        assert found.value == pytest.approx(aurocs[detector] - aurocs[versus], abs=1e-12)
        assert found.value <= 0 or versus == "msp"
    assert len(numbers(findings, "auroc_difference_p", **where, versus="msp")) == len(aurocs) - 1


def test_numbers_and_what_is_left_out_take_one_reading_of_every_run() -> None:
    world, study = World(), OODStudy([TOY], PHOTOS, **ALL_SETS, detectors=["msp", "knn"], groups=100)
    found = list(study.measure(world))
    assert any(isinstance(one, Measurement) and one.metric == "auroc" for one in found)
    assert any(isinstance(one, Skipped) for one in found)
    assert len(world.asked) == len(set(world.asked)) == 6


def test_groups_of_a_ranking_balance_and_shares_add_up(full: Any) -> None:
    findings, _, _ = full
    shifts = numbers(findings, "rank_shift", ood_detector="energy")
    assert {found.about["group"] for found in shifts} == {"correct", "wrong", "ood"}
    assert {found.about["ood"] for found in shifts} == {"all OOD"}
    assert next(found.images for found in shifts if found.about["group"] == "ood") == 60 + 45  # hats and shoes
    assert sum(found.value * found.images for found in shifts) == pytest.approx(0, abs=1e-9)
    shapes = [
        one for one in findings if getattr(one, "name", "") == "score_distribution" and one.about["ood_detector"] == "msp"
    ]
    assert [one.about["group"] for one in shapes] == ["correct", "wrong", "sketches", "fog 3", "hats", "shoes"]
    assert len({one.x for one in shapes}) == 1
    assert [sum(one.y) for one in shapes] == pytest.approx([1] * 6)


def test_odin_with_perturbed_inputs_reads_the_perturbed_answers() -> None:
    moved, world = ModelRef("toy odin 0.1", "something else"), World()
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp", "odin"], odin={"toy": moved})
    findings = findings_of(study, world)

    def softened(model: ModelRef, images: DatasetRef) -> Any:
        scaled = np.exp(world(Run(model, images)).need_logits() / 1000)
        return -(scaled / scaled.sum(axis=1, keepdims=True)).max(axis=1)

    for name, model in (("odin", TOY), ("odin_eps", moved)):
        expected = auroc(softened(model, PHOTOS), softened(model, HATS))
        assert value(findings, "auroc", goal="new-class", ood_detector=name) == pytest.approx(expected, abs=1e-9)
    (told,) = numbers(findings, "auroc", goal="new-class", ood_detector="odin_eps")
    assert "inputs toy odin 0.1" in told.convention["parameters"]


def test_the_shares_asked_for_are_those_the_numbers_are_of(predictions_of: Any) -> None:
    """The same four photos and two hats."""
    sides = {
        "photos": predictions_of([0, 1, 2, 3], [0, 1, 5, 3], [0.9, 0.85, 0.6, 0.5], with_logits=True),
        "hats": predictions_of([-1, -1], [0, 1], [0.7, 0.4], with_logits=True),
    }
    study = OODStudy(
        [TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp"], keep="logits", tpr=0.5, rejected=0.5, risk=0.4
    )
    found = findings_of(study, lambda run: sides[run.dataset.name])
    # one hat of two is flagged at .4, where no photo is
    assert value(found, "fpr_at_tpr", goal="new-class") == 0
    assert numbers(found, "fpr_at_tpr")[0].convention["tpr"] == "50 %"
    assert value(found, "correct_discarded", rejected="50 %") == 0
    # down to .5, two of five answers are wrong: a hat and a photo
    assert value(found, "coverage_at_risk", risk="40 %") == pytest.approx(5 / 6)


def test_an_image_without_a_label_is_no_failure_but_belongs_inside(predictions_of: Any) -> None:
    sides = {
        "photos": predictions_of([0, 1, 2, -1], [0, 1, 5, 3], [0.9, 0.85, 0.6, 0.5], with_logits=True),
        "hats": predictions_of([-1, -1], [0, 1], [0.7, 0.4], with_logits=True),
    }
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp"], keep="logits")
    found = findings_of(study, lambda run: sides[run.dataset.name])
    (failures,) = numbers(found, "auroc", goal="failure")
    assert failures.images == 2 + 1 + 2  # right, wrong, and hats
    assert failures.convention["ood"] == "3 images (failure: 1 wrong + 2 new)"
    # of four photos the hat of .7 is surer than two, the one of .4 than none
    assert value(found, "auroc", goal="new-class") == pytest.approx(6 / 8)


def test_intervals_and_p_values_hold_for_all_detectors_that_are_compared_at_once_and_agree() -> None:
    world, names = World(), ["msp", "max_logit", "energy", "margin"]
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=names)
    scores = {name: [ready(name)(world(Run(TOY, images))) for images in (PHOTOS, HATS)] for name in names}
    alone = {name: auroc_difference(*scores[name], *scores["msp"]) for name in names[1:]}
    findings = findings_of(study, world)
    where = {"goal": "new-class", "versus": "msp"}
    chances = {one.about["ood_detector"]: one for one in numbers(findings, "auroc_difference_p", **where)}
    differences = {one.about["ood_detector"]: one for one in numbers(findings, "auroc_difference", **where)}
    for name, one in alone.items():
        chance, difference = chances[name].value, differences[name]
        assert difference.value == pytest.approx(one.difference)
        assert one.p is not None
        assert one.p < chance + 1e-3  # for three questions at once none is surer than alone; draws tell no less than 1e-4
        low, high = difference.ends or (0, 0)
        assert (chance < 0.05) == (low > 0 or high < 0)
        assert "all 3 comparisons together by max-T" in chances[name].convention["test"]


def test_a_difference_of_detectors_leaves_out_0_only_where_its_p_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of six detectors of eight drawn networks some differ from the first in a test of their own and not among all."""
    for module, other_numbers in [(goals, "_separation"), (goals, "_selection"), (ood_study, "analysis_findings")]:
        monkeypatch.setattr(module, other_numbers, lambda *_given, **_named: ())
    names, seen = ["msp", "max_logit", "energy", "margin", "entropy", "gen"], set()
    for drawing in range(8):
        toy = ModelRef("toy", f"drawing {drawing}")
        study = OODStudy([toy], PHOTOS, ood_datasets={"hats": HATS}, detectors=names)
        findings = findings_of(study, World())
        for one in numbers(findings, "auroc_difference"):
            p = value(findings, "auroc_difference_p", **one.about)
            assert one.ends is not None
            apart = one.ends[0] > 0 or one.ends[1] < 0
            assert apart == (p < 0.05), (one.about, one.value, one.ends, p)
            seen.add(apart)
    assert seen == {False, True}


def test_every_number_has_an_interval_or_says_why_it_has_none(full: Any) -> None:
    findings, _, _ = full
    asked = ("aupr_out", "aupr_in", "aurc", "e_aurc", "augrc", "coverage_at_risk", "rank_shift", "frechet_distance")
    for metric in asked:
        found = numbers(findings, metric)
        assert found
        for one in found:
            if one.ends is None:
                assert one.how_sure.startswith("none: "), (metric, one.about)
            else:
                assert one.ends[0] <= one.value <= one.ends[1], (metric, one.about)
    told = {metric for metric in asked if any(one.ends for one in numbers(findings, metric))}
    assert set(asked) - told == {"frechet_distance"}  # of so few images for their features it comes out too high


def test_photos_under_corruption_on_both_sides_are_as_many_cases_as_photos() -> None:
    """Shifted copies of the ID images are no further evidence: the interval knows which belong together."""
    world = World()
    study = OODStudy([TOY], PHOTOS, conditions=[Condition("fog", 3)], detectors=["msp"])
    (found,) = numbers(findings_of(study, world), "shift_auroc")
    photos = len(world(Run(TOY, PHOTOS)))
    assert (found.images, found.clusters) == (2 * photos, photos)


def test_two_as_one_is_the_mean_of_their_scores_on_the_scale_of_the_training_images() -> None:
    world = World()
    study = OODStudy(
        [TOY], PHOTOS, ood_datasets={"hats": HATS}, training=TRAINING, detectors=["msp", "energy", "msp+energy"]
    )
    found = value(findings_of(study, world), "auroc", goal="new-class", ood_detector="msp+energy")

    def both(images: DatasetRef) -> Any:
        logits = world(Run(TOY, images)).need_logits()
        total = np.logaddexp.reduce(logits, axis=1)
        return np.array([-np.exp(logits.max(axis=1) - total), -total])

    scale = both(TRAINING)
    scores = [((both(images).T - scale.mean(axis=1)) / scale.std(axis=1)).sum(axis=1) for images in (PHOTOS, HATS)]
    assert found == pytest.approx(auroc(*scores), abs=1e-9)


def test_models_are_averaged_with_their_spread() -> None:
    study = OODStudy([TOY, OTHER], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp", "energy"])
    findings = findings_of(study, World())
    where = {"goal": "new-class", "ood_detector": "energy", "id": "photos", "ood": "hats"}
    first, second = (value(findings, "auroc", model=name, **where) for name in ("toy", "other"))
    assert value(findings, "mean_auroc", **where) == pytest.approx((first + second) / 2)
    assert value(findings, "auroc_spread", **where) == pytest.approx(abs(first - second) / np.sqrt(2))
    assert "model" not in numbers(findings, "mean_auroc")[0].about
    assert numbers(findings, "mean_auroc")[0].how_sure.startswith("none")
    for metric, there in (
        ("aupr_out", where),
        ("fpr_at_tpr", {**where, "tpr": "95 %"}),
        ("aurc", {**where, "goal": "failure"}),
        ("correct_discarded", {"ood_detector": "energy", "rejected": "75 %"}),
    ):
        first, second = (value(findings, metric, model=name, **there) for name in ("toy", "other"))
        assert value(findings, "model_mean", of=metric, **there) == pytest.approx((first + second) / 2)
        assert value(findings, "model_spread", of=metric, **there) == pytest.approx(abs(first - second) / np.sqrt(2))


def test_nothing_is_said_of_sets_that_could_not_be_read(predictions_of: Any) -> None:
    world, nothing = World(), predictions_of([], [], skipped_images=3, with_logits=True)
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS, "shoes": SHOES}, detectors=["msp"])
    load = lambda run: nothing if run.dataset == HATS else world(run)  # noqa: E731 both calls need the same function
    findings = findings_of(study, load)
    assert {found.about["ood"] for found in numbers(findings, "auroc")} == {"shoes"}
    assert "hats: nothing to measure, all 3 images were skipped" in skipped_by(study, load)


def test_galleries_name_the_set_of_every_image(full: Any) -> None:
    findings, _, world = full
    (disagreement,) = [one for one in findings if isinstance(one, Gallery) and one.name == "detector_disagreement"]
    assert disagreement.about["versus"] == "msp"
    for item in disagreement.items:
        assert item.dataset is not None
        assert item.id in world(Run(TOY, item.dataset)).ids
        assert ("OOD" in item.caption) == (item.dataset != PHOTOS)
