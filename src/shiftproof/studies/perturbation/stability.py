"""How stable one model is along sequences: a table of flips and distances, row by row the same images."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.catalog import PERTURBATIONS
from shiftproof.corruptions import perturbation_of
from shiftproof.metrics import sequence_flip_probability, sequence_top5_distance, sequence_zipf_distance
from shiftproof.metrics.corruption import Against
from shiftproof.types import Clusters, DatasetRef, Fact, Predictions, joined_clusters

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
        return _independent(self.perturbation)


def _independent(name: str) -> bool:
    return name in PERTURBATIONS and perturbation_of(name).independent_frames


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


DIFFICULTIES = (1, 2, 3)


class Cell(NamedTuple):
    """One perturbation at one difficulty: a step between the frames compared, or for noise a level of it."""

    perturbation: str
    difficulty: int

    @property
    def rule(self) -> tuple[Against, int]:
        """What each frame is compared with, and the step; frames of noise do not follow from each other."""
        return ("first", 1) if _independent(self.perturbation) else ("previous", self.difficulty)

    @property
    def told(self) -> str:
        """The rule in words.

        >>> Cell("tilt", 2).told, Cell("shot_noise", 2).told
        ('each with the frame 2 before', 'each with the first, noise of level 2')
        """
        if _independent(self.perturbation):
            return f"each with the first, noise of level {self.difficulty}"
        return "each with the one before" if self.difficulty == 1 else f"each with the frame {self.difficulty} before"


class Frame(NamedTuple):
    """Where a frame is found."""

    dataset: DatasetRef
    id: str


class Along(NamedTuple):
    """Some images along the sequences of one cell."""

    sources: tuple[str, ...]
    values: NDArray[np.floating]  # (images, kinds): share of flips, mean distance, where asked the Zipf distance
    first: tuple[Frame, ...]  # of each sequence
    frames: int  # in a sequence
    clusters: Clusters


@dataclass
class Gathered:
    """What is known of every cell, filled set by set."""

    zipf: bool = False
    cells: dict[Cell, Along] = field(default_factory=dict)
    incomplete: int = 0  # sequences left out because frames are missing
    too_short: list[str] = field(default_factory=list)

    def take(self, predictions: Predictions, dataset: DatasetRef) -> None:
        """Adds the sequences of one set."""
        for sequences in all_sequences(predictions):
            self.incomplete += sequences.incomplete
            frames = sequences.rows.shape[1]
            first = tuple(Frame(dataset, predictions.ids[row]) for row in sequences.rows[:, 0].tolist())
            for cell in _cells_of(sequences):
                if cell.rule[1] >= frames:
                    self.too_short.append(f"{cell.perturbation} at difficulty {cell.difficulty}")
                    continue
                values = np.column_stack(list(_values(cell, sequences, predictions, zipf=self.zipf)))
                along = Along(sequences.sources, values, first, frames, predictions.clusters.take(sequences.rows[:, 0]))
                self.cells[cell] = _joined(self.cells[cell], along) if cell in self.cells else along

    def table(self) -> Stability:
        """The images that have every sequence, in the order of their names; cells in the order of the paper."""
        cells = sorted(self.cells, key=_order)
        answers = [self.cells[cell] for cell in cells]
        known = [frozenset(answer.sources) for answer in answers]
        sources = tuple(sorted(frozenset.intersection(*known))) if known else ()
        rows = [_rows_of(sources, answer.sources) for answer in answers]
        values = [answer.values[row] for answer, row in zip(answers, rows, strict=True)]
        first = [[answer.first[row] for row in where.tolist()] for answer, where in zip(answers, rows, strict=True)]
        return Stability(
            sources,
            tuple(cells),
            np.stack(values, axis=1) if values else np.empty((0, 0, 0)),
            tuple(zip(*first, strict=True)),
            tuple(answer.frames for answer in answers),
            len(frozenset[str]().union(*known)) - len(sources),
            answers[0].clusters.take(rows[0]) if answers else Clusters("source image", ()),
        )


def _rows_of(wanted: Sequence[str], sources: Sequence[str]) -> NDArray[np.integer]:
    row_of = {source: row for row, source in enumerate(sources)}
    return np.fromiter(map(row_of.__getitem__, wanted), np.intp, len(wanted))


def _joined(first: Along, second: Along) -> Along:
    """The images of two sets in the same cell; of an image in both the second counts."""
    return Along(
        first.sources + second.sources,
        np.concatenate([first.values, second.values]),
        first.first + second.first,
        max(first.frames, second.frames),
        joined_clusters([first.clusters, second.clusters]),
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
    clusters: Clusters  # of the images

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, sources: Sequence[str]) -> Stability:
        """The same for these images, in this order."""
        if tuple(sources) == self.sources:
            return self
        rows = _rows_of(sources, self.sources)
        first = tuple(self.first_frames[row] for row in rows.tolist())
        clusters = self.clusters.take(rows)
        return Stability(tuple(sources), self.cells, self.values[rows], first, self.frames, self.partial, clusters)


def _order(cell: Cell) -> tuple[int, str, int]:
    known = list(PERTURBATIONS)
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
