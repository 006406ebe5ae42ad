"""Small LiteRT files, made by LiteRT's own schema, and what they should give, worked out by numpy alone."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE = 16
SCALE, ZERO = 0.02, 3
"""Of a quantised input: 0.02 a step, 3 stands for 0."""

SCORE_SCALE, SCORE_ZERO = 1 / 256, 0
"""Of quantised probabilities."""


@dataclass(frozen=True)
class SmallNetwork:
    """A convolution, its mean over the image and a linear layer, perhaps with a softmax."""

    filters: NDArray[np.float32]  # (6, 3, 3, 3): out, height, width, in
    weights: NDArray[np.float32]  # (5, 6)
    bias: NDArray[np.float32]

    @classmethod
    def drawn(cls) -> SmallNetwork:
        rng = np.random.default_rng(0)
        shapes: Mapping[str, Any] = {"filters": (6, 3, 3, 3), "weights": (5, 6), "bias": 5}
        return cls(**{name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()})

    def features(self, inputs: NDArray[Any]) -> NDArray[np.float64]:
        """Means of the rectified convolution, (images, 6), of inputs (images, height, width, 3)."""
        windows = np.lib.stride_tricks.sliding_window_view(inputs.astype(np.float64), (3, 3), axis=(1, 2))
        return np.asarray(np.maximum(np.einsum("nhwcij,oijc->nhwo", windows, self.filters), 0).mean(axis=(1, 2)))

    def logits(self, inputs: NDArray[Any]) -> NDArray[np.float64]:
        return self.features(inputs) @ self.weights.T + self.bias

    def probabilities(self, inputs: NDArray[Any]) -> NDArray[np.float64]:
        powers = np.exp(self.logits(inputs))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def tflite_bytes(
    *,
    softmax: bool = False,
    dtype: str = "float32",
    batch: int | None = 1,
    relu_at_end: bool = False,
    normalisation: tuple[list[float], list[float]] | None = None,
    labels: Mapping[str, str] | None = None,
) -> bytes:
    """The small network as a file; of another type than float32 its input and its scores are quantised."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    network, codes, tensors, operators = SmallNetwork.drawn(), [], [], []
    buffers = [schema.BufferT()]

    def tensor(name: str, shape: list[int], kind: str = "float32", values: Any = None, scale: Any = None) -> int:
        made = schema.TensorT()
        made.name, made.shape, made.type = name, [max(size, 1) for size in shape], getattr(schema.TensorType, kind.upper())
        made.shapeSignature = shape if -1 in shape else None
        made.buffer = 0
        if values is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
            buffers.append(buffer)
            made.buffer = len(buffers) - 1
        if scale is not None:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = [scale[0]], [scale[1]]
        tensors.append(made)
        return len(tensors) - 1

    def operator(name: str, inputs: list[int], outputs: list[int], settings: Any = None) -> None:
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        codes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs, made.outputs = len(codes) - 1, inputs, outputs
        if settings is not None:
            made.builtinOptions = settings
            made.builtinOptionsType = getattr(schema.BuiltinOptions, type(settings).__name__.removesuffix("T"))
        operators.append(made)

    images = -1 if batch is None else batch
    first = image = tensor("image", [images, SIDE, SIDE, 3], dtype, scale=None if dtype == "float32" else (SCALE, ZERO))
    if dtype != "float32":
        image = tensor("real image", [images, SIDE, SIDE, 3])
        operator("DEQUANTIZE", [first], [image], schema.DequantizeOptionsT())
    convolution = schema.Conv2DOptionsT()
    convolution.padding, convolution.strideH, convolution.strideW = schema.Padding.VALID, 1, 1
    convolution.dilationHFactor = convolution.dilationWFactor = 1
    convolution.fusedActivationFunction = schema.ActivationFunctionType.RELU
    filters = tensor("filters", [6, 3, 3, 3], values=network.filters)
    none = tensor("no bias", [6], values=np.zeros(6, np.float32))
    maps = tensor("maps", [images, SIDE - 2, SIDE - 2, 6])
    operator("CONV_2D", [image, filters, none], [maps], convolution)
    features = tensor("features", [images, 6])
    mean = schema.ReducerOptionsT()
    mean.keepDims = False
    operator("MEAN", [maps, tensor("axes", [2], "int32", np.array([1, 2], np.int32))], [features], mean)
    linear = schema.FullyConnectedOptionsT()
    if relu_at_end:
        linear.fusedActivationFunction = schema.ActivationFunctionType.RELU
    scores = tensor("logits", [images, 5])
    weights, bias = tensor("weights", [5, 6], values=network.weights), tensor("bias", [5], values=network.bias)
    operator("FULLY_CONNECTED", [features, weights, bias], [scores], linear)
    if softmax:
        ending = schema.SoftmaxOptionsT()
        ending.beta = 1.0
        scores, logits = tensor("probabilities", [images, 5]), scores
        operator("SOFTMAX", [logits], [scores], ending)
    if dtype != "float32":
        zero = SCORE_ZERO if dtype == "uint8" else SCORE_ZERO - 128
        scores, real = tensor("scores", [images, 5], dtype, scale=(SCORE_SCALE, zero)), scores
        operator("QUANTIZE", [real], [scores], schema.QuantizeOptionsT())

    model, main = schema.ModelT(), schema.SubGraphT()
    main.tensors, main.operators, main.inputs, main.outputs = tensors, operators, [first], [scores]
    model.version, model.operatorCodes, model.subgraphs, model.buffers = 3, codes, [main], buffers
    if normalisation is not None:
        entry, buffer = schema.MetadataT(), schema.BufferT()
        buffer.data = np.frombuffer(_metadata(*normalisation), np.uint8)
        buffers.append(buffer)
        entry.name, entry.buffer = "TFLITE_METADATA", len(buffers) - 1
        model.metadata = [entry]
    builder = flatbuffers.Builder(4096)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output()) + (_archive(labels) if labels else b"")


def _archive(files: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def _metadata(mean: list[float], std: list[float]) -> bytes:
    """TensorFlow's metadata with the normalisation of the one input, table by table."""
    import flatbuffers

    builder = flatbuffers.Builder(256)

    def table(**fields: tuple[int, Any]) -> int:
        builder.StartObject(8)
        for kind, (number, value) in fields.items():
            add = builder.PrependUint8Slot if kind == "kind" else builder.PrependUOffsetTRelativeSlot
            add(number, value, 0)
        return int(builder.EndObject())

    def vector(of: list[int]) -> int:
        builder.StartVector(4, len(of), 4)
        for one in reversed(of):
            builder.PrependUOffsetTRelative(one)
        return int(builder.EndVector())

    figures = [builder.CreateNumpyVector(np.array(one, np.float32)) for one in (mean, std)]
    options = table(mean=(0, figures[0]), std=(1, figures[1]))
    unit = table(kind=(0, 1), options=(1, options))
    tensor = table(units=(4, vector([unit])))
    graph = table(inputs=(2, vector([tensor])))
    builder.Finish(table(graphs=(3, vector([graph]))), file_identifier=b"M001")
    return bytes(builder.Output())
