"""Detectors that read a further output of the model."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from ood.made_up import outside
from shiftproof.errors import NotKept
from shiftproof.ood import scores as extra_outputs
from shiftproof.ood.scores import confidence, rotation
from shiftproof.types import Predictions


def with_extra(*rows: list[float]) -> Predictions:
    return dataclasses.replace(outside(len(rows)), extra=np.array(rows))


def test_confidence_is_turned_round() -> None:
    assert confidence(with_extra([0.9], [-2.0], [0.1])).tolist() == [-0.9, 2.0, -0.1]


def test_an_image_that_does_not_look_upright_is_foreign() -> None:
    rows = [[3.0, 0.0, 0.0, 0.0], [0.0, 3.0, 0.0, 0.0], [900.0, -900.0, 0.0, 0.0]]
    upright = extra_outputs.rotation_upright(with_extra(*rows))
    np.testing.assert_allclose(upright, -log_softmax(rows, axis=1)[:, 0], rtol=1e-12, atol=1e-15)
    assert extra_outputs.rotation_upright(with_extra(*[row + [5.0] * 12 for row in rows])).tolist() == upright.tolist()


def of_two_classes(logits: list[float], heads: list[list[float]], **options: Any) -> Predictions:
    """One image: what the model says of it upright, and what its rotation head says of its four turns."""
    return dataclasses.replace(
        outside(1), logits=np.array([logits]), extra=np.array([[number for head in heads for number in head]]), **options
    )


def test_the_rotation_score_worked_by_hand() -> None:
    """Probabilities 3/4 and 1/4: KL(uniform || p) = (log(2/3) + log 2) / 2 = log(4/3) / 2.

    The head gives 1/4 to each turn of the first image, so it loses log 4; it is right on two turns of the second with odds
    of 5 to 1 to 1 to 1, and gives the other two 1/8.
    """
    blind = [[0.0] * 4] * 4
    first, second, third, fourth = np.log(np.array([[5, 1, 1, 1], [1, 5, 1, 1], [1, 1, 1, 5], [1, 1, 5, 1]])).tolist()
    turns = [first, second, third, fourth]
    sure = of_two_classes([np.log(3.0), 0.0], blind)
    assert rotation(sure)[0] == pytest.approx(np.log(4) - np.log(4 / 3) / 2, abs=1e-12)
    split = of_two_classes([0.0, 0.0], turns)
    assert rotation(split)[0] == pytest.approx((2 * np.log(8 / 5) + 2 * np.log(8)) / 4, abs=1e-12)
    assert (
        rotation(of_two_classes([9.0, 0.0], blind))[0] < rotation(sure)[0] < rotation(of_two_classes([0.0, 0.0], blind))[0]
    )


def test_a_head_that_was_taught_to_count_clockwise_is_read_so() -> None:
    """What is shown rotated by 90 degrees counterclockwise is rotated by 270 degrees clockwise."""
    clockwise = (9 * np.eye(4)[[0, 3, 2, 1]]).tolist()
    assert rotation(of_two_classes([0.0, 0.0], clockwise), direction="clockwise")[0] < 1e-3
    assert rotation(of_two_classes([0.0, 0.0], clockwise))[0] > 4


def test_the_class_term_takes_probabilities_too_and_leaves_out_classes_that_no_answer_can_be() -> None:
    heads = np.random.default_rng(0).normal(size=(4, 4)).tolist()
    expected = rotation(of_two_classes([np.log(0.75), np.log(0.25)], heads))[0]
    assert rotation(of_two_classes([0.75, 0.25], heads, gives="probabilities"))[0] == pytest.approx(expected, abs=1e-12)
    assert rotation(of_two_classes([np.log(0.75), np.log(0.25), -np.inf], heads))[0] == pytest.approx(expected, abs=1e-12)


def test_an_output_that_is_missing_or_another_is_named() -> None:
    missing = r"one output of a confidence branch \(--extra-output\), and these predictions have no extra output"
    with pytest.raises(NotKept, match=missing):
        confidence(outside(2))
    with pytest.raises(NotKept, match="one output of a confidence branch, and the extra output has 4 numbers"):
        confidence(with_extra([1.0, 2.0, 3.0, 4.0]))
    with pytest.raises(NotKept, match="four logits of a rotation head, and the extra output has 1 numbers"):
        extra_outputs.rotation_upright(with_extra([1.0]))
    with pytest.raises(NotKept, match="each of four rotated images, and the extra output has 1 numbers"):
        rotation(with_extra([1.0]))


def test_what_a_head_says_of_the_upright_image_alone_is_not_the_score_of_the_paper() -> None:
    """Hendrycks et al. (2019) add up a class term and four turns; the upright turn alone ranks images otherwise."""
    with pytest.raises(NotKept, match="run on the upright images only; predict again with --rotated, or take rotation_up"):
        rotation(with_extra([1.0, 2.0, 3.0, 4.0]))
