"""The accuracy study on predictions small enough to count by hand."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics import clopper_pearson
from shiftproof.studies.accuracy.study import AccuracyStudy
from shiftproof.types import (
    Classes,
    ConfusionMatrix,
    DatasetRef,
    Gallery,
    Measurement,
    ModelRef,
    Predictions,
    Results,
    Run,
    Top5,
)
from studies.contracts import findings_of, skipped_by

MODEL, PHOTOS = ModelRef("toy", "1"), DatasetRef("photos", "2")


def findings(predictions: Predictions, **options: Any) -> list[Any]:
    return findings_of(AccuracyStudy([MODEL], PHOTOS, **options), lambda run: predictions)


def measured(predictions: Predictions, metric: str, **options: Any) -> list[Measurement]:
    found = findings(predictions, **options)
    return [finding for finding in found if isinstance(finding, Measurement) and finding.metric == metric]


def test_top_1_and_top_5_are_shares_with_exact_intervals(predictions_of: Any) -> None:
    predictions = predictions_of([0, 1, 2, 3], [0, 1, 1, 5])  # eel is second to dog; fox is sixth after hen
    (top1,), (top5,) = measured(predictions, "top1_accuracy"), measured(predictions, "top5_accuracy")
    assert (top1.value, top1.images, top1.ends) == (0.5, 4, clopper_pearson(2, 4))
    assert (top5.value, top5.ends) == (0.75, clopper_pearson(3, 4))
    assert top1.about == {"model": "toy", "dataset": "photos"}


def test_top_5_of_five_classes_or_fewer_is_not_worth_saying(predictions_of: Any) -> None:
    assert measured(predictions_of([0, 1], [0, 0], classes=Classes(tuple("abcde"))), "top5_accuracy") == []
    assert measured(predictions_of([0, 1], [0, 0], classes=Classes(tuple("abc"))), "top5_accuracy") == []


def test_any_of_several_right_labels_counts(predictions_of: Any) -> None:
    several = dataclasses.replace(predictions_of([0, 0], [1, 1]), labels=np.array([[0, 1], [0, -1]]))
    assert measured(several, "top1_accuracy")[0].value == 0.5
    assert {found.about["class"]: found.value for found in measured(several, "class_accuracy")} == {"cat": 0.5, "dog": 1.0}


def test_images_without_a_label_are_left_out_and_said_to_be(predictions_of: Any) -> None:
    (top1,) = measured(predictions_of([0, -1, 1], [0, 1, 0], skipped_images=2), "top1_accuracy")
    assert (top1.value, top1.images) == (0.5, 2)
    assert top1.convention["without label"].startswith("1 of 3")
    assert top1.convention["skipped images"] == "2 of 5"


def test_each_class_that_has_images_has_its_accuracy(predictions_of: Any) -> None:
    by_class = measured(predictions_of([0, 0, 0, 4], [0, 0, 1, 4]), "class_accuracy")
    assert [(found.about["class"], found.value, found.images) for found in by_class] == [("cat", 2 / 3, 3), ("gnu", 1, 1)]
    assert by_class[0].ends == pytest.approx(clopper_pearson(2, 3))


def test_two_classes_of_one_name_stay_apart(predictions_of: Any) -> None:
    classes = Classes(("crane", "crane", "eel"), ("n02012849", "n03126707", "n01440764"))
    by_class = measured(predictions_of([0, 1], [0, 0], classes=classes), "class_accuracy")
    assert [found.about["class"] for found in by_class] == ["crane (n02012849)", "crane (n03126707)"]


def test_groups_are_counted_and_the_worst_of_the_large_ones_is_named(predictions_of: Any) -> None:
    site = ["pier"] * 20 + ["dune"] * 20 + ["cave"] * 2
    wrong = [1] * 5 + [0] * 15 + [1] * 10 + [0] * 10 + [1] * 2
    predictions = predictions_of([0] * 42, wrong, facts={"site": site})
    groups = {found.about["group"]: (found.value, found.images) for found in measured(predictions, "group_accuracy")}
    assert groups == {"cave": (0, 2), "dune": (0.5, 20), "pier": (0.75, 20)}
    (worst,) = measured(predictions, "worst_group_accuracy")
    assert (worst.about["fact"], worst.about["group"], worst.value) == ("site", "dune", 0.5)
    assert worst.convention["groups compared"] == "2 of 3, those with at least 10 images"
    assert worst.ends == clopper_pearson(10, 20, level=0.975)


def test_groups_of_all_facts_count_when_the_worst_is_chosen(predictions_of: Any) -> None:
    facts = {"site": ["pier", "dune"] * 20, "night": [False] * 20 + [True] * 20}
    (worst,) = measured(predictions_of([0] * 40, [0] * 30 + [1] * 10, facts=facts), "worst_group_accuracy")
    assert (worst.about["fact"], worst.about["group"]) == ("night", "True")
    assert worst.convention["groups compared"].startswith("4 of 4")


def test_the_worst_of_one_large_group_is_not_named(predictions_of: Any) -> None:
    predictions = predictions_of([0] * 24, [1] * 24, facts={"site": ["pier"] * 20 + ["dune"] * 4})
    assert len(measured(predictions, "group_accuracy")) == 2
    assert measured(predictions, "worst_group_accuracy") == []


def test_groups_just_large_enough_count_in_the_correction(predictions_of: Any) -> None:
    facts = {"site": ["pier"] * 10 + ["dune"] * 10 + ["reef"] * 9}
    (worst,) = measured(predictions_of([0] * 29, [1] * 5 + [0] * 24, facts=facts), "worst_group_accuracy")
    assert worst.convention["groups compared"].startswith("2 of 3")
    assert worst.ends == clopper_pearson(5, 10, level=0.975)


def test_a_fact_of_nearly_every_image_its_own_makes_no_groups_and_says_why(predictions_of: Any) -> None:
    predictions = predictions_of([0] * 20, [0] * 20, facts={"photographer": [f"person {place}" for place in range(20)]})
    assert measured(predictions, "group_accuracy") == []
    (reason,) = skipped_by(AccuracyStudy([MODEL], PHOTOS), lambda run: predictions)
    assert "photographer" in reason


def test_the_worst_classes_say_what_they_are_taken_for(predictions_of: Any) -> None:
    predictions = predictions_of([0] * 10 + [1] * 1 + [2] * 5, [1] * 6 + [3] * 2 + [0] * 2 + [2] + [2] * 5)
    confusions = measured(predictions, "confusion_rate", worst_classes=1)
    assert [(found.about["class"], found.about["predicted"], found.value, found.images) for found in confusions] == [
        ("cat", "dog", 0.6, 10),
        ("cat", "fox", 0.2, 10),
    ]


def test_a_class_of_one_image_has_no_confusions_worth_a_share(predictions_of: Any) -> None:
    found = measured(predictions_of([0, 1, 1], [1, 0, 0]), "confusion_rate")
    assert [(one.about["class"], one.value, one.images) for one in found] == [("dog", 1, 2)]


def test_the_gallery_shows_the_surest_mistakes_first(predictions_of: Any) -> None:
    predictions = predictions_of([0, 0, 1, 2], [0, 1, 2, 3], [0.99, 0.6, 0.98, 0.7])
    galleries = [found for found in findings(predictions, shown=2) if isinstance(found, Gallery)]
    (gallery,) = [found for found in galleries if found.name == "confident_mistakes"]
    assert [(item.id, item.caption) for item in gallery.items] == [
        ("002.png", "predicted eel 98 %, labelled dog"),
        ("003.png", "predicted fox 70 %, labelled eel"),
    ]
    assert gallery.dataset == PHOTOS


def test_mistakes_of_a_model_of_scores_are_ranked_but_have_no_percentage(predictions_of: Any) -> None:
    predictions = predictions_of([0, 1], [2, 3], [0.6, 0.9], gives="scores")
    (gallery,) = [found for found in findings(predictions) if isinstance(found, Gallery)]
    assert [item.caption for item in gallery.items] == ["predicted fox, labelled dog", "predicted eel, labelled cat"]


def test_a_faultless_model_has_no_gallery_and_no_confusions(predictions_of: Any) -> None:
    predictions = predictions_of([0, 1], [0, 1])
    assert not any(isinstance(found, Gallery) for found in findings(predictions))
    assert measured(predictions, "confusion_rate") == []


def test_an_unlabelled_set_says_what_was_predicted(predictions_of: Any) -> None:
    predictions = predictions_of([-1] * 4, [2, 2, 2, 5])
    shares = measured(predictions, "predicted_share")
    assert [(found.about["predicted"], found.value) for found in shares] == [("eel", 0.75), ("hen", 0.25)]
    assert measured(predictions, "top1_accuracy") == []


def test_two_models_of_one_name_and_no_model_at_all_are_refused() -> None:
    with pytest.raises(BadInput, match="both called toy"):
        AccuracyStudy([MODEL, ModelRef("toy", "3")], PHOTOS)
    with pytest.raises(BadInput, match="at least one model"):
        AccuracyStudy([], PHOTOS)


def test_ten_times_the_images_take_ten_times_the_processor_time_and_not_a_hundred() -> None:
    def seconds(images: int) -> float:
        generator = np.random.default_rng(0)
        labels, top = generator.integers(1000, size=(images, 1)), generator.integers(1000, size=(images, 5))
        predictions = Predictions(
            tuple(map(str, range(images))),
            labels,
            "logits",
            Top5(top, -np.sort(-generator.normal(size=(images, 5)), axis=1), np.full(images, 9.0)),
            Classes(tuple(map(str, range(1000)))),
            facts={
                "site": tuple(map(str, generator.integers(50, size=images))),
                "width": tuple(generator.random(images).tolist()),
            },
        )
        spent = []
        for _ in range(3):
            started = time.process_time()
            assert len(findings_of(AccuracyStudy([MODEL], PHOTOS), lambda run: predictions)) > 1000
            spent.append(time.process_time() - started)
        return min(spent)

    assert seconds(100_000) < 40 * seconds(10_000)


def test_the_runs_of_a_study_are_the_clean_images_of_each_model() -> None:
    assert AccuracyStudy([MODEL], PHOTOS).runs() == [Run(MODEL, PHOTOS)]


def matrix_of(predictions: Predictions) -> ConfusionMatrix:
    (found,) = [one for one in findings(predictions) if isinstance(one, ConfusionMatrix)]
    return found


def counted(matrix: ConfusionMatrix) -> dict[tuple[str, str], int]:
    pairs = zip(matrix.true, matrix.predicted, matrix.counts, strict=True)
    return {(matrix.classes[true], matrix.classes[predicted]): times for true, predicted, times in pairs}


def test_the_confusion_matrix_counts_every_image_once_and_holds_only_pairs_that_came(predictions_of: Any) -> None:
    rng = np.random.default_rng(3)
    true, predicted = rng.integers(0, 6, size=(2, 400)).tolist()
    names = ["cat", "dog", "eel", "fox", "gnu", "hen"]
    matrix = matrix_of(predictions_of(true, predicted))
    assert counted(matrix) == Counter((names[a], names[b]) for a, b in zip(true, predicted, strict=True))
    assert sum(matrix.counts) == matrix.images == 400
    few = matrix_of(predictions_of([0, 0, 4], [0, 5, 4]))
    assert few.classes == ("cat", "gnu", "hen")
    assert counted(few) == {("cat", "cat"): 1, ("cat", "hen"): 1, ("gnu", "gnu"): 1}
    (again,) = Results.from_json(Results((few,)).to_json()).findings
    assert again == few


def test_of_several_labels_a_confusion_takes_the_predicted_or_the_first(predictions_of: Any) -> None:
    several = dataclasses.replace(predictions_of([0, 0], [1, 2]), labels=np.array([[0, 1], [0, 1]]))
    matrix = matrix_of(several)
    assert counted(matrix) == {("dog", "dog"): 1, ("cat", "eel"): 1}
    assert "several labels" in matrix.convention


def test_examples_are_of_the_pairs_confused_most_often_the_most_confident_first(predictions_of: Any) -> None:
    true, predicted = [0, 0, 0, 1, 1, 2], [1, 1, 0, 2, 2, 3]
    found = findings(predictions_of(true, predicted, [0.6, 0.9, 0.8, 0.5, 0.7, 0.95]))
    (gallery,) = [one for one in found if isinstance(one, Gallery) and one.name == "frequent_confusions"]
    assert [item.id for item in gallery.items] == ["001.png", "000.png", "004.png", "003.png"], (
        "a pair of one image is chance"
    )
