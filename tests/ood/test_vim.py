"""Residuals and virtual logits: against the formula written out, with heads that are nearly singular, in identities."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ood.made_up import FEATURES, InBlocks, a_head, inside, outside
from shiftproof.errors import BadInput, NotKept
from shiftproof.ood import ready
from shiftproof.ood.scores import energy, max_logit
from shiftproof.ood.vim import fit_residual, fit_vim, origin_of, principal_dimension
from shiftproof.types import Head, OODScores, Predictions


def written_out(training: Predictions, asked: Predictions, dimension: int) -> tuple[OODScores, OODScores]:
    """Residuals and ViM scores as the paper has them, in double precision and by a singular value decomposition."""
    head = training.need_head()
    origin = -np.linalg.pinv(head.weights.astype(np.float64)) @ head.bias.astype(np.float64)
    rows, others = (one.need_features().astype(np.float64) - origin for one in (training, asked))
    null_space = np.linalg.svd(rows)[2][dimension:].T
    residual = np.linalg.norm(others @ null_space, axis=1)
    alpha = training.need_logits().max(axis=1).mean() / np.linalg.norm(rows @ null_space, axis=1).mean()
    logits = asked.need_logits().astype(np.float64)
    return residual, alpha * residual - np.log(np.exp(logits).sum(axis=1))


@pytest.mark.parametrize("dimension", [0, 1, 10, 24, 40, 47])  # both ways of projecting
def test_scores_are_those_of_the_formula(dimension: int) -> None:
    residual, vim = written_out(inside(), outside(), dimension)
    np.testing.assert_allclose(fit_residual(inside(), dimension=dimension)(outside()), residual, rtol=2e-5)
    np.testing.assert_allclose(fit_vim(inside(), dimension=dimension)(outside()), vim, rtol=2e-5)


@pytest.mark.parametrize("shape", [(30, 30), (20, 60), (60, 20)])
@pytest.mark.parametrize("smallest", [0.9, 3e-2, 2e-3, 5e-4, 1e-6])  # of which the last two are by singular values
def test_the_origin_of_any_head_is_that_of_the_pseudo_inverse(shape: tuple[int, int], smallest: float) -> None:
    generator = np.random.default_rng(0)
    left, _, right = np.linalg.svd(generator.normal(size=shape), full_matrices=False)
    values = np.geomspace(3, 3 * smallest, min(shape))
    head = Head((left * values) @ right, generator.normal(size=shape[0]))
    found, exact = origin_of(head, 1e-9), -(right.T @ (left.T @ head.bias / values))
    np.testing.assert_allclose(found.place, exact, rtol=1e-13 / smallest, atol=1e-14 / smallest * np.abs(exact).max())
    assert found.smallest == pytest.approx(smallest, rel=1e-9)
    assert found.rank == min(shape)


def test_the_origin_is_where_the_logits_vanish() -> None:
    head = a_head()
    logits = head.weights.astype(np.float64) @ origin_of(head).place + head.bias
    assert np.abs(logits).max() < 1e-6


def test_a_principal_space_that_is_all_of_it_leaves_no_residual_and_the_energy() -> None:
    assert fit_residual(inside(), dimension=FEATURES)(outside()).tolist() == [0] * len(outside())
    fitted = fit_vim(inside(), dimension=FEATURES)
    assert np.array_equal(fitted(outside()), energy(outside()))
    assert fitted.found()["alpha"] == 0


def test_a_principal_space_of_nothing_leaves_the_distance_to_the_origin() -> None:
    origin = origin_of(a_head()).place
    distances = np.linalg.norm(outside().need_features() - origin, axis=1)
    np.testing.assert_allclose(fit_residual(inside(), dimension=0)(outside()), distances, rtol=1e-6)


def test_residuals_shrink_as_the_principal_space_grows() -> None:
    residuals = [fit_residual(inside(), dimension=dimension)(outside()) for dimension in range(0, FEATURES + 1, 4)]
    assert (np.diff(residuals, axis=0) <= 1e-5).all()


def test_the_virtual_logit_of_training_images_is_on_average_their_highest_logit() -> None:
    fitted = fit_vim(inside())
    virtual = fitted(inside()) - energy(inside())
    assert virtual.mean() == pytest.approx(-max_logit(inside()).mean(), rel=1e-6)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_scores_do_not_depend_on_the_blocks_learnt_from(size: int) -> None:
    np.testing.assert_allclose(fit_vim(InBlocks(inside(), size))(outside()), fit_vim(inside())(outside()), rtol=1e-5)


def test_the_dimension_is_the_authors_by_default_and_never_more_than_the_features() -> None:
    assert [principal_dimension(features) for features in (2048, 2047, 768, 767)] == [1000, 512, 512, 383]
    assert fit_vim(inside()).found()["dimension"] == FEATURES // 2
    assert ready("vim", inside(), preset="openood").parameters["dimension"] == FEATURES
    with pytest.raises(BadInput, match="0 dimensions or more"):
        fit_vim(inside(), dimension=-1)


def mean_centred_head(rounding: float) -> Head:
    """A head whose rows add up to nothing but rounding, as those of networks trained with softmax nearly do."""
    head = a_head()
    centred = head.weights - head.weights.mean(axis=0, dtype=np.float64)
    noise = np.random.default_rng(1).normal(0, rounding, centred.shape)
    return Head(centred + noise, head.bias)


def test_a_nearly_singular_head_is_told_and_its_origin_hangs_on_the_tolerance() -> None:
    head = mean_centred_head(1e-8)
    careful, careless = origin_of(head), origin_of(head, 1e-15)
    assert careful.rank == len(head.bias) - 1
    assert careless.rank == len(head.bias)
    assert np.linalg.norm(careless.place) > 1e4 * np.linalg.norm(careful.place)
    training = dataclasses.replace(inside(), head=head)
    for tolerance in (None, 1e-15):
        fitted = fit_vim(training, tolerance=tolerance)
        assert "nearly singular" in fitted.notes[0]
        assert float(fitted.found()["sigma_min/sigma_max of the head"] or 0) < 1e-6
    assert fit_vim(inside()).notes == ()


def test_an_origin_far_away_costs_no_digits() -> None:
    training, asked = (dataclasses.replace(one, head=mean_centred_head(1e-8)) for one in (inside(), outside()))
    origin = origin_of(training.need_head(), 1e-15).place
    assert np.linalg.norm(origin) > 1e6
    # from so far the direction to the images is the first axis, and the others are those of the spread about their mean
    features = training.need_features().astype(np.float64)
    away = (features.mean(axis=0) - origin) / np.linalg.norm(features.mean(axis=0) - origin)
    across = (features - features.mean(axis=0)) @ (np.eye(FEATURES) - np.outer(away, away))
    axes = np.vstack([away, np.linalg.svd(across)[2][:9]])
    others = asked.need_features() - features.mean(axis=0)
    expected = np.linalg.norm(others - others @ axes.T @ axes, axis=1)
    np.testing.assert_allclose(fit_residual(training, dimension=10, tolerance=1e-15)(asked), expected, rtol=1e-3)


def test_training_images_within_the_principal_space_are_told_and_leave_no_scale() -> None:
    few = inside(20)
    assert "within the principal space" in fit_residual(few, dimension=30).notes[0]
    with pytest.raises(NotKept, match="all 20 training images lie within"):
        fit_vim(few, dimension=30)
    assert fit_residual(few, dimension=10).notes == fit_vim(few, dimension=10).notes == ()


def test_without_a_head_there_is_no_origin() -> None:
    with pytest.raises(NotKept, match="last linear layer"):
        fit_vim(dataclasses.replace(inside(), head=None))
