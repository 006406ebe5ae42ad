"""Object detection: average precision by IoU threshold, class and object size, and pm-k mAP over video frames."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.boxes import SIZES, Matches, Overlap, match, overlap_numbers
from shiftproof.metrics.detection import (
    RECALLS,
    average_recall,
    image_average_precision,
    over_classes,
    precision_at_recall,
    resampled_precision,
)
from shiftproof.metrics.resampling import Resampled
from shiftproof.metrics.temporal import worst_frames_sweep
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, CleanStudy, settle
from shiftproof.studies.detection.matched import (
    Matched,
    column_of,
    convention_of,
    difference,
    found_gallery,
    iou_name,
    iou_told,
    load_detections,
    matched_galleries,
    matched_item,
    measured,
    mismatched_sizes,
    precision_interval,
    truths_that_count,
    why_no_truths,
)
from shiftproof.studies.temporal.frames import FramePlaces, frames_left_out, places_of, subsets_of, verdicts_of
from shiftproof.types import (
    About,
    Clusters,
    Curve,
    Finding,
    FoundObjects,
    Gallery,
    Keep,
    LoadPredictions,
    Measurement,
    NoInterval,
    Note,
    Run,
)

IoUThreshold: TypeAlias = float | Literal["coco", "ilsvrc"]
"""An IoU threshold, COCO's ten, or ILSVRC's rule that depends on the object's size."""


@dataclass(frozen=True)
class DetectionStudy(CleanStudy):
    """Average precision by IoU threshold, class and object size; on frames around anchors also pm-k mAP.

    mAP and recall are measured at every IoU threshold, everything else at the first. Of frames around anchors only the
    anchors count as images, since their neighbours hardly differ from them.
    """

    iou: Sequence[IoUThreshold] = (0.5, 0.75, "coco")
    largest_k: int = 10
    include_anchor: bool = True
    shown: int = 12  # images in each gallery
    shown_score: float = 0.3  # minimum score of boxes that are drawn
    drawn_classes: int = 4  # precision-recall curves: of the classes with the most objects

    keep: ClassVar[Keep] = "boxes"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, iou=tuple(self.iou))
        if not self.iou or len(set(self.iou)) < len(self.iou):
            raise BadInput(f"name every IoU threshold once, and at least one; got {', '.join(map(str, self.iou)) or 'none'}")
        for one in self.iou:
            overlap_numbers(one)

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        for run in self.runs():
            found = load_detections(load, run)
            yield from evidence.skipped(run.dataset.name, evidence.why_unread(found), why_no_truths(found))
            yield from mismatched_sizes(run, found)
            truths, convention = truths_that_count(found), convention_of(run, found)
            if not len(found):
                continue
            if truths is None:
                yield from boxes_by_class(found, run.about(), convention, score_threshold=self.shown_score)
                yield from found_gallery(run, found, shown=self.shown, score_threshold=self.shown_score)
                continue
            matched = Matched(found, truths, self.iou[0], _counted(found))
            subject = evidence.Subject(run.about(), convention, matched.clusters)
            yield from self._numbers(matched, subject.also(told=_frames_told(found)))
            if places_of(found.facts) is not None:
                at_first = subject.also(told=iou_told(self.iou[0]))
                yield from pm_k_findings(matched, at_first, self.largest_k, include_anchor=self.include_anchor)
                yield from worst_frame_pairs(
                    run, matched, self.largest_k, shown=self.shown, score_threshold=self.shown_score
                )
            yield from matched_galleries(run, matched, shown=self.shown, score_threshold=self.shown_score)

    def _numbers(self, matched: Matched, subject: evidence.Subject) -> Iterator[Finding]:
        if not len(matched.among_counted.object_image):
            return
        subject = subject.also(told={"boxes": "at most 100 an image and class, highest score first"})
        yield from counts(matched, subject)
        for iou in self.iou:
            yield from at_iou(matched, iou, subject)
        subject = subject.also(told=iou_told(self.iou[0]))
        yield from by_size(matched, subject)
        yield localization(matched, subject)
        yield from by_class(matched, subject)
        yield from recall_curves(matched, subject, drawn_classes=self.drawn_classes)


def _counted(found: FoundObjects) -> NDArray[np.intp]:
    """Rows that count: every image, or only the anchors of frames around anchors."""
    places = places_of(found.facts)
    return np.arange(len(found)) if places is None else np.flatnonzero(places.offsets == 0)


def _frames_told(found: FoundObjects) -> dict[str, str]:
    places = places_of(found.facts)
    if places is None:
        return {}
    anchors = int((places.offsets == 0).sum())
    return {"frames": f"only the anchors, {anchors:,} of {len(found):,}; all frames count in pm-k"}


def counts(matched: Matched, subject: evidence.Subject) -> Iterator[Measurement]:
    """Numbers of objects, of crowds and ignored objects, and of boxes."""
    truths, images, about, told = matched.truths, len(matched.counted), subject.about, subject.convention
    spared = (truths.crowd | truths.ignored) & (matched.times[truths.image] > 0)
    boxes = matched.times[matched.found.detections.image] > 0
    yield Measurement("objects_to_find", len(matched.among_counted.object_image), about, images, told)
    yield Measurement("objects_left_out", int(spared.sum()), about, images, told)
    yield Measurement("boxes_found", int(boxes.sum()), about, images, told)


def at_iou(matched: Matched, iou: Overlap, subject: evidence.Subject) -> Iterator[Measurement]:
    """Mean average precision and average recall at an IoU threshold."""
    subject = subject.also({"iou": iou_name(iou)}, iou_told(iou))
    matches = matched.matches if iou == matched.iou else matched.at(iou)
    again = matched.by_class if iou == matched.iou else matched.left_out(matches)
    yield measured("mean_average_precision", over_classes(again), subject)
    recall = float(np.nanmean(average_recall(matches, times=matched.times)))
    none = NoInterval("see that of the average precision")
    images, convention = len(matched.counted), subject.convention
    yield Measurement("mean_average_recall", recall, subject.about, images, convention, no_interval=none)


def by_size(matched: Matched, subject: evidence.Subject) -> Iterator[Measurement]:
    """Mean average precision of small, medium and large objects, where there are any."""
    for size in [size for size in SIZES if size != "all"]:
        matches = match(matched.found.detections, matched.truths, iou=matched.iou, size=size)
        if (matched.times[matches.object_image] > 0).any():
            again = over_classes(matched.left_out(matches))
            yield measured("size_average_precision", again, subject.also({"size": size}))


def localization(matched: Matched, subject: evidence.Subject) -> Measurement:
    """Average precision whatever the class (class-agnostic)."""
    return measured("localization_precision", over_classes(matched.left_out(matched.class_agnostic)), subject)


def by_class(matched: Matched, subject: evidence.Subject) -> Iterator[Measurement]:
    """Average precision and number of objects of each class that has any."""
    names, counted = ClassNames(matched.found.classes), matched.among_counted
    for place, kind in enumerate(np.unique(counted.object_classes).tolist()):
        images = counted.object_image[counted.object_classes == kind]
        of_class, shown_in = subject.also({"class": names[kind]}), len(np.unique(images))
        yield measured("class_average_precision", column_of(matched.by_class, place), of_class, images=shown_in)
        yield Measurement("class_objects", len(images), of_class.about, shown_in, subject.convention)


def recall_curves(matched: Matched, subject: evidence.Subject, *, drawn_classes: int) -> Iterator[Curve]:
    """Precision-recall curves: the mean over all classes, then the classes with the most objects."""
    names, counted = ClassNames(matched.found.classes), matched.among_counted
    precision = precision_at_recall(matched.matches, times=matched.times).mean(axis=0)
    objects = np.bincount(counted.object_classes, minlength=len(precision))
    yield _recall_curve(np.nanmean(precision[objects > 0], axis=0), subject, len(matched.counted))
    most = np.argsort(-objects, kind="stable")[:drawn_classes]
    for kind in most[objects[most] > 0].tolist() if (objects > 0).sum() > 1 else []:
        shown_in = len(np.unique(counted.object_image[counted.object_classes == kind]))
        yield _recall_curve(precision[kind], subject.also({"class": names[kind]}), shown_in)


def _recall_curve(precision: NDArray[np.floating], subject: evidence.Subject, images: int) -> Curve:
    axes, counts = ("recall", "precision"), [images] * len(RECALLS)
    return subject.curve("precision_recall", axes, RECALLS, precision, counts, images=images)


def boxes_by_class(
    found: FoundObjects, about: About, convention: Mapping[str, str], *, score_threshold: float
) -> Iterator[Measurement]:
    """Numbers of boxes of each class, where there is no ground truth."""
    boxes, names = found.detections, ClassNames(found.classes)
    yield Measurement("boxes_found", len(boxes.scores), about, len(found), convention)
    told = {**convention, "boxes": f"score at least {score_threshold:g}"}
    sure = boxes.scores >= score_threshold
    for kind in np.unique(boxes.classes[sure]).tolist():
        chosen = sure & (boxes.classes == kind)
        key, images = {**about, "class": names[kind]}, len(np.unique(boxes.image[chosen]))
        yield Measurement("class_boxes", int(chosen.sum()), key, images, told)


DEFINITION = (
    "the worst frame has the lowest average precision over the classes it shows, of equals the nearest; then mAP over the "
    "worst frames"
)


def pm_k_findings(matched: Matched, subject: evidence.Subject, largest_k: int, *, include_anchor: bool) -> Iterator[Finding]:
    """pm-k mAP by k and subset, for detection and for localization."""
    frames = _Frames.of(matched.found, matched.matches, largest_k, include_anchor)
    if frames is None:
        return
    told = {
        "pm-k": DEFINITION,
        "anchor": "counts among its frames" if include_anchor else "does not count",
        **frames.left_out,
        **frames.places.reach_told(largest_k),
    }
    of_frames = dataclasses.replace(subject.also(told=told), clusters=frames.clusters)
    yield from _over_k(frames, of_frames.also({"task": "detection"}))
    yield from _by_subset(frames, matched.found, of_frames)
    class_agnostic = dataclasses.replace(frames, matches=matched.class_agnostic, known={})
    yield from _over_k(class_agnostic, of_frames.also({"task": "localization"}))


def worst_frame_pairs(
    run: Run, matched: Matched, largest_k: int, *, shown: int, score_threshold: float
) -> Iterator[Gallery]:
    """Anchors with the largest drop in average precision, each followed by its worst frame."""
    frames = _Frames.of(matched.found, matched.matches, largest_k, include_anchor=True)
    if frames is None:
        return
    worst, offsets = frames.worst[-1], frames.places.offsets
    anchors, precision = frames.anchors_of(worst), image_average_precision(matched.matches)
    lost = np.nan_to_num(precision[anchors] - precision[worst]).round(12)
    order = np.argsort(-lost, kind="stable")[: shown // 2]
    items = tuple(
        matched_item(matched, image, score_threshold=score_threshold, offset=int(offsets[image]))
        for place in order[lost[order] > 0].tolist()
        for image in (int(anchors[place]), int(worst[place]))
    )
    if items:
        title = "Largest drops: each anchor beside its worst frame"
        yield Gallery("worst_frames", run.about(), run.dataset, title, items)


@dataclass(frozen=True)
class _Frames:
    """The worst frame around each anchor for every k."""

    matches: Matches
    places: FramePlaces
    rows: NDArray[np.intp]  # images that may be chosen: not rejected in review, their anchor among them
    rejected: int
    largest_k: int
    include_anchor: bool
    clusters: Clusters  # of all images
    known: dict[bytes, Resampled] = field(default_factory=dict)

    @classmethod
    def of(cls, found: FoundObjects, matches: Matches, largest_k: int, include_anchor: bool) -> _Frames | None:
        """None where the images are no frames around anchors, or no anchor was read."""
        places = places_of(found.facts, found.grouped)
        if places is None:
            return None
        rejected = verdicts_of(found.facts, len(found)).rejected
        counted = np.flatnonzero(~rejected)
        rows = counted[places.take(counted).has_anchor]
        if not len(rows):
            return None
        return cls(matches, places, rows, int(rejected.sum()), largest_k, include_anchor, found.clusters)

    @property
    def left_out(self) -> dict[str, str]:
        """Counts of frames left out, as conventions."""
        return frames_left_out(len(self.places.offsets) - len(self.rows) - self.rejected, self.rejected)

    @cached_property
    def worst(self) -> list[NDArray[np.intp]]:
        """The worst frame of each anchor for every k, in the order of the anchors' ids."""
        chosen = worst_frames_sweep(
            self.matches,
            self.places.offsets[self.rows],
            self.places.anchors[self.rows],
            largest_k=self.largest_k,
            include_anchor=self.include_anchor,
            images=self.rows,
        )
        return [self.rows[places] for places in chosen]

    def anchors_of(self, images: NDArray[np.intp]) -> NDArray[np.intp]:
        """The anchor of each image."""
        anchors = np.flatnonzero(self.places.offsets == 0)
        place_of = dict(zip(self.places.anchors[anchors].tolist(), anchors.tolist(), strict=True))
        return np.array([place_of[name] for name in self.places.anchors[images].tolist()], np.intp)

    def precision(self, images: NDArray[np.intp]) -> Resampled | None:
        """Mean average precision (mAP) over these images with its jackknife; None where they hold no object."""
        key = images.tobytes()  # the worst frames are often the same for the next k
        if key not in self.known:
            clusters = self.clusters.take(images).numbers
            self.known[key] = over_classes(resampled_precision(self.matches, images, clusters=clusters, resamples=0))
        again = self.known[key]
        return again if np.isfinite(again.seen).all() else None


def _over_k(frames: _Frames, subject: evidence.Subject) -> Iterator[Finding]:
    precision = {k: again for k, images in enumerate(frames.worst) if (again := frames.precision(images)) is not None}
    for k, again in precision.items():
        metric, more = ("pm_k_average_precision", {"k": k}) if k else ("anchor_average_precision", {})
        yield measured(metric, again, subject.also(more).take(frames.worst[k]))
    if len(precision) > 1:
        yield _curve(precision, [frames.clusters.take(frames.worst[k]) for k in precision], subject)
    far = frames.worst[-1]
    near, around = frames.precision(frames.anchors_of(far)), precision.get(frames.largest_k)
    if near is not None and around is not None:
        of_far = subject.also({"k": frames.largest_k}).take(far)
        yield measured("pm_k_precision_drop", difference(near, around), of_far, bounds=None)


def _curve(precision: Mapping[int, Resampled], images: list[Clusters], subject: evidence.Subject) -> Curve:
    counts = [len(clusters) for clusters in images]
    bounds = [precision_interval(again, clusters) for again, clusters in zip(precision.values(), images, strict=True)]
    band = evidence.Band(*zip(*bounds, strict=True)) if all(bounds) else None
    values = [again.seen[0, 0] for again in precision.values()]
    axes = ("k, frames before and after", "mean average precision")
    return subject.curve("pm_k_precision_curve", axes, precision, values, counts, images=max(counts), band=band)


def _by_subset(frames: _Frames, found: FoundObjects, subject: evidence.Subject) -> Iterator[Measurement]:
    """pm-k mAP without one frame type, and on clips of one frame rate."""
    for name, chosen in subsets_of(found.facts, frames.places):
        some = dataclasses.replace(frames, rows=frames.rows[chosen[frames.rows]], known={})
        for k in (0, frames.largest_k) if len(some.rows) else ():
            again = some.precision(some.worst[k])
            if again is not None:
                of_subset = subject.also({"subset": name, "k": k}).take(some.worst[k])
                yield measured("pm_k_subset_precision", again, of_subset)
