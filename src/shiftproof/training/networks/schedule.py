"""Learning rates and stages as functions of how far a training has come: nothing of them has to be kept."""

from __future__ import annotations

import math

from shiftproof.errors import BadInput
from shiftproof.training.options import NetworkOptions
from shiftproof.training.recipe import Stage

STEP_SHARES = (0.5, 0.75)
"""After which shares of the epochs the step schedule multiplies the rate by 0.1 (He et al., 2016)."""

PLATEAU_EPOCHS = 3
"""Epochs without a lower loss on the validation split, after which the plateau schedule multiplies the rate by 0.1."""


class Rates:
    """The learning rate as a function of the step and of what came before, as a factor."""

    def __init__(self, options: NetworkOptions, steps: int, epochs: int) -> None:
        self.options, self.steps, self.epochs = options, steps, epochs  # steps of an epoch, epochs of the stage

    def at(self, step: int, losses: list[float]) -> float:
        """The factor at a step of the stage; `losses` are those on the validation split after its epochs so far."""
        warmup = round(self.options.warmup * self.steps)
        if step < warmup:
            return (step + 1) / (warmup + 1)
        match self.options.schedule:
            case "cosine":
                total = max(1, self.steps * self.epochs - warmup)
                return 0.5 * (1 + math.cos(math.pi * (step - warmup) / total))
            case "step":
                epoch = step // self.steps
                milestones = self.options.milestones or [share * self.epochs for share in STEP_SHARES]
                return 0.1 ** sum(epoch >= one for one in milestones)
            case "plateau":
                return 0.1 ** plateaus(losses)


def plateaus(losses: list[float]) -> int:
    """How often `PLATEAU_EPOCHS` epochs in a row brought no loss that is lower by a ten-thousandth.

    >>> plateaus([1.0, 0.9, 0.9, 0.9, 0.9, 0.8]), plateaus([1.0, 0.9, 0.8])
    (1, 0)
    """
    lowest, waited, found = math.inf, 0, 0
    for loss in losses:
        if loss < lowest * (1 - 1e-4):
            lowest, waited = loss, 0
        else:
            waited += 1
        if waited == PLATEAU_EPOCHS:
            found, waited = found + 1, 0
    return found


def epochs_of(stages: tuple[Stage, ...], epochs: int) -> list[int]:
    """How many of the epochs each stage has: at least one each, the rest by their shares.

    >>> epochs_of((Stage(0.5, "head"), Stage(0.5)), 5), epochs_of((Stage(1.0),), 3)
    ([2, 3], [3])
    """
    if epochs < len(stages):
        raise BadInput(f"the recipe has {len(stages)} stages, so it takes as many epochs at least, got {epochs}")
    counts: list[int] = []
    for place, stage in enumerate(stages[:-1]):
        left = epochs - sum(counts) - (len(stages) - 1 - place)
        counts.append(min(left, max(1, int(stage.share * epochs))))
    return [*counts, epochs - sum(counts)]
