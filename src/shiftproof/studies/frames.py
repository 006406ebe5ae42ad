"""The frames around anchors that a run has answers for: which belong together, which count, and the anchors by kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import is_correct
from shiftproof.studies.frame_review import Facts, verdicts_of
from shiftproof.types import Fact, Predictions

MOST_RATES = 4
"""Different frame rates that are told apart; clips of more are told together."""


class FramePlaces(NamedTuple):
    """Where frames stand: the anchor that each belongs to, and how many frames after it each comes."""

    anchors: NDArray[np.intp]  # (frames,): anchors are numbered in the order of their ids
    offsets: NDArray[np.intp]  # (frames,)

    @property
    def has_anchor(self) -> NDArray[np.bool_]:
        """Which frames have their anchor among them, (frames,)."""
        return np.isin(self.anchors, self.anchors[self.offsets == 0])

    def reach_told(self, k: int) -> dict[str, str]:
        """That no frame lies as far away as `k`, as a convention; nothing where one does."""
        farthest = int(np.abs(self.offsets).max(initial=0))
        return {"farthest frame": f"{farthest} from its anchor; a larger k has no more frames"} if farthest < k else {}

    def take(self, rows: NDArray[np.intp]) -> FramePlaces:
        """The same for some of the frames."""
        return FramePlaces(self.anchors[rows], self.offsets[rows])


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
        places = places_of(predictions.facts)
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
    def left_out(self) -> dict[str, str]:
        """How many frames numbers go without, in words; nothing where they have them all."""
        return frames_left_out(self.without_anchor, self.rejected)


def frames_left_out(without_anchor: int, rejected: int) -> dict[str, str]:
    """How many frames do not count, in words; nothing where all do."""
    counts = {"frames without their anchor": without_anchor, "frames rejected in review": rejected}
    return {what: f"{count}, left out" for what, count in counts.items() if count}


def places_of(facts: Facts) -> FramePlaces | None:
    """Where the frames of a set stand; None where its images are no frames around anchors."""
    if not {"anchor", "offset"} <= set(facts):
        return None
    ids = [str(anchor) for anchor in facts["anchor"]]
    number_of = {anchor: number for number, anchor in enumerate(sorted(set(ids)))}
    anchors = np.array([number_of[anchor] for anchor in ids], np.intp)
    return FramePlaces(anchors, np.array([int(offset or 0) for offset in facts["offset"]], np.intp))


def subsets_of(facts: Facts, anchors: NDArray[np.intp]) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Which of the anchors in these rows are in each subset: without one kind of frame, their own, or of one frame rate."""
    types, rates = (_of_rows(facts.get(fact, ()), anchors) for fact in ("frame_type", "frame_rate"))
    for kind in ("I", "P", "B"):
        if 0 < types.count(kind) < len(types):
            yield f"without {kind}", np.array([one != kind for one in types])
    whole = [round(float(rate or 0)) for rate in rates]
    if 1 < len(set(whole)) <= MOST_RATES:
        yield from ((f"frame rate {rate}", np.array(whole) == rate) for rate in sorted(set(whole)))


def _of_rows(values: Sequence[Fact], rows: NDArray[np.intp]) -> list[Fact]:
    return [values[row] for row in rows.tolist()] if values else []
