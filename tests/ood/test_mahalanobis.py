"""Distances to class centres: against scikit-learn one image at a time, and under changes that should not matter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.covariance import EmpiricalCovariance

from ood.made_up import CLASSES, FEATURES, InBlocks, inside, outside, predictions_of
from shiftproof.errors import NotKept
from shiftproof.ood import Detector
from shiftproof.ood.class_means import class_moments_of, overall_moments_of
from shiftproof.ood.mahalanobis import fit_mahalanobis, fit_relative_mahalanobis, whitening_of
from shiftproof.types import Features, Predictions

Double = NDArray[np.float64]


def with_features(predictions: Predictions, features: Features) -> Predictions:
    return dataclasses.replace(predictions, features=features)


def one_at_a_time(training: Predictions, asked: Predictions, *, assume_centered: bool = False) -> tuple[Double, Double]:
    """Squared distances to the nearest class and to all training images, by scikit-learn in double precision."""
    features, labels = training.need_features().astype(np.float64), training.labels[:, 0]
    centres = {label: features[labels == label].mean(axis=0) for label in np.unique(labels)}
    apart = np.stack([row - centres[label] for row, label in zip(features, labels, strict=True)])
    tied = EmpiricalCovariance(assume_centered=assume_centered).fit(apart)
    overall = EmpiricalCovariance().fit(features)
    rows = asked.need_features().astype(np.float64)
    nearest = [min((row - centre) @ tied.precision_ @ (row - centre) for centre in centres.values()) for row in rows]
    return np.array(nearest), overall.mahalanobis(rows)


@pytest.mark.parametrize("assume_centered", [False, True])
def test_distances_are_those_of_scikit_learn_however_it_centres(assume_centered: bool) -> None:
    expected, _ = one_at_a_time(inside(), outside(), assume_centered=assume_centered)
    np.testing.assert_allclose(fit_mahalanobis(inside())(outside()), expected, rtol=1e-5)


def test_relative_distances_are_the_difference_of_two_of_scikit_learn() -> None:
    nearest, overall = one_at_a_time(inside(), outside())
    np.testing.assert_allclose(fit_relative_mahalanobis(inside())(outside()), nearest - overall, rtol=1e-4, atol=1e-4)


def test_the_nearest_of_two_centres_worked_by_hand() -> None:
    # class 0 about (0, 0), class 1 about (10, 0); all spread by 1 along the first feature and by 2 along the second
    corners = np.array([[1.0, 2.0], [1.0, -2.0], [-1.0, 2.0], [-1.0, -2.0]])
    features = np.concatenate([corners, corners + np.array([10, 0])])
    training = with_features(inside(8), features)
    training = dataclasses.replace(training, labels=np.repeat([[0], [1]], 4, axis=0))
    asked = with_features(inside(3), np.array([[0.0, 0.0], [7.0, 4.0], [4.0, 0.0]]))
    np.testing.assert_allclose(fit_mahalanobis(training)(asked), [0, 3**2 + 2**2, 4**2], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("fit", [fit_mahalanobis, fit_relative_mahalanobis])
def test_scores_do_not_change_under_an_invertible_map_of_the_features(fit: Callable[..., Detector]) -> None:
    generator = np.random.default_rng(5)
    turn = np.linalg.qr(generator.normal(size=(FEATURES, FEATURES)))[0] * np.geomspace(0.1, 10, FEATURES)
    shift = generator.normal(size=FEATURES)
    straight = fit(inside())(outside())
    training, asked = (with_features(one, one.need_features() @ turn + shift) for one in (inside(), outside()))
    np.testing.assert_allclose(fit(training)(asked), straight, rtol=1e-4)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_scores_do_not_depend_on_the_blocks_learnt_from(size: int) -> None:
    whole, in_blocks = fit_relative_mahalanobis(inside()), fit_relative_mahalanobis(InBlocks(inside(), size))
    np.testing.assert_allclose(in_blocks(outside()), whole(outside()), rtol=1e-5)


def test_moments_in_blocks_are_those_of_all_rows_even_far_from_the_origin() -> None:
    features = inside().need_features().astype(np.float64) + 1e4
    found = overall_moments_of(InBlocks(with_features(inside(), features), 13))
    np.testing.assert_allclose(found.mean, features.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(features.T, bias=True), rtol=1e-8, atol=1e-10)


def test_the_spread_of_all_images_is_that_within_classes_and_that_between() -> None:
    features = inside().need_features().astype(np.float64)
    overall = class_moments_of(inside()).overall
    np.testing.assert_allclose(overall.mean, features.mean(axis=0))
    np.testing.assert_allclose(overall.covariance, np.cov(features.T, bias=True), atol=1e-12)


def test_an_image_with_two_labels_counts_in_both_classes_and_one_without_in_none() -> None:
    both = dataclasses.replace(inside(3), labels=np.array([[0, 1], [1, -1], [-1, -1]]))
    found = class_moments_of(both)
    features = both.need_features()
    assert found.images.tolist() == [1, 2]
    np.testing.assert_allclose(found.centres, [features[0], features[:2].mean(axis=0)])


def test_a_class_without_images_is_no_centre() -> None:
    training = inside().take(inside().labels[:, 0] != 3)
    fitted = fit_mahalanobis(training)
    assert fitted.found()["classes"] == CLASSES - 1
    expected, _ = one_at_a_time(training, outside())
    np.testing.assert_allclose(fitted(outside()), expected, rtol=1e-5)


def test_dead_features_and_too_few_images_leave_directions_out_and_say_so() -> None:
    features = inside(60).need_features().copy()
    features[:, :5] = 0
    fitted = fit_mahalanobis(with_features(inside(60), features))
    labels = len(np.unique(inside(60).labels))
    assert fitted.found()["rank"] == min(FEATURES - 5, 60 - labels)
    assert "the other directions are ignored" in fitted.notes[0]
    asked = outside().need_features().copy()
    without = fitted(with_features(outside(), asked))
    asked[:, :5] += 100
    np.testing.assert_allclose(fitted(with_features(outside(), asked)), without, rtol=1e-6)
    assert fit_mahalanobis(inside()).notes == ()


def test_the_rank_is_exact_where_classes_lie_far_apart() -> None:
    # a difference of sums over all images would leave rounding of the centres as spread within classes
    far = with_features(inside(30), inside(30).need_features() + 1e5 * np.eye(CLASSES, FEATURES)[inside(30).labels[:, 0]])
    assert fit_mahalanobis(far).found()["rank"] == 30 - len(np.unique(far.labels))


def test_spreads_of_very_different_size_are_told_apart_in_double_precision() -> None:
    spreads = np.geomspace(1e-3, 1e2, FEATURES)
    scaled = [with_features(one, one.need_features().astype(np.float64) * spreads) for one in (inside(), outside())]
    np.testing.assert_allclose(fit_mahalanobis(scaled[0])(scaled[1]), fit_mahalanobis(inside())(outside()), rtol=1e-5)


def test_a_training_image_alone_in_its_class_is_at_no_distance() -> None:
    features = np.concatenate([inside().need_features(), [np.full(FEATURES, 37.0, np.float32)]])
    labels = np.append(inside().labels[:, 0], CLASSES - 1)
    labels[:-1][labels[:-1] == CLASSES - 1] = 0
    training = predictions_of(features, inside().need_head(), labels)
    assert fit_mahalanobis(training)(training)[-1] < 1e-6


def test_a_larger_tolerance_leaves_directions_out() -> None:
    variances = np.diag([100.0, 1.0, 0.01])
    assert [whitening_of(np.zeros(3), variances, cut).rank for cut in (None, 1e-3, 1e-1)] == [3, 2, 1]


@pytest.mark.parametrize("fit", [fit_mahalanobis, fit_relative_mahalanobis])
def test_without_labels_there_are_no_classes_to_learn(fit: Callable[..., Detector]) -> None:
    with pytest.raises(NotKept, match="no labels"):
        fit(outside())


@pytest.mark.parametrize("fit", [fit_mahalanobis, fit_relative_mahalanobis])
def test_one_image_a_class_does_not_say_how_images_of_a_class_differ(fit: Callable[..., Detector]) -> None:
    with pytest.raises(NotKept, match="no class has training images that differ"):
        fit(inside(CLASSES, wrong=0))
