"""Answers put together and taken apart, and batches of any size for models that take only one size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Inputs, Outputs


def in_batches(run: Callable[[Inputs], Outputs], inputs: Inputs, size: int | None) -> Outputs:
    """The answers of a model that takes batches of exactly `size`; the last batch is filled up with its last image.

    >>> in_batches(lambda batch: Outputs(batch * 2), np.arange(5), 2).scores.tolist()
    [0, 2, 4, 6, 8]
    """
    if size is None or len(inputs) == size:
        return run(inputs)
    return joined([_filled(run, inputs[start : start + size], size) for start in range(0, len(inputs), size)])


def joined(parts: Sequence[Outputs]) -> Outputs:
    """Several answers as one; features and extra numbers where all of them have some."""
    return Outputs(
        scores=np.concatenate([part.scores for part in parts]),
        features=_concatenated([part.features for part in parts]),
        extra=_concatenated([part.extra for part in parts]),
    )


def taken(outputs: Outputs, rows: slice | NDArray[np.integer]) -> Outputs:
    """The answers to some of the images."""
    return Outputs(
        scores=outputs.scores[rows],
        features=None if outputs.features is None else outputs.features[rows],
        extra=None if outputs.extra is None else outputs.extra[rows],
    )


def filled_up(inputs: Inputs, size: int) -> Inputs:
    """The inputs with the last one repeated, so that there are `size`.

    >>> filled_up(np.array([3, 5]), 4).tolist()
    [3, 5, 5, 5]
    """
    return np.concatenate([inputs, np.repeat(inputs[-1:], size - len(inputs), axis=0)])


def _filled(run: Callable[[Inputs], Outputs], inputs: Inputs, size: int) -> Outputs:
    return run(inputs) if len(inputs) == size else taken(run(filled_up(inputs, size)), slice(len(inputs)))


def _concatenated(columns: Sequence[NDArray[np.floating] | None]) -> NDArray[np.floating] | None:
    there = [column for column in columns if column is not None]
    return np.concatenate(there) if len(there) == len(columns) else None
