"""An image encoder in an ONNX file with text embeddings as its last layer, run without torch."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from shiftproof.errors import BadInput
from shiftproof.models.classifiers.onnx import classifier_of, damage_told, read_onnx, weights_digest
from shiftproof.models.classifiers.onnx_graph import loaded, shape_of, width_of
from shiftproof.models.classifiers.zero_shot import load_text_matrix
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.options import ModelOptions, parse_preprocessing
from shiftproof.types import Head

OWN = "shiftproof."
"""Before the names of what is added to a graph."""


def load_encoder(file: Path, text: Path, options: ModelOptions) -> LoadedClassifier:
    """The zero-shot classifier of an image encoder and a file of text embeddings."""
    options.refuse("weights", "precision", "channels_last", "version", what="an image encoder in an ONNX file")
    matrix, encoder = load_text_matrix(text), read_onnx(file)
    with damage_told(encoder, file):
        head = matrix.head  # safetensors writes the same matrix as other bytes at times
        digest = hashlib.sha256(weights_digest(encoder, file).encode() + head.weights.tobytes() + head.bias.tobytes())
        data = with_text(encoder, head, options.output)
        own = None if matrix.preprocess is None else parse_preprocessing(matrix.preprocess)
        options = dataclasses.replace(options, output=None, gives=options.gives or matrix.gives)
        return classifier_of(loaded(data), file, lambda: data, digest.hexdigest(), options, own=own, classes=matrix.classes)


def with_text(encoder: onnx.ModelProto, head: Head, output: str | None = None) -> bytes:
    """The graph with its embeddings normalised and multiplied with those of the classes: its one output is ``logits``."""
    graph = encoder.graph
    flat = [value for value in graph.output if len(shape_of(value)) == 2 and output in (None, value.name)]
    if len(flat) != 1:
        names = ", ".join(value.name for value in graph.output)
        raise BadInput(f"which output holds the image embeddings, (images, features)? name one with --scores: {names}")
    if width_of(flat[0]) not in (None, head.weights.shape[1]):
        raise BadInput(
            f"the encoder gives {width_of(flat[0])} numbers an image, and text embeddings have {head.weights.shape[1]}"
        )
    taken = {name for node in graph.node for name in (*node.input, *node.output)}
    own = OWN  # with names of the encoder, and its output may be called logits too, the graph would be a circle
    while any(name.startswith(own) for name in taken):
        own += "again."
    logits = f"{own}logits" if "logits" in taken else "logits"
    nodes = [
        helper.make_node("Cast", [flat[0].name], [f"{own}single"], to=onnx.TensorProto.FLOAT),
        helper.make_node("LpNormalization", [f"{own}single"], [f"{own}features"], axis=1, p=2),
        helper.make_node("Gemm", [f"{own}features", f"{own}text", f"{own}bias"], [logits], transB=1),
    ]
    graph.node.extend(nodes)
    for name, values in (("text", head.weights), ("bias", head.bias)):
        graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), f"{own}{name}"))
    rows = shape_of(flat[0])[0]
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info(logits, onnx.TensorProto.FLOAT, [rows, len(head.bias)]))
    data: bytes = encoder.SerializeToString(deterministic=True)
    return data
