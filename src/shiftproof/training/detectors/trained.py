"""Folders of trained object detectors as what they are: an object detector, or a proposer of regions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from shiftproof.catalog import OBJECT_DETECTORS
from shiftproof.errors import BadInput
from shiftproof.models.object_detectors.box_layouts import RawOutputs
from shiftproof.models.object_detectors.loaded import BatchShape, Candidates, LoadedDetector
from shiftproof.models.options import ModelOptions
from shiftproof.training.trained import GRAPH, OpenedTraining, open_training
from shiftproof.types import Classes, ModelRef, fingerprint_of

PROPOSALS = ("proposals", "objectness")
"""Outputs of a graph that hold region proposals."""

PROPOSED = Classes(("object",))


def load_trained_detector(path: str, options: ModelOptions) -> LoadedDetector:
    """An object detector that shiftproof train made, by its folder."""
    return _loaded(_opened(path), options)


def load_region_proposals(path: str, options: ModelOptions) -> LoadedDetector:
    """The region proposal network of a Faster R-CNN that shiftproof train made: objects of any class, by objectness."""
    opened = _opened(path)
    if not {*PROPOSALS} <= {*opened.found.record.outputs}:
        raise BadInput(f"{path} proposes no regions, as {opened.found.record.source.spec} does not; Faster R-CNN does")
    options.refuse("classes", what=f"rpn:{path}, whose one class is any object,")
    model = _loaded(opened, options)
    graph: Any = model.propose  # of ONNX
    return dataclasses.replace(
        model,
        ref=ModelRef(options.name or f"{model.ref.name}, region proposals", fingerprint_of(model.ref.fingerprint, "rpn")),
        propose=dataclasses.replace(graph, outputs=PROPOSALS, decode=regions),
        classes=PROPOSED,
    )


def regions(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:  # noqa: ARG001 a layout
    """Region proposals of one image, of one class."""
    boxes, objectness = (np.asarray(outputs[name], float) for name in PROPOSALS)
    return [Candidates(boxes, objectness, np.zeros(len(boxes), int))]


def _opened(path: str) -> OpenedTraining:
    opened = open_training(path)
    if not opened.found.record.finds_boxes:
        raise BadInput(f"{path} holds a classifier, and no object detector; the recipe boxes trains one")
    return opened


def _loaded(opened: OpenedTraining, options: ModelOptions) -> LoadedDetector:
    options.refuse("boxes", what=f"a trained model such as {opened.found.folder}")
    record = opened.found.record
    said = dataclasses.replace(
        options,
        name=options.name or opened.name,
        preprocess=options.preprocess or record.preprocessing,
        classes=options.classes or record.classes,
        boxes="end2end",
        seen=options.seen or record.seen,
    )
    model: LoadedDetector = OBJECT_DETECTORS.load("onnx")(str(opened.found.folder / GRAPH), said)
    return dataclasses.replace(model, notes=(*opened.notes, *model.notes))
