"""The last layer of graphs that are not quite what one expects: found where it is one, and refused with a reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.models import load_model

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(192, 5)).astype(np.float32)
BIAS = RNG.normal(size=5).astype(np.float32)
BIAS_BY_IMAGE = RNG.normal(size=(4, 5)).astype(np.float32)
NARROW = RNG.normal(size=(64, 4)).astype(np.float32)
STEPS = np.round(WEIGHTS * 50).astype(np.int8)


def load(folder: Path, nodes: list[Any], stored: dict[str, NDArray[Any]], width: int) -> Any:
    """A classifier of four 3 x 8 x 8 images from its nodes; `x` is the input, `flat` its rows, `scores` the output."""
    helper = onnx.helper
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Flatten", ["x"], ["flat"]), *nodes],
        "odd",
        [helper.make_tensor_value_info("x", kind, [4, 3, 8, 8])],
        [helper.make_tensor_value_info("scores", kind, [4, width])],
        [onnx.numpy_helper.from_array(values, name) for name, values in stored.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 10
    onnx.checker.check_model(model)
    onnx.save(model, folder / "odd.onnx")
    return load_model(f"onnx:{folder / 'odd.onnx'}", preprocess="unit,size=8")


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(kind, inputs.split(), [output], **attributes)


@pytest.mark.parametrize(
    ("nodes", "stored"),
    [
        ([node("Gemm", "flat w b", "scores", alpha=0.5, beta=2.0)], {"w": WEIGHTS, "b": BIAS}),
        ([node("Gemm", "flat w b", "scores")], {"w": WEIGHTS, "b": BIAS[None]}),
        ([node("MatMul", "flat w", "m"), node("Add", "b m", "scores")], {"w": WEIGHTS, "b": BIAS}),
        ([node("MatMul", "flat w", "m"), node("Add", "m b", "scores")], {"w": WEIGHTS, "b": np.array(2, np.float32)}),
        ([node("Transpose", "v", "w"), node("MatMul", "flat w", "scores")], {"v": np.ascontiguousarray(WEIGHTS.T)}),
    ],
)
def test_a_linear_layer_is_found_however_it_is_written(tmp_path: Path, nodes: Any, stored: Any) -> None:
    model = load(tmp_path, nodes, stored, width=5)
    scores, features, _ = model(RNG.normal(size=(4, 3, 8, 8)), features=True)
    assert np.allclose(features @ model.head.weights.T + model.head.bias, scores, atol=1e-4)


@pytest.mark.parametrize(
    ("nodes", "stored", "width", "why"),
    [
        (
            [node("MatMul", "flat w", "m"), node("Add", "m b", "scores")],
            {"w": WEIGHTS, "b": BIAS_BY_IMAGE},
            5,
            "to each image",
        ),
        ([node("Gemm", "flat w b", "scores")], {"w": WEIGHTS, "b": BIAS_BY_IMAGE}, 5, "to each image"),
        (
            [node("Reshape", "x s", "r"), node("MatMul", "r w", "m"), node("Reshape", "m t", "scores")],
            {"s": np.array([4, 3, 64]), "t": np.array([4, 12]), "w": NARROW},
            12,
            "to each image",
        ),
        ([node("Mul", "w b", "v"), node("MatMul", "flat v", "scores")], {"w": WEIGHTS, "b": BIAS}, 5, "computed"),
        (
            [node("DequantizeLinear", "w s", "v", axis=0, block_size=64), node("MatMul", "flat v", "scores")],
            {"w": STEPS, "s": np.full((3, 5), 0.02, np.float32)},
            5,
            "computed",
        ),
        ([node("MatMul", "flat w", "m"), node("Mul", "m b", "scores")], {"w": WEIGHTS, "b": BIAS}, 5, "ends in Mul"),
    ],
)
def test_what_is_no_linear_layer_of_the_scores_is_no_head(
    tmp_path: Path, nodes: Any, stored: Any, width: int, why: str
) -> None:
    model = load(tmp_path, nodes, stored, width)
    assert model.head is None
    assert any(why in note for note in model.notes)
    assert model(RNG.normal(size=(4, 3, 8, 8))).scores.shape == (4, width)


@pytest.mark.parametrize("options", [{}, {"axis": 1}, {"axis": -1}])
def test_quantised_weights_are_read_with_the_scale_of_each_class(tmp_path: Path, options: dict[str, int]) -> None:
    scale = np.array([0.01, 0.02, 0.03, 0.04, 0.05], np.float32)
    nodes = [node("DequantizeLinear", "w s z", "v", **options), node("MatMul", "flat v", "scores")]
    offset = np.array([0, 1, 2, 3, 4], np.int8)
    model = load(tmp_path, nodes, {"w": STEPS, "s": scale, "z": offset}, width=5)
    assert np.allclose(model.head.weights, ((STEPS.astype(np.float32) - offset) * scale).T)


def test_a_softmax_written_out_gives_probabilities(tmp_path: Path) -> None:
    axes = {"axes": np.array([1])}
    nodes = [node("MatMul", "flat w", "m"), node("Exp", "m", "e"), node("ReduceSum", "e axes", "t")]
    model = load(tmp_path, [*nodes, node("Div", "e t", "scores")], {"w": WEIGHTS / 50, **axes}, width=5)
    assert model.gives == "probabilities"
    assert np.allclose(model(RNG.normal(size=(4, 3, 8, 8))).scores.sum(axis=1), 1)
    quotient = load(tmp_path, [*nodes, node("Div", "m t", "scores")], {"w": WEIGHTS / 50, **axes}, width=5)
    assert quotient.gives == "logits"
