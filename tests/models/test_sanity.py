import numpy as np
import pytest

from shiftproof.errors import BadInput
from shiftproof.models import wrap_model
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import PRESETS, parse_preprocessing
from shiftproof.models.sanity import figures_hint, scores_hint
from shiftproof.studies.measure import accuracy_hint, precision_hint


@pytest.mark.parametrize(
    ("right", "images", "classes", "warns"),
    [
        (0, 20, 1000, True),
        (1, 1000, 1000, True),
        (3, 20, 1000, False),
        (1, 1, 1000, False),
        (3, 3, 3, False),
        (52, 100, 2, True),
        (75, 100, 2, False),
        (0, 3, 2, True),
    ],
)
def test_accuracy_that_guessing_reaches_is_called_so(right: int, images: int, classes: int, warns: bool) -> None:
    assert (accuracy_hint(right / images, classes, images) is not None) == warns


def test_no_images_and_one_class_say_nothing() -> None:
    assert accuracy_hint(0.0, 1000, 0) is None
    assert accuracy_hint(1.0, 1, 10) is None


def test_a_detector_that_finds_nothing_in_many_images_at_any_overlap_is_suspicious() -> None:
    assert "no true positive in 1,000 images" in (precision_hint([0.0, 0.0], 1000) or "")
    assert precision_hint([0.0, 0.001], 1000) is None
    assert precision_hint([0.0], 9) is None
    assert precision_hint([], 0) is None


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_raise_no_alarm(preset: str) -> None:
    assert figures_hint(PRESETS[preset]) is None


@pytest.mark.parametrize("text", ["imagenet,range=255", "caffe,range=1", "lite,range=1", "half,range=255"])
def test_figures_of_another_range_are_noticed(text: str) -> None:
    assert figures_hint(parse_preprocessing(text)) is not None


def test_figures_of_another_range_are_said_when_the_model_is_loaded() -> None:
    model = wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="m", version="1", preprocess="imagenet,range=255")
    assert "look like figures for range=0..1" in model.notes[0]
    quiet = wrap_model(lambda inputs: inputs.mean(axis=(2, 3)), name="m", version="1", preprocess="imagenet")
    assert quiet.notes == ()


def test_scores_that_are_not_what_they_are_called_are_noticed() -> None:
    logits = np.random.default_rng(0).normal(size=(4, 5))
    powers = np.exp(logits)
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    assert scores_hint(logits, "logits") is None
    assert scores_hint(probabilities, "probabilities") is None
    assert "gives=probabilities" in str(scores_hint(probabilities, "logits"))


def test_a_wrapped_function_that_gives_no_probabilities_is_found_out() -> None:
    def answering(*scores: float) -> LoadedClassifier:
        return wrap_model(
            lambda inputs: np.array([[0.25, 0.75], scores]),
            name="two",
            version="1",
            gives="probabilities",
            preprocess="unit",
        )

    inputs = np.zeros((2, 3, 224, 224), np.float32)
    assert answering(0.995, 0.0)(inputs).scores.shape == (2, 2)  # rounded
    assert answering(np.nan, np.nan)(inputs).scores.shape == (2, 2)  # another fault, which others tell of
    for scores in ((0.5, 0.6), (-0.5, 1.5), (0.0, 0.0), (100.0, -3.0)):
        with pytest.raises(
            BadInput, match=f"two gives no probabilities: an image got {min(scores):.4g} to {max(scores):.4g}"
        ):
            answering(*scores)(inputs)
