"""Any classifier in an ONNX file, run by onnxruntime: its head, its class activation maps, its random networks."""

from __future__ import annotations

import ast
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # comes without types
from numpy.typing import NDArray
from onnx import helper, inliner, numpy_helper

from shiftproof.datasets.classes import ClassList, json_entries
from shiftproof.errors import BadInput, listed
from shiftproof.files import readable_file
from shiftproof.models.classifiers.onnx_graph import (
    ENDINGS,
    GLOBAL_POOLING,
    LastLayer,
    OnnxGraph,
    attributes,
    external_files,
    is_quantised,
    last_layer,
    loaded,
    width_of,
    with_outputs,
)
from shiftproof.models.classifiers.onnx_session import PROVIDERS, OnnxSession
from shiftproof.models.companions import Fans, RandomWeights, Recipe, Reinitialised, fans_of_convolution
from shiftproof.models.input_facts import preprocessing_for
from shiftproof.models.kind import model_kind
from shiftproof.models.loaded import LoadedClassifier, NetworkGraph, check_size, in_batches, model_ref
from shiftproof.models.options import ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.models.saliency import AskedClasses, Saliency, SaliencyMethod
from shiftproof.types import Head, Inputs, Outputs, Seen


def read_onnx(file: Path) -> onnx.ModelProto:
    """The model in a file, without the tensors that lie beside it; BadInput where it holds none."""
    try:
        model = loaded(readable_file(file))
    except DecodeError as problem:
        with file.open("rb") as opened:
            start = opened.read(24)
        raise BadInput(f"{file} is not a whole ONNX file; it begins with {start!r}") from problem
    if not model.graph.node:
        raise BadInput(f"{file} is not an ONNX file: it holds no graph")
    return model


@contextmanager
def damage_told(model: onnx.ModelProto, file: Path) -> Iterator[None]:
    """What goes wrong over a model that onnx itself finds faulty, in a sentence; anything else is a bug and stays one."""
    try:
        yield
    except (ValueError, TypeError, IndexError, KeyError, AttributeError) as problem:
        try:
            onnx.checker.check_model(model)
        except onnx.checker.ValidationError as fault:
            raise BadInput(f"{file} is damaged: {str(fault).partition(chr(10))[0]}") from problem
        raise


def weights_digest(model: onnx.ModelProto, file: Path) -> str:
    """A digest of the file and of those beside it that hold its larger tensors."""
    total = hashlib.sha256()
    for part in [file, *external_files(model, file.parent)]:
        with part.open("rb") as opened:
            total.update(hashlib.file_digest(opened, "sha256").digest())
    return total.hexdigest()


def class_names_in(model: onnx.ModelProto) -> list[str] | None:
    """Class names that the exporter left in the file, as JSON or as Python prints them: in a row, or by their places."""
    text: str = next((entry.value for entry in model.metadata_props if entry.key in {"names", "classes", "labels"}), "")
    for parse in (json.loads, ast.literal_eval):
        try:
            data = parse(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last: Python's parser, of what is nested deep
            continue
        try:
            return json_entries(data, "the model's metadata")
        except BadInput as problem:
            raise BadInput(f"{problem}; --classes names them") from problem
    return None


ONE_AT_A_TIME = (
    "the graph is quantised dynamically, by the range of the numbers in a batch: images are run one by one, so that the "
    "scores of each are its own; the head gives them up to a step"
)


@model_kind(is_data=True)
def load_onnx(path: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier in an ONNX file."""
    options.refuse("weights", "precision", "channels_last", "version", what="an ONNX file")
    file = Path(path)
    model = read_onnx(file)
    with damage_told(model, file):
        return classifier_of(model, file, lambda: file, weights_digest(model, file), options)


def classifier_of(
    model: onnx.ModelProto,
    file: Path,
    read: Callable[[], Path | bytes],
    weights: str,
    options: ModelOptions,
    *,
    own: ImagePreprocessing | None = None,
    classes: ClassList | None = None,
    seen: Seen | None = None,
) -> LoadedClassifier:
    """The classifier of a graph in a file, or made of one: `read` gives it to sessions, `weights` is its digest."""
    graph = OnnxGraph(model, file.parent)
    extra = _tensor(graph, options.extra_output, "extra numbers")
    facts, output = graph.input(), graph.scores(options.output, besides=extra)
    name = options.name or file.stem
    preprocessing, preprocessing_notes = preprocessing_for(facts, options, own)
    check_size(preprocessing, facts.size, name)
    width = width_of(output)
    layer, layer_notes = _last_layer(graph, output.name, width, options)
    width = len(layer.head.bias) if width is None and layer.head is not None else width
    named = classes if classes is not None or options.classes else class_names_in(model)
    found, class_notes = options.classes_of(width, named)
    gives = options.gives or graph.gives(output.name)
    session_of = partial(
        OnnxSession,
        input_name=facts.name,
        scores=output.name,
        features=layer.features,
        extra=extra,
        input_type=facts.dtype,
        device=options.device,
        threads=options.threads,
        data_folder=file.parent.resolve(),
    )

    def shown() -> Path | bytes:
        return with_outputs(read(), [layer.features, extra])

    session = session_of(shown)
    alone = facts.batch_size is None and graph.quantises_by_batch()
    batch_size, by_batch = (1, [ONE_AT_A_TIME]) if alone else (facts.batch_size, [])
    saliency = saliency_of(graph, output.name, read, session_of, batch_size)
    provider, provider_notes = own_provider(graph, session)
    choices = {"features": layer.features, "output": output.name, "extra": extra, "provider": provider}
    choices["batches"] = "one image each" if alone else None  # earlier versions ran several at once, with other scores
    return LoadedClassifier(
        ref=model_ref(name, weights, preprocessing, gives=gives, **choices),
        preprocessing=preprocessing,
        gives=gives,
        forward=session,
        default_batch_size=session.default_batch_size,
        concurrent_batches=session.concurrent_batches,
        classes=found,
        seen=options.seen_or(seen),
        notes=(*preprocessing_notes, *_own_normalisation(graph), *class_notes, *layer_notes, *by_batch, *provider_notes),
        fixed_batch_size=batch_size,
        rounded=graph.rounds_its_scores(output.name),
        has_features=layer.features is not None,
        read_head=lambda: layer.head,
        graph=NetworkGraph(read, output.name, layer.features, file.parent),
        reinitialise=partial(
            reinitialise_onnx, shown, session_of, folder=file.parent, scores=output.name if layer.head else None
        ),
        saliency=saliency,
        for_size=None if facts.size else lambda _: session,
    )


def own_provider(graph: OnnxGraph, session: OnnxSession) -> tuple[str | None, tuple[str, ...]]:
    """The provider where it says which model this is, and a note on it.

    In single precision providers differ by the order of their sums. Integers and half precision each rounds, and fuses, in
    its own way, which moves scores by whole steps.
    """
    if session.provider == PROVIDERS["cpu"] or not graph.is_rounded():
        return None, ()
    note = f"{session.provider} rounds eight bits and half precision in its own way: its predictions are stored apart"
    return session.provider, (note,)


def _own_normalisation(graph: OnnxGraph) -> tuple[str, ...]:
    first = graph.first_arithmetic()
    if first is None:
        return ()
    return (f"the graph begins with {first}: it may normalise its input itself, and then wants --preprocess unit or bytes",)


def _last_layer(
    graph: OnnxGraph, scores: str, width: int | None, options: ModelOptions
) -> tuple[LastLayer, tuple[str, ...]]:
    found = last_layer(graph, scores, classes=width)
    if options.features is not None and options.features != found.features:
        features = _tensor(graph, options.features, "features")
        return LastLayer(features, None), (f"no head: features are taken from {features}, as asked",)
    if found.why is not None:
        return found, (f"no head: {found.why}",)
    rounded = "the scores are quantised after the last layer: features and head give them up to a step"
    return found, (rounded,) if graph.rounds_its_scores(scores) else ()


def _tensor(graph: OnnxGraph, name: str | None, what: str) -> str | None:
    """The name, or BadInput where nothing in the graph is called so."""
    if name is not None and name not in graph.makers:
        raise BadInput(f"the model has no tensor {name!r} to take {what} from")
    return name


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

FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}
FEW = 16
"""Stored tensors of at most so many numbers are settings (bounds, scales, the mean of the images), not weights."""

MOST_BYTES = 2**31 - 2**20
"""What a graph in memory can hold."""


def reinitialise_onnx(
    graph: Callable[[], Path | bytes],
    session_of: Callable[[Callable[[], bytes]], OnnxSession],
    draw: RandomWeights,
    *,
    folder: Path,
    scores: str | None,
) -> Reinitialised:
    """The graph with re-initialised weights, in a session of its own; its head is that of `scores`, where they have one."""
    blank = _with_stored_constants(loaded(graph()))
    recipes = recipes_of(OnnxGraph(blank, folder))
    kept = [tensor for tensor in blank.graph.initializer if tensor.name not in recipes]
    emptied = [_emptied(tensor) for tensor in blank.graph.initializer if tensor.name in recipes]
    if sum(math.prod(tensor.dims) * 4 for tensor in emptied) > MOST_BYTES:
        raise BadInput("the graph's weights take more than 2 GB, too much to re-initialise in memory")
    del blank.graph.initializer[:]  # what is re-initialised need not be kept as it was
    blank.graph.initializer.extend([*kept, *emptied])

    def drawn_bytes() -> bytes:
        data: bytes = drawn(blank, recipes, draw).SerializeToString()
        return data

    def read_head() -> Head | None:
        return None if scores is None else last_layer(OnnxGraph(drawn(blank, recipes, draw), folder), scores).head

    return Reinitialised(session_of(drawn_bytes), read_head, tuple(_left_alone(kept)))


def recipes_of(graph: OnnxGraph) -> dict[str, Recipe]:
    """How each stored tensor of a layer is re-initialised, by its name; BadInput where there is none to draw."""
    recipes: dict[str, Recipe] = {}
    for node in graph.model.graph.node:
        if is_quantised(node):
            raise BadInput(
                "the graph is quantised: integers with steps of their own cannot be re-initialised; take its float file"
            )
        for name, recipe in _recipes(graph, node):
            recipes.setdefault(name, recipe)
    if not any(isinstance(recipe, Fans) for recipe in recipes.values()):
        raise BadInput("the graph stores no weights of a convolution or a linear layer that could be re-initialised")
    return recipes


def drawn(blank: onnx.ModelProto, recipes: dict[str, Recipe], draw: RandomWeights) -> onnx.ModelProto:
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
        yield f"not re-initialised, being weights of no layer that is known here: {listed(names, 3)}"


PLANES, PLANES_LAST = {2, 3}, {1, 2}
"""Axes that global pooling goes over where channels come before rows and columns, and where they come last."""


@dataclass(frozen=True)
class PooledTensor:
    """What a graph pools over all places, and what each class multiplies the pooled numbers with."""

    name: str
    weights: NDArray[np.float32] | None  # (classes, channels); None where every class has a channel of its own
    channels_last: bool = False

    def of_classes(self, activations: NDArray[np.floating], classes: AskedClasses) -> NDArray[np.floating]:
        """What each place adds to each class, (images, classes, rows, columns): its mean is the logit without its bias."""
        planes = activations.transpose(0, 3, 1, 2) if self.channels_last else activations
        if self.weights is None:
            return np.take_along_axis(planes, classes[:, :, None, None], axis=1)
        return np.asarray(np.einsum("ikc,icyx->ikyx", self.weights[classes], planes))


@dataclass(frozen=True)
class ClassActivation:
    """Class activation maps (Zhou et al., 2016) through a session whose graph shows the pooled tensor beside the scores."""

    session: OnnxSession
    pooled: PooledTensor
    batch_size: int | None = None

    def __call__(self, inputs: Inputs, classes: AskedClasses) -> Saliency:
        def activations(batch: Inputs) -> Outputs:
            (tensor,) = self.session.tensors([self.pooled.name], batch)
            return Outputs(tensor.astype(np.float32, copy=False))

        shown = in_batches(activations, inputs, self.batch_size).scores
        return np.asarray(np.maximum(self.pooled.of_classes(shown, classes), 0))


def saliency_of(
    graph: OnnxGraph,
    scores: str,
    source: Callable[[], Path | bytes],
    session_of: Callable[[Callable[[], Path | bytes]], OnnxSession],
    batch_size: int | None = None,
) -> dict[str, SaliencyMethod]:
    """Class activation, where the graph allows it; its source is opened again on first use."""
    pooled = pooled_tensor(graph, scores)
    if pooled is None:
        return {}
    session = session_of(lambda: with_outputs(source(), [pooled.name])).one_at_a_time()
    return {"class-activation": ClassActivation(session, pooled, batch_size)}


def pooled_tensor(graph: OnnxGraph, scores: str) -> PooledTensor | None:
    """What is pooled just before the last linear layer, or before the scores themselves; None where neither is pooled."""
    layer = last_layer(graph, scores)
    pooling = graph.source(scores if layer.features is None else layer.features)
    if layer.features is None and pooling is not None and pooling.op_type in ENDINGS:
        pooling = graph.source(pooling.input[0])
    axes = set() if pooling is None else _axes(graph, pooling)
    if pooling is None or axes not in (PLANES, PLANES_LAST):
        return None
    weights = None if layer.head is None else np.asarray(layer.head.weights, np.float32)
    return PooledTensor(pooling.input[0], weights, channels_last=axes == PLANES_LAST)


def _axes(graph: OnnxGraph, node: onnx.NodeProto) -> set[int]:
    """The axes of (images, ...) that a node takes the mean over; none where it is no global pooling."""
    if node.op_type not in GLOBAL_POOLING:
        return set()
    if node.op_type == "GlobalAveragePool":
        return PLANES
    stored = graph.constant(node.input[1]) if len(node.input) > 1 else attributes(node).get("axes")
    return set() if stored is None else {int(axis) % 4 for axis in stored}
