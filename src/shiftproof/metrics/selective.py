"""What a model is worth that may decline to answer: accuracy and risk as it answers more and more images, the surest first.

Sureness is any real score where higher is surer, a confidence or minus an anomaly score; only its order counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups, tail_of
from shiftproof.metrics.jackknife import jackknife_interval
from shiftproof.metrics.surest_first import Sureness, answered_levels, surest_first


class ResponseCurve(NamedTuple):
    """Accuracy on the images answered, from the surest alone to all of them, (images,)."""

    response_rate: NDArray[np.floating]
    accuracy: NDArray[np.floating]


class RiskCoverage(NamedTuple):
    """Share wrong of the images answered, at some of the levels of sureness, surest first."""

    coverage: NDArray[np.floating]
    risk: NDArray[np.floating]


def aurra(confidence: Sureness, correct: NDArray[np.bool_]) -> float:
    """Mean accuracy on the `n` surest images over all `n`: the area under the response-rate accuracy curve.

    1 is perfect, the plain accuracy is what guessing the order gives on average (Hendrycks et al., 2021). Images of equal
    sureness are taken in every order: the mean of all of these is given, and `aurra_bounds` has the extremes.

    >>> round(aurra(np.array([0.9, 0.8, 0.7]), np.array([True, False, True])), 4)  # (1 + 1/2 + 2/3) / 3
    0.7222
    >>> aurra(np.array([0.8, 0.8]), np.array([True, False]))  # 1 and 1/2, or 0 and 1/2
    0.5
    """
    return float(_accuracy_by_answers(confidence, correct).mean())


def aurra_bounds(confidence: Sureness, correct: NDArray[np.bool_]) -> tuple[float, float]:
    """Lowest and highest AURRA that sorting can give, depending on how it orders images of equal sureness.

    >>> aurra_bounds(np.array([0.8, 0.8]), np.array([True, False]))  # 0 and 1/2, or 1 and 1/2
    (0.25, 0.75)
    """
    wrong = ~np.asarray(correct, dtype=bool)
    return 1 - _right_first(confidence, wrong), _right_first(confidence, ~wrong)


def aurra_interval(
    confidence: Sureness, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the AURRA by leaving out clusters of images; None of too few of them. That of the AURC is one minus it.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = aurra_interval(confidence, correct)
    >>> low < aurra(confidence, correct) < high
    True
    """
    return _interval(aurra, confidence, correct, clusters, level)


def aurc_interval(
    confidence: Sureness,
    correct: NDArray[np.bool_],
    *,
    rule: Literal["mean", "trapezoid"] = "mean",
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the AURC by leaving out clusters of images; None of too few of them.

    With a handful of wrong answers it holds the truth less often than it says: `docs/intervals.md` has how often.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = aurc_interval(confidence, correct)
    >>> low < aurc(confidence, correct) < high
    True
    """
    return _interval(lambda sure, right: aurc(sure, right, rule=rule), confidence, correct, clusters, level)


def e_aurc_interval(
    confidence: Sureness, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the E-AURC by leaving out clusters of images; None of too few of them.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = e_aurc_interval(confidence, correct)
    >>> low < e_aurc(confidence, correct) < high
    True
    """
    return _interval(e_aurc, confidence, correct, clusters, level)


def augrc_interval(
    confidence: Sureness, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of the AUGRC by leaving out clusters of images; None of too few of them.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = augrc_interval(confidence, correct)
    >>> low < augrc(confidence, correct) < high
    True
    """
    return _interval(augrc, confidence, correct, clusters, level)


def coverage_interval(
    confidence: Sureness,
    correct: NDArray[np.bool_],
    risk: float,
    *,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of `coverage_at_risk`; None of fewer than `LEAST_CLUSTERS` clusters.

    From the largest share of images at which too many wrong answers are ruled out, to the largest at which no more than
    allowed are not: by the exact test of a share, at as many independent images as tell as much. It jumps with the images,
    and errs on the wide side.

    >>> confidence, correct = np.linspace(1, 0, 200), np.arange(200) < 150
    >>> coverage_at_risk(confidence, correct, 0.1)
    0.83
    >>> low, high = coverage_interval(confidence, correct, 0.1)
    >>> low, high
    (0.79, 0.89)
    """
    tail = tail_of(level)
    seen = coverage_at_risk(confidence, correct, risk)
    images = len(confidence)
    groups = np.arange(images) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    if groups.max() + 1 < LEAST_CLUSTERS:
        return None
    order = np.argsort(-confidence, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(confidence[order]) != 0) + 1, images)
    wrong = 1 - np.asarray(correct, dtype=float)[order]
    answered, mistakes = ends.astype(float), np.cumsum(wrong)[ends - 1]
    design = _design_effects(wrong - risk, groups[order], risk * (1 - risk))[ends - 1]
    too_many, few_enough = _rarely(mistakes / design, answered / design, risk, tail)
    shares = answered / images
    low, high = shares[too_many].max(initial=0.0), shares[~few_enough].max(initial=0.0)
    return min(float(low), seen), max(float(high), seen)


def response_rate_accuracy(confidence: Sureness, correct: NDArray[np.bool_]) -> ResponseCurve:
    """Accuracy on the surest `n` images against the share that these are of all, for every `n`; its mean is the AURRA.

    >>> curve = response_rate_accuracy(np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, False, True, True]))
    >>> curve.response_rate, curve.accuracy.round(2)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([1.  , 0.5 , 0.67, 0.75]))
    """
    accuracy = _accuracy_by_answers(confidence, correct)
    return ResponseCurve(np.arange(1, len(accuracy) + 1) / len(accuracy), accuracy)


def aurc(confidence: Sureness, correct: NDArray[np.bool_], *, rule: Literal["mean", "trapezoid"] = "mean") -> float:
    """Mean share wrong of the `n` surest images over all `n`: the area under the risk-coverage curve, one minus the AURRA.

    0 is perfect (Geifman et al., 2019). The `trapezoid` rule counts the first and the last half, as torch-uncertainty does.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7]), np.array([True, False, True])
    >>> round(aurc(confidence, correct), 4)  # (0 + 1/2 + 1/3) / 3
    0.2778
    >>> round(aurc(confidence, correct, rule="trapezoid"), 4)  # (0 / 2 + 1/2 + 1/3 / 2) / 2
    0.3333
    """
    risk = 1 - _accuracy_by_answers(confidence, correct)
    if rule == "mean" or len(risk) == 1:
        return float(risk.mean())
    if rule != "trapezoid":
        raise BadInput(f"rule should be mean or trapezoid, got {rule!r}")
    return float((risk.sum() - (risk[0] + risk[-1]) / 2) / (len(risk) - 1))


def e_aurc(confidence: Sureness, correct: NDArray[np.bool_], *, published_optimum: bool = False) -> float:
    """AURC above that of a perfect order of the same answers, every right one before every wrong one.

    0 is perfect. With `published_optimum` the best AURC is taken to be e + (1 - e) log(1 - e) for a share e wrong, its limit
    for many images (Geifman et al., 2019); of few images that is too low.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7]), np.array([True, False, True])
    >>> round(e_aurc(confidence, correct), 4)  # perfect is (0 + 0 + 1/3) / 3
    0.1667
    """
    area, right, images = aurc(confidence, correct), int(np.count_nonzero(correct)), len(confidence)
    wrong = images - right
    if published_optimum:
        best = (wrong + (right * np.log(right / images) if right else 0.0)) / images
    else:
        best = (wrong - right * (1 / np.arange(right + 1, images + 1)).sum()) / images
    return float(area - best)


def augrc(confidence: Sureness, correct: NDArray[np.bool_]) -> float:
    """Share of all images that are answered and wrong, averaged over coverage from none to all (Traub et al., 2024).

    0 is perfect, half the error is what guessing the order gives. Between two levels of sureness the share grows evenly.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7]), np.array([True, False, True])
    >>> round(augrc(confidence, correct), 4)  # the share goes 0, 0, 1/3, 1/3
    0.1667
    """
    levels = answered_levels(confidence, correct)
    wrong = np.append(0, levels.total - levels.right)
    return float((wrong[1:] + wrong[:-1]) @ np.diff(levels.total, prepend=0) / (2 * len(confidence) ** 2))


def coverage_at_risk(confidence: Sureness, correct: NDArray[np.bool_], risk: float) -> float:
    """Largest share of images that can be answered with at most a share `risk` of the answers wrong.

    1 is perfect; 0 where not even the surest can be answered. Images of equal sureness are answered together or not at all.

    >>> confidence, correct = np.array([0.9, 0.8, 0.7, 0.6]), np.array([True, True, False, False])
    >>> coverage_at_risk(confidence, correct, 0.35)  # 1 of 3 is wrong, of 4 it is 2
    0.75
    """
    if not 0 <= risk <= 1:
        raise BadInput(f"risk should lie between 0 and 1, got {risk}")
    levels = answered_levels(confidence, correct)
    allowed = (levels.total - levels.right) / levels.total <= risk
    return float(levels.total[allowed].max(initial=0) / len(confidence))


def risk_coverage(confidence: Sureness, correct: NDArray[np.bool_], *, points: int = 200) -> RiskCoverage:
    """Share wrong of the images answered against the share answered, at no more than `points` levels of sureness.

    >>> curve = risk_coverage(np.array([0.9, 0.8, 0.8, 0.6]), np.array([True, False, True, True]))
    >>> curve.coverage, curve.risk.round(2)
    (array([0.25, 0.75, 1.  ]), array([0.  , 0.33, 0.25]))
    """
    levels = answered_levels(confidence, correct, most=points)
    return RiskCoverage(levels.total / len(confidence), 1 - levels.accuracy)


def _accuracy_by_answers(confidence: Sureness, correct: NDArray[np.bool_]) -> NDArray[np.floating]:
    reached = surest_first(confidence, correct).expected_right()
    reached /= np.arange(1, len(reached) + 1)
    return reached


def _right_first(confidence: Sureness, correct: NDArray[np.bool_]) -> float:
    """The AURRA if of equals the right ones come first."""
    right = surest_first(confidence, correct).right
    return float((np.cumsum(right) / np.arange(1, len(right) + 1)).mean())


def _interval(
    area: Callable[[Sureness, NDArray[np.bool_]], float],
    confidence: Sureness,
    correct: NDArray[np.bool_],
    clusters: Groups | None,
    level: float,
) -> tuple[float, float] | None:
    area(confidence, correct)  # refuses what it cannot take
    groups = np.arange(len(confidence)) if clusters is None else clusters
    return jackknife_interval(lambda kept: area(confidence[kept], correct[kept]), groups, bounds=(0.0, 1.0), level=level)


def _design_effects(residuals: NDArray[np.floating], groups: Groups, spread: float) -> NDArray[np.floating]:
    """How many images tell as much as one independent one, among the first 1, 2, 3 and so on, (images,); at least 1."""
    if spread == 0:
        return np.ones(len(residuals))
    by_group = np.argsort(groups, kind="stable")
    sums = np.cumsum(residuals[by_group])
    starts = np.flatnonzero(np.append(True, np.diff(groups[by_group]) != 0))
    sizes = np.diff(np.append(starts, len(groups)))
    before = np.empty(len(residuals))  # the sum over the same group's surer images
    before[by_group] = sums - residuals[by_group] - np.repeat(sums[starts] - residuals[by_group][starts], sizes)
    squares = np.cumsum(2 * before * residuals + residuals**2)  # of the groups' sums
    return np.asarray(np.maximum(squares / (spread * np.arange(1, len(residuals) + 1)), 1.0))


def _rarely(
    mistakes: NDArray[np.floating], answered: NDArray[np.floating], risk: float, tail: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where so few mistakes, or so many, are as rare as `tail` at this risk (Clopper & Pearson), both (levels,)."""
    from scipy.special import betainc

    if risk in (0.0, 1.0):
        return mistakes < 0, mistakes > risk * answered
    few = 1 - betainc(np.minimum(mistakes, answered - 1e-9) + 1, np.maximum(answered - mistakes, 1e-9), risk)
    many = np.where(mistakes > 0, betainc(np.maximum(mistakes, 1e-9), answered - mistakes + 1, risk), 1.0)
    return np.where(mistakes < answered, few, 1.0) <= tail, many <= tail
