"""Heads against scikit-learn's on the same features, and against cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from shiftproof.errors import BadInput
from shiftproof.training.heads import Design, Linear, Scaling, as_logits, fit_head, fit_logistic, fit_ridge

pytestmark = pytest.mark.usefixtures("one_worker")


def clouds(rows: int, *, seed: int = 0, classes: int = 4, spread: float = 3.0, weighted: bool = True) -> Design:
    """Overlapping classes far from the origin, their features of very different sizes."""
    rng, shared = np.random.default_rng(seed), np.random.default_rng(99)
    centres, sizes = shared.normal(size=(classes, 6)), np.array([1.0, 5.0, 0.2, 1.0, 2.0, 1.0])
    labels = rng.integers(classes, size=rows)
    features = (centres[labels] + spread * rng.normal(size=(rows, 6))) * sizes + 7
    weights = rng.uniform(0.5, 2, rows) if weighted else np.ones(rows)
    return Design(features.astype(np.float32), np.eye(classes)[labels], weights / weights.sum())


def scaled(design: Design) -> np.ndarray:
    scaling = Scaling.of(design)
    return np.asarray((design.features - scaling.mean) / scaling.spread)


@pytest.mark.parametrize("l2", [1.0, 0.1, 0.003])
def test_logistic_regression_is_that_of_scikit_learn(l2: float) -> None:
    design = clouds(300)
    ours = fit_logistic(design, l2)
    theirs = LogisticRegression(C=1 / l2, tol=1e-10, max_iter=5000)
    theirs.fit(scaled(design), design.targets.argmax(axis=1), sample_weight=design.weights)
    expected = theirs.decision_function(scaled(design))
    found = ours(design.features)
    middle = expected - expected.mean(axis=1, keepdims=True)  # the same number added to all logits changes nothing
    np.testing.assert_allclose(found - found.mean(axis=1, keepdims=True), middle, atol=2e-4)


@pytest.mark.parametrize("l2", [1.0, 0.1, 0.003])
def test_ridge_regression_is_that_of_scikit_learn(l2: float) -> None:
    design = clouds(300)
    (ours,) = fit_ridge(design, [l2])
    theirs = Ridge(alpha=l2).fit(scaled(design), design.targets, sample_weight=design.weights)
    np.testing.assert_allclose(ours(design.features), theirs.predict(scaled(design)), atol=1e-6)


def test_a_start_changes_how_the_optimum_is_reached_and_not_where_it_is() -> None:
    design = clouds(200)
    first = fit_logistic(design, 0.05)
    again = fit_logistic(design, 0.05, start=fit_logistic(design, 5.0))
    np.testing.assert_allclose(again(design.features), first(design.features), atol=2e-4)


def test_an_image_of_two_classes_counts_half_for_each() -> None:
    features = np.array([[0.0], [1.0]], np.float32)
    both = Design(features, np.array([[0.5, 0.5], [0.5, 0.5]]), np.array([0.5, 0.5]))
    np.testing.assert_allclose(fit_logistic(both, 1e-3)(features), 0, atol=1e-5)
    once = Linear(np.array([[0.0], [0.0]]), np.array([np.log(3.0), 0.0]))  # probabilities 3/4 and 1/4
    assert both.loss(once) == pytest.approx(-0.5 * np.log(0.75) - 0.5 * np.log(0.25))
    assert both.accuracy(once) == 1


def test_the_penalty_with_the_least_loss_on_held_out_rows_is_taken() -> None:
    training, held_out = clouds(60), clouds(400, seed=1)
    for kind in ("logistic", "ridge"):
        found = fit_head(training, held_out, kind=kind)
        losses = [one.loss for one in found.tried]
        assert found.l2 == found.tried[int(np.argmin(losses))].l2
        assert held_out.loss(found.head) == pytest.approx(min(losses))
        assert int(np.argmin(losses)) > 0, "the strongest is worse here"


def test_ridge_regression_is_scaled_to_logits() -> None:
    training, held_out = clouds(300), clouds(300, seed=1)
    (head,) = fit_ridge(training, [0.01])
    best = held_out.loss(as_logits(head, held_out))
    for factor in (0.5, 1.0, 2.0):
        other = as_logits(head, held_out)
        assert best <= held_out.loss(Linear(other.weight * factor, other.bias * factor)) + 1e-9
    assert best < held_out.loss(head)


def test_rows_block_by_block_are_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    design = clouds(50)
    whole = fit_logistic(design, 0.1)
    monkeypatch.setattr("shiftproof.training.heads.BLOCK", 7)
    np.testing.assert_allclose(fit_logistic(design, 0.1)(design.features), whole(design.features), atol=1e-5)


def test_features_that_are_no_numbers_are_told() -> None:
    training, held_out = clouds(20), clouds(20, seed=1)
    training.features[3, 2] = np.nan
    with pytest.raises(BadInput, match="not finite numbers"):
        fit_head(training, held_out)
