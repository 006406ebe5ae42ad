"""Mean average precision of boxes, and how sure one can be of it."""

from __future__ import annotations

import numpy as np

from shiftproof.metrics.box_overlap import Overlap, Size
from shiftproof.metrics.intervals import Groups
from shiftproof.metrics.matching import Matches, match
from shiftproof.metrics.ranked_hits import Area, Ranking, Times, areas_of, rank_by_class
from shiftproof.metrics.resampled_precision import over_classes, resampled_precision
from shiftproof.metrics.resampling import left_out_interval
from shiftproof.types import Detections, Truths


def mean_average_precision(
    detections: Detections,
    truths: Truths,
    *,
    iou: Overlap = 0.5,
    area: Area = "coco",
    size: Size = "all",
    most: int = 100,
    class_blind: bool = False,
) -> float:
    """Average precision, averaged over the classes that have something to find and over thresholds (mAP); nan if none has.

    1 is perfect. ``iou="coco"`` is the mean over 0.5, 0.55 to 0.95; ``class_blind`` asks where objects are and not what.

    >>> squares, none = np.array([[0.0, 0, 4, 4], [5, 5, 9, 9]]), np.zeros(2, dtype=bool)
    >>> truths = Truths(("a",), np.zeros(2, int), squares, np.array([0, 1]), none, none, np.full(2, 16.0))
    >>> found = Detections(("a",), np.zeros(2, int), squares, np.array([0.9, 0.8]), np.array([0, 0]))
    >>> mean_average_precision(found, truths)  # class 0 found before its false alarm, class 1 not at all
    0.5
    >>> mean_average_precision(found, truths, class_blind=True)
    1.0
    """
    return matched_average_precision(
        match(detections, truths, iou=iou, most=most, size=size, class_blind=class_blind), area=area
    )


def matched_average_precision(matches: Matches, *, area: Area = "coco", times: Times | None = None) -> float:
    """Mean average precision of boxes already matched, over the images that count; nan where they leave nothing to find.

    >>> square, none = np.array([[0.0, 0, 4, 4]]), np.zeros(1, dtype=bool)
    >>> truths = Truths(("a", "b"), np.array([0]), square, np.array([0]), none, none, np.full(1, 16.0))
    >>> found = Detections(("a", "b"), np.array([0, 1]), square[[0, 0]], np.array([0.8, 0.9]), np.array([0, 0]))
    >>> matched_average_precision(match(found, truths))  # after a false alarm in the other image
    0.5
    >>> matched_average_precision(match(found, truths), times=np.array([1, 0]))
    1.0
    """
    return ranked_average_precision(rank_by_class(matches), area=area, times=times)


def ranked_average_precision(ranking: Ranking, *, area: Area = "coco", times: Times | None = None) -> float:
    """Mean average precision over the groups of a ranking that have something to find."""
    areas = areas_of(ranking, area=area, times=times)
    known = areas[~np.isnan(areas)]
    return float(known.mean()) if len(known) else float("nan")


def average_precision_interval(
    matches: Matches,
    *,
    area: Area = "coco",
    times: Times | None = None,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the mean average precision by leaving out images, each with all its boxes, or clusters of them.

    An image that counts twice is one case all the same. None of fewer than `LEAST_CLUSTERS` cases, and where nothing is to
    be found without some of them.

    >>> squares, none = np.array([[0.0, 0, 4, 4]] * 100), np.zeros(100, dtype=bool)
    >>> ids = tuple(str(place) for place in range(100))
    >>> truths = Truths(ids, np.arange(100), squares, np.zeros(100, int), none, none, np.full(100, 16.0))
    >>> found = Detections(ids, np.arange(0, 100, 2), squares[::2], np.ones(50), np.zeros(50, int))
    >>> low, high = average_precision_interval(match(found, truths), area="voc")
    >>> round(low, 1), round(high, 1)  # half of 100 objects are found: 0.5 +- 1.98 * 0.05
    (0.4, 0.6)
    """
    every = np.arange(len(matches.ids))
    pot = every if times is None else np.repeat(every, times.astype(np.int64))
    groups = (every if clusters is None else clusters)[pot]
    found = over_classes(resampled_precision(matches, pot, clusters=groups, area=area, resamples=0))
    cases = len(np.unique(groups))
    return left_out_interval(found.seen[:, 0], found.left_out[:, 0], bounds=(0.0, 1.0), level=level, cases=cases)
