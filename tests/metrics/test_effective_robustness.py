"""Distance from the line through other models: by hand, by its promise, and on the published models."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from shiftproof.errors import BadInput
from shiftproof.metrics import effective_robustness
from shiftproof.metrics.effective_robustness import Axes
from shiftproof.reference import load_table

TABLES = {"imagenet_vid_robust_models": 45, "ytbb_robust_models": 60}


def published(table: str) -> NDArray[np.floating]:
    """Original and perturbed accuracy, (2, models)."""
    rows = load_table(table)
    return np.array([[float(row[kind]) / 100 for row in rows] for kind in ("original", "perturbed")])


def test_what_the_line_does_not_explain_is_what_remains() -> None:
    # heights 0.1, 0.4, 0.4 at 0, 0.5, 1: slope 0.3, intercept 0.15
    found = effective_robustness(0.8, 0.5, np.array([0.0, 0.5, 1.0]), np.array([0.1, 0.4, 0.4]))
    assert (found.expected, found.difference) == pytest.approx((0.39, 0.11))


def test_on_probit_axes_the_line_runs_through_normal_quantiles() -> None:
    quantiles = np.array([-0.5, 0.0, 0.5, 1.0])
    found = effective_robustness(
        norm.cdf(0.2), norm.cdf(-0.2), norm.cdf(quantiles), norm.cdf(0.8 * quantiles - 0.6), axes="probit"
    )
    assert (found.line.slope, found.line.intercept) == pytest.approx((0.8, -0.6))
    assert found.expected == pytest.approx(norm.cdf(-0.44))
    assert found.difference == pytest.approx(norm.cdf(-0.2) - norm.cdf(-0.44))


@pytest.mark.parametrize("axes", get_args(Axes))
def test_one_more_model_like_the_others_falls_inside_95_times_in_100(axes: Axes) -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(1000):
        x = generator.uniform(-0.5, 1.0, 8)
        y = 0.9 * x - 0.3 + generator.normal(scale=0.05, size=8)
        x, y = (norm.cdf(x), norm.cdf(y)) if axes == "probit" else (x / 4 + 0.5, y / 4 + 0.5)
        found = effective_robustness(x[0], y[0], x[1:], y[1:], axes=axes)
        inside += not found.stands_out
    assert inside == pytest.approx(950, abs=21)  # three standard deviations


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("axes", get_args(Axes))
def test_published_models_scatter_about_their_own_line_and_few_stand_out(table: str, axes: Axes) -> None:
    original, perturbed = published(table)
    assert len(original) == TABLES[table]
    everyone = [
        effective_robustness(*model, original, perturbed, axes=axes) for model in zip(original, perturbed, strict=True)
    ]
    if axes == "linear":
        assert sum(found.difference for found in everyone) == pytest.approx(0, abs=1e-9)
    assert sum(found.stands_out for found in everyone) <= 0.1 * len(everyone)
    assert all(found.line.r_squared > 0.8 for found in everyone[:1])


@pytest.mark.parametrize("table", TABLES)
def test_a_model_moved_off_the_published_cloud_stands_out_by_what_it_was_moved(table: str) -> None:
    original, perturbed = published(table)
    where_it_is = effective_robustness(original[3], perturbed[3], original, perturbed)
    lifted = effective_robustness(original[3], perturbed[3] + 0.2, original, perturbed)
    assert lifted.difference - where_it_is.difference == pytest.approx(0.2)
    assert lifted.stands_out


def test_two_others_make_a_line_from_which_nothing_can_be_said_to_stand_out() -> None:
    found = effective_robustness(0.5, 0.9, np.array([0.4, 0.6]), np.array([0.3, 0.5]))
    assert found.expected == pytest.approx(0.4)
    assert np.isnan(found.expected_interval).all()
    assert not found.stands_out


@pytest.mark.parametrize(
    ("original", "axes", "words"),
    [
        (67.5, "linear", "divide percentages by 100"),
        (1.0, "probit", "no place on probit axes"),
        (0.5, "log", "'linear' or 'probit'"),
    ],
)
def test_what_has_no_place_on_the_axes_is_refused(original: float, axes: Axes, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        effective_robustness(original, 0.5, np.array([0.4, 0.6, 0.7]), np.array([0.3, 0.5, 0.55]), axes=axes)
