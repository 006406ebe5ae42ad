"""Accuracy without labels: the calibrated estimate, in a world whose accuracies are known, and the study of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import to_top5
from shiftproof.runs.store import Store
from shiftproof.studies.estimate.calibrated import CALIBRATED, Answers, Calibration, KnownShifts, Trend, log_odds
from shiftproof.studies.estimate.options import EstimateOptions
from shiftproof.studies.estimate.study import EstimateStudy, answers, family
from shiftproof.studies.options import Context
from shiftproof.types import CLEAN, Classes, Dataset, DatasetRef, ModelRef, Predictions, Run, Skipped

CLASSES, IMAGES = 6, 160
SHIFTS = {f"{group}{strength}": (group, 1.3 * strength) for group in ("noise", "blur", "weather") for strength in (1, 2)}
HALF = np.arange(IMAGES) // CLASSES % 2 == 0  # both halves have every class
GROUPS = {name: group for name, (group, _) in SHIFTS.items()}


def drawn(harm: float, seed: int, images: int = IMAGES, scale: float = 3.0) -> Answers:
    """Answers of a network that is surer than it should be; the second half of the images, of another site, is harder."""
    generator = np.random.default_rng(seed)
    labels, site = np.arange(images) % CLASSES, np.arange(images) // (images // 2)
    logits = generator.normal(size=(images, CLASSES))
    logits[np.arange(images), labels] += 3.2 - harm - 1.2 * site + 1.2 * generator.normal(size=images)
    return Answers(scale * logits, labels, logits.argmax(axis=1) == labels, np.arange(images), (site,))


@pytest.fixture(scope="module")
def made() -> Calibration:
    shifted = {name: drawn(harm, seed) for seed, (name, (_, harm)) in enumerate(SHIFTS.items(), start=1)}
    return KnownShifts(drawn(0.0, 0), shifted, GROUPS, HALF).calibration(IMAGES)


@pytest.mark.parametrize("harm", [0.6, 1.8])
def test_a_new_shift_is_estimated_within_its_interval(made: Calibration, harm: float) -> None:
    target = drawn(harm, 50, images=600)
    look = made.view(target.logits, target.cases).look()
    low, high = made.interval(look)
    assert low <= target.correct.mean() <= high
    assert abs(made.estimate(look) - target.correct.mean()) < 0.04
    assert made.interval(look, level=0.5)[0] > low


def test_calibrated_estimates_miss_less_than_published_ones(made: Calibration) -> None:
    off = {name: np.mean([abs(one.error(name)) for one in made.attempts]) for name in made.attempts[0].estimates}
    assert {*off} == {CALIBRATED, "AC", "DoC", "ATC-MC", "ATC-NE", "COT"}
    assert off[CALIBRATED] == min(off.values())
    assert len(made.attempts) == 2 * len(SHIFTS)
    assert 0.9 <= made.covered() <= 1


def test_a_scale_of_the_logits_changes_nothing(made: Calibration) -> None:
    target = drawn(1.0, 51)
    scaled = KnownShifts(
        drawn(0.0, 0, scale=30.0),
        {name: drawn(harm, seed, scale=30.0) for seed, (name, (_, harm)) in enumerate(SHIFTS.items(), start=1)},
        GROUPS,
        HALF,
    ).calibration(IMAGES)
    first, second = made.view(target.logits, target.cases), scaled.view(10 * target.logits, target.cases)
    assert scaled.estimate(second.look()) == pytest.approx(made.estimate(first.look()), abs=1e-6)


def test_the_order_of_images_changes_nothing(made: Calibration) -> None:
    target = drawn(1.0, 52)
    order = np.random.default_rng(0).permutation(IMAGES)
    looks = [made.view(target.logits[rows], target.cases).look() for rows in (np.arange(IMAGES), order)]
    assert made.estimate(looks[0]) == pytest.approx(made.estimate(looks[1]))


def test_a_harder_slice_has_the_lower_estimate_and_its_interval_holds(made: Calibration) -> None:
    target = drawn(1.0, 53, images=600)
    view, (site,) = made.view(target.logits, target.cases), target.groupings
    easy, hard = (view.look(site == value) for value in (0, 1))
    assert made.estimate(hard) < made.estimate(easy) - 0.05
    for look, value in ((easy, 0), (hard, 1)):
        ends = made.interval_in_slice(look)
        assert ends is not None
        assert ends[0] <= target.correct[site == value].mean() <= ends[1]


def test_images_that_all_look_like_one_class_are_refused(made: Calibration) -> None:
    target = drawn(0.0, 54)
    assert made.why_outside(made.view(target.logits, target.cases)) is None
    target.logits[:, 3] += 20
    why = made.why_outside(made.view(target.logits, target.cases), "abcdef".__getitem__)
    assert why is not None
    assert "gave their class (d)" in why


def test_answers_far_less_sure_than_any_tried_are_refused(made: Calibration) -> None:
    seen = dataclasses.replace(made, looks=[look._replace(signals=np.ones(3)) for look in made.looks])
    target = drawn(5.0, 55, scale=0.3)
    assert "mean confidence" in str(seen.why_outside(made.view(target.logits, target.cases)))


def test_fewer_images_have_a_wider_interval(made: Calibration) -> None:
    target = drawn(1.0, 56)
    look = made.view(target.logits, target.cases).look()
    wide, narrow = (np.ptp(made.interval(look._replace(cases=cases))) for cases in (20, 160))
    assert wide > 1.2 * narrow
    assert np.ptp(made.interval(look._replace(cases=10**6))) == pytest.approx(narrow)


def piled_up(harm: float, seed: int, images: int) -> Answers:
    """Answers that a shift piles up on some names, so that the limits of classes bind."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(images) % CLASSES)
    logits = generator.normal(size=(images, CLASSES)) + harm * np.linspace(-0.8, 1.2, CLASSES)
    logits[np.arange(images), labels] += 3.2 - harm + 1.2 * generator.normal(size=images)
    return Answers(3 * logits, labels, logits.argmax(axis=1) == labels, np.arange(images))


@pytest.fixture(scope="module")
def piled() -> KnownShifts:
    shifted = {name: piled_up(0.8 * harm, seed, IMAGES) for seed, (name, (_, harm)) in enumerate(SHIFTS.items(), start=1)}
    return KnownShifts(piled_up(0.0, 0, IMAGES), shifted, GROUPS, np.arange(IMAGES) < 75)


def test_the_estimate_does_not_hang_on_how_many_images_there_are(piled: KnownShifts) -> None:
    target = piled_up(1.5, 70, 1680)
    means = []
    for images in (40, 80, 160, 168, 240):
        made = piled.calibration(images)
        parts = [slice(start, start + images) for start in range(0, len(target), images)]
        looks = [made.view(target.logits[part], target.cases[part]).look() for part in parts]
        means.append(np.mean([made.estimate(look) for look in looks]))
    assert np.ptp(means) < 0.02
    assert means[-1] == pytest.approx(target.correct.mean(), abs=0.04)


def test_targets_of_one_size_share_a_calibration_and_large_ones_too(piled: KnownShifts) -> None:
    assert piled.calibration(60) is piled.calibration(60)
    assert piled.calibration(60).at_once == 60
    assert piled.calibration(IMAGES) is piled.calibration(10 * IMAGES)


def test_halves_of_unequal_size_are_looked_at_alike(piled: KnownShifts, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = set()
    through = Trend.through

    def noted(signals: Any, accuracies: Any, images: int, at_once: int) -> Trend:
        sizes.add((images, at_once))
        return through(signals, accuracies, images, at_once)

    monkeypatch.setattr(Trend, "through", noted)
    KnownShifts(piled.clean, piled.shifted, piled.groups, piled.half).calibration(IMAGES)
    assert sizes == {(160, 160), (75, 75), (85, 75)}


def test_a_trend_is_found_again() -> None:
    generator = np.random.default_rng(0)
    signals = generator.uniform(0.2, 0.8, size=(200, 3))
    logits = 0.3 + log_odds(signals, 1000) @ np.array([0.8, 0.1, 0.4])
    found = Trend.through(signals, 1 / (1 + np.exp(-logits)), 1000)
    assert found.weights == pytest.approx([0.8, 0.1, 0.4], abs=0.05)


def test_no_relative_of_a_corruption_is_in_another_group() -> None:
    assert family("gaussian_blur") == family("defocus_blur") == "blur"
    assert family("speckle_noise") == "noise"


MODEL, PHOTOS, TARGET = ModelRef("net", "1"), DatasetRef("photos", "1"), DatasetRef("camera", "2")
CORRUPTIONS = ("gaussian_noise", "fog", "pixelate")


def predictions(answers: Answers, *, labelled: bool = True, site: bool = True) -> Predictions:
    labels = answers.labels if labelled else np.full(len(answers), -1)
    return Predictions(
        tuple(f"{place}.png" for place in range(len(answers))),
        labels[:, None],
        "logits",
        to_top5(answers.logits, "logits"),
        classes=Classes(tuple("abcdef")),
        logits=answers.logits,
        facts={"site": tuple("pier" if value else "dune" for value in answers.groupings[0])} if site else {},
    )


def loaded(target: Answers, labelled: Any = drawn) -> Any:
    """A loader of drawn answers: stronger the severity, the more wrong ones."""

    def load(run: Run) -> Predictions:
        if run.dataset == TARGET:
            return predictions(target, labelled=False)
        place = 0 if run.condition == CLEAN else 1 + CORRUPTIONS.index(run.condition.name)
        return predictions(labelled(0.5 * run.condition.severity if place else 0.0, place + 10 * run.condition.severity))

    return load


STUDY = EstimateStudy([MODEL], PHOTOS, corruptions=CORRUPTIONS, severities=(1, 3), unlabelled={"camera": TARGET})


def test_the_study_reads_production_as_it_is_and_never_its_labels() -> None:
    runs = STUDY.runs()
    assert Run(MODEL, TARGET) in runs
    assert Run(MODEL, PHOTOS) in runs
    assert len(runs) == 8
    assert {run.condition.picture for run in runs if run.condition != CLEAN} == {"model-size"}
    reading = STUDY.reading(Run(MODEL, TARGET))
    assert reading is not None
    assert not reading.labelled
    assert STUDY.reading(Run(MODEL, PHOTOS)) is None


def test_the_study_gives_the_estimate_its_slices_and_how_far_it_was_off() -> None:
    target = drawn(1.0, 60, images=400)
    found = [one for one in STUDY.measure(loaded(target)) if not isinstance(one, Skipped)]
    by_name: dict[str, list[Any]] = {}
    for one in found:
        by_name.setdefault(getattr(one, "metric", ""), []).append(one)
    (whole,) = by_name["estimated_accuracy"]
    assert whole.about == {"model": "net", "dataset": "camera"}
    assert whole.images == 400
    assert whole.ends[0] <= target.correct.mean() <= whole.ends[1]
    assert {one.about["group"] for one in by_name["estimated_group_accuracy"]} == {"pier", "dune", *"abcdef"}
    assert {one.about["estimate"] for one in by_name["published_estimate"]} == {"AC", "DoC", "ATC-MC", "ATC-NE", "COT"}
    assert len(by_name["estimate_error"]) == 6
    assert len(by_name["estimate_coverage"]) == 1
    assert {one.images for name in ("estimate_error", "estimate_coverage") for one in by_name[name]} == {IMAGES}


def test_too_few_images_are_told() -> None:
    few = list(STUDY.measure(loaded(drawn(1.0, 61, images=30))))
    assert Skipped("camera: an estimate needs 40 images, and has 30") in few
    none = list(STUDY.measure(loaded(drawn(1.0, 61), lambda harm, seed: drawn(harm, seed, images=24))))
    assert [str(one) for one in none if "needs 40 labelled images" in str(one)]


def with_infinite(answers: Answers) -> Answers:
    answers.logits[7, 2] = np.inf
    return answers


def test_infinite_scores_are_told_and_estimated_from_no_more() -> None:
    told = list(STUDY.measure(loaded(with_infinite(drawn(1.0, 62)))))
    assert Skipped("camera: the scores of 1 of 160 images are infinite") in told
    assert not [one for one in told if getattr(one, "metric", "") == "estimated_accuracy"]
    assert [one for one in told if getattr(one, "metric", "") == "estimate_error"]


@pytest.mark.parametrize(("seed", "where"), [(0, ""), (32, " under fog 3")])
def test_infinite_scores_of_labelled_images_are_told(seed: int, where: str) -> None:
    def some(harm: float, drawn_by: int) -> Answers:
        found = drawn(harm, drawn_by)
        return with_infinite(found) if drawn_by == seed else found

    told = [one.reason for one in STUDY.measure(loaded(drawn(1.0, 62), some)) if isinstance(one, Skipped)]
    assert told == [f"photos: the scores of 1 of 160 images are infinite{where}"]


def test_of_several_labels_the_predicted_one_counts_or_the_first_that_is_known() -> None:
    made = predictions(drawn(0.0, 0))
    best = made.top5.classes[:, 0]
    other = (best + 1) % CLASSES
    labels = np.stack([other, best], axis=1)
    labels[:2] = [[-1, other[0]], [-1, best[1]]]
    labels[2] = [(best[2] + 2) % CLASSES, other[2]]
    found = answers(dataclasses.replace(made, labels=labels))
    assert found.labels[:3].tolist() == [other[0], best[1], (best[2] + 2) % CLASSES]
    assert (found.labels[3:] == best[3:]).all()
    assert found.correct.tolist() == [False, True, False, *[True] * (IMAGES - 3)]


def test_only_labelled_images_are_drawn_to_calibrate_on(draw_photos: Callable[..., Path]) -> None:
    folder = draw_photos(30)
    photos = open_dataset(folder)
    samples = [dataclasses.replace(one, labels=one.labels if place % 2 else ()) for place, one in enumerate(photos.samples)]
    some = View(photos, photos.classes, samples)
    options = EstimateOptions(unlabelled=(str(folder),), calibrated_on=40)

    def calibrated_on(images: Dataset) -> Dataset:
        return options.assemble(EstimateStudy, [MODEL], images, Context(Store("runs"))).datasets[0]

    assert [len(one.labels) for one in calibrated_on(some).samples] == [1] * 40
    assert calibrated_on(some).ref.name == f"photos, labelled, 40 of {len(samples) // 2}"
    assert calibrated_on(photos).ref.name == f"photos, 40 of {len(samples)}"


def test_one_group_of_corruptions_is_not_enough() -> None:
    with pytest.raises(BadInput, match="two groups or more"):
        EstimateStudy([MODEL], PHOTOS, corruptions=("fog", "snow"))


def test_the_images_to_estimate_must_be_named() -> None:
    with pytest.raises(BadInput, match="--unlabelled DIR"):
        EstimateOptions().assemble(EstimateStudy, [MODEL], PHOTOS, None)  # type: ignore[arg-type]
