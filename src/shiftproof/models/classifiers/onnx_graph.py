"""What an ONNX graph says about itself: what it takes, where its class scores are and what they are.

Everything is read from the structure of the graph, never guessed from the values it gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
from google.protobuf.message import Message  # type: ignore[import-untyped]  # comes without types
from numpy.typing import NDArray
from onnx import numpy_helper

from shiftproof.errors import BadInput, listed
from shiftproof.files import readable_file
from shiftproof.models.input_facts import InputFacts
from shiftproof.models.object_detectors.box_layouts import guess_layout, readable_shape
from shiftproof.models.preprocessing import InputType
from shiftproof.types import Gives, Head

Dimension = int | str | None
"""A fixed size, the name of a free one, or None where the graph is silent."""

INPUT_TYPES: dict[int, InputType] = {
    onnx.TensorProto.FLOAT: "float32",
    onnx.TensorProto.FLOAT16: "float16",
    onnx.TensorProto.UINT8: "uint8",
}
SCORE_TYPES = {*INPUT_TYPES, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT8, onnx.TensorProto.BFLOAT16}

SAME_VALUES = {
    "Cast",
    "DequantizeLinear",
    "Dropout",
    "Flatten",
    "Identity",
    "QuantizeLinear",
    "Reshape",
    "Squeeze",
    "Unsqueeze",
}
"""Nodes that hand on the numbers of their first input, up to rounding."""

ARITHMETIC = {"Add", "BatchNormalization", "Div", "Mul", "Sub"}

SUPPRESSION = {"NonMaxSuppression", "EfficientNMS_TRT", "TRTBatchedNMS"}
"""Nodes that drop doubled boxes."""

ENDINGS: dict[str, Gives] = {"Softmax": "probabilities", "LogSoftmax": "logits", "Sigmoid": "scores"}
"""What a model gives that ends so; a log-softmax is the logits less a number an image, which no use of them sees."""


Wires: TypeAlias = tuple[Sequence[str], Sequence[str]]
"""Names of what a node takes, and of what it makes."""


class OnnxGraph:
    """A graph that can be walked backwards from what it gives."""

    def __init__(self, model: onnx.ModelProto, folder: Path) -> None:
        self.model = model
        self.folder = folder
        self.stored = {tensor.name: tensor for tensor in model.graph.initializer}
        self.last_layers: dict[str, LastLayer] = {}  # by scores, as they are found
        # a message makes its texts anew each time, so nodes are asked once
        wires = [(node.input[:], node.output[:]) for node in model.graph.node]
        self._check_names(wires)
        self.makers = {name: node for node, (_, made) in zip(model.graph.node, wires, strict=True) for name in made if name}
        if not _in_order(wires):
            try:
                TopologicalSorter({name: node.input for name, node in self.makers.items()}).prepare()
            except CycleError as problem:  # it could be walked for ever
                raise BadInput(f"the graph goes in a circle: {listed(problem.args[1])}") from problem

    def _check_names(self, wires: Sequence[Wires]) -> None:
        graph = self.model.graph
        named = [value.name for part in (graph.input, graph.output, graph.initializer) for value in part]
        named += [node.op_type for node in graph.node]
        if not set(map(type, chain(named, *chain.from_iterable(wires)))) <= {str}:  # text that is not UTF-8 comes as bytes
            raise BadInput("the model is damaged: names in its graph are not text")

    def input(self) -> InputFacts:
        """The one input that is an image; BadInput where there is none or more than one."""
        inputs = [value for value in self.model.graph.input if value.name not in self.stored]
        if len(inputs) != 1:
            names = ", ".join(value.name for value in inputs)
            raise BadInput(f"the model should take one input, an image; it takes {len(inputs)}: {names}")
        (value,) = inputs
        dimensions, kind = shape_of(value), value.type.tensor_type.elem_type
        if kind not in INPUT_TYPES:
            named = {number: name for name, number in onnx.TensorProto.DataType.items()}.get(kind, f"numbers of kind {kind}")
            raise BadInput(f"the model takes {named}; float32, float16 and uint8 can be made")
        return InputFacts.of_shape(value.name, INPUT_TYPES[kind], dimensions)

    def scores(self, chosen: str | None, *, besides: str | None = None) -> onnx.ValueInfoProto:
        """The output that holds class scores: the chosen one, or the only one of a fitting shape `besides` another."""
        outputs = {value.name: value for value in self.model.graph.output}
        if chosen is None and (layout := self.box_layout()) is not None:
            shapes = listed([readable_shape(shape) for shape in self.output_shapes().values()])
            raise BadInput(f"the model looks like an object detector ({shapes}), not a classifier; say --boxes {layout}")
        if chosen is not None:
            if chosen not in outputs:
                raise BadInput(f"the model has no output {chosen!r}; it has {', '.join(outputs)}")
            fitting = [outputs[chosen]]
        else:
            fitting = [value for value in outputs.values() if value.type.tensor_type.elem_type in SCORE_TYPES]
        if len(fitting) > 1:
            fitting = [value for value in fitting if value.name != besides]
        if len(fitting) > 1:
            fitting = [value for value in fitting if value.name == "logits"] or [
                value for value in fitting if len(shape_of(value)) == 2
            ]
        if len(fitting) != 1:
            raise BadInput(f"which output holds the class scores? name one with output=: {', '.join(outputs)}")
        if len(_wide_axes(fitting[0])) > 1:
            raise BadInput(
                f"output {fitting[0].name!r} has shape {readable_shape(shape_of(fitting[0]))}, not one score a class: "
                "this looks like an object detector or a segmenter, not a classifier"
            )
        scores: onnx.ValueInfoProto = fitting[0]
        return scores

    def output_shapes(self) -> dict[str, tuple[Dimension, ...]]:
        """The shape of every output."""
        return {value.name: shape_of(value) for value in self.model.graph.output}

    def box_layout(self) -> str | None:
        """The layout in which the outputs list boxes; None where they do not seem to."""
        kinds = {node.op_type for node in self.model.graph.node}
        return guess_layout(
            self.output_shapes(), self.input().size, suppresses=bool(kinds & SUPPRESSION), decodes="Exp" in kinds
        )

    def gives(self, scores: str) -> Gives:
        """What the scores are, by the node they come from."""
        node = self.source(scores)
        if node is not None and node.op_type == "Div" and self._is_softmax_written_out(node):
            return "probabilities"
        return ENDINGS.get(node.op_type, "logits") if node is not None else "logits"

    def rounds_its_scores(self, scores: str) -> bool:
        """Whether the scores are quantised after the last layer, so that they are a little off its product."""
        node = self.makers.get(scores)
        while node is not None and node.op_type in SAME_VALUES:
            if node.op_type == "QuantizeLinear":
                return True
            node = self.makers.get(node.input[0])
        return False

    def quantises_by_batch(self) -> bool:
        """Whether numbers are quantised by the range that they have in a batch, all images of it together."""
        return any(node.op_type in DYNAMICALLY_QUANTISED for node in self.model.graph.node)

    def is_rounded(self) -> bool:
        """Whether some of it is computed in integers or half precision."""
        halves = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
        kinds = {tensor.data_type for tensor in self.model.graph.initializer}
        return not halves.isdisjoint(kinds) or any(map(is_quantised, self.model.graph.node))

    def first_arithmetic(self) -> str | None:
        """What the graph does to its input before its first layer, where that looks like a normalisation of its own."""
        name = self.input().name
        for node in self.model.graph.node:
            if name in node.input and node.op_type in SAME_VALUES | {"Transpose"}:
                name = node.output[0]
            elif name in node.input:
                return node.op_type if node.op_type in ARITHMETIC else None
        return None

    def constant(self, name: str, most_steps: int = 100) -> NDArray[Any] | None:
        """The stored numbers behind a name, dequantised where need be; None where they are computed from the input."""
        if name in self.stored:
            return _array(self.stored[name], self.folder)
        node = self.makers.get(name)
        if node is None:
            return None
        if node.op_type == "Constant":
            return _array(attributes(node)["value"], self.folder) if "value" in attributes(node) else None
        handed_on = node.op_type in {"DequantizeLinear", "Transpose", "Identity", "Cast"} and node.input and most_steps
        values = self.constant(node.input[0], most_steps - 1) if handed_on else None
        if values is None:
            return None
        if node.op_type == "DequantizeLinear":
            return self._dequantised(node, values)
        if node.op_type == "Transpose":
            return values.transpose(attributes(node).get("perm", range(values.ndim)[::-1]))
        return values

    def source(self, name: str) -> onnx.NodeProto | None:
        """The node that computed these numbers, past those that only hand them on."""
        node = self.makers.get(name)
        while node is not None and node.op_type in SAME_VALUES:
            node = self.makers.get(node.input[0])
        return node

    def _is_softmax_written_out(self, node: onnx.NodeProto) -> bool:
        above, below = (self.source(name) for name in node.input[:2])
        return above is not None and below is not None and (above.op_type, below.op_type) == ("Exp", "ReduceSum")

    def _dequantised(self, node: onnx.NodeProto, values: NDArray[Any]) -> NDArray[Any] | None:
        scale = self.constant(node.input[1])
        zero = self.constant(node.input[2]) if len(node.input) > 2 else np.zeros((), np.int32)
        if scale is None or zero is None or scale.ndim > 1:  # scales in blocks are not spread out here
            return None
        axis = attributes(node).get("axis", 1)
        if scale.size > 1:
            if not -values.ndim <= axis < values.ndim:
                raise BadInput(f"node {node.name!r} scales along axis {axis} of {values.ndim}")
            along = [1] * values.ndim
            along[axis] = -1
            scale, zero = scale.reshape(along), zero.reshape(along)
        return np.asarray((values.astype(np.float32) - zero.astype(np.float32)) * scale)


UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OSError, RuntimeError)


def _array(tensor: onnx.TensorProto, folder: Path) -> NDArray[Any]:
    try:
        return np.asarray(numpy_helper.to_array(tensor, base_dir=str(folder)))
    except (*UNREADABLE, onnx.checker.ValidationError) as problem:
        raise BadInput(f"tensor {tensor.name!r} of the model cannot be read: {problem}") from problem


def loaded(graph: Path | bytes) -> onnx.ModelProto:
    """A graph from its file or its bytes; what lies in files beside it stays there."""
    if isinstance(graph, bytes):
        return onnx.load_model_from_string(graph)
    # by name alone onnx would read a .json or a .textproto otherwise, and onnxruntime would not
    return onnx.load(graph, format="protobuf", load_external_data=False)


def with_outputs(graph: Path | bytes, names: Iterable[str | None]) -> Path | bytes:
    """The graph, or one like it with more outputs that show these tensors."""
    model = loaded(graph)
    there = {value.name for value in model.graph.output}
    hidden = dict.fromkeys(name for name in names if name is not None and name not in there)
    if not hidden:
        return graph
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in hidden)
    data: bytes = model.SerializeToString()
    return data


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """A node's settings by name."""
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def shape_of(value: onnx.ValueInfoProto) -> tuple[Dimension, ...]:
    """Sizes of a tensor, fixed, named or unknown."""
    return tuple(_dimension(size) for size in value.type.tensor_type.shape.dim)


def width_of(scores: onnx.ValueInfoProto) -> int | None:
    """How many scores an image gets; None where the graph is silent."""
    sizes = _wide_axes(scores)
    return sizes[0] if sizes and isinstance(sizes[0], int) else None


def _wide_axes(scores: onnx.ValueInfoProto) -> list[Dimension]:
    """Sizes of the axes behind the images that hold more than one number."""
    return [size for size in shape_of(scores)[1:] if size != 1]


def _dimension(size: Any) -> Dimension:
    if size.HasField("dim_value") and size.dim_value > 0:
        return int(size.dim_value)
    return str(size.dim_param) if size.HasField("dim_param") and size.dim_param else None


def external_files(model: onnx.ModelProto, folder: Path) -> Iterator[Path]:
    """The files beside the model that hold its larger tensors; one outside its folder is refused."""
    locations = {
        entry.value for tensor in _tensors_elsewhere(model) for entry in tensor.external_data if entry.key == "location"
    }
    for location in sorted(locations):
        try:
            path = (folder / location).resolve()
        except (OSError, ValueError, RuntimeError) as problem:  # a name that is too long, a NUL character, links in a circle
            raise BadInput(f"the model keeps weights in {location[:100]!r}, which names no file") from problem
        if not path.is_relative_to(folder.resolve()):
            raise BadInput(f"the model keeps weights outside its own folder, in {location}")
        try:
            yield readable_file(path)
        except BadInput as problem:
            raise BadInput(f"the model keeps weights in {location[:100]!r}, which is not beside it: {problem}") from problem


def _tensors_elsewhere(message: Any) -> Iterator[onnx.TensorProto]:
    """Tensors that lie in other files: of the graph, of a node, of a graph inside a node, of a function."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.name == "ValueInfoProto":  # names and shapes, which hold no tensor
            continue
        # few nodes say where anything lies, and looking for the word is far quicker than walking through all of them
        if field.message_type.name == "NodeProto" and not _says_where(onnx.GraphProto(node=value)):
            continue
        for part in [value] if isinstance(value, Message) else value:
            if isinstance(part, onnx.TensorProto):
                if part.external_data:
                    yield part
            elif isinstance(part, onnx.GraphProto) or _says_where(part):
                yield from _tensors_elsewhere(part)


def _says_where(part: Any) -> bool:
    return b"location" in part.SerializeToString()


def _in_order(wires: Iterable[Wires]) -> bool:
    """Whether nothing is made twice, or after it is taken, as exporters list nodes: then nothing goes in a circle.

    >>> _in_order([(["image"], ["seen"]), (["seen"], ["scores"])])
    True
    >>> _in_order([(["scores"], ["seen"]), (["seen"], ["scores"])])
    False
    """
    known: set[str] = set()
    for taken, made in wires:
        known.update(taken)
        if not known.isdisjoint(made):
            return False
        known.update(made)
    return True


QUANTISED = {"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "MatMulNBits", "QGemm"}
DYNAMICALLY_QUANTISED = {"DynamicQuantizeLinear", "DynamicQuantizeMatMul"}
GLOBAL_POOLING = {"GlobalAveragePool", "ReduceMean"}
NOT_BY_CLASS = "the last layer does not give one score a class to each image"


@dataclass(frozen=True)
class LastLayer:
    """Where the features are and what follows them; `head` is None where `why` says so."""

    features: str | None
    head: Head | None
    why: str | None = None


def is_quantised(node: onnx.NodeProto) -> bool:
    """Whether a node computes with integers that stand for real numbers."""
    return node.op_type in QUANTISED or node.op_type.startswith("QLinear")


def last_layer(graph: OnnxGraph, scores: str, *, classes: int | None = None) -> LastLayer:
    """The last product with stored weights on the way to the scores, of which there are so many an image, if known."""
    if scores not in graph.last_layers:  # its weights are large, and features and saliency both ask for it
        graph.last_layers[scores] = _last_layer(graph, scores)
    found = graph.last_layers[scores]
    if found.head is None or classes in (None, len(found.head.bias)):
        return found
    return LastLayer(None, None, NOT_BY_CLASS)


def _last_layer(graph: OnnxGraph, scores: str) -> LastLayer:
    node, added = graph.source(scores), np.zeros(())
    if node is not None and node.op_type in ENDINGS:
        node = graph.source(node.input[0])
    if node is not None and node.op_type == "Add":
        node, added = _without_bias(graph, node)
    if node is None:
        return LastLayer(None, None, "the scores come straight from the input")
    if node.op_type in GLOBAL_POOLING:
        return LastLayer(None, None, "the graph ends in global pooling, after its last weights")
    quantised = _quantised_product(graph, node)
    if quantised is None and node.op_type not in {"Gemm", "MatMul"} and not _sees_one_pixel(graph, node):
        return LastLayer(None, None, f"the graph ends in {node.op_type}, not in a linear layer")
    features, weights, bias = quantised or (node.input[0], _weights(graph, node), _bias(graph, node))
    if weights is None or weights.ndim != 2 or bias is None:
        return LastLayer(None, None, "the last layer's weights are computed, not stored")
    if not all(part.size in (1, len(weights)) for part in (bias, added)):
        return LastLayer(None, None, NOT_BY_CLASS)
    bias = np.broadcast_to(bias.ravel() + added.ravel(), len(weights))
    return LastLayer(features, Head(np.ascontiguousarray(weights, np.float32), np.ascontiguousarray(bias, np.float32)))


def _without_bias(graph: OnnxGraph, node: onnx.NodeProto) -> tuple[onnx.NodeProto | None, NDArray[Any]]:
    """What comes before a stored bias is added, and the bias; the node itself where it adds something else."""
    for place in (0, 1):
        bias = graph.constant(node.input[1 - place])
        if bias is not None:
            return graph.source(node.input[place]), bias
    return node, np.zeros(())


def _quantised_product(graph: OnnxGraph, node: onnx.NodeProto) -> tuple[str, NDArray[Any], NDArray[Any]] | None:
    """Features, weights (classes, features) and no bias of a product of dynamically quantised numbers; else None.

    Such a product is of integers; then it is multiplied by the steps of both sides, whose product is a node of its own.
    """
    for product, steps in (node.input[:2], node.input[1::-1]) if node.op_type == "Mul" else ():
        integers, both = graph.source(product), graph.makers.get(steps)
        if integers is None or both is None or (integers.op_type, both.op_type) != ("MatMulInteger", "Mul"):
            continue
        made, weights = graph.makers.get(integers.input[0]), graph.constant(integers.input[1])
        found = [values for name in both.input if (values := graph.constant(name)) is not None]
        zero = graph.constant(integers.input[3]) if len(integers.input) > 3 else np.zeros(())
        if made is None or made.op_type != "DynamicQuantizeLinear" or weights is None or zero is None or len(found) != 1:
            continue
        return made.input[0], ((weights.astype(np.float32) - zero.astype(np.float32)) * found[0]).T, np.zeros(())
    return None


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
