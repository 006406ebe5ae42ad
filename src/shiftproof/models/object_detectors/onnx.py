"""Any object detector in an ONNX file, run by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from shiftproof.models.classifiers.onnx import class_names_in, damage_told, own_provider, read_onnx, weights_digest
from shiftproof.models.classifiers.onnx_graph import OnnxGraph
from shiftproof.models.classifiers.onnx_session import OnnxSession
from shiftproof.models.input_facts import preprocessing_for
from shiftproof.models.loaded import check_size, model_ref
from shiftproof.models.object_detectors.box_layouts import (
    Decode,
    Shape,
    class_count,
    classes_of_boxes,
    layout_among,
    layout_of,
    rules_of_boxes,
    usual_preprocessing,
)
from shiftproof.models.object_detectors.loaded import Candidates, LoadedDetector, batch_shape
from shiftproof.models.options import ModelOptions
from shiftproof.models.preprocessing import Layout
from shiftproof.types import Inputs


def load_onnx_detector(path: str, options: ModelOptions) -> LoadedDetector:
    """The object detector in an ONNX file."""
    options.refuse("weights", "precision", "version", what="an ONNX file")
    file = Path(path)
    model = read_onnx(file)
    with damage_told(model, file):
        return _detector(model, file, options)


def _detector(model: onnx.ModelProto, file: Path, options: ModelOptions) -> LoadedDetector:
    graph = OnnxGraph(model, file.parent)
    facts, shapes = graph.input(), graph.output_shapes()
    name = options.name or file.stem
    layout, layout_notes = layout_among(options, shapes, graph.box_layout())
    own, own_notes = usual_preprocessing(options, layout)
    preprocessing, preprocessing_notes = preprocessing_for(facts, options, own)
    check_size(preprocessing, facts.size, name)
    classes, class_notes = classes_of_boxes(
        options, class_count(layout, shapes), None if options.classes else class_names_in(model)
    )
    session = OnnxSession(
        lambda: file,
        input_name=facts.name,
        scores=next(iter(shapes)),
        input_type=facts.dtype,
        device=options.device,
        threads=options.threads,
        data_folder=file.parent.resolve(),
    )
    rules = rules_of_boxes(options, layout)
    provider, provider_notes = own_provider(graph, session)
    return LoadedDetector(
        ref=model_ref(name, weights_digest(model, file), preprocessing, boxes=layout, rules=str(rules), provider=provider),
        preprocessing=preprocessing,
        propose=OnnxBoxes(session, tuple(shapes), layout_of(layout).decode, preprocessing.layout),
        rules=rules,
        classes=classes,
        seen=options.seen_or(),
        notes=(*layout_notes, *own_notes, *preprocessing_notes, *class_notes, *provider_notes),
        fixed_batch_size=1 if _lists_one_image(shapes) or graph.quantises_by_batch() else facts.batch_size,
        default_batch_size=session.default_batch_size,
        concurrent_batches=session.concurrent_batches,
    )


@dataclass(frozen=True)
class OnnxBoxes:
    """Proposes what the outputs of a session say in their layout."""

    session: OnnxSession
    outputs: Sequence[str]
    decode: Decode
    layout: Layout

    def __call__(self, inputs: Inputs) -> Sequence[Candidates]:
        tensors = self.session.tensors(self.outputs, inputs)
        return self.decode(dict(zip(self.outputs, tensors, strict=True)), batch_shape(inputs, self.layout))


def _lists_one_image(shapes: dict[str, Shape]) -> bool:
    """Whether boxes, (boxes, 4), come without an axis of images."""
    return any(len(shape) == 2 and shape[1] == 4 for shape in shapes.values())
