"""Models by name: classifiers and object detectors, each behind one call."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

from shiftproof.catalog import MODELS, OBJECT_DETECTORS
from shiftproof.datasets.classes import ClassList
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.classifiers.zero_shot import OPTIONS as OF_ZERO_SHOT
from shiftproof.models.companions import perturbed_by_odin, random_network, with_rotations
from shiftproof.models.file_kinds import FILE_KINDS, recognised, refuse_unopened
from shiftproof.models.kind import kind_of, model_kind
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import (
    BOX_OPTIONS,
    PRESETS,
    PROPOSAL_OPTIONS,
    Fill,
    ModelOptions,
    ProposalOutput,
    parse_preprocessing,
)
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.models.wrapped import wrap_detector, wrap_model
from shiftproof.registry import Registry
from shiftproof.types import Classifier, Gives, ObjectDetector, Seen

__all__ = [
    "PRESETS",
    "ImagePreprocessing",
    "ModelOptions",
    "detector_with",
    "load_detector",
    "load_model",
    "load_with",
    "model_kind",
    "names_detector",
    "parse_preprocessing",
    "perturbed_by_odin",
    "random_network",
    "with_rotations",
    "wrap_detector",
    "wrap_model",
]


def load_model(
    spec: str,
    *,
    name: str | None = None,
    preprocess: str | ImagePreprocessing | None = None,
    classes: ClassList | None = None,
    gives: Gives | None = None,
    features: str | None = None,
    output: str | None = None,
    extra_output: str | None = None,
    rotated: bool = False,
    weights: str | None = None,
    trust: bool = False,
    device: str | None = None,
    precision: str = "float32",
    channels_last: bool | None = None,
    threads: int | None = None,
    version: str | None = None,
    seen: Seen | str | None = None,
    boxes: str | None = None,
    score_threshold: float | None = None,
    nms_iou: float | None = None,
    max_detections: int | None = None,
    fill: Fill | None = None,
    fill_seed: int = 0,
    proposals: str | None = None,
    max_proposals: int | None = None,
    min_side: int | None = None,
    proposal_output: ProposalOutput | None = None,
    adapt: str | None = None,
) -> Classifier:
    """The classifier that a text like ``lite:0``, ``onnx:model.onnx`` or ``torch:module:factory`` names.

    What is not given is taken from the model itself, or assumed and said in its `notes`. `extra_output` names a few more
    numbers to keep of each image, such as a confidence branch; with `rotated` it is a rotation head, which is run
    on every image in four rotations. Of ``boxes:`` and ``proposals:``, which go by the boxes of a detector, `boxes` is the
    layout of its outputs. A TorchScript file or an exported program can run any code when it is opened, and is opened only
    with `trust`. `adapt` is a recipe of test time, such as ``tta``. Nothing heavy happens before the first batch.
    """
    options = ModelOptions(
        name=name,
        preprocess=preprocess,
        classes=classes,
        gives=gives,
        features=features,
        output=output,
        extra_output=extra_output,
        rotated=rotated,
        weights=weights,
        trust=trust,
        device=device,
        precision=precision,
        channels_last=channels_last,
        threads=threads,
        version=version,
        seen=seen,
        boxes=boxes,
        score_threshold=score_threshold,
        nms_iou=nms_iou,
        max_detections=max_detections,
        fill=fill,
        fill_seed=fill_seed,
        proposals=proposals,
        max_proposals=max_proposals,
        min_side=min_side,
        proposal_output=proposal_output,
        adapt=adapt,
    )
    return load_with(spec, options)


ADAPTED = "adapted:"
"""Before the spec of a model that a recipe of test time changes."""


def load_with(spec: str, options: ModelOptions) -> Classifier:
    """The classifier that a text names, as the options say."""
    if options.adapt is not None and not spec.startswith(ADAPTED):
        spec = f"{ADAPTED}{spec}"
    kind, rest, note = _recognised(spec, MODELS)
    if not kind_of(kind).goes_by_boxes:
        options.refuse(*BOX_OPTIONS, "fill", "fill_seed", *PROPOSAL_OPTIONS, what=f"{spec} as a classifier")
    else:
        options.refuse("rotated", what=f"{kind}:{rest}")
    model: Classifier = _loaded(MODELS, kind, rest, options)
    if note and isinstance(model, LoadedClassifier):
        model = dataclasses.replace(model, notes=(note, *model.notes))
    return with_rotations(model) if options.rotated else model


def runs_code(spec: str) -> bool:
    """Whether opening the classifier that a spec names may run code of whoever made it.

    >>> runs_code("lite:0"), runs_code("model.tflite"), runs_code("torch:nets.py:make")
    (False, False, True)
    """
    kind, _, _ = _recognised(spec, MODELS)
    return not kind_of(kind).is_data


def names_detector(spec: str, *, boxes: bool) -> bool:
    """Whether a spec names an object detector: by its kind, as the folder of one that was trained, or, where the layout of
    its `boxes` is told, unless it is a kind of classifier that goes by boxes.

    >>> names_detector("results:found.json", boxes=False), names_detector("onnx:m.onnx", boxes=False)
    (True, False)
    """
    kind, _, _ = spec.partition(":")
    if kind not in MODELS:
        folder = recognised(spec) if Path(spec, "training.json").is_file() else None
        return boxes or kind in OBJECT_DETECTORS or (folder is not None and folder.finds_boxes)
    return boxes and not kind_of(kind).goes_by_boxes


def load_detector(
    spec: str,
    *,
    layout: str | None = None,
    score_threshold: float | None = None,
    nms_iou: float | None = None,
    max_detections: int | None = None,
    several: bool | None = None,
    name: str | None = None,
    preprocess: str | ImagePreprocessing | None = None,
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

    `layout` says how its outputs hold boxes; where their shapes tell, it may be left out. `score_threshold` (0.01) is the
    minimum score of a box, `nms_iou` the IoU threshold for non-maximum suppression, `max_detections` (100) how many boxes
    of an image are kept. With `several` a box counts for every class above the threshold.
    What is not given is as usual for the layout.
    `trust` is as for `load_model`.
    """
    options = ModelOptions(
        name=name,
        preprocess=preprocess,
        classes=classes,
        weights=weights,
        trust=trust,
        device=device,
        precision=precision,
        threads=threads,
        version=version,
        seen=seen,
        boxes=layout,
        score_threshold=score_threshold,
        nms_iou=nms_iou,
        max_detections=max_detections,
        several=several,
    )
    return detector_with(spec, options)


def detector_with(spec: str, options: ModelOptions) -> ObjectDetector:
    """The object detector that a text names, as the options say."""
    kind, rest, _ = _recognised(spec, OBJECT_DETECTORS)
    detector: ObjectDetector = _loaded(OBJECT_DETECTORS, kind, rest, options)
    return detector


def _loaded(registry: Registry, kind: str, rest: str, options: ModelOptions) -> Any:
    load = registry.load(kind)
    try:
        return load(rest, options)
    except ModuleNotFoundError as missing:
        raise registry.missing_extra(kind, missing, f"{registry.kind} '{kind}:{rest}'") from missing


UNTRAINED = "scratch"
"""The kind of networks that are no models yet, see `shiftproof.training.networks.modules`."""


def _recognised(spec: str, registry: Registry) -> tuple[str, str, str]:
    """The kind of a model, what follows its colon, and a note where the kind was found out rather than said."""
    kind, colon, rest = spec.partition(":")
    if kind == UNTRAINED and colon and kind not in registry:
        raise BadInput(
            f"{spec} is a network without weights, with which only the training of whole networks begins: "
            f"shiftproof train {spec} DATASET --level network"
        )
    # a single letter before the colon is a drive
    if colon and len(kind) > 1:
        if kind not in registry or kind in FILE_KINDS.values():
            refuse_unopened(rest)
        return kind, rest, ""
    if spec in registry:
        raise BadInput(f"{spec!r} names a kind of {registry.kind}; say which one, as in {spec}:...")
    if found := recognised(spec):
        return found.kind, spec, found.note
    examples = "lite:0, onnx:FILE, torch:MODULE:FACTORY" if registry is MODELS else "onnx:FILE, torch:MODULE:FACTORY"
    raise BadInput(f"no {registry.kind} called {spec!r}; say {examples} or one of {', '.join(registry)}:NAME")


OPTIONS = {
    **dict.fromkeys(["name", "preprocess", "classes", "gives", "weights", "device", "features", "boxes", "proposals"], str),
    "proposal_output": str,
    "scores": str,
    **dict.fromkeys(["threads", "max_proposals", "min_side"], int),
}
"""What may follow a model's name, as the options of the command call it, and what it is read as."""


def load_spelled(text: str, **others: Any) -> Classifier:
    """The model of a text like ``onnx:model.onnx?preprocess=imagenet,size=244&name=small``; `others` are defaults.

    >>> load_spelled("lite:0?name=small").ref.name
    'small'
    """
    spec, said = spelled_options(text)
    if "scores" in said:
        said["output"] = said.pop("scores")
    return load_model(spec, **{**others, **said})


def spelled_options(text: str) -> tuple[str, dict[str, Any]]:
    """The model and its options.

    >>> spelled_options("onnx:model.onnx?preprocess=imagenet,size=244&threads=1")
    ('onnx:model.onnx', {'preprocess': 'imagenet,size=244', 'threads': 1})
    """
    spec, _, query = text.rpartition("?")
    if not spec or re.match(r"\w+=", query) is None:
        return text, {}
    said: dict[str, Any] = {}
    own = [part for part in query.split("&") if spec.startswith("clip:") and part.partition("=")[0] in OF_ZERO_SHOT]
    for part in (part for part in query.split("&") if part not in own):
        option, _, value = part.partition("=")
        if option not in OPTIONS:
            raise UnknownName("option of a model", option, OPTIONS)
        try:
            said[option] = OPTIONS[option](value)
        except ValueError:
            raise BadInput(f"{option} of {spec} should be a whole number, got {value!r}") from None
    return f"{spec}?{'&'.join(own)}" if own else spec, said
