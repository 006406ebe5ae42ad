"""Exact nearest neighbours among many rows, by matrix products of blocks.

Distances between points do not change when all of them move together, so both sides are taken relative to a point among the
references. Then |p - r|^2 = |p|^2 - 2 (p.r - |r|^2 / 2) keeps its digits even where all features are nearly alike, and what
stands in brackets, here called closeness, is all that selection needs. Where single precision cannot tell, double does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.kept_rows import ROWS_AT_ONCE, KeptRows, Rows, squared_lengths
from shiftproof.detectors.parts import parts_of
from shiftproof.errors import BadInput
from shiftproof.types import Features

Floats: TypeAlias = NDArray[np.floating]

_NEAR = 1e-2
"""Squared distances below this share of the point's own squared length are found in double precision."""


def unit_length(rows: Features) -> Floats:
    """The rows divided by their Euclidean lengths, in double precision; a row of zeros stays one, 1 away from all others.

    >>> unit_length(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    lengths = np.sqrt(squared_lengths(rows))[:, None]
    return np.asarray(np.divide(rows, lengths, out=np.zeros(rows.shape), where=lengths > 0))


def directions(features: Features, centre: Floats) -> Rows:
    """The rows at unit length relative to a point, made a few at a time."""
    made = np.empty(features.shape, np.float32)
    for part in parts_of(len(features)):
        made[part] = unit_length(features[part]) - centre
    return made


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
    closeness = np.full((len(points), neighbours + ROWS_AT_ONCE), -np.inf, points.dtype)
    for block, squares in references.blocks():
        so_far = closeness[:, : neighbours + len(block)]
        np.matmul(points, block.astype(points.dtype, copy=False).T, out=so_far[:, neighbours:])
        so_far[:, neighbours:] -= (squares / 2).astype(points.dtype)
        so_far.partition(len(block), axis=1)
        closeness[:, :neighbours] = so_far[:, len(block) :]
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
