"""Plasma is the published construction, and the draws inside kernels follow the laws they claim.

Seeds are fixed, so nothing here fails by chance; tests of laws say what they would notice.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from corruptions import reference_weather as reference
from shiftproof.corruptions.kernels.compiled import seed_of
from shiftproof.corruptions.kernels.fields import EDGES, HEIGHTS, LAYER_AREA, normals, plasma, plasma_of, symmetric_draws

Maps = NDArray[np.floating]
ALARM = 4.5  # standard errors; one in 150,000 by chance, were the seeds not fixed


@pytest.mark.parametrize("size", [2, 4, 32, 64, 256])
@pytest.mark.parametrize("decay", [1.4, 2, 3])
def test_the_same_draws_make_the_published_map(size: int, decay: float) -> None:
    draws = np.random.default_rng(size).uniform(-1, 1, size * size)
    place = 0

    def take(count: int) -> NDArray[np.float64]:
        nonlocal place
        place += count
        return draws[place - count : place]

    published = reference.plasma(take, size, decay)
    assert place == size * size - 1
    assert np.abs(plasma_of(draws.astype(np.float32), size, decay) - published).max() < 2e-6


def test_a_map_of_two_by_two_as_worked_by_hand() -> None:
    # the corner is 0, the middle moves by 0.4; the upper edge is (2 x 0.4 + 2 x 0) / 4 - 0.5, the left one likewise + 0.1
    middle, upper, left = 0.4, 0.2 - 0.5, 0.2 + 0.1
    made = plasma_of(np.array([0.4, -0.5, 0.1, 0], np.float32), 2, 1.7)
    low, high = upper, middle
    expected = (np.array([[0, upper], [left, middle]]) - low) / (high - low)
    assert made == pytest.approx(expected, abs=1e-6)


def test_a_map_of_one_pixel_is_clear() -> None:
    assert plasma(np.random.default_rng(0), 1, 2.0).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("size", "height", "width"), [(1024, 540, 960), (1024, 1024, 1), (1024, 3, 1023), (2048, 1080, 1920)]
)
@pytest.mark.parametrize("decay", [1.4, 2, 3])
def test_the_part_of_a_large_map_is_that_of_the_whole(size: int, height: int, width: int, decay: float) -> None:
    for seed in range(3):
        whole = plasma_of(symmetric_draws(seed_of(np.random.default_rng(seed)), size * size), size, decay)
        part = plasma(np.random.default_rng(seed), size, decay, height, width)
        assert np.array_equal(part[:height, :width], whole[:height, :width])
        assert part.size <= (height + 1) * (width + 1)


def test_a_map_spans_zero_to_one_and_its_opposite_sides_meet() -> None:
    maps = our_maps(64, 2.0, 60)
    assert (maps.min(axis=(1, 2)) == 0).all()
    assert (maps.max(axis=(1, 2)) == 1).all()
    # the first row is as near to the last as to the second
    onwards, across = (np.abs(maps[:, 0] - maps[:, row]).mean() for row in (1, -1))
    assert across == pytest.approx(onwards, rel=0.1)


def our_maps(size: int, decay: float, count: int) -> Maps:
    rng = np.random.default_rng(0)
    return np.stack([plasma(rng, size, decay) for _ in range(count)])


def marks_of(draw: Callable[[], Maps], size: int) -> NDArray[np.float64]:
    """Of 400 small maps, or of 100 large ones, which say more each; so many at once as stay in the processor's cache."""
    rounds, at_once = (20, 20) if size < 100 else (100, 1)
    return np.concatenate([marks(np.stack([draw() for _ in range(at_once)])) for _ in range(rounds)])


def our_marks(size: int, decay: float) -> NDArray[np.float64]:
    rng = np.random.default_rng(0)
    return marks_of(lambda: plasma(rng, size, decay), size)


@cache
def published_marks(size: int, decay: float) -> NDArray[np.float64]:
    rng = np.random.default_rng(1)
    return marks_of(lambda: reference.plasma(lambda points: rng.uniform(-1, 1, points), size, decay), size)


def marks(maps: Maps) -> NDArray[np.float64]:
    """Of each map: mean, spread, mean step, how much rougher each level is than the next, correlation 1, 4 and 16 away."""
    maps = np.asarray(maps, np.float64)
    centred = maps - maps.mean(axis=(1, 2), keepdims=True)
    variance = (centred**2).mean(axis=(1, 2))
    roughness = [moved_by_a_level(maps, step) for step in (2, 4, 8)]
    columns = [maps.mean(axis=(1, 2)), np.sqrt(variance), np.abs(np.diff(maps, axis=2)).mean(axis=(1, 2))]
    columns += [roughness[1] / roughness[0], roughness[2] / roughness[1]]
    for lag in (1, 4, 16):
        columns += [(centred * np.roll(centred, lag, axis)).mean(axis=(1, 2)) / variance for axis in (1, 2)]
    return np.stack(columns, axis=1)


def moved_by_a_level(maps: Maps, step: int) -> NDArray[np.float64]:
    """How far the middles of squares of this side lie from the mean of their corners: what one level added, (maps,)."""
    corners, middles = maps[:, ::step, ::step], maps[:, step // 2 :: step, step // 2 :: step]
    around = sum(np.roll(corners, (-down, -right), (1, 2)) for down in (0, 1) for right in (0, 1))
    return np.asarray(np.sqrt(((middles - around / 4) ** 2).mean(axis=(1, 2))))


def distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """How many standard errors the mean marks of two samples of maps are apart, at the worst."""
    error = np.sqrt(one.var(0, ddof=1) / len(one) + other.var(0, ddof=1) / len(other))
    return float((np.abs(one.mean(0) - other.mean(0)) / error).max())


@pytest.mark.parametrize(("size", "decay"), [(32, 3.0), (64, 1.75), (64, 2.5), (256, 1.4), (256, 2.0)])
def test_our_maps_are_distributed_like_published_ones(size: int, decay: float) -> None:
    assert distance(our_marks(size, decay), published_marks(size, decay)) < ALARM


@pytest.mark.parametrize(("size", "decay"), [(32, 3.0), (64, 1.75), (256, 2.0)])
def test_the_comparison_of_maps_notices_a_decay_two_per_cent_off(size: int, decay: float) -> None:
    assert distance(our_marks(size, decay * 1.02), published_marks(size, decay)) > ALARM


@pytest.mark.parametrize("decay", [1.4, 2.0, 3.0])
def test_each_level_moves_the_map_by_the_square_of_the_decay_less(decay: float) -> None:
    maps = our_maps(128, decay, 20).astype(np.float64)
    shares = np.log2(moved_by_a_level(maps, 4) / moved_by_a_level(maps, 2))
    assert shares.mean() == pytest.approx(reference.AMPLITUDE_SQUARED * np.log2(decay), rel=0.01)


@pytest.mark.parametrize("bits", [np.random.Philox, np.random.PCG64, np.random.SFC64, np.random.MT19937])
def test_the_seed_of_a_kernel_is_64_bits_of_any_generator(bits: type[np.random.BitGenerator]) -> None:
    rng, other = (np.random.Generator(bits(5)) for _ in range(2))
    assert [seed_of(rng) for _ in range(3)] == other.integers(0, 2**64, 3, dtype=np.uint64).tolist()


def test_symmetric_draws_are_uniform_and_alone() -> None:
    draws = symmetric_draws(seed_of(np.random.default_rng(0)), 4_000_000).astype(np.float64)
    assert -1 <= draws.min() < -0.99999
    assert 0.99999 < draws.max() < 1
    counts, _ = np.histogram(draws, 1000, (-1, 1))
    assert stats.chisquare(counts).pvalue > 1e-4
    root = np.sqrt(len(draws))
    assert abs(draws.mean()) < ALARM * np.sqrt(1 / 3) / root
    for lag in (1, 2, 3, 64, 256, len(draws) // 2):
        assert abs((draws[lag:] * draws[:-lag]).mean()) < ALARM / 3 / np.sqrt(len(draws) - lag)


@pytest.fixture(scope="module")
def sample() -> NDArray[np.float64]:
    return normals(np.random.default_rng(0), 4000, 5000).reshape(-1).astype(np.float64)


def test_the_layers_of_the_bell_curve_are_equally_large() -> None:
    areas = EDGES[1:-1] * np.diff(HEIGHTS)[1:]
    assert areas == pytest.approx(np.full(len(areas), LAYER_AREA), rel=1e-6)
    tail = np.sqrt(2 * np.pi) * stats.norm.sf(EDGES[1])
    assert EDGES[1] * HEIGHTS[1] + tail == pytest.approx(LAYER_AREA, rel=1e-9)


def test_normals_have_the_moments_of_the_bell_curve(sample: NDArray[np.float64]) -> None:
    root, mean = np.sqrt(len(sample)), sample.mean()
    powers = [
        ((block**2).mean(), (block**2 * block).mean(), (block**2 * block**2).mean())
        for block in (part - mean for part in np.split(sample, 1000))  # each stays in the processor's cache
    ]
    variance, third, fourth = np.mean(powers, axis=0)
    assert abs(mean) < ALARM / root
    assert abs(variance - 1) < ALARM * np.sqrt(2) / root
    assert abs(third / variance**1.5) < ALARM * np.sqrt(6) / root
    assert abs(fourth / variance**2 - 3) < ALARM * np.sqrt(24) / root


def test_normals_fill_a_thousand_equal_bins_alike(sample: NDArray[np.float64]) -> None:
    """A bin 3 % too full would add 18 to a statistic that is 999 +- 45: ten of them would be noticed, or one 10 % off."""
    counts, _ = np.histogram(sample, stats.norm.ppf(np.linspace(0, 1, 1001)))
    assert stats.chisquare(counts).pvalue > 1e-4


@pytest.mark.parametrize("bound", [2, 3, 3.5, 3.6541528853610088, 3.7, 4, 4.5])
def test_normals_reach_as_far_as_they_should(bound: float, sample: NDArray[np.float64]) -> None:
    """Beyond the last edge 5160 of these 20 million are expected; one in sixteen too few would be noticed."""
    expected = 2 * stats.norm.sf(bound) * len(sample)
    assert abs((np.abs(sample) > bound).sum() - expected) < ALARM * np.sqrt(expected)


def test_normals_know_nothing_of_their_neighbours(sample: NDArray[np.float64]) -> None:
    some = sample[:3_000_000]
    for values in (some, np.abs(some) - np.abs(some).mean(), np.sign(some)):
        for lag in (1, 2, 3, 224):
            correlation = (values[lag:] * values[:-lag]).mean() / values.var()
            assert abs(correlation) < ALARM / np.sqrt(len(some) - lag)
