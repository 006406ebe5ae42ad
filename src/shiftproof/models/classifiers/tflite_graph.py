"""What a LiteRT (TensorFlow Lite) file says about itself, read without running it.

Such a file is a flatbuffer, perhaps with a zip archive of label files behind it. All that is needed of it is read once into
plain values, so that damage is found here and nowhere else.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from shiftproof.errors import BadInput, listed
from shiftproof.types import Gives, Head

IDENTIFIER = b"TFL3"
MOST_PARTS = 1_000_000
"""Tensors and operators that are read; real files have thousands."""

MOST_NUMBERS = 2**27
"""In a tensor, which LiteRT makes room for; the largest layer of VGG-16 has a hundred million."""

MOST_LABELS = 4 * 1024 * 1024
"""Bytes of a label file."""

MOST_NAME = 1000
"""Characters of a tensor's name; converters join the names of all that they fused."""

NUMBERS: Mapping[int, type[np.generic]] = {
    schema.TensorType.FLOAT32: np.float32,
    schema.TensorType.FLOAT16: np.float16,
    schema.TensorType.UINT8: np.uint8,
    schema.TensorType.INT8: np.int8,
    schema.TensorType.INT32: np.int32,
}
"""Element types that inputs, outputs and weights may have."""

WHOLE = (np.uint8, np.int8)
"""Element types of quantised images and scores."""

OPERATORS = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
SAME_VALUES = {"RESHAPE", "SQUEEZE", "QUANTIZE", "DEQUANTIZE", "CAST"}
"""Operators that hand on the numbers of their first input, up to rounding."""

LINEAR = {"FULLY_CONNECTED": schema.FullyConnectedOptions, "CONV_2D": schema.Conv2DOptions}
"""Layers that may be the last linear one, with the classes of their settings."""

ENDINGS: dict[str, Gives] = {"SOFTMAX": "probabilities", "LOG_SOFTMAX": "logits", "LOGISTIC": "scores"}
"""What a model gives that ends so."""


@dataclass(frozen=True)
class Tensor:
    """A tensor of the graph: its shape, and how its whole numbers stand for real ones."""

    place: int
    name: str
    shape: tuple[int | None, ...]  # None where the size is free
    dtype: type[np.generic] | None  # None for types that are not read here
    scale: NDArray[np.floating]  # one number, one a channel, or none where the numbers are real
    zero: NDArray[np.integer]
    axis: int  # of the channels
    stored: NDArray[np.uint8] | None  # its bytes in the file; None where it is computed

    @property
    def quantised(self) -> bool:
        return bool(self.scale.size)

    def real(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """Numbers of this tensor as what they stand for."""
        if not self.quantised:
            return np.asarray(values, np.float32)
        scale, zero = (self._along_axis(figures, values.ndim) for figures in (self.scale, self.zero))
        return np.asarray((values.astype(np.float32) - zero) * scale, np.float32)

    def quantise(self, values: NDArray[np.floating]) -> NDArray[Any]:
        """The whole numbers that stand for real ones, at the ends of their range where they lie outside it."""
        info = np.iinfo(np.dtype(self.dtype))
        whole = np.rint(values / self.scale[0]) + self.zero[0]
        return np.asarray(np.clip(whole, info.min, info.max).astype(self.dtype))

    def weights(self) -> NDArray[np.float32] | None:
        """The real numbers that the file stores for it; None where there are none of a kind that is read."""
        if self.stored is None or self.dtype is None or None in self.shape:
            return None
        shape = tuple(size or 0 for size in self.shape)
        channels = shape[self.axis] if 0 <= self.axis < len(shape) else 1
        if self.stored.nbytes != math.prod(shape) * np.dtype(self.dtype).itemsize or self.scale.size not in (0, 1, channels):
            raise BadInput(f"tensor {self.name!r} holds {self.stored.nbytes:,} bytes, which do not fit its shape {shape}")
        return self.real(np.frombuffer(self.stored, self.dtype).reshape(shape))

    def _along_axis(self, figures: NDArray[Any], axes: int) -> NDArray[Any]:
        return figures.reshape([-1 if axis == self.axis else 1 for axis in range(axes)]) if figures.size > 1 else figures


@dataclass(frozen=True)
class Operator:
    """A step of the graph, by the places of its tensors; -1 for one that is left out."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    activation: bool = False  # whether a linear layer applies one to its product


@dataclass(frozen=True)
class LastLayer:
    """Where the features are and the head behind them; `why` says why there is none."""

    features: Tensor | None
    head: Head | None
    why: str = ""


@dataclass(frozen=True)
class TfliteGraph:
    """The main graph of a file."""

    tensors: Sequence[Tensor]
    makers: Mapping[int, Operator]  # by the places of the tensors they make
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    normalisation: tuple[tuple[float, ...], tuple[float, ...]] | None  # mean and std of bytes, from the file's metadata

    def tensor(self, name: str, what: str) -> Tensor:
        """The one tensor of that name."""
        found = [tensor for tensor in self.tensors if tensor.name == name]
        if len(found) != 1:
            outputs = listed([tensor.name for tensor in self.outputs])
            raise BadInput(
                f"the model has {len(found) or 'no'} tensors {name!r} to take {what} from; its outputs: {outputs}"
            )
        return found[0]

    def source(self, tensor: Tensor) -> Operator | None:
        """The operator that computed these numbers, past those that only hand them on."""
        maker, steps = self.makers.get(tensor.place), 0
        while maker is not None and maker.name in SAME_VALUES and steps < len(self.tensors):
            maker, steps = self.makers.get(maker.inputs[0]), steps + 1
        return maker

    def before_ending(self, scores: Tensor) -> Tensor | None:
        """The logits behind a softmax that ends the graph; None where it ends otherwise."""
        maker = self.source(scores)
        return self.tensors[maker.inputs[0]] if maker is not None and maker.name == "SOFTMAX" else None

    def gives(self, scores: Tensor) -> Gives:
        """What the scores are, by the operator they come from."""
        maker = self.source(scores)
        return "logits" if maker is None else ENDINGS.get(maker.name, "logits")

    def last_layer(self, scores: Tensor) -> LastLayer:
        """The last linear layer on the way to the scores, also one that is written as a convolution of one pixel."""
        maker = self.source(scores)
        if maker is not None and maker.name in ENDINGS:
            maker = self.source(self.tensors[maker.inputs[0]])
        if maker is None or maker.name not in LINEAR:
            ending = "its input" if maker is None else maker.name
            return LastLayer(None, None, f"the scores come from {ending}, not from a linear layer")
        if maker.activation:
            return LastLayer(None, None, "the last layer applies an activation function to its product")
        features, made = self.tensors[maker.inputs[0]], self.tensors[maker.outputs[0]]
        if maker.name == "CONV_2D" and not all(tensor.shape[1:3] == (1, 1) for tensor in (features, made)):
            return LastLayer(None, None, "the last layer is a convolution of more than one pixel")
        weights = self.tensors[maker.inputs[1]].weights()
        bias = self.tensors[maker.inputs[2]].weights() if len(maker.inputs) > 2 and maker.inputs[2] >= 0 else np.zeros(1)
        width = scores.shape[-1]
        if weights is None or bias is None or weights.size == 0 or len(weights) != width or bias.size not in (1, width):
            return LastLayer(None, None, "the last layer does not give one score a class by weights of the file")
        flat = weights.reshape(len(weights), -1)
        return LastLayer(features, Head(flat, np.ascontiguousarray(np.broadcast_to(bias.ravel(), width), np.float32)))


DAMAGE = (struct.error, ValueError, TypeError, IndexError, AttributeError, OverflowError)
"""What reading a damaged flatbuffer comes to in Python: offsets lead outside the bytes, or parts are not there."""


def read_graph(data: bytes) -> TfliteGraph:
    """The main graph of a file's bytes; BadInput where they hold none."""
    if data[4:8] != IDENTIFIER:
        raise BadInput(f"it is no LiteRT file: it begins with {data[:12]!r}")
    try:
        return _read(schema.Model.GetRootAs(data, 0))
    except DAMAGE as problem:
        raise BadInput(f"it is damaged or cut short: {str(problem)[:200]}") from problem


def _read(model: Any) -> TfliteGraph:
    main = model.Subgraphs(0)
    tensors = [_tensor(model, main.Tensors(place), place) for place in range(_few(main.TensorsLength()))]
    operators = [_operator(model, main.Operators(place), tensors) for place in range(_few(main.OperatorsLength()))]
    return TfliteGraph(
        tensors,
        {made: operator for operator in operators for made in operator.outputs},
        [tensors[place] for place in _places(main.InputsAsNumpy(), tensors)],
        [tensors[place] for place in _places(main.OutputsAsNumpy(), tensors)],
        _normalisation(model),
    )


def _few(count: int) -> int:
    if count > MOST_PARTS:
        raise BadInput(f"its graph claims {count:,} parts")
    return count


def _tensor(model: Any, stored: Any, place: int) -> Tensor:
    signature = stored.ShapeSignatureAsNumpy()
    sizes = signature if isinstance(signature, np.ndarray) and signature.size else stored.ShapeAsNumpy()
    quantisation = stored.Quantization()
    scale, zero, axis = np.zeros(0, np.float32), np.zeros(0, np.int64), 0
    if quantisation is not None and quantisation.ScaleLength():
        scale, zero = quantisation.ScaleAsNumpy(), quantisation.ZeroPointAsNumpy()
        zero = zero if isinstance(zero, np.ndarray) and zero.size else np.zeros(1, np.int64)
        axis = quantisation.QuantizedDimension()
        if not (np.isfinite(scale).all() and (scale > 0).all() and zero.size in (1, scale.size)):
            raise BadInput(f"tensor {place} has no sound scale")
        ends = np.iinfo(whole) if (whole := NUMBERS.get(stored.Type())) in WHOLE else np.iinfo(np.int64)
        if zero.min() < ends.min or zero.max() > ends.max:  # LiteRT does not look, and crashes
            raise BadInput(f"tensor {place} has a zero point outside its range")
    name = (stored.Name() or b"").decode()
    if not name.isprintable():
        raise BadInput(f"the name of tensor {place} is no text")
    shape = tuple(size if size > 0 else None for size in sizes.tolist()) if isinstance(sizes, np.ndarray) else ()
    if (numbers := math.prod(size or 1 for size in shape)) > MOST_NUMBERS:
        raise BadInput(f"tensor {name[:100]!r} claims {numbers:,} numbers")
    data = model.Buffers(stored.Buffer()).DataAsNumpy()
    return Tensor(
        place,
        name[:MOST_NAME] or f"tensor {place}",
        shape,
        NUMBERS.get(stored.Type()),
        scale,
        zero,
        axis,
        data if isinstance(data, np.ndarray) and data.size else None,
    )


def _operator(model: Any, stored: Any, tensors: Sequence[Tensor]) -> Operator:
    code = model.OperatorCodes(stored.OpcodeIndex())
    number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
    name = OPERATORS.get(number, f"operator {number}")
    inputs, outputs = _places(stored.InputsAsNumpy(), tensors, lowest=-1), _places(stored.OutputsAsNumpy(), tensors)
    needed = 2 if name in LINEAR else 1 if name in SAME_VALUES or name in ENDINGS else 0
    if len(inputs) < needed or -1 in inputs[:needed]:
        raise BadInput(f"{name} should have {needed} inputs")
    return Operator(name, inputs, outputs, name in LINEAR and _activates(LINEAR[name](), stored.BuiltinOptions()))


def _activates(options: Any, table: Any) -> bool:
    if table is None:
        return False
    options.Init(table.Bytes, table.Pos)
    return bool(options.FusedActivationFunction() != schema.ActivationFunctionType.NONE)


def _places(listed_places: Any, tensors: Sequence[Tensor], lowest: int = 0) -> tuple[int, ...]:
    places = listed_places.tolist() if isinstance(listed_places, np.ndarray) else []
    if not all(lowest <= place < len(tensors) for place in places):
        raise BadInput("its graph names tensors that it does not have")
    return tuple(places)


def _normalisation(model: Any) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Mean and std that the metadata declare for the first input, in terms of bytes; None where they declare none."""
    found = [model.Metadata(place) for place in range(_few(model.MetadataLength()))]
    stored = next((entry.Buffer() for entry in found if entry.Name() == b"TFLITE_METADATA"), None)
    data = None if stored is None else model.Buffers(stored).DataAsNumpy()
    if not isinstance(data, np.ndarray) or bytes(data[4:8]) != b"M001":
        return None
    root = flatbuffers.table.Table(data.tobytes(), flatbuffers.encode.Get(flatbuffers.packer.uoffset, data.tobytes(), 0))
    # the fields of TensorFlow's metadata schema: ModelMetadata.subgraph_metadata, SubGraphMetadata.input_tensor_metadata
    for graph in _tables(root, 3):
        for tensor in _tables(graph, 2):
            for unit in _tables(tensor, 4):  # TensorMetadata.process_units
                kind = unit.Offset(_field(0))
                if kind and unit.Get(flatbuffers.number_types.Uint8Flags, unit.Pos + kind) == 1:  # NormalizationOptions
                    options = flatbuffers.table.Table(unit.Bytes, 0)
                    unit.Union(options, unit.Offset(_field(1)))
                    mean, std = (_floats(options, number) for number in (0, 1))
                    return (mean, std) if mean and std and 0 not in std else None
            return None
    return None


def _field(number: int) -> int:
    return 4 + 2 * number


def _tables(table: Any, number: int) -> Iterator[Any]:
    """The tables in a vector of tables."""
    field = table.Offset(_field(number))
    if field:
        start = table.Vector(field)
        for place in range(_few(table.VectorLen(field))):
            yield flatbuffers.table.Table(table.Bytes, table.Indirect(start + 4 * place))


def _floats(table: Any, number: int) -> tuple[float, ...]:
    field = table.Offset(_field(number))
    values = table.GetVectorAsNumpy(flatbuffers.number_types.Float32Flags, field) if field else np.zeros(0)
    return tuple(values.tolist()) if np.isfinite(values).all() else ()


def with_outputs(data: bytes, places: Sequence[int]) -> bytes:
    """The model with these tensors among its outputs."""
    try:
        model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(data, 0))
        if any(buffer.offset > 1 for buffer in model.buffers):
            raise BadInput("the model keeps its weights behind the graph, where no further outputs can be had of it")
        main = model.subgraphs[0]
        main.outputs = np.array([*main.outputs, *(place for place in places if place not in main.outputs)], np.int32)
        builder = flatbuffers.Builder(len(data))
        builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    except DAMAGE as problem:
        raise BadInput(f"it is damaged: {str(problem)[:200]}") from problem
    return bytes(builder.Output())


def label_files(data: bytes) -> dict[str, list[str]]:
    """The lines of every text file in the archive behind the graph; none where there is no whole archive."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = [one for one in archive.infolist() if one.filename.endswith(".txt") and one.file_size <= MOST_LABELS]
            texts = {member.filename: archive.read(member).decode() for member in members[:100]}
    # of zipfile: a place before the file's beginning, a way of packing it does not know, an encrypted member
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError, struct.error, zlib.error):
        return {}
    return {name: [line.strip() for line in text.splitlines() if line.strip()] for name, text in texts.items()}
