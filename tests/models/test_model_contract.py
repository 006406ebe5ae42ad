"""What every entry of the catalog's models promises, on an example that each test makes or finds."""

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import shiftproof as sp
from shiftproof import catalog
from shiftproof.errors import BadInput, MissingExtra, UnknownName
from shiftproof.models import load_model, random_network
from shiftproof.models.classifiers.zero_shot import TEXT, TextMatrix
from shiftproof.models.kind import kind_of
from shiftproof.types import Classes, Classifier, Preprocessing
from small_tflite import tflite_bytes
from toys import save_encoder, small_transformer

NOT_REDRAWN = ("boxes", "proposals", "tflite", "adapted")
"""Kinds whose networks' weights are not drawn anew."""

FACTORY = """
import torch
from torch import nn

def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))
"""


def example(kind: str, make_onnx: Any, folder: Path) -> Classifier:
    """A small or random network of the kind."""
    try:
        return _example(kind, make_onnx, folder)
    except MissingExtra as missing:
        pytest.skip(str(missing))


def _example(kind: str, make_onnx: Any, folder: Path) -> Classifier:
    match kind:
        case "lite":
            return load_model("lite:0")
        case "onnx":
            return load_model(f"onnx:{make_onnx()}", preprocess="imagenet", classes=list("abcde"))
        case "torch":
            (folder / "networks.py").write_text(FACTORY)
            return load_model(f"torch:{folder / 'networks.py'}:small", preprocess="imagenet,size=16", classes=list("abcde"))
        case "timm":
            return load_model("timm:resnet18", weights="random")
        case "torchvision":
            return load_model("torchvision:resnet18", weights="random")
        case "hf":
            return load_model(f"hf:{small_transformer(folder)}")
        case "clip":
            save_encoder(folder / "encoder.onnx")
            rows = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0].astype(np.float32)
            TextMatrix(rows, 20.0, classes=Classes(tuple("abcd")), preprocess="clip,size=16").save(folder / TEXT)
            return load_model(f"clip:{folder / 'encoder.onnx'}")
        case "tflite":
            pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
            (folder / "small.tflite").write_bytes(tflite_bytes(labels={"labels.txt": "a\nb\nc\nd\ne"}))
            return load_model(f"tflite:{folder / 'small.tflite'}")
        case "boxes":
            detector = f"boxes:onnx:{small_detector(folder)}"
            return load_model(detector, boxes="yolov8", preprocess="unit,size=16", classes=list("abc"))
        case "proposals":
            classifier = f"proposals:onnx:{make_onnx()}"
            return load_model(classifier, proposals="grid", preprocess="imagenet", classes=list("abcde"))
        case "trained":
            return load_model(str(small_training(f"onnx:{make_onnx()}", folder)))
        case "adapted":
            return load_model(f"onnx:{make_onnx()}", preprocess="imagenet", classes=list("abcde"), adapt="tta")
        case _:
            make = kind_of(kind).example
            return load_model(f"{kind}:{make(folder)}") if make else pytest.skip(f"{kind} has no example: see `ModelKind`")


def small_training(model: str, folder: Path) -> Path:
    """A new head on the features of a model, for pictures of noise in five classes."""
    for number in range(10):
        path = folder / "noise" / "abcde"[number % 5] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)).save(path)
    options = sp.TrainOptions(recipe="linear-probe", l2=0.1)
    return sp.train(model, folder / "noise", folder / "better", options=options, store=folder / "runs").folder


def small_detector(folder: Path) -> Path:
    """Two boxes an image, whose sides and classes depend on its mean colour."""
    from onnx import TensorProto, helper, numpy_helper, save

    weights = np.random.default_rng(0).uniform(0, 1, (3, 14)).astype(np.float32)
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["colours"]),
        helper.make_node("MatMul", ["colours", "weights"], ["row"]),
        helper.make_node("Reshape", ["row", "shape"], ["boxes"]),
    ]
    graph = helper.make_graph(
        nodes,
        "detector",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, ["batch", 7, 2])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.array([-1, 7, 2]), "shape")],
    )
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder / "detector.onnx")
    return folder / "detector.onnx"


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", catalog.MODELS)
def test_a_model_keeps_its_promises(kind: str, make_onnx: Any, tmp_path: Path) -> None:
    model = example(kind, make_onnx, tmp_path)
    assert isinstance(model, Classifier)
    assert re.fullmatch(r"[0-9a-f]{32}", model.ref.fingerprint)
    assert model.gives in {"logits", "probabilities", "scores"}
    assert isinstance(model.classes, Classes)

    preprocessing: Preprocessing = model.preprocessing
    rng = np.random.default_rng(0)
    photos = [rng.integers(0, 256, (300, 280, 3), dtype=np.uint8) for _ in range(3)]
    inputs = np.stack([preprocessing.from_image(photo) for photo in photos])
    assert inputs.shape == np.stack([preprocessing.from_picture(photo) for photo in photos]).shape

    scores, no_features, no_extra = model(inputs)
    assert no_features is None
    assert no_extra is None
    assert scores.shape == (3, len(model.classes))
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    assert np.array_equal(scores, model(inputs).scores)
    alone = np.concatenate([model(inputs[place : place + 1]).scores for place in range(3)])
    assert np.abs(scores - alone).max() < 1e-4 * max(1, np.abs(scores).max())

    if not model.has_features:
        with pytest.raises(BadInput, match="shows no features"):
            model(inputs, features=True)
        return
    with_features, features, _ = model(inputs, features=True)
    assert features is not None
    assert features.dtype == np.float32
    assert features.shape[0] == 3
    assert np.abs(with_features - scores).max() < 1e-4 * max(1, np.abs(scores).max())
    if model.head is not None and model.gives == "logits":
        logits = features @ model.head.weights.T + model.head.bias
        assert np.abs(logits - scores).max() < 1e-4 * max(1, np.abs(scores).max())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", catalog.MODELS)
def test_a_model_loaded_again_has_the_same_fingerprint(kind: str, make_onnx: Any, tmp_path: Path) -> None:
    assert example(kind, make_onnx, tmp_path).ref.fingerprint == example(kind, make_onnx, tmp_path).ref.fingerprint


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", catalog.MODELS)
def test_a_model_can_be_drawn_anew(kind: str, make_onnx: Any, tmp_path: Path) -> None:
    model = example(kind, make_onnx, tmp_path)
    try:
        drawn = random_network(model, 1)
    except BadInput as problem:
        assert kind in NOT_REDRAWN or kind in catalog.MODELS.plugged_in
        assert "has no weights" in str(problem)  # noqa: PT017
        return
    assert kind not in NOT_REDRAWN
    photo = np.random.default_rng(0).integers(0, 256, (300, 280, 3), dtype=np.uint8)
    inputs = model.preprocessing.from_image(photo)[None]
    first, fresh = (one(inputs, features=True) for one in (model, drawn))
    assert fresh.scores.shape == first.scores.shape
    assert np.isfinite(fresh.scores).all()
    assert not np.allclose(fresh.scores, first.scores)
    assert (drawn.head is None) == (model.head is None)


def test_a_kind_nobody_knows_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean onnx"):
        load_model("onxx:model.onnx")
    with pytest.raises(BadInput, match="say which one"):
        load_model("lite")
    with pytest.raises(BadInput, match="no model called 'resnet50'"):
        load_model("resnet50")


def test_a_missing_library_becomes_an_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    if importlib.util.find_spec("timm") is not None:
        pytest.skip("timm is installed")
    pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(MissingExtra, match=r"shiftproof\[timm\]"):
        load_model("timm:resnet18")
