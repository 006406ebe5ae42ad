"""A torch module that answers batches of arrays, and shows what its last linear layer sees."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shiftproof.errors import BadInput
from shiftproof.types import Inputs, Outputs


@dataclass
class TorchNetwork:
    """A module on its device; features are kept from the layer it watches, and only while they are asked for."""

    module: nn.Module
    device: torch.device
    autocast: torch.dtype | None = None
    channels_last: bool = False
    _asked: bool = False
    _seen: list[Tensor] = field(default_factory=list)

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        self._asked = features
        mixed = torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None)
        with torch.inference_mode(), mixed:
            scores = first_tensor(self.module(self._to_device(inputs)))
        points = _rows(self._seen[-1], len(inputs)) if self._seen else None
        self._seen.clear()
        return Outputs(_rows(scores, len(inputs)), points)

    def watch(self, layer: nn.Module) -> None:
        """Take the features from here: what a linear layer sees, what any other layer gives."""
        if isinstance(layer, nn.Linear):
            layer.register_forward_pre_hook(lambda _, seen: self._keep(seen[0]))
        else:
            layer.register_forward_hook(lambda _, __, given: self._keep(given))

    def _keep(self, value: Any) -> None:
        if self._asked:
            self._seen.append(first_tensor(value))

    def _to_device(self, inputs: Inputs) -> Tensor:
        tensor = torch.from_numpy(np.array(inputs, copy=None)).to(self.device)
        return tensor.contiguous(memory_format=torch.channels_last) if self.channels_last else tensor


def first_tensor(answer: Any) -> Tensor:
    """The class scores in what a module gave: a tensor, the ``logits`` of an answer with names, or the first of several."""
    if isinstance(answer, Tensor):
        return answer
    logits = answer.get("logits") if isinstance(answer, dict) else getattr(answer, "logits", None)
    if isinstance(logits, Tensor):
        return logits
    if isinstance(answer, (tuple, list)) and answer:
        return first_tensor(answer[0])
    raise BadInput(f"the module should give a tensor of class scores, got {type(answer).__name__}")


def _rows(values: Tensor, images: int) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = values.detach().reshape(images, -1).float().cpu().numpy()
    return rows
