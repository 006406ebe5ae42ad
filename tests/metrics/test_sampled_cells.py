"""The estimate from some pairs: exact where everything is run, unbiased over every possible draw, worked by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from hard_images import hard_images
from shiftproof.errors import BadInput
from shiftproof.metrics import clopper_pearson
from shiftproof.metrics.budget import Layout, Round, SampledCells, clustered_variance, sampled_cells

TWO = Layout.of_grid(np.array([0]), 2)
NOTHING = np.zeros((4, 0))
LEADS = np.array([[-1.0, -2.0], [0.5, -1.0], [3.0, 1.0], [1.0, -0.5]])
TRUTH = (LEADS < 0).mean(axis=0)
FOLDS = np.array([0, 1, 0, 1])


def every_draw() -> Iterator[tuple[NDArray[np.integer], NDArray[np.integer]]]:
    """One pair of each fold's four."""
    lists = [[(image, cell) for image in np.flatnonzero(np.equal(FOLDS, fold)) for cell in (0, 1)] for fold in (0, 1)]
    for pairs in product(*lists):
        images, cells = np.array(pairs).T
        yield images, cells


def sampled_of(one: Round) -> SampledCells:
    table = np.full(LEADS.shape, np.nan)
    table[one.images, one.cells] = LEADS[one.images, one.cells]
    return sampled_cells(table, [one], FOLDS, NOTHING, TWO, np.ones(2))


def values_of(one: Round) -> NDArray[np.floating]:
    return sampled_of(one).values


def test_over_all_possible_draws_the_estimate_is_the_truth_however_bad_its_guesses() -> None:
    estimates = [values_of(Round(images, cells, np.full(2, 1 / 4))) for images, cells in every_draw()]
    assert len({tuple(values) for values in estimates}) > 4
    assert np.mean(estimates, axis=0) == pytest.approx(TRUTH)


def test_over_all_possible_draws_of_unequal_chances_the_estimate_is_the_truth() -> None:
    chances = np.array([[0.5, 0.3], [0.1, 0.4], [0.1, 0.1], [0.2, 0.3]])  # add up to 1 in each fold
    mean = np.zeros(2)
    for images, cells in every_draw():
        chance = chances[images, cells]
        mean += chance.prod() * values_of(Round(images, cells, chance))
    assert mean == pytest.approx(TRUTH)


def everything(images: int, cells: int) -> Round:
    rows, columns = np.divmod(np.arange(images * cells), cells)
    return Round(rows, columns, np.ones(images * cells))


def test_with_everything_run_the_answer_is_exact_and_has_no_width() -> None:
    results = hard_images(20)
    folds, features = np.arange(20) % 5, np.zeros((20, 0))
    found = sampled_cells(results.leads, [everything(20, 20)], folds, features, results.layout, results.weights)
    estimate = found.weighted(results.weights)
    assert estimate.value == pytest.approx(results.answer, abs=1e-12)
    assert estimate.low == estimate.value == estimate.high
    assert [cell.value for cell in found.each()] == pytest.approx(results.wrong.mean(axis=0).tolist())


def by_hand(**changes: Any) -> SampledCells:
    """Three pairs: two neighbours of cell 0 and cell 1, and one more of cell 0."""
    given: dict[str, Any] = {
        "by_image": np.array([[0.5, 0.25]]),
        "possible": (np.array([0.0, 0.0]), np.array([1.0, 1.0])),
        "images": np.array([0, 1, 2]),
        "cells": np.array([0, 1, 0]),
        "misses": np.array([0.1, -0.2, 0.3]),
        "promised": np.zeros(3),
        "between": np.array([0.5, 0.25]),
    }
    return SampledCells(**{**given, **changes})


def test_a_variance_is_worked_by_hand() -> None:
    # weighted shares 0.2, -0.2, 0.6: differences 0.4 and 0.8
    assert by_hand().variance(np.array([2.0, 1.0])) == pytest.approx(0.5 * 0.4**2 + 0.25 * 0.8**2)
    # the guesses promise 0.02 a pair, 4 x 0.02 with the weight 2 of cell 0: 0.18 in all, from 0.18^2 / 0.0132 pairs
    effective = 0.18**2 / (2 * 0.08**2 + 0.02**2)
    expected = (effective * 0.24 + 10 * 0.18) / (effective + 10)
    assert by_hand(promised=np.full(3, 0.02)).variance(np.array([2.0, 1.0])) == pytest.approx(expected)


def test_intervals_end_where_known_results_leave_no_room() -> None:
    sure = by_hand(possible=(np.array([0.45, 0.2]), np.array([0.55, 0.3])))
    assert sure.weighted(np.array([1.0, 1.0])) == pytest.approx((0.75, 0.65, 0.85))
    assert sure.weighted(np.array([1.0, -1.0])) == pytest.approx((0.25, 0.15, 0.35))


def test_a_cell_that_is_stored_whole_is_exact_and_adds_no_width() -> None:
    results = hard_images(20, (0, 1), severities=2)
    table = np.full((20, 4), np.nan)
    one = Round(np.arange(20), np.arange(20) % 4, np.full(20, 1 / 4))
    table[one.images, one.cells] = results.leads[one.images, one.cells]
    folds, features, weights = np.arange(20) % 5, np.zeros((20, 0)), np.ones(4)
    sampled = sampled_cells(table, [one], folds, features, results.layout, weights)
    table[:, 2] = results.leads[:, 2]
    whole = sampled_cells(table, [one], folds, features, results.layout, weights)
    third = whole.each()[2]
    assert third.low == third.value == third.high == results.wrong[:, 2].mean()
    assert whole.values[[0, 1, 3]].tolist() == sampled.values[[0, 1, 3]].tolist()
    assert whole.weighted(weights).half_width < sampled.weighted(weights).half_width


def test_the_variance_of_a_difference_is_worked_by_hand() -> None:
    own, baseline = by_hand(), by_hand(misses=np.array([0.1, 0.1, -0.3]))
    weights, theirs = np.array([2.0, 1.0]), np.array([1.0, 3.0])
    # the same pairs: weighted shares 0.2 - 0.1, -0.2 - 0.3, 0.6 + 0.3; differences -0.6 and 1.4
    assert own.variance_less(weights, baseline, theirs) == pytest.approx(0.5 * 0.6**2 + 0.25 * 1.4**2)
    elsewhere = by_hand(misses=np.array([0.1, 0.1, -0.3]), images=np.array([0, 0, 0]))
    apart = own.variance(weights) + elsewhere.variance(theirs)
    assert own.variance_less(weights, elsewhere, theirs) == pytest.approx(apart)
    # a model is as bad as itself, whatever was run
    assert own.variance_less(weights, own, weights) == 0


def independent_draws(chance: float) -> Iterator[tuple[float, SampledCells]]:
    """Every choice of pairs of four images, each drawn by itself, with its chance, and what follows by a fixed guess."""
    guess, wrong = np.array([[0.3, 0.9], [0.2, 0.6], [0.1, 0.1], [0.5, 0.5]]), np.asarray(LEADS < 0, dtype=float)
    for drawn in product([False, True], repeat=LEADS.size):
        mask = np.reshape(drawn, LEADS.shape)
        by_image = guess + mask * (wrong - guess) / chance
        probability = float(np.where(mask, chance, 1 - chance).prod())
        yield probability, by_hand(by_image=by_image)


def test_over_all_draws_the_variance_is_that_of_the_photos_and_that_of_the_draw() -> None:
    """Less work never looks surer: on average over all draws, photos' variance comes out whole, with the draw's added."""
    weights, wrong = np.array([[0.7], [0.3]]), np.asarray(LEADS < 0, dtype=float)
    photos = clustered_variance(wrong @ weights)[0]
    assert photos == pytest.approx(np.var(wrong @ weights, ddof=1) / 4)
    for chance in (0.3, 0.6, 0.9):
        draws = list(independent_draws(chance))
        assert sum(probability for probability, _ in draws) == pytest.approx(1)
        of_the_draw = sum(
            probability * float((found.values @ weights)[0] - (TRUTH @ weights)[0]) ** 2 for probability, found in draws
        )
        told = sum(probability * clustered_variance(found.by_image @ weights)[0] for probability, found in draws)
        assert told == pytest.approx(photos + of_the_draw)
        assert of_the_draw > 0


def test_rows_of_images_are_unbiased_and_their_means_the_estimate() -> None:
    rows = [sampled_of(Round(images, cells, np.full(2, 1 / 4))).by_image for images, cells in every_draw()]
    assert np.mean(rows, axis=0) == pytest.approx(np.asarray(LEADS < 0, dtype=float))


def test_cells_that_were_run_whole_have_the_exact_interval() -> None:
    results = hard_images(30)
    folds, features = np.arange(30) % 5, np.zeros((30, 0))
    found = sampled_cells(results.leads, [everything(30, 20)], folds, features, results.layout, results.weights)
    low, high = clopper_pearson(results.wrong.sum(axis=0), np.full(20, 30))
    assert [one.low for one in found.each_like_these()] == pytest.approx(low.tolist(), abs=1e-9)
    assert [one.high for one in found.each_like_these()] == pytest.approx(high.tolist(), abs=1e-9)


def test_a_cell_that_was_run_in_part_is_worth_fewer_images() -> None:
    """Share 0.5 of 100 images, and a draw of variance 0.0075: together 0.01, as of 25 images."""
    half = by_hand(by_image=np.full((100, 2), 0.5), between=np.array([0.0075 / 0.3**2, 0.0075 / 0.5**2]))
    # misses 0.1, -0.2, 0.3 of cells 0, 1, 0: cell 0 alone differs by 0.1 and 0.3
    draw = 0.0075 * (0.1 / 0.3) ** 2 + 0.0075 * (0.3 / 0.5) ** 2
    assert half.variance(np.array([1.0, 0.0])) == pytest.approx(draw)
    worth = 0.25 / (0.25 / 100 + draw)
    first = half.each_like_these()[0]
    expected = beta.ppf([0.025, 0.975], [worth / 2, worth / 2 + 1], [worth / 2 + 1, worth / 2])
    assert (first.low, first.high) == pytest.approx(tuple(expected))


@pytest.mark.parametrize("pairs", [100, 200, 400, 599])
def test_no_cell_is_surer_than_if_it_had_been_run_whole(pairs: int) -> None:
    results = hard_images(30)
    order = np.random.default_rng(pairs).permutation(600)[:pairs]
    one = Round(*np.divmod(np.sort(order), 20), chance=np.full(pairs, pairs / 600))
    table = np.full((30, 20), np.nan)
    table[one.images, one.cells] = results.leads[one.images, one.cells]
    found = sampled_cells(table, [one], np.arange(30) % 5, np.zeros((30, 0)), results.layout, results.weights)
    for cell in found.each_like_these():
        low, high = (float(bound[0]) for bound in beta_bounds(cell.value * 30, 30))
        assert cell.low <= low + 1e-12
        assert cell.high >= high - 1e-12


def beta_bounds(right: float, total: float) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Clopper and Pearson's interval by scipy's distribution, for counts that need not be whole."""
    low = beta.ppf([0.025], right, total - right + 1) if right > 0 else np.zeros(1)
    high = beta.ppf([0.975], right + 1, total - right) if right < total else np.ones(1)
    return low, high


def test_photos_of_one_case_count_as_one() -> None:
    """Every photo four times: as clusters they are the photos again, each by itself they would be four times as many."""
    results = hard_images(40, (0,), severities=2)
    fours = np.repeat(results.leads, 4, axis=0)
    folds, features = np.arange(160) % 5, np.zeros((160, 0))
    found = sampled_cells(fours, [everything(160, 2)], folds, features, results.layout, np.ones(2))
    clusters = np.repeat(np.arange(40)[::-1], 4)
    wrong = np.asarray(results.wrong, dtype=float)
    assert clustered_variance(found.by_image, clusters) == pytest.approx(clustered_variance(wrong))
    for one, alone, right in zip(
        found.each_like_these(clusters=clusters), found.each_like_these(), results.wrong.sum(axis=0).tolist(), strict=True
    ):
        low, high = clopper_pearson(right, 40)
        assert (one.low, one.high) == pytest.approx((low, high), abs=0.01)
        assert alone.high - alone.low < 0.6 * (high - low)


def test_a_pair_without_result_is_refused() -> None:
    table = np.array([[1.0, np.nan]] * 4)
    with pytest.raises(BadInput, match="4 of 8 pairs of a round have no result"):
        sampled_cells(table, [everything(4, 2)], np.arange(4), NOTHING, TWO, np.ones(2))


def test_weights_are_one_for_each_cell() -> None:
    with pytest.raises(BadInput, match="each of 2 cells"):
        by_hand().weighted(np.ones(3))
