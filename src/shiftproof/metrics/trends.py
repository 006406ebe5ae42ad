"""A straight line through points, with confidence intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import Groups, student_quantile, tail_of


@dataclass(frozen=True)
class Line:
    """A line by least squares; what two points alone cannot tell is nan."""

    slope: float
    intercept: float
    slope_error: float  # standard errors
    intercept_error: float
    slope_interval: tuple[float, float]
    intercept_interval: tuple[float, float]
    r_squared: float  # share of the spread of y that the line explains; nan where y is the same everywhere
    points: int

    def at(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """Height of the line."""
        return self.intercept + self.slope * x

    @property
    def published_slope_interval(self) -> tuple[float, float]:
        """Two standard errors either way, as the ImageNet-OOD paper has it, however few the points."""
        return self.slope - 2 * self.slope_error, self.slope + 2 * self.slope_error

    @property
    def published_intercept_interval(self) -> tuple[float, float]:
        """Two standard errors either way, as the ImageNet-OOD paper has it, however few the points."""
        return self.intercept - 2 * self.intercept_error, self.intercept + 2 * self.intercept_error


def fit_line(x: NDArray[np.floating], y: NDArray[np.floating], *, level: float = 0.95) -> Line:
    """The line of least squares, with intervals by Student's t: they hold for points that scatter alike and independently.

    >>> line = fit_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0, 4.0]))
    >>> line.slope, line.intercept
    (1.5, 1.5)
    >>> round(line.r_squared, 4)  # residuals -1/2, 1, -1/2, so 1 - 1.5 / 6
    0.75
    >>> round(line.slope_error, 4)  # sqrt(1.5 / 1 / 2)
    0.866
    """
    _check(x, y)
    across, up = x - x.mean(), y - y.mean()
    width = float(across @ across)
    slope = float(across @ up) / width
    intercept = float(y.mean() - slope * x.mean())
    unexplained, free = float(((up - slope * across) ** 2).sum()), len(x) - 2
    scatter = unexplained / free if free else float("nan")
    slope_error = float(np.sqrt(scatter / width))
    intercept_error = float(np.sqrt(scatter * (1 / len(x) + x.mean() ** 2 / width)))
    reach = _student_quantile(level, free)
    spread = float(up @ up)
    return Line(
        slope,
        intercept,
        slope_error,
        intercept_error,
        (slope - reach * slope_error, slope + reach * slope_error),
        (intercept - reach * intercept_error, intercept + reach * intercept_error),
        1 - unexplained / spread if spread else float("nan"),
        len(x),
    )


class Difference(NamedTuple):
    """How far apart two numbers lie, and where that would be with other points."""

    value: float
    interval: tuple[float, float]


def intercept_difference(first: Line, second: Line, *, level: float = 0.95) -> Difference:
    """Difference of the intercepts of two lines, for lines through points of their own (Welch's t).

    >>> one = fit_line(np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0, 4.0]))
    >>> intercept_difference(one, one).value
    0.0
    """
    apart = first.intercept - second.intercept
    parts = [(line.intercept_error**2, line.points - 2) for line in (first, second)]
    spread = sum(part for part, _ in parts)
    free = spread**2 / sum(part**2 / points for part, points in parts if points) if spread > 0 else 1.0
    reach = _student_quantile(level, free) * float(np.sqrt(spread))
    return Difference(apart, (apart - reach, apart + reach))


def interval_gap(first: tuple[float, float], second: tuple[float, float]) -> float:
    """What lies between two intervals; below 0 they overlap by so much.

    >>> round(interval_gap((0.85, 0.874), (0.755, 0.779)), 3)  # Energy on ImageNet-R and ImageNet-OOD, as published
    0.071
    >>> round(interval_gap((0.1, 0.3), (0.2, 0.5)), 3)
    -0.1
    """
    return max(first[0], second[0]) - min(first[1], second[1])


def predicted_interval(
    x: NDArray[np.floating], y: NDArray[np.floating], place: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Where one more point at this place would fall, if it scatters about the line of least squares as the others do.

    Of two points alone it is nan.

    >>> low, high = predicted_interval(np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0, 4.0]), 3.0)
    >>> round((low + high) / 2, 4)  # 1.5 + 1.5 * 3
    6.0
    >>> round((high - low) / 2 / 12.7062, 4)  # Student's t of one degree of freedom; sqrt(1.5 * (1 + 1/3 + 2**2 / 2))
    2.2361
    """
    return _falls_about(fit_line(x, y), x, y, place, level)


def _falls_about(
    line: Line, x: NDArray[np.floating], y: NDArray[np.floating], place: float, level: float
) -> tuple[float, float]:
    """The same where the line is known."""
    height, reach = line.intercept + line.slope * place, _student_quantile(level, len(x) - 2) * _error(line, x, y, place)
    return height - reach, height + reach


def predicted_error(x: NDArray[np.floating], y: NDArray[np.floating], place: float) -> float:
    """Standard error of one more point at this place about the line of least squares, with len(x) - 2 degrees of freedom.

    >>> round(predicted_error(np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0, 4.0]), 3.0) ** 2, 4)  # 1.5 * (1 + 1/3 + 2)
    5.0
    """
    return _error(fit_line(x, y), x, y, place)


def _error(line: Line, x: NDArray[np.floating], y: NDArray[np.floating], place: float) -> float:
    """The same where the line is known."""
    across, free = x - x.mean(), len(x) - 2
    scatter = float(((y - line.at(x)) ** 2).sum()) / free if free else float("nan")
    return float(np.sqrt(scatter * (1 + 1 / len(x) + (place - x.mean()) ** 2 / (across @ across))))


def _student_quantile(level: float, free: float) -> float:
    """How many standard errors the interval reaches either way."""
    # scipy.special alone: scipy.stats would take 300 ms longer to import
    from scipy.special import stdtrit

    if not 0 < level < 1:
        raise BadInput(f"level should lie between 0 and 1, such as 0.95, got {level}")
    return float(stdtrit(free, (1 + level) / 2)) if free else float("nan")


def _check(x: NDArray[np.floating], y: NDArray[np.floating]) -> None:
    if x.ndim != 1 or x.shape != y.shape:
        raise BadInput(f"x and y should be (points,) alike, got shapes {x.shape} and {y.shape}")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise BadInput("some points are infinite or not numbers; leave them out before fitting a line")
    if len(x) < 2 or np.ptp(x) == 0:
        raise BadInput(f"a line needs points at two places at least, got {len(x)} points at {len(np.unique(x))}")


LEAST_CASES = 10
"""Clusters of a model's images below which its effective robustness is no number worth printing."""

Axes = Literal["linear", "probit"]
"""Where the line is straight: among accuracies, or among the normal quantiles of them (Taori et al., 2020)."""


@dataclass(frozen=True)
class EffectiveRobustness:
    """A model's accuracy under the shift minus that by the linear trend of other models; all are shares of 0 to 1."""

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
    bounds = _falls_about(line, x, y, float(place[0]), level)
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
    """The effective robustness of a model from its predictions for the same images before and after the shift.

    Its interval allows for the images, by cluster and with what both accuracies have in common, besides the scatter of the
    other models about their line: it covers 0 in 95 of 100 cases for a model that is like the others. Of fewer than
    `LEAST_CASES` clusters there is no number, and so None; nor is there on probit axes where all predictions before or after
    the shift are alike.

    >>> before, after = np.arange(100) % 10 < 6, np.arange(100) % 10 < 5
    >>> found = measured_effective_robustness(before, after, np.array([0.4, 0.6, 0.8]), np.array([0.21, 0.39, 0.61]))
    >>> round(found.difference, 2), found.interval[0] < 0.1 < found.interval[1]
    (0.1, True)
    >>> measured_effective_robustness(before[:5], after[:5], np.array([0.4, 0.6, 0.8]), np.array([0.2, 0.4, 0.6])) is None
    True
    """
    answers = np.array([original_correct, perturbed_correct], dtype=float)
    if answers.ndim != 2 or not answers.shape[1]:
        raise BadInput("predictions before and after the shift should be of the same images, at least one")
    groups = np.arange(answers.shape[1]) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(groups)
    if len(sizes) < LEAST_CASES:
        return None
    original, perturbed = (float(share) for share in answers.mean(axis=1))
    if axes == "probit" and not (0 < original < 1 and 0 < perturbed < 1):
        return None
    found = effective_robustness(original, perturbed, others_original, others_perturbed, axes=axes, level=level)
    steep = _steepness(np.array([original, perturbed]), len(sizes), axes)
    weights = np.array([-found.line.slope * steep[0], steep[1]])
    variance = float(weights @ _accuracy_covariance(answers, groups, sizes) @ weights)
    of_images = _Part(variance, _degrees(sizes))
    return _within(found, original, [of_images], others_original, others_perturbed, axes, level)


def unpaired_effective_robustness(
    original: NDArray[np.bool_] | float,
    perturbed_correct: NDArray[np.bool_],
    others_original: NDArray[np.floating],
    others_perturbed: NDArray[np.floating],
    *,
    original_clusters: Groups | None = None,
    clusters: Groups | None = None,
    axes: Axes = "probit",
    level: float = 0.95,
) -> EffectiveRobustness | None:
    """The effective robustness of a model from its predictions for two datasets of different images.

    The original accuracy may also be given as a share, and then counts as exact. Otherwise as
    `measured_effective_robustness`, with the images of both datasets sampled independently.

    >>> before, after = np.arange(1000) % 10 < 6, np.arange(100) % 10 < 5
    >>> others = np.array([0.4, 0.6, 0.8]), np.array([0.21, 0.39, 0.61])
    >>> found = unpaired_effective_robustness(before, after, *others, axes="linear")
    >>> round(found.difference, 2), found.interval[0] < 0.1 < found.interval[1]
    (0.1, True)
    """
    after = _measured(perturbed_correct, clusters, axes)
    before = None if isinstance(original, float) else _measured(original, original_clusters, axes)
    accuracy = before.share if before else float(original)
    if after.cases < LEAST_CASES or (before and before.cases < LEAST_CASES):
        return None
    if axes == "probit" and not (0 < accuracy < 1 and 0 < after.share < 1):
        return None
    found = effective_robustness(accuracy, after.share, others_original, others_perturbed, axes=axes, level=level)
    parts = [after.error]
    if before:
        parts.append(_Part(found.line.slope**2 * before.error.variance, before.error.free))
    return _within(found, accuracy, parts, others_original, others_perturbed, axes, level)


class _Part(NamedTuple):
    """One source of error: its variance on the axes, and the degrees of freedom that it was estimated with."""

    variance: float
    free: float


class _Measured(NamedTuple):
    """An accuracy, the clusters behind it, and its error on the axes."""

    share: float
    cases: int
    error: _Part


def _measured(correct: NDArray[np.bool_], clusters: Groups | None, axes: Axes) -> _Measured:
    groups = np.arange(len(correct)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes, share = np.bincount(groups), float(np.mean(correct))
    steep = float(_steepness(np.array([share]), len(sizes), axes)[0])
    variance = float(_accuracy_covariance(np.array([correct, correct], dtype=float), groups, sizes)[0, 0])
    return _Measured(share, len(sizes), _Part(steep**2 * variance, _degrees(sizes)))


def _degrees(sizes: NDArray[np.integer]) -> float:
    return max(float(sizes.sum() ** 2 / (sizes**2).sum()) - 1, 1.0)


def _within(
    found: EffectiveRobustness,
    original: float,
    of_images: Sequence[_Part],
    others_original: NDArray[np.floating],
    others_perturbed: NDArray[np.floating],
    axes: Axes,
    level: float,
) -> EffectiveRobustness:
    """The same with the interval of its difference: by Satterthwaite, from images and the scatter of other models."""
    x, y = _to_axes(others_original, axes), _to_axes(others_perturbed, axes)
    if len(x) < 3:
        return replace(found, interval=None)
    place, perturbed = float(_to_axes(np.array([original]), axes)[0]), found.expected + found.difference
    parts = [*of_images, _Part(_error(found.line, x, y, place) ** 2, len(x) - 2)]
    total = sum(part.variance for part in parts)
    degrees = total**2 / sum(part.variance**2 / part.free for part in parts)
    reach = student_quantile(1 - tail_of(level), degrees) * float(np.sqrt(total))
    height = found.line.intercept + found.line.slope * place
    low, high = (float(share) for share in _from_axes(np.array([height - reach, height + reach]), axes))
    return replace(found, interval=(max(-1.0, perturbed - high), min(1.0, perturbed - low)))


def _accuracy_covariance(answers: NDArray[np.floating], groups: Groups, sizes: NDArray[np.integer]) -> NDArray[np.floating]:
    """Covariance of two accuracies on the same images, by cluster, (2, 2)."""
    images, cases = answers.shape[1], len(sizes)
    around = answers - answers.mean(axis=1, keepdims=True)
    sums = np.stack([np.bincount(groups, row) for row in around]) / images
    # half a case more of each outcome, so that predictions that are all alike do not count as certain
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
