"""AUROC, AUPR with OOD and ID positive, and FPR at 95 % TPR of a million OOD scores, beside scikit-learn.

    python benchmarks/separation_speed.py

Aim: at least 7 times as fast as scikit-learn's four calls, exact to 1e-12. Also the same numbers from one plain
argsort, and the cost of confidence intervals for 10,000 images per side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sklearn_metrics

from harness import race, save
from shiftproof.metrics import auroc_interval, bootstrap_auroc_interval, fpr_interval, separation

SIDES = [(500_000, 500_000), (950_000, 50_000)]
INTERVALS: dict[str, Callable[..., object]] = {
    "auroc_interval": auroc_interval,
    "bootstrap_auroc_interval": bootstrap_auroc_interval,
    "fpr_interval": fpr_interval,
}
Scores = NDArray[np.floating]


def by_sklearn(scores: Scores, outside: NDArray[np.bool_]) -> tuple[float, ...]:
    false_alarms, found, _ = sklearn_metrics.roc_curve(outside, scores)
    return (
        sklearn_metrics.roc_auc_score(outside, scores),
        sklearn_metrics.average_precision_score(outside, scores),
        sklearn_metrics.average_precision_score(~outside, -scores),
        false_alarms[np.argmax(found >= 0.95)],
    )


def by_argsort(scores: Scores, outside: NDArray[np.bool_]) -> tuple[float, ...]:
    """From one descending argsort; equal scores are joined at the last of them."""
    order = np.argsort(-scores)
    ordered, wanted = scores[order], outside[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    found, flagged = np.cumsum(wanted)[ends], ends + 1
    alarms = flagged - found
    left_in, left = alarms[-1] - np.append(0, alarms[:-1]), flagged[-1] - np.append(0, flagged[:-1])
    recall, false_alarm_rate = found / found[-1], alarms / alarms[-1]
    return (
        float(np.trapezoid(np.append(0, recall), np.append(0, false_alarm_rate))),
        float((np.diff(recall, prepend=0) * found / flagged).sum()),
        float((np.diff(false_alarm_rate, prepend=0) * left_in / left).sum()),
        float(false_alarm_rate[np.argmax(recall >= 0.95)]),
    )


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def race_of(in_scores: Scores, out_scores: Scores) -> dict[str, float]:
    """How many times as fast as scikit-learn everyone is, once all agree."""
    scores, outside = np.concatenate([in_scores, out_scores]), np.repeat([False, True], [len(in_scores), len(out_scores)])
    for other in (by_sklearn, by_argsort):
        gaps = np.subtract(separation(in_scores, out_scores)[:4], other(scores, outside))
        assert np.abs(gaps).max() < 1e-12, gaps
    ratios = race(
        {
            "scikit-learn, four calls": lambda: by_sklearn(scores, outside),
            "one argsort": lambda: by_argsort(scores, outside),
            "separation": lambda: separation(in_scores, out_scores),
        },
        work=len(scores),
    )
    return {name: ratio.median for name, ratio in ratios.items()}


def main() -> None:
    generator = np.random.default_rng(0)
    figures: dict[str, object] = {}
    for inside, outside in SIDES:
        in_scores, out_scores = generator.normal(size=inside), generator.normal(1.0, size=outside)
        for precision in (np.float32, np.float64):
            case = f"{inside:,} inside, {outside:,} outside, {precision.__name__}"
            print(case)
            figures[case] = race_of(in_scores.astype(precision), out_scores.astype(precision))
    few = generator.normal(size=10_000), generator.normal(1.0, size=10_000)
    for name, interval in INTERVALS.items():
        figures[name] = seconds = min(cpu_seconds(partial(interval, *few)) for _ in range(3))
        print(f"{name} of 10,000 images a side: {seconds:.3f} s of CPU")
    save("separation_speed", figures)


if __name__ == "__main__":
    main()
