"""Grad-CAM: the last layer with rows and columns, weighted by the gradient of a class (Selvaraju et al., 2017)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from shiftproof.errors import BadInput
from shiftproof.models.looks import AskedClasses, HeatMaps
from shiftproof.models.torch_network import TorchNetwork, first_tensor
from shiftproof.types import Inputs


def grad_cam(network: TorchNetwork, inputs: Inputs, classes: AskedClasses) -> HeatMaps:
    """The layer's channels, each by the mean of its gradient over all places, summed and cut off below 0."""
    if inputs.dtype.kind != "f":
        raise BadInput(f"the module takes {inputs.dtype}, and whole numbers have no gradient; look by occlusion instead")
    points = network.to_device(inputs).requires_grad_()  # weights have no gradient here: it begins at the input
    with torch.enable_grad(), last_places(network.module, inputs.shape) as places:
        scores = first_tensor(network.module(points)).reshape(len(inputs), -1)
        (shown,) = places
        chosen = scores.gather(1, torch.from_numpy(np.array(classes, np.int64)).to(scores.device))
        # the sum over images: an image's gradient then knows nothing of its batch
        gradients = [torch.autograd.grad(column.sum(), shown, retain_graph=True)[0] for column in chosen.T]
    maps = [(gradient.mean(dim=(2, 3), keepdim=True) * shown).sum(dim=1) for gradient in gradients]
    return np.asarray(torch.stack(maps, dim=1).detach().relu().float().cpu().numpy())


@contextmanager
def last_places(module: nn.Module, inputs: Sequence[int]) -> Iterator[list[Tensor]]:
    """What the last layer with rows and columns gives while the module runs on inputs of this shape; empty without one."""
    found: list[Tensor] = []

    def watch(_layer: nn.Module, _given: object, output: object) -> None:
        if isinstance(output, Tensor) and output.dim() == 4 and _is_smaller_picture(output.shape, inputs):
            found[:] = [output]

    layers = [
        layer for layer in module.modules() if not isinstance(layer, torch.jit.ScriptModule)
    ]  # those refuse to be watched
    hooks = [layer.register_forward_hook(watch) for layer in layers]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()


def _is_smaller_picture(shape: Sequence[int], inputs: Sequence[int]) -> bool:
    """Whether rows and columns are in proportion to those of the input; with channels last they would not be."""
    (rows, columns), (height, width) = shape[2:], inputs[2:]
    return min(rows, columns) > 1 and abs(rows * width - columns * height) <= max(height, width)
