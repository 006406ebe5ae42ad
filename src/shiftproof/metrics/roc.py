"""The curve of images found against false alarms, with as many points as the eye can tell apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.score_counts import score_counts
from shiftproof.types import AnomalyScores


class RocCurve(NamedTuple):
    """Shares flagged as the threshold falls, from none, (0, 0), to all, (1, 1)."""

    false_alarms: NDArray[np.floating]  # share of inside images, (points,)
    found: NDArray[np.floating]  # share of outside images, (points,)


def roc_curve(in_scores: AnomalyScores, out_scores: AnomalyScores, *, points: int = 200) -> RocCurve:
    """Share of outside images found against share of inside images flagged, from none to all.

    Only corners are kept. Where there are more than `points` of them, the way along the curve is cut into half as many
    stretches, and the first and last corner of each stay: the true curve lies within 1.5 / `points` of the one drawn.

    >>> curve = roc_curve(np.array([0.1, 0.2, 0.6]), np.array([0.5, 0.9]))
    >>> curve.false_alarms.round(2).tolist(), curve.found.tolist()
    ([0.0, 0.0, 0.33, 0.33, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    if points < 4:
        raise BadInput(f"a curve needs at least 4 points, got {points}")
    _, inside, outside = score_counts(in_scores, out_scores)
    across, up = (np.cumsum(np.append(0, side[::-1])) for side in (inside, outside))
    # whether the next step goes another way than the last: exact, in whole images
    turns = np.diff(across)[:-1] * np.diff(up)[1:] != np.diff(across)[1:] * np.diff(up)[:-1]
    corner = np.concatenate([[True], turns, [True]])
    false_alarms, found = across[corner] / across[-1], up[corner] / up[-1]
    if len(found) > points:
        stretches = points // 2
        stretch = np.minimum((false_alarms + found) / 2 * stretches, stretches - 1).astype(int)
        begins = np.append(True, stretch[1:] != stretch[:-1])
        kept = begins | np.append(begins[1:], True)
        false_alarms, found = false_alarms[kept], found[kept]
    return RocCurve(false_alarms, found)
