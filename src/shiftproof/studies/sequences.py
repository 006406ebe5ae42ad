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
    """The sequences of every perturbation and level, in the order in which they first appear."""
    facts = predictions.facts
    if not len(predictions) or any(fact not in facts for fact in NEEDED):
        return
    levels = facts.get("level") or (1,) * len(predictions)
    kinds = list(zip(facts["perturbation"], levels, strict=True))
    kind_of_row, distinct = _numbered(kinds)
    frames = np.array([_whole(frame, -1) for frame in facts["frame"]])
    names = facts["sequence"]
    for kind, (perturbation, level) in enumerate(distinct):
        rows = np.flatnonzero((kind_of_row == kind) & (frames >= 0))
        if perturbation is None or not len(rows):
            continue
        yield _sequences(str(perturbation), _whole(level, 1), rows, frames[rows], [names[row] for row in rows.tolist()])


def _sequences(
    perturbation: str, level: int, rows: NDArray[np.integer], frames: NDArray[np.integer], names: Sequence[Fact]
) -> Sequences:
    sequence_of_row, distinct = _numbered(names)
    order = np.lexsort((frames, sequence_of_row))
    rows, frames, sequence_of_row = rows[order], frames[order], sequence_of_row[order]
    counts = np.bincount(sequence_of_row)
    expected = np.unique(frames)
    whole = counts == len(expected)
    table = rows[whole[sequence_of_row]].reshape(-1, len(expected))
    sources = tuple(str(name) for name, kept in zip(distinct, whole, strict=True) if kept)
    return Sequences(perturbation, level, sources, table, int((~whole).sum()))


def _whole(fact: Fact, missing: int) -> int:
    return missing if fact is None else int(fact)


def _numbered(values: Sequence[Value]) -> tuple[NDArray[np.integer], list[Value]]:
    """The place of each value among the distinct ones, and these."""
    places: dict[Value, int] = {}
    numbers = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.intp)
    return numbers, list(places)
