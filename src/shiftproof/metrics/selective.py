"""What a model is worth that may decline to answer: accuracy and risk as it answers more and more images, the surest first.

Sureness is any real score where higher is surer, a confidence or minus an anomaly score; only its order counts.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.resampling import RESAMPLES, interval_of
from shiftproof.metrics.surest_first import Sureness, answered_levels, surest_first

_GROUPS = 500
"""Levels of sureness that an interval tells apart, so that it takes no longer for a million images than for a thousand."""


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
    confidence: Sureness,
    correct: NDArray[np.bool_],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float] | None:
    """BCa interval of the AURRA by drawing images again; None where they cannot tell it. That of the AURC is one minus it.

    Of more than 500 levels of sureness, neighbours are drawn as equals; the same seed gives the same bounds.

    >>> confidence, correct = np.linspace(0, 1, 100), np.arange(100) % 4 > 0
    >>> low, high = aurra_interval(confidence, correct)
    >>> low < aurra(confidence, correct) < high
    True
    """
    if len(confidence) < 2:
        return None
    levels = answered_levels(confidence, correct, most=_GROUPS)
    right, images = np.diff(levels.right, prepend=0), np.diff(levels.total, prepend=0)
    kinds = np.append(right, images - right)
    drawn = np.random.default_rng(seed).multinomial(len(confidence), kinds / len(confidence), size=resamples)
    filled = np.flatnonzero(kinds)
    left_out = np.repeat(_aurra_of_kinds(kinds - np.eye(len(kinds), dtype=int)[filled]), kinds[filled])
    seen = _aurra_of_kinds(kinds[None])
    # what taking neighbours as equals moves is the same in all drawings, near enough
    moved = aurra(confidence, correct) - seen
    return interval_of(seen + moved, _aurra_of_kinds(drawn) + moved, left_out + moved, level=level)


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
    right, images = int(np.count_nonzero(correct)), len(confidence)
    wrong = images - right
    if published_optimum:
        best = (wrong + (right * np.log(right / images) if right else 0.0)) / images
    else:
        best = (wrong - right * (1 / np.arange(right + 1, images + 1)).sum()) / images
    return float(aurc(confidence, correct) - best)


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


def _aurra_of_kinds(kinds: NDArray[np.integer]) -> NDArray[np.floating]:
    """The AURRA of some drawings, each (right of every level, wrong of every level) in counts, surest level first."""
    right, wrong = np.split(kinds, 2, axis=1)
    images = right + wrong
    after, known = np.cumsum(images, axis=1), np.cumsum(right, axis=1)
    before = after - images
    share = right / np.maximum(images, 1)
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1, after.max() + 1)))
    # the sum of (known before + share x (n - before)) / n for n from before + 1 to after
    sums = (known - right - share * before) * (harmonic[after] - harmonic[before]) + right
    return np.asarray(sums.sum(axis=1) / after[:, -1])
