"""ONNX graphs with freshly drawn weights: layers are known by their nodes, all other constants stay as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
from onnx import helper, inliner, numpy_helper

from shiftproof.errors import BadInput, listed
from shiftproof.models.drawing import Draw, Fans, Fresh, Recipe, fans_of_convolution
from shiftproof.models.onnx_graph import OnnxGraph, attributes, loaded
from shiftproof.models.onnx_heads import last_layer
from shiftproof.models.onnx_session import OnnxSession
from shiftproof.types import Head

CONVOLUTIONS = {"Conv", "ConvTranspose"}
LAYERS = {*CONVOLUTIONS, "Gemm", "MatMul"}
FRESH = {
    "BatchNormalization": (1.0, 0.0, 0.0, 1.0),  # gain, bias, mean, variance
    "GroupNormalization": (1.0, 0.0),
    "InstanceNormalization": (1.0, 0.0),
    "LayerNormalization": (1.0, 0.0),
    "PRelu": (0.25,),
}
"""What the stored inputs of a node are before any training, from its second on."""

QUANTISED = {"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "MatMulNBits", "QGemm"}
FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
FEW = 16
"""Stored tensors of at most so many numbers are settings (bounds, scales, the mean of the images), not weights."""

MOST_BYTES = 2**31 - 2**20
"""What a graph in memory can hold."""


def redraw_onnx(
    graph: Callable[[], Path | bytes],
    session_of: Callable[[Callable[[], bytes]], OnnxSession],
    draw: Draw,
    *,
    folder: Path,
    scores: str | None,
) -> Fresh:
    """The graph with weights drawn anew, in a session of its own; its head is that of `scores`, where they have one."""
    blank = _with_stored_constants(loaded(graph()))
    recipes = recipes_of(OnnxGraph(blank, folder))
    kept = [tensor for tensor in blank.graph.initializer if tensor.name not in recipes]
    emptied = [_emptied(tensor) for tensor in blank.graph.initializer if tensor.name in recipes]
    if sum(math.prod(tensor.dims) * 4 for tensor in emptied) > MOST_BYTES:
        raise BadInput("the graph's weights take more than 2 GB, too much to be drawn anew in memory")
    del blank.graph.initializer[:]  # what is drawn anew need not be kept as it was
    blank.graph.initializer.extend([*kept, *emptied])

    def drawn_bytes() -> bytes:
        data: bytes = drawn(blank, recipes, draw).SerializeToString()
        return data

    def read_head() -> Head | None:
        return None if scores is None else last_layer(OnnxGraph(drawn(blank, recipes, draw), folder), scores).head

    return Fresh(session_of(drawn_bytes), read_head, tuple(_left_alone(kept)))


def recipes_of(graph: OnnxGraph) -> dict[str, Recipe]:
    """How each stored tensor that belongs to a layer is made anew, by its name; BadInput where there is none to draw."""
    recipes: dict[str, Recipe] = {}
    for node in graph.model.graph.node:
        if node.op_type in QUANTISED or node.op_type.startswith("QLinear"):
            raise BadInput(
                "the graph is quantised: integers with steps of their own cannot be drawn anew; take its float file"
            )
        for name, recipe in _recipes(graph, node):
            recipes.setdefault(name, recipe)
    if not any(isinstance(recipe, Fans) for recipe in recipes.values()):
        raise BadInput("the graph stores no weights of a convolution or a linear layer that could be drawn anew")
    return recipes


def drawn(blank: onnx.ModelProto, recipes: dict[str, Recipe], draw: Draw) -> onnx.ModelProto:
    """The graph with every tensor that has a recipe made by it."""
    model = onnx.ModelProto()
    model.CopyFrom(blank)
    for tensor in model.graph.initializer:
        if tensor.name in recipes:
            kind = helper.tensor_dtype_to_np_dtype(tensor.data_type)
            values = draw.made(tensor.name, tensor.dims, recipes[tensor.name])
            tensor.CopyFrom(numpy_helper.from_array(values.astype(kind), tensor.name))
    return model


def _recipes(graph: OnnxGraph, node: onnx.NodeProto) -> Iterator[tuple[str, Recipe]]:
    if node.op_type in FRESH:
        yield from _filled(graph, list(zip(node.input[1:], FRESH[node.op_type], strict=False)))
    elif node.op_type == "Add":
        yield from _filled(graph, [(name, 0.0) for name in _biases(graph, node)])
    elif node.op_type in LAYERS:
        yield from _weights(graph, node)
        yield from _filled(graph, [(name, 0.0) for name in node.input[2:]])


def _weights(graph: OnnxGraph, node: onnx.NodeProto) -> Iterator[tuple[str, Recipe]]:
    given = attributes(node)
    first, second = (_stored(graph, name) for name in node.input[:2])
    if node.op_type == "MatMul" and second is None and first is not None:
        name, shape = first
        yield name, Fans(shape[-1], math.prod(shape[-2:-1]))
    elif second is not None and first is None:
        name, shape = second
        if node.op_type in CONVOLUTIONS:
            transposed = node.op_type == "ConvTranspose"
            yield name, fans_of_convolution(shape, given.get("group", 1), transposed=transposed)
        else:
            into, out = shape[-2:] if len(shape) > 1 else (shape[0], 1)
            yield name, Fans(out, into) if given.get("transB", 0) else Fans(into, out)


def _filled(graph: OnnxGraph, inputs: list[tuple[str, float]]) -> Iterator[tuple[str, Recipe]]:
    for name, value in inputs:
        found = _stored(graph, name)
        if found is not None:
            yield found[0], value


def _biases(graph: OnnxGraph, node: onnx.NodeProto) -> Iterator[str]:
    """What a node adds to the product of a layer, where that is one number an output."""
    for product, other in (node.input, node.input[::-1]):
        maker, found = graph.makers.get(product), _stored(graph, other)
        if maker is not None and maker.op_type in LAYERS and found is not None and sum(size > 1 for size in found[1]) <= 1:
            yield other


def _stored(graph: OnnxGraph, name: str) -> tuple[str, tuple[int, ...]] | None:
    """The stored tensor of floats behind a name and the shape it has there; None where it is computed."""
    if name in graph.stored:
        tensor = graph.stored[name]
        return (name, tuple(tensor.dims)) if tensor.data_type in FLOATS else None
    node = graph.makers.get(name)
    if node is None or node.op_type not in {"Cast", "Identity", "Transpose"}:
        return None
    found = _stored(graph, node.input[0])
    if found is None or node.op_type != "Transpose":
        return found
    source, shape = found
    return source, tuple(shape[axis] for axis in attributes(node).get("perm", range(len(shape))[::-1]))


def _with_stored_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same graph without functions of its own, and with what its constant nodes give among its stored tensors."""
    if model.functions:
        model = inliner.inline_local_functions(model)
    constants = [node for node in model.graph.node if node.op_type == "Constant" and "value" in attributes(node)]
    for node in constants:
        tensor = model.graph.initializer.add()
        tensor.CopyFrom(attributes(node)["value"])
        tensor.name = node.output[0]
        model.graph.node.remove(node)
    return model


def _emptied(tensor: onnx.TensorProto) -> onnx.TensorProto:
    return onnx.TensorProto(name=tensor.name, dims=tensor.dims, data_type=tensor.data_type)


def _left_alone(kept: list[onnx.TensorProto]) -> Iterator[str]:
    names = [tensor.name for tensor in kept if tensor.data_type in FLOATS and math.prod(tensor.dims) > FEW]
    if names:
        yield f"not drawn anew, being weights of no layer that is known here: {listed(names, 3)}"
