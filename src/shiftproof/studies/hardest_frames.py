"""One perturbed set for all models: of every neighbourhood the frame that most of them get wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.hardest_frames import hardest_frames
from shiftproof.studies import evidence
from shiftproof.studies.frames import FramePlaces, Frames
from shiftproof.types import Measurement, Run


def accuracy_on_hardest_frames(
    answered: Mapping[Run, Frames], conventions: Mapping[Run, Mapping[str, str]], *, k: int, include_anchor: bool
) -> Iterator[Measurement]:
    """Accuracy of each model on the frames at most `k` from an anchor that most of these models get wrong.

    pm-k chooses other frames for every model; here all are asked the same. One model alone has no such set.
    """
    if len(answered) < 2:
        return
    correct, places = shared_frames(list(answered.values()))
    if not len(places.offsets):
        return
    hardest = hardest_frames(correct, places.offsets, places.anchors, k=k, include_anchor=include_anchor)
    frames = {"frames": f"of each anchor the one that most of {len(answered)} models get wrong"}
    for run, right in zip(answered, correct[:, hardest], strict=True):
        about, told = {**run.about(), "k": k}, {**conventions[run], **frames}
        yield evidence.share("hardest_frames_accuracy", right, about, told, places.clusters.take(hardest))


def shared_frames(answered: Sequence[Frames]) -> tuple[NDArray[np.bool_], FramePlaces]:
    """Whether each model is right on the frames that all of them answered, (models, frames), and where these stand."""
    # rows are in the order of the image set, so those of one model and another line up
    shared = set.intersection(*(set(frames.predictions.ids) for frames in answered))
    rows = [np.array([image in shared for image in one.predictions.ids]) for one in answered]
    correct = np.stack([one.correct[chosen] for one, chosen in zip(answered, rows, strict=True)])
    places = answered[0].places.take(rows[0])
    whole = places.has_anchor
    return correct[:, whole], places.take(whole)
