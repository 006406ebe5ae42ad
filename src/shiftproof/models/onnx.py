"""Any classifier in an ONNX file, run by onnxruntime."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import onnx

from shiftproof.errors import BadInput
from shiftproof.models.loaded import LoadedClassifier, check_size, model_ref
from shiftproof.models.onnx_files import class_names_in, damage_told, preparation_for, read_onnx, weights_digest
from shiftproof.models.onnx_graph import OnnxGraph, width_of, with_outputs
from shiftproof.models.onnx_heads import LastLayer, last_layer
from shiftproof.models.onnx_looks import looks_of
from shiftproof.models.onnx_redrawn import redraw_onnx
from shiftproof.models.onnx_session import OnnxSession
from shiftproof.models.options import ModelOptions


def load_onnx(path: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier in an ONNX file."""
    options.refuse("weights", "precision", "channels_last", "version", what="an ONNX file")
    file = Path(path)
    model = read_onnx(file)
    with damage_told(model, file):
        return _classifier(model, file, options)


def _classifier(model: onnx.ModelProto, file: Path, options: ModelOptions) -> LoadedClassifier:
    weights = weights_digest(model, file)
    graph = OnnxGraph(model, file.parent)
    extra = _tensor(graph, options.extra_output, "extra numbers")
    facts, output = graph.input(), graph.scores(options.output, besides=extra)
    name = options.name or file.stem
    preparation, preparation_notes = preparation_for(facts, options)
    check_size(preparation, facts.size, name)
    width = width_of(output)
    layer, layer_notes = _last_layer(graph, output.name, width, options)
    width = len(layer.head.bias) if width is None and layer.head is not None else width
    classes, class_notes = options.classes_of(width, None if options.classes else class_names_in(model))
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
        rounded=graph.rounds_its_scores(output.name),
        has_features=layer.features is not None,
        read_head=lambda: layer.head,
        redraw=partial(redraw_onnx, shown, session_of, folder=file.parent, scores=output.name if layer.head else None),
        looks=looks,
        for_size=None if facts.size else lambda _: session,
    )


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
