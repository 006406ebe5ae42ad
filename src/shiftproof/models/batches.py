"""Batches of any size for models that take only one size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shiftproof.types import Inputs, Outputs


def in_batches(run: Callable[[Inputs], Outputs], inputs: Inputs, size: int | None) -> Outputs:
    """The answers of a model that takes batches of exactly `size`; the last batch is filled up with its last image.

    >>> in_batches(lambda batch: Outputs(batch * 2), np.arange(5), 2).scores.tolist()
    [0, 2, 4, 6, 8]
    """
    if size is None or len(inputs) == size:
        return run(inputs)
    parts = [_filled(run, inputs[start : start + size], size) for start in range(0, len(inputs), size)]
    return Outputs(*(None if column[0] is None else np.concatenate(column) for column in zip(*parts, strict=True)))


def _filled(run: Callable[[Inputs], Outputs], inputs: Inputs, size: int) -> Outputs:
    count = len(inputs)
    answers = run(np.concatenate([inputs, np.repeat(inputs[-1:], size - count, axis=0)]) if count < size else inputs)
    return Outputs(*(None if column is None else column[:count] for column in answers))
