"""Calibration against the loops of its papers, and against answers drawn to be calibrated."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof import metrics
from shiftproof.errors import BadInput
from shiftproof.metrics import (
    brier_score,
    chance_calibration_error,
    clopper_pearson,
    debiased_calibration_error,
    expected_calibration_error,
    reliability,
    rms_calibration_error,
    to_probabilities,
    top_confidence,
)
from shiftproof.metrics.accuracy import to_top5
from shiftproof.types import Top5


def calibrated_case(images: int, seed: int = 0) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    generator = np.random.default_rng(seed)
    confidence = generator.uniform(0.2, 1.0, size=images)
    return confidence, generator.random(images) < confidence


def rms_by_loop(confidence: NDArray[np.floating], correct: NDArray[np.bool_], size: int, *, last: bool) -> float:
    order = np.argsort(confidence)
    edges = [[start * size, (start + 1) * size] for start in range(len(order) // size)]
    edges[-1][1] = len(order)
    total = 0.0
    for low, high in edges if last else edges[:-1]:
        rows = order[low:high]
        total += len(rows) / len(order) * (confidence[rows].mean() - correct[rows].mean()) ** 2
    return float(np.sqrt(total))


@pytest.mark.parametrize("images", [100, 199, 200, 1234])
@pytest.mark.parametrize("published", [False, True])
def test_the_rms_error_is_what_the_loop_over_bins_gives(images: int, published: bool) -> None:
    confidence, correct = calibrated_case(images)
    error = rms_calibration_error(confidence**2, correct, published_bins=published)
    assert error == pytest.approx(rms_by_loop(confidence**2, correct, 100, last=not published), abs=1e-12)


def test_published_bins_forget_the_most_confident_images() -> None:
    confidence, correct = np.repeat([0.1, 0.9], 100), np.repeat([False, False], 100)
    assert rms_calibration_error(confidence, correct) == pytest.approx(np.sqrt((0.1**2 + 0.9**2) / 2))
    assert rms_calibration_error(confidence, correct, published_bins=True) == pytest.approx(np.sqrt(0.1**2 / 2))
    with pytest.raises(BadInput, match="at least 100 images, got 99"):
        rms_calibration_error(confidence[:99], correct[:99], published_bins=True)


def test_the_order_of_images_of_equal_confidence_does_not_matter() -> None:
    generator = np.random.default_rng(0)
    confidence, correct = np.round(generator.random(950), 1), generator.random(950) < 0.5
    order = np.lexsort((correct, confidence))  # the worst order: equals sorted by whether they are right
    assert rms_calibration_error(confidence[order], correct[order]) == pytest.approx(
        rms_calibration_error(confidence, correct), abs=1e-12
    )


def coarse_case(images: int, levels: int) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    """Confidences in so many steps, as of a quantised network."""
    generator = np.random.default_rng(4)
    confidence = np.round(generator.beta(1.2, 3.5, size=images) * levels) / levels
    return confidence, generator.random(images) < confidence


def test_published_bins_of_tied_confidences_are_those_of_the_published_loop() -> None:
    for images, levels in ((100, 256), (950, 256), (5000, 256), (5000, 16)):
        confidence, correct = coarse_case(images, levels)
        error = rms_calibration_error(confidence, correct, published_bins=True)
        assert error == pytest.approx(rms_by_loop(confidence, correct, 100, last=False), abs=1e-12)
    # some 300 images a level: averaged over ties first, what chance adds to each bin of 100 would be gone
    assert rms_calibration_error(confidence, correct) < 0.8 * error


@pytest.mark.parametrize("published", [False, True])
def test_bounds_are_the_extremes_over_all_orders_of_equals(published: bool) -> None:
    generator = np.random.default_rng(6)
    for _ in range(40):
        images, size = int(generator.integers(4, 8)), int(generator.integers(1, 4))
        confidence = generator.choice([0.2, 0.5, 0.7], size=images, p=generator.dirichlet([1, 1, 1]))
        correct = generator.random(images) < 0.5
        # every order, sorted by confidence and nothing else
        errors, equals = [], [np.flatnonzero(confidence == one) for one in np.unique(confidence)]
        for orders in product(*map(permutations, equals)):
            some = np.concatenate(orders)
            edges = [*range(0, max(1, images // size) * size, size), images]
            bins = list(pairwise(edges))[: -1 if published else None]
            squares = [len(some[low:high]) * (confidence[some[low:high]].mean() - correct[some[low:high]].mean()) ** 2
                       for low, high in bins]  # fmt: skip
            errors.append(float(np.sqrt(sum(squares) / images)))
        bounds = metrics.rms_calibration_error_bounds(confidence, correct, bin_size=size, published_bins=published)
        assert bounds == pytest.approx((min(errors), max(errors)), abs=1e-9)


def test_the_published_error_of_tied_confidences_lies_between_its_bounds() -> None:
    for images, levels in ((100, 256), (950, 256), (5000, 256), (5000, 16)):
        confidence, correct = coarse_case(images, levels)
        error = rms_calibration_error(confidence, correct, published_bins=True)
        low, high = metrics.rms_calibration_error_bounds(confidence, correct, published_bins=True)
        assert low <= error + 1e-12
        assert error <= high + 1e-12


def test_bounds_of_confidences_that_all_differ_are_the_error_itself() -> None:
    confidence, correct = calibrated_case(777)
    for published in (False, True):
        error = rms_calibration_error(confidence, correct, published_bins=published)
        bounds = metrics.rms_calibration_error_bounds(confidence, correct, published_bins=published)
        assert bounds == pytest.approx((error, error), abs=1e-12)


def test_bounds_where_most_images_are_certain_are_those_of_even_and_of_sorted_bins() -> None:
    # 1000 images at 1, of which 250 are wrong, in ten bins: 25 wrong in each, or two and a half bins wrong throughout
    confidence, correct = np.ones(1000), np.arange(1000) >= 250
    low, high = metrics.rms_calibration_error_bounds(confidence, correct)
    assert low == pytest.approx(0.25)
    assert high == pytest.approx(np.sqrt((2 + 0.5**2) / 10))


def test_the_bound_of_chance_holds_a_calibrated_model_95_times_in_100_and_not_an_overconfident_one() -> None:
    # 200 sets: a true rate of 0.95 gives 0.90 or more all but once in 800 times, a true rate of 0.80 once in 9000
    below = [
        rms_calibration_error(*calibrated_case(500, seed)) < chance_calibration_error(calibrated_case(500, seed)[0])
        for seed in range(200)
    ]
    assert 0.90 <= np.mean(below) < 1
    confidence, correct = calibrated_case(500)
    overconfident = np.sqrt(confidence)
    assert rms_calibration_error(overconfident, correct) > chance_calibration_error(overconfident)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("images", [150, 1003, 40_000])
def test_the_bound_of_chance_is_the_quantile_of_errors_drawn_one_by_one(images: int, published: bool) -> None:
    confidence = np.sort(np.random.default_rng(1).random(images).round(3))
    generator = np.random.default_rng(7)
    errors = [
        rms_calibration_error(confidence, generator.random(images) < confidence, published_bins=published) for _ in range(33)
    ]
    bound = chance_calibration_error(confidence[::-1], published_bins=published, draws=33, seed=7)
    assert bound == pytest.approx(np.quantile(errors, 0.95), rel=1e-12)


def test_the_expected_error_is_what_the_loop_over_equal_widths_gives() -> None:
    confidence, correct = calibrated_case(777)
    total = 0.0
    for place in range(15):
        rows = (confidence > place / 15) & (confidence <= (place + 1) / 15)
        if rows.any():
            total += rows.mean() * abs(confidence[rows].mean() - correct[rows].mean())
    assert expected_calibration_error(confidence, correct) == pytest.approx(total)


def test_one_image_is_one_bin_whose_gap_is_the_error() -> None:
    one = np.array([0.75]), np.array([True])
    assert rms_calibration_error(*one) == expected_calibration_error(*one) == pytest.approx(0.25)
    assert reliability(*one).images.tolist() == [1]


def test_a_reliability_point_has_the_exact_interval_of_its_images() -> None:
    confidence, correct = calibrated_case(300)
    points = reliability(confidence, correct, bins=10)
    right = np.rint(points.accuracy * points.images).astype(int)
    assert points.images.sum() == 300
    for place, (low, high) in enumerate(zip(points.low, points.high, strict=True)):
        assert (low, high) == pytest.approx(clopper_pearson(int(right[place]), int(points.images[place])))


def test_confidence_from_a_stored_row_is_the_softmax_of_all_logits() -> None:
    logits = np.random.default_rng(0).normal(size=(20, 30)).astype(np.float32) * 5
    top = np.argsort(-logits, axis=1)[:, :5]
    row = Top5(top, np.take_along_axis(logits, top, axis=1), np.log(np.exp(logits.astype(float)).sum(axis=1)))
    assert top_confidence(row, "logits") == pytest.approx(to_probabilities(logits, "logits").max(axis=1), rel=1e-5)


def test_probabilities_are_their_own_confidence_and_never_above_one() -> None:
    row = Top5(np.array([[1], [2]]), np.array([[0.4], [1.0003]]), np.full(2, np.nan))
    assert top_confidence(row, "probabilities").tolist() == [0.4, 1.0]


def test_scores_have_neither_confidence_nor_probabilities() -> None:
    with pytest.raises(BadInput, match="gives scores"):
        top_confidence(Top5(np.array([[1]]), np.array([[3.0]]), np.array([np.nan])), "scores")
    with pytest.raises(BadInput, match="gives scores"):
        to_probabilities(np.array([[3.0]]), "scores")


def test_the_brier_score_is_the_squared_distance_to_the_truth() -> None:
    generator = np.random.default_rng(2)
    probabilities = to_probabilities(generator.normal(size=(40, 6)), "logits")
    labels = generator.integers(6, size=40)
    truth = np.eye(6)[labels]
    assert brier_score(labels, probabilities) == pytest.approx(((probabilities - truth) ** 2).sum(axis=1).mean())


def test_of_several_right_labels_the_brier_score_takes_the_most_probable() -> None:
    probabilities = np.array([[0.1, 0.7, 0.2]])
    assert brier_score(np.array([[0, 1, -1]]), probabilities) == brier_score(np.array([1]), probabilities)


@pytest.mark.parametrize("confidence", [np.array([1.5]), np.array([np.nan]), np.array([-3.0])])
def test_what_is_no_confidence_is_refused(confidence: NDArray[np.floating]) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        rms_calibration_error(confidence, np.array([True]))


def test_no_images_and_lengths_that_differ_are_refused() -> None:
    with pytest.raises(BadInput, match="at least one image"):
        expected_calibration_error(np.array([]), np.array([], dtype=bool))
    with pytest.raises(BadInput, match="1 confidences but correct has shape"):
        reliability(np.array([0.5]), np.array([True, False]))


def test_chance_is_what_the_error_of_calibrated_models_stays_below_also_where_confidences_tie() -> None:
    confidence = np.full(1000, 0.7)
    generator = np.random.default_rng(1)
    errors = [rms_calibration_error(confidence, generator.random(1000) < confidence) for _ in range(400)]
    below = np.mean(np.array(errors) <= chance_calibration_error(confidence, draws=1000))
    assert 0.91 < below < 0.98


@pytest.mark.parametrize("best", [-0.3, 1.5])
def test_what_cannot_be_a_probability_is_no_confidence(best: float) -> None:
    row = Top5(np.array([[0]]), np.array([[best]]), np.array([np.nan]))
    with pytest.raises(BadInput, match="does the model give logits"):
        top_confidence(row, "probabilities")


def test_infinite_scores_have_an_order_and_no_confidence() -> None:
    top5 = to_top5(np.array([[np.inf, 0.0, 1.0], [-np.inf, -np.inf, -np.inf], [-np.inf, 2.0, 2.0]]), "logits")
    assert top5.classes.tolist() == [[0, 2, 1], [0, 1, 2], [1, 2, 0]]
    assert top5.log_total.tolist() == [np.inf, -np.inf, pytest.approx(2 + np.log(2))]
    assert top_confidence(top5, "logits") == pytest.approx([np.nan, np.nan, 0.5], nan_ok=True)


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_the_debiased_error_is_what_the_loop_over_equal_counts_gives(bins: int) -> None:
    confidence, correct = calibrated_case(600)
    order = np.argsort(confidence)
    squares = 0.0
    for rows in np.array_split(order, bins):
        accuracy = correct[rows].mean()
        gap = (confidence[rows] ** 2).mean() - accuracy
        squares += len(rows) / 600 * (gap**2 - accuracy * (1 - accuracy) / (len(rows) - 1))
    assert debiased_calibration_error(confidence**2, correct, bins=bins) == pytest.approx(np.sqrt(squares), abs=1e-12)


def test_the_debiased_square_is_nearly_right_on_average_where_the_plain_one_is_too_large() -> None:
    # two bins whose true gaps are 0.2 and 0.1: a mean square of 0.025
    confidence, chance = np.repeat([0.6, 0.9], 20), np.repeat([0.4, 0.8], 20)
    generator = np.random.default_rng(0)
    drawn = [generator.random(40) < chance for _ in range(4000)]
    debiased = [debiased_calibration_error(confidence, correct, bins=2) ** 2 for correct in drawn]
    plain = [rms_calibration_error(confidence, correct, bin_size=20) ** 2 for correct in drawn]
    assert np.mean(plain) == pytest.approx(0.025 + (0.24 + 0.16) / 2 / 20, abs=0.002)
    # where chance takes the square below 0 it counts as 0, which lifts the mean a little
    assert 0.024 < np.mean(debiased) < 0.029


def test_a_calibrated_model_is_nearly_without_debiased_error() -> None:
    cases = [calibrated_case(1000, seed) for seed in range(50)]
    debiased = np.mean([debiased_calibration_error(*case) for case in cases])
    assert debiased < np.mean([rms_calibration_error(*case) for case in cases]) / 2


def test_images_of_equal_confidence_share_a_bin_and_one_image_tells_nothing() -> None:
    confidence, correct = np.array([0.2, 0.9, 0.9, 0.9]), np.array([False, False, True, True])
    accuracy = 2 / 3
    three = 0.75 * ((0.9 - accuracy) ** 2 - accuracy * (1 - accuracy) / 2)
    assert three < 0
    assert debiased_calibration_error(confidence, correct) == 0
    sure = np.array([0.2, 1.0, 1.0, 1.0]), np.array([False, False, False, False])
    assert debiased_calibration_error(*sure) == pytest.approx(np.sqrt(0.75))
    assert debiased_calibration_error(np.array([0.3]), np.array([True])) == 0
    with pytest.raises(BadInput, match="bins should be at least 1"):
        debiased_calibration_error(confidence, correct, bins=0)
