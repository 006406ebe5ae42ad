"""The Fréchet distance against the matrix square root, closed forms and itself block by block."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import sqrtm

from shiftproof.errors import BadInput
from shiftproof.metrics import frechet_distance, frechet_interval, moments_of


def drawn_features(images: int, features: int, seed: int) -> NDArray[np.floating]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(images, features)) @ generator.normal(size=(features, features)) + generator.normal(
        size=features
    )


def by_matrix_root(first: NDArray[np.floating], second: NDArray[np.floating]) -> float:
    one, other = np.cov(first, rowvar=False), np.cov(second, rowvar=False)
    root = np.real(sqrtm(one @ other))
    apart = first.mean(axis=0) - second.mean(axis=0)
    return float(apart @ apart + np.trace(one + other - 2 * root))


@pytest.mark.parametrize(("first", "second"), [(200, 300), (40, 31), (1000, 60)])
def test_of_full_rank_it_is_what_the_matrix_square_root_gives(first: int, second: int) -> None:
    sets = drawn_features(first, 30, 0), drawn_features(second, 30, 1)
    assert frechet_distance(*sets) == pytest.approx(by_matrix_root(*sets), rel=1e-9)


def test_of_independent_features_it_is_the_distance_of_means_and_of_standard_deviations() -> None:
    # plus and minus each axis: covariances are diagonal
    axes = np.eye(4)
    first, second = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, 0.0, 1.0, 4.0])
    sets = [np.concatenate([axes, -axes]) * scale + shift for scale, shift in ((first, 0.0), (second, 0.5))]
    deviations = [np.sqrt(2 * scale**2 / 7) for scale in (first, second)]
    expected = 4 * 0.25 + ((deviations[0] - deviations[1]) ** 2).sum()
    assert frechet_distance(*sets) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("images", "features"), [(500, 20), (20, 500)])
def test_equal_sets_are_at_no_distance_even_with_fewer_images_than_features(images: int, features: int) -> None:
    found = drawn_features(images, features, 2)
    scale = found.var(axis=0).sum()
    assert frechet_distance(found, found[::-1]) == pytest.approx(0, abs=1e-11 * scale)


def test_fewer_images_than_features_are_no_obstacle() -> None:
    # in 200 features as in the 30 they span, since turning and widening the space moves nothing
    small = drawn_features(15, 30, 3), drawn_features(12, 30, 4)
    turn, _ = np.linalg.qr(np.random.default_rng(5).normal(size=(200, 30)))
    wide = [features @ turn.T for features in small]
    assert frechet_distance(wide[0], wide[1]) == pytest.approx(frechet_distance(*small), rel=1e-10)
    assert np.isfinite(frechet_distance(*small))


def test_moments_gathered_block_by_block_are_those_of_all_images() -> None:
    features, other = drawn_features(333, 25, 6) + 1000, drawn_features(50, 25, 7) + 1000
    moments = moments_of(np.array_split(features.astype(np.float32), 9))
    kept = features.astype(np.float32).astype(float)
    assert moments.images == 333
    assert moments.root.shape == (25, 25)
    assert moments.mean == pytest.approx(kept.mean(axis=0), rel=1e-12)
    assert moments.root.T @ moments.root / 332 == pytest.approx(np.cov(kept, rowvar=False), rel=1e-9, abs=1e-9)
    assert frechet_distance(moments, other) == pytest.approx(frechet_distance(kept, other), rel=1e-10)


def test_halves_of_one_set_are_further_apart_the_fewer_their_images() -> None:
    features = drawn_features(4000, 40, 8)
    few, many = (frechet_distance(features[:count], features[count : 2 * count]) for count in (50, 2000))
    assert few > 5 * many > 0


def test_what_has_no_spread_or_no_common_space_is_refused() -> None:
    with pytest.raises(BadInput, match="at least two images, got 1"):
        frechet_distance(np.ones((1, 3)), np.ones((5, 3)))
    with pytest.raises(BadInput, match="3 features an image and the other 4"):
        frechet_distance(np.ones((5, 3)), np.ones((5, 4)))
    with pytest.raises(BadInput, match="not numbers"):
        frechet_distance(np.full((5, 3), np.nan), np.ones((5, 3)))
    with pytest.raises(BadInput, match="no features"):
        moments_of([])
    with pytest.raises(BadInput, match="got shape"):
        moments_of([np.ones(3)])


@pytest.mark.parametrize("copies", [1, 3])
def test_the_interval_holds_the_distance_of_the_distributions(copies: int) -> None:
    # normal in three features: means 1 apart in one, and twice as wide in another, so 1 + (2 - 1)^2
    generator, held, beyond = np.random.default_rng(51), 0, 0
    for _ in range(300):
        first = np.repeat(generator.normal(size=(150, 3)), copies, axis=0)
        second = np.repeat(generator.normal([1, 0, 0], [1, 2, 1], size=(150, 3)), copies, axis=0)
        clusters = np.repeat(np.arange(150), copies)
        low, high = frechet_interval(first, second, first_clusters=clusters, second_clusters=clusters) or (np.nan, np.nan)
        held += low <= 2 <= high
        beyond += frechet_distance(first, second) > 2
    assert 0.91 <= held / 300 <= 0.985
    assert beyond > 160  # the number itself is too large more often than not


def test_sets_too_small_for_their_features_have_no_interval() -> None:
    generator = np.random.default_rng(52)
    first, second = generator.normal(size=(60, 40)), generator.normal(size=(60, 40))
    assert frechet_interval(first, second) is None
    few = np.arange(60) % 4
    assert frechet_interval(first[:, :2], second[:, :2], first_clusters=few) is None
    assert frechet_interval(first[:, :2], second[:, :2] + 1) is not None
