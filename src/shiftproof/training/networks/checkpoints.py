"""How far a training has come, and checkpoints of it: written whole, so that the last one is always there."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from shiftproof.errors import BadInput, StoreError
from shiftproof.files import write_whole

FORMAT = 1
"""Raised whenever checkpoints, or the weights that the same training ends with, change."""


@dataclass(frozen=True)
class EpochRow:
    """What an epoch came to: a row of the curves."""

    epoch: int  # from 1
    rate: float  # learning rate at its end
    loss: float
    accuracy: float | None  # on the training pictures as they were shown; None of an object detector
    validation_loss: float
    validation_accuracy: float  # of an object detector mAP
    seconds: float

    def told(self, measure: str) -> dict[str, float]:
        """The figures by name, those on the validation split under what is measured there."""
        names = {"validation_accuracy": f"validation_{measure}"}
        return {names.get(name, name): value for name, value in vars(self).items() if value is not None}


@dataclass
class State:
    """How far a training has come: with the weights, all that a checkpoint holds."""

    epoch: int = 0
    step: int = 0  # steps of this epoch that are done
    sums: Tensor = field(default_factory=lambda: torch.zeros(3, dtype=torch.float64))  # of the epoch: loss, right, images
    seconds: float = 0.0
    rate: float | None = None
    best: float = -1.0  # best accuracy on the validation split
    waited: int = 0  # epochs since
    done: bool = False
    curves: list[dict[str, Any]] = field(default_factory=list)  # rows of `EpochRow`
    kept: dict[str, Tensor] = field(default_factory=dict)  # of the loss
    averaged: dict[str, Tensor] = field(default_factory=dict)
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    probed: dict[str, Tensor] = field(default_factory=dict)  # weights after a stage that trained the head alone


class Checkpoint(NamedTuple):
    """What a training goes on from."""

    state: State
    weights: dict[str, Tensor]
    optimizer: dict[str, Any] | None  # None at the end


def save_checkpoint(path: Path, key: str, state: State, network: nn.Module, optimizer: Any) -> None:
    """Write a checkpoint of the training with this key; the one before stays until this one is whole."""
    held = {
        "format": FORMAT,
        "key": key,
        "state": dict(vars(state)),
        "weights": {name: tensor.detach().cpu() for name, tensor in network.state_dict().items()},
        "optimizer": None if optimizer is None else optimizer.state_dict(),
    }
    data = io.BytesIO()
    torch.save(held, data)
    write_whole(path, data.getvalue())


def load_checkpoint(path: Path, key: str) -> Checkpoint | None:
    """The checkpoint of the training with this key; None where there is none, BadInput where it is that of another."""
    if not path.exists():
        return None
    try:
        held = torch.load(path, weights_only=True, map_location="cpu")
        ours = (held["format"], held["key"]) == (FORMAT, key)
    except (RuntimeError, KeyError, OSError, EOFError, ValueError) as problem:
        raise StoreError(f"{path} is damaged; remove it, and training starts again: {str(problem)[:200]}") from problem
    if not ours:
        raise BadInput(
            f"{path.parent.parent} holds an unfinished training of something else: other images, options or recipes; "
            "name another folder, or remove it"
        )
    return Checkpoint(State(**held["state"]), held["weights"], held["optimizer"])
