"""Distance to the k-th nearest training image, by the directions of their features."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.ood.class_means import Matrix
from shiftproof.ood.entry import Fitted, OODDetector
from shiftproof.ood.graph import SMALL, Graph, Tensor
from shiftproof.ood.inputs import parts_of
from shiftproof.types import Fact, Features, OODScores, Precision, Predictions, Training

Rows = NDArray[np.float32]
"""(rows, features)."""

Squares = NDArray[np.float64]
"""Squared lengths, (rows,)."""

ROWS_AT_ONCE = 4096

_IN_CACHE = 128
"""Rows that are scaled together: of 2048 features they are 2 MB in double precision."""


@dataclass(frozen=True)
class RowsInMemory:
    """Rows in one array."""

    rows: NDArray[np.floating]
    squares: Squares

    def __len__(self) -> int:
        return len(self.rows)

    def blocks(self) -> Iterator[tuple[Rows, Squares]]:
        for part in parts_of(len(self.rows), ROWS_AT_ONCE):
            yield self.rows[part].astype(np.float32, copy=False), self.squares[part]


@dataclass(frozen=True)
class RowsOnDisk:
    """Rows in a file without a name, which goes when they do."""

    file: IO[bytes]
    shape: tuple[int, int]
    precision: Precision
    squares: Squares

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self) -> Iterator[tuple[Rows, Squares]]:
        row_bytes = self.shape[1] * np.dtype(self.precision).itemsize
        for part in parts_of(self.shape[0], ROWS_AT_ONCE):
            shape = (part.stop - part.start, self.shape[1])
            # mapped again for each block: what has been read then counts as memory in use no longer
            rows = np.memmap(self.file, self.precision, "r", part.start * row_bytes, shape)
            yield np.asarray(rows, np.float32), self.squares[part]


KeptRows: TypeAlias = RowsInMemory | RowsOnDisk
"""Rows that come back block by block with their squared lengths, in their order, as often as asked."""


def keep_rows(blocks: Iterable[Rows], shape: tuple[int, int], *, precision: Precision, gigabytes: float) -> KeptRows:
    """These blocks as one, of this shape in all: in memory up to so many gigabytes, else in a temporary file."""
    squares = np.empty(shape[0])
    rounded = _rounded(blocks, precision, squares)
    if shape[0] * shape[1] * np.dtype(precision).itemsize <= gigabytes * 1e9:
        kept = np.empty(shape, precision)
        for part, block in rounded:
            kept[part] = block
        return RowsInMemory(kept, squares)
    file = tempfile.TemporaryFile(prefix="shiftproof-")  # noqa: SIM115 open as long as the rows are there
    for _, block in rounded:
        file.write(block.data)
    file.flush()
    rows = RowsOnDisk(file, shape, precision, squares)
    weakref.finalize(rows, file.close)
    return rows


def squared_lengths(rows: NDArray[np.floating]) -> Squares:
    """Of each row, in double precision."""
    if rows.dtype == np.float64:
        return np.asarray(np.einsum("ij,ij->i", rows, rows))
    # made double a few at a time: while it multiplies, numpy does so in pieces, which takes half as long again and has other
    # sums for rows above 8192 features, of many rows than of one
    squares, doubles = np.empty(len(rows)), np.empty((min(_IN_CACHE, len(rows)), rows.shape[1]))
    for part in parts_of(len(rows), _IN_CACHE):
        some = doubles[: part.stop - part.start]
        some[...] = rows[part]
        np.einsum("ij,ij->i", some, some, out=squares[part])
    return squares


def _rounded(blocks: Iterable[Rows], precision: Precision, squares: Squares) -> Iterator[tuple[slice, NDArray[np.floating]]]:
    """The blocks as they are kept, each with its place among all; the squared lengths are noted on the way."""
    start = 0
    for block in blocks:
        part = slice(start, start + len(block))
        rounded = np.ascontiguousarray(block, precision)
        squares[part] = squared_lengths(rounded)
        yield part, rounded
        start = part.stop


Floats: TypeAlias = NDArray[np.floating]

_NEAR = 1e-2
"""Squared distances below this share of the point's own squared length are found in double precision."""


def unit_length(rows: Features) -> Floats:
    """The rows divided by their Euclidean lengths, in double precision; a row of zeros stays one, 1 away from all others.

    >>> unit_length(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    return _at_unit_length(rows, np.empty(rows.shape))


def _at_unit_length(rows: Features, room: Floats) -> Floats:
    """The same in an array that is there already."""
    room[...] = rows
    lengths = np.sqrt(squared_lengths(room))[:, None]
    return np.asarray(np.divide(room, lengths, out=room, where=True if lengths.all() else lengths > 0))


def directions(features: Features, centre: Floats) -> Rows:
    """The rows at unit length relative to a point."""
    made = np.empty(features.shape, np.float32)
    for part, some in directions_in_parts(features, centre):
        made[part] = some
    return made


def directions_in_parts(features: Features, centre: Floats) -> Iterator[tuple[slice, Rows]]:
    """The same some rows at a time, so few that they stay in the processor's cache; an array holds until the next."""
    doubles, singles = np.empty((_IN_CACHE, features.shape[1])), np.empty((_IN_CACHE, features.shape[1]), np.float32)
    for part in parts_of(len(features), _IN_CACHE):
        some = part.stop - part.start
        at_unit = _at_unit_length(features[part], doubles[:some])
        yield part, np.subtract(at_unit, centre, out=singles[:some], casting="same_kind")


def mean_direction(features: Features) -> Floats:
    """The mean of the rows at unit length, as if it were taken of all of them at once, (features,)."""
    room = np.zeros((_IN_CACHE + 1, features.shape[1]))  # the sum so far, and behind it the rows that are added next
    for part in parts_of(len(features), _IN_CACHE):
        end = part.stop - part.start + 1
        _at_unit_length(features[part], room[1:end])
        room[0] = room[:end].sum(axis=0) if part.start else room[1:end].sum(axis=0)
    return np.asarray(room[0] / len(features))


def kth_distances(points: Rows, references: KeptRows, neighbours: int) -> Floats:
    """Euclidean distance of each point to the last of its so many nearest references, (points,)."""
    distances = np.empty(len(points))
    for part in parts_of(len(points), ROWS_AT_ONCE):
        some = points[part]
        squared = _kth_squared(some, references, neighbours)
        near = squared < _NEAR * squared_lengths(some)
        if near.any():
            squared[near] = _kth_squared(some[near].astype(np.float64), references, neighbours)
        distances[part] = np.sqrt(np.maximum(squared, 0))
    return distances


def nearest_rows(
    points: Features, references: Features, *, normalised: bool = True, block: int = ROWS_AT_ONCE
) -> tuple[NDArray[np.intp], Floats]:
    """For each point the place of the reference nearest it and the Euclidean distance to that, both (points,).

    `normalised` takes directions alone, all rows at unit length. Of references that are equally near, for all that double
    precision tells, the one at the lowest place counts. `block` is how many rows of either are worked on at once.

    >>> nearest_rows(np.array([[2.0, 0.1], [0.0, 3.0]]), np.array([[0.0, 1.0], [5.0, 0.0], [1.0, 0.0]]), normalised=False)
    (array([2, 0]), array([1.00498756, 2.        ]))
    """
    if not len(references):
        raise BadInput("there is nothing to search for a nearest row in")
    scaled = unit_length if normalised else _in_double
    centre = scaled(references[:block]).mean(axis=0)

    def relative_references() -> Iterator[Floats]:
        for part in parts_of(len(references), block):
            yield scaled(references[part]) - centre

    places, distances = np.empty(len(points), np.intp), np.empty(len(points))
    for part in parts_of(len(points), block):
        some = scaled(points[part]) - centre
        found, doubtful = _nearest(some.astype(np.float32), relative_references())
        if doubtful.any():
            found[doubtful], _ = _nearest(some[doubtful], relative_references())
        places[part] = found
        distances[part] = np.sqrt(squared_lengths(some - (scaled(references[found]) - centre)))
    return places, distances


def _in_double(rows: Features) -> Floats:
    return rows.astype(np.float64)


def _kth_squared(points: Floats, references: KeptRows, neighbours: int) -> Floats:
    # the closest so far, and behind them those of one block: written in place, for copies would cost a tenth of the products
    closeness = np.empty((len(points), min(len(references), neighbours + ROWS_AT_ONCE)), points.dtype)
    kept = 0
    for block, squares in references.blocks():
        so_far = closeness[:, : kept + len(block)]
        np.matmul(points, block.astype(points.dtype, copy=False).T, out=so_far[:, kept:])
        so_far[:, kept:] -= (squares / 2).astype(points.dtype)
        kept = min(so_far.shape[1], neighbours)
        so_far.partition(so_far.shape[1] - kept, axis=1)
        closeness[:, :kept] = so_far[:, so_far.shape[1] - kept :]
    return np.asarray(squared_lengths(points) - 2 * closeness[:, 0].astype(np.float64))


def _nearest(points: Floats, references: Iterable[Floats]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """The place of the reference nearest each point, and whether another is as near for all that rounding tells."""
    rows = np.arange(len(points))
    places = np.zeros(len(points), np.intp)
    best = second = np.full(len(points), -np.inf)
    lengths, longest = np.sqrt(squared_lengths(points)), 0.0
    epsilon = float(np.finfo(points.dtype).eps)
    start = 0
    for block in references:
        squares = squared_lengths(block)
        longest = max(longest, float(np.sqrt(squares.max())))
        # rounding of a sum grows with the root of the number of its terms; four times that is hardly ever exceeded
        rounding = epsilon * longest * (4 * np.sqrt(points.shape[1]) * lengths + longest)
        closeness = points @ block.astype(points.dtype, copy=False).T
        closeness -= (squares / 2).astype(points.dtype)
        top = closeness.max(axis=1).astype(np.float64)
        place = (closeness >= (top - rounding)[:, None]).argmax(axis=1)
        closeness[rows, place] = -np.inf
        others = closeness.max(axis=1)
        nearer = top > best + rounding
        second = np.maximum(second, np.maximum(others, np.where(nearer, best, top)))
        places[nearer] = start + place[nearer]
        best = np.maximum(best, top)
        start += len(block)
    return places, second >= best - 2 * rounding


_MANY = 100
"""Below so many training images per neighbour, k is large for so few of them; the authors had 1000 and more."""


@dataclass(frozen=True)
class NearestNeighbours(Fitted):
    """Training features at unit length, relative to a point among them."""

    references: KeptRows
    centre: Matrix  # (features,)
    neighbours: int

    def __call__(self, predictions: Predictions) -> OODScores:
        """Euclidean distance, not squared, of each image's feature direction to the k-th nearest of the training images."""
        points = directions(predictions.need_features(), self.centre)
        return kth_distances(points, self.references, self.neighbours)

    def graph(self, graph: Graph) -> Tensor:
        features = graph.features.double()
        lengths = (features * features).sum(keep=True).sqrt()
        points = features / lengths.at_least(SMALL) - self.centre
        # in double precision throughout: the differences of near neighbours would be mostly rounding
        rows, squares = (np.concatenate(part) for part in zip(*self.references.blocks(), strict=True))
        closeness = points @ rows.astype(np.float64).T - squares / 2
        kth = closeness.top(self.neighbours).values.column(self.neighbours - 1)
        return ((points * points).sum() - kth * 2).at_least(0).sqrt()

    @property
    def notes(self) -> tuple[str, ...]:
        one_in = len(self.references) / self.neighbours
        if one_in >= _MANY:
            return ()
        place = f"neighbour {self.neighbours} of {len(self.references)} training images"
        return (f"{place} is one in {one_in:.3g} and likely of another class; the authors took one in 1000",)

    def found(self) -> dict[str, Fact]:
        return {"neighbours": self.neighbours, "references": len(self.references)}


def fit_knn(
    training: Training,
    *,
    neighbours: int = 1000,
    bank: int | None = None,
    precision: Precision = "float32",
    gigabytes: float = 4.0,
) -> NearestNeighbours:
    """Distance to the k-th nearest training feature, or with fewer than k images the farthest (Sun et al., 2022).

    Of the training images at most `bank` are kept, evenly spread over them, and then as much smaller a k counts; None keeps
    them all. References that would take more than so many `gigabytes` of memory lie in a temporary file, from which the same
    distances come; `precision` float16 halves them.
    """
    if neighbours < 1:
        raise BadInput(f"the nearest neighbour is number 1, got {neighbours}")
    if bank is not None and bank < 1:
        raise BadInput(f"a bank holds at least one training image, got {bank}")
    first = next((block.need_features() for block in training.blocks() if len(block)), None)
    if first is None:
        raise NotKept("there are no training images")
    centre = mean_direction(first[:ROWS_AT_ONCE])
    images, kept = len(training), min(bank or len(training), len(training))
    blocks = (some for features in _spread(training, images, kept) for _, some in directions_in_parts(features, centre))
    references = keep_rows(blocks, (kept, first.shape[1]), precision=precision, gigabytes=gigabytes)
    return NearestNeighbours(references, centre, max(1, round(min(neighbours, images) * kept / images)))


def _spread(training: Training, images: int, kept: int) -> Iterator[Features]:
    """The features of so many of the images, evenly spread: every tenth where a tenth of them is kept."""
    start = 0
    for block in training.blocks():
        places = np.arange(start, start + len(block))
        chosen = (places + 1) * kept // images > places * kept // images
        features = block.need_features()
        yield features if chosen.all() else features[chosen]  # a block is large: no copy where all are kept
        start += len(block)


KNN = OODDetector(
    "KNN", fit_knn, needs_training=True, presets={"openood": {"neighbours": 50}, "pytorch-ood": {"neighbours": 50}}
)
