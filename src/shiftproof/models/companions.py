"""Networks that were made of a model and stored before they were marked as such."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from shiftproof.models.drawing import Draw
from shiftproof.models.input_sizes import sized_ref
from shiftproof.models.odin import MOVED, perturbed_ref
from shiftproof.models.redrawn import UNTRAINED, redrawn_ref
from shiftproof.types import Companion, ModelRef, Seen

REDRAWN = re.compile(r" redrawn (?P<seed>\d+)(?P<out> fan out)?$")
ODIN = re.compile(r" odin (?P<eps>[0-9.e+-]+)(?P<normalised> normalised)?$")
SIZED = re.compile(r" (?P<input>at|on pictures of) (?P<side>\d+)$")
TEMPERATURE = re.compile(r"at temperature (?P<temperature>[0-9.e+-]+)$")


def companion_made_of(ref: ModelRef, seen: Seen, notes: Sequence[str], models: Sequence[ModelRef]) -> Companion | None:
    """How a network was made of one of these models; None where it is a model of its own.

    Its fingerprint follows from the model's. Where that is not stored any more, what the network says of itself must do.
    """
    if found := REDRAWN.search(ref.name):
        draw = Draw(int(found["seed"]), "out" if found["out"] else "in")
        if of := _maker(ref, models, lambda model: redrawn_ref(model, draw)):
            return Companion("redrawn", of)
    moved = [note for note in notes if note.startswith(MOVED)]
    if (found := ODIN.search(ref.name)) and (told := TEMPERATURE.search(moved[-1] if moved else "")):
        eps, temperature, by_std = float(found["eps"]), float(told["temperature"]), not found["normalised"]
        if of := _maker(
            ref, models, lambda model: perturbed_ref(model, eps=eps, temperature=temperature, divide_by_std=by_std)
        ):
            return Companion("odin", of)
    if found := SIZED.search(ref.name):
        side, by_input = int(found["side"]), found["input"] == "at"
        if of := _maker(ref, models, lambda model: sized_ref(model, side, "input" if by_input else "picture")):
            return Companion("input size", of)
    if seen.training_data.startswith(UNTRAINED):
        return Companion("redrawn", None)
    return Companion("odin", None) if moved else None


def _maker(ref: ModelRef, models: Sequence[ModelRef], made: Callable[[ModelRef], ModelRef]) -> str | None:
    """The fingerprint of the model from which this network's own follows."""
    return next((model.fingerprint for model in models if made(model).fingerprint == ref.fingerprint), None)
