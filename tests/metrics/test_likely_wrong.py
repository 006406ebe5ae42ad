"""Chances of being wrong against a general optimiser, by hand, and against results they were not told."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize
from scipy.special import expit

from hard_images import hard_images
from shiftproof.errors import BadInput
from shiftproof.metrics.budget import Layout, LikelyWrong, Lines, clean_features, fit_likely_wrong

LAYOUT = Layout.of_grid(np.array([0, 0, 1]), 3)


def test_a_grid_goes_corruption_by_corruption() -> None:
    assert LAYOUT.corruption.tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert LAYOUT.severity.tolist() == [0, 1, 2] * 3
    assert LAYOUT.kind.tolist() == [0] * 6 + [1] * 3


def flat(lines: Lines) -> NDArray[np.floating]:
    return np.concatenate(lines)


def test_the_regressions_are_where_a_general_optimiser_ends() -> None:
    results = hard_images(80, (0, 0, 1), severities=3)
    rng = np.random.default_rng(1)
    images, cells = rng.integers(80, size=300), rng.integers(9, size=300)
    features = clean_features(results.clean_leads)
    leads = results.leads[images, cells]
    fitted = fit_likely_wrong(images, cells, leads, features, LAYOUT)

    def prior(parameters: NDArray[np.floating]) -> float:
        ridge = 1e-3 * parameters[0] ** 2 + 1e-2 * parameters[1] ** 2 + 0.1 * (parameters[2:6] ** 2).sum()
        return float(ridge + parameters[6:] @ LAYOUT.precision @ parameters[6:]) / 2

    def logistic(parameters: NDArray[np.floating]) -> float:
        logits = Lines(parameters[:6], parameters[6:]).at(features, LAYOUT)[images, cells]
        return float(np.logaddexp(0, np.where(leads < 0, -logits, logits)).sum()) + prior(parameters)

    def squares(parameters: NDArray[np.floating]) -> float:
        lines = Lines(parameters[:6], parameters[6:]).at(features, LAYOUT)[images, cells]
        return float(((lines - leads / leads.std()) ** 2).sum()) / 2 + prior(parameters)

    theirs = [optimize.minimize(loss, np.zeros(15), method="BFGS", options={"gtol": 1e-4}).x for loss in (logistic, squares)]
    assert flat(fitted.logits) == pytest.approx(theirs[0], abs=2e-3)
    assert flat(fitted.leads) / leads.std() == pytest.approx(theirs[1], abs=2e-3)


def guess_of(logits: Lines, leads: Lines, spread: float = 1.0) -> LikelyWrong:
    return LikelyWrong(LAYOUT, logits, leads, np.full(9, spread), spread)


def test_lines_with_one_feature_are_worked_by_hand() -> None:
    layout = Layout.of_grid(np.array([0]), 2)  # slopes -1 and 1
    lines = Lines(np.array([0.5, 1.0, 2.0, 3.0]), np.array([0.0, 0.25]))
    # 0.5 + 2 x -+ (1 + 3 x), and the cell's own level
    assert lines.at(np.array([[1.0]]), layout) == pytest.approx(np.array([[-1.5, 6.75]]))


def test_without_results_of_its_own_an_image_has_the_chance_of_the_regression() -> None:
    rng = np.random.default_rng(0)
    lines = Lines(rng.normal(size=4), rng.normal(size=9))
    guess, features = guess_of(lines, lines), rng.normal(size=(5, 1))
    nothing = np.full((5, 9), np.nan)
    assert np.array_equal(guess.chance(features, nothing), guess.chance(features))
    some = nothing.copy()
    some[2, 4] = 1
    changed = (guess.chance(features, some) != guess.chance(features)).any(axis=1)
    assert changed.tolist() == [False, False, True, False, False]


def test_chances_after_two_results_are_those_of_normal_surprises() -> None:
    zero = Lines(np.zeros(2), np.zeros(9))
    guess = guess_of(Lines(np.array([-0.3, 0.8]), np.zeros(9)), zero, spread=2.0)
    seen = np.full((2, 9), np.nan)
    seen[0, [1, 7]] = [-3.0, 1.0]  # 1.5 spreads worse than expected, and half a one better
    seen[1, 5] = -100.0  # counts for 3 spreads
    kinship = guess.kinship
    chance = guess.chance(np.zeros((2, 0)), seen)
    logits = -0.3 + 0.8 * LAYOUT.slope
    for row, places, surprise in [(0, [1, 7], [1.5, -0.5]), (1, [5], [3.0])]:
        weights = kinship[:, places] @ np.linalg.inv(kinship[np.ix_(places, places)])
        mean, left = weights @ surprise, 1 - (weights * kinship[:, places]).sum(axis=1)
        expected = expit((logits + 1.7 * mean) / np.sqrt(np.maximum(left, 0.05)))
        assert chance[row] == pytest.approx(expected)


def test_a_mistake_tells_most_of_the_same_corruption_then_of_its_kind_and_least_of_other_severities() -> None:
    zero, falling = Lines(np.zeros(2), np.zeros(9)), Lines(np.array([0.0, -1.0]), np.zeros(9))
    seen = np.full((1, 9), np.nan)
    seen[0, 0] = -2
    chance = guess_of(zero, falling).chance(np.zeros((1, 0)), seen)[0]
    assert chance[1] > chance[2] > 0.5
    assert chance[1] > chance[4] > chance[7] > 0.5


def test_kinship_is_a_correlation_that_fades_with_the_difference_in_hardness() -> None:
    # leads of 0, 1 and 2 spreads: by hand, 0.31 + 0.18 + 0.39 within a corruption, times exp(-1) and exp(-2)
    kinship = guess_of(Lines(np.zeros(2), np.zeros(9)), Lines(np.zeros(2), np.tile([0.0, 2.0, 4.0], 3)), spread=2.0).kinship
    assert kinship[0, :3] == pytest.approx([1, 0.88 * np.exp(-1), 0.88 * np.exp(-2)])
    assert kinship[0, [3, 6, 8]] == pytest.approx([0.49, 0.31, 0.31 * np.exp(-2)])
    assert np.linalg.eigvalsh(kinship).min() > 0.01


def test_own_results_make_better_guesses() -> None:
    results = hard_images(400)
    rng = np.random.default_rng(0)
    seen = np.where(rng.random((400, 20)) < 0.2, results.leads, np.nan)
    images, cells = np.nonzero(~np.isnan(seen))
    features = clean_features(results.clean_leads)
    fitted = fit_likely_wrong(images, cells, seen[images, cells], features, results.layout)
    other = np.isnan(seen)
    guesses = [np.full(seen.shape, 0.5), fitted.chance(features), fitted.chance(features, seen)]
    misses = [((chance - results.wrong)[other] ** 2).mean() for chance in guesses]
    assert misses[2] < 0.85 * misses[1] < 0.85 * 0.7 * misses[0]


def test_features_of_clean_answers_are_worked_by_hand() -> None:
    leads = np.array([3.0, 1.0, -1.0, 1.0])  # mean 1, standard deviation sqrt 2
    features = clean_features(leads, np.array([5.0, 5.0, 1.0, 1.0]), np.array([7, 7, 3, 7]))
    assert features[:, 0] == pytest.approx(np.array([2, 0, -2, 0]) / np.sqrt(2))
    assert features[:, 1] == pytest.approx([1, -1, 1, -1])
    assert features[:, 2] == pytest.approx([1, 1, -1, -1])
    # the two others of class 7 are right, 0.25 above the mean each, beside three images' worth of nothing
    assert features[:, 3] == pytest.approx([0.3, 0.3, 0.0, 0.3])


def test_classes_of_one_image_each_tell_nothing() -> None:
    assert clean_features(np.array([1.0, -1.0]), classes=np.array([0, 1])).shape == (2, 2)


def test_cells_need_one_of_each() -> None:
    with pytest.raises(BadInput, match="one severity"):
        Layout(np.arange(3), np.arange(2), np.arange(3))
