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
    predictions, offsets = frames.predictions, frames.offsets
    answers, confidence = predictions.top5.classes[:, 0], evidence.confidence_or_nan(predictions)
    strips = {anchor: rows[np.argsort(offsets[rows])] for anchor, rows in _rows_of(frames.anchors).items()}
    changes = {anchor: int((np.diff(answers[rows]) != 0).sum()) for anchor, rows in strips.items()}
    names = ClassNames(predictions.classes)
    for anchor in sorted(strips, key=lambda one: (-changes[one], one))[:shown]:
        if changes[anchor]:
            items = tuple(
                GalleryItem(
                    predictions.ids[row],
                    f"{offsets[row]:+d}: {sure_of(names[int(answers[row])], confidence[row])}"
                    f"{'' if frames.correct[row] else ' (wrong)'}",
                )
                for row in strips[anchor].tolist()
            )
            title = f"Around {anchor}: the answer changes {changes[anchor]} times"
            yield Gallery("filmstrip", {**run.about(), "clip": anchor}, run.image_set, title, items)


def _rows_of(anchors: NDArray[np.str_]) -> dict[str, NDArray[np.intp]]:
    order = np.argsort(anchors, kind="stable")
    names, starts = np.unique(anchors[order], return_index=True)
    return dict(zip(names.tolist(), np.split(order, starts[1:]), strict=True))
