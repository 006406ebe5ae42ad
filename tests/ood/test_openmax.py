"""OpenMax against a loop over images and classes, and its Weibull fits against scipy's."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import exponweib, weibull_min

from ood.made_up import InBlocks, inside, outside, with_logits
from shiftproof.errors import BadInput, NotKept
from shiftproof.ood.openmax import SHIFT, OpenMax, fit_openmax, fit_weibull
from shiftproof.types import Predictions

TRAINING = inside(600)
CLASSES = TRAINING.need_logits().shape[1]


def distance_between(first: NDArray[np.floating], second: NDArray[np.floating], distance: str) -> float:
    euclidean = math.dist(first, second)
    if distance == "euclidean":
        return euclidean
    return float(euclidean / 200 + 1 - first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


def chosen(predictions: Predictions, of_class: int, mean_of: str) -> NDArray[np.floating]:
    logits = predictions.need_logits().astype(np.float64)
    labelled = predictions.labels[:, 0] == of_class
    right = logits.argmax(axis=1) == of_class
    return np.asarray(logits[labelled & right] if mean_of == "correct" else logits[labelled])


def probability_of_unknown(
    predictions: Predictions, fitted: OpenMax, *, alpha: int, distance: str, mean_of: str
) -> list[float]:
    """Image by image and class by class, with the fitted tails but means and distances of its own."""
    means = [chosen(TRAINING, of_class, mean_of).mean(axis=0) for of_class in range(CLASSES)]
    found = []
    for logits in predictions.need_logits().astype(np.float64):
        revised, unknown = logits.copy(), 0.0
        ranked = sorted(range(CLASSES), key=lambda place: -logits[place])
        for rank, of_class in enumerate(ranked[:alpha], start=1):
            moved = distance_between(logits, means[of_class], distance) + SHIFT - fitted.nearest[of_class]
            outlying = weibull_min.cdf(moved, c=fitted.tails.shape[of_class], scale=fitted.tails.scale[of_class])
            revised[of_class] = logits[of_class] * (1 - outlying * (alpha + 1 - rank) / alpha)
            unknown += logits[of_class] - revised[of_class]
        powers = np.exp(revised)
        found.append(math.exp(unknown) / (powers.sum() + math.exp(unknown)))
    return found


@pytest.mark.parametrize("distance", ["eucos", "euclidean"])
@pytest.mark.parametrize("mean_of", ["correct", "all"])
@pytest.mark.parametrize("alpha", [3, 10, 40])
def test_scores_are_those_of_a_loop_over_images_and_classes(
    distance: Literal["eucos", "euclidean"], mean_of: Literal["correct", "all"], alpha: int
) -> None:
    detector = fit_openmax(InBlocks(TRAINING, 130), alpha=alpha, distance=distance, mean_of=mean_of)
    for predictions in (inside(30, seed=4), outside(30)):
        slow = probability_of_unknown(predictions, detector, alpha=min(alpha, CLASSES), distance=distance, mean_of=mean_of)
        np.testing.assert_allclose(expit(detector(predictions)), slow, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("distance", ["eucos", "euclidean"])
def test_the_tail_is_the_largest_distances_of_each_class(distance: Literal["eucos", "euclidean"]) -> None:
    detector = fit_openmax(InBlocks(TRAINING, 130), tail=12, distance=distance)
    for of_class in range(CLASSES):
        rows = chosen(TRAINING, of_class, "correct")
        tail = sorted(distance_between(row, rows.mean(axis=0), distance) for row in rows)[-12:]
        assert detector.nearest[of_class] == pytest.approx(tail[0], rel=1e-9)
        alone = fit_weibull(np.array([tail]) - tail[0] + SHIFT)
        assert detector.tails.shape[of_class] == pytest.approx(alone.shape[0], rel=1e-7)
        assert detector.tails.scale[of_class] == pytest.approx(alone.scale[0], rel=1e-9)


def test_a_class_with_too_few_images_has_a_stated_rule() -> None:
    logits = np.array([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 6.0, 0.0]])
    detector = fit_openmax(with_logits(logits, np.array([0, 1, 1])), alpha=1, distance="euclidean")
    assert detector.found() == {"alpha": 1, "classes without images": 1}
    asked = np.array([[4.0, 0, 0], [4.5, 0, 0], [0, 5.5, 0], [0, 6.5, 0], [0, 0, 5.0]])
    outlying = [detector._outlying(row[None], np.array([row.argmax()]))[0] for row in asked]
    # one image: all that is not it is foreign; two: all beyond them; none: everything
    assert outlying[1:] == [1, 0, 1, 1]
    assert outlying[0] == pytest.approx(1 - 1 / math.e)


def test_nothing_that_ends_in_a_tie_of_probabilities_ties_as_log_odds() -> None:
    far = with_logits(np.array([[90.0, 1.0, 2.0], [95.0, 1.0, 2.0]]))
    near = with_logits(np.random.default_rng(0).normal([5, 0, 0], 1, (50, 3)), np.zeros(50, int))
    scores = fit_openmax(near)(far)
    assert (expit(scores) == 1).all()
    assert scores[0] < scores[1]


def test_parameters_that_mean_nothing_are_refused() -> None:
    with pytest.raises(BadInput, match="tail and an alpha of at least 1"):
        fit_openmax(TRAINING, tail=0)
    with pytest.raises(BadInput, match="distance eucos or euclidean"):
        fit_openmax(TRAINING, distance="cosine")  # type: ignore[arg-type]


def samples(shift: float) -> NDArray[np.floating]:
    """Tails of very different spread, some shorter than others."""
    generator = np.random.default_rng(5)
    drawn = np.sort(generator.gamma(3, size=(20, 60)) * np.geomspace(0.01, 30, 20)[:, None], axis=1)[:, -20:]
    drawn[::5, :13] = np.nan
    return np.asarray(drawn - np.nanmin(drawn, axis=1, keepdims=True) + shift)


@pytest.mark.parametrize("shift", [1e-3, 1.0, SHIFT])
def test_no_shape_and_scale_that_scipy_finds_are_more_likely(shift: float) -> None:
    fitted = fit_weibull(samples(shift))
    for row, shape, scale in zip(samples(shift), fitted.shape, fitted.scale, strict=True):
        numbers = row[~np.isnan(row)]
        likelihood = weibull_min.logpdf(numbers, shape, scale=scale).sum()
        begin = {"scale": 1, "loc": 0}  # or scipy integrates two moments to find a better scale, each time
        for theirs in (
            weibull_min.logpdf(numbers, *weibull_min.fit(numbers, floc=0)).sum(),
            exponweib.logpdf(numbers, *exponweib.fit(numbers, 1, 1, floc=0, f0=1, **begin)).sum(),
        ):
            assert likelihood >= theirs - 1e-6


@pytest.mark.parametrize("shift", [1e-3, 1.0, SHIFT])
def test_at_the_fit_the_likelihood_is_flat(shift: float) -> None:
    fitted = fit_weibull(samples(shift))
    numbers = samples(shift)
    ratios = numbers / fitted.scale[:, None]
    powers = ratios ** fitted.shape[:, None]
    count = (~np.isnan(numbers)).sum(axis=1)
    np.testing.assert_allclose(np.nansum(powers, axis=1) / count, 1, rtol=1e-9)
    by_shape = 1 / fitted.shape + np.nanmean(np.log(ratios) * (1 - powers), axis=1)
    np.testing.assert_allclose(by_shape * fitted.shape, 0, atol=1e-6)


def test_a_fit_does_not_depend_on_the_others() -> None:
    together = fit_weibull(samples(1.0))
    for place in (0, 7, 19):
        alone = fit_weibull(samples(1.0)[[place]])
        assert alone.shape[0] == pytest.approx(together.shape[place], rel=1e-9)
        assert alone.scale[0] == pytest.approx(together.scale[place], rel=1e-9)


def test_equal_numbers_have_an_infinite_shape_and_none_have_no_distribution() -> None:
    fitted = fit_weibull(np.array([[3.0, 3.0, np.nan], [np.nan, np.nan, np.nan], [1.0, 2.0, 3.0]]))
    assert fitted.shape[0] == math.inf
    assert fitted.scale[0] == 3
    assert np.isnan(fitted.shape[1])
    assert np.isnan(fitted.scale[1])
    assert np.isfinite(fitted.shape[2])


def test_the_classes_revised_are_never_more_than_there_are_and_are_told() -> None:
    logits = np.array([[4.0, 0.0], [0.0, 4.0], [0.0, 6.0]])
    assert fit_openmax(with_logits(logits, np.array([0, 1, 1])), alpha=10).found()["alpha"] == 2


def test_logits_of_a_class_that_the_model_lacks_are_refused() -> None:
    logits = np.array([[4.0, 0.0, -np.inf], [0.0, 4.0, -np.inf]])
    with pytest.raises(NotKept, match="some are infinite"):
        fit_openmax(with_logits(logits, np.array([0, 1])))
