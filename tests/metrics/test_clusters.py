"""Images in clusters: intervals and tests beside those of the clusters themselves, and beside plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from shiftproof.metrics import (
    clopper_pearson,
    cluster_mean_interval,
    cluster_share_interval,
    jackknife_interval,
    mcnemar_p,
    paired_difference,
)
from shiftproof.metrics.intervals import LEAST_CLUSTERS, bca_interval, cluster_sizes, cluster_spread, numbered
from shiftproof.metrics.resampling import interval_of, resampled_means


def in_clusters(clusters: int, size: int, share: float, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Answers of which a third of the variance is shared within a cluster."""
    generator = np.random.default_rng(seed)
    rates = generator.beta(2 * share, 2 * (1 - share), clusters)
    numbers = np.repeat(np.arange(clusters), size)
    return generator.random(len(numbers)) < rates[numbers], numbers


def test_images_that_are_cases_of_their_own_have_the_exact_interval() -> None:
    right = np.arange(50) % 3 == 0
    exact = clopper_pearson(int(right.sum()), 50)
    assert cluster_share_interval(right) == exact
    assert cluster_share_interval(right, clusters=np.arange(50)[::-1]) == exact


def test_copies_of_an_image_tell_no_more_than_the_image() -> None:
    """75 versions of 31 photos that are all alike are 31 photos: a design effect of 75."""
    right = np.arange(31) % 2 == 0
    low, high = cluster_share_interval(np.repeat(right, 75), clusters=np.repeat(np.arange(31), 75)) or (0, 1)
    expected = clopper_pearson(16, 31)
    # Student's t of 30 degrees instead of the normal makes it a little wider
    assert low == pytest.approx(expected[0], abs=0.012)
    assert high == pytest.approx(expected[1], abs=0.012)
    naive = clopper_pearson(16 * 75, 31 * 75)
    assert high - low > 7 * (naive[1] - naive[0])


def test_the_interval_is_the_exact_one_of_as_many_images_as_a_loop_over_clusters_finds() -> None:
    right, clusters = in_clusters(40, 7, 0.6)
    # one more cluster that is right and one that is wrong, of 0.3 clusters' size, weigh 2.1 images each
    values = np.concatenate([right.astype(float), [1.0, 0.0]])
    weights, groups = np.append(np.ones(280), [2.1, 2.1]), np.append(clusters, [40, 41])
    mean = np.average(values, weights=weights)
    without = [np.average(values[groups != one], weights=weights[groups != one]) for one in range(42)]
    variance = 41 / 42 * sum((other - mean) ** 2 for other in without)
    assert cluster_spread(right.astype(float), clusters, lowest=0.0) == pytest.approx((mean, variance, 284.2))
    t_ratio = stats.t.ppf(0.975, 279) / stats.t.ppf(0.975, 39)
    found = 280 * mean * (1 - mean) / variance / 284.2 * t_ratio**2
    good, bad = right.mean() * found, (1 - right.mean()) * found
    bounds = stats.beta.ppf([0.025, 0.975], [good, good + 1], [bad + 1, bad])
    assert cluster_share_interval(right, clusters=clusters) == pytest.approx(tuple(bounds))


def test_an_interval_by_cluster_is_as_wide_as_drawing_clusters_again() -> None:
    right, clusters = in_clusters(200, 10, 0.5)
    low, high = cluster_share_interval(right, clusters=clusters) or (0, 1)
    generator = np.random.default_rng(1)
    table = right.reshape(200, 10)
    means = np.array([table[generator.integers(200, size=200)].mean() for _ in range(4000)])
    drawn = np.quantile(means, [0.025, 0.975])
    assert (high - low) / (drawn[1] - drawn[0]) == pytest.approx(1.03, abs=0.06)


def test_where_all_answers_are_alike_every_cluster_counts_as_one_image() -> None:
    clusters = np.repeat(np.arange(12), 9)
    assert cluster_share_interval(np.ones(108, bool), clusters=clusters) == pytest.approx(clopper_pearson(12, 12))


def test_of_too_few_clusters_nothing_is_said() -> None:
    """Thirteen anchors of one clip are one case."""
    right = np.arange(13) < 5
    assert cluster_share_interval(right, clusters=np.zeros(13, int)) is None
    found = paired_difference(right, ~right, clusters=np.zeros(13, int))
    assert found.difference == pytest.approx(-3 / 13)
    assert (found.interval, found.p) == (None, None)
    means = resampled_means(right[:, None], clusters=np.arange(13) % (LEAST_CLUSTERS - 1))
    assert interval_of(*(part[:, 0] for part in means)) is None


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_intervals_by_cluster_hold_the_truth_nineteen_times_in_twenty(share: float) -> None:
    """Over images as if independent they hold it in 70 of 100; the whole table is in docs/intervals.md."""
    held = by_image = 0
    for seed in range(400):
        right, clusters = in_clusters(30, 10, share, seed=seed)
        low, high = cluster_share_interval(right, clusters=clusters) or (0, 1)
        held += low <= share <= high
        low, high = clopper_pearson(int(right.sum()), len(right))
        by_image += low <= share <= high
    assert 0.92 < held / 400 < 0.985  # a rate of 0.95 leaves these bounds once in hundreds of seeds, which are fixed
    assert by_image / 400 < 0.8


def test_a_difference_by_cluster_agrees_with_its_p_value() -> None:
    generator = np.random.default_rng(5)
    for seed in range(60):
        first, clusters = in_clusters(20, 6, 0.5, seed=seed)
        second = np.where(generator.random(len(first)) < 0.8, first, ~first)
        found = paired_difference(first, second, clusters=clusters)
        assert found.interval is not None
        assert found.p is not None
        assert (found.p < 0.05) == (found.interval[0] > 0 or found.interval[1] < 0)


def test_a_difference_of_independent_images_is_that_of_bonett_and_price_with_its_own_p() -> None:
    first, second = np.arange(40) < 30, np.arange(40) >= 12
    found = paired_difference(first, second)
    assert found.difference == pytest.approx(2 / 40)
    # one image is added to each way of differing: 13 and 11 of 42
    middle, spread = 2 / 42, np.sqrt((24 / 42 - (2 / 42) ** 2) / 42)
    assert found.p == pytest.approx(2 * stats.norm.sf(middle / spread))
    assert mcnemar_p(12, 10) == pytest.approx(0.83, abs=0.01)  # exact, and larger than the interval's own
    assert found == paired_difference(first, second, clusters=np.arange(40))


def test_drawing_clusters_again_is_drawing_their_rows_together() -> None:
    generator = np.random.default_rng(2)
    clusters = np.repeat(np.arange(9), generator.integers(1, 6, 9))
    values = generator.normal(size=(len(clusters), 2))
    shuffled = generator.permutation(len(clusters))
    means = resampled_means(values[shuffled], clusters=clusters[shuffled], resamples=50, seed=7)
    assert means.seen[0] == pytest.approx(values.mean(axis=0))
    counts = np.random.default_rng(7).integers(9, size=(50, 9))
    for drawing, chosen in zip(means.drawn, counts, strict=True):
        rows = np.concatenate([np.flatnonzero(clusters == one) for one in chosen.tolist()])
        assert drawing == pytest.approx(values[rows].mean(axis=0))
    left = [values[clusters != one].mean(axis=0) for one in range(9)]
    assert means.left_out == pytest.approx(np.array(left))


def test_an_interval_of_few_cases_is_as_much_wider_as_students() -> None:
    """Of normal drawings the ends lie at t * sqrt(n / (n - 1)) standard deviations of the drawings."""
    drawn = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    left_out = np.array([-1.0, 0.0, 1.0])
    low, high = bca_interval(0.0, drawn, left_out, cases=26)
    expected = np.sqrt(26 / 25) * stats.t.ppf(0.975, 25)
    assert (low, high) == pytest.approx((-expected, expected), abs=0.01)


def test_the_difference_has_the_variance_of_leaving_out_one_cluster_at_a_time() -> None:
    sizes = [1, 2, 3, 5, 9, 4]
    differences = [1.0, -1.0, 1.0, 0.0, 4.0, 2.0]  # of 24 images in six clusters
    made_up = 0.3 * 24 / 6
    totals, weights = [*differences, made_up, -made_up], [*sizes, made_up, made_up]
    mean, without = sum(totals) / sum(weights), []
    for place in range(8):
        kept = [other for other in range(8) if other != place]
        without.append(sum(totals[other] for other in kept) / sum(weights[other] for other in kept))
    half = stats.t.ppf(0.975, 5) * (7 / 8 * sum((one - mean) ** 2 for one in without)) ** 0.5
    clusters = np.repeat(np.arange(6), sizes)
    first, second = np.zeros(24, bool), np.zeros(24, bool)
    for one, difference in enumerate(differences):
        rows = np.flatnonzero(clusters == one)[: abs(int(difference))]
        (first if difference > 0 else second)[rows] = True
    assert paired_difference(first, second, clusters=clusters).interval == pytest.approx((mean - half, mean + half))


@pytest.mark.parametrize("truth", [0.1, 0.5])
@pytest.mark.parametrize(("clusters", "size"), [(5, 20), (26, 10), (100, 10)])
def test_differences_by_cluster_hold_the_truth(truth: float, clusters: int, size: int) -> None:
    held = 0
    for seed in range(400):
        lost, numbers = in_clusters(clusters, size, truth, seed=seed)
        low, high = paired_difference(np.ones(len(lost), bool), ~lost, clusters=numbers).interval or (1, 0)
        held += low <= truth <= high
    assert held >= 0.915 * 400  # 95 % less three standard errors


@pytest.mark.parametrize("endless", [np.inf, -np.inf, np.nan])
def test_a_mean_that_is_no_number_has_no_interval(endless: float) -> None:
    assert cluster_mean_interval(np.append(np.arange(9.0), endless)) is None


def test_a_mean_by_cluster_is_that_of_the_clusters_means_where_all_are_of_one_size() -> None:
    """Of values without skew: Student's t of the clusters' means, by scipy."""
    values = np.repeat(np.arange(-6.0, 7.0), 4) + np.tile([-1.0, 1.0, -0.5, 0.5], 13)
    means = values.reshape(13, 4).mean(axis=1)
    wanted = stats.t.interval(0.95, 12, means.mean(), stats.sem(means))
    assert cluster_mean_interval(values, clusters=np.repeat(np.arange(13), 4)) == pytest.approx(wanted)


def test_five_cases_are_enough_for_an_interval_and_four_are_not() -> None:
    right = np.arange(20) % 3 > 0
    assert cluster_share_interval(right, clusters=np.arange(20) % LEAST_CLUSTERS) is not None
    assert cluster_share_interval(right, clusters=np.arange(20) % (LEAST_CLUSTERS - 1)) is None


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_leaving_clusters_of_any_size_out_of_a_mean_is_what_their_sums_say(bounds: tuple[float, float] | None) -> None:
    """A mean is linear in the images: what it loses without a cluster is that cluster's part in it."""
    generator = np.random.default_rng(3)
    clusters = np.repeat(np.arange(20), generator.integers(1, 9, 20))
    values = np.clip(0.5 + 0.2 * generator.normal(size=20)[clusters] + 0.1 * generator.normal(size=len(clusters)), 0, 1)
    left_out = jackknife_interval(lambda kept: float(values[kept].mean()), clusters, bounds=bounds)
    assert left_out == pytest.approx(cluster_mean_interval(values, clusters=clusters, bounds=bounds))


@pytest.mark.parametrize("bounds", [None, (-1.0, 1.0)])
def test_what_a_cluster_has_in_both_samples_counts_together(bounds: tuple[float, float] | None) -> None:
    """The difference of two means of the same photos: known well where photos vary alike, badly where they vary against."""
    generator = np.random.default_rng(4)
    photos, noise = generator.uniform(-0.4, 0.4, 30), generator.uniform(-0.05, 0.05, 30)
    second = np.arange(60) >= 30

    def width(other: NDArray[np.floating], clusters: NDArray[np.integer]) -> float:
        values = np.concatenate([photos, other])

        def apart(kept: NDArray[np.bool_]) -> float:
            return float(values[kept & second].mean() - values[kept & ~second].mean())

        found = jackknife_interval(apart, clusters, second=second, bounds=bounds)
        assert found is not None
        return found[1] - found[0]

    each, shared = np.arange(60), np.arange(60) % 30
    assert width(photos + noise, shared) < 0.4 * width(photos + noise, each)
    assert width(-photos + noise, shared) > 1.2 * width(-photos + noise, each)


@pytest.mark.parametrize(
    "clusters",
    [np.array([4, 4, 0, 2]), np.array([1, 0, 1]), np.array([10**9, 5, 5]), np.array([-3, 7, -3]), np.array([], int)],
)
def test_clusters_are_numbered_in_their_order(clusters: NDArray[np.integer]) -> None:
    assert numbered(clusters).tolist() == np.unique(clusters, return_inverse=True)[1].tolist()
    assert cluster_sizes(clusters).tolist() == np.unique(clusters, return_counts=True)[1].tolist()
