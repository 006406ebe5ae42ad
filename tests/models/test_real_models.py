"""Real networks on real photos: what they get right says whether they are fed and read as they should be."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from shiftproof.errors import BadInput
from shiftproof.models import load_model
from shiftproof.models.sanity import scores_hint

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytestmark = pytest.mark.real


@cache
def share_right(folder: Path, images: int, spec: str, **options: Any) -> float:
    """Top-1 accuracy on photos spread evenly over the classes."""
    model = load_model(spec, **options)
    assert model.classes is not None
    places = {wnid: place for place, wnid in enumerate(model.classes.keys)}
    photos = sorted(folder.glob("*.jpg"))
    photos = photos[:: len(photos) // images]
    right = 0
    for start in range(0, len(photos), 10):
        batch = photos[start : start + 10]
        inputs = [model.preprocessing.from_image(np.asarray(Image.open(photo).convert("RGB"))) for photo in batch]
        scores = model(np.stack(inputs)).scores
        assert scores_hint(scores, model.gives) is None
        right += sum(row.argmax() == places[photo.name[:9]] for row, photo in zip(scores, batch, strict=True))
    return right / len(photos)


@pytest.mark.parametrize(("number", "least"), [(0, 0.84), (1, 0.84), (2, 0.84)])
def test_lite_is_right_about_most_photos(real_data: Path, number: int, least: float) -> None:
    assert share_right(real_data / "ilsvrc-sample-1000", 200, f"lite:{number}") > least


def test_lite_with_another_networks_figures_is_right_about_fewer(real_data: Path) -> None:
    photos = real_data / "ilsvrc-sample-1000"
    own, other = share_right(photos, 200, "lite:0"), share_right(photos, 200, "lite:0", preprocess="imagenet")
    assert own - other > 0.04


@pytest.mark.parametrize(
    ("file", "preprocess", "least"),
    [("SqueezeNet_fp16.onnx", "caffe", 0.60), ("mobilenetv2_int8_torchvision.onnx", "imagenet,size=244", 0.78)],
)
def test_onnx_files_run_with_their_preprocessing_as_text(real_data: Path, file: str, preprocess: str, least: float) -> None:
    accuracy = share_right(
        real_data / "ilsvrc-sample-1000", 200, f"onnx:{real_data / 'models' / file}", preprocess=preprocess
    )
    assert accuracy > least


def test_squeezenet_says_what_it_is(real_data: Path) -> None:
    model: Any = load_model(f"onnx:{real_data / 'models' / 'SqueezeNet_fp16.onnx'}", preprocess="caffe")
    assert (model.gives, model.fixed_batch_size, model.head) == ("probabilities", 1, None)
    assert model.preprocessing.describe()["dtype"] == "float16"


def test_the_head_of_the_quantised_network_gives_its_logits_up_to_their_steps(real_data: Path) -> None:
    model = load_model(f"onnx:{real_data / 'models' / 'mobilenetv2_int8_torchvision.onnx'}", preprocess="imagenet")
    inputs = np.random.default_rng(0).normal(size=(4, 3, 244, 244)).astype(np.float32)
    scores, features, _ = model(inputs, features=True)
    assert features is not None
    assert model.head is not None
    assert any("up to a step" in note for note in getattr(model, "notes", ()))
    step = np.diff(np.unique(scores)).min()
    assert np.abs(features @ model.head.weights.T + model.head.bias - scores).max() <= 0.51 * step


@pytest.mark.parametrize("file", ["FastestDet.onnx", "yolox_nano.onnx"])
def test_object_detectors_are_not_taken_for_classifiers(real_data: Path, file: str) -> None:
    with pytest.raises(BadInput, match="object detector"):
        load_model(f"onnx:{real_data / 'models' / file}")
