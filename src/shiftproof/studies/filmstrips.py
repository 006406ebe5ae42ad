"""Sets of frames worth looking at: those on which the answer changes most often."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames, sure_of
from shiftproof.studies.frames import Frames
from shiftproof.types import Gallery, GalleryItem, Run


def filmstrips(run: Run, frames: Frames, *, shown: int) -> Iterator[Gallery]:
    """The frames around the anchors whose answers change most often, each in order of time with what was said of it."""
    predictions, (anchors, offsets, _) = frames.predictions, frames.places
    answers, confidence = predictions.top5.classes[:, 0], evidence.confidence_or_nan(predictions)
    changing = _changes(answers, anchors, offsets)
    names = ClassNames(predictions.classes)
    for anchor in sorted(changing, key=lambda one: (-changing[one], one))[:shown]:
        rows = np.flatnonzero(anchors == anchor)
        items = tuple(
            GalleryItem(
                predictions.ids[row],
                f"{offsets[row]:+d}: {sure_of(names[int(answers[row])], confidence[row])}"
                f"{'' if frames.correct[row] else ' (wrong)'}",
            )
            for row in rows[np.argsort(offsets[rows])].tolist()
        )
        clip = str(predictions.facts["anchor"][int(rows[0])])
        title = f"Around {clip}: the answer changes {changing[anchor]} times"
        yield Gallery("filmstrip", {**run.about(), "clip": clip}, run.image_set, title, items)


def _changes(answers: NDArray[np.integer], anchors: NDArray[np.intp], offsets: NDArray[np.intp]) -> dict[int, int]:
    """How often the answer changes from frame to frame around each anchor, where it does."""
    order = np.lexsort((offsets, anchors))
    changed = (np.diff(answers[order]) != 0) & (np.diff(anchors[order]) == 0)
    changing, times = np.unique(anchors[order][1:][changed], return_counts=True)
    return dict(zip(changing.tolist(), times.tolist(), strict=True))
