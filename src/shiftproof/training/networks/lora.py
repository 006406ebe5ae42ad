"""Low-rank adaptation: layers stay as they are and each learns a small product of two matrices beside its weights."""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from shiftproof.errors import BadInput
from shiftproof.training.networks.modules import Network


class LowRank(nn.Module):
    """Weights plus ``alpha / rank * up @ down`` (Hu et al., 2022); zero at first, since `up` is."""

    def __init__(self, weight: Tensor, rank: int, alpha: float) -> None:
        super().__init__()
        rows, columns = len(weight), weight[0].numel()
        rank = min(rank, rows, columns)
        self.up, self.down = nn.Parameter(torch.zeros(rows, rank)), nn.Parameter(torch.empty(rank, columns))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        self.scale = alpha / rank

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.scale * (self.up @ self.down).view_as(weight)


def with_lora(network: Network, classes: int, *, rank: int, alpha: float) -> Network:  # noqa: ARG001 - the seam gives it
    """The network with all of its body frozen but for a product beside each linear layer and convolution.

    Convolutions in groups, such as depthwise ones, stay as they are: their kernels are small already.
    """
    for parameter in network.body.parameters():
        parameter.requires_grad = False
    layers = [layer for layer in network.body.modules() if _is_wide(layer)]
    if not layers:
        raise BadInput("the network has no linear layer or convolution that low-rank products could be learned beside")
    for layer in layers:
        weight = layer.weight
        assert isinstance(weight, Tensor)  # noqa: S101 - chosen by that
        parametrize.register_parametrization(layer, "weight", LowRank(weight, rank, alpha))
    return network


def _is_wide(layer: nn.Module) -> bool:
    return isinstance(layer, nn.Linear) or (isinstance(layer, nn.Conv2d) and layer.groups == 1)


def merged(network: Network) -> Network:
    """The network with its products added to the weights: one of the usual form. One without any stays as it is."""
    changed = [name for name, layer in network.named_modules() if parametrize.is_parametrized(layer)]
    if not changed:
        return network
    network = copy.deepcopy(network)
    for layer in map(network.get_submodule, changed):
        weight = layer.weight
        assert isinstance(weight, Tensor)  # noqa: S101 - as above
        # torch's own removal changes the class, which the network that was copied shares
        layer.__class__ = parametrize.type_before_parametrizations(layer)
        del layer.parametrizations
        layer.weight = nn.Parameter(weight.detach().clone())
    return network
