"""How well objects are found: average precision by overlap, class and size, and around the frames of a video."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.box_overlap import overlap_numbers
from shiftproof.studies import evidence
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.detection_frames import around_anchors, worst_pairs
from shiftproof.studies.detection_galleries import found_gallery, judged_galleries
from shiftproof.studies.detection_numbers import (
    at_overlap,
    boxes_by_class,
    by_class,
    by_size,
    counts,
    localization,
    recall_curves,
)
from shiftproof.studies.found_boxes import (
    Judged,
    Load,
    convention_of,
    found_by,
    nothing_to_find,
    other_sizes,
    overlap_told,
    truths_of,
)
from shiftproof.studies.frames import places_of
from shiftproof.types import About, Finding, FoundObjects, Keep

OneOverlap: TypeAlias = float | Literal["coco", "ilsvrc"]
"""The least overlap that counts as found, or a name for COCO's ten or for the one that hangs on the object's size."""


@dataclass(frozen=True)
class DetectionStudy(CleanStudy):
    """Average precision of boxes by overlap, class and size of object; of frames around anchors also pm-k.

    Everything beside the mean average precision and the recall is told at the first of the overlaps. Of frames around
    anchor frames the anchors alone are counted as images, since their neighbours hardly differ from them.
    """

    iou: Sequence[OneOverlap] = (0.5, 0.75, "coco")
    largest_k: int = 10
    include_anchor: bool = True
    shown: int = 12  # images in each gallery
    shown_score: float = 0.3  # boxes of a lower score are not drawn
    drawn_classes: int = 4  # classes with a curve of their own: those with the most objects

    keep: ClassVar[Keep] = "boxes"
    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "iou", tuple(self.iou))
        if not self.iou or len(set(self.iou)) < len(self.iou):
            raise BadInput(f"name every overlap once, and at least one; got {', '.join(map(str, self.iou)) or 'none'}")
        for one in self.iou:
            overlap_numbers(one)

    def measure(self, load: Load) -> Iterator[Finding]:
        for run in self.runs():
            found = found_by(load, run)
            truths, convention = truths_of(found), convention_of(run, found)
            if not len(found):
                continue
            if truths is None:
                yield from boxes_by_class(found, run.about(), convention, least_score=self.shown_score)
                yield from found_gallery(run, found, shown=self.shown, least_score=self.shown_score)
                continue
            judged = Judged(found, truths, self.iou[0], _counted(found))
            yield from self._numbers(judged, run.about(), {**convention, **_frames_told(found)})
            if places_of(found.facts) is not None:
                told = {**convention, **overlap_told(self.iou[0])}
                yield from around_anchors(run, judged, told, self.largest_k, include_anchor=self.include_anchor)
                yield from worst_pairs(run, judged, self.largest_k, shown=self.shown, least_score=self.shown_score)
            yield from judged_galleries(run, judged, shown=self.shown, least_score=self.shown_score)

    def skipped(self, load: Load) -> Iterator[str]:
        for run in self.runs():
            found = found_by(load, run)
            reasons = [evidence.nothing_read(run, found), nothing_to_find(run, found)]
            yield from (reason for reason in reasons if reason)

    def warnings(self, load: Load) -> Iterator[str]:
        told = (other_sizes(run, found_by(load, run)) for run in self.runs())
        yield from (warning for warning in told if warning)

    def _numbers(self, judged: Judged, about: About, convention: Mapping[str, str]) -> Iterator[Finding]:
        if not len(judged.among_counted.object_image):
            return
        told = {**convention, "boxes": "the 100 surest of each image and class"}
        yield from counts(judged, about, told)
        for iou in self.iou:
            yield from at_overlap(judged, iou, about, told)
        told |= overlap_told(self.iou[0])
        yield from by_size(judged, about, told)
        yield localization(judged, about, told)
        yield from by_class(judged, about, told)
        yield from recall_curves(judged, about, told, drawn_classes=self.drawn_classes)


def _counted(found: FoundObjects) -> NDArray[np.intp]:
    """Every image; of frames around anchors the anchors alone."""
    places = places_of(found.facts)
    return np.arange(len(found)) if places is None else np.flatnonzero(places.offsets == 0)


def _frames_told(found: FoundObjects) -> dict[str, str]:
    places = places_of(found.facts)
    if places is None:
        return {}
    anchors = int((places.offsets == 0).sum())
    return {"frames": f"the anchors alone, {anchors:,} of {len(found):,}; all of them count in pm-k"}
