"""One perturbed set for all models: of every neighbourhood the frame that most of them get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from shiftproof.metrics.hardest_frames import hardest_frames
from shiftproof.studies import evidence
from shiftproof.studies.frames import Frames
from shiftproof.types import Measurement, Run


def accuracy_on_hardest_frames(
    answered: Mapping[Run, Frames], conventions: Mapping[Run, Mapping[str, str]], *, k: int, include_anchor: bool
) -> Iterator[Measurement]:
    """Accuracy of each model on the frames at most `k` from an anchor that most of these models get wrong.

    pm-k chooses other frames for every model; here all are asked the same. One model alone has no such set.
    """
    if len(answered) < 2:
        return
    # rows are in the order of the image set, so those of one model and another line up
    shared = set.intersection(*(set(frames.predictions.ids) for frames in answered.values()))
    rows = [[row for row, image in enumerate(one.predictions.ids) if image in shared] for one in answered.values()]
    correct = np.stack([one.correct[chosen] for one, chosen in zip(answered.values(), rows, strict=True)])
    places = next(iter(answered.values())).places.take(np.array(rows[0], np.intp))
    whole = places.has_anchor
    if not whole.any():
        return
    hardest = hardest_frames(
        correct[:, whole], places.offsets[whole], places.anchors[whole], k=k, include_anchor=include_anchor
    )
    frames = {"frames": f"of each anchor the one that most of {len(answered)} models get wrong"}
    for run, right in zip(answered, correct[:, whole][:, hardest].sum(axis=1).tolist(), strict=True):
        about = {**run.about(), "k": k}
        yield evidence.share("hardest_frames_accuracy", right, len(hardest), about, {**conventions[run], **frames})
