"""How stable one model is along sequences: a table of flips and distances, row by row the same images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import IMAGENET_P, IMAGENET_P_VALIDATION
from shiftproof.metrics import sequence_flip_probability, sequence_top5_distance, sequence_zipf_distance
from shiftproof.metrics.stability import Against
from shiftproof.studies.sequences import Sequences, all_sequences
from shiftproof.types import ImageSetRef, Predictions

DIFFICULTIES = (1, 2, 3)


class Cell(NamedTuple):
    """One perturbation at one difficulty: a step between the frames compared, or for noise a level of it."""

    perturbation: str
    difficulty: int

    @property
    def rule(self) -> tuple[Against, int]:
        """What each frame is compared with, and the step; frames of noise do not follow from each other."""
        return ("first", 1) if "noise" in self.perturbation else ("previous", self.difficulty)

    @property
    def told(self) -> str:
        """The rule in words.

        >>> Cell("tilt", 2).told, Cell("shot_noise", 2).told
        ('each with the frame 2 before', 'each with the first, noise of level 2')
        """
        if "noise" in self.perturbation:
            return f"each with the first, noise of level {self.difficulty}"
        return "each with the one before" if self.difficulty == 1 else f"each with the frame {self.difficulty} before"


class Frame(NamedTuple):
    """Where a frame is found."""

    image_set: ImageSetRef
    id: str


class Along(NamedTuple):
    """One image along one sequence."""

    values: tuple[float, ...]  # share of flips, mean distance, where asked the Zipf distance
    first: Frame


@dataclass
class Gathered:
    """What is known of every cell, filled set by set."""

    zipf: bool = False
    cells: dict[Cell, dict[str, Along]] = field(default_factory=dict)
    frames: dict[Cell, int] = field(default_factory=dict)
    incomplete: int = 0  # sequences left out because frames are missing
    too_short: list[str] = field(default_factory=list)

    def take(self, predictions: Predictions, image_set: ImageSetRef) -> None:
        """Adds the sequences of one set."""
        for sequences in all_sequences(predictions):
            self.incomplete += sequences.incomplete
            for cell in _cells_of(sequences):
                if cell.rule[1] >= sequences.rows.shape[1]:
                    self.too_short.append(f"{cell.perturbation} at difficulty {cell.difficulty}")
                    continue
                columns = list(_values(cell, sequences, predictions, zipf=self.zipf))
                known = self.cells.setdefault(cell, {})
                self.frames[cell] = sequences.rows.shape[1]
                first = sequences.rows[:, 0].tolist()
                for source, row, values in zip(
                    sequences.sources, first, zip(*(column.tolist() for column in columns), strict=True), strict=True
                ):
                    known[source] = Along(values, Frame(image_set, predictions.ids[row]))

    def table(self) -> Stability:
        """The images that have every sequence, in the order of their names; cells in the order of the paper."""
        cells = sorted(self.cells, key=_order)
        answers = [self.cells[cell] for cell in cells]
        known = [frozenset(answer) for answer in answers]
        sources = tuple(sorted(frozenset.intersection(*known))) if known else ()
        values = np.array([[answer[source].values for answer in answers] for source in sources])
        return Stability(
            sources,
            tuple(cells),
            values.reshape(len(sources), len(cells), 3 if self.zipf else 2),
            tuple(tuple(answer[source].first for answer in answers) for source in sources),
            tuple(self.frames[cell] for cell in cells),
            len(frozenset[str]().union(*known)) - len(sources),
        )


@dataclass(frozen=True)
class Stability:
    """Flips and distances of every image in every cell."""

    sources: tuple[str, ...]  # images
    cells: tuple[Cell, ...]
    values: NDArray[np.floating]  # (images, cells, kinds of value)
    first_frames: tuple[tuple[Frame, ...], ...]  # of each image in each cell
    frames: tuple[int, ...]  # in a sequence of each cell
    partial: int  # images left out because they lack some sequence

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, sources: Sequence[str]) -> Stability:
        """The same for these images, in this order."""
        if tuple(sources) == self.sources:
            return self
        row_of = {source: row for row, source in enumerate(self.sources)}
        rows = [row_of[source] for source in sources]
        first = tuple(self.first_frames[row] for row in rows)
        values = self.values[np.array(rows, dtype=np.intp)]
        return Stability(tuple(sources), self.cells, values, first, self.frames, self.partial)


def _order(cell: Cell) -> tuple[int, str, int]:
    known = (*IMAGENET_P, *IMAGENET_P_VALIDATION)
    place = known.index(cell.perturbation) if cell.perturbation in known else len(known)
    return place, cell.perturbation, cell.difficulty


def _cells_of(sequences: Sequences) -> list[Cell]:
    if sequences.is_noise:
        return [Cell(sequences.perturbation, sequences.level)]
    return [Cell(sequences.perturbation, difficulty) for difficulty in DIFFICULTIES] if sequences.level == 1 else []


def _values(cell: Cell, sequences: Sequences, predictions: Predictions, *, zipf: bool) -> Iterator[NDArray[np.floating]]:
    against, step = cell.rule
    top5 = predictions.top5.classes[sequences.rows]
    yield sequence_flip_probability(top5[:, :, 0], against=against, step=step)
    yield sequence_top5_distance(top5, against=against, step=step)
    if zipf:
        logits = predictions.need_logits()
        # one sequence at a time: all classes of all frames would fill the memory
        each = (sequence_zipf_distance(logits[rows][None], against=against, step=step) for rows in sequences.rows)
        yield np.concatenate(list(each))
