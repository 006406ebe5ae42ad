"""Average precision of each class with images drawn again, from boxes matched once."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.intervals import Groups
from shiftproof.metrics.matching import Matches
from shiftproof.metrics.ranked_hits import Area, areas_of, rank_by_class
from shiftproof.metrics.resampling import RESAMPLES, Resampled

_BLOCKS = 200


def resampled_precision(
    matches: Matches,
    images: NDArray[np.integer] | None = None,
    *,
    clusters: Groups | None = None,
    area: Area = "coco",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Resampled:
    """Average precision over all thresholds of each class that has something to find: as seen, and with images drawn again.

    The columns are classes, nan in drawings that leave nothing of them to find. What is drawn are the rows of `images`,
    places of images in the matches that may repeat; all of them once unless given. Rows of one of the `clusters`, a number
    for each row, are drawn together. As many rows are drawn alike for the
    same seed, so two models, conditions or choices of frames can be compared drawing by drawing.

    >>> from shiftproof.metrics.matching import match
    >>> from shiftproof.types import Detections, Truths
    >>> squares, none = np.array([[0.0, 0, 4, 4]] * 2), np.zeros(2, dtype=bool)
    >>> truths = Truths(("a", "b"), np.arange(2), squares, np.zeros(2, int), none, none, np.full(2, 16.0))
    >>> found = Detections(("a", "b"), np.array([0]), squares[:1], np.ones(1), np.zeros(1, int))
    >>> again = resampled_precision(match(found, truths), area="voc", resamples=100)
    >>> again.seen, again.left_out.tolist()  # a alone is found
    (array([[0.5]]), [[0.0], [1.0]])
    >>> sorted(set(again.drawn[:, 0].tolist()))
    [0.0, 0.5, 1.0]
    """
    every = np.arange(len(matches.ids))
    pot = every if images is None else images
    ranking = rank_by_class(matches.among(np.isin(every, pot)))

    def areas(rows: NDArray[np.integer]) -> NDArray[np.floating]:
        times = np.bincount(rows, minlength=len(every))
        # the last digit hangs on the order of sums, and drawings that are alike should be equal
        return np.asarray(areas_of(ranking, area=area, times=times).mean(axis=0).round(12))

    generator = np.random.default_rng(seed)
    group_of = np.arange(len(pot)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    order = np.argsort(group_of, kind="stable")
    members = np.split(pot[order], np.flatnonzero(np.diff(group_of[order])) + 1) if len(pot) else []
    cases = len(members)

    def drawing() -> NDArray[np.integer]:
        chosen = generator.integers(cases, size=cases)
        return pot[chosen] if clusters is None else np.concatenate([members[case] for case in chosen.tolist()])

    drawn = [areas(drawing()) for _ in range(resamples if cases else 0)]
    block = (group_of * min(cases, _BLOCKS)) // max(cases, 1)
    left_out = [areas(pot[block != number]) for number in range(int(block.max()) + 1 if cases else 0)]
    classes = len(ranking.groups)
    return Resampled(
        areas(pot)[None],
        np.reshape(drawn, (len(drawn), classes)),
        np.reshape(left_out, (len(left_out), classes)),
    )


def over_classes(resampled: Resampled) -> Resampled:
    """The mean over the classes that each drawing has something of, one column: mean average precision."""
    return Resampled(*(_mean_known(part) for part in resampled))


def _mean_known(areas: NDArray[np.floating]) -> NDArray[np.floating]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a drawing with nothing to find has no mean
        return np.asarray(np.nanmean(areas, axis=1, keepdims=True))
