"""The comparison study and its verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from shiftproof.errors import BadInput
from shiftproof.metrics import PairedCounts, difference_interval
from shiftproof.studies.comparison.study import ComparisonStudy
from shiftproof.studies.evidence import verdict, verdicts
from shiftproof.types import Classes, DatasetRef, Gallery, Interval, Measurement, ModelRef
from studies.contracts import findings_of, skipped_by


def measured(store: Any, metric: str) -> dict[tuple[str, str], Measurement]:
    found = findings_of(ComparisonStudy(store.models, store.dataset), store.load)
    chosen = [finding for finding in found if isinstance(finding, Measurement) and finding.metric == metric]
    return {(str(finding.about["model"]), str(finding.about["versus"])): finding for finding in chosen}


def gallery(store: Any) -> Gallery | None:
    found = findings_of(ComparisonStudy(store.models, store.dataset), store.load)
    return next((finding for finding in found if isinstance(finding, Gallery)), None)


def texts(store: Any) -> list[str]:
    found = findings_of(ComparisonStudy(store.models, store.dataset), store.load)
    return [said.text for said in verdicts(finding for finding in found if isinstance(finding, Measurement))]


def own_p(won: int, differing: int, images: int, *, times: int = 1) -> Any:
    """Bonett and Price's: one image is added to each way of differing."""
    middle, count = won / (images + 2), images + 2
    return pytest.approx(times * 2 * norm.sf(middle / np.sqrt(((differing + 2) / count - middle**2) / count)))


def test_two_models_are_compared_by_the_images_only_one_gets_right(predictions_of: Any, stored: Any) -> None:
    good, poor = predictions_of([0] * 20, [0] * 18 + [1] * 2), predictions_of([0] * 20, [0] * 9 + [2] * 10 + [0])
    store, pair, table = stored(good=good, poor=poor), ("good", "poor"), PairedCounts(9, 9, 1, 1)
    difference = measured(store, "accuracy_difference")[pair]
    assert (difference.value, difference.ends, difference.images) == (0.4, difference_interval(table), 20)
    assert measured(store, "accuracy_difference_p")[pair].value == own_p(8, 10, 20)
    assert (measured(store, "shared_errors")[pair].value, measured(store, "shared_errors")[pair].images) == (1 / 11, 11)
    assert measured(store, "agreement")[pair].value == 9 / 20
    assert texts(store) == ["good is better than poor on photos by 40.0 points (9.5 to 63.2; p = 0.008; 20 images)"]


def test_the_order_of_the_models_does_not_change_who_is_better(predictions_of: Any, stored: Any) -> None:
    good, poor = predictions_of([0] * 20, [0] * 20), predictions_of([0] * 20, [1] * 20)
    for store in (stored(good=good, poor=poor), stored(poor=poor, good=good)):
        assert texts(store)[0].startswith("good is better than poor on photos by 100.0 points")


@pytest.mark.parametrize(("interval", "p_value"), [((0.01, 0.2), 0.06), ((-0.01, 0.2), 0.04)])
def test_better_needs_both_the_test_and_the_interval(interval: tuple[float, float], p_value: float) -> None:
    about = {"model": "first", "versus": "second", "dataset": "photos"}
    difference = Measurement("accuracy_difference", 0.1, about, 100, {}, Interval(*interval))
    assert verdict(difference, p_value).better is None
    assert verdict(Measurement("accuracy_difference", 0.1, about, 100, {}, Interval(0.01, 0.2)), 0.04).better == "first"


def test_models_equally_good_are_said_to_be_indistinguishable(predictions_of: Any, stored: Any) -> None:
    first, second = predictions_of([0] * 10, [0] * 5 + [1] * 5), predictions_of([0] * 10, [1] * 4 + [0] * 6)
    assert texts(stored(first=first, second=second))[0].startswith("first and second do not differ significantly on photos")


def test_several_models_are_compared_in_pairs_with_correction(predictions_of: Any, stored: Any) -> None:
    right = [[0] * 30, [0] * 23 + [1] * 7, [0] * 22 + [1] * 8]
    store = stored(**{name: predictions_of([0] * 30, row) for name, row in zip("abc", right, strict=True)})
    p_values = {pair: found.value for pair, found in measured(store, "accuracy_difference_p").items()}
    assert p_values == {
        ("a", "b"): own_p(7, 7, 30, times=3),
        ("a", "c"): own_p(8, 8, 30, times=3),
        ("b", "c"): 1.0,
    }
    difference = measured(store, "accuracy_difference")["a", "b"]
    assert difference.ends == difference_interval(PairedCounts(23, 7, 0, 0), level=1 - 0.05 / 3)
    assert "3 comparisons" in (difference.interval or Interval(0, 0)).method


def test_equal_models_are_called_better_in_at_most_one_set_of_comparisons_in_twenty(
    predictions_of: Any, stored: Any
) -> None:
    # 200 sets of three equal models: a rate of 0.05 gives over 20 alarms once in 800 times, one of 0.2 passes once in 9000
    alarms = 0
    for seed in range(200):
        right = np.random.default_rng(seed).random((3, 60)) < 0.7
        store = stored(
            **{name: predictions_of([0] * 60, np.where(row, 0, 1)) for name, row in zip("abc", right, strict=True)}
        )
        alarms += any("is better" in text for text in texts(store))
    assert alarms <= 20


def test_only_images_that_every_model_read_are_compared_whatever_their_order(predictions_of: Any, stored: Any) -> None:
    first = predictions_of([0, 1, 2], [0, 0, 2], ids=["a", "b", "c"])
    second = predictions_of([1, 0, 3], [2, 0, 0], ids=["b", "a", "d"], skipped_images=1)
    store, pair = stored(first=first, second=second), ("first", "second")
    difference = measured(store, "accuracy_difference")[pair]
    assert (difference.value, difference.images) == (0, 2)
    assert measured(store, "shared_errors")[pair].value == 1  # both are wrong on b and nowhere else
    assert difference.convention["skipped images"] == "3 of 5"


def test_models_without_an_image_in_common_are_not_compared(predictions_of: Any, stored: Any) -> None:
    store = stored(first=predictions_of([0], [0], ids=["a"]), second=predictions_of([0], [0], ids=["b"]))
    study = ComparisonStudy(store.models, store.dataset)
    assert findings_of(study, store.load) == []
    assert "no image was read by every model" in skipped_by(study, store.load)[0]


def test_the_gallery_shows_what_each_model_said_where_only_some_are_right(predictions_of: Any, stored: Any) -> None:
    first = predictions_of([0, 1, 2], [0, 1, 0], [0.9, 0.5, 0.9])
    second = predictions_of([0, 1, 2], [3, 0, 0], [0.6, 0.8, 0.9])
    shown = gallery(stored(first=first, second=second))
    assert shown is not None
    assert [(item.id, item.caption) for item in shown.items] == [
        ("001.png", "labelled dog; first: dog 50 %; second: cat 80 %"),
        ("000.png", "labelled cat; first: cat 90 %; second: fox 60 %"),
    ]


def test_without_labels_models_still_agree_or_disagree(predictions_of: Any, stored: Any) -> None:
    store = stored(first=predictions_of([-1, -1], [0, 1]), second=predictions_of([-1, -1], [0, 2]))
    assert measured(store, "agreement")["first", "second"].value == 0.5
    assert measured(store, "accuracy_difference") == {}
    shown = gallery(store)
    assert shown is not None
    assert [item.caption for item in shown.items] == ["first: dog 90 %; second: eel 90 %"]


def test_classes_are_matched_by_what_identifies_them_and_not_by_their_place(predictions_of: Any, stored: Any) -> None:
    backwards = Classes(("ibis", "hen", "gnu", "fox", "eel", "dog", "cat"))
    store = stored(first=predictions_of([0, 1], [0, 1]), second=predictions_of([6, 5], [6, 4], classes=backwards))
    assert measured(store, "agreement")["first", "second"].value == 0.5
    unnamed = stored(first=predictions_of([0], [0]), second=predictions_of([0], [0], classes=None))
    assert measured(unnamed, "agreement") == {}
    assert measured(unnamed, "accuracy_difference")["first", "second"].value == 0


def test_one_model_alone_cannot_be_compared() -> None:
    with pytest.raises(BadInput, match="at least two models"):
        ComparisonStudy([ModelRef("alone", "1")], DatasetRef("photos", "2"))
