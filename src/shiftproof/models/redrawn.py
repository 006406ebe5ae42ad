"""The same network with freshly drawn weights: what its architecture alone says of an image."""

from __future__ import annotations

import dataclasses

from shiftproof.errors import BadInput
from shiftproof.models.drawing import RULE, Draw, Fan
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.types import Classifier, Companion, ModelRef, Seen, fingerprint_of

UNTRAINED = "nothing: its weights are drawn anew"
"""How the training data of such a network begins."""


def redrawn(model: Classifier, seed: int, *, fan: Fan = "in") -> LoadedClassifier:
    """The model with every weight drawn anew, its head too; preparation and classes stay.

    Weights of convolutions and linear layers are Kaiming normal: a variance of two over the inputs that each output sees
    or, with ``fan="out"`` as torchvision starts its ResNets, over the outputs that each input reaches. Biases are zero;
    norms are fresh, so in evaluation they hand on what comes in.
    """
    if fan not in ("in", "out"):
        raise BadInput(f"weights are drawn by the fan in or out, not {fan!r}")
    if not isinstance(model, LoadedClassifier) or model.redraw is None:
        raise BadInput(
            f"{model.ref.name} shows no weights that could be drawn anew; "
            "random networks can be had of lite, ONNX and torch models"
        )
    draw = Draw(seed, fan)
    fresh = model.redraw(draw)
    return dataclasses.replace(
        model,
        ref=redrawn_ref(model.ref, draw),
        answer=fresh.answer,
        read_head=fresh.read_head,
        seen=Seen(f"{UNTRAINED} (Kaiming normal, fan {fan}, seed {seed})"),
        notes=(*model.notes, *fresh.notes),
        redraw=None,
        looks={},
        for_size=None,
        companion=Companion("redrawn", model.ref.fingerprint),
    )


def redrawn_ref(ref: ModelRef, draw: Draw) -> ModelRef:
    """What a model is called and known by once its weights are drawn anew."""
    return ModelRef(f"{ref.name} {draw}", fingerprint_of(ref.fingerprint, dataclasses.asdict(draw), RULE))
