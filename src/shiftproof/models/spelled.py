"""A model and what is said of it in one text, for commands that take several models."""

from __future__ import annotations

import re
from typing import Any

from shiftproof.errors import BadInput, UnknownName
from shiftproof.models import load_model
from shiftproof.types import Classifier

OPTIONS = {
    **dict.fromkeys(["name", "prepare", "classes", "gives", "weights", "device", "features", "boxes", "proposals"], str),
    "proposal_answer": str,
    "scores": str,
    **dict.fromkeys(["threads", "most_proposals", "least_side"], int),
}
"""What may follow a model's name, as the options of the command call it, and what it is read as."""


def load_spelled(text: str, **others: Any) -> Classifier:
    """The model of a text like ``onnx:model.onnx?prepare=imagenet,size=244&name=small``; `others` is what it need not say.

    >>> load_spelled("lite:0?name=small").ref.name
    'small'
    """
    spec, said = spelled_options(text)
    if "scores" in said:
        said["output"] = said.pop("scores")
    return load_model(spec, **{**others, **said})


def spelled_options(text: str) -> tuple[str, dict[str, Any]]:
    """The model and its options.

    >>> spelled_options("onnx:model.onnx?prepare=imagenet,size=244&threads=1")
    ('onnx:model.onnx', {'prepare': 'imagenet,size=244', 'threads': 1})
    """
    spec, _, query = text.rpartition("?")
    if not spec or re.match(r"\w+=", query) is None:
        return text, {}
    said: dict[str, Any] = {}
    for part in query.split("&"):
        option, _, value = part.partition("=")
        if option not in OPTIONS:
            raise UnknownName("option of a model", option, OPTIONS)
        try:
            said[option] = OPTIONS[option](value)
        except ValueError:
            raise BadInput(f"{option} of {spec} should be a whole number, got {value!r}") from None
    return spec, said
