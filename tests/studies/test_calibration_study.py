"""The calibration study: which numbers it gives, and why it leaves some out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from shiftproof.errors import NotKept
from shiftproof.metrics import (
    aurra,
    brier_score,
    clopper_pearson,
    debiased_calibration_error,
    fit_temperature,
    negative_log_likelihood,
    rms_calibration_error,
    rms_calibration_error_bounds,
    split_half,
    to_probabilities,
)
from shiftproof.studies.calibration.study import AFTER, BEFORE, CalibrationStudy
from shiftproof.types import Clusters, Curve, DatasetRef, Measurement, ModelRef, Predictions
from studies.contracts import findings_of, skipped_by

MODEL, PHOTOS = ModelRef("toy", "1"), DatasetRef("photos", "2")


@pytest.fixture
def answers(predictions_of: Any) -> Predictions:
    """250 images, 150 of them right."""
    confidence = np.random.default_rng(0).uniform(0.3, 1.0, size=250)
    predictions: Predictions = predictions_of([0] * 250, [0] * 150 + [1] * 100, confidence, with_logits=True)
    return predictions


def numbers(predictions: Predictions, **options: Any) -> dict[str, Measurement]:
    found = findings_of(CalibrationStudy([MODEL], PHOTOS, **options), lambda run: predictions)
    return {
        finding.metric: finding for finding in found if isinstance(finding, Measurement) and "scaling" not in finding.about
    }


def held_out(predictions: Predictions, when: str) -> dict[str, Measurement]:
    found = findings_of(CalibrationStudy([MODEL], PHOTOS, thorough=True), lambda run: predictions)
    return {one.metric: one for one in found if isinstance(one, Measurement) and one.about.get("scaling") == when}


def curves(predictions: Predictions) -> dict[str, Curve]:
    found = findings_of(CalibrationStudy([MODEL], PHOTOS), lambda run: predictions)
    return {finding.name: finding for finding in found if isinstance(finding, Curve)}


def reasons(predictions: Predictions, **options: Any) -> list[str]:
    return skipped_by(CalibrationStudy([MODEL], PHOTOS, **options), lambda run: predictions)


def test_published_bins_tell_what_hangs_on_the_order_of_ties(answers: Predictions, predictions_of: Any) -> None:
    assert "ties" not in numbers(answers, published_bins=True)["rms_calibration_error"].convention
    coarse = np.round(np.random.default_rng(0).uniform(0.3, 1.0, size=250), 1)
    tied: Predictions = predictions_of([0] * 250, [0] * 150 + [1] * 100, coarse, with_logits=True)
    confidence, correct = np.exp(tied.top5.scores[:, 0].astype(float) - tied.top5.log_total), np.arange(250) < 150
    low, high = rms_calibration_error_bounds(confidence, correct, published_bins=True)
    told = numbers(tied, published_bins=True)["rms_calibration_error"].convention["ties"]
    assert told == f"ties in sort order, as published; between {100 * low:.2f} % and {100 * high:.2f} %"
    assert "ties" not in numbers(tied)["rms_calibration_error"].convention


def test_every_number_is_that_of_its_metric_and_names_its_bins(answers: Predictions) -> None:
    found = numbers(answers, brier=True)
    confidence, correct = np.exp(answers.top5.scores[:, 0]), np.arange(250) < 150
    assert found["rms_calibration_error"].value == pytest.approx(rms_calibration_error(confidence, correct))
    assert found["rms_calibration_error"].convention["bins"].startswith("2 of 100 images")
    assert found["expected_calibration_error"].convention["bins"] == "15 of equal width"
    assert found["overconfidence"].value == pytest.approx(confidence.mean() - 0.6)
    probabilities = to_probabilities(answers.need_logits(), "logits")
    assert found["brier_score"].value == pytest.approx(brier_score(answers.labels, probabilities))
    assert reasons(answers) == []


def test_published_bins_are_an_option_that_is_printed(answers: Predictions) -> None:
    error = numbers(answers, published_bins=True)["rms_calibration_error"]
    assert error.value < numbers(answers)["rms_calibration_error"].value
    assert "left out as published" in error.convention["bins"]


def test_published_bins_of_too_few_images_are_left_out_and_said_to_be(answers: Predictions) -> None:
    few = answers.take(np.arange(99))
    assert "rms_calibration_error" not in numbers(few, published_bins=True)
    assert any("published bins" in reason for reason in reasons(few, published_bins=True))
    assert "rms_calibration_error" in numbers(few)


def test_the_diagram_has_a_point_a_bin_with_its_interval(answers: Predictions) -> None:
    curve = curves(answers)["reliability"]
    assert curve.counts is not None
    assert curve.low is not None
    assert curve.high is not None
    assert sum(curve.counts) == 250
    assert np.average(curve.y, weights=curve.counts) == pytest.approx(0.6)
    assert all(low <= share <= high for low, share, high in zip(curve.low, curve.y, curve.high, strict=True))


def test_the_histogram_counts_every_image_once(answers: Predictions) -> None:
    histogram = curves(answers)["confidence_histogram"]
    assert len(histogram.x) == 15
    assert sum(histogram.y) == pytest.approx(1)


def test_only_the_brier_score_needs_all_logits(answers: Predictions) -> None:
    poorer = dataclasses.replace(answers, logits=None)
    assert set(numbers(answers, brier=True)) - set(numbers(poorer)) == {"brier_score"}
    assert CalibrationStudy([MODEL], PHOTOS).keep == "top5"
    assert CalibrationStudy([MODEL], PHOTOS, brier=True).keep == "logits"
    with pytest.raises(NotKept, match="--keep logits"):
        numbers(poorer, brier=True)


def test_a_model_of_scores_is_left_out_with_the_reason(predictions_of: Any) -> None:
    predictions = predictions_of([0, 1], [0, 0], gives="scores")
    assert numbers(predictions) == {}
    assert "toy: a model that gives scores has no confidence" in reasons(predictions)[0]


def test_logits_declared_as_probabilities_are_left_out_with_the_reason(predictions_of: Any) -> None:
    predictions = predictions_of([0, 1], [0, 0], [0.9, 12.5], gives="probabilities")
    assert numbers(predictions) == {}
    assert "should lie between 0 and 1, got 12.5" in reasons(predictions)[0]


def test_without_labels_there_is_confidence_but_no_calibration(predictions_of: Any) -> None:
    predictions = predictions_of([-1, -1], [0, 1], [0.5, 0.7])
    assert {name: found.value for name, found in numbers(predictions).items()} == {"mean_confidence": pytest.approx(0.6)}
    assert set(curves(predictions)) == {"confidence_histogram"}


def test_an_answer_that_is_not_a_number_is_left_out_and_said_to_be(answers: Predictions) -> None:
    scores = answers.top5.scores.copy()
    scores[3] = np.nan
    spoilt = dataclasses.replace(answers, top5=dataclasses.replace(answers.top5, scores=scores))
    error = numbers(spoilt)["rms_calibration_error"]
    assert error.images == 249
    assert error.convention["without confidence"].startswith("1 of 250")


def test_scores_that_are_all_infinite_are_left_out_with_the_reason(answers: Predictions) -> None:
    top5 = dataclasses.replace(
        answers.top5, scores=np.full((250, 5), np.inf, np.float32), log_total=np.full(250, np.inf, np.float32)
    )
    assert numbers(dataclasses.replace(answers, top5=top5)) == {}
    assert "toy: its scores are infinite or not numbers" in reasons(dataclasses.replace(answers, top5=top5))[0]


@pytest.mark.parametrize(("images", "bins"), [(250, 15), (40, 5), (9, 3)])
def test_few_images_are_drawn_in_few_bins(answers: Predictions, images: int, bins: int) -> None:
    curve = curves(answers.take(np.arange(images)))["reliability"]
    assert curve.convention["bins"] == f"{bins} of equal width"
    assert len(curve.x) <= bins
    assert sum(curve.counts or ()) == images


def test_aurra_has_an_interval_and_says_what_ties_could_make_of_it(answers: Predictions) -> None:
    confidence, correct = np.exp(answers.top5.scores[:, 0]), np.arange(250) < 150
    found = numbers(answers)["aurra"]
    assert found.value == pytest.approx(aurra(confidence, correct))
    assert found.ends is not None
    assert found.ends[0] < found.value < found.ends[1]
    assert "ties" not in found.convention
    alike = dataclasses.replace(answers, top5=dataclasses.replace(answers.top5, scores=np.full((250, 5), np.log(0.5))))
    tied = numbers(alike)["aurra"]
    assert tied.value == pytest.approx(0.6)
    # all right first: (150 + 150 x (1/151 + ... + 1/250)) / 250; all wrong first: the sum of (n - 100) / n from 101 to 250
    best = (150 + 150 * sum(1 / place for place in range(151, 251))) / 250
    worst = sum((place - 100) / place for place in range(101, 251)) / 250
    assert tied.convention["ties"] == f"mean over their orders; between {100 * worst:.2f} % and {100 * best:.2f} %"


def test_the_curve_of_accuracy_ends_with_all_images_and_grows_towards_them(answers: Predictions) -> None:
    curve = curves(answers)["response_rate_accuracy"]
    assert curve.counts is not None
    assert curve.low is not None
    assert curve.high is not None
    assert (curve.x[-1], curve.counts[-1]) == (1, 250)
    assert curve.y[-1] == pytest.approx(0.6)
    assert list(curve.counts) == sorted(curve.counts)
    assert len(curve.x) == 50
    assert all(low <= share <= high for low, share, high in zip(curve.low, curve.y, curve.high, strict=True))


def test_thoroughly_there_are_the_numbers_of_all_logits(answers: Predictions) -> None:
    found = numbers(answers, thorough=True)
    confidence, correct = np.exp(answers.top5.scores[:, 0]), np.arange(250) < 150
    logits = answers.need_logits()
    assert found["debiased_calibration_error"].value == pytest.approx(debiased_calibration_error(confidence, correct))
    assert found["negative_log_likelihood"].value == pytest.approx(negative_log_likelihood(answers.labels, logits, "logits"))
    assert found["brier_score"].value == numbers(answers, brier=True)["brier_score"].value
    assert CalibrationStudy([MODEL], PHOTOS, thorough=True).keep == "logits"
    assert reasons(answers, thorough=True) == []


def test_the_temperature_is_fitted_on_one_half_and_judged_on_the_other(answers: Predictions) -> None:
    first = split_half(answers.ids)
    fitted = numbers(answers, thorough=True)["temperature"]
    assert fitted.images == first.sum()
    assert fitted.value == pytest.approx(fit_temperature(answers.labels[first], answers.need_logits()[first]))
    before, after = held_out(answers, BEFORE), held_out(answers, AFTER)
    assert (
        set(before)
        == set(after)
        == {
            "rms_calibration_error",
            "chance_calibration_error",
            "expected_calibration_error",
            "overconfidence",
            "negative_log_likelihood",
        }
    )
    labels, logits = answers.labels[~first], answers.need_logits()[~first]
    for found, scaled in ((before, logits), (after, logits / fitted.value)):
        assert found["negative_log_likelihood"].value == pytest.approx(negative_log_likelihood(labels, scaled, "logits"))
        confidence = to_probabilities(scaled, "logits").max(axis=1)
        assert found["overconfidence"].value == pytest.approx((confidence - (np.arange(250) < 150)[~first]).mean())
        assert {one.images for one in found.values()} == {(~first).sum()}
        assert found["overconfidence"].convention["temperature"].endswith(f"fitted on the other {first.sum()} images")


def test_an_overconfident_model_is_mended_by_its_temperature(predictions_of: Any) -> None:
    generator = np.random.default_rng(1)
    true = generator.uniform(0.3, 1.0, size=2000)
    labels, odds = np.zeros(2000, dtype=int), 3 * np.log(6 * true / (1 - true))  # logits three times too large
    predicted = np.where(generator.random(2000) < true, 0, 1 + generator.integers(6, size=2000))
    overconfident = predictions_of(labels, predicted, 1 / (1 + 6 * np.exp(-odds)), with_logits=True)
    low, high = numbers(overconfident, thorough=True)["temperature"].ends or (0.0, 0.0)
    assert low < 3 < high
    before, after = held_out(overconfident, BEFORE), held_out(overconfident, AFTER)
    assert before["rms_calibration_error"].value > 3 * before["chance_calibration_error"].value
    assert after["rms_calibration_error"].value < after["chance_calibration_error"].value
    assert after["negative_log_likelihood"].value < before["negative_log_likelihood"].value


def test_probabilities_are_scaled_as_the_logits_they_came_from(predictions_of: Any) -> None:
    generator = np.random.default_rng(2)
    case: tuple[Any, ...] = ([0] * 250, generator.integers(2, size=250), generator.uniform(0.3, 1.0, size=250))
    found = [
        numbers(predictions_of(*case, gives=gives, with_logits=True), thorough=True) for gives in ("logits", "probabilities")
    ]
    assert found[0]["temperature"].value == pytest.approx(found[1]["temperature"].value)
    after = [held_out(predictions_of(*case, gives=gives, with_logits=True), AFTER) for gives in ("logits", "probabilities")]
    assert after[0]["expected_calibration_error"].value == pytest.approx(after[1]["expected_calibration_error"].value)


def test_too_few_images_for_two_halves_have_no_temperature_and_the_reason_is_given(answers: Predictions) -> None:
    few = answers.take(np.arange(30))
    assert "temperature" not in numbers(few, thorough=True)
    assert held_out(few, BEFORE) == {}
    assert reasons(few, thorough=True) == [
        "photos: a temperature needs at least 20 images to be fitted on and as many others to be judged on"
    ]
    assert reasons(few) == []


def test_images_of_a_class_the_model_lacks_have_no_likelihood_and_this_is_said(answers: Predictions) -> None:
    logits = np.concatenate([answers.need_logits(), np.full((250, 1), -np.inf)], axis=1)
    labels = answers.labels.copy()
    labels[-10:] = 7
    found = numbers(dataclasses.replace(answers, logits=logits, labels=labels), thorough=True)["negative_log_likelihood"]
    assert found.images == 240
    assert found.convention["without likelihood"].startswith("10 of 250")
    lacking = dataclasses.replace(answers, logits=logits, labels=np.full((250, 1), 7))
    assert not {"negative_log_likelihood", "temperature"} & set(numbers(lacking, thorough=True))


def test_scores_have_nothing_thorough_about_them_either(predictions_of: Any) -> None:
    predictions = predictions_of([0, 1] * 50, [0, 0] * 50, gives="scores", with_logits=True)
    assert numbers(predictions, thorough=True) == {}
    assert "gives scores" in reasons(predictions, thorough=True)[0]


def test_bands_and_errors_go_by_case_where_images_are_not_cases_of_their_own(predictions_of: Any, stored: Any) -> None:
    """Ten copies of every image: bands are about as wide as those of the images once, not of ten times as many."""
    generator = np.random.default_rng(0)
    confidence = generator.uniform(0.3, 1.0, 60)
    labels, predicted = np.zeros(60, int), (generator.random(60) > confidence).astype(int)
    once = predictions_of(labels, predicted, confidence)
    copied = predictions_of(np.repeat(labels, 10), np.repeat(predicted, 10), np.repeat(confidence, 10))
    keys = tuple(str(place // 10) for place in range(600))
    by_photo = dataclasses.replace(copied, grouped=Clusters("source image", keys))

    def widths(predictions: Predictions) -> dict[str, float]:
        store = stored(toy=predictions)
        found = findings_of(CalibrationStudy(store.models, store.dataset, bins=3), store.load)
        bands = {
            one.name: float(np.mean(np.subtract(one.high, one.low)))
            for one in found
            if isinstance(one, Curve) and one.low and one.high
        }
        numbers = {one.metric: one.ends[1] - one.ends[0] for one in found if isinstance(one, Measurement) and one.ends}
        return {**bands, **numbers}

    alone, as_images, as_photos = widths(once), widths(copied), widths(by_photo)
    for name in ("reliability", "response_rate_accuracy", "overconfidence", "aurra", "mean_confidence"):
        assert as_photos[name] == pytest.approx(alone[name], rel=0.35)
        assert as_photos[name] > 1.8 * as_images[name]


def in_copies(predictions: Predictions, copies: int) -> Predictions:
    """Every image several times over, and said to be one case."""
    many = predictions.take(np.repeat(np.arange(len(predictions)), copies))
    ids = tuple(f"{name}/{place}" for place, name in enumerate(many.ids))
    return dataclasses.replace(many, ids=ids, grouped=Clusters("photo", many.ids))


def test_copies_of_every_image_make_no_interval_and_no_band_narrower(answers: Predictions) -> None:
    few = answers.take(np.arange(100, 200))
    many = in_copies(few, 6)
    alone = findings_of(CalibrationStudy([MODEL], PHOTOS), lambda run: few)
    copied = findings_of(CalibrationStudy([MODEL], PHOTOS), lambda run: many)
    numbers_of = [{one.metric: one for one in found if isinstance(one, Measurement)} for found in (alone, copied)]
    for metric, one in numbers_of[1].items():
        before = numbers_of[0][metric].ends
        assert before is not None
        assert one.ends is not None, metric
        # bins of 100 images are six times as many, and so are told apart six times as well
        if metric != "rms_calibration_error":
            assert one.ends[1] - one.ends[0] > 0.9 * (before[1] - before[0]), metric
        assert (one.images, one.clusters) == (6 * (numbers_of[0][metric].images), numbers_of[0][metric].clusters)
    bands = [{one.name: one for one in found if isinstance(one, Curve)} for found in (alone, copied)]
    for name in ("reliability", "response_rate_accuracy"):
        band = bands[1][name]
        assert "by photo" in band.method
        for low, high, share, images in zip(band.low or (), band.high or (), band.y, band.counts or (), strict=True):
            exact = clopper_pearson(round(share * images / 6), images // 6)
            assert high - low > 0.9 * (exact[1] - exact[0]), name


def test_what_chance_alone_gives_is_not_told_of_images_that_are_right_and_wrong_together(answers: Predictions) -> None:
    assert "chance_calibration_error" in numbers(answers)
    assert "chance_calibration_error" not in numbers(in_copies(answers, 2))
