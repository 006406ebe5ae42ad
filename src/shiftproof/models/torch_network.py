"""A torch module that answers batches of arrays, and shows what some of its layers see or give."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from shiftproof.errors import BadInput
from shiftproof.types import Inputs, Outputs


@dataclass(frozen=True)
class TorchNetwork:
    """A module on its device; its layers are watched only while what they show is asked for."""

    module: nn.Module
    device: torch.device
    autocast: torch.dtype | None = None
    channels_last: bool = False
    features: str | None = None  # the layer to take them from: what a linear one sees, what any other gives
    extra: str | None = None  # a key or place of the module's answer, or a layer

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        with self._watching(features) as seen:
            answer = self.given(inputs)
        shown = {what: _rows(first_tensor(value), len(inputs)) for what, value in seen.items()}
        if self.extra is not None and (part := part_of(answer, self.extra)) is not None:
            shown["extra"] = _rows(part, len(inputs))
        if self.extra is not None and "extra" not in shown:
            raise BadInput(f"neither the module's answer has a part {self.extra!r}, nor did a layer of that name run")
        return Outputs(_rows(first_tensor(answer), len(inputs)), shown.get("features"), shown.get("extra"))

    def given(self, inputs: Inputs) -> Any:
        """Whatever the module gives to a batch."""
        mixed = torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None)
        with torch.inference_mode(), mixed:
            return self.module(self.to_device(inputs))

    def gradient(self, inputs: Inputs, temperature: float) -> NDArray[np.float32]:
        """Where each input would have to move for the class it is taken for to become less likely, in full precision.

        It is the gradient of the cross-entropy between the logits over the temperature and their own best class.
        """
        if inputs.dtype.kind != "f":
            raise BadInput(f"the module takes {inputs.dtype}, and whole numbers have no gradient")
        points = self.to_device(inputs).requires_grad_()
        try:
            with torch.enable_grad():
                logits = first_tensor(self.module(points)).reshape(len(inputs), -1).float()
                # the sum, not the mean: an image's gradient then knows nothing of its batch
                loss = nn.functional.cross_entropy(logits / temperature, logits.argmax(dim=1), reduction="sum")
                (found,) = torch.autograd.grad(loss, points)
        except RuntimeError as problem:  # torch has no narrower error
            raise BadInput(f"the module gives no gradient by its input: {str(problem).partition(chr(10))[0]}") from problem
        return np.asarray(found.float().cpu().numpy(), np.float32)

    @contextmanager
    def _watching(self, features: bool) -> Iterator[dict[str, Any]]:
        """What the watched layers show while the module runs, by what it is for."""
        seen: dict[str, Any] = {}
        hooks = []
        if features and self.features is not None:
            layer = self.module.get_submodule(self.features)
            if isinstance(layer, nn.Linear):
                hooks.append(layer.register_forward_pre_hook(lambda _, given: seen.update(features=given[0])))
            else:
                hooks.append(layer.register_forward_hook(lambda _, __, given: seen.update(features=given)))
        if self.extra in dict(self.module.named_modules()):
            layer = self.module.get_submodule(str(self.extra))
            hooks.append(layer.register_forward_hook(lambda _, __, given: seen.update(extra=given)))
        try:
            yield seen
        finally:
            for hook in hooks:
                hook.remove()

    def to_device(self, inputs: Inputs) -> Tensor:
        """The inputs where the module is, in the memory layout it likes."""
        tensor = torch.from_numpy(np.array(inputs, copy=None)).to(self.device)
        return tensor.contiguous(memory_format=torch.channels_last) if self.channels_last else tensor


def first_tensor(answer: Any) -> Tensor:
    """The class scores in what a module gave: a tensor, the ``logits`` of an answer with names, or the first of several."""
    if isinstance(answer, Tensor):
        return answer
    logits = part_of(answer, "logits")
    if logits is not None:
        return logits
    if isinstance(answer, (tuple, list)) and answer:
        return first_tensor(answer[0])
    raise BadInput(f"the module should give a tensor of class scores, got {type(answer).__name__}")


def part_of(answer: Any, name: str) -> Tensor | None:
    """The part of an answer under a key, a name or a place counted from 0; None where it has none."""
    if isinstance(answer, dict):
        part = answer.get(name)
    elif isinstance(answer, (tuple, list)) and name.isdecimal():
        part = answer[int(name)] if int(name) < len(answer) else None
    else:
        part = None if isinstance(answer, Tensor) else getattr(answer, name, None)
    return part if isinstance(part, Tensor) else None


def _rows(values: Tensor, images: int) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = values.detach().reshape(images, -1).float().cpu().numpy()
    return rows
