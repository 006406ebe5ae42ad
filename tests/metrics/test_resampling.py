"""Intervals of numbers made of many means over the same images."""

from __future__ import annotations

import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.metrics import bootstrap_interval, clopper_pearson
from shiftproof.metrics.resampling import interval_of, resampled_means


def test_means_are_spread_as_the_variance_over_the_number_of_images() -> None:
    values = np.random.default_rng(1).gamma(2.0, size=(400, 3))
    means = resampled_means(values, resamples=4000)
    assert means.seen[0] == pytest.approx(values.mean(axis=0))
    # the spread of 4000 draws is known to about 1 / sqrt(8000), a hundredth; four times that is allowed
    assert means.drawn.std(axis=0) == pytest.approx(values.std(axis=0) / 20, rel=0.05)
    expected = np.corrcoef(values.T)
    assert np.corrcoef(means.drawn.T) == pytest.approx(expected, abs=0.06)


def test_leaving_out_one_image_is_the_mean_of_the_others() -> None:
    values = np.random.default_rng(2).random((150, 2))
    for row in (0, 77, 149):
        assert resampled_means(values).left_out[row] == pytest.approx(np.delete(values, row, axis=0).mean(axis=0))


def test_zeros_and_ones_are_summed_exactly() -> None:
    wrong = np.random.default_rng(3).random((3000, 4)) < 0.3
    for one, two in zip(resampled_means(wrong), resampled_means(wrong.astype(float)), strict=True):
        assert np.array_equal(one, two) or one == pytest.approx(two, rel=1e-15)


def test_one_column_has_about_the_interval_of_the_plain_bootstrap() -> None:
    values = np.random.default_rng(4).exponential(size=300)
    joint = interval_of(*(part[:, 0] for part in resampled_means(values[:, None], resamples=5000)))
    assert joint == pytest.approx(bootstrap_interval(values, resamples=5000), abs=0.01)


def test_tables_of_the_same_images_are_drawn_alike() -> None:
    wrong = np.random.default_rng(5).random((200, 6)) < 0.4
    apart = [resampled_means(wrong[:, columns]).drawn for columns in (slice(0, 2), slice(2, 6))]
    assert np.array_equal(np.concatenate(apart, axis=1), resampled_means(wrong).drawn)


def test_the_interval_holds_the_truth_as_often_as_it_says_although_cells_go_together() -> None:
    generator = np.random.default_rng(6)
    rounds, images, cells = 200, 60, 20
    covered = naive = 0
    for _ in range(rounds):
        difficulty = generator.random((images, 1))  # an image that is hard is hard in every cell
        wrong = generator.random((images, cells)) < difficulty**2
        low, high = interval_of(*(part.mean(axis=1) for part in resampled_means(wrong))) or (0, 0)
        covered += low <= 1 / 3 <= high
        low, high = clopper_pearson(int(wrong.sum()), wrong.size)
        naive += low <= 1 / 3 <= high
    # with 95 % in 200 rounds: 190 on average, 180 to 198 but for about two times in a thousand
    assert 180 <= covered <= 198
    # taking the cells for independent images would promise far too much
    assert naive < 140


def test_of_one_image_and_of_ratios_to_nothing_there_is_no_interval() -> None:
    alone = resampled_means(np.ones((1, 2)))
    assert interval_of(*(part[:, 0] for part in alone)) is None
    few = resampled_means(np.array([[1.0, 0.0], [1.0, 1.0]]))
    with np.errstate(divide="ignore"):
        assert interval_of(*(part[:, 0] / part[:, 1] for part in few)) is None


def test_images_that_are_all_alike_say_nothing_about_others() -> None:
    alike = resampled_means(np.zeros((50, 1), bool))
    assert interval_of(*(part[:, 0] for part in alike)) is None


def test_values_without_images_are_refused() -> None:
    with pytest.raises(BadInput, match="at least one image"):
        resampled_means(np.empty((0, 3)))


def test_the_last_digit_of_a_number_does_not_move_its_interval() -> None:
    means = resampled_means(np.array([[False], [True], [True], [False], [False]]))
    seen, drawn, left_out = (part[:, 0] for part in means)
    assert interval_of(np.nextafter(seen, 1), drawn, left_out) == interval_of(seen, drawn, left_out)
