"""Likely label errors: planted ones come first, by the model and by heads, and what corrected labels change."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.subsets import View
from shiftproof.metrics import paired_difference
from shiftproof.runs.predict import fill
from shiftproof.runs.store import Store
from shiftproof.studies.labels.options import LabelOptions
from shiftproof.studies.labels.study import REVIEWED, Judged, LabelStudy
from shiftproof.studies.measure import loader_of, measure
from shiftproof.studies.options import Context
from shiftproof.types import Classes, Classifier, Dataset, DatasetRef, Gallery, Measurement, ModelRef, Run, Seen, Skipped

pytestmark = pytest.mark.usefixtures("one_worker")

COUNT = 20


def relabelled(images: Dataset, wrong: dict[str, int], name: str = "") -> View:
    """The images, some of them labelled as another class."""
    samples = [
        dataclasses.replace(sample, labels=(wrong[sample.id],)) if sample.id in wrong else sample
        for sample in images.samples
    ]
    return View(images, images.classes, samples, name)


@pytest.fixture
def planted(draw_photos: Callable[..., Path]) -> tuple[Dataset, set[str]]:
    """Photos of three colours, three of which are labelled wrongly."""
    photos = open_dataset(draw_photos(COUNT))
    wrong = {"blue/003.png": 1, "green/007.png": 2, "red/001.png": 0}
    return relabelled(photos, wrong), {*wrong}


def judged(study: LabelStudy, model: Classifier, images: Dataset, store: Store) -> Judged:
    fill(model, images, store=store, keep="features")
    found = study.judged(Run(model.ref, images.ref), loader_of(study, store=store, datasets=[images]))
    assert isinstance(found, Judged)
    return found


@pytest.mark.parametrize("head", [False, True])
def test_planted_errors_come_first_whoever_judges(
    head: bool, planted: tuple[Dataset, set[str]], colour_model: Classifier, tmp_path: Path
) -> None:
    images, wrong = planted
    found = judged(LabelStudy([colour_model], images, head=head), colour_model, images, Store(tmp_path / "runs"))
    rows = found.rows(found.first(0.05))
    assert {row["id"] for row in rows} == wrong
    assert {(row["id"], row["label"], row["suggested"]) for row in rows} == {
        ("blue/003.png", "green", "blue"),
        ("green/007.png", "red", "green"),
        ("red/001.png", "blue", "red"),
    }
    assert all(row["confident"] for row in rows)


def test_heads_learn_classes_that_the_model_lacks(
    draw_photos: Callable[..., Path], colour_model: Classifier, tmp_path: Path
) -> None:
    photos = open_dataset(draw_photos(COUNT))
    fruit = View(photos, Classes(("plum", "lime", "apple")), photos.samples)
    wrong = {"blue/003.png": 1}
    images, store = relabelled(fruit, wrong), Store(tmp_path / "runs")
    options, context = LabelOptions(), Context(store)
    assert options.needs_head(colour_model, images, context)
    assert not options.needs_head(colour_model, photos, context)
    (study,) = options.assemble(LabelStudy, [colour_model], images, context).studies
    assert isinstance(study, LabelStudy)
    found = judged(study, colour_model, images, store)
    assert found.rows(found.first(0.01))[0]["id"] == "blue/003.png"
    results = measure(study, store=store, datasets=[images])
    assert results.measurements[0].convention["probabilities"].startswith("by logistic regression")


def test_a_model_that_was_trained_on_the_images_does_not_judge_them(
    draw_photos: Callable[..., Path], colour_model: Classifier, tmp_path: Path
) -> None:
    images, context = open_dataset(draw_photos(2)), Context(Store(tmp_path / "runs"))
    past = dataclasses.replace(colour_model, seen=Seen(trained_on=("photos",)))  # type: ignore[type-var]
    assert LabelOptions().needs_head(past, images, context)
    assert not LabelOptions(judge="model").needs_head(past, images, context)


def test_the_answers_of_heads_are_not_fitted_twice(
    planted: tuple[Dataset, set[str]], colour_model: Classifier, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shiftproof.training import cross_validated

    images, _ = planted
    study, store = LabelStudy([colour_model], images, head=True), Store(tmp_path / "runs")
    first = judged(study, colour_model, images, store)
    monkeypatch.setattr(cross_validated, "out_of_sample_logits", None)
    assert judged(study, colour_model, images, store).probabilities.tolist() == first.probabilities.tolist()


def told(study: LabelStudy, model: Classifier, images: list[Dataset], store: Store) -> list[Any]:
    for one in images:
        fill(model, one, store=store, keep="features")
    return list(measure(study, store=store, datasets=images).findings)


@pytest.mark.parametrize("head", [False, True])
def test_accuracy_before_and_after_the_review(
    head: bool, planted: tuple[Dataset, set[str]], colour_model: Classifier, tmp_path: Path
) -> None:
    images, _ = planted
    truth = {"blue/003.png": (0,), "green/007.png": (1,), "red/001.png": ()}
    samples = [
        dataclasses.replace(
            sample,
            labels=truth.get(sample.id, sample.labels),
            facts={
                REVIEWED: ("label changed" if truth[sample.id] else "no label can be told") if sample.id in truth else None
            },
        )
        for sample in images.samples
    ]
    samples[5] = dataclasses.replace(samples[5], facts={REVIEWED: "label kept"})
    after = View(images, images.classes, samples, "photos, corrected")
    study = LabelStudy([colour_model], images, head=head, corrected=after)
    found = told(study, colour_model, [images, after], Store(tmp_path / "runs"))
    numbers = {one.metric: one for one in found if isinstance(one, Measurement)}
    total = 3 * COUNT
    assert numbers["accuracy_as_labelled"].value == pytest.approx((total - 3) / total)
    assert numbers["accuracy_as_corrected"].value == 1
    assert numbers["accuracy_as_corrected"].images == total - 1
    change = numbers["accuracy_by_correction"]
    right, before = np.ones(total - 1, bool), np.arange(total - 1) >= 2
    assert change.value == pytest.approx(2 / (total - 1))
    assert change.ends == pytest.approx(paired_difference(right, before).interval)
    assert "biased upwards" in change.convention["bias"]
    assert numbers["confirmed_label_errors"].value == pytest.approx(3 / 4)
    (gallery,) = (one for one in found if isinstance(one, Gallery))
    captions = {item.id: item.caption for item in gallery.items}
    assert captions["blue/003.png"].endswith("; reviewed as blue")
    assert captions["red/001.png"].endswith("; reviewed as nothing that can be told")


def test_one_image_of_each_class_is_ranked_by_the_probability_of_its_label(predictions_of: Any, stored: Any) -> None:
    found = predictions_of([0, 1, 2], [0, 2, 2], [0.9, 0.8, 0.6], with_logits=True)
    store = stored(first=found)
    study = LabelStudy(store.models, store.dataset)
    (reason,) = [one.reason for one in study.measure(store.load) if isinstance(one, Skipped)]
    assert "every class has one image and therefore no threshold" in reason
    ranked = study.judged(study.runs()[0], store.load)
    assert isinstance(ranked, Judged)
    assert ranked.ranked.order.tolist() == [1, 2, 0]
    assert not ranked.ranked.confident.any()


def test_heads_need_two_images_of_every_class(
    draw_photos: Callable[..., Path], colour_model: Classifier, tmp_path: Path
) -> None:
    photos = open_dataset(draw_photos(5))
    alone = View(photos, photos.classes, [*photos.samples[:6]], "alone")  # five blue ones and a green one
    store = Store(tmp_path / "runs")
    fill(colour_model, alone, store=store, keep="features")
    study = LabelStudy([colour_model], alone, head=True)
    why = study.judged(Run(colour_model.ref, alone.ref), loader_of(study, store=store, datasets=[alone]))
    assert "some have only one" in str(why)


def test_infinite_scores_are_told(predictions_of: Any, stored: Any) -> None:
    found = predictions_of([0, 1], [0, 1], with_logits=True)
    found.logits[0, 0] = np.inf
    store = stored(first=found)
    study = LabelStudy(store.models, store.dataset)
    assert "infinite" in str(study.judged(study.runs()[0], store.load))


def test_what_is_read_of_the_store_is_what_the_judge_needs() -> None:
    model, photos = ModelRef("net", "1"), DatasetRef("photos", "1")
    assert LabelStudy([model], photos).keep == "logits"
    by_heads = LabelStudy([model], photos, head=True)
    assert by_heads.keep == "features"
    reading = by_heads.reading(by_heads.runs()[0])
    assert reading is not None
    assert not reading.labelled
