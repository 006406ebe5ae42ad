"""Stored answers as sequences: which rows are the frames of which image under which perturbation, in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.types import Fact, Predictions

Value = TypeVar("Value", bound=Hashable)

NEEDED = ("sequence", "frame", "perturbation")
"""The facts that make frames of images; `sequence` names the image behind it, the same under every perturbation."""


class Sequences(NamedTuple):
    """The sequences of one perturbation at one level, all of the same number of frames."""

    perturbation: str
    level: int
    sources: tuple[str, ...]  # the image behind each sequence
    rows: NDArray[np.integer]  # (sequences, frames): where each frame stands among the predictions
    incomplete: int  # sequences left out because frames are missing

    @property
    def is_noise(self) -> bool:
        """Whether frames do not follow from each other, so that each is compared with the first."""
        return "noise" in self.perturbation


def all_sequences(predictions: Predictions) -> Iterator[Sequences]:
    """The sequences of every perturbation and level."""
    facts = predictions.facts
    if not len(predictions) or any(fact not in facts for fact in NEEDED):
        return
    levels = facts.get("level") or (1,) * len(predictions)
    perturbations, names = _numbered(facts["perturbation"])
    level_places, level_values = _numbered(levels)
    frames = _frame_numbers(facts["frame"])
    # a number for each pair is compared faster than the pair itself
    kind_of_row = perturbations * len(level_values) + level_places
    sequences = facts["sequence"]
    for kind in np.flatnonzero(np.bincount(kind_of_row)).tolist():
        name, level = divmod(kind, len(level_values))
        rows = np.flatnonzero((kind_of_row == kind) & (frames >= 0))
        if names[name] is not None and len(rows):
            which = [sequences[row] for row in rows.tolist()]
            yield _sequences(str(names[name]), int(level_values[level] or 1), rows, frames[rows], which)


def _sequences(
    perturbation: str, level: int, rows: NDArray[np.integer], frames: NDArray[np.integer], names: Sequence[Fact]
) -> Sequences:
    sequence_of_row, distinct = _numbered(names)
    order = np.lexsort((frames, sequence_of_row))
    rows, frames, sequence_of_row = rows[order], frames[order], sequence_of_row[order]
    counts = np.bincount(sequence_of_row)
    expected = np.flatnonzero(np.bincount(frames))
    whole = counts == len(expected)
    table = rows[whole[sequence_of_row]].reshape(-1, len(expected))
    sources = tuple(str(name) for name, kept in zip(distinct, whole, strict=True) if kept)
    return Sequences(perturbation, level, sources, table, int((~whole).sum()))


def _frame_numbers(frames: Sequence[Fact]) -> NDArray[np.integer]:
    """The number of each frame, -1 where there is none."""
    numbers = np.array(frames)
    return numbers if numbers.dtype.kind == "i" else np.array([-1 if frame is None else int(frame) for frame in frames])


def _numbered(values: Sequence[Value]) -> tuple[NDArray[np.integer], list[Value]]:
    """The place of each value among the distinct ones, and these."""
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(places.__getitem__, values), np.intp, len(values)), list(places)
