"""DICE, SHE and KL-matching: what training images have in common, against loops over classes and images."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import logsumexp, rel_entr, softmax

from ood.made_up import InBlocks, inside, outside, with_logits
from shiftproof.errors import BadInput, NotKept
from shiftproof.ood.activations import fit_dice
from shiftproof.ood.class_means import class_means, fit_kl_matching, fit_she, rows_by_label, rows_classified_correctly
from shiftproof.ood.scores import energy
from shiftproof.types import Predictions

TRAINING = inside(300)


@pytest.mark.parametrize("percentile", [30.0, 70.0, 90.0])
def test_dice_keeps_the_weights_that_contribute_most(percentile: float) -> None:
    head, features = TRAINING.need_head(), TRAINING.need_features().astype(np.float64)
    contributions = head.weights * features.mean(axis=0)
    ranked = np.argsort(contributions, axis=None)
    sparse = head.weights.astype(np.float64).ravel()
    sparse[ranked[: 1 + int((len(ranked) - 1) * percentile / 100)]] = 0  # up to and with the place of the percentile
    logits = outside().need_features() @ sparse.reshape(head.weights.shape).T + head.bias
    detector = fit_dice(InBlocks(TRAINING, 70), percentile=percentile)
    np.testing.assert_allclose(detector(outside()), -logsumexp(logits, axis=1), rtol=1e-5)


def test_dice_that_drops_one_weight_drops_the_least() -> None:
    head = TRAINING.need_head()
    sparse = fit_dice(TRAINING, percentile=0.0).head.weights
    contributions = head.weights * TRAINING.need_features().mean(axis=0)
    assert np.flatnonzero(sparse != head.weights).tolist() == [int(contributions.argmin())]


def test_dice_that_drops_every_weight_leaves_the_bias_alone() -> None:
    scores = fit_dice(TRAINING, percentile=100.0)(outside())
    np.testing.assert_allclose(scores, -logsumexp(TRAINING.need_head().bias), rtol=1e-6)
    with pytest.raises(BadInput, match="between 0 and 100"):
        fit_dice(TRAINING, percentile=101.0)


def test_she_is_the_match_with_correct_training_images_of_the_predicted_class() -> None:
    features, predicted = TRAINING.need_features().astype(np.float64), TRAINING.need_logits().argmax(axis=1)
    right = predicted == TRAINING.labels[:, 0]
    assert 0 < right.mean() < 1
    new = outside()
    expected = [
        -(row @ features[right & (predicted == of_class)].mean(axis=0))
        for row, of_class in zip(new.need_features(), new.need_logits().argmax(axis=1), strict=True)
    ]
    np.testing.assert_allclose(fit_she(InBlocks(TRAINING, 70))(new), expected, rtol=1e-5)


def test_an_image_of_a_class_that_she_never_saw_is_as_foreign_as_can_be() -> None:
    predicted = TRAINING.need_logits().argmax(axis=1)
    detector = fit_she(TRAINING.take(predicted != 4))
    scores = detector(inside(60, seed=8))
    unseen = inside(60, seed=8).need_logits().argmax(axis=1) == 4
    assert unseen.any()
    assert (scores[unseen] == 0).all()
    assert (scores[~unseen] < 0).all()
    assert detector.found() == {"classes without a pattern": 1}


def test_kl_matching_is_the_least_divergence_from_the_typical_answers() -> None:
    probabilities = softmax(TRAINING.need_logits().astype(np.float64), axis=1)
    predicted = probabilities.argmax(axis=1)
    templates = [probabilities[predicted == of_class].mean(axis=0) for of_class in np.unique(predicted)]
    new = softmax(outside().need_logits().astype(np.float64), axis=1)
    expected = [min(rel_entr(row, template).sum() for template in templates) for row in new]
    detector = fit_kl_matching(InBlocks(TRAINING, 70))
    np.testing.assert_allclose(detector(outside()), expected, rtol=1e-9)
    assert detector.found() == {"templates": 12}


def test_kl_matching_of_an_answer_that_is_typical_itself_is_zero() -> None:
    typical = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    detector = fit_kl_matching(with_logits(np.log(typical)))
    np.testing.assert_allclose(detector(with_logits(np.log(typical))), 0, atol=1e-15)
    between = with_logits(np.log([[0.4, 0.4, 0.2]]))
    assert detector(between)[0] == pytest.approx(min(rel_entr([0.4, 0.4, 0.2], row).sum() for row in typical))


def test_a_class_that_is_impossible_for_a_template_makes_no_number_go_missing() -> None:
    certain = dataclasses.replace(with_logits(np.array([[1.0, 0.0], [0.0, 1.0]])), gives="probabilities")
    half = dataclasses.replace(with_logits(np.array([[0.5, 0.5], [1.0, 0.0]])), gives="probabilities")
    scores = fit_kl_matching(certain)(half)
    assert np.isfinite(scores).all()
    assert scores[0] > 100
    assert scores[1] == pytest.approx(0)


def test_kl_matching_asks_for_no_labels_and_she_does() -> None:
    unlabelled = dataclasses.replace(TRAINING, labels=np.full((len(TRAINING), 1), -1))
    np.testing.assert_array_equal(fit_kl_matching(unlabelled)(outside()), fit_kl_matching(TRAINING)(outside()))
    with pytest.raises(NotKept, match="training images have no labels"):
        fit_she(unlabelled)


def test_where_every_training_image_is_misclassified_there_is_nothing_to_learn() -> None:
    wrong = dataclasses.replace(TRAINING, labels=(TRAINING.need_logits().argmax(axis=1)[:, None] + 1) % 12)
    with pytest.raises(NotKept, match="none was classified correctly"):
        fit_she(wrong)


def test_an_image_with_several_labels_is_right_with_any_and_counts_for_each() -> None:
    logits = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 1.0], [5.0, 0.0, 1.0]])
    several = with_logits(logits, np.array([[2, 0], [1, -1], [-1, -1]]))
    right = class_means(rows_classified_correctly(several, Predictions.need_logits), 3)
    assert right.images.tolist() == [1, 1, 0]
    labelled = class_means(rows_by_label(several, Predictions.need_logits), 3)
    assert labelled.images.tolist() == [1, 1, 1]
    np.testing.assert_array_equal(labelled.means, logits[[0, 1, 0]])


def test_a_whole_head_without_sparsity_would_give_energy() -> None:
    assert not np.allclose(fit_dice(TRAINING)(outside()), energy(outside()))
    whole = dataclasses.replace(fit_dice(TRAINING), head=TRAINING.need_head())
    np.testing.assert_allclose(whole(outside()), energy(outside()), rtol=1e-5)
