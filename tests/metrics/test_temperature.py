"""Temperatures against another minimiser, against answers drawn at a known one, and the split they are fitted on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    fit_temperature,
    negative_log_likelihood,
    split_half,
    temperature_interval,
    to_probabilities,
)

Case = tuple[NDArray[np.integer], NDArray[np.floating]]


def drawn_case(images: int, *, temperature: float = 1.0, classes: int = 8, seed: int = 0) -> Case:
    """Labels drawn from the softmax of the logits, which are then multiplied by the temperature."""
    generator = np.random.default_rng(seed)
    logits = 3 * generator.normal(size=(images, classes))
    chances = np.cumsum(to_probabilities(logits, "logits"), axis=1)
    labels = (generator.random((images, 1)) > chances).sum(axis=1).clip(max=classes - 1)
    return labels, logits * temperature


@pytest.mark.parametrize("temperature", [0.05, 0.7, 1.0, 3.0, 40.0])
def test_the_fit_is_where_another_minimiser_ends(temperature: float) -> None:
    labels, logits = drawn_case(3000, temperature=temperature)
    found = minimize_scalar(
        lambda power: negative_log_likelihood(labels, logits / np.exp(power), "logits"),
        bounds=(np.log(0.01), np.log(100)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    # a minimum is known to the root of the precision of its function
    assert fit_temperature(labels, logits) == pytest.approx(np.exp(found.x), rel=1e-6)


def test_at_the_fit_the_loss_is_flat() -> None:
    labels, logits = drawn_case(500, temperature=2.0)
    fitted, step = fit_temperature(labels, logits), 1e-4
    above, at, below = (
        negative_log_likelihood(labels, logits / (fitted * factor), "logits") for factor in (1 + step, 1.0, 1 - step)
    )
    assert (above - below) / (2 * step) == pytest.approx(0, abs=1e-6)
    assert min(above, below) > at


@pytest.mark.parametrize("scale", [0.2, 3.0])
def test_scaling_the_logits_scales_the_temperature(scale: float) -> None:
    labels, logits = drawn_case(400)
    assert fit_temperature(labels, logits * scale) == pytest.approx(scale * fit_temperature(labels, logits), rel=1e-9)


def test_the_interval_holds_the_temperature_of_calibrated_answers_about_95_times_in_100() -> None:
    held = []
    for seed in range(200):
        case = drawn_case(400, seed=seed)
        low, high = temperature_interval(*case, fit_temperature(*case)) or (np.nan, np.nan)
        held.append(low <= 1 <= high)
    # 200 sets: a true rate of 0.95 gives 0.90 or more all but once in 800 times
    assert 0.90 <= np.mean(held) < 1


def test_answers_that_are_all_right_or_tell_nothing_end_at_the_bounds_and_have_no_interval() -> None:
    _, logits = drawn_case(100)
    assert fit_temperature(logits.argmax(axis=1), logits) == 0.01
    assert fit_temperature(logits.argmin(axis=1), logits) == 100.0
    assert temperature_interval(logits.argmin(axis=1), logits, 100.0) is None


def test_classes_that_cannot_win_change_nothing_and_images_of_such_a_class_do_not_count() -> None:
    labels, logits = drawn_case(300)
    never = np.full((300, 2), -np.inf)
    widened = np.concatenate([logits, never], axis=1)
    assert fit_temperature(labels, widened) == pytest.approx(fit_temperature(labels, logits), rel=1e-12)
    strange = labels.copy()
    strange[:50] = 9
    assert fit_temperature(strange, widened) == pytest.approx(fit_temperature(labels[50:], logits[50:]), rel=1e-12)
    with pytest.raises(BadInput, match="no image has a correct class that could win"):
        fit_temperature(np.full(300, 9), widened)


def test_of_several_right_labels_the_likeliest_is_the_truth() -> None:
    labels, logits = drawn_case(300)
    worst = logits.argmin(axis=1)
    several = np.stack([labels, worst, np.full(300, -1)], axis=1)
    likelier = np.where(logits[np.arange(300), worst] > logits[np.arange(300), labels], worst, labels)
    assert fit_temperature(several, logits) == fit_temperature(likelier, logits)


def test_an_image_stays_in_its_half_whatever_else_is_in_the_set() -> None:
    ids = [f"folder/{place}.jpg" for place in range(2000)]
    first = split_half(ids)
    assert split_half(ids[::-1]).tolist() == first[::-1].tolist()
    assert split_half(ids[::7]).tolist() == first[::7].tolist()
    # heads of 2000 fair coins: 1000 +- 5 standard deviations of 22.4; and another seed is another toss of each
    assert abs(first.sum() - 1000) < 112
    assert abs((first == split_half(ids, seed=1)).sum() - 1000) < 112
