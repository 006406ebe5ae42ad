"""Analyses of the OOD study: random networks, distance to the ID set, and the galleries that go with them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from shiftproof.metrics import auroc
from shiftproof.studies.ood.distance import groups_by_distance
from shiftproof.studies.ood.study import OODStudy
from shiftproof.types import CLEAN, Curve, Gallery, ModelRef, Predictions, Run
from studies.contracts import findings_of, skipped_by
from studies.ood_world import ALL_SETS, FOG, HATS, OTHER, PHOTOS, SHOES, SKETCHES, TOY, TRAINING, World, numbers, value

RANDOM = [ModelRef(f"toy redrawn {seed}", f"drawn {seed}") for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def random() -> tuple[Any, World]:
    world = World()
    study = OODStudy(
        [TOY],
        PHOTOS,
        conditions=[FOG],
        ood_datasets={"hats": HATS},
        training=TRAINING,
        detectors=["msp", "energy", "mahalanobis"],
        random_networks={"toy": RANDOM},
    )
    return findings_of(study, world), world


def test_random_networks_are_asked_the_same_with_detectors_fitted_on_them(random: Any) -> None:
    findings, world = random
    found = numbers(findings, "random_network_auroc")
    assert len(found) == 3 * 2 * 3  # networks, shifts, detectors
    for number, network in enumerate(RANDOM, start=1):
        training, photos, hats = (world(Run(network, images)).need_features() for images in (TRAINING, PHOTOS, HATS))
        labels = world(Run(network, TRAINING)).labels[:, 0]
        centres = np.array([training[labels == label].mean(axis=0) for label in range(4)])
        apart = training - centres[labels]
        whole = np.linalg.pinv(np.cov(apart.T, bias=True))
        nearest = [
            np.min([np.einsum("ij,jk,ik->i", rows - centre, whole, rows - centre) for centre in centres], axis=0)
            for rows in (photos, hats)
        ]
        of_hats = value(findings, "random_network_auroc", ood_detector="mahalanobis", shift="hats", network=number)
        assert of_hats == pytest.approx(auroc(*nearest), abs=1e-3)


def test_the_mean_of_random_networks_has_students_interval(random: Any) -> None:
    findings, _ = random
    where = {"ood_detector": "energy", "shift": "fog 3"}
    values = [found.value for found in numbers(findings, "random_network_auroc", **where)]
    (mean,) = numbers(findings, "mean_random_network_auroc", **where)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert mean.value == pytest.approx(np.mean(values))
    assert mean.ends == pytest.approx((max(low, 0), min(high, 1)))
    assert mean.convention["networks"] == "3"


def test_a_shift_is_told_beside_that_of_the_trained_network(random: Any) -> None:
    findings, world = random
    sharp, foggy = (
        -np.logaddexp.reduce(world(run).need_logits(), axis=1) for run in (Run(TOY, PHOTOS), Run(TOY, PHOTOS, FOG))
    )
    assert value(findings, "shift_auroc", ood_detector="energy", shift="fog 3") == pytest.approx(auroc(sharp, foggy))


def test_a_random_network_is_asked_which_answers_of_the_trained_one_are_wrong(random: Any) -> None:
    findings, world = random
    energy = {
        name: -np.logaddexp.reduce(world(run).need_logits(), axis=1)
        for name, run in {
            "photos": Run(RANDOM[1], PHOTOS),
            "fog 3": Run(RANDOM[1], PHOTOS, FOG),
            "hats": Run(RANDOM[1], HATS),
        }.items()
    }
    for id_set, run in (("photos", Run(TOY, PHOTOS)), ("fog 3", Run(TOY, PHOTOS, FOG))):
        trained = world(run)
        wrong = trained.need_logits().argmax(axis=1) != trained.labels[:, 0]
        where: dict[str, Any] = {"ood_detector": "energy", "id": id_set, "network": 2}
        alone = value(findings, "random_network_failure_auroc", ood="mistakes alone", **where)
        assert alone == pytest.approx(roc_auc_score(wrong, energy[id_set]))
        (pooled,) = numbers(findings, "random_network_failure_auroc", ood="hats", **where)
        both = np.append(wrong, np.ones(60, bool))
        assert pooled.value == pytest.approx(roc_auc_score(both, np.append(energy[id_set], energy["hats"])))
        assert pooled.convention["correct and wrong"] == "predictions of toy, the trained model"
        assert pooled.images == 150 + 60
    several = {"ood_detector": "energy", "id": "fog 3", "ood": "hats"}
    values = [one.value for one in numbers(findings, "random_network_failure_auroc", **several)]
    assert len(values) == 3
    assert value(findings, "mean_random_network_failure_auroc", **several) == pytest.approx(np.mean(values))


def test_no_detector_is_measured_on_a_random_network_that_it_cannot_be_fitted_on() -> None:
    world, study = (
        World(),
        OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, training=TRAINING, random_networks={"toy": RANDOM[:1]}),
    )

    def load(run: Run) -> Any:
        answers = world(run)
        if run.model != TOY:
            answers.top5.classes[:, 0] = (answers.labels[:, 0] + 1) % 4  # it gets every image wrong
            assert answers.logits is not None
            answers.logits[np.arange(len(answers)), answers.top5.classes[:, 0]] = 99
        return answers

    findings = findings_of(study, load)
    assert numbers(findings, "auroc", ood_detector="openmax")
    assert numbers(findings, "random_network_auroc", ood_detector="openmax") == []
    assert any(reason.startswith("openmax on toy redrawn 1: ") for reason in skipped_by(study, load))


def test_groups_share_the_images_out_from_the_nearest_to_the_farthest() -> None:
    distances = np.random.default_rng(5).random(1234)
    groups = groups_by_distance(distances)
    assert len(groups) == 1234 // 50
    assert sorted(np.concatenate(groups)) == list(range(1234))
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    ends = [(distances[group].min(), distances[group].max()) for group in groups]
    assert all(first[1] <= second[0] for first, second in pairwise(ends))
    assert [len(groups_by_distance(np.arange(count, dtype=float))) for count in (8, 10, 200, 9000)] == [0, 5, 5, 100]


def test_auroc_by_distance_is_that_of_each_group_and_the_line_goes_through_them() -> None:
    world = World()
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp", "energy"], groups=6)
    findings = findings_of(study, world)
    (curve,) = [
        one
        for one in findings
        if isinstance(one, Curve) and one.name == "distance_auroc" and one.about["ood_detector"] == "energy"
    ]
    photos, hats = world(Run(TOY, PHOTOS)), world(Run(TOY, HATS))
    there, here = (one.need_features() / np.linalg.norm(one.need_features(), axis=1)[:, None] for one in (hats, photos))
    distances = np.linalg.norm(there[:, None] - here[None], axis=2).min(axis=1)
    familiar, foreign = (-np.logaddexp.reduce(one.need_logits(), axis=1) for one in (photos, hats))
    parts = np.argsort(distances).reshape(6, 10)
    assert curve.x == pytest.approx([distances[part].mean() for part in parts])
    assert curve.y == pytest.approx([auroc(familiar, foreign[part]) for part in parts])
    line = stats.linregress(curve.x, curve.y)
    assert value(findings, "distance_slope", ood_detector="energy") == pytest.approx(line.slope)
    (start,) = numbers(findings, "distance_intercept", ood_detector="energy")
    reach = stats.t.ppf(0.975, 4) * line.intercept_stderr
    assert start.value == pytest.approx(line.intercept)
    assert start.ends == pytest.approx((line.intercept - reach, line.intercept + reach))


def test_a_line_of_many_groups_is_as_unsure_as_the_few_inside_images_leave_it() -> None:
    """Ten ID images move all groups together: what leaving each of them out does is in the intervals too."""
    world, few = World(), np.arange(10)

    def load(run: Run) -> Predictions:
        return world(run).take(few) if run.dataset == PHOTOS else world(run)

    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["energy"], baseline="energy", groups=20)
    findings = findings_of(study, load)
    (curve,) = curves(findings, "distance_auroc", ood_detector="energy")
    photos, hats = load(Run(TOY, PHOTOS)), world(Run(TOY, HATS))
    there, here = (one.need_features() / np.linalg.norm(one.need_features(), axis=1)[:, None] for one in (hats, photos))
    parts = np.argsort(np.linalg.norm(there[:, None] - here[None], axis=2).min(axis=1), kind="stable").reshape(20, 3)
    familiar, foreign = (-np.logaddexp.reduce(one.need_logits(), axis=1) for one in (photos, hats))
    lines = [
        stats.linregress(curve.x, [auroc(np.delete(familiar, photo), foreign[part]) for part in parts]) for photo in few
    ]
    whole = stats.linregress(curve.x, curve.y)
    for metric, seen, error, without in (
        ("distance_slope", whole.slope, whole.stderr, [line.slope for line in lines]),
        ("distance_intercept", whole.intercept, whole.intercept_stderr, [line.intercept for line in lines]),
    ):
        id_set = 9 / 10 * float(((np.array(without) - seen) ** 2).sum())
        degrees = (error**2 + id_set) ** 2 / (error**4 / 18 + id_set**2 / 9)
        reach = stats.t.ppf(0.975, degrees) * np.sqrt(error**2 + id_set)
        (found,) = numbers(findings, metric, ood_detector="energy")
        assert reach > 1.02 * stats.t.ppf(0.975, 18) * error
        assert found.value == pytest.approx(seen)
        assert found.ends == pytest.approx((seen - reach, seen + reach))


def test_distance_can_be_measured_by_another_model() -> None:
    world, ruler = World(), ModelRef("ruler", "of another mind")
    asked: dict[str, Any] = {"ood_datasets": {"hats": HATS}, "detectors": ["msp"]}
    own, others = (findings_of(OODStudy([TOY], PHOTOS, **asked, distance_model=model), world) for model in (None, ruler))
    by_toy, by_ruler = (
        next(one for one in found if isinstance(one, Curve) and one.name == "distance_auroc") for found in (own, others)
    )
    assert by_toy.x != by_ruler.x
    assert "ruler" in by_ruler.convention["distance"]


def test_the_frechet_distance_is_that_of_the_network_that_is_named() -> None:
    world, ruler = World(), ModelRef("ruler", "some other network")
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp"], distance_model=ruler)
    (found,) = numbers(findings_of(study, world), "frechet_distance")
    photos, hats = (world(Run(ruler, images)).need_features() for images in (PHOTOS, HATS))
    spreads = [np.cov(features.T) for features in (photos, hats)]
    apart = ((photos.mean(axis=0) - hats.mean(axis=0)) ** 2).sum()
    expected = apart + np.trace(sum(spreads)) - 2 * np.sqrt(np.linalg.eigvals(spreads[0] @ spreads[1]).real).sum()
    assert found.value == pytest.approx(expected, rel=1e-6)
    assert found.convention["features"] == "12 of ruler"


def test_sets_too_small_for_the_groups_asked_for_are_told() -> None:
    world = World()
    study = OODStudy(
        [TOY], PHOTOS, ood_datasets={"hats": HATS, "shoes": SHOES}, detectors=["msp"], groups=30
    )  # 60 hats, 45 shoes
    assert {one.about["set"] for one in numbers(findings_of(study, world), "distance_slope")} == {"hats"}
    assert skipped_by(study, world) == ["the distance analysis of shoes on toy: 30 groups need 60 images, and it has 45"]


def test_pairs_go_from_the_nearest_to_the_farthest_each_with_its_neighbour() -> None:
    world = World()
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS, "shoes": SHOES}, detectors=["msp"])
    galleries = [one for one in findings_of(study, world) if isinstance(one, Gallery) and one.name == "nearest_pairs"]
    assert [one.about["set"] for one in galleries] == ["hats", "shoes"]
    photos, hats = world(Run(TOY, PHOTOS)), world(Run(TOY, HATS))
    there, here = (one.need_features() / np.linalg.norm(one.need_features(), axis=1)[:, None] for one in (hats, photos))
    distances = np.linalg.norm(there[:, None] - here[None], axis=2)
    order = np.argsort(distances.min(axis=1))
    items = galleries[0].items
    assert [item.dataset for item in items] == [HATS, PHOTOS] * 5
    assert (items[0].id, items[8].id) == (hats.ids[order[0]], hats.ids[order[-1]])
    for ood_set, id_set in zip(items[::2], items[1::2], strict=True):
        assert id_set.id == photos.ids[distances[hats.ids.index(ood_set.id)].argmin()]


def test_pairs_are_shown_at_the_percentiles_asked_for() -> None:
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp"], pairs_at=(10, 90))
    (pairs,) = [one for one in findings_of(study, World()) if isinstance(one, Gallery) and one.name == "nearest_pairs"]
    assert [item.caption.partition(": ")[2] for item in pairs.items[::2]] == ["farther than 10 %", "farther than 90 %"]


def test_the_detectors_that_disagree_are_those_named() -> None:
    """Baseline or best, or neither; and without being among those that are measured."""
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["max_logit"], disagree=("entropy", "max_cosine"))
    findings = findings_of(study, World())
    (shown,) = [one for one in findings if isinstance(one, Gallery) and one.name == "detector_disagreement"]
    assert (shown.about["ood_detector"], shown.about["versus"]) == ("entropy", "max_cosine")
    assert all("entropy" in item.caption and "max_cosine" in item.caption for item in shown.items)
    assert {one.about["ood_detector"] for one in numbers(findings, "auroc")} == {"msp", "max_logit", "entropy", "max_cosine"}


def test_the_images_shown_are_those_whose_ranks_differ_most() -> None:
    world = World()
    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["msp", "max_logit"], shown=3)
    (gallery,) = [
        one for one in findings_of(study, world) if isinstance(one, Gallery) and one.name == "detector_disagreement"
    ]
    both = [world(Run(TOY, images)) for images in (PHOTOS, HATS)]
    logits = np.concatenate([one.need_logits() for one in both])
    confidence = np.exp(logits.max(axis=1) - np.logaddexp.reduce(logits, axis=1))
    moved = np.abs(stats.rankdata(-logits.max(axis=1)) - stats.rankdata(-confidence))
    ids = [image for one in both for image in one.ids]
    assert [item.id for item in gallery.items] == [ids[row] for row in np.argsort(-moved, kind="stable")[:3]]
    assert gallery.about["ood_detector"] == "max_logit"


def test_without_features_distance_is_left_out_and_says_so(predictions_of: Any) -> None:
    answers = predictions_of([0, 1, 2, 3], [0, 1, 5, 3], [0.9, 0.8, 0.6, 0.5], with_logits=True)
    study, load = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, keep="logits"), lambda _: answers
    assert not [one for one in findings_of(study, load) if one.about.get("set") and not isinstance(one, Gallery)]
    reasons = skipped_by(study, load)
    assert any(reason.startswith("the distance analysis on toy: ") for reason in reasons)
    assert any(reason.startswith("the Fréchet distance on toy: ") for reason in reasons)


def test_one_image_has_no_frechet_distance_and_takes_that_of_no_other_set() -> None:
    world = World()

    def load(run: Run) -> Predictions:
        return world(run).take(np.arange(len(world(run))) < 1) if run.dataset == HATS else world(run)

    study = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS, "shoes": SHOES}, detectors=["msp"])
    assert [one.about["set"] for one in numbers(findings_of(study, load), "frechet_distance")] == ["shoes"]
    (reason,) = skipped_by(study, load)
    assert reason == "the Fréchet distance of hats on toy: a spread needs at least two images, got 1"


def test_few_images_are_told_beside_the_frechet_distance() -> None:
    world = World()
    few = World()
    study = OODStudy([TOY, OTHER], PHOTOS, **ALL_SETS, detectors=["msp"])
    found = numbers(findings_of(study, world), "frechet_distance", model="toy")
    assert [one.about["set"] for one in found] == ["sketches", "fog 3", "hats", "shoes"]
    assert all("few images" not in one.convention for one in found)

    def load(run: Run) -> Any:
        return few(run).take(np.arange(11))

    found = numbers(findings_of(OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}), load), "frechet_distance")
    assert all("fewer images than features" in one.convention["few images"] for one in found)
    assert len(found) == 1


@pytest.fixture(scope="module")
def styles() -> tuple[Any, World]:
    world = World()
    study = OODStudy(
        [TOY], PHOTOS, **ALL_SETS, detectors=["msp", "energy", "max_logit"], examples=4, scores_at=(0, 50, 100), groups=9
    )
    return findings_of(study, world), world


def curves(findings: Any, name: str, **about: str) -> list[Curve]:
    return [one for one in findings if isinstance(one, Curve) and one.name == name and about.items() <= one.about.items()]


def galleries(findings: Any, name: str, **about: str) -> list[Gallery]:
    return [one for one in findings if isinstance(one, Gallery) and one.name == name and about.items() <= one.about.items()]


def test_every_figure_of_the_paper_has_its_numbers_without_being_asked_for() -> None:
    """ImageNet-OOD: rank shifts (Fig. 5), answers apart (8, 9), where lines begin (10), galleries (2, 12, 13), App. F."""
    study = OODStudy([TOY], PHOTOS, **ALL_SETS, detectors=["msp", "energy"], groups=9, random_networks={"toy": RANDOM[:1]})
    found = {getattr(one, "name", None) or getattr(one, "metric", "") for one in findings_of(study, World())}
    assert {
        "rank_shift_distribution",
        "score_distribution_by_answer",
        "distance_intercept_difference",
        "score_percentiles",
        "disagreement_by_set",
        "random_network_failure_auroc",
    } - found == set()


def test_scores_of_shifted_images_are_split_into_right_and_wrong_answers(styles: Any) -> None:
    findings, world = styles
    for shifted, run in (("sketches", Run(TOY, SKETCHES)), ("fog 3", Run(TOY, PHOTOS, FOG))):
        answers = world(run)
        right = answers.need_logits().argmax(axis=1) == answers.labels[:, 0]
        (whole,) = curves(findings, "score_distribution", ood_detector="energy", group=shifted)
        found = curves(findings, "score_distribution_by_answer", ood_detector="energy", group=shifted)
        assert [one.about["answered"] for one in found] == ["correct", "wrong"]
        assert [one.images for one in found] == [right.sum(), (~right).sum()]
        assert all(one.x == whole.x for one in found)
        assert [sum(pair) for pair in zip(*(one.counts or () for one in found), strict=True)] == list(whole.counts or ())
        energy = -np.logaddexp.reduce(answers.need_logits(), axis=1)
        # bins are of equal width, so a score lies in that whose middle is nearest
        nearest = np.abs(energy[right][:, None] - np.array(whole.x)).argmin(axis=1)
        assert list(found[0].counts or ()) == np.bincount(nearest, minlength=40).tolist()
        assert sum(found[0].y) == pytest.approx(1)


def test_rank_shifts_are_told_as_a_distribution_about_their_mean(styles: Any) -> None:
    findings, world = styles
    sets = [world(Run(TOY, images)) for images in (PHOTOS, HATS, SHOES)]
    logits = np.concatenate([one.need_logits() for one in sets])
    msp = -np.exp(logits.max(axis=1) - np.logaddexp.reduce(logits, axis=1))
    moved = (stats.rankdata(-logits.max(axis=1)) - stats.rankdata(msp)) / len(logits)
    wrong = np.zeros(len(logits), bool)
    wrong[:150] = logits[:150].argmax(axis=1) != sets[0].labels[:, 0]
    right = np.arange(len(logits)) < 150
    groups = {"correct": right & ~wrong, "wrong": wrong, "ood": ~right}
    for group, rows in groups.items():
        (curve,) = curves(findings, "rank_shift_distribution", ood_detector="max_logit", group=group)
        nearest = np.abs(moved[rows][:, None] - np.array(curve.x)).argmin(axis=1)
        assert list(curve.counts or ()) == np.bincount(nearest, minlength=40).tolist()
        assert curve.x[0] == pytest.approx(-curve.x[-1])
        assert curve.images == rows.sum()
    energy, max_logit = (curves(findings, "rank_shift_distribution", ood_detector=name) for name in ("energy", "max_logit"))
    assert {one.x for one in (*energy, *max_logit)} == {energy[0].x}  # on common axes
    assert not curves(findings, "rank_shift_distribution", ood_detector="msp")  # others are moved beside it


def test_disagreements_are_shown_for_each_set_and_either_way(styles: Any) -> None:
    findings, world = styles
    found = galleries(findings, "disagreement_by_set")
    sides = {"photos": "id", "sketches": "shifted", "fog 3": "shifted", "hats": "ood", "shoes": "ood"}
    assert {str(one.about["set"]): one.about["side"] for one in found} == sides
    best = next(str(one.about["ood_detector"]) for one in galleries(findings, "detector_disagreement"))
    assert [(one.about["ood_detector"], one.about["versus"]) for one in found[:2]] == [(best, "msp"), ("msp", best)]
    runs = {"photos": Run(TOY, PHOTOS), "fog 3": Run(TOY, PHOTOS, FOG), "hats": Run(TOY, HATS), "shoes": Run(TOY, SHOES)}
    logits = {name: world(run).need_logits() for name, run in runs.items()}
    rules = {
        "msp": lambda rows: -np.exp(rows.max(axis=1) - np.logaddexp.reduce(rows, axis=1)),
        "energy": lambda rows: -np.logaddexp.reduce(rows, axis=1),
        "max_logit": lambda rows: -rows.max(axis=1),
    }
    order = np.concatenate([logits[name] for name in ("photos", "hats", "shoes")])
    ours, theirs = (
        stats.percentileofscore(rules[name](order), rules[name](logits["fog 3"]), "mean") for name in (best, "msp")
    )
    (foggy,) = galleries(findings, "disagreement_by_set", set="fog 3", ood_detector=best)
    rows = np.argsort(theirs - ours, kind="stable")[:4]
    assert [item.id for item in foggy.items] == [world(runs["fog 3"]).ids[row] for row in rows]
    assert foggy.items[0].condition == FOG  # a picture of it is made anew, in its fog
    assert foggy.items[0].caption.startswith(f"{best} {ours[rows[0]]:.0f} %, msp {theirs[rows[0]]:.0f} %: ")
    assert all(len(one.items) <= 4 for one in found)
    none = OODStudy([TOY], PHOTOS, ood_datasets={"hats": HATS}, detectors=["energy"], examples=0, scores_at=())
    assert not [one for one in findings_of(none, World()) if one.about.get("side")]


def test_examples_lie_at_percentiles_of_the_score_in_their_set(styles: Any) -> None:
    findings, world = styles
    (shown,) = galleries(findings, "score_percentiles", ood_detector="msp", set="hats")
    hats = world(Run(TOY, HATS))
    confidence = np.exp(hats.need_logits().max(axis=1) - np.logaddexp.reduce(hats.need_logits(), axis=1))
    order = np.argsort(-confidence, kind="stable")
    assert [item.id for item in shown.items] == [hats.ids[order[place]] for place in (0, 30, 59)]
    assert [item.caption.partition(",")[0] for item in shown.items] == ["0 %", "50 %", "100 %"]
    assert {one.about["set"] for one in galleries(findings, "score_percentiles")} == {
        *("photos", "sketches", "fog 3", "hats", "shoes")
    }
    (foggy,) = galleries(findings, "score_percentiles", ood_detector="msp", set="fog 3")
    assert all(item.condition not in (None, CLEAN) for item in foggy.items)


def test_lines_of_style_and_class_are_held_against_each_other_where_they_begin(styles: Any) -> None:
    """By scipy's lines and Welch's interval, of two slopes with seven degrees of freedom each."""
    findings, _ = styles
    lines = {}
    for name in ("fog 3", "hats"):
        (curve,) = curves(findings, "distance_auroc", ood_detector="energy", set=name)
        lines[name] = stats.linregress(curve.x, curve.y)
    apart = lines["fog 3"].intercept - lines["hats"].intercept
    parts = [line.intercept_stderr**2 for line in lines.values()]
    free = sum(parts) ** 2 / sum(part**2 / 7 for part in parts)
    reach = stats.t.ppf(0.975, free) * np.sqrt(sum(parts))
    where = {"ood_detector": "energy", "set": "fog 3", "versus": "hats"}
    (higher,) = numbers(findings, "distance_intercept_difference", **where)
    assert higher.value == pytest.approx(apart)
    assert higher.ends == pytest.approx((apart - reach, apart + reach))
    fog, hats = (numbers(findings, "distance_intercept", ood_detector="energy", set=name)[0].ends for name in lines)
    assert fog is not None
    assert hats is not None
    gap = value(findings, "distance_intercept_gap", **where)
    assert gap == pytest.approx(max(fog[0], hats[0]) - min(fog[1], hats[1]))
    assert (gap > 0) == (fog[0] > hats[1] or hats[0] > fog[1])
    pairs = {(one.about["set"], one.about["versus"]) for one in numbers(findings, "distance_intercept_gap")}
    assert pairs == {(style, novel) for style in ("sketches", "fog 3") for novel in ("hats", "shoes")}
