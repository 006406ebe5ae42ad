"""Frames around anchor frames: which belong together, which were rejected in review, and subsets of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import is_correct
from shiftproof.metrics.temporal import FrameSets, frame_sets
from shiftproof.metrics.wording import counted
from shiftproof.types import Clusters, Fact, Predictions

Facts: TypeAlias = Mapping[str, Sequence[Fact]]
"""Facts of each image by name, as predictions and detections carry them."""
CLIP = "clip"
"""The fact that names the clip of a frame."""
SIMILAR = ("true", "similar")
NOT_REVIEWED = ("false", "none", "")
"""Values of the fact `reviewed`; any other says that reviewers rejected the frame."""
MOST_RATES = 4
"""Up to so many frame rates have a row each."""
LEAST_AT_RATE = 20
"""Of more frame rates, those with at least so many anchors have a row each; the rest share one."""
UNKNOWN = 0.0
"""Stands for a frame rate that is not known."""


class AtOffset(NamedTuple):
    """The frames at one offset from their anchors, and their clusters."""

    rows: NDArray[np.intp]
    clusters: Clusters


@dataclass(frozen=True)
class FramePlaces:
    """Anchor, offset and cluster of each frame."""

    anchors: NDArray[np.intp]  # (frames,): numbered in the order of the anchors' ids
    offsets: NDArray[np.intp]  # (frames,): frames after the anchor
    clusters: Clusters  # the clip of the anchor, unless other clusters were named

    @cached_property
    def sets(self) -> FrameSets:
        """The frames of each anchor side by side; every frame has its anchor among these."""
        return frame_sets(self.offsets, self.anchors)

    @cached_property
    def anchor_rows(self) -> NDArray[np.intp]:
        """Row of the anchor of each frame, (frames,)."""
        return self.sets.anchor_of_each_row()

    @cached_property
    def at_offsets(self) -> dict[int, AtOffset]:
        """The frames at each offset that occurs, the earliest first."""
        rows = {offset: np.flatnonzero(self.offsets == offset) for offset in np.unique(self.offsets).tolist()}
        return {offset: AtOffset(at, self.clusters.take(at)) for offset, at in rows.items()}

    @property
    def has_anchor(self) -> NDArray[np.bool_]:
        """Which frames have their anchor among these, (frames,)."""
        return np.isin(self.anchors, self.anchors[self.offsets == 0])

    def reach_told(self, k: int) -> dict[str, str]:
        """The largest offset as a convention, where it is below `k`."""
        farthest = int(np.abs(self.offsets).max(initial=0))
        return {"farthest frame": f"{farthest} from its anchor; a larger k has no more frames"} if farthest < k else {}

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> FramePlaces:
        """Some of the frames."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if np.array_equal(places, np.arange(len(self.offsets))):
            return self
        return FramePlaces(self.anchors[rows], self.offsets[rows], self.clusters.take(rows))


@dataclass
class KnownPlaces:
    """The places of the frames asked for last: models are mostly run on the same frames, which are put in order once."""

    facts: Facts | None = None
    grouped: Clusters | None = None
    places: FramePlaces | None = None

    def of(self, predictions: Predictions) -> FramePlaces | None:
        """As `places_of` has them."""
        if predictions.facts != self.facts or predictions.grouped != self.grouped:
            self.facts, self.grouped = predictions.facts, predictions.grouped
            self.places = places_of(self.facts, self.grouped)
        return self.places


class Frames(NamedTuple):
    """Labelled frames with their anchor, and whether each is classified correctly."""

    predictions: Predictions
    correct: NDArray[np.bool_]  # (frames,)
    places: FramePlaces
    without_anchor: int  # frames left out: their anchor is unreadable or has no label
    rejected: int  # frames left out: reviewers found them unlike their anchor

    @classmethod
    def of(cls, predictions: Predictions, *, keep_rejected: bool = False, known: KnownPlaces | None = None) -> Frames | None:
        """None where the images are no frames around anchors, or no anchor has a label.

        Frames rejected in review are left out unless `keep_rejected`.
        """
        places = (known or KnownPlaces()).of(predictions)
        if places is None:
            return None
        rejected = predictions.labelled & verdicts_of(predictions.facts, len(predictions)).rejected & (not keep_rejected)
        counted = np.flatnonzero(predictions.labelled & ~rejected)
        rows = counted[places.take(counted).has_anchor]
        if not len(rows):
            return None
        kept = predictions if len(rows) == len(predictions) else predictions.take(rows)
        correct = is_correct(kept.labels, kept.top5.classes)
        return cls(kept, correct, places.take(rows), len(counted) - len(rows), int(rejected.sum()))

    @property
    def columns(self) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.intp]]:
        """Arguments of the pm-k metrics: correct, offsets, groups."""
        return self.correct, self.places.offsets, self.places.anchors

    @property
    def clips_told(self) -> dict[str, str]:
        """Numbers of anchors and clips, as a convention."""
        anchors, clusters = int((self.places.offsets == 0).sum()), self.places.clusters
        told = f"{counted(anchors, 'anchor')} of {counted(clusters.count, clusters.case)}"
        by_folder = clusters.unit == CLIP and CLIP not in self.predictions.facts
        guessed = f", by the anchors' folders: the frames have no fact {CLIP}" if by_folder else ""
        return {"clips": f"{told}{guessed}"}

    @property
    def left_out(self) -> dict[str, str]:
        """Counts of frames left out, as conventions."""
        return frames_left_out(self.without_anchor, self.rejected)


def frames_left_out(without_anchor: int, rejected: int) -> dict[str, str]:
    """Counts of frames left out, as conventions; nothing where none is."""
    counts = {"frames without their anchor": without_anchor, "frames rejected in review": rejected}
    return {what: f"{count}, left out" for what, count in counts.items() if count}


def places_of(facts: Facts, grouped: Clusters | None = None) -> FramePlaces | None:
    """Anchor, offset and cluster of each frame; None where the images are no frames around anchors.

    Clusters are those that images are `grouped` by, else clips: the fact `clip`, or the anchor's folder.
    """
    if not {"anchor", "offset"} <= set(facts):
        return None
    ids = [str(anchor) for anchor in facts["anchor"]]
    told = {anchor: str(clip) for anchor, clip in zip(ids, facts.get(CLIP, ()), strict=False) if clip is not None}
    offsets = np.array([int(offset or 0) for offset in facts["offset"]], np.intp)
    clips = {anchor: told.get(anchor, _folder_of(anchor)) for anchor in dict.fromkeys(ids)}
    clusters = grouped or Clusters(CLIP, tuple(map(clips.__getitem__, ids)))
    return FramePlaces(_numbered(ids), offsets, clusters)


def _numbered(names: Sequence[str]) -> NDArray[np.intp]:
    """A number for each name, in sorted order."""
    number_of = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.fromiter(map(number_of.__getitem__, names), np.intp, len(names))


def _folder_of(anchor: str) -> str:
    return anchor.rpartition("/")[0] or anchor


class Verdicts(NamedTuple):
    """Which frames reviewers found similar to their anchor, and which they rejected; the rest were not reviewed."""

    similar: NDArray[np.bool_]  # (frames,)
    rejected: NDArray[np.bool_]  # (frames,)


def verdicts_of(facts: Facts, frames: int) -> Verdicts:
    """The fact `reviewed` of each frame: ``similar`` or true keeps it, false is not reviewed, any other word rejects it.

    >>> verdicts_of({"reviewed": (True, "dissimilar", False, "similar")}, 4)
    Verdicts(similar=array([ True, False, False,  True]), rejected=array([False,  True, False, False]))
    """
    if "reviewed" not in facts:
        return Verdicts(np.zeros(frames, bool), np.zeros(frames, bool))
    plain = {word: str(word).strip().lower() for word in set(facts["reviewed"])}
    said = [plain[word] for word in facts["reviewed"]]
    similar = np.array([word in SIMILAR for word in said], bool)
    return Verdicts(similar, ~similar & np.array([word not in NOT_REVIEWED for word in said], bool))


def subsets_of(facts: Facts, places: FramePlaces) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Name and frames of each subset, (frames,): all but one frame type (I, P, B), or clips of one frame rate.

    A frame type is left out among the anchors and around them; with an anchor go its frames.
    """
    is_anchor = places.offsets == 0
    types = np.array([str(one or "") for one in facts.get("frame_type", ())])
    for kind in ("I", "P", "B") if len(types) else ():
        left = (types != kind) & np.isin(places.anchors, places.anchors[is_anchor & (types != kind)])
        if left.any() and (types[is_anchor] == kind).any():
            yield f"without {kind}", left
    rates = np.array([round(float(rate or UNKNOWN), 2) for rate in facts.get("frame_rate", ())])
    for name, some in _rates_together(rates[is_anchor]) if len(rates) else ():
        yield name, np.isin(places.anchors, places.anchors[is_anchor & np.isin(rates, some)])


def _rates_together(rates: NDArray[np.floating]) -> Iterator[tuple[str, list[float]]]:
    """Name and frame rates of each subset; nothing where all anchors have one rate."""
    anchors = Counter(rates.tolist())
    if len(anchors) < 2:
        return
    known = sorted(set(anchors) - {UNKNOWN})
    own = [rate for rate in known if len(known) <= MOST_RATES or anchors[rate] >= LEAST_AT_RATE]
    others = [rate for rate in known if rate not in own]
    yield from ((f"frame rate {rate:g}", [rate]) for rate in own)
    if others:
        each = f"{len(others)} rates of fewer than {LEAST_AT_RATE} anchors each"
        yield f"other frame rates, {others[0]:g} to {others[-1]:g} ({each})", others
    if UNKNOWN in anchors:
        yield "frame rate unknown", [UNKNOWN]


def rate_told(facts: Facts) -> dict[str, str]:
    """The frame rate as a convention, where all clips have the same."""
    rates = set(facts.get("frame_rate", ()))
    return {"frame rate": f"{float(next(iter(rates)) or 0):g} fps in every clip"} if len(rates) == 1 else {}
