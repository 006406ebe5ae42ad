"""Intervals against scipy, a published table and their own promise of coverage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shiftproof.errors import BadInput
from shiftproof.metrics import bootstrap_interval, clopper_pearson, wilson
from shiftproof.metrics.intervals import Statistic, row_means
from shiftproof.reference import load_table

Interval = Any  # one of our functions, with counts or with arrays of them
COUNTS = [(0, 1), (1, 1), (0, 10), (10, 10), (3, 7), (499, 1000), (49_999, 50_000)]


@pytest.mark.parametrize(("right", "total"), COUNTS)
@pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
@pytest.mark.parametrize(("method", "ours"), [("exact", clopper_pearson), ("wilson", wilson)])
def test_a_share_has_the_interval_that_scipy_gives_it(
    method: str, ours: Interval, right: int, total: int, level: float
) -> None:
    theirs = stats.binomtest(right, total).proportion_ci(confidence_level=level, method=method)
    assert ours(right, total, level=level) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_the_exact_interval_is_made_of_beta_quantiles() -> None:
    low, high = clopper_pearson(7, 20, level=0.9)
    assert low == pytest.approx(stats.beta.ppf(0.05, 7, 14))
    assert high == pytest.approx(stats.beta.ppf(0.95, 8, 13))


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
def test_arrays_of_counts_give_the_bounds_of_each_count(interval: Interval) -> None:
    right, total = (np.array(column) for column in zip(*COUNTS, strict=True))
    low, high = interval(right, total)
    assert list(zip(low, high, strict=True)) == [pytest.approx(interval(*count)) for count in COUNTS]


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
def test_of_no_images_the_interval_is_the_whole_range(interval: Interval) -> None:
    assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
@pytest.mark.parametrize(("right", "total", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 95), (1, 2, 0.0)])
def test_impossible_counts_and_levels_are_refused(interval: Interval, right: int, total: int, level: float) -> None:
    with pytest.raises(BadInput, match="should lie between"):
        interval(right, total, level=level)


def test_the_exact_interval_holds_the_truth_at_least_as_often_as_it_says() -> None:
    images, shares = 20, np.linspace(0.01, 0.99, 99)
    low, high = clopper_pearson(np.arange(images + 1), np.full(images + 1, images))
    chance = stats.binom.pmf(np.arange(images + 1), images, shares[:, None])
    coverage = (chance * ((low <= shares[:, None]) & (shares[:, None] <= high))).sum(axis=1)
    assert coverage.min() >= 0.95


def explained_rows(table: str, kind: str, anchors: int, *, interval_of: int) -> NDArray[np.bool_]:
    """Which published rows some count of right anchors rounds to, in accuracy and both bounds, (models,)."""
    shares = np.arange(anchors + 1) / anchors
    exact: Interval = clopper_pearson
    low, high = exact(shares * interval_of, np.full(len(shares), interval_of))
    published = np.array([[float(row[kind + end]) for end in ("", "_low", "_high")] for row in load_table(table)])
    ours = 100 * np.stack([shares, low, high], axis=1)
    distance = np.abs(published[:, None] - ours).max(axis=2)  # (models, counts)
    return np.asarray(distance.min(axis=1) <= 0.05 + 1e-9)


@pytest.mark.parametrize("kind", ["original", "perturbed"])
def test_all_45_published_intervals_come_from_a_count_that_rounds_to_the_published_accuracy(kind: str) -> None:
    explained = explained_rows("imagenet_vid_robust_models", kind, 1109, interval_of=1109)
    assert len(explained) == 45
    assert explained.all()


@pytest.mark.parametrize("kind", ["original", "perturbed"])
def test_the_intervals_printed_for_ytbb_are_of_the_1109_anchors_of_the_other_set_and_not_of_its_own_2030(kind: str) -> None:
    def explained(interval_of: int) -> NDArray[np.bool_]:
        return explained_rows("ytbb_robust_models", kind, 2030, interval_of=interval_of)

    # shares of 2030 anchors taken for shares of 1109, so the counts behind the bounds are not whole
    assert len(explained(1109)) == 60
    assert explained(1109).all()
    assert not explained(2030).any()


def skewed_values(images: int) -> NDArray[np.floating]:
    return np.random.default_rng(5).exponential(size=images)


def row_medians(values: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(np.median(values, axis=1))


@pytest.mark.parametrize("bias_corrected", [True, False])
def test_the_bootstrap_agrees_with_scipy_up_to_the_noise_of_its_draws(bias_corrected: bool) -> None:
    values = skewed_values(80)
    ours = bootstrap_interval(values, resamples=20_000, bias_corrected=bias_corrected)
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        n_resamples=20_000,
        method="BCa" if bias_corrected else "percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    plain = bootstrap_interval(values, resamples=20_000, bias_corrected=False)
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert not bias_corrected or ours[1] > plain[1] + 0.01  # the skew is seen: more than that noise


@pytest.mark.parametrize("statistic", [row_means, row_medians])
def test_the_same_seed_gives_the_same_bounds_and_another_seed_others(statistic: Statistic) -> None:
    values = skewed_values(300)
    first, again = (bootstrap_interval(values, statistic=statistic) for _ in range(2))
    assert first == again != bootstrap_interval(values, statistic=statistic, seed=1)


def test_many_images_are_resampled_in_parts_without_changing_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    values = skewed_values(500)
    whole = bootstrap_interval(values)
    monkeypatch.setattr("shiftproof.metrics.intervals._VALUES_AT_ONCE", 5000)
    assert bootstrap_interval(values) == pytest.approx(whole, rel=0.02)


def test_equal_values_leave_no_doubt_and_one_image_leaves_no_interval() -> None:
    assert bootstrap_interval(np.full(9, 0.25)) == (0.25, 0.25)
    assert np.isnan(bootstrap_interval(np.array([0.25]))).all()
