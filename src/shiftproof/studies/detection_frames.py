"""What is left of a detector on the worst frame around each anchor: pm-k mean average precision (Shankar et al., 2021)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.average_precision import image_average_precision
from shiftproof.metrics.matching import Matches
from shiftproof.metrics.pm_k_detection import worst_frames_sweep
from shiftproof.metrics.resampled_precision import over_classes, resampled_precision
from shiftproof.metrics.resampling import Resampled
from shiftproof.studies.detection_galleries import judged_item
from shiftproof.studies.found_boxes import Judged, difference, measured, precision_interval
from shiftproof.studies.frame_review import verdicts_of
from shiftproof.studies.frames import FramePlaces, frames_left_out, places_of, subsets_of
from shiftproof.types import About, Clusters, Curve, Finding, FoundObjects, Gallery, Measurement, Run

DEFINITION = (
    "the worst frame has the least average precision over the classes it shows, of equals the nearest; then the mean "
    "average precision over the worst frames"
)


def around_anchors(
    run: Run, judged: Judged, convention: Mapping[str, str], largest_k: int, *, include_anchor: bool
) -> Iterator[Finding]:
    """Every number of frames around anchors: for objects of their class, and for objects of any."""
    frames = _Frames.of(judged.found, judged.matches, largest_k, include_anchor)
    if frames is None:
        return
    told = {
        **convention,
        "pm-k": DEFINITION,
        "anchor": "counts among its frames" if include_anchor else "does not count",
        **frames.left_out,
        **frames.places.reach_told(largest_k),
    }
    yield from _over_k(frames, {**run.about(), "task": "detection"}, told)
    yield from _by_subset(frames, judged.found, run.about(), told)
    blind = dataclasses.replace(frames, matches=judged.blind, known={})
    yield from _over_k(blind, {**run.about(), "task": "localization"}, told)


def worst_pairs(run: Run, judged: Judged, largest_k: int, *, shown: int, least_score: float) -> Iterator[Gallery]:
    """Anchors that lose most, each followed by its worst frame."""
    frames = _Frames.of(judged.found, judged.matches, largest_k, include_anchor=True)
    if frames is None:
        return
    worst, offsets = frames.worst[-1], frames.places.offsets
    anchors, precision = frames.anchors_of(worst), image_average_precision(judged.matches)
    lost = np.nan_to_num(precision[anchors] - precision[worst]).round(12)
    order = np.argsort(-lost, kind="stable")[: shown // 2]
    items = tuple(
        judged_item(judged, image, least_score=least_score, before=f"{offsets[image]:+d}: ")
        for place in order[lost[order] > 0].tolist()
        for image in (int(anchors[place]), int(worst[place]))
    )
    if items:
        title = "Anchors that lose most, each beside its worst frame"
        yield Gallery("worst_frames", run.about(), run.image_set, title, items)


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
        """The frames of a set of frames; None where it is none, or no anchor of it was read."""
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
        """How many frames numbers go without, in words; nothing where they have them all."""
        return frames_left_out(len(self.places.offsets) - len(self.rows) - self.rejected, self.rejected)

    @cached_property
    def worst(self) -> list[NDArray[np.intp]]:
        """The images chosen for each k, in the order of their anchors' ids."""
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
        """The anchors' own images."""
        anchors = np.flatnonzero(self.places.offsets == 0)
        place_of = dict(zip(self.places.anchors[anchors].tolist(), anchors.tolist(), strict=True))
        return np.array([place_of[name] for name in self.places.anchors[images].tolist()], np.intp)

    def precision(self, images: NDArray[np.intp]) -> Resampled | None:
        """Mean average precision over these images, and over some drawn again; None where they leave nothing to find."""
        key = images.tobytes()  # the worst frames are often the same for the next k
        if key not in self.known:
            clusters = self.clusters.take(images).numbers
            self.known[key] = over_classes(resampled_precision(self.matches, images, clusters=clusters, resamples=0))
        again = self.known[key]
        return again if np.isfinite(again.seen).all() else None


def _over_k(frames: _Frames, about: About, told: Mapping[str, str]) -> Iterator[Finding]:
    precision = {k: again for k, images in enumerate(frames.worst) if (again := frames.precision(images)) is not None}
    for k, again in precision.items():
        metric, more = ("pm_k_average_precision", {"k": k}) if k else ("anchor_average_precision", {})
        clusters = frames.clusters.take(frames.worst[k])
        yield measured(metric, again, {**about, **more}, len(clusters), told, clusters)
    if len(precision) > 1:
        yield _curve(precision, [frames.clusters.take(frames.worst[k]) for k in precision], about, told)
    far = frames.worst[-1]
    near, around = frames.precision(frames.anchors_of(far)), precision.get(frames.largest_k)
    if near is not None and around is not None:
        key = {**about, "k": frames.largest_k}
        lost = difference(near, around)
        yield measured("pm_k_precision_drop", lost, key, len(far), told, frames.clusters.take(far))


def _curve(precision: Mapping[int, Resampled], images: list[Clusters], about: About, told: Mapping[str, str]) -> Curve:
    counts = [len(clusters) for clusters in images]
    bounds = [precision_interval(again, clusters) for again, clusters in zip(precision.values(), images, strict=True)]
    low, high = zip(*bounds, strict=True) if all(bounds) else (None, None)
    return Curve(
        "pm_k_precision_curve",
        about,
        "k, frames before and after",
        "mean average precision",
        x=tuple(float(k) for k in precision),
        y=tuple(float(again.seen[0, 0]) for again in precision.values()),
        images=max(counts),
        convention=told,
        counts=tuple(counts),
        low=low,
        high=high,
    )


def _by_subset(frames: _Frames, found: FoundObjects, about: About, told: Mapping[str, str]) -> Iterator[Measurement]:
    """What is left without one type of frame, and clips of one frame rate."""
    for name, chosen in subsets_of(found.facts, frames.places):
        some = dataclasses.replace(frames, rows=frames.rows[chosen[frames.rows]], known={})
        for k in (0, frames.largest_k) if len(some.rows) else ():
            again = some.precision(some.worst[k])
            if again is not None:
                key = {**about, "subset": name, "k": k}
                clusters = frames.clusters.take(some.worst[k])
                yield measured("pm_k_subset_precision", again, key, len(clusters), told, clusters)
