"""Real networks on real photos: what they get right says whether they are fed and read as they should be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.datasets.image_list import some_of
from shiftproof.errors import BadInput
from shiftproof.metrics import is_correct
from shiftproof.models import load_model
from shiftproof.models.sanity import scores_hint

pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytestmark = pytest.mark.real


@pytest.fixture
def share_right(real_data: Path, real_runs: Path) -> Callable[..., float]:
    """Top-1 accuracy on photos spread evenly over the classes; of those that other tests predict, where these came first."""

    def share(spec: str, **options: Any) -> float:
        model = load_model(spec, **options)
        images = some_of(some_of(sp.open_dataset(real_data / "ilsvrc-sample-1000"), 300), 200)
        said = sp.predict(model, images, store=real_runs, keep="logits")
        assert len(said) == 200
        assert not any(scores_hint(ten, model.gives) for ten in np.split(said.need_logits(), 20))
        return float(is_correct(said.labels, said.top5.classes).mean())

    return share


@pytest.mark.parametrize(("number", "least"), [(0, 0.84), (1, 0.84), (2, 0.84)])
def test_lite_is_right_about_most_photos(share_right: Callable[..., float], number: int, least: float) -> None:
    assert share_right(f"lite:{number}") > least


def test_lite_with_another_networks_figures_is_right_about_fewer(share_right: Callable[..., float]) -> None:
    assert share_right("lite:0") - share_right("lite:0", preprocess="imagenet") > 0.04


@pytest.mark.parametrize(
    ("file", "preprocess", "least"),
    [("SqueezeNet_fp16.onnx", "caffe", 0.60), ("mobilenetv2_int8_torchvision.onnx", "imagenet,size=244", 0.78)],
)
def test_onnx_files_run_with_their_preprocessing_as_text(
    real_data: Path, share_right: Callable[..., float], file: str, preprocess: str, least: float
) -> None:
    assert share_right(f"onnx:{real_data / 'models' / file}", preprocess=preprocess) > least


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
