"""What every detector of the catalog promises."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from pathlib import Path

import numpy as np
import pytest

from ood.made_up import InBlocks, inside, outside
from shiftproof import catalog
from shiftproof.errors import NotKept, UnknownName
from shiftproof.ood import ReadyDetector, detector_of, needs_training, parameters_of, ready
from shiftproof.ood.entry import PRESETS
from shiftproof.types import Fact, Predictions

ROOT = Path(__file__).parents[2]
NAMES = [*catalog.OOD_DETECTORS, "msp+energy", "entropy+kl_matching+she"]
FITTED = [name for name in NAMES if needs_training(name)]
FOR_FEW_IMAGES: dict[str, dict[str, Fact]] = {"knn": {"neighbours": 5}, "openmax": {"tail": 5}}
"""The authors' own choices are for a million training images, a thousand or more of each class."""


def with_extra(name: str, predictions: Predictions, *, familiar: bool) -> Predictions:
    """The predictions of a model that has the further output this detector reads, where it reads one."""
    sure = np.linspace(0.7, 0.9, len(predictions)) if familiar else np.linspace(0.1, 0.4, len(predictions))
    upright = np.column_stack([4 * sure, *(np.zeros_like(sure),) * 3])
    turned = np.column_stack([np.roll(upright, turn, axis=1) for turn in range(4)])
    outputs = {"confidence": sure[:, None], "rotation": turned, "rotation_upright": upright}
    return dataclasses.replace(predictions, extra=outputs.get(name))


def fitted(name: str) -> ReadyDetector:
    return ready(name, with_extra(name, inside(1200), familiar=True), parameters=FOR_FEW_IMAGES.get(name))


def mixed(name: str) -> Predictions:
    return with_extra(name, inside(40, seed=5), familiar=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_image_gets_one_finite_number(name: str) -> None:
    for predictions in (mixed(name), with_extra(name, outside(), familiar=False)):
        scores = fitted(name)(predictions)
        assert scores.shape == (len(predictions),)
        assert scores.dtype in (np.float32, np.float64)
        assert np.isfinite(scores).all()


@pytest.mark.parametrize("name", NAMES)
def test_foreign_images_score_higher(name: str) -> None:
    detector = fitted(name)
    within = detector(with_extra(name, inside(60, seed=7), familiar=True))
    beyond = detector(with_extra(name, outside(), familiar=False))
    assert (beyond[:, None] > within).mean() > 0.95


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_does_not_depend_on_the_images_it_came_with(name: str) -> None:
    detector, predictions = fitted(name), mixed(name)
    together = detector(predictions)
    places = np.arange(len(predictions))
    shuffled = np.random.default_rng(0).permutation(places)
    alone = np.concatenate([detector(predictions.take(places[[place]])) for place in places])
    in_twos = np.concatenate([detector(predictions.take(pair)) for pair in places.reshape(-1, 2)])
    for again in (alone, in_twos, detector(predictions.take(shuffled))[np.argsort(shuffled)]):
        np.testing.assert_allclose(again, together, rtol=1e-5, atol=1e-6 * float(np.ptp(together)))


@pytest.mark.parametrize("name", NAMES)
def test_a_detector_repeats_itself_and_leaves_its_input_alone(name: str) -> None:
    detector, predictions = fitted(name), mixed(name)
    before = copy.deepcopy(predictions)
    first, again = detector(predictions), fitted(name)(predictions)
    np.testing.assert_array_equal(first, again)
    for part in ("logits", "features", "extra", "labels"):
        np.testing.assert_array_equal(getattr(predictions, part), getattr(before, part))
    assert before.head is not None
    assert predictions.head is not None
    np.testing.assert_array_equal(predictions.head.weights, before.head.weights)


@pytest.mark.parametrize("name", FITTED)
def test_training_images_may_come_in_blocks(name: str) -> None:
    whole = with_extra(name, inside(1200), familiar=True)
    in_blocks = ready(name, InBlocks(whole, 370), parameters=FOR_FEW_IMAGES.get(name))
    scores = fitted(name)(mixed(name))
    np.testing.assert_allclose(in_blocks(mixed(name)), scores, rtol=1e-5, atol=1e-5 * float(np.ptp(scores)))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_missing_is_said_in_a_sentence(name: str) -> None:
    bare = dataclasses.replace(mixed(name), logits=None, features=None, head=None, extra=None)
    with pytest.raises(NotKept) as said:
        fitted(name)(bare)
    assert len(str(said.value).split()) > 5


@pytest.mark.parametrize("name", NAMES)
def test_scores_that_are_neither_logits_nor_probabilities_are_not_taken_for_them(name: str) -> None:
    bare = dataclasses.replace(mixed(name), gives="scores", features=None, head=None, extra=None)
    with pytest.raises(NotKept):
        fitted(name)(bare)


@pytest.mark.parametrize("name", FITTED)
def test_without_training_images_a_fitted_detector_says_that_it_needs_them(name: str) -> None:
    with pytest.raises(NotKept, match="training images"):
        ready(name)


@pytest.mark.parametrize("name", FITTED)
def test_training_predictions_that_hold_too_little_are_refused_in_a_sentence(name: str) -> None:
    bare = dataclasses.replace(inside(), logits=None, features=None, head=None)
    with pytest.raises(NotKept) as said:
        ready(name, bare)
    assert len(str(said.value).split()) > 5


@pytest.mark.parametrize("name", catalog.OOD_DETECTORS)
def test_a_detector_is_documented_with_options_named_where_they_are_given(name: str) -> None:
    function = detector_of(name).function
    assert (inspect.getdoc(function) or "").endswith((".", "`"))
    first, *options = inspect.signature(function).parameters.values()
    assert first.name == ("training" if needs_training(name) else "predictions")
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)
    assert all(option.default is not inspect.Parameter.empty for option in options)


@pytest.mark.parametrize("name", catalog.OOD_DETECTORS)
def test_a_preset_names_parameters_that_exist_and_differ_from_the_authors(name: str) -> None:
    authors = parameters_of(name)
    assert set(detector_of(name).presets) <= set(PRESETS)
    for values in detector_of(name).presets.values():
        assert set(values) <= set(authors)
        assert all(authors[key] != value for key, value in values.items())


@pytest.mark.parametrize(
    ("name", "parameter", "authors", "openood", "pytorch_ood"),
    [
        ("ash_b", "percentile", 65, 90, 65),
        ("ash_s", "percentile", 90, 90, 65),
        ("gradnorm", "temperature", 1, 1, 1),
        ("knn", "neighbours", 1000, 50, 50),
        ("odin", "temperature", 1000, 1000, 1000),
        ("openmax", "alpha", 10, 3, 10),
        ("openmax", "distance", "eucos", "euclidean", "euclidean"),
        ("openmax", "mean_of", "correct", "correct", "all"),
        ("openmax", "tail", 20, 20, 25),
        ("react", "percentile", 90, 90, 90),
        ("vim", "dimension", None, 256, None),
    ],
)
def test_a_preset_takes_what_the_implementation_of_its_name_takes(
    name: str, parameter: str, authors: Fact, openood: Fact, pytorch_ood: Fact
) -> None:
    taken = [parameters_of(name, preset=preset)[parameter] for preset in ("authors", "openood", "pytorch-ood")]
    assert taken == [authors, openood, pytorch_ood]


def test_a_chosen_parameter_wins_over_the_preset_and_is_printed() -> None:
    detector = ready("openmax", inside(), preset="openood", parameters={"tail": 7})
    assert detector.parameters["tail"] == 7
    assert detector.parameters["alpha"] == 3
    assert "tail 7, alpha 3, distance euclidean, mean_of correct" in detector.convention()["parameters"]


def test_an_unknown_preset_or_parameter_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean openood"):
        ready("msp", preset="open-ood")
    with pytest.raises(UnknownName, match="did you mean temperature"):
        ready("energy", parameters={"temprature": 2.0})


@pytest.mark.parametrize("name", catalog.OOD_DETECTORS.built_in)
def test_what_every_detector_needs_and_agrees_with_is_in_the_docs(name: str) -> None:
    rows = [
        line.split("|") for line in (ROOT / "docs" / "ood-detectors.md").read_text().splitlines() if line.startswith("|")
    ]
    _, _, needs, _, agrees_with, _ = next(row for row in rows if f"`{name}`" in row[1])
    assert needs.strip()
    assert agrees_with.strip()
