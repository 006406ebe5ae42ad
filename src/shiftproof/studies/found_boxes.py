"""From boxes found to measurements: how they are read, what stands beside each number, and why one cannot be had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.box_overlap import Overlap
from shiftproof.metrics.matching import Matches, match
from shiftproof.metrics.meanings import meaning_of
from shiftproof.metrics.resampled_precision import resampled_precision
from shiftproof.metrics.resampling import Resampled, left_out_interval
from shiftproof.studies import evidence
from shiftproof.types import About, Clusters, FoundObjects, Measurement, Predictions, Run, Truths

Load = Callable[[Run], Predictions]


class LoadsFound(Protocol):
    """What reads runs for studies that keep boxes."""

    def found(self, run: Run) -> FoundObjects: ...


@dataclass(frozen=True)
class Judged:
    """What was found in a set, what is really there, and what became of each box at one overlap."""

    found: FoundObjects
    truths: Truths
    iou: Overlap
    counted: NDArray[np.intp]  # the images that count, by their places

    @cached_property
    def matches(self) -> Matches:
        return self.at(self.iou)

    @cached_property
    def blind(self) -> Matches:
        """The same where any object will do, whatever its class."""
        return match(self.found.detections, self.truths, iou=self.iou, class_blind=True)

    @cached_property
    def by_class(self) -> Resampled:
        """Average precision of each class that has something to find, in the images that count and in drawings of them."""
        return self.left_out(self.matches)

    @cached_property
    def clusters(self) -> Clusters:
        """Which of the images that count are one case."""
        return self.found.clusters.take(self.counted)

    def left_out(self, matches: Matches) -> Resampled:
        """Average precision of each class at some matches, in the images that count and without some of them, by case."""
        return resampled_precision(matches, self.counted, clusters=self.clusters.numbers, resamples=0)

    def at(self, iou: Overlap) -> Matches:
        """What became of each box at another overlap."""
        return match(self.found.detections, self.truths, iou=iou)

    @cached_property
    def times(self) -> NDArray[np.intp]:
        """How often each image counts, (images,)."""
        return np.bincount(self.counted, minlength=len(self.found))

    @cached_property
    def among_counted(self) -> Matches:
        """Boxes and objects of the images that count."""
        return self.matches.among(self.times > 0)


def found_by(load: Load, run: Run) -> FoundObjects:
    """What a detector found in a run."""
    return cast(LoadsFound, load).found(run)


def convention_of(run: Run, found: FoundObjects) -> dict[str, str]:
    """What stands beside every number of a run: how pixels came to the detector, which classes and images counted."""
    left = evidence.left_out(set_aside=len(found.set_aside), read=len(found), labelled=len(found))
    return {**run.convention(), **found.convention, **left}


def truths_of(found: FoundObjects) -> Truths | None:
    """The objects of the set, where any counts."""
    return _counting(found.truths)


def _counting(truths: Truths | None) -> Truths | None:
    return None if truths is None or (truths.crowd | truths.ignored).all() else truths


def nothing_to_find(run: Run, found: FoundObjects) -> str | None:
    """Why average precision cannot be had, or None."""
    return why_no_precision(run.image_set.name, found.truths) if len(found) else None


def why_no_precision(name: str, truths: Truths | None) -> str | None:
    """Why average precision cannot be had of a set with these objects, or None."""
    if _counting(truths) is not None:
        return None
    why = "the set has none" if truths is None else "there is no object that counts"
    remedy = "name a file of boxes instead of the images (COCO, VOC, ILSVRC, ImageNet-VID or YOLO, see docs/image-sets.md)"
    return f"{name}: average precision needs boxes, and {why}; {remedy}"


def other_sizes(run: Run, found: FoundObjects) -> str | None:
    """That images are not as large as the file of their boxes says, so that boxes lie elsewhere; None where all are."""
    if found.truths is None or not {"width", "height"} <= found.facts.keys():
        return None
    said = list(zip(found.facts["width"], found.facts["height"], strict=True))
    sizes = [(width, height) for height, width in found.sizes.tolist()]
    # 0 stands for a size nobody knows
    others = [place for place, size in enumerate(sizes) if all(size) and None not in said[place] and size != said[place]]
    if not others:
        return None
    first = others[0]
    (width, height), (told_width, told_height) = sizes[first], said[first]
    return (
        f"{run.image_set.name}: {len(others):,} of {len(found):,} images are not as large as their boxes say, such as "
        f"{found.detections.ids[first]} ({width} x {height}, not {told_width} x {told_height}): boxes may lie elsewhere"
    )


def overlap_name(iou: Overlap) -> str:
    """A threshold, or several, in words.

    >>> overlap_name(0.5), overlap_name("coco"), overlap_name("ilsvrc")
    ('0.5', '0.5 to 0.95', 'ilsvrc')
    """
    if isinstance(iou, (float, int)):
        return f"{iou:g}"
    return {"coco": "0.5 to 0.95"}.get(iou, iou) if isinstance(iou, str) else ", ".join(f"{one:g}" for one in iou)


OVERLAP_TOLD = {
    "0.5 to 0.95": "0.5 to 0.95: the mean over COCO's ten thresholds",
    "ilsvrc": "ilsvrc: 0.5, less for boxes under about 24 pixels",
}


def overlap_told(iou: Overlap) -> dict[str, str]:
    """The least overlap that counts as found, as a convention."""
    return {"overlap": OVERLAP_TOLD.get(overlap_name(iou), overlap_name(iou))}


def measured(
    metric: str, column: Resampled, about: About, images: int, convention: Mapping[str, str], clusters: Clusters
) -> Measurement:
    """A number with its interval from drawings of images, or of the clusters they come in; one column of them."""
    bounds = (0.0, 1.0) if meaning_of(metric).unit == "share" and not metric.startswith("relative") else None
    interval = precision_interval(column, clusters, bounds=bounds)
    told = {**convention, **evidence.resampled_told(clusters, interval, what="jackknife")}
    return Measurement(metric, float(column.seen[0, 0]), about, images, told, interval, min(images, clusters.count))


def precision_interval(
    column: Resampled, clusters: Clusters, *, bounds: tuple[float, float] | None = (0.0, 1.0)
) -> tuple[float, float] | None:
    """Of one number by leaving out images, or the clusters they come in."""
    return left_out_interval(column.seen[:, 0], column.left_out[:, 0], bounds=bounds, cases=clusters.count)


def column_of(resampled: Resampled, place: int) -> Resampled:
    """One of several numbers."""
    return Resampled(*(part[:, [place]] for part in resampled))


def difference(first: Resampled, second: Resampled) -> Resampled:
    """The first number minus the second, drawing by drawing."""
    return Resampled(*(np.asarray(one - other) for one, other in zip(first, second, strict=True)))
