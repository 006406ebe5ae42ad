"""One perturbed set for all models: the frame of each neighbourhood that most of them get wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.frame_sets import Correct, Groups, Offsets, check_correct, check_k, frame_sets


def hardest_frames(
    correct: Correct, offsets: Offsets, groups: Groups, *, k: int, include_anchor: bool = True
) -> NDArray[np.intp]:
    """Of each anchor the row of the frame at most `k` away that most models get wrong, (anchors,), in the order of groups.

    Of equals the nearest wins, then the earlier one. With ``include_anchor=False`` only an anchor without neighbours stands
    for itself. `correct` is (models, frames), and ``correct[:, rows].mean(axis=1)`` the accuracy on the set; models that
    helped to choose it look worse on it than others.

    >>> correct = np.array([[True, True, False, True], [False, True, False, True], [False, True, True, True]])
    >>> hardest_frames(correct, np.array([1, 0, -1, 0]), np.array([7, 7, 7, 8]), k=1)  # two models fail on either neighbour
    array([2, 3])
    """
    check_correct(correct, offsets)
    check_k(k)
    if correct.ndim != 2:
        raise BadInput(f"correct should be (models, frames), got shape {correct.shape}")
    sets = frame_sets(offsets, groups)
    wrong = (~correct).sum(axis=0)[sets.rows]
    too_far, only_if_alone = sets.distances > k, (sets.distances == 0) & (not include_anchor)
    # rows are nearest first already, and the sort keeps equals in their order
    hardest_first = np.lexsort((-wrong, only_if_alone, too_far, sets.places))
    return sets.rows[hardest_first[sets.starts]]
