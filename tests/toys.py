"""Toys that several tests play with: three colours and what tells them apart, and a small transformer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from shiftproof.types import Inputs, Logits

COLOURS = {"blue": (30, 40, 220), "green": (30, 210, 40), "red": (220, 40, 30)}


def colour_scores(inputs: Inputs) -> Logits:
    """How blue, green and red each image is."""
    return np.asarray(20 * np.asarray(inputs, np.float32).mean(axis=(2, 3))[:, ::-1])


def save_colour_network(path: Path) -> None:
    """The same as an ONNX file: mean colour, channels turned round, through a linear layer."""
    weights = 20 * np.eye(3, dtype=np.float32)[::-1]
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["features"]),
        helper.make_node("Gemm", ["features", "weights", "bias"], ["scores"], transB=1),
    ]
    graph = helper.make_graph(
        nodes,
        "colours",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 3])],
        [numpy_helper.from_array(weights, "weights"), numpy_helper.from_array(np.zeros(3, np.float32), "bias")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def save_encoder(path: Path) -> None:
    """Mean colours through a stored matrix: an image encoder whose embeddings anybody can work out."""
    weights = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["colours"]),
        helper.make_node("MatMul", ["colours", "weights"], ["embeddings"]),
    ]
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 16, 16])],
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["batch", 4])],
        [numpy_helper.from_array(weights, "weights")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def small_transformer(folder: Path) -> Path:
    """A vision transformer with random weights, as transformers saves one."""
    import torch

    pytest.importorskip("transformers")
    from transformers import ViTConfig, ViTForImageClassification

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = ViTConfig(image_size=32, patch_size=8, id2label=dict(enumerate("abcde")), **sizes)
    ViTForImageClassification(config).save_pretrained(folder / "vit")
    settings = {"size": {"height": 32, "width": 32}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2}
    settings["image_processor_type"] = "ViTImageProcessor"
    (folder / "vit" / "preprocessor_config.json").write_text(json.dumps(settings))
    return folder / "vit"
