import numpy as np
import pytest

from shiftproof.models.presets import PRESETS, parse_preparation
from shiftproof.models.sanity import accuracy_hint, figures_hint, pixels_hint, preparation_warnings, range_hint, scores_hint


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


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_raise_no_alarm(preset: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, (300, 300, 3), dtype=np.uint8)
    inputs = PRESETS[preset].from_image(image)[None]
    assert preparation_warnings(PRESETS[preset], inputs=inputs, accuracy=0.7, classes=10, images=100) == ()


@pytest.mark.parametrize("text", ["imagenet,range=255", "caffe,range=1", "lite,range=1", "half,range=255"])
def test_figures_of_another_range_are_noticed(text: str) -> None:
    assert figures_hint(parse_preparation(text)) is not None


def test_inputs_that_the_preparation_cannot_have_made_are_noticed() -> None:
    preparation = PRESETS["imagenet"]
    assert "but this preparation makes" in str(range_hint(np.full((1, 3, 8, 8), 200.0), preparation))
    assert "blank" in str(range_hint(np.zeros((2, 3, 8, 8)), preparation))
    assert "not numbers" in str(range_hint(np.full((1, 3, 8, 8), np.nan), preparation))
    assert range_hint(np.zeros((0, 3, 8, 8)), preparation) is None


def test_bytes_that_were_scaled_to_one_are_noticed() -> None:
    rng = np.random.default_rng(0)
    assert pixels_hint(rng.integers(0, 2, (32, 32, 3), dtype=np.uint8)) is not None
    assert pixels_hint(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)) is None
    assert pixels_hint(np.zeros((32, 32, 3), np.uint8)) is None


def test_scores_that_are_not_what_they_are_called_are_noticed() -> None:
    logits = np.random.default_rng(0).normal(size=(4, 5))
    powers = np.exp(logits)
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    assert scores_hint(logits, "logits") is None
    assert scores_hint(probabilities, "probabilities") is None
    assert "gives=probabilities" in str(scores_hint(probabilities, "logits"))
    assert "do not sum to 1" in str(scores_hint(logits, "probabilities"))
