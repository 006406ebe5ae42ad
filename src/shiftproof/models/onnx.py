"""Any classifier in an ONNX file, run by onnxruntime."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from functools import partial
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # comes without types

from shiftproof.class_lists import json_entries
from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier, check_size, model_ref
from shiftproof.models.onnx_graph import InputFacts, OnnxGraph, external_files, width_of, with_outputs
from shiftproof.models.onnx_heads import LastLayer, last_layer
from shiftproof.models.onnx_looks import looks_of
from shiftproof.models.onnx_redrawn import redraw_onnx
from shiftproof.models.onnx_session import OnnxSession
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.presets import PRESETS


def load_onnx(path: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier in an ONNX file."""
    options.refuse("weights", "precision", "channels_last", "version", what="an ONNX file")
    file = Path(path)
    model = _read(file)
    weights = _digest([file, *external_files(model, file.parent)])
    graph = OnnxGraph(model, file.parent)
    extra = _tensor(graph, options.extra_output, "extra numbers")
    facts, output = graph.input(), graph.scores(options.output, besides=extra)
    name = options.name or file.stem
    preparation, preparation_notes = _preparation(facts, options)
    check_size(preparation, facts.size, name)
    width = width_of(output)
    layer, layer_notes = _last_layer(graph, output.name, width, options)
    width = len(layer.head.bias) if width is None and layer.head is not None else width
    classes, class_notes = options.classes_of(width, _named_inside(model))
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
    shown = partial(with_outputs, file, [layer.features, extra])
    session = session_of(shown)
    looks = looks_of(graph, output.name, lambda: file, session_of, facts.batch_size)
    choices = {"features": layer.features, "output": output.name, "extra": extra}
    return LoadedClassifier(
        ref=model_ref(name, weights, preparation, gives=gives, **choices),
        preparation=preparation,
        gives=gives,
        answer=session,
        good_batch=session.good_batch,
        at_once=session.at_once,
        classes=classes,
        seen=options.seen_or(),
        notes=(*preparation_notes, *_own_normalisation(graph), *class_notes, *layer_notes),
        batch_size=facts.batch_size,
        has_features=layer.features is not None,
        read_head=lambda: layer.head,
        redraw=partial(redraw_onnx, shown, session_of, folder=file.parent, scores=output.name if layer.head else None),
        looks=looks,
        for_size=None if facts.size else lambda _: session,
    )


def _read(file: Path) -> onnx.ModelProto:
    if not file.is_file():
        raise BadInput(f"there is no file {file}")
    try:
        model = onnx.load(file, load_external_data=False)
    except DecodeError as problem:
        raise BadInput(f"{file} is not a whole ONNX file: {problem}") from problem
    if not model.graph.node:
        raise BadInput(f"{file} is not an ONNX file: it holds no graph")
    return model


def _preparation(facts: InputFacts, options: ModelOptions) -> tuple[ImagePreparation, tuple[str, ...]]:
    own = PRESETS["bytes"] if facts.dtype == "uint8" else None
    preparation, notes = options.preparation(own, size=facts.size)
    if facts.channels == 1 and preparation.channels != "grey":
        mean, std = preparation.mean[:1], preparation.std[:1]
        preparation = dataclasses.replace(preparation, channels="grey", mean=mean, std=std)
        notes = (*notes, "one input channel: images are turned grey")
    elif facts.channels not in {None, 1, 3}:
        raise BadInput(f"the model takes {facts.channels} channels; images have 3, or 1 when turned grey")
    return dataclasses.replace(preparation, layout=facts.layout, dtype=facts.dtype), notes


def _own_normalisation(graph: OnnxGraph) -> tuple[str, ...]:
    first = graph.first_arithmetic()
    if first is None:
        return ()
    return (f"the graph begins with {first}: it may normalise its input itself, and then wants --prepare unit or bytes",)


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


def _named_inside(model: onnx.ModelProto) -> list[str] | None:
    """Class names that the exporter left in the file, as a mapping from place to name."""
    text = next((entry.value for entry in model.metadata_props if entry.key in {"names", "classes", "labels"}), None)
    if text is None:
        return None
    try:
        return json_entries(json.loads(text), "the model's metadata")
    except json.JSONDecodeError:
        pass
    try:
        return json_entries(ast.literal_eval(text), "the model's metadata")
    except (ValueError, SyntaxError):
        return None


def _digest(files: list[Path]) -> str:
    total = hashlib.sha256()
    for file in files:
        with file.open("rb") as opened:
            total.update(hashlib.file_digest(opened, "sha256").digest())
    return total.hexdigest()
