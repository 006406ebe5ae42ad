"""Is a model robust, or only accurate? Its accuracy under a shift beside that of other models as accurate as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.trends import Line, fit_line, predicted_interval

Axes = Literal["linear", "probit"]
"""Where the line is straight: among accuracies, or among the normal quantiles of them (Taori et al., 2020)."""


@dataclass(frozen=True)
class EffectiveRobustness:
    """How far a model's accuracy under the shift is from the line through other models; all are shares of 0 to 1."""

    difference: float  # above 0 it keeps more than models of its accuracy do
    expected: float  # the height of the line at the model's original accuracy
    expected_interval: tuple[float, float]  # where one more model like those of the line would fall
    line: Line  # on its axes

    @property
    def stands_out(self) -> bool:
        """Whether the model is further from the line than one like the others would be."""
        low, high = self.expected_interval
        perturbed = self.expected + self.difference
        return perturbed < low or perturbed > high


def effective_robustness(
    original: float,
    perturbed: float,
    others_original: NDArray[np.floating],
    others_perturbed: NDArray[np.floating],
    *,
    axes: Axes = "linear",
    level: float = 0.95,
) -> EffectiveRobustness:
    """A model's accuracy under a shift minus that of the line through other models, at its original accuracy.

    Accuracies are shares, those of the others (models,). The interval allows for the scatter of the others about their line
    and for their number; not for the images that the model itself was measured on.

    >>> found = effective_robustness(0.6, 0.5, np.array([0.4, 0.6, 0.8]), np.array([0.2, 0.4, 0.6]))
    >>> round(found.expected, 4), round(found.difference, 4)  # the line is 0.2 below the diagonal
    (0.4, 0.1)
    """
    if axes not in ("linear", "probit"):
        raise BadInput(f"axes are 'linear' or 'probit', got {axes!r}")
    x, y = _to_axes(others_original, axes), _to_axes(others_perturbed, axes)
    place = _to_axes(np.array([original]), axes)
    line = fit_line(x, y, level=level)
    bounds = predicted_interval(x, y, float(place[0]), level=level)
    expected, low, high = (float(share) for share in _from_axes(np.array([line.at(place)[0], *bounds]), axes))
    return EffectiveRobustness(perturbed - expected, expected, (low, high), line)


def _to_axes(shares: NDArray[np.floating], axes: Axes) -> NDArray[np.floating]:
    from scipy.special import ndtri

    if not ((shares >= 0) & (shares <= 1)).all():
        raise BadInput("accuracies should be shares of 0 to 1; divide percentages by 100")
    if axes == "linear":
        return shares
    if ((shares == 0) | (shares == 1)).any():
        raise BadInput("an accuracy of 0 or 1 has no place on probit axes; leave it out, or take axes='linear'")
    return np.asarray(ndtri(shares))


def _from_axes(heights: NDArray[np.floating], axes: Axes) -> NDArray[np.floating]:
    from scipy.special import ndtr

    return heights if axes == "linear" else np.asarray(ndtr(heights))
