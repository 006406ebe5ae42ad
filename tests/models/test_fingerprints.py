"""Fingerprints and folder names that stores of earlier versions hold: whoever changes one loses every stored row."""

from pathlib import Path
from typing import Any

import pytest

import shiftproof as sp
from shiftproof.models.companions import RandomWeights, perturbed_ref, random_network_ref, rotated_ref
from shiftproof.models.input_sizes import sized_ref
from shiftproof.runs.store import Store
from shiftproof.types import CLEAN, Condition, ModelRef

MODEL = ModelRef("m", "f")


@pytest.mark.parametrize(
    ("found", "name", "fingerprint"),
    [
        (random_network_ref(MODEL, RandomWeights(1)), "m redrawn 1", "d6ddaa7ed9cc3d53c9655d67d5e26ba8"),
        (random_network_ref(MODEL, RandomWeights(2, "out")), "m redrawn 2 fan out", "6a9fd51813df6910f44af0b14079575b"),
        (perturbed_ref(MODEL, eps=0.01, temperature=10.0), "m odin 0.01", "83cf34ac78e96ab4949da78c9b4b7de5"),
        (sized_ref(MODEL, 160, "picture"), "m on pictures of 160", "826b0d6b1b2b3cf53cc9bce799b949b1"),
        (rotated_ref(MODEL), "m", "1009bc4bab4eac729edbe9b16e40eafe"),
    ],
)
def test_what_is_made_of_a_model_keeps_its_fingerprint(found: ModelRef, name: str, fingerprint: str) -> None:
    assert found == ModelRef(name, fingerprint)


def test_wrapped_models_keep_their_fingerprints() -> None:
    said: dict[str, Any] = {"name": "mine", "version": "1"}
    classifier = sp.wrap_model(lambda x: x, class_names=["a", "b", "c"], size=(32, 32), gives="logits", **said)
    detector = sp.wrap_detector(lambda x: x, class_names=["a"], size=(64, 64), **said)
    assert classifier.ref.fingerprint == "1f2fadf432607c8d6ce3618a0c50b30d"
    assert detector.ref.fingerprint == "bb2d1ce7fdecb2cebc3159f7f40d0b91"  # with its score threshold, NMS IoU and the like


@pytest.mark.parametrize(
    ("condition", "folder"), [(CLEAN, "clean-c4b233c0ad6eb70b"), (Condition("fog", 3), "fog_3-eb9500a69fb7c855")]
)
def test_rows_lie_where_they_always_lay(condition: Condition, folder: str, tmp_path: Path) -> None:
    assert Store(tmp_path).run(MODEL, condition).folder.name == folder
