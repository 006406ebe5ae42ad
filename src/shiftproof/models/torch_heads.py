"""The last linear layer of a torch module, found by watching what runs or by reading its graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from shiftproof.types import Head


@dataclass(frozen=True)
class HeadLayer:
    """A layer to watch for features, and the weights that follow them."""

    layer: nn.Module
    head: Head


def head_layer_of(module: nn.Module, run_example: Callable[[], object]) -> HeadLayer | None:
    """The linear layer that ran last on an example."""
    if isinstance(module, fx.GraphModule):
        return _in_graph(module)
    ran: list[nn.Linear] = []
    layers = [layer for layer in module.modules() if isinstance(layer, nn.Linear)]
    hooks = [layer.register_forward_hook(lambda layer, _, __: ran.append(layer)) for layer in layers]
    run_example()
    for hook in hooks:
        hook.remove()
    return HeadLayer(ran[-1], _head(ran[-1].weight, ran[-1].bias)) if ran else None


def _in_graph(module: fx.GraphModule) -> HeadLayer | None:
    """The last linear step of an exported graph; a layer that does nothing is put before it, to be watched."""
    linear = torch.ops.aten.linear.default
    steps = [node for node in module.graph.nodes if node.op == "call_function" and node.target == linear]
    if not steps:
        return None
    features, *stored = steps[-1].args
    tensors = [_stored(module, node) for node in stored]
    if not isinstance(features, fx.Node) or tensors[0] is None:
        return None
    shown = nn.Identity()
    module.add_module("shown_features", shown)
    with module.graph.inserting_before(steps[-1]):
        steps[-1].replace_input_with(features, module.graph.call_module("shown_features", (features,)))
    module.recompile()
    return HeadLayer(shown, _head(tensors[0], tensors[1] if len(tensors) > 1 else None))


def _stored(module: fx.GraphModule, node: Any) -> Tensor | None:
    if not isinstance(node, fx.Node) or node.op != "get_attr":
        return None
    value: Any = module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value if isinstance(value, Tensor) else None


def _head(weights: Tensor, bias: Tensor | None) -> Head:
    return Head(_array(weights), np.zeros(len(weights), np.float32) if bias is None else _array(bias))


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array
