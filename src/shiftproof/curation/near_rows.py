"""Which rows are like one of other rows, or like an earlier one of their own that stays: by hash and by features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.curation.perceptual_hashes import PLAIN, Hashes, Places, differing_bits, near_hashes
from shiftproof.detectors.neighbour_search import directions, nearest_rows
from shiftproof.detectors.parts import parts_of
from shiftproof.types import Features

ROWS_AT_ONCE = 4096
"""Of features on either side; their closeness takes 64 MB."""


class Alike(NamedTuple):
    """Rows that are like another, ascending, the place of that other and how far apart the two are."""

    rows: Places
    places: Places
    distances: NDArray[np.floating]


def hashes_like_others(hashes: Hashes, others: Hashes, *, bits: int) -> Alike:
    """The nearest of others for every hash that differs from one in at most so many bits; plain pictures are like none.

    >>> hashes_like_others(np.array([0b1111, 1 << 40], np.uint64), np.array([0b11, 0b111], np.uint64), bits=2)
    Alike(rows=array([0]), places=array([1]), distances=array([1.]))
    """
    own, own_place = np.unique(hashes, return_inverse=True)
    known, first = np.unique(others, return_index=True)
    rows, places = near_hashes(own, known, bits=bits)
    nearest = _nearest(rows, first[places], differing_bits(own[rows], known[places]), len(own))
    found = np.flatnonzero((nearest[own_place] >= 0) & (hashes != PLAIN))
    places = nearest[own_place[found]]
    return Alike(found, places, differing_bits(hashes[found], others[places]).astype(float))


def hashes_like_earlier(hashes: Hashes, *, bits: int) -> Alike:
    """The nearest earlier hash that stays for every one that goes, since it differs from it in at most so many bits.

    >>> hashes_like_earlier(np.array([0b1111, 0b1110, 1 << 40, 0b1110], np.uint64), bits=1)
    Alike(rows=array([1, 3]), places=array([0, 0]), distances=array([1., 1.]))
    """
    own, first, own_place = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # equal ones stand for each other, in the order in which they come
    rows, places = near_hashes(own[order], bits=bits)
    stays = _staying(rows, places, differing_bits(own[order][rows], own[order][places]), len(own))
    kept = np.empty(len(own), np.intp)
    kept[order] = first[order][stays]
    others = kept[own_place]
    found = np.flatnonzero((others != np.arange(len(hashes))) & (hashes != PLAIN))
    return Alike(found, others[found], differing_bits(hashes[found], hashes[others[found]]).astype(float))


def features_like_others(features: Features, others: Features, *, most: float) -> Alike:
    """The nearest of others for every row at most so far from one, by the cosine distance."""
    places, distances = nearest_rows(features, others)
    cosine = distances**2 / 2  # of rows at unit length
    found = np.flatnonzero(cosine <= most)
    return Alike(found, places[found], cosine[found])


def features_like_earlier(features: Features, *, most: float) -> Alike:
    """The nearest earlier row that stays for every one that goes, since it is at most so far from it by the cosine distance.

    >>> features_like_earlier(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]), most=0.1)
    Alike(rows=array([2]), places=array([0]), distances=array([0.]))
    """
    near = list(_near_features(features, most))
    rows, places, distances = (np.concatenate(column) for column in zip(*near, strict=True))
    stays = _staying(rows, places, distances, len(features))
    found = np.flatnonzero(stays != np.arange(len(features)))
    between = dict(zip(zip(rows.tolist(), places.tolist(), strict=True), distances.tolist(), strict=True))
    apart = [between[pair] for pair in zip(stays[found].tolist(), found.tolist(), strict=True)]
    return Alike(found, stays[found], np.array(apart, float))


def _near_features(features: Features, most: float) -> Iterator[Alike]:
    """Pairs of rows that are near, the earlier first, block by block."""
    units = directions(features, np.zeros(features.shape[1]))
    yield Alike(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
    for part in parts_of(len(units), ROWS_AT_ONCE):
        for other in parts_of(part.stop, ROWS_AT_ONCE):
            apart = 1 - units[other] @ units[part].T
            rows, places = np.nonzero(apart <= most)
            before = rows + other.start < places + part.start
            rows, places = rows[before], places[before]
            yield Alike(rows + other.start, places + part.start, np.maximum(apart[rows, places], 0).astype(float))


def _nearest(rows: Places, places: Places, distances: NDArray[np.generic], count: int) -> Places:
    """The nearest place of each of so many rows; -1 for a row that has none."""
    nearest = np.full(count, -1)
    order = np.lexsort((places, distances))[::-1]  # what is written last stays
    nearest[rows[order]] = places[order]
    return nearest


def _staying(rows: Places, places: Places, distances: NDArray[np.generic], count: int) -> Places:
    """For each of so many the nearest earlier one that stays, or itself where it stays; rows come before places."""
    stays = list(range(count))
    order = np.lexsort((rows, distances, places))
    for row, place in zip(rows[order].tolist(), places[order].tolist(), strict=True):
        if stays[place] == place and stays[row] == row:
            stays[place] = row
    return np.array(stays, np.intp)
