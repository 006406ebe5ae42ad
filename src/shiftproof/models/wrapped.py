"""Any Python function as a classifier."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from shiftproof.class_lists import classes_from
from shiftproof.models.loaded import LoadedClassifier, model_ref
from shiftproof.models.options import ModelOptions
from shiftproof.types import Classes, Gives, Head, Inputs, Outputs, Preparation, Seen


def wrap_model(
    function: Callable[[Inputs], Any],
    *,
    name: str,
    version: str,
    class_names: Classes | Sequence[str] | None = None,
    size: tuple[int, int] | None = (224, 224),
    gives: Gives = "logits",
    prepare: str | Preparation | None = None,
    head: Head | None = None,
    seen: Seen | str | None = None,
    batch_size: int | None = None,
    has_features: bool | None = None,
) -> LoadedClassifier:
    """The function as a classifier; it takes a batch of inputs and gives scores, or scores, features and perhaps more.

    A third item is kept beside the scores of every image: a few numbers, such as a confidence. Features may be None.

    Nobody can see inside a function, so its name and version stand for its weights: change the version whenever its
    answers change, or old predictions will be taken for new ones. `size` is (height, width).

    >>> def mean_colour(inputs):
    ...     return inputs.mean(axis=(2, 3))
    >>> model = wrap_model(mean_colour, name="mean colour", version="1", class_names=["red", "green", "blue"])
    >>> model(np.zeros((4, 3, 224, 224), np.float32)).scores.shape
    (4, 3)
    """
    preparation, notes = _preparation(prepare, size)

    def answer(inputs: Inputs, _features: bool) -> Outputs:
        result = function(inputs)
        scores, *more = result if isinstance(result, tuple) else (result,)
        return Outputs(np.asarray(scores), *(None if part is None else np.asarray(part) for part in more))

    return LoadedClassifier(
        ref=model_ref(name, f"{name}\0{version}", preparation, gives=gives),
        preparation=preparation,
        gives=gives,
        answer=answer,
        classes=None if class_names is None else classes_from(class_names),
        seen=ModelOptions(seen=seen).seen_or(),
        notes=notes,
        batch_size=batch_size,
        has_features=head is not None if has_features is None else has_features,
        read_head=lambda: head,
        for_size=lambda _: answer,
    )


def _preparation(prepare: str | Preparation | None, size: tuple[int, int] | None) -> tuple[Preparation, tuple[str, ...]]:
    if prepare is not None and not isinstance(prepare, str):
        return prepare, ()
    preparation, notes = ModelOptions(prepare=prepare).preparation(None, size=size)
    return (preparation if size else dataclasses.replace(preparation, size=None, rule="none")), notes
