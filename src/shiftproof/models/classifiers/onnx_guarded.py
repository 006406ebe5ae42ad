"""An ONNX graph with further outputs, computed from its class scores and features."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import external_data_helper, helper, numpy_helper, version_converter

from shiftproof.errors import BadInput, listed
from shiftproof.models.classifiers.onnx_graph import OnnxGraph, loaded
from shiftproof.models.classifiers.onnx_head import MOST_BYTES
from shiftproof.models.classifiers.onnx_session import OnnxSession
from shiftproof.models.loaded import NetworkGraph
from shiftproof.ood.graph import FEATURES, PREFIX, SCORES, Graph, Node, Tensor
from shiftproof.types import Inputs

OLDEST, NEW = 11, 13
"""Versions of ONNX's operators: older graphs than the first lack what scores need, and are converted to the second."""

AXES_AS_INPUT = {"ReduceSum": 13, "ReduceMax": 18}
"""The version from which on the axes of a reduction are an input of it, and no attribute."""


def with_further_outputs(network: NetworkGraph, made: Graph, outputs: Mapping[str, Tensor]) -> bytes:
    """The network as it is, with all its outputs, and these behind them; BadInput where it cannot be written."""
    model = loaded(network.read())
    external_data_helper.load_external_data_for_model(model, str(network.folder))
    model = _new_enough(model)
    graph, version = model.graph, _version(model)
    there = {value.name for part in (graph.input, graph.output, graph.initializer) for value in part}
    there |= {name for node in graph.node for name in (*node.input, *node.output)}
    taken = [name for name in there if name in outputs or name.startswith(PREFIX)]
    if taken:
        raise BadInput(f"the network has tensors called {listed(sorted(taken))} already: is it guarded?")
    graph.node.extend(_flat(network.scores, SCORES))
    if made.width:
        graph.node.extend(_flat(str(network.features), FEATURES))
    for node in made.nodes:
        written, axes = _node(node, version)
        graph.node.append(written)
        graph.initializer.extend(axes)
    graph.initializer.extend(numpy_helper.from_array(values, name) for name, values in made.constants.items())
    graph.node.extend(helper.make_node("Identity", [tensor.name], [name]) for name, tensor in outputs.items())
    if sum(tensor.ByteSize() for tensor in graph.initializer) > MOST_BYTES:
        raise BadInput("the network takes more than 2 GB, too much for one ONNX file")
    graph.output.extend(
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(tensor.dtype), [_rows(model)])
        for name, tensor in outputs.items()
    )
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def tensors_of(data: bytes, names: Sequence[str], inputs: Inputs) -> dict[str, NDArray[Any]]:
    """What a graph gives under these names for one batch."""
    facts = OnnxGraph(loaded(data), Path()).input()
    session = OnnxSession(lambda: data, input_name=facts.name, scores=names[0], input_type=facts.dtype).one_at_a_time()
    return dict(zip(names, session.tensors(names, inputs), strict=True))


def _version(model: onnx.ModelProto) -> int:
    return next((int(one.version) for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)


def _new_enough(model: onnx.ModelProto) -> onnx.ModelProto:
    if _version(model) >= OLDEST:
        return model
    try:
        return version_converter.convert_version(model, NEW)
    except Exception as problem:  # the converter's errors share no narrower root
        raise BadInput(
            f"the network is written for version {_version(model)} of ONNX's operators, and cannot be converted to {NEW}: "
            f"{str(problem).partition(chr(10))[0]}"
        ) from problem


def _flat(tensor: str, name: str) -> Iterator[onnx.NodeProto]:
    """A tensor of the network as rows of single-precision numbers."""
    yield helper.make_node("Flatten", [tensor], [f"{name}.flat"], axis=1)
    yield helper.make_node("Cast", [f"{name}.flat"], [name], to=onnx.TensorProto.FLOAT)


def _node(node: Node, version: int) -> tuple[onnx.NodeProto, list[onnx.TensorProto]]:
    attributes: dict[str, Any] = dict(node.attributes)
    if "to" in attributes:
        attributes["to"] = helper.np_dtype_to_tensor_dtype(attributes["to"])
    if node.axes and version >= AXES_AS_INPUT[node.kind]:
        axes = numpy_helper.from_array(np.array(node.axes, np.int64), f"{node.outputs[0]}.axes")
        return helper.make_node(node.kind, [*node.inputs, axes.name], node.outputs, **attributes), [axes]
    if node.axes:
        attributes["axes"] = list(node.axes)
    return helper.make_node(node.kind, node.inputs, node.outputs, **attributes), []


def _rows(model: onnx.ModelProto) -> int | str:
    """How many images a batch has: a number, or the name of a free size."""
    stored = {tensor.name for tensor in model.graph.initializer}
    images = next(value for value in model.graph.input if value.name not in stored).type.tensor_type.shape.dim[0]
    return images.dim_value or images.dim_param or "batch"
