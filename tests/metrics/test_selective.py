"""Selective answering against every order of equals, plain loops and identities of its papers."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.metrics import roc_auc_score

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    augrc,
    augrc_interval,
    aurc,
    aurc_interval,
    aurra,
    aurra_bounds,
    aurra_interval,
    coverage_at_risk,
    coverage_interval,
    e_aurc,
    e_aurc_interval,
    jackknife_interval,
    response_rate_accuracy,
    risk_coverage,
)
from shiftproof.metrics.selective import answered_levels, ranked, selection_intervals

Case = tuple[NDArray[np.floating], NDArray[np.bool_]]


def drawn_case(images: int, seed: int = 0, *, digits: int = 16) -> Case:
    generator = np.random.default_rng(seed)
    confidence = generator.random(images)
    return np.round(confidence, digits), generator.random(images) < confidence


def plain_aurra(confidence: NDArray[np.floating], correct: NDArray[np.bool_]) -> float:
    order = np.argsort(confidence)[::-1]
    return float((np.cumsum(correct[order]) / np.arange(1, len(order) + 1)).mean())


def aurra_of_every_order(confidence: NDArray[np.floating], correct: NDArray[np.bool_]) -> list[Fraction]:
    """The AURRA of each order of the images in which confidence never rises, exactly."""
    images = len(confidence)
    orders = np.array([*permutations(range(images))])
    falling = orders[(np.diff(confidence[orders], axis=1) <= 0).all(axis=1)]
    whole = math.lcm(*range(1, images + 1))  # a share of any number of images is a whole number of such parts
    parts = np.cumsum(correct[falling], axis=1) * (whole // np.arange(1, images + 1))
    return [Fraction(total, whole * images) for total in parts.sum(axis=1).tolist()]


@pytest.mark.parametrize("levels", [1, 2, 3, 7])
def test_aurra_is_the_mean_over_every_order_of_equals_and_its_bounds_are_the_extremes(levels: int) -> None:
    generator = np.random.default_rng(levels)
    for correct in product([False, True], repeat=6):
        case = generator.integers(levels, size=6).astype(float), np.array(correct)
        found = aurra_of_every_order(*case)
        assert aurra(*case) == pytest.approx(float(sum(found, Fraction(0)) / len(found)), abs=1e-14)
        assert aurra_bounds(*case) == pytest.approx((float(min(found)), float(max(found))), abs=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_without_ties_the_plain_argsort_gives_the_same(seed: int) -> None:
    case = drawn_case(1000, seed)
    assert aurra(*case) == pytest.approx(plain_aurra(*case), abs=1e-13)
    assert aurra_bounds(*case) == pytest.approx((plain_aurra(*case),) * 2, abs=1e-13)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, -0.5, -2.0])
def test_any_real_score_of_any_precision_is_put_in_order(kind: type[np.floating], shift: float) -> None:
    confidence, correct = drawn_case(500, digits=2)
    scores = (confidence + shift).astype(kind)
    order = np.lexsort((~correct, -scores.astype(float)))
    found = ranked(scores, correct)
    assert found.right.tolist() == correct[order].tolist()
    assert found.drops.tolist() == (np.diff(scores[order]) < 0).tolist()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_signs_the_infinities_and_numbers_one_bit_apart_stay_what_they_are(kind: type[np.floating]) -> None:
    above = np.nextafter(kind(1), kind(2))
    scores = np.array([1, -1, above, 0.0, -0.0, np.inf, -np.inf, -above, np.inf, np.finfo(kind).tiny], dtype=kind)
    levels = answered_levels(scores, np.ones(10, dtype=bool))
    # two infinities, the number above 1, 1, the tiny one, two zeros, -1, the number below it, minus infinity
    assert levels.total.tolist() == [2, 3, 4, 5, 7, 8, 9, 10]


def test_the_mean_of_the_curve_is_the_area_under_it_and_its_end_the_accuracy() -> None:
    case = drawn_case(300, digits=1)
    curve = response_rate_accuracy(*case)
    assert curve.accuracy.mean() == pytest.approx(aurra(*case))
    assert curve.accuracy[-1] == pytest.approx(case[1].mean())
    assert curve.response_rate.tolist() == pytest.approx([count / 300 for count in range(1, 301)])


def test_aurc_is_one_minus_aurra_and_the_trapezoid_is_numpys() -> None:
    case = drawn_case(400)
    assert aurc(*case) == pytest.approx(1 - aurra(*case), abs=1e-14)
    curve = response_rate_accuracy(*case)
    area = np.trapezoid(1 - curve.accuracy, curve.response_rate) / (1 - 1 / 400)
    assert aurc(*case, rule="trapezoid") == pytest.approx(area, abs=1e-14)
    with pytest.raises(BadInput, match="mean or trapezoid"):
        aurc(*case, rule="simpson")  # type: ignore[arg-type]


@pytest.mark.parametrize("right", [0, 1, 5, 9, 10])
def test_a_perfect_order_has_no_excess_and_no_order_has_less(right: int) -> None:
    correct = np.arange(10) < right
    assert e_aurc(-np.arange(10.0), correct) == pytest.approx(0, abs=1e-15)
    generator = np.random.default_rng(right)
    assert min(e_aurc(generator.permutation(10.0 * np.arange(10)), correct) for _ in range(50)) >= -1e-15


def test_the_published_optimum_is_the_limit_of_the_exact_one_and_too_low_for_few() -> None:
    few, many = drawn_case(20), drawn_case(200_000)
    error = 1 - few[1].mean()
    best = error + (1 - error) * np.log(1 - error)
    assert e_aurc(*few, published_optimum=True) == pytest.approx(aurc(*few) - best)
    assert e_aurc(*few, published_optimum=True) > e_aurc(*few) + 0.01
    assert e_aurc(*many, published_optimum=True) == pytest.approx(e_aurc(*many), abs=1e-5)
    assert e_aurc(np.arange(4.0), np.zeros(4, bool), published_optimum=True) == 0


@pytest.mark.parametrize("digits", [1, 16])
def test_augrc_is_what_accuracy_and_auroc_make_of_it(digits: int) -> None:
    confidence, correct = drawn_case(700, digits=digits)
    accuracy = correct.mean()
    confused = 1 - roc_auc_score(correct, confidence)  # equation of Traub et al. (2024)
    expected = confused * accuracy * (1 - accuracy) + (1 - accuracy) ** 2 / 2
    assert augrc(confidence, correct) == pytest.approx(expected, abs=1e-12)


def test_coverage_at_a_risk_is_found_by_trying_every_threshold_and_never_splits_equals() -> None:
    confidence, correct = drawn_case(200, digits=1)
    for risk in (0.0, 0.05, 0.1, 0.29, 0.5, 1.0):
        tried = [correct[confidence >= threshold] for threshold in set(confidence)]
        allowed = [len(answered) / 200 for answered in tried if 1 - answered.mean() <= risk]
        assert coverage_at_risk(confidence, correct, risk) == max(allowed, default=0.0)
    # the surest answer is wrong, and of all ten together it is one
    assert coverage_at_risk(np.arange(10.0), np.arange(10) < 9, 0.1) == 1.0
    # the surest pair has a mistake in it; splitting it would allow half
    assert coverage_at_risk(np.array([0.9, 0.9]), np.array([True, False]), 0.1) == 0.0


def test_a_risk_of_29_in_100_is_not_more_than_0_29() -> None:
    assert coverage_at_risk(np.ones(100), np.arange(100) >= 29, 0.29) == 1.0
    with pytest.raises(BadInput, match="risk should lie between 0 and 1, got 5"):
        coverage_at_risk(np.ones(1), np.ones(1, dtype=bool), 5)


def test_a_thinned_curve_has_points_of_the_whole_one_about_evenly_spread_and_ends_with_all() -> None:
    case = drawn_case(5000)
    thin, whole = risk_coverage(*case, points=50), risk_coverage(*case, points=5000)
    assert len(whole.coverage) == 5000
    assert len(thin.coverage) == 50
    assert thin.coverage[-1] == 1
    assert np.diff(thin.coverage).max() <= 2 / 50
    places = np.searchsorted(whole.coverage, thin.coverage)
    assert whole.risk[places].tolist() == thin.risk.tolist()


def test_levels_are_counted_as_a_threshold_would() -> None:
    confidence, correct = drawn_case(300, digits=1)
    levels = answered_levels(confidence, correct)
    for threshold, right, total in zip(np.unique(confidence)[::-1], levels.right, levels.total, strict=True):
        assert (right, total) == (correct[confidence >= threshold].sum(), (confidence >= threshold).sum())


def test_the_interval_holds_the_truth_about_95_times_in_100() -> None:
    truth = float(np.mean([aurra(*drawn_case(300, seed)) for seed in range(10_000, 12_000)]))
    bounds = [aurra_interval(*drawn_case(300, seed)) for seed in range(200)]
    held = np.mean([found is not None and found[0] <= truth <= found[1] for found in bounds])
    # 200 sets: a true rate of 0.95 gives 0.90 or more all but once in 800 times
    assert 0.90 <= held < 1


@pytest.mark.parametrize(
    ("interval", "area"),
    [(aurra_interval, aurra), (aurc_interval, aurc), (e_aurc_interval, e_aurc), (augrc_interval, augrc)],
)
@pytest.mark.parametrize("copies", [1, 4])
def test_the_interval_of_many_images_is_that_of_drawing_them_again(interval: Any, area: Any, copies: int) -> None:
    confidence, correct = (np.repeat(each, copies) for each in drawn_case(2000))
    clusters = np.repeat(np.arange(2000), copies)
    generator = np.random.default_rng(1)
    drawn = []
    for _ in range(400):
        rows = (generator.integers(2000, size=2000)[:, None] * copies + np.arange(copies)).ravel()
        drawn.append(area(confidence[rows], correct[rows]))
    low, high = interval(confidence, correct, clusters=clusters)
    middle = area(confidence, correct)
    assert low < middle < high
    # the spread of 400 drawings is known to 4 %, that of 60 blocks to 9 %; three times both together, and 2 % of Student's t
    assert (high - low) / (2 * 1.96 * np.std(drawn)) == pytest.approx(1.02, abs=0.3)


def test_the_interval_of_the_aurc_is_that_of_the_aurra_turned_round() -> None:
    confidence, correct = drawn_case(300)
    low, high = aurra_interval(confidence, correct) or (np.nan, np.nan)
    assert aurc_interval(confidence, correct) == pytest.approx((1 - high, 1 - low))


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.8, 1.0])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_interval_of_the_aurra_is_that_of_the_aurra_of_the_images_kept(
    digits: int | None, share: float, clustered: bool
) -> None:
    generator = np.random.default_rng(5)
    for images in (6, 59, 400):
        confidence, correct = generator.normal(size=images), generator.random(images) < share
        if digits:
            confidence = np.round(confidence, digits)
        clusters = generator.integers(3, 3 + images // 2, images) if clustered else np.arange(images)
        wanted = jackknife_interval(lambda kept: aurra(confidence[kept], correct[kept]), clusters, bounds=(0.0, 1.0))  # noqa: B023
        found = aurra_interval(confidence, correct, clusters=clusters if clustered else None)
        assert found == (None if wanted is None else pytest.approx(wanted, abs=1e-12))


def test_answers_that_are_all_right_may_not_be_so_on_other_images() -> None:
    found = aurra_interval(np.arange(30.0), np.ones(30, dtype=bool)) or (np.nan, np.nan)
    # thirty of thirty: Wilson's interval with Student's t begins at 30 / (30 + 2.045^2)
    assert found == pytest.approx((30 / (30 + 2.0452**2), 1.0), abs=1e-4)
    for interval in (aurc_interval, e_aurc_interval, augrc_interval):
        assert interval(np.arange(30.0), np.ones(30, dtype=bool)) == pytest.approx((0.0, 1 - found[0]))


def test_images_that_cannot_tell_an_interval_have_none() -> None:
    assert aurra_interval(np.ones(1), np.ones(1, dtype=bool)) is None
    confidence, correct = drawn_case(100)
    assert aurra_interval(confidence, correct, clusters=np.arange(100) % 4) is None
    assert coverage_interval(confidence, correct, 0.2, clusters=np.arange(100) % 4) is None
    assert coverage_interval(confidence, correct, 0.2, clusters=np.arange(100) % 5) is not None


def coverage_by_loop(confidence: Any, correct: Any, risk: float, clusters: Any) -> tuple[float, float]:
    """Every threshold tested by itself, the design effect from sums over clusters."""
    low = high = coverage_at_risk(confidence, correct, risk)
    for threshold in np.unique(confidence):
        rows = confidence >= threshold
        sums = [((~correct[rows]) - risk)[clusters[rows] == one].sum() for one in np.unique(clusters[rows])]
        effect = max(np.square(sums).sum() / (risk * (1 - risk) * rows.sum()), 1.0)
        wrong, answered = (~correct[rows]).sum() / effect, rows.sum() / effect
        if wrong < answered and stats.beta.ppf(0.975, wrong + 1, answered - wrong) <= risk:
            low = max(low, rows.mean())
        if wrong == 0 or stats.beta.ppf(0.025, wrong, answered - wrong + 1) < risk:
            high = max(high, rows.mean())
    return low, high


@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("digits", [1, 16])
def test_the_interval_of_coverage_is_that_of_testing_every_threshold(clustered: bool, digits: int) -> None:
    confidence, correct = drawn_case(150, digits=digits)
    clusters = np.arange(150) % 40 if clustered else np.arange(150)
    found = coverage_interval(confidence, correct, 0.2, clusters=clusters)
    low, high = coverage_by_loop(confidence, correct, 0.2, clusters)
    assert found is not None
    assert found[1] == pytest.approx(high)
    assert found[0] == pytest.approx(min(low, coverage_at_risk(confidence, correct, 0.2))) or found[0] <= low


def test_the_interval_of_coverage_holds_the_truth() -> None:
    # right as often as sure: at a share c answered, 1 - c / 2 of the answers are right, so 0.2 wrong allow 0.4
    held = 0
    for seed in range(300):
        low, high = coverage_interval(*drawn_case(200, seed), 0.2) or (np.nan, np.nan)
        held += low <= 0.4 <= high
    assert held >= 0.91 * 300


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(BadInput, match="not a number"):
        aurra(np.array([0.5, np.nan]), np.array([True, True]))
    with pytest.raises(BadInput, match="at least one image"):
        augrc(np.array([]), np.array([], dtype=bool))
    with pytest.raises(BadInput, match="2 confidences but correct has shape"):
        aurra(np.array([0.5, 0.4]), np.array([True]))


def test_of_no_images_no_area_is_told() -> None:
    for area in (aurc, e_aurc, augrc):
        with pytest.raises(BadInput, match="at least one image"):
            area(np.zeros(0), np.zeros(0, bool))


@pytest.mark.parametrize("digits", [16, 2, 1])
@pytest.mark.parametrize("images", [40, 125, 700])
def test_intervals_of_many_choices_at_once_are_those_of_each_by_itself(images: int, digits: int) -> None:
    confidence, correct = drawn_case(images, seed=images, digits=digits)
    clusters = np.arange(images) * 30 // images * (images > 125) + np.arange(images) * (images <= 125)
    found = selection_intervals(confidence, correct, clusters=clusters)
    for area, interval in zip((aurc, e_aurc, augrc), found, strict=True):
        one_by_one = jackknife_interval(partial(_kept_area, area, confidence, correct), clusters, bounds=(0.0, 1.0))
        assert interval is not None
        assert interval == pytest.approx(one_by_one, rel=1e-12)


def _kept_area(area: Any, confidence: NDArray[np.floating], correct: NDArray[np.bool_], kept: NDArray[np.bool_]) -> float:
    return float(area(confidence[kept], correct[kept]))
