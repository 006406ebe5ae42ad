"""The spread of an AUROC against all pairs, against drawing again, and against the truth of simulated detectors."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    auroc,
    auroc_covariance,
    auroc_difference,
    auroc_interval,
    bootstrap_auroc_interval,
    mcnemar_p,
)
from shiftproof.metrics.delong import placements

Scores = NDArray[Any]


def detectors(ties: bool, inside: int = 40, outside: int = 25) -> tuple[Scores, Scores]:
    """Scores of three detectors that have much in common, (detectors, images) on either side."""
    generator = np.random.default_rng(21)
    common = generator.normal(size=(1, inside)), generator.normal(0.7, 1, size=(1, outside))
    sides = tuple(side + generator.normal(scale=0.8, size=(3, side.shape[1])) for side in common)
    return (sides[0].round(), sides[1].round()) if ties else (sides[0], sides[1])


def covariance_by_pairs(in_scores: Scores, out_scores: Scores) -> NDArray[np.floating]:
    """From the outcome of every pair of images: half the sign of the difference, and a half."""
    pairs = (np.sign(out_scores[:, None, :] - in_scores[:, :, None]) + 1) / 2  # (detectors, inside, outside)
    inside, outside = pairs.mean(axis=2), pairs.mean(axis=1)
    deviations = [(side - side.mean(axis=1, keepdims=True)) / np.sqrt(side.shape[1] - 1) for side in (inside, outside)]
    return np.asarray(sum(side @ side.T / side.shape[1] for side in deviations))


@pytest.mark.parametrize("ties", [False, True])
def test_the_covariance_is_that_of_all_pairs(ties: bool) -> None:
    sides = detectors(ties)
    assert auroc_covariance(*sides) == pytest.approx(covariance_by_pairs(*sides), abs=1e-14)


def test_one_detector_has_the_variance_it_has_among_others() -> None:
    inside, outside = detectors(ties=True)
    alone = auroc_covariance(inside[1:2], outside[1:2])
    assert alone.shape == (1, 1)
    assert alone[0, 0] == pytest.approx(auroc_covariance(inside, outside)[1, 1], rel=1e-12)


def test_the_covariance_is_that_of_images_drawn_again() -> None:
    inside, outside = detectors(ties=False, inside=150, outside=100)
    generator, drawings = np.random.default_rng(22), 2000
    drawn = np.empty((drawings, len(inside)))
    for drawing in drawn:
        rows = generator.integers(150, size=150), generator.integers(100, size=100)
        drawing[:] = [auroc(*sides) for sides in zip(inside[:, rows[0]], outside[:, rows[1]], strict=True)]
    # the variance of 2000 drawings is known to about sqrt(2 / 2000), 3 %; four times that, and the 1 % by which drawing
    # again with replacement is too small
    ours = auroc_covariance(inside, outside)
    assert np.cov(drawn.T) == pytest.approx(ours, rel=0.14)


@pytest.mark.parametrize("ties", [False, True])
def test_the_mean_placement_of_either_side_is_the_auroc(ties: bool) -> None:
    for sides in zip(*detectors(ties), strict=True):
        for side in placements(*sides):
            assert side.mean() == pytest.approx(auroc(*sides), abs=1e-14)


def test_the_interval_is_symmetric_in_log_odds_and_mirrors_with_the_scores() -> None:
    inside, outside = (side[0] for side in detectors(ties=False))
    seen, error = auroc(inside, outside), np.sqrt(auroc_covariance(inside[None], outside[None])[0, 0])
    low, high = auroc_interval(inside, outside, level=0.9)
    log_odds = [np.log(share / (1 - share)) for share in (low, seen, high)]
    assert np.diff(log_odds) == pytest.approx(stats.norm.ppf(0.95) * error / (seen * (1 - seen)))
    assert auroc_interval(-inside, -outside, level=0.9) == pytest.approx((1 - high, 1 - low))


def share_held(inside: int, outside: int, distance: float, interval: Any, rounds: int) -> float:
    """How often an interval holds the true AUROC of two normal distributions this far apart."""
    truth, generator = stats.norm.cdf(distance / np.sqrt(2)), np.random.default_rng(23)
    drawn = ((generator.normal(size=inside), generator.normal(distance, size=outside)) for _ in range(rounds))
    bounds = (interval(*sides) or (np.nan, np.nan) for sides in drawn)
    return float(np.mean([low <= truth <= high for low, high in bounds]))


@pytest.mark.parametrize(("images", "distance"), [((60, 60), 0.0), ((60, 60), 1.2), ((200, 40), 2.0)])
def test_the_interval_holds_the_truth_as_often_as_it_says(images: tuple[int, int], distance: float) -> None:
    # of 95 % one sees 93 to 97 % but for four times in ten thousand; of 91 %, or of 98.5 %, only once in three hundred
    assert 0.93 <= share_held(*images, distance, auroc_interval, rounds=1500) <= 0.97


def test_near_1_the_interval_holds_the_truth_less_often_than_it_says_and_drawing_again_still_less() -> None:
    by_drawing = partial(bootstrap_auroc_interval, resamples=200)
    assert 0.88 <= share_held(300, 50, 3.5, auroc_interval, rounds=1500) <= 0.94
    assert share_held(60, 60, 3.5, by_drawing, rounds=300) < 0.88 < share_held(60, 60, 3.5, auroc_interval, rounds=300)


def test_the_interval_of_sides_that_do_not_overlap_would_be_left_by_worse_detectors() -> None:
    low, high = auroc_interval(np.arange(30.0), np.arange(30.0, 50.0))
    # at an AUROC of `low` twenty pairs without a common image are all won 2.5 times in a hundred
    assert (low**20, high) == pytest.approx((0.025, 1.0))
    assert auroc_interval(np.arange(30.0, 50.0), np.arange(30.0)) == pytest.approx((0.0, 1 - low))


def test_equal_scores_alone_leave_the_interval_around_a_half() -> None:
    low, high = auroc_interval(np.ones(12), np.ones(40))
    assert low < 0.5 < high
    assert low + high == pytest.approx(1)
    # ties in all of twelve independent pairs: at least this share of all pairs are ties, and count half
    assert (2 * low) ** 12 == pytest.approx(0.025)


def test_a_single_image_on_a_side_leaves_everything_open() -> None:
    one, many = np.array([0.5]), np.linspace(0, 1, 50)
    assert auroc_interval(one, many) == auroc_interval(many, one) == (0.0, 1.0)
    found = auroc_difference(one, many, one, many**2)
    assert (found.interval, found.p) == ((-1.0, 1.0), 1.0)


def test_a_difference_has_the_spread_of_its_parts_less_what_they_share() -> None:
    inside, outside = detectors(ties=True)
    found = auroc_difference(inside[0], outside[0], inside[2], outside[2])
    covariance = covariance_by_pairs(inside, outside)
    error = np.sqrt(covariance[0, 0] + covariance[2, 2] - 2 * covariance[0, 2])
    seen = auroc(inside[0], outside[0]) - auroc(inside[2], outside[2])
    assert found.difference == pytest.approx(seen)
    assert found.interval == pytest.approx(stats.norm.interval(0.95, seen, error))
    assert found.p == pytest.approx(2 * stats.norm.sf(abs(seen) / error))


def test_exchanging_the_detectors_turns_the_difference_round() -> None:
    inside, outside = detectors(ties=False)
    there = auroc_difference(inside[0], outside[0], inside[1], outside[1])
    back = auroc_difference(inside[1], outside[1], inside[0], outside[0])
    assert back.difference == pytest.approx(-there.difference)
    assert back.interval == pytest.approx((-there.interval[1], -there.interval[0]))
    assert back.p == pytest.approx(there.p)


def test_detectors_that_differ_by_chance_alone_are_told_apart_as_seldom_as_promised() -> None:
    generator, rounds = np.random.default_rng(24), 1500
    alarms, found = 0, 0
    for _ in range(rounds):
        sides = generator.normal(size=80), generator.normal(1, size=80)
        equal = [side + generator.normal(scale=0.7, size=(2, 80)) for side in sides]
        worse = [side + generator.normal(scale=2.5, size=80) for side in sides]
        alarms += auroc_difference(equal[0][0], equal[1][0], equal[0][1], equal[1][1]).p < 0.05
        found += auroc_difference(equal[0][0], equal[1][0], worse[0], worse[1]).p < 0.05
    # 5 % comes out as 3 to 7 % but for four times in ten thousand; 9 % only once in three hundred
    assert 0.03 <= alarms / rounds <= 0.07
    assert found > rounds / 2


def test_detectors_of_the_same_order_do_not_differ() -> None:
    inside, outside = (side[0] for side in detectors(ties=True))
    found = auroc_difference(inside, outside, np.exp(inside), np.exp(outside))
    assert (found.difference, found.p) == (0.0, 1.0)
    low, high = found.interval
    assert low == -high
    # 25 independent pairs without a difference: rarely more than this share of all pairs has one
    assert (1 - high) ** 25 == pytest.approx(0.025)


@pytest.mark.parametrize("images", [2, 5, 6, 30])
def test_always_right_beside_always_wrong_is_the_exact_test_of_pairs(images: int) -> None:
    low, high = np.arange(float(images)), np.arange(float(images)) + images
    found = auroc_difference(low, high, high, low)
    assert found.p == pytest.approx(mcnemar_p(images, 0))
    assert (found.interval[0] > 0) == (found.p < 0.05)


def test_always_right_beside_blind_is_told_apart_with_enough_images() -> None:
    few, many = (
        auroc_difference(np.zeros(images), np.ones(images), np.zeros(images), np.zeros(images)) for images in (5, 20)
    )
    assert few.difference == many.difference == 0.5
    assert many.p < 0.05 < few.p
    assert few.interval[0] < 0 < many.interval[0]


def test_scores_of_other_images_are_refused() -> None:
    with pytest.raises(BadInput, match="the same images, got 3 and 4 inside, 2 and 2 outside"):
        auroc_difference(np.ones(3), np.ones(2), np.ones(4), np.ones(2))
    with pytest.raises(BadInput, match=r"should be \(detectors, images\) on either side, got \(3, 5\) and \(2, 5\)"):
        auroc_covariance(np.ones((3, 5)), np.ones((2, 5)))
    with pytest.raises(BadInput, match="at least two images"):
        auroc_covariance(np.ones((3, 5)), np.ones((3, 1)))


@pytest.mark.parametrize("level", [0, 1, 95])
def test_impossible_levels_are_refused(level: float) -> None:
    for call in (
        lambda: auroc_interval(np.ones(3), np.ones(2), level=level),
        lambda: auroc_difference(np.ones(3), np.ones(2), np.ones(3), np.ones(2), level=level),
    ):
        with pytest.raises(BadInput, match="level should lie between 0 and 1"):
            call()
