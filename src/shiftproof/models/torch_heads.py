"""The last linear layer of a torch module, found by watching what runs or by reading its graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from shiftproof.types import Head, Outputs


@dataclass(frozen=True)
class HeadLayer:
    """A layer to watch for features, and the weights that follow them, all by their names in the module."""

    layer: str
    weights: str
    bias: str | None

    def head_in(self, module: nn.Module) -> Head:
        """The head of the module in which it was found, or of one like it."""
        weights = _array(tensor_in(module, self.weights))
        bias = np.zeros(len(weights), np.float32) if self.bias is None else _array(tensor_in(module, self.bias))
        return Head(weights, bias)


def head_layer_of(module: nn.Module, run_example: Callable[[], Outputs]) -> HeadLayer | None:
    """The linear layer that ran last on an example, of those as wide as the scores: a rotation head may run after it."""
    if isinstance(module, fx.GraphModule):
        return _in_graph(module)
    ran: list[nn.Linear] = []
    layers = {layer: name for name, layer in module.named_modules() if isinstance(layer, nn.Linear)}
    hooks = [layer.register_forward_hook(lambda layer, _, __: ran.append(layer)) for layer in layers]
    classes = run_example().scores.shape[1]
    for hook in hooks:
        hook.remove()
    if not ran:
        return None
    last = next((layer for layer in reversed(ran) if layer.out_features == classes), ran[-1])
    name = layers[last]
    return HeadLayer(name, f"{name}.weight", None if last.bias is None else f"{name}.bias")


def _in_graph(module: fx.GraphModule) -> HeadLayer | None:
    """The last linear step of an exported graph; a layer that does nothing is put before it, to be watched."""
    linear = torch.ops.aten.linear.default
    steps = [node for node in module.graph.nodes if node.op == "call_function" and node.target == linear]
    if not steps:
        return None
    features, *stored = steps[-1].args
    names = [str(node.target) if isinstance(node, fx.Node) and node.op == "get_attr" else None for node in stored]
    if not isinstance(features, fx.Node) or names[0] is None:
        return None
    module.add_module("shown_features", nn.Identity())
    with module.graph.inserting_before(steps[-1]):
        steps[-1].replace_input_with(features, module.graph.call_module("shown_features", (features,)))
    module.recompile()
    return HeadLayer("shown_features", names[0], names[1] if len(names) > 1 else None)


def tensor_in(module: nn.Module, name: str) -> Tensor:
    """A parameter or buffer by its full name."""
    layer, _, own_name = name.rpartition(".")
    tensor = getattr(module.get_submodule(layer), own_name)
    assert isinstance(tensor, Tensor)  # noqa: S101 - the name was found in the module
    return tensor


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().float().cpu().numpy()
    return array
