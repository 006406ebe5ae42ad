"""Prediction sets: as their definition says, image by image, as MAPIE makes them, and as often right as promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.conformal import covered, least_probability, prediction_sets


def drawn(images: int, classes: int, seed: int) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Labels drawn with the probabilities beside them, which are whole 64ths: exact, and many of them tie."""
    generator = np.random.default_rng(seed)
    probabilities = generator.multinomial(64, generator.dirichlet(np.full(classes, 0.5), size=images)) / 64
    labels = (generator.random((images, 1)) >= probabilities.cumsum(axis=1)).sum(axis=1)
    return labels, probabilities


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("images", [1, 9, 10, 19, 40, 333])
def test_sets_are_those_of_the_definition(images: int, coverage: float) -> None:
    labels, probabilities = drawn(images, 6, images)
    _, new = drawn(50, 6, 99)
    sets = prediction_sets(new, least_probability(labels, probabilities, coverage=coverage))
    # nonconformity of an image is 1 - p of its class; the quantile at ceil((n + 1) coverage) / n of these, else everything
    nonconformity = sorted(1 - row[label] for row, label in zip(probabilities, labels, strict=True))
    needed = math.ceil(round((images + 1) * coverage, 9))
    quantile = nonconformity[needed - 1] if needed <= images else 1.0
    for row, found in zip(new, sets, strict=True):
        assert found.tolist() == [bool(1 - one <= quantile) for one in row]


def test_new_images_are_covered_as_often_as_promised() -> None:
    held = []
    for seed in range(300):
        labels, probabilities = drawn(199, 5, seed)
        least = least_probability(labels[:99], probabilities[:99], coverage=0.9)
        held.append(covered(labels[99:], probabilities[99:], least).mean())
    # 90 of 99 + 1 where nothing ties, and more where something does
    assert 0.89 < np.mean(held) < 0.93


def test_of_several_labels_the_most_probable_counts() -> None:
    probabilities = np.array([[0.1, 0.2, 0.7]] * 9)
    labels = np.array([[0, 1]] * 9)
    assert least_probability(labels, probabilities, coverage=0.9) == pytest.approx(0.2)
    assert covered(labels, probabilities, 0.2).all()
    assert not covered(labels, probabilities, 0.21).any()


@pytest.mark.parametrize("coverage", [0, 1, 1.5, math.nan])
def test_a_coverage_that_is_no_share_is_refused(coverage: float) -> None:
    with pytest.raises(BadInput, match="a share between 0 and 1"):
        least_probability(np.array([0]), np.array([[1.0]]), coverage=coverage)


def test_sets_are_those_of_mapie() -> None:
    classification = pytest.importorskip("mapie.classification")
    sklearn = pytest.importorskip("sklearn.base")

    class Given(sklearn.ClassifierMixin, sklearn.BaseEstimator):  # type: ignore[name-defined,misc]
        """Its inputs are its probabilities."""

        classes_ = np.arange(6)

        def fit(self, *_: object) -> Given:
            return self

        def predict_proba(self, inputs: NDArray[np.floating]) -> NDArray[np.floating]:
            return inputs

        def predict(self, inputs: NDArray[np.floating]) -> NDArray[np.integer]:
            return np.asarray(inputs.argmax(axis=1))

        def __sklearn_is_fitted__(self) -> bool:
            return True

    for seed in range(5):
        labels, probabilities = drawn(60 + 37 * seed, 6, seed)
        _, new = drawn(100, 6, 50 + seed)
        theirs = classification.SplitConformalClassifier(
            Given(), confidence_level=0.9, conformity_score="lac", prefit=True
        ).conformalize(probabilities, labels)
        ours = prediction_sets(new, least_probability(labels, probabilities, coverage=0.9))
        assert np.array_equal(theirs.predict_set(new)[1][:, :, 0], ours)
