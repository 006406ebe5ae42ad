"""The curve of images found against false alarms: all of scikit-learn's corners, or as many as the eye needs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import metrics as sklearn_metrics

from shiftproof.errors import BadInput
from shiftproof.metrics import RocCurve, auroc, roc_curve

Floats = NDArray[np.floating]


def two_sides(images: int, digits: int = 9) -> tuple[Floats, Floats]:
    generator = np.random.default_rng(61)
    return generator.normal(size=images).round(digits), generator.normal(1.5, 1, size=images // 2).round(digits)


def distance_to(curve: RocCurve, across: Floats, up: Floats) -> Floats:
    """From each of some points to the nearest of the lines between the points of a curve."""
    starts = np.stack(curve, axis=1)[:-1]
    steps = np.diff(np.stack(curve, axis=1), axis=0)
    gaps = np.stack([across, up], axis=1)[:, None] - starts
    along = np.clip((gaps * steps).sum(axis=2) / (steps**2).sum(axis=1), 0, 1)
    return np.asarray(np.hypot(*np.moveaxis(gaps - along[..., None] * steps, 2, 0)).min(axis=1))


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_a_curve_of_few_images_has_the_corners_of_scikit_learn(digits: int) -> None:
    sides = two_sides(60, digits)
    outside = np.repeat([False, True], [len(side) for side in sides])
    false_alarms, found, _ = sklearn_metrics.roc_curve(outside, np.concatenate(sides))
    curve = roc_curve(*sides, points=1000)
    # scikit-learn keeps some points on straight lines, so the area and the way back are compared as well
    assert set(zip(*curve, strict=True)) <= set(zip(false_alarms, found, strict=True))
    assert distance_to(curve, false_alarms, found).max() < 1e-12
    assert np.trapezoid(curve.found, curve.false_alarms) == pytest.approx(auroc(*sides), abs=1e-12)


@pytest.mark.parametrize("points", [20, 200])
@pytest.mark.parametrize("images", [1000, 20_000])
def test_a_thinned_curve_is_within_a_hair_of_the_whole(images: int, points: int) -> None:
    sides = two_sides(images)
    whole, thin = roc_curve(*sides, points=10**9), roc_curve(*sides, points=points)
    assert points / 2 < len(thin.found) <= points < len(whole.found)
    chosen = slice(None, None, max(1, len(whole.found) // 2000))
    assert distance_to(thin, whole.false_alarms[chosen], whole.found[chosen]).max() <= 1.5 / points
    assert set(zip(*thin, strict=True)) <= set(zip(*whole, strict=True))


def test_a_sharp_corner_survives_thinning() -> None:
    generator = np.random.default_rng(62)
    # half of the outside images are far off, the others cannot be told from inside
    outside = np.concatenate([np.full(5000, 99.0), generator.normal(size=5000)])
    curve = roc_curve(generator.normal(size=10_000), outside, points=50)
    assert (0.0, 0.5) in set(zip(*curve, strict=True))


@pytest.mark.parametrize(
    ("inside", "outside", "corners"),
    [
        ([1.0], [1.0], [(0, 0), (1, 1)]),
        ([1.0, 2.0], [3.0], [(0, 0), (0, 1), (1, 1)]),
        ([3.0], [1.0, 2.0], [(0, 0), (1, 0), (1, 1)]),
        ([1.0, np.inf], [np.inf, 2.0], [(0, 0), (0.5, 0.5), (0.5, 1), (1, 1)]),
        ([1.0, 2.0], [2.0, 1.0], [(0, 0), (1, 1)]),
    ],
)
def test_curves_worked_by_hand(inside: list[float], outside: list[float], corners: list[tuple[float, float]]) -> None:
    assert list(zip(*roc_curve(np.array(inside), np.array(outside)), strict=True)) == corners


def test_too_few_points_are_refused() -> None:
    with pytest.raises(BadInput, match="at least 4 points, got 3"):
        roc_curve(np.ones(2), np.ones(2), points=3)
