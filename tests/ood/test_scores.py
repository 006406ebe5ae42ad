"""Detectors of logits: worked by hand, against plain scipy, and the identities that tie them together."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import entropy as scipy_entropy

from ood.made_up import with_logits
from shiftproof.errors import BadInput, NotKept
from shiftproof.ood.scores import energy, entropy, gen, margin, max_logit, msp, odin
from shiftproof.types import Predictions

LOGITS = np.random.default_rng(0).normal(0, 4, (2500, 30)).astype(np.float32)  # more rows than are taken at once


@pytest.fixture
def answers() -> Predictions:
    return with_logits(LOGITS)


def test_three_probabilities_by_hand() -> None:
    one = with_logits(np.log([[0.5, 0.3, 0.2]]))
    assert msp(one)[0] == pytest.approx(-0.5)
    assert margin(one)[0] == pytest.approx(-0.2)
    assert entropy(one)[0] == pytest.approx(-(0.5 * np.log(0.5) + 0.3 * np.log(0.3) + 0.2 * np.log(0.2)))
    assert max_logit(one)[0] == pytest.approx(np.log(2))
    assert energy(one)[0] == pytest.approx(0)
    assert gen(one, gamma=1, largest=2)[0] == pytest.approx(0.5 * 0.5 + 0.3 * 0.7)
    assert odin(one, temperature=0.5)[0] == pytest.approx(-0.25 / 0.38)


def test_scores_are_those_of_scipy(answers: Predictions) -> None:
    exact = LOGITS.astype(np.float64)
    probabilities = softmax(exact, axis=1)
    ordered = np.sort(probabilities, axis=1)
    for ours, theirs in [
        (msp(answers), -ordered[:, -1]),
        (margin(answers), ordered[:, -2] - ordered[:, -1]),
        (entropy(answers), scipy_entropy(probabilities, axis=1)),
        (energy(answers), -logsumexp(exact, axis=1)),
        (energy(answers, temperature=3.0), -3 * logsumexp(exact / 3, axis=1)),
        (gen(answers, gamma=0.3, largest=7), ((ordered * (1 - ordered)) ** 0.3)[:, -7:].sum(axis=1)),
        (odin(answers), -softmax(exact / 1000, axis=1).max(axis=1)),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def test_odin_without_a_step_is_msp_at_its_temperature(answers: Predictions) -> None:
    np.testing.assert_allclose(odin(answers, temperature=1000.0), msp(with_logits(LOGITS.astype(np.float64) / 1000)))
    np.testing.assert_allclose(odin(answers, temperature=1.0), msp(answers))


def test_energy_at_low_temperature_is_the_max_logit(answers: Predictions) -> None:
    np.testing.assert_allclose(energy(answers, temperature=1e-3), max_logit(answers), atol=1e-3 * np.log(30))


def test_energy_moves_with_a_shift_of_all_logits_and_probabilities_do_not(answers: Predictions) -> None:
    shifted = with_logits(LOGITS.astype(np.float64) + 7)
    np.testing.assert_allclose(energy(shifted), energy(answers) - 7)
    for detector in (msp, entropy, margin, odin, gen):
        np.testing.assert_allclose(detector(shifted), detector(answers), rtol=1e-9)


def test_gen_of_more_classes_than_there_are_takes_them_all(answers: Predictions) -> None:
    np.testing.assert_array_equal(gen(answers, largest=100), gen(answers, largest=None))
    np.testing.assert_allclose(gen(answers, largest=30), gen(answers, largest=None))
    assert (gen(answers, largest=29) < gen(answers, largest=None)).all()


def test_gen_with_gamma_one_is_one_minus_the_sum_of_squares(answers: Predictions) -> None:
    squares = (softmax(LOGITS.astype(np.float64), axis=1) ** 2).sum(axis=1)
    np.testing.assert_allclose(gen(answers, gamma=1.0, largest=None), 1 - squares, atol=1e-12)


def test_two_sure_answers_still_differ() -> None:
    sure = with_logits(np.array([[40.0, 10.0], [40.0, 12.0]], np.float32))
    for detector in (msp, entropy, margin, gen):
        less, more = detector(sure)
        assert less < more


def test_a_probability_of_zero_adds_no_entropy() -> None:
    halves = dataclasses.replace(with_logits(np.array([[0.5, 0.5, 0.0]])), gives="probabilities")
    assert entropy(halves)[0] == pytest.approx(np.log(2))
    assert np.isfinite(gen(halves)[0])


def test_what_a_model_gives_decides_which_detectors_serve() -> None:
    given = softmax(LOGITS[:5].astype(np.float64), axis=1)
    probable = dataclasses.replace(with_logits(given), gives="probabilities")
    np.testing.assert_allclose(msp(probable), msp(with_logits(LOGITS[:5])))
    with pytest.raises(NotKept, match="it needs logits, and the model gives probabilities"):
        energy(probable)
    with pytest.raises(NotKept, match="it needs logits or probabilities, and the model gives scores"):
        msp(dataclasses.replace(probable, gives="scores"))


def test_no_images_have_no_scores() -> None:
    assert energy(with_logits(LOGITS[:0])).shape == (0,)


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_that_is_not_above_zero_is_refused(answers: Predictions, temperature: float) -> None:
    for detector in (energy, odin):
        with pytest.raises(BadInput, match="temperature is above 0"):
            detector(answers, temperature=temperature)


def test_gen_refuses_what_it_cannot_sum(answers: Predictions) -> None:
    with pytest.raises(BadInput, match="gamma above 0"):
        gen(answers, gamma=0.0)
    with pytest.raises(BadInput, match="at least one class"):
        gen(answers, largest=0)


def test_a_single_class_has_no_lead_over_another() -> None:
    with pytest.raises(NotKept, match="there is only one"):
        margin(with_logits(np.array([[1.0], [2.0]])))
