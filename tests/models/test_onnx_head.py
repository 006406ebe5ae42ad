"""A head put into an ONNX graph gives what it gives on the graph's features."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import shiftproof as sp
from shiftproof.models.classifiers.onnx_head import with_head
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.types import Head


@pytest.mark.parametrize(
    "variation",
    [{"head": head} for head in ("gemm", "gemm-and-add", "gemm-plain", "matmul")]
    + [{"dtype": "float16"}, {"dtype": "uint8"}, {"external": True}, {"ending": "Softmax"}, {"batch": 4}],
    ids=str,
)
def test_a_new_head_takes_the_place_of_the_old_one(tmp_path: Path, make_onnx, variation: dict[str, object]) -> None:  # type: ignore[no-untyped-def]
    source = sp.load_model(f"onnx:{make_onnx(**variation)}")
    assert isinstance(source, LoadedClassifier)
    assert source.graph is not None
    rng = np.random.default_rng(1)
    head = Head(rng.normal(size=(3, 6)).astype(np.float32), rng.normal(size=3).astype(np.float32))
    path = tmp_path / "new.onnx"
    path.write_bytes(with_head(source.graph, head, ["a", "b", "c"]))

    made = sp.load_model(f"onnx:{path}")
    image = rng.integers(0, 255, (8, 8, 3)).astype(np.uint8)
    inputs = np.stack([source.preprocessing.from_image(image[:, ::flip]) for flip in (1, -1, 1, -1)])
    features = source(inputs, features=True).features
    outputs = made(inputs, features=True)
    assert features is not None
    np.testing.assert_array_equal(outputs.features, features)
    np.testing.assert_allclose(outputs.scores, features @ head.weights.T + head.bias, rtol=1e-5, atol=1e-5)
    assert made.classes is not None
    assert made.classes.names == ("a", "b", "c")
    assert made.head is not None
    np.testing.assert_array_equal(made.head.weights, head.weights)


def test_what_only_the_old_head_needed_is_gone(tmp_path: Path, make_onnx) -> None:  # type: ignore[no-untyped-def]
    source = sp.load_model(f"onnx:{make_onnx(head='gemm-and-add')}")
    assert isinstance(source, LoadedClassifier)
    assert source.graph is not None
    data = with_head(source.graph, Head(np.zeros((2, 6), np.float32), np.zeros(2, np.float32)), ["a", "b"])
    names = {tensor.name for tensor in onnx.load_model_from_string(data).graph.initializer}
    assert names == {"source.kernel", "weight", "bias"}
