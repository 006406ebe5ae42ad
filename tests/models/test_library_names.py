"""Preprocessings as the libraries state them; the libraries themselves are asked where they are installed."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from shiftproof.errors import BadInput
from shiftproof.models.classifiers.libraries import (
    timm_preprocessing,
    torchvision_preprocessing,
    transformers_classes,
    transformers_preprocessing,
)

FIGURES = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}


def test_timms_configuration_is_read() -> None:
    config = {"input_size": (3, 288, 288), "interpolation": "bicubic", "crop_pct": 0.95, "crop_mode": "center", **FIGURES}
    preprocessing = timm_preprocessing(config)
    assert (preprocessing.size, preprocessing.rule, preprocessing.shorter) == ((288, 288), "shorter", 303)
    assert preprocessing.interpolation == "bicubic"
    assert timm_preprocessing({**config, "crop_pct": 1.0, "crop_mode": "squash"}).rule == "squash"
    with pytest.raises(BadInput, match="crop mode border"):
        timm_preprocessing({**config, "crop_mode": "border"})


def test_torchvisions_transforms_are_read() -> None:
    mode = SimpleNamespace(value="bilinear")
    transforms = SimpleNamespace(crop_size=[224], resize_size=[232], interpolation=mode, **FIGURES)
    preprocessing = torchvision_preprocessing(transforms)
    assert (preprocessing.size, preprocessing.shorter, preprocessing.mean) == ((224, 224), 232, FIGURES["mean"])


@pytest.mark.parametrize(
    ("settings", "size", "rule", "shorter"),
    [
        ({"size": {"height": 384, "width": 384}}, (384, 384), "squash", None),
        ({"size": 224}, (224, 224), "squash", None),
        ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}, (224, 224), "shorter", 256),
        ({"size": {"shortest_edge": 224}, "crop_pct": 0.875}, (224, 224), "shorter", 256),
        ({"size": {"shortest_edge": 384}, "crop_pct": 1.0}, (384, 384), "squash", None),
    ],
)
def test_the_settings_of_an_image_processor_are_read(
    settings: dict[str, Any], size: tuple[int, int], rule: str, shorter: int | None
) -> None:
    figures = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 3}
    preprocessing = transformers_preprocessing({**settings, **figures})
    assert (preprocessing.size, preprocessing.rule, preprocessing.interpolation) == (size, rule, "bicubic")
    if shorter is not None:
        assert preprocessing.shorter == shorter


@pytest.mark.parametrize("shape", [(375, 500), (500, 375), (1000, 300), (224, 224), (256, 997)])
def test_our_inputs_are_torchvisions_own(shape: tuple[int, int]) -> None:
    models = pytest.importorskip("torchvision", reason="torchvision is not installed").models
    from PIL import Image

    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    for weights in (models.ResNet50_Weights.IMAGENET1K_V1, models.ResNet50_Weights.IMAGENET1K_V2):
        theirs = weights.transforms()(Image.fromarray(image)).numpy()
        ours = torchvision_preprocessing(weights.transforms()).from_image(image)
        assert np.abs(theirs - ours).max() < 1e-6


def test_names_of_a_configuration_are_kept_in_order_unless_it_made_them_up() -> None:
    thousand = {place: f"part {place}" for place in range(1000)}
    classes = transformers_classes(thousand)
    assert classes is not None
    assert classes.names == tuple(thousand.values())
    assert transformers_classes({place: f"LABEL_{place}" for place in range(12)}) is None
