"""Random sets of frames: uneven, some with an anchor alone, rows in any order."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Frames(NamedTuple):
    correct: NDArray[np.bool_]  # (models, frames)
    offsets: NDArray[np.integer]
    groups: NDArray[np.str_]


def random_frames(seed: int, *, models: int = 3, anchors: int = 30, reach: int = 4) -> Frames:
    generator = np.random.default_rng(seed)
    around = np.array([offset for offset in range(-reach, reach + 1) if offset])
    sets = [np.append(0, around[generator.random(len(around)) < generator.random()]) for _ in range(anchors)]
    offsets = np.concatenate([*sets, [0]])  # the last anchor is alone for sure
    groups = np.repeat([f"clip-{number}" for number in range(anchors + 1)], [*map(len, sets), 1])
    order = generator.permutation(len(offsets))
    return Frames(generator.random((models, len(offsets))) < 0.8, offsets[order], groups[order])
