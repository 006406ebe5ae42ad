"""The estimate from some pairs: exact where everything is run, unbiased over every possible draw, worked by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hard_images import hard_images
from shiftproof.errors import BadInput
from shiftproof.metrics.likely_wrong import Layout
from shiftproof.metrics.sampled_cells import Round, SampledCells, mean_ratio, sampled_cells

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


def values_of(one: Round) -> NDArray[np.floating]:
    table = np.full(LEADS.shape, np.nan)
    table[one.images, one.cells] = LEADS[one.images, one.cells]
    return sampled_cells(table, [one], FOLDS, NOTHING, TWO, np.ones(2)).values


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
        "values": np.array([0.5, 0.25]),
        "possible": (np.array([0.0, 0.0]), np.array([1.0, 1.0])),
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


def test_ratios_of_two_samples_are_worked_by_hand() -> None:
    own, baseline = by_hand(), by_hand(values=np.array([0.8, 0.5]))
    ratio = mean_ratio(own, baseline, np.array([0, 1]))
    assert ratio.value == pytest.approx((0.5 / 0.8 + 0.25 / 0.5) / 2)
    # half of 1 / 0.8 and 1 / 0.5; half of 0.5 / 0.8^2 and 0.25 / 0.5^2
    variance = own.variance(np.array([0.625, 1.0])) + baseline.variance(np.array([0.390625, 0.5]))
    assert ratio.half_width == pytest.approx(1.959964 * np.sqrt(variance))
    with pytest.raises(BadInput, match="makes no mistakes"):
        mean_ratio(own, by_hand(values=np.array([0.0, 0.5])), np.array([0, 1]))


def test_a_pair_without_result_is_refused() -> None:
    table = np.array([[1.0, np.nan]] * 4)
    with pytest.raises(BadInput, match="4 of 8 pairs of a round have no result"):
        sampled_cells(table, [everything(4, 2)], np.arange(4), NOTHING, TWO, np.ones(2))


def test_weights_are_one_for_each_cell() -> None:
    with pytest.raises(BadInput, match="each of 2 cells"):
        by_hand().weighted(np.ones(3))
