"""Gains of recipes over a baseline, over images and seeds: by hand, at two ends where other tests are known."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import stdtrit
from scipy.stats import ttest_ind, ttest_rel

from shiftproof.errors import BadInput
from shiftproof.metrics import recipe_gains


def test_two_seeds_of_five_images_by_hand() -> None:
    """Image means differ by 0, .5, 1, .5, 0: mean .4, squares .70, variance of the mean .70 / 4 / 5 = .035.

    Seeds of either recipe differ by .2: variance .02, of a mean of two .01. Their residuals are four of .1 and one of .4 a
    seed: squares .4, and .4 / (5 * 4 * 1) = .02 is all that was seen, so that nothing is left for seeds.
    """
    plain = np.array([[1, 1, 0, 0, 1], [1, 0, 0, 0, 1]])
    better = np.array([[1, 1, 1, 0, 1], [1, 1, 1, 1, 1]])
    (found,) = recipe_gains(plain, [better])
    assert found.gain == pytest.approx(0.4)
    assert found.image_error == pytest.approx(np.sqrt(0.035))
    assert found.seed_error == pytest.approx(0, abs=1e-9)
    degrees = 0.035**2 / (0.035**2 / 4 + 0.01**2 + 0.01**2)
    assert found.degrees_of_freedom == pytest.approx(degrees)
    assert found.interval == pytest.approx(
        (0.4 - stdtrit(degrees, 0.975) * np.sqrt(0.035), 0.4 + stdtrit(degrees, 0.975) * np.sqrt(0.035))
    )


def test_where_images_are_alike_it_is_welchs_test_of_the_seeds() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.3, 0.5, 4), rng.uniform(0.2, 0.9, 3)
    (found,) = recipe_gains(np.repeat(first[:, None], 50, axis=1), [np.repeat(second[:, None], 50, axis=1)])
    welch = ttest_ind(second, first, equal_var=False)
    assert found.degrees_of_freedom == pytest.approx(welch.df)
    assert found.interval == pytest.approx(tuple(welch.confidence_interval()))
    assert found.p == pytest.approx(welch.pvalue)


def test_where_seeds_are_alike_it_is_the_paired_test_of_the_images() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.random(60) < 0.6, rng.random(60) < 0.7
    (found,) = recipe_gains(np.repeat(first[None], 3, axis=0), [np.repeat(second[None], 3, axis=0)])
    paired = ttest_rel(second.astype(float), first.astype(float))
    assert found.interval == pytest.approx(tuple(paired.confidence_interval()))
    assert found.p == pytest.approx(paired.pvalue)
    assert found.simultaneous == found.interval


def tables(rng: np.random.Generator, recipes: int, seeds: int, images: int) -> list[NDArray[np.bool_]]:
    easy = rng.normal(size=images)
    return [
        easy + rng.normal(scale=0.1, size=(seeds, 1)) + rng.normal(scale=0.6, size=(seeds, images)) > -0.8
        for _ in range(recipes)
    ]


def test_copies_of_images_in_clusters_tell_nothing_new() -> None:
    plain, *others = tables(np.random.default_rng(2), 4, 3, 80)
    once = recipe_gains(plain, others)
    copied = [np.repeat(table, 7, axis=1) for table in (plain, *others)]
    again = recipe_gains(copied[0], copied[1:], clusters=np.repeat(np.arange(80), 7))
    for first, second in zip(once, again, strict=True):
        assert first.interval == pytest.approx(second.interval)
        assert first.seed_error == pytest.approx(second.seed_error)
        assert first.simultaneous == pytest.approx(second.simultaneous)
    (alone,) = recipe_gains(copied[0], copied[1:2])
    assert alone.image_error == pytest.approx(once[0].image_error / np.sqrt(7), rel=0.02)


def test_intervals_that_hold_together_are_wider_and_agree_with_p() -> None:
    plain, *others = tables(np.random.default_rng(3), 7, 3, 200)
    others[0] = others[0] | (np.random.default_rng(4).random(others[0].shape) < 0.6)
    found = recipe_gains(plain, others)
    for gain in found:
        assert gain.interval is not None
        assert gain.simultaneous is not None
        assert gain.p is not None
        assert gain.simultaneous[0] < gain.interval[0] < gain.interval[1] < gain.simultaneous[1]
        assert (gain.simultaneous[0] > 0 or gain.simultaneous[1] < 0) == (gain.p < 0.05)
    assert found[0].p is not None
    assert found[0].p < 0.05


def test_conditions_are_averaged_before_anything_else() -> None:
    rng = np.random.default_rng(5)
    plain, better = rng.random((3, 50, 4)) < 0.5, rng.random((3, 50, 4)) < 0.7
    assert recipe_gains(plain, [better]) == recipe_gains(plain.mean(axis=2), [better.mean(axis=2)])


def test_one_seed_or_four_clusters_have_no_interval_and_do_not_hide_the_others() -> None:
    plain, first, second = tables(np.random.default_rng(6), 3, 3, 60)
    found = recipe_gains(plain, [first[:1], second])
    assert found[0].interval is None
    assert found[0].gain == pytest.approx(first[0].mean() - plain.mean())
    assert found[1].simultaneous == pytest.approx(recipe_gains(plain, [second])[0].simultaneous)
    assert recipe_gains(plain[:1], [second])[0].interval is None
    assert recipe_gains(plain, [second], clusters=np.arange(60) % 4)[0].p is None
    assert recipe_gains(plain, []) == []


def test_a_recipe_that_is_the_baseline_gains_nothing() -> None:
    (plain,) = tables(np.random.default_rng(7), 1, 3, 60)
    (found,) = recipe_gains(plain, [plain])
    assert found.gain == 0
    assert found.interval is not None
    assert found.interval[0] <= 0 <= found.interval[1]
    assert found.p == 1


def test_tables_of_other_shapes_are_refused() -> None:
    with pytest.raises(BadInput, match="on the images of the baseline, got 5, 6"):
        recipe_gains(np.ones((2, 5)), [np.ones((2, 6))])
    with pytest.raises(BadInput, match=r"\(seeds, images\) or"):
        recipe_gains(np.ones(5), [np.ones((2, 5))])
