"""Shaped features: loops that sort each image's features, and what the shapings are at their ends."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import logsumexp

from ood.made_up import InBlocks, a_head, inside, outside, predictions_of
from shiftproof.errors import BadInput
from shiftproof.ood.activations import ash_b, ash_p, ash_s, fit_react, largest, scale
from shiftproof.ood.scores import energy
from shiftproof.types import OODScores, Predictions

HEAD = a_head()
WIDTH = HEAD.weights.shape[1]
Shaping = Callable[[NDArray[np.floating], float], NDArray[np.floating]]


def kept_places(row: NDArray[np.floating], percentile: float) -> list[int]:
    ranked = sorted(range(len(row)), key=lambda place: (-row[place], place))
    return ranked[: len(row) - round(len(row) * percentile / 100)]


def pruned(row: NDArray[np.floating], percentile: float) -> NDArray[np.floating]:
    shaped = np.zeros_like(row)
    for place in kept_places(row, percentile):
        shaped[place] = row[place]
    return shaped


def levelled(row: NDArray[np.floating], percentile: float) -> NDArray[np.floating]:
    shaped, places = np.zeros_like(row), kept_places(row, percentile)
    shaped[places] = row.sum() / len(places)
    return shaped


def sharpened(row: NDArray[np.floating], percentile: float) -> NDArray[np.floating]:
    after = pruned(row, percentile)
    return after * math.exp(row.sum() / after.sum())


def scaled(row: NDArray[np.floating], percentile: float) -> NDArray[np.floating]:
    return row * math.exp(row.sum() / pruned(row, percentile).sum())


def energies(features: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(-logsumexp(features @ HEAD.weights.T.astype(np.float64) + HEAD.bias, axis=1))


def with_many_ties() -> Predictions:
    features = np.random.default_rng(3).integers(0, 4, (80, WIDTH)).astype(np.float32)
    return predictions_of(features, HEAD)


@pytest.mark.parametrize(("detector", "shaping"), [(ash_b, levelled), (ash_s, sharpened), (ash_p, pruned), (scale, scaled)])
@pytest.mark.parametrize("percentile", [10.0, 65.0, 85.0, 90.0, 98.0])
@pytest.mark.parametrize("made", [inside, outside, with_many_ties])
def test_shaping_is_what_sorting_each_image_gives(
    detector: Callable[..., OODScores],
    shaping: Shaping,
    percentile: float,
    made: Callable[[], Predictions],
) -> None:
    predictions = made()
    rows = predictions.need_features().astype(np.float64)
    expected = energies(np.array([shaping(row, percentile) for row in rows]))
    np.testing.assert_allclose(detector(predictions, percentile=percentile), expected, rtol=1e-4)


@pytest.mark.parametrize("percentile", [0.0, 35.0, 65.0, 97.0])
def test_every_image_keeps_as_many_features_however_many_are_equal(percentile: float) -> None:
    kept = largest(with_many_ties().need_features(), percentile)
    assert set(kept.sum(axis=1)) == {WIDTH - round(WIDTH * percentile / 100)}


def test_ash_b_of_all_features_is_the_energy_of_their_mean() -> None:
    features = inside().need_features().astype(np.float64)
    means = np.repeat(features.mean(axis=1, keepdims=True), WIDTH, axis=1)
    np.testing.assert_allclose(ash_b(inside(), percentile=0.0), energies(means), rtol=1e-5)


def test_ash_p_of_all_features_is_energy() -> None:
    np.testing.assert_allclose(ash_p(inside(), percentile=0.0), energy(inside()), rtol=1e-5)


def test_ash_s_and_scale_of_all_features_grow_them_by_e() -> None:
    expected = energies(inside().need_features().astype(np.float64) * math.e)
    for detector in (ash_s, scale):
        np.testing.assert_allclose(detector(inside(), percentile=0.0), expected, rtol=1e-5)


def test_scale_only_stretches_logits_about_the_bias() -> None:
    predictions = outside()
    features = predictions.need_features().astype(np.float64)
    growth = np.exp(features.sum(axis=1) / np.array([pruned(row, 85.0).sum() for row in features]))
    stretched = growth[:, None] * (predictions.need_logits() - HEAD.bias) + HEAD.bias
    np.testing.assert_allclose(scale(predictions), -logsumexp(stretched, axis=1), rtol=1e-4)


def test_features_below_zero_or_all_zero_still_get_a_number() -> None:
    generator = np.random.default_rng(1)
    odd = np.concatenate([np.zeros((1, WIDTH)), generator.normal(size=(200, WIDTH)), -generator.random((200, WIDTH))])
    predictions = predictions_of(odd.astype(np.float32), HEAD)
    for detector in (ash_b, ash_s, ash_p, scale):
        assert np.isfinite(detector(predictions)).all()
        np.testing.assert_allclose(detector(predictions)[0], energies(odd[:1]), rtol=1e-5)


def test_react_without_a_ceiling_is_energy() -> None:
    np.testing.assert_allclose(fit_react(inside(), clip=math.inf)(inside()), energy(inside()), rtol=1e-5)


def test_react_cuts_features_at_a_percentile_of_all_training_features() -> None:
    training, predictions = inside(500), outside()
    detector = fit_react(InBlocks(training, 64), percentile=80.0)
    ceiling = np.percentile(training.need_features().astype(np.float64), 80)
    assert detector.clip == pytest.approx(ceiling, rel=1e-7)
    expected = energies(np.minimum(predictions.need_features().astype(np.float64), ceiling))
    np.testing.assert_allclose(detector(predictions), expected, rtol=1e-5)
    assert detector.found() == {"clip": detector.clip}


def test_a_ceiling_that_is_given_needs_no_features_of_training_images() -> None:
    assert fit_react(dataclasses.replace(inside(), features=None), clip=1.0).clip == 1.0


@pytest.mark.parametrize("percentile", [-1.0, 100.0, 130.0])
def test_a_percentile_that_leaves_nothing_is_refused(percentile: float) -> None:
    with pytest.raises(BadInput, match="leave at least one of 48 features"):
        ash_s(inside(), percentile=percentile)
