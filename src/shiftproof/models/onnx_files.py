"""ONNX files as such: read, told apart by their weights, and what is in them beside the graph."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # comes without types

from shiftproof.class_lists import json_entries
from shiftproof.errors import BadInput
from shiftproof.files import readable_file
from shiftproof.models.onnx_graph import InputFacts, external_files, loaded
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.presets import PRESETS


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
    graph = model.graph
    named = [value.name for part in (graph.input, graph.output, graph.initializer) for value in part]
    named += [name for node in graph.node for name in (node.op_type, *node.input, *node.output)]
    if not all(isinstance(name, str) for name in named):  # text that is not UTF-8 comes as bytes
        raise BadInput(f"{file} is damaged: names in its graph are not text")
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


def preparation_for(
    facts: InputFacts, options: ModelOptions, own: ImagePreparation | None = None
) -> tuple[ImagePreparation, tuple[str, ...]]:
    """How images become what the graph takes, by the user's word or `own`, and what there is to say about it."""
    own = PRESETS["bytes"] if own is None and facts.dtype == "uint8" else own
    preparation, notes = options.preparation(own, size=facts.size)
    if facts.channels == 1 and preparation.channels != "grey":
        mean, std = preparation.mean[:1], preparation.std[:1]
        preparation = dataclasses.replace(preparation, channels="grey", mean=mean, std=std)
        notes = (*notes, "one input channel: images are turned grey")
    elif facts.channels not in {None, 1, 3}:
        raise BadInput(f"the model takes {facts.channels} channels; images have 3, or 1 when turned grey")
    return dataclasses.replace(preparation, layout=facts.layout, dtype=facts.dtype), notes


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
