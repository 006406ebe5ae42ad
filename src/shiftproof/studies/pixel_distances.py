"""How far frames are from their anchors in their pixels, and whether mistakes are made on those farther away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.frame_distance import empirical_cdf
from shiftproof.metrics.frame_sets import frame_sets
from shiftproof.studies.frame_review import verdicts_of
from shiftproof.studies.frames import Frames
from shiftproof.types import About, Curve, Predictions


def distances_of_pairs(predictions: Predictions, about: About, convention: Mapping[str, str]) -> Iterator[Curve]:
    """The spread of the distances of all frames from their anchors, and of those that people found like them."""
    frames = Frames.of(predictions, keep_rejected=True)
    if frames is not None:
        verdicts = verdicts_of(frames.predictions.facts, len(frames.correct))
        yield from _spread(frames, np.ones(len(frames.correct), bool), {**about, "pairs": "all"}, convention)
        yield from _spread(frames, verdicts.similar, {**about, "pairs": "reviewed"}, convention)


def distances_of_mistakes(frames: Frames, about: About, convention: Mapping[str, str]) -> Iterator[Curve]:
    """The same of frames that a model gets wrong though it is right on their anchor."""
    anchor_right = frames.correct[frame_sets(frames.places.offsets, frames.places.anchors).anchor_of_each_row()]
    stated = {**convention, "mistakes": "a wrong frame of a right anchor"}
    yield from _spread(frames, anchor_right & ~frames.correct, {**about, "pairs": "mistakes"}, stated)


def _spread(frames: Frames, chosen: NDArray[np.bool_], about: About, convention: Mapping[str, str]) -> Iterator[Curve]:
    """Nothing where the set does not tell distances, or none of the chosen frames has one."""
    told = frames.predictions.facts.get("pixel_distance")
    if told is None:
        return
    distances = np.array([np.nan if distance is None else float(distance) for distance in told])
    pairs = distances[chosen & (frames.places.offsets != 0) & np.isfinite(distances)]
    if not len(pairs):
        return
    spread = empirical_cdf(pairs)
    yield Curve(
        "pixel_distances",
        about,
        "largest change of a pixel",
        "share of pairs within it",
        x=tuple(spread.values.tolist()),
        y=tuple(spread.shares.tolist()),
        images=len(pairs),
        convention={**convention, "distance": "largest change of any pixel and colour, of the frames as stored"},
        counts=tuple((spread.shares * len(pairs)).round().astype(int).tolist()),
    )
