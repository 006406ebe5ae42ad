"""Models by name: whatever answers images with class scores, behind one call."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shiftproof.catalog import MODELS
from shiftproof.class_lists import ClassList
from shiftproof.errors import BadInput
from shiftproof.models.odin import perturbed_by_odin
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.presets import PRESETS, parse_preparation
from shiftproof.models.redrawn import redrawn
from shiftproof.models.wrapped import wrap_model
from shiftproof.registry import missing_extra
from shiftproof.types import Classifier, Gives, Seen

__all__ = [
    "PRESETS",
    "ImagePreparation",
    "ModelOptions",
    "load_model",
    "parse_preparation",
    "perturbed_by_odin",
    "redrawn",
    "wrap_model",
]

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
    weights: str | None = None,
    device: str | None = None,
    precision: str = "float32",
    channels_last: bool = False,
    threads: int | None = None,
    version: str | None = None,
    seen: Seen | str | None = None,
) -> Classifier:
    """The classifier that a text like ``lite:0``, ``onnx:model.onnx`` or ``torch:module:factory`` names.

    What is not given is taken from the model itself, or assumed and said in its `notes`. `extra_output` names a few more
    numbers to keep of each image, such as a confidence branch. Nothing heavy happens before the first batch is asked.
    """
    options = ModelOptions(
        name=name,
        prepare=prepare,
        classes=classes,
        gives=gives,
        features=features,
        output=output,
        extra_output=extra_output,
        weights=weights,
        device=device,
        precision=precision,
        channels_last=channels_last,
        threads=threads,
        version=version,
        seen=seen,
    )
    kind, rest = _kind_and_rest(spec)
    load: Any = MODELS.load(kind)
    try:
        model: Classifier = load(rest, options)
    except ModuleNotFoundError as missing:
        raise missing_extra(f"model {spec!r}", missing) from missing
    return model


def _kind_and_rest(spec: str) -> tuple[str, str]:
    kind, colon, rest = spec.partition(":")
    # a single letter before the colon is a drive
    if colon and len(kind) > 1:
        return kind, rest
    if Path(spec).suffix.lower() in FILE_KINDS:
        return FILE_KINDS[Path(spec).suffix.lower()], spec
    if spec in MODELS:
        raise BadInput(f"{spec!r} names a kind of model; say which one, as in {spec}:...")
    raise BadInput(
        f"no model called {spec!r}; say lite:0, onnx:FILE, torch:MODULE:FACTORY or one of {', '.join(MODELS)}:NAME"
    )
