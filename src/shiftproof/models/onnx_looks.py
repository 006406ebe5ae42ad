"""Class activation maps of an ONNX graph: the tensor before its global pooling, for one class (Zhou et al., 2016)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from shiftproof.models.batches import in_batches
from shiftproof.models.looks import AskedClasses, HeatMaps, Look
from shiftproof.models.onnx_graph import ENDINGS, OnnxGraph, attributes, with_outputs
from shiftproof.models.onnx_heads import GLOBAL_POOLING, last_layer
from shiftproof.models.onnx_session import OnnxSession
from shiftproof.types import Inputs, Outputs

PLANES, PLANES_LAST = {2, 3}, {1, 2}
"""Axes that global pooling goes over where channels come before rows and columns, and where they come last."""


@dataclass(frozen=True)
class PooledTensor:
    """What a graph pools over all places, and what each class multiplies the pooled numbers with."""

    name: str
    weights: NDArray[np.float32] | None  # (classes, channels); None where every class has a channel of its own
    channels_last: bool = False

    def of_classes(self, activations: NDArray[np.floating], classes: AskedClasses) -> NDArray[np.floating]:
        """What each place adds to each class, (images, classes, rows, columns): its mean is the logit without its bias."""
        planes = activations.transpose(0, 3, 1, 2) if self.channels_last else activations
        if self.weights is None:
            return np.take_along_axis(planes, classes[:, :, None, None], axis=1)
        return np.asarray(np.einsum("ikc,icyx->ikyx", self.weights[classes], planes))


@dataclass(frozen=True)
class ClassActivation:
    """Looks through a session whose graph shows the pooled tensor beside the scores."""

    session: OnnxSession
    pooled: PooledTensor
    batch_size: int | None = None

    def __call__(self, inputs: Inputs, classes: AskedClasses) -> HeatMaps:
        def activations(batch: Inputs) -> Outputs:
            (tensor,) = self.session.tensors([self.pooled.name], batch)
            return Outputs(tensor.astype(np.float32, copy=False))

        shown = in_batches(activations, inputs, self.batch_size).scores
        return np.asarray(np.maximum(self.pooled.of_classes(shown, classes), 0))


def looks_of(
    graph: OnnxGraph,
    scores: str,
    source: Callable[[], Path | bytes],
    session_of: Callable[[Callable[[], Path | bytes]], OnnxSession],
    batch_size: int | None = None,
) -> dict[str, Look]:
    """Class activation, where the graph allows it; its source is opened again when it is first looked through."""
    pooled = pooled_tensor(graph, scores)
    if pooled is None:
        return {}
    session = session_of(lambda: with_outputs(source(), [pooled.name]))
    return {"class-activation": ClassActivation(session, pooled, batch_size)}


def pooled_tensor(graph: OnnxGraph, scores: str) -> PooledTensor | None:
    """What is pooled just before the last linear layer, or before the scores themselves; None where neither is pooled."""
    layer = last_layer(graph, scores)
    pooling = graph.source(scores if layer.features is None else layer.features)
    if layer.features is None and pooling is not None and pooling.op_type in ENDINGS:
        pooling = graph.source(pooling.input[0])
    axes = set() if pooling is None else _axes(graph, pooling)
    if pooling is None or axes not in (PLANES, PLANES_LAST):
        return None
    weights = None if layer.head is None else np.asarray(layer.head.weights, np.float32)
    return PooledTensor(pooling.input[0], weights, channels_last=axes == PLANES_LAST)


def _axes(graph: OnnxGraph, node: onnx.NodeProto) -> set[int]:
    """The axes of (images, ...) that a node takes the mean over; none where it is no global pooling."""
    if node.op_type not in GLOBAL_POOLING:
        return set()
    if node.op_type == "GlobalAveragePool":
        return PLANES
    stored = graph.constant(node.input[1]) if len(node.input) > 1 else attributes(node).get("axes")
    return set() if stored is None else {int(axis) % 4 for axis in stored}
