"""What is declared of a model's training is held against the published dataset it is measured on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.models.by_settings import load_classifier
from shiftproof.types import Seen
from toys import COLOURS, colour_scores, save_colour_network

PAST = "was trained on imagenet-a: its accuracy there says nothing about new images"


@pytest.mark.parametrize(
    ("seen", "warned"),
    [
        (Seen("imagenet-a"), True),
        (Seen("photos of ours and a published dataset", trained_on=("ours", "imagenet-a")), True),
        (Seen("everything that is not in imagenet-r, imagenet-a, or their sources"), False),
        (Seen(), False),
    ],
)
def test_a_model_trained_on_the_published_dataset_is_warned_about(seen: Seen, warned: bool, tmp_path: Path) -> None:
    photos = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)
    np.save(tmp_path / "photos.npy", photos)
    opened = sp.open_dataset(tmp_path / "photos.npy", labels=[0, 1, 2, 0, 1, 2], classes=list(COLOURS))
    model = sp.wrap_model(colour_scores, name="toy", version="1", size=(8, 8), class_names=list(COLOURS), seen=seen)
    results = sp.run(
        model,
        dataclasses.replace(opened, published="imagenet-a"),
        studies=["accuracy"],
        store=tmp_path / "runs",
        prediction=sp.PredictionSettings(workers=0, quiet=True),
    )
    assert any(PAST in warning for warning in results.warnings) is warned


def test_datasets_of_training_are_told_one_by_one(tmp_path: Path) -> None:
    save_colour_network(tmp_path / "colours.onnx")
    settings = sp.ModelSettings(trained_on=("imagenet-train", "imagenet-a"))
    seen = load_classifier(str(tmp_path / "colours.onnx"), settings).seen
    assert seen == Seen("imagenet-train, imagenet-a", trained_on=("imagenet-train", "imagenet-a"))
