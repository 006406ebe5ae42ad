"""Is a model robust, or only accurate? Its accuracy under a shift beside that of other models as accurate as it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import Groups, student_quantile, tail_of
from shiftproof.metrics.trends import Line, fit_line, predicted_error, predicted_interval

LEAST_CASES = 10
"""Clusters of a model's images below which its effective robustness is no number worth printing."""

Axes = Literal["linear", "probit"]
"""Where the line is straight: among accuracies, or among the normal quantiles of them (Taori et al., 2020)."""


@dataclass(frozen=True)
class EffectiveRobustness:
    """How far a model's accuracy under the shift is from the line through other models; all are shares of 0 to 1."""

    difference: float  # above 0 it keeps more than models of its accuracy do
    expected: float  # the height of the line at the model's original accuracy
    expected_interval: tuple[float, float]  # where one more model like those of the line would fall
    line: Line  # on its axes
    interval: tuple[float, float] | None = None  # of the difference, the model's own images included, where they are known

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
    and for their number; not for the images that the model itself was measured on, for which see
    `measured_effective_robustness`.

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


def measured_effective_robustness(
    original_correct: NDArray[np.bool_],
    perturbed_correct: NDArray[np.bool_],
    others_original: NDArray[np.floating],
    others_perturbed: NDArray[np.floating],
    *,
    clusters: Groups | None = None,
    axes: Axes = "linear",
    level: float = 0.95,
) -> EffectiveRobustness | None:
    """The effective robustness of a model from its answers to the same images before and after the shift, (images,) each.

    Its interval allows for the images, by cluster and with what both accuracies have in common, besides the scatter of the
    other models about their line: 0 is inside 95 times in 100 of a model that is like the others. Of fewer than
    `LEAST_CASES` clusters there is no number, and so None; nor is there on probit axes where all answers before or after the
    shift are alike.

    >>> before, after = np.arange(100) % 10 < 6, np.arange(100) % 10 < 5
    >>> found = measured_effective_robustness(before, after, np.array([0.4, 0.6, 0.8]), np.array([0.21, 0.39, 0.61]))
    >>> round(found.difference, 2), found.interval[0] < 0.1 < found.interval[1]
    (0.1, True)
    >>> measured_effective_robustness(before[:5], after[:5], np.array([0.4, 0.6, 0.8]), np.array([0.2, 0.4, 0.6])) is None
    True
    """
    tail = tail_of(level)
    answers = np.array([original_correct, perturbed_correct], dtype=float)
    if answers.ndim != 2 or not answers.shape[1]:
        raise BadInput("answers before and after the shift should be of the same images, at least one")
    groups = np.arange(answers.shape[1]) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(groups)
    if len(sizes) < LEAST_CASES:
        return None
    original, perturbed = (float(share) for share in answers.mean(axis=1))
    if axes == "probit" and not (0 < original < 1 and 0 < perturbed < 1):
        return None
    found = effective_robustness(original, perturbed, others_original, others_perturbed, axes=axes, level=level)
    covariance = _accuracy_covariance(answers, groups, sizes)
    x, y = _to_axes(others_original, axes), _to_axes(others_perturbed, axes)
    place = float(_to_axes(np.array([original]), axes)[0])
    steep = _steepness(np.array([original, perturbed]), len(sizes), axes)
    weights = np.array([-found.line.slope * steep[0], steep[1]])
    parts = float(weights @ covariance @ weights), predicted_error(x, y, place) ** 2
    free = max(float(answers.shape[1] ** 2 / (sizes**2).sum()) - 1, 1.0), len(x) - 2
    if free[1] < 1:
        return replace(found, interval=None)
    degrees = sum(parts) ** 2 / sum(part**2 / each for part, each in zip(parts, free, strict=True))
    reach = student_quantile(1 - tail, degrees) * float(np.sqrt(sum(parts)))
    height = found.line.intercept + found.line.slope * place
    low, high = (float(share) for share in _from_axes(np.array([height - reach, height + reach]), axes))
    return replace(found, interval=(max(-1.0, perturbed - high), min(1.0, perturbed - low)))


def _accuracy_covariance(answers: NDArray[np.floating], groups: Groups, sizes: NDArray[np.integer]) -> NDArray[np.floating]:
    """Covariance of two accuracies on the same images, by cluster, (2, 2)."""
    images, cases = answers.shape[1], len(sizes)
    around = answers - answers.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(groups, row) for row in around]) / images
    # half a case more of each way to answer both, so that answers that are all alike are not taken for certain
    corners = np.array([[0, 0, 1, 1], [0, 1, 0, 1]]) - answers.mean(axis=1, keepdims=True)
    weight = float(np.sqrt(images * cases)) + 2  # between images that tell alike and clusters that tell as one
    return np.asarray(sums @ sums.T * cases / (cases - 1) + corners @ corners.T / 2 / weight**2)


def _steepness(shares: NDArray[np.floating], cases: int, axes: Axes) -> NDArray[np.floating]:
    """How far each share moves on its axis for a small change, (shares,)."""
    if axes == "linear":
        return np.ones(len(shares))
    # drawn in from the ends as Wilson's interval is, where a quantile would move without end
    within = (shares * cases + 2) / (cases + 4)
    return np.asarray(np.sqrt(2 * np.pi) * np.exp(_to_axes(within, axes) ** 2 / 2))


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
