"""The frames around anchors that a run has answers for: which belong together, which count, and the anchors by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import is_correct
from shiftproof.studies import evidence
from shiftproof.studies.frame_review import Facts, verdicts_of
from shiftproof.types import Clusters, Predictions

CLIP = "clip"
"""The fact that names the clip of a frame, whichever way the set was read."""

MOST_RATES = 4
"""Frame rates that each have a row, however few their anchors."""

UNKNOWN = 0.0
"""In place of a frame rate."""

LEAST_AT_RATE = 20
"""Anchors that give a frame rate a row of its own where there are more rates; the rest have one together."""


class FramePlaces(NamedTuple):
    """Where frames stand: the anchor that each belongs to, how many frames after it each comes, and in which clip."""

    anchors: NDArray[np.intp]  # (frames,): anchors are numbered in the order of their ids
    offsets: NDArray[np.intp]  # (frames,)
    clusters: Clusters  # what counts as one case: the clip of the anchor, unless something else was named

    @property
    def has_anchor(self) -> NDArray[np.bool_]:
        """Which frames have their anchor among them, (frames,)."""
        return np.isin(self.anchors, self.anchors[self.offsets == 0])

    def reach_told(self, k: int) -> dict[str, str]:
        """That no frame lies as far away as `k`, as a convention; nothing where one does."""
        farthest = int(np.abs(self.offsets).max(initial=0))
        return {"farthest frame": f"{farthest} from its anchor; a larger k has no more frames"} if farthest < k else {}

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> FramePlaces:
        """The same for some of the frames."""
        return FramePlaces(self.anchors[rows], self.offsets[rows], self.clusters.take(rows))


class Frames(NamedTuple):
    """Labelled frames whose anchor was read too, and whether each is answered right."""

    predictions: Predictions
    correct: NDArray[np.bool_]  # (frames,)
    places: FramePlaces
    without_anchor: int  # frames left out because their anchor was not read, or has no label
    rejected: int  # frames left out because people found them unlike their anchor

    @classmethod
    def of(cls, predictions: Predictions, *, keep_rejected: bool = False) -> Frames | None:
        """The frames of a set of frames; None where it is none, or no anchor of it has a label.

        Frames that people rejected beside their anchor are left out, unless they are to be kept.
        """
        places = places_of(predictions.facts, predictions.grouped)
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
        """What metrics of frames ask for, a row a frame."""
        return self.correct, self.places.offsets, self.places.anchors

    @property
    def clips_told(self) -> dict[str, str]:
        """How many anchors and clips there are, in words."""
        anchors, clusters = int((self.places.offsets == 0).sum()), self.places.clusters
        told = f"{evidence.counted(anchors, 'anchor')} of {evidence.counted(clusters.count, clusters.case)}"
        by_folder = clusters.unit == CLIP and CLIP not in self.predictions.facts
        guessed = f", by the anchors' folders: the frames have no fact {CLIP}" if by_folder else ""
        return {"clips": f"{told}{guessed}"}

    @property
    def left_out(self) -> dict[str, str]:
        """How many frames numbers go without, in words; nothing where they have them all."""
        return frames_left_out(self.without_anchor, self.rejected)


def frames_left_out(without_anchor: int, rejected: int) -> dict[str, str]:
    """How many frames do not count, in words; nothing where all do."""
    counts = {"frames without their anchor": without_anchor, "frames rejected in review": rejected}
    return {what: f"{count}, left out" for what, count in counts.items() if count}


def places_of(facts: Facts, grouped: Clusters | None = None) -> FramePlaces | None:
    """Where the frames of a set stand; None where its images are no frames around anchors.

    Cases are those that images are `grouped` by, else clips by the fact that names them or the anchors' folders.
    """
    if not {"anchor", "offset"} <= set(facts):
        return None
    ids = [str(anchor) for anchor in facts["anchor"]]
    told = {anchor: str(clip) for anchor, clip in zip(ids, facts.get(CLIP, ()), strict=False) if clip is not None}
    offsets = np.array([int(offset or 0) for offset in facts["offset"]], np.intp)
    clusters = grouped or Clusters(CLIP, tuple(told.get(anchor, _folder_of(anchor)) for anchor in ids))
    return FramePlaces(_numbered(ids), offsets, clusters)


def subsets_of(facts: Facts, places: FramePlaces) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Which frames are in each subset, (frames,): all but one type of frame, or clips of one frame rate.

    A type of frame goes wherever it stands, among anchors and around them; with an anchor go its frames.
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


def rate_told(facts: Facts) -> dict[str, str]:
    """The frame rate, where all clips have the same and there is nothing to tell apart."""
    rates = set(facts.get("frame_rate", ()))
    return {"frame rate": f"{float(next(iter(rates)) or 0):g} a second in every clip"} if len(rates) == 1 else {}


def _rates_together(rates: NDArray[np.floating]) -> Iterator[tuple[str, list[float]]]:
    """The frame rates of each row, from those of all anchors; nothing where there is one for all."""
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


def _numbered(names: Sequence[str]) -> NDArray[np.intp]:
    """A number for each name, in the order of the names."""
    number_of = {name: number for number, name in enumerate(sorted(set(names)))}
    return np.array([number_of[name] for name in names], np.intp)


def _folder_of(anchor: str) -> str:
    return anchor.rpartition("/")[0] or anchor
