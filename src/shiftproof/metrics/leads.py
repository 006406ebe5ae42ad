"""How clearly an answer is right or wrong: the score of the right class beside the best of the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import label_rows
from shiftproof.types import Labels


def right_class_leads(labels: Labels, classes: NDArray[np.integer], scores: NDArray[np.floating]) -> NDArray[np.floating]:
    """Best score of a right class minus the best of the others, (images,); below 0 exactly where the answer is wrong.

    Labels are (images,) or (images, labels) with -1 for none; classes and scores are the best few of each image, best
    first, (images, best). Where all of these are right, or none, the last score stands for what is not among them.

    >>> right_class_leads(np.array([[7], [3], [5]]), np.array([[7, 3], [7, 3], [7, 3]]), np.array([[4.0, 1.5]] * 3))
    array([ 2.5, -2.5, -2.5])
    """
    rows = label_rows(labels)
    if classes.shape != scores.shape or len(rows) != len(classes):
        raise BadInput(f"labels, classes and scores do not fit: shapes {labels.shape}, {classes.shape}, {scores.shape}")
    right = np.asarray((classes[:, :, None] == rows[:, None, :]).any(axis=2))
    last = scores[:, -1]
    best_right = np.where(right.any(axis=1), np.where(right, scores, -np.inf).max(axis=1), last)
    best_other = np.where(right.all(axis=1), last, np.where(right, -np.inf, scores).max(axis=1))
    leads = (best_right - best_other).astype(float)
    # a tie goes to the class that comes first
    return np.asarray(np.where(right[:, 0], np.maximum(leads, 0.0), np.minimum(leads, -1e-9)))
