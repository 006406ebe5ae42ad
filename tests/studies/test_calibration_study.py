"""The calibration study: which numbers it gives, and why it leaves some out."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from shiftproof.errors import NotKept
from shiftproof.metrics import brier_score, rms_calibration_error, to_probabilities
from shiftproof.studies.calibration import CalibrationStudy
from shiftproof.types import Curve, ImageSetRef, Measurement, ModelRef, Predictions

MODEL, PHOTOS = ModelRef("toy", "1"), ImageSetRef("photos", "2")


@pytest.fixture
def answers(predictions_of: Any) -> Predictions:
    """250 images, 150 of them right."""
    confidence = np.random.default_rng(0).uniform(0.3, 1.0, size=250)
    predictions: Predictions = predictions_of([0] * 250, [0] * 150 + [1] * 100, confidence, with_logits=True)
    return predictions


def numbers(predictions: Predictions, **options: Any) -> dict[str, Measurement]:
    found = CalibrationStudy([MODEL], PHOTOS, **options).measure(lambda run: predictions)
    return {finding.metric: finding for finding in found if isinstance(finding, Measurement)}


def curves(predictions: Predictions) -> dict[str, Curve]:
    found = CalibrationStudy([MODEL], PHOTOS).measure(lambda run: predictions)
    return {finding.name: finding for finding in found if isinstance(finding, Curve)}


def reasons(predictions: Predictions, **options: Any) -> list[str]:
    return list(CalibrationStudy([MODEL], PHOTOS, **options).skipped(lambda run: predictions))


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
