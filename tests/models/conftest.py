"""Small models that the tests make themselves, and the way to the real ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

MakeOnnx = Callable[..., Path]


@pytest.fixture
def photo() -> NDArray[np.uint8]:
    """A smooth, colourful picture with edges, 375 x 500."""
    rows, columns = np.mgrid[0:375, 0:500]
    waves = [np.sin(rows / (7 + 5 * channel)) * np.cos(columns / (11 - channel)) for channel in range(3)]
    picture = (np.stack(waves, axis=2) * 127 + 128).astype(np.uint8)
    picture[100:200, 150:300] = (250, 10, 90)
    return picture


@pytest.fixture
def make_onnx(tmp_path: Path) -> MakeOnnx:
    """Writes a small convolutional classifier, 3 x 8 x 8 in and 5 classes out, with variations by keyword."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper

    def make(
        name: str = "small.onnx",
        *,
        batch: int | str = "batch",
        head: str = "gemm",
        ending: str | None = None,
        dtype: str = "float32",
        metadata: dict[str, str] | None = None,
        external: bool = False,
        layout: str = "nchw",
        more_outputs: tuple[str, ...] = (),
        normalises: bool = False,
    ) -> Path:
        kind = getattr(onnx.TensorProto, {"float32": "FLOAT", "float16": "FLOAT16", "uint8": "UINT8"}[dtype])
        work = np.float16 if dtype == "float16" else np.float32
        rng = np.random.default_rng(0)
        constants: dict[str, NDArray[Any]] = {
            "kernel": rng.normal(size=(6, 3, 3, 3)).astype(work),
            "weights": rng.normal(size=(5, 6)).astype(work),
            "bias": rng.normal(size=5).astype(work),
        }
        nodes = []
        source = "images"
        if dtype == "uint8":
            nodes.append(helper.make_node("Cast", [source], ["floats"], to=onnx.TensorProto.FLOAT))
            source = "floats"
        if layout == "nhwc":
            nodes.append(helper.make_node("Transpose", [source], ["planes"], perm=[0, 3, 1, 2]))
            source = "planes"
        if normalises:
            constants["mean"] = np.full((1, 3, 1, 1), 0.5, work)
            nodes.append(helper.make_node("Sub", [source, "mean"], ["centred"]))
            source = "centred"
        nodes += [
            helper.make_node("Conv", [source, "kernel"], ["maps"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", ["maps"], ["positive"]),
            helper.make_node("GlobalAveragePool", ["positive"], ["pooled"]),
            helper.make_node("Flatten", ["pooled"], ["flat"]),
        ]
        last, shape = "raw", [batch, 5]
        if head == "gemm":
            nodes.append(helper.make_node("Gemm", ["flat", "weights", "bias"], ["raw"], transB=1))
        elif head == "gemm-and-add":
            constants["more"] = np.arange(5, dtype=work)
            nodes.append(helper.make_node("Gemm", ["flat", "weights", "bias"], ["product"], transB=1))
            nodes.append(helper.make_node("Add", ["product", "more"], ["raw"]))
        elif head == "gemm-plain":
            constants["weights"] = constants["weights"].T
            nodes.append(helper.make_node("Gemm", ["flat", "weights", "bias"], ["raw"], alpha=0.5, beta=2.0))
        elif head == "matmul":
            constants["weights"] = constants["weights"].T
            nodes.append(helper.make_node("MatMul", ["flat", "weights"], ["product"]))
            nodes.append(helper.make_node("Add", ["bias", "product"], ["raw"]))
        elif head == "quantised":
            constants["weights"] = rng.integers(-127, 127, (5, 6)).astype(np.int8)
            constants["scale"] = rng.uniform(0.01, 0.02, 5).astype(np.float32)
            constants["zero"] = np.zeros(5, np.int8)
            nodes.append(helper.make_node("DequantizeLinear", ["weights", "scale", "zero"], ["real"], axis=0))
            nodes.append(helper.make_node("Gemm", ["flat", "real", "bias"], ["raw"], transB=1))
        elif head == "pooled-conv":
            constants["weights"] = constants["weights"][:, :, None, None]
            nodes.append(helper.make_node("Conv", ["pooled", "weights", "bias"], ["raw"]))
            shape = [batch, 5, 1, 1]
        elif head == "conv":
            constants["weights"] = constants["weights"][:, :, None, None]
            nodes.append(helper.make_node("Conv", ["positive", "weights"], ["class_maps"]))
            nodes.append(helper.make_node("Relu", ["class_maps"], ["class_positive"]))
            nodes.append(helper.make_node("GlobalAveragePool", ["class_positive"], ["raw"]))
            shape = [batch, 5, 1, 1]
        if ending:
            nodes.append(helper.make_node(ending, [last], ["ended"], **({} if ending == "Sigmoid" else {"axis": 1})))
            last = "ended"
        sides = [8, 8, 3] if layout == "nhwc" else [3, 8, 8]
        out = onnx.TensorProto.FLOAT16 if dtype == "float16" else onnx.TensorProto.FLOAT
        used = {name for node in nodes for name in node.input}
        graph = helper.make_graph(
            nodes,
            "small",
            [helper.make_tensor_value_info("images", kind, [batch, *sides])],
            [
                helper.make_tensor_value_info(last, out, shape),
                *(helper.make_tensor_value_info(other, out, None) for other in more_outputs),
            ],
            [numpy_helper.from_array(np.ascontiguousarray(value), key) for key, value in constants.items() if key in used],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        helper.set_model_props(model, metadata or {})
        path = tmp_path / name
        options = {"save_as_external_data": True, "location": f"{name}.data", "size_threshold": 0} if external else {}
        onnx.save(model, path, **options)
        return path

    return make
