"""Toys that several tests play with: three colours and a function that tells them apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from shiftproof.types import Inputs, Logits

COLOURS = {"blue": (30, 40, 220), "green": (30, 210, 40), "red": (220, 40, 30)}


def colour_scores(inputs: Inputs) -> Logits:
    """How blue, green and red each image is."""
    return np.asarray(20 * np.asarray(inputs, np.float32).mean(axis=(2, 3))[:, ::-1])


def save_colour_network(path: Path) -> None:
    """The same as an ONNX file: mean colour, channels turned round, through a linear layer."""
    weights = 20 * np.eye(3, dtype=np.float32)[::-1]
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "weights", "bias"], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "colours",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.zeros(3, np.float32), "bias")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
