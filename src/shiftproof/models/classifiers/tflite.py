"""Any classifier in a LiteRT (TensorFlow Lite) file, quantised or not, run by LiteRT."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray

from shiftproof.cores import usable_cores
from shiftproof.errors import BadInput, listed
from shiftproof.files import read_regular, readable_file
from shiftproof.models.classifiers.tflite_graph import (
    WHOLE,
    LastLayer,
    Tensor,
    TfliteGraph,
    label_files,
    read_graph,
    with_outputs,
)
from shiftproof.models.input_facts import InputFacts, preprocessing_for
from shiftproof.models.kind import model_kind
from shiftproof.models.loaded import LoadedClassifier, check_size, model_ref
from shiftproof.models.options import PRESETS, ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Classes, Inputs, Outputs


@model_kind(is_data=True)
def load_tflite(path: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier in a LiteRT (TensorFlow Lite) file."""
    options.refuse("weights", "precision", "channels_last", "version", "device", what="a .tflite file")
    file = readable_file(Path(path))
    data = read_regular(file)
    try:
        return _classifier(data, read_graph(data), file.stem, options)
    except BadInput as problem:
        raise BadInput(f"{file}: {problem}") from problem


def _classifier(data: bytes, graph: TfliteGraph, stem: str, options: ModelOptions) -> LoadedClassifier:
    name = options.name or stem
    (image,) = graph.inputs if len(graph.inputs) == 1 else _refused(graph)
    preprocessing, input_notes = _preprocessing(graph, image, options)
    scores = _scores(graph, options)
    extra = None if options.extra_output is None else graph.tensor(options.extra_output, "extra numbers")
    layer, layer_notes = _last_layer(graph, scores, options)
    classes, class_notes = _classes(data, scores.shape[-1], options)
    gives = options.gives or graph.gives(scores)
    session = TfliteSession(data, image, scores, layer.features, extra, options.threads or usable_cores())
    chosen = {"features": layer.features, "output": scores, "extra": extra}
    named = {key: None if tensor is None else f"{tensor.place} {tensor.name}" for key, tensor in chosen.items()}
    return LoadedClassifier(
        ref=model_ref(name, hashlib.sha256(data).hexdigest(), preprocessing, gives=gives, **named),
        preprocessing=preprocessing,
        gives=gives,
        forward=session,
        classes=classes,
        seen=options.seen_or(),
        notes=(*input_notes, *class_notes, *_rounding(graph, scores), *layer_notes),
        fixed_batch_size=image.shape[0],
        rounded=scores.quantised,
        has_features=layer.features is not None,
        read_head=lambda: layer.head,
    )


def _refused(graph: TfliteGraph) -> list[Tensor]:
    names = listed([tensor.name for tensor in graph.inputs])
    raise BadInput(f"the model should take one input, an image; it takes {len(graph.inputs)}: {names}")


def _preprocessing(graph: TfliteGraph, image: Tensor, options: ModelOptions) -> tuple[ImagePreprocessing, tuple[str, ...]]:
    """How images become inputs: bytes for a quantised input, unless other figures are given, which are then quantised."""
    if image.dtype not in (*WHOLE, np.float32):
        raise BadInput("the model takes neither float32 nor quantised (uint8, int8) images")
    facts = InputFacts.of_shape(image.name, "float32", image.shape)
    own = _declared(graph) if image.dtype is np.float32 else PRESETS["bytes"]
    preprocessing, notes = preprocessing_for(facts, options, own)
    check_size(preprocessing, facts.size, "it")
    if image.dtype is np.float32:
        return preprocessing, notes
    if not _are_bytes(preprocessing) and not image.quantised:
        raise BadInput(
            f"the model takes {np.dtype(image.dtype)} without a scale: only bytes can be given (--preprocess bytes)"
        )
    if not _are_bytes(preprocessing):
        return preprocessing, (*notes, f"the input is quantised, in steps of {image.scale[0]:g}")
    preprocessing = dataclasses.replace(preprocessing, dtype="uint8")
    shift = ", less 128" if image.dtype is np.int8 else ""
    return preprocessing, (*notes, f"the input is quantised: bytes are given as they are{shift}; --preprocess gives others")


def _are_bytes(preprocessing: ImagePreprocessing) -> bool:
    return (preprocessing.value_range, {*preprocessing.mean}, {*preprocessing.std}) == ("0..255", {0}, {1})


def _declared(graph: TfliteGraph) -> ImagePreprocessing | None:
    """What the file's metadata say of mean and std."""
    if graph.normalisation is None or not {len(figures) for figures in graph.normalisation} <= {1, 3}:
        return None
    mean, std = graph.normalisation
    return ImagePreprocessing(value_range="0..255", mean=mean, std=std)


def _scores(graph: TfliteGraph, options: ModelOptions) -> Tensor:
    if options.output is not None:
        scores = graph.tensor(options.output, "scores")
    elif len(graph.outputs) == 1:
        scores = graph.outputs[0]
    else:
        raise BadInput(
            f"which output holds the class scores? name one with --scores: {listed([one.name for one in graph.outputs])}"
        )
    if scores.dtype is None or len(scores.shape) < 2 or sum(size != 1 for size in scores.shape[1:]) > 1:
        raise BadInput(
            f"output {scores.name!r} has shape {scores.shape}, not one score a class: this looks like an object detector or "
            "a segmenter, not a classifier"
        )
    return scores


def _last_layer(graph: TfliteGraph, scores: Tensor, options: ModelOptions) -> tuple[LastLayer, tuple[str, ...]]:
    found = graph.last_layer(scores)
    if options.features is not None and (found.features is None or options.features != found.features.name):
        features = graph.tensor(options.features, "features")
        return LastLayer(features, None), (f"no head: features are taken from {features.name}, as asked",)
    if found.why:
        return found, (f"no head and no features: {found.why}",)
    rounded = "the network is quantised: features and head give its scores up to a step"
    return found, (rounded,) if scores.quantised else ()


def _rounding(graph: TfliteGraph, scores: Tensor) -> tuple[str, ...]:
    logits = graph.before_ending(scores)
    if not scores.quantised or logits is None:
        return ()
    advice = f"; --scores '{logits.name}' takes the logits before the softmax" if logits.dtype is not None else ""
    return (f"probabilities are rounded to steps of {scores.scale[0]:g}, and most classes tie at 0{advice}",)


def _classes(data: bytes, outputs: int | None, options: ModelOptions) -> tuple[Classes | None, tuple[str, ...]]:
    """The user's word, else the one label file in the archive behind the graph that has a line for each output."""
    files = {} if options.classes is not None else label_files(data)
    fitting = {name: lines for name, lines in files.items() if len(lines) == outputs}
    if len(fitting) == 1:
        ((name, lines),) = fitting.items()
        return options.classes_of(outputs, lines)[0], (f"class names are those of {name} in the file",)
    classes, notes = options.classes_of(outputs)
    if len(fitting) > 1:
        notes = (*notes, f"the file holds several lists of its classes ({listed(fitting)}); --classes names one")
    return classes, notes


class TfliteSession:
    """Gives the scores of batches; the interpreter is made when the first batch comes, and runs one batch at a time."""

    def __init__(
        self, data: bytes, image: Tensor, scores: Tensor, features: Tensor | None, extra: Tensor | None, threads: int
    ) -> None:
        self.data, self.image, self.threads = data, image, threads
        self.scores, self.features, self.extra = scores, features, extra
        self._one_at_a_time = Lock()
        self._interpreter = cache(self._made)

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        wanted = (self.scores, self.features if features else None, self.extra)
        there = [tensor for tensor in wanted if tensor is not None]
        with self._one_at_a_time:
            tensors = self._run(self._as_input(inputs), [tensor.place for tensor in there])
        rows = {one.place: _rows(one, values, len(inputs)) for one, values in zip(there, tensors, strict=True)}
        return Outputs(rows[self.scores.place], *(None if one is None else rows[one.place] for one in wanted[1:]))

    def _run(self, inputs: NDArray[Any], places: list[int]) -> list[NDArray[Any]]:
        """The tensors at these places, for one batch."""
        interpreter = self._interpreter(tuple(places))
        try:
            if interpreter.get_input_details()[0]["shape"].tolist() != list(inputs.shape):
                interpreter.resize_tensor_input(self.image.place, inputs.shape)
                interpreter.allocate_tensors()
            interpreter.set_tensor(self.image.place, inputs)
            interpreter.invoke()
            return [interpreter.get_tensor(place) for place in places]
        except (ValueError, RuntimeError) as problem:
            raise BadInput(f"LiteRT cannot run the model on inputs {inputs.shape}: {_told(problem)}") from problem

    def _made(self, shown: tuple[int, ...]) -> Interpreter:
        graph = read_graph(self.data)
        there = {tensor.place for tensor in graph.outputs}
        try:
            data = self.data if there.issuperset(shown) else with_outputs(self.data, shown)
            interpreter = Interpreter(model_content=data, num_threads=self.threads)
            interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as problem:
            raise BadInput(f"LiteRT cannot open the model: {_told(problem)}") from problem
        return interpreter

    def _as_input(self, inputs: Inputs) -> NDArray[Any]:
        if self.image.dtype is np.float32:
            return np.ascontiguousarray(inputs, np.float32)
        if inputs.dtype != np.uint8:
            return self.image.quantise(np.asarray(inputs, np.float32))
        return inputs if self.image.dtype is np.uint8 else (inputs.view(np.uint8) ^ np.uint8(128)).view(np.int8)


def _rows(tensor: Tensor, values: NDArray[Any], images: int) -> NDArray[np.float32]:
    """Real numbers in rows, (images, numbers)."""
    if values.ndim == 0 or (values.shape[0] != images and images != 1):
        raise BadInput(f"for {images} images the model gave shape {values.shape}; the first axis should be the images")
    return tensor.real(values).reshape(images, -1)


def _told(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0][:300]
