"""A straight line through points, and how sure one can be of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput


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
    """How much higher the first line begins than the second, for lines through points of their own (Welch's t).

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
    line = fit_line(x, y, level=level)
    height, reach = line.intercept + line.slope * place, _student_quantile(level, len(x) - 2) * predicted_error(x, y, place)
    return height - reach, height + reach


def predicted_error(x: NDArray[np.floating], y: NDArray[np.floating], place: float) -> float:
    """Standard error of one more point at this place about the line of least squares, with len(x) - 2 degrees of freedom.

    >>> round(predicted_error(np.array([0.0, 1.0, 2.0]), np.array([1.0, 4.0, 4.0]), 3.0) ** 2, 4)  # 1.5 * (1 + 1/3 + 2)
    5.0
    """
    line = fit_line(x, y)
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
