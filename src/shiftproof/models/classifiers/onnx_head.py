"""An ONNX graph with another head: a linear layer on its features, in place of whatever followed them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import compose, external_data_helper, helper, numpy_helper

from shiftproof.errors import BadInput
from shiftproof.models.classifiers.onnx_graph import loaded
from shiftproof.models.loaded import NetworkGraph
from shiftproof.types import Head

LOGITS, FEATURES = "logits", "features"
SOURCE = "source."
"""What comes before the names of all that was in the graph, so that ours are free."""

MOST_BYTES = 2**31 - 2**20
"""What an ONNX file can hold by itself."""


def with_head(graph: NetworkGraph, head: Head, class_names: Sequence[str]) -> bytes:
    """The graph up to its features, then this head; its outputs are ``logits`` and ``features``."""
    model = loaded(graph.read())
    external_data_helper.load_external_data_for_model(model, str(graph.folder))
    model = compose.add_prefix(model, SOURCE, rename_inputs=False)
    given = {value.name for value in model.graph.input}
    shown = str(graph.features)  # a network that shows none gets no head
    features = shown if shown in given else f"{SOURCE}{shown}"
    nodes = list(_needed(model.graph, features))
    named = {name for node in nodes for name in _names(node)}
    stored = [tensor for tensor in model.graph.initializer if tensor.name in named]
    nodes += [
        helper.make_node("Flatten", [features], ["flat"], axis=1),
        helper.make_node("Cast", ["flat"], [FEATURES], to=onnx.TensorProto.FLOAT),
        helper.make_node("Gemm", [FEATURES, "weight", "bias"], [LOGITS], transB=1),
    ]
    stored += [
        numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name)
        for name, values in (("weight", head.weights), ("bias", head.bias))
    ]
    if sum(tensor.ByteSize() for tensor in stored) > MOST_BYTES:
        raise BadInput("the network takes more than 2 GB, too much for one ONNX file")
    (batch,) = (
        value for value in model.graph.input if value.name not in {tensor.name for tensor in model.graph.initializer}
    )
    images = batch.type.tensor_type.shape.dim[0]
    rows: Any = images.dim_value or images.dim_param or "batch"
    sizes = {LOGITS: head.weights.shape[0], FEATURES: head.weights.shape[1]}
    outputs = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [rows, size]) for name, size in sizes.items()]
    made = helper.make_graph(nodes, "shiftproof", [batch], outputs, stored)
    result = helper.make_model(made, opset_imports=model.opset_import, functions=model.functions, producer_name="shiftproof")
    result.ir_version = model.ir_version
    helper.set_model_props(result, {"names": json.dumps(list(class_names))})
    onnx.checker.check_model(result)
    data: bytes = result.SerializeToString(deterministic=True)
    return data


def _needed(graph: onnx.GraphProto, tensor: str) -> Iterator[onnx.NodeProto]:
    """The nodes that a tensor is computed with, in the order of the graph."""
    makers = {name: place for place, node in enumerate(graph.node) for name in node.output}
    wanted, places = [tensor], set[int]()
    while wanted:
        place = makers.get(wanted.pop())
        if place is not None and place not in places:
            places.add(place)
            wanted += _names(graph.node[place])
    return (graph.node[place] for place in sorted(places))


def _names(node: onnx.NodeProto) -> Iterator[str]:
    """Every tensor that a node reads, by itself or in graphs inside it."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _names(inner)
