"""The last linear layer of an ONNX graph: the tensor it sees, its weights and bias."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from shiftproof.models.onnx_graph import ENDINGS, OnnxGraph, attributes
from shiftproof.types import Head

GLOBAL_POOLING = {"GlobalAveragePool", "ReduceMean"}


@dataclass(frozen=True)
class LastLayer:
    """Where the features are and what follows them; `head` is None where `why` says so."""

    features: str | None
    head: Head | None
    why: str | None = None


def last_layer(graph: OnnxGraph, scores: str, *, classes: int | None = None) -> LastLayer:
    """The last product with stored weights on the way to the scores, of which there are so many an image, if known."""
    node, added = graph.source(scores), np.zeros(())
    if node is not None and node.op_type in ENDINGS:
        node = graph.source(node.input[0])
    if node is not None and node.op_type == "Add":
        node, added = _without_bias(graph, node)
    if node is None:
        return LastLayer(None, None, "the scores come straight from the input")
    if node.op_type in GLOBAL_POOLING:
        return LastLayer(None, None, "the graph ends in global pooling, after its last weights")
    if node.op_type not in {"Gemm", "MatMul"} and not _sees_one_pixel(graph, node):
        return LastLayer(None, None, f"the graph ends in {node.op_type}, not in a linear layer")
    weights, bias = _weights(graph, node), _bias(graph, node)
    if weights is None or weights.ndim != 2 or bias is None:
        return LastLayer(None, None, "the last layer's weights are computed, not stored")
    if classes not in (None, len(weights)) or not all(part.size in (1, len(weights)) for part in (bias, added)):
        return LastLayer(None, None, "the last layer does not give one score a class to each image")
    bias = np.broadcast_to(bias.ravel() + added.ravel(), len(weights))
    return LastLayer(node.input[0], Head(np.ascontiguousarray(weights, np.float32), np.ascontiguousarray(bias, np.float32)))


def _without_bias(graph: OnnxGraph, node: onnx.NodeProto) -> tuple[onnx.NodeProto | None, NDArray[Any]]:
    """What comes before a stored bias is added, and the bias; the node itself where it adds something else."""
    for place in (0, 1):
        bias = graph.constant(node.input[1 - place])
        if bias is not None:
            return graph.source(node.input[place]), bias
    return node, np.zeros(())


def _sees_one_pixel(graph: OnnxGraph, node: onnx.NodeProto) -> bool:
    """Whether this is a convolution of one pooled pixel, which is a linear layer by another name."""
    before = graph.source(node.input[0]) if node.op_type == "Conv" else None
    return before is not None and before.op_type in GLOBAL_POOLING and attributes(node).get("group", 1) == 1


def _weights(graph: OnnxGraph, node: onnx.NodeProto) -> NDArray[Any] | None:
    """Weights of the layer, (classes, features)."""
    weights, given = graph.constant(node.input[1]), attributes(node)
    if weights is None or given.get("transA", 0):
        return None
    if node.op_type == "Conv":
        return weights[:, :, 0, 0] if weights.shape[2:] == (1, 1) else None
    weights = weights if given.get("transB", 0) else weights.T
    return np.asarray(given.get("alpha", 1.0) * weights)


def _bias(graph: OnnxGraph, node: onnx.NodeProto) -> NDArray[Any] | None:
    if len(node.input) < 3 or not node.input[2]:
        return np.zeros(())
    bias = graph.constant(node.input[2])
    return None if bias is None else np.asarray(attributes(node).get("beta", 1.0) * bias)
