"""torch modules with freshly drawn weights, layer by layer or, in exported programs, step by step of their graph."""

from __future__ import annotations

import copy
import dataclasses
import warnings
from collections.abc import Iterator, Mapping
from itertools import chain

import torch
from torch import fx, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from shiftproof.errors import BadInput, listed
from shiftproof.models.drawing import Draw, Fans, Fresh, Recipe, fans_of_convolution
from shiftproof.models.torch_heads import HeadLayer, tensor_in
from shiftproof.models.torch_network import TorchNetwork

FRESH_NORM: Mapping[str, Recipe] = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
OTHER_SPREAD = 0.02
"""Of tokens, positions and whatever else belongs to no known layer, as vision transformers start them."""


def redraw_torch(network: TorchNetwork, head: HeadLayer | None, draw: Draw) -> Fresh:
    """The network with weights drawn anew in a copy of its module; the module itself stays as it is."""
    if isinstance(network.module, torch.jit.ScriptModule):
        raise BadInput("TorchScript hides its layers, so they cannot be drawn anew; load the module by torch:MODULE:FACTORY")
    module = _copy(network.module)
    others = redraw(module, draw)
    note = f"drawn with a spread of {OTHER_SPREAD}, being of no layer that is known here: {listed(others, 3)}"
    return Fresh(
        answer=dataclasses.replace(network, module=module),
        read_head=lambda: None if head is None else head.head_in(module),
        notes=(note,) if others else (),
    )


def _copy(module: nn.Module) -> nn.Module:
    try:
        with warnings.catch_warnings():
            # torch copies its exported graphs in a way that it advises others against
            warnings.simplefilter("ignore", FutureWarning)
            return copy.deepcopy(module)
    except (RuntimeError, TypeError) as problem:
        raise BadInput(f"the module cannot be copied to draw its weights anew: {problem}") from problem


@torch.no_grad()
def redraw(module: nn.Module, draw: Draw) -> list[str]:
    """Draws the parameters of a module anew, in place; the names of those that belong to no known layer."""
    recipes = dict(_in_graph(module) if isinstance(module, fx.GraphModule) else _in_layers(module))
    if not any(isinstance(recipe, Fans) for recipe in recipes.values()):
        raise BadInput("the module has no convolution or linear layer whose weights could be drawn anew")
    others = []
    for name, tensor in chain(module.named_parameters(), module.named_buffers()):
        if name in recipes:
            values = draw.made(name, tensor.shape, recipes[name])
        elif isinstance(tensor, nn.Parameter) and tensor.is_floating_point():
            values = draw.normal(name, tensor.shape, OTHER_SPREAD)
            others.append(name)
        else:
            continue
        tensor.copy_(torch.from_numpy(values))
    return others


def _in_layers(module: nn.Module) -> Iterator[tuple[str, Recipe]]:
    for layer_name, layer in module.named_modules():
        for name, recipe in _of_layer(layer).items():
            yield f"{layer_name}.{name}" if layer_name else name, recipe


def _of_layer(layer: nn.Module) -> Mapping[str, Recipe]:
    """How the tensors of one layer are made anew, by the names it has for them."""
    match layer:
        case _ConvNd():
            fans = fans_of_convolution(layer.weight.shape, layer.groups, transposed=layer.transposed)
            return {"weight": fans, "bias": 0.0}
        case nn.Linear():
            return {"weight": Fans(layer.in_features, layer.out_features), "bias": 0.0}
        case nn.MultiheadAttention():
            sizes = {"in": layer.embed_dim, "q": layer.embed_dim, "k": layer.kdim or 1, "v": layer.vdim or 1}
            return {f"{part}_proj_weight": Fans(size, layer.embed_dim) for part, size in sizes.items()} | {
                "in_proj_bias": 0.0
            }
        case nn.PReLU():
            return {"weight": 0.25}
    return FRESH_NORM if _is_norm(layer) else {}


def _is_norm(layer: nn.Module) -> bool:
    if isinstance(layer, (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)):
        return True
    # libraries write norms of their own; one with a matrix in it is a layer that is only called after them
    gain = getattr(layer, "weight", None)
    return "Norm" in type(layer).__name__ and isinstance(gain, torch.Tensor) and gain.dim() == 1


def _in_graph(module: fx.GraphModule) -> Iterator[tuple[str, Recipe]]:
    for node in module.graph.nodes:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        schema = node.target._schema
        given = {argument.name: value for argument, value in zip(schema.arguments, node.args, strict=False)} | node.kwargs
        stored = {what: str(value.target) for what, value in given.items() if getattr(value, "op", None) == "get_attr"}
        if "weight" not in stored:
            continue
        shape = tensor_in(module, stored["weight"]).shape
        recipes: Mapping[str, Recipe]
        if "conv" in schema.name:
            transposed = "transpose" in schema.name or bool(given.get("transposed"))
            recipes = {"weight": fans_of_convolution(shape, given.get("groups", 1), transposed=transposed), "bias": 0.0}
        elif "linear" in schema.name:
            recipes = {"weight": Fans(shape[1], shape[0]), "bias": 0.0}
        else:
            recipes = FRESH_NORM if "norm" in schema.name else {}
        yield from ((stored[what], recipe) for what, recipe in recipes.items() if what in stored)
