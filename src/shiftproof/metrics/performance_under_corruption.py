"""What corruption leaves of a number where high is good, such as mean average precision (Michaelis et al., 2019)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from shiftproof.errors import BadInput


def mean_performance_under_corruption(performance: ArrayLike) -> float:
    """Mean over corruptions and severities of what was reached, (corruptions, severities) in (mPC).

    Of a mean average precision 1 is perfect.

    >>> mean_performance_under_corruption([[0.75, 0.25], [0.5, 0.0]])
    0.375
    """
    reached = np.asarray(performance, dtype=float)
    if reached.ndim != 2 or not reached.size:
        raise BadInput(f"performance should be (corruptions, severities), got shape {reached.shape}")
    return float(reached.mean())


def relative_performance_under_corruption(performance: ArrayLike, clean_performance: float) -> float:
    """Share of the performance on clean images that is left under corruption (rPC).

    1 is to lose nothing.

    >>> relative_performance_under_corruption([[0.75, 0.25], [0.5, 0.0]], 0.75)
    0.5
    """
    if not clean_performance > 0:
        raise BadInput(f"performance on clean images should be above 0, got {clean_performance}; there is nothing to lose")
    return mean_performance_under_corruption(performance) / clean_performance
