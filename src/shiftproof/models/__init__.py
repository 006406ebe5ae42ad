"""Models by name: whatever answers images with class scores, or with boxes, each behind one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shiftproof.catalog import MODELS, OBJECT_DETECTORS
from shiftproof.class_lists import ClassList
from shiftproof.errors import BadInput
from shiftproof.models.odin import perturbed_by_odin
from shiftproof.models.options import OF_BOXES, OF_PROPOSALS, Fill, ModelOptions, ProposalAnswer
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.presets import PRESETS, parse_preparation
from shiftproof.models.redrawn import redrawn
from shiftproof.models.turned import shown_turned
from shiftproof.models.wrapped import wrap_model
from shiftproof.models.wrapped_detector import wrap_detector
from shiftproof.registry import Registry, missing_extra
from shiftproof.types import Classifier, Gives, ObjectDetector, Seen

__all__ = [
    "PRESETS",
    "ImagePreparation",
    "ModelOptions",
    "detector_with",
    "load_detector",
    "load_model",
    "load_with",
    "parse_preparation",
    "perturbed_by_odin",
    "redrawn",
    "shown_turned",
    "wrap_detector",
    "wrap_model",
]

GO_BY_BOXES = ("boxes", "proposals")
"""Kinds of classifiers that ask an object detector."""

FILE_KINDS = {".onnx": "onnx", ".pt": "torch", ".pth": "torch", ".pt2": "torch", ".ts": "torch"}
"""Which kind of model a bare path is."""


def load_model(
    spec: str,
    *,
    name: str | None = None,
    prepare: str | ImagePreparation | None = None,
    classes: ClassList | None = None,
    gives: Gives | None = None,
    features: str | None = None,
    output: str | None = None,
    extra_output: str | None = None,
    turned: bool = False,
    weights: str | None = None,
    trust: bool = False,
    device: str | None = None,
    precision: str = "float32",
    channels_last: bool = False,
    threads: int | None = None,
    version: str | None = None,
    seen: Seen | str | None = None,
    boxes: str | None = None,
    least_score: float | None = None,
    overlap: float | None = None,
    most_boxes: int | None = None,
    fill: Fill | None = None,
    fill_seed: int = 0,
    proposals: str | None = None,
    most_proposals: int | None = None,
    least_side: int | None = None,
    proposal_answer: ProposalAnswer | None = None,
) -> Classifier:
    """The classifier that a text like ``lite:0``, ``onnx:model.onnx`` or ``torch:module:factory`` names.

    What is not given is taken from the model itself, or assumed and said in its `notes`. `extra_output` names a few more
    numbers to keep of each image, such as a confidence branch; with `turned` it is a rotation head, which is shown every
    image in four turns. Of ``boxes:`` and ``proposals:``, which go by the boxes of a detector, `boxes` is the layout of its
    outputs. A TorchScript file or an exported program can run any code when it is opened, and is opened only with `trust`.
    Nothing heavy happens before the first batch is asked.
    """
    options = ModelOptions(
        name=name,
        prepare=prepare,
        classes=classes,
        gives=gives,
        features=features,
        output=output,
        extra_output=extra_output,
        turned=turned,
        weights=weights,
        trust=trust,
        device=device,
        precision=precision,
        channels_last=channels_last,
        threads=threads,
        version=version,
        seen=seen,
        boxes=boxes,
        least_score=least_score,
        overlap=overlap,
        most_boxes=most_boxes,
        fill=fill,
        fill_seed=fill_seed,
        proposals=proposals,
        most_proposals=most_proposals,
        least_side=least_side,
        proposal_answer=proposal_answer,
    )
    return load_with(spec, options)


def load_with(spec: str, options: ModelOptions) -> Classifier:
    """The classifier that a text names, as the options say."""
    kind, rest = _kind_and_rest(spec, MODELS)
    if kind not in GO_BY_BOXES:
        options.refuse(*OF_BOXES, "fill", "fill_seed", *OF_PROPOSALS, what=f"{spec} as a classifier")
    else:
        options.refuse("turned", what=f"{kind}:{rest}")
    model: Classifier = _loaded(MODELS, kind, rest, options)
    return shown_turned(model) if options.turned else model


def load_detector(
    spec: str,
    *,
    layout: str | None = None,
    least_score: float | None = None,
    overlap: float | None = None,
    most: int | None = None,
    several: bool | None = None,
    name: str | None = None,
    prepare: str | ImagePreparation | None = None,
    classes: ClassList | None = None,
    weights: str | None = None,
    trust: bool = False,
    device: str | None = None,
    precision: str = "float32",
    threads: int | None = None,
    version: str | None = None,
    seen: Seen | str | None = None,
) -> ObjectDetector:
    """The object detector that a text like ``onnx:yolox.onnx``, ``torch:module:factory`` or ``results:found.json`` names.

    `layout` says how its outputs hold boxes; where their shapes tell, it may be left out. Boxes under `least_score` (0.01)
    are dropped, of two of a class that share more than `overlap` the less sure one, and all but the `most` (100) surest of
    an image. With `several` a box counts for every class it is sure enough of. What is not given is as usual for the layout.
    `trust` is as for `load_model`.
    """
    options = ModelOptions(
        name=name,
        prepare=prepare,
        classes=classes,
        weights=weights,
        trust=trust,
        device=device,
        precision=precision,
        threads=threads,
        version=version,
        seen=seen,
        boxes=layout,
        least_score=least_score,
        overlap=overlap,
        most_boxes=most,
        several=several,
    )
    return detector_with(spec, options)


def detector_with(spec: str, options: ModelOptions) -> ObjectDetector:
    """The object detector that a text names, as the options say."""
    kind, rest = _kind_and_rest(spec, OBJECT_DETECTORS)
    detector: ObjectDetector = _loaded(OBJECT_DETECTORS, kind, rest, options)
    return detector


def _loaded(registry: Registry, kind: str, rest: str, options: ModelOptions) -> Any:
    load = registry.load(kind)
    try:
        return load(rest, options)
    except ModuleNotFoundError as missing:
        raise missing_extra(f"{registry.kind} '{kind}:{rest}'", missing) from missing


def _kind_and_rest(spec: str, registry: Registry) -> tuple[str, str]:
    kind, colon, rest = spec.partition(":")
    # a single letter before the colon is a drive
    if colon and len(kind) > 1:
        return kind, rest
    if Path(spec).suffix.lower() in FILE_KINDS:
        return FILE_KINDS[Path(spec).suffix.lower()], spec
    if spec in registry:
        raise BadInput(f"{spec!r} names a kind of {registry.kind}; say which one, as in {spec}:...")
    examples = "lite:0, onnx:FILE, torch:MODULE:FACTORY" if registry is MODELS else "onnx:FILE, torch:MODULE:FACTORY"
    raise BadInput(f"no {registry.kind} called {spec!r}; say {examples} or one of {', '.join(registry)}:NAME")
