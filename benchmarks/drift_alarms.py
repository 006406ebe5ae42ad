"""False alarms and detection delay of the drift test behind `shiftproof watch`, simulated.

    python benchmarks/drift_alarms.py [figures.json]            figures and tables
    python benchmarks/drift_alarms.py --table figures.json      the tables of docs/guard.md again, from stored figures

Null streams: reference and stream come from one distribution, so that every alarm is false.
Aim: no more false alarms than promised, with the error of the simulation. Delay: images from the first drifted one to the
alarm, at a false-alarm probability of 1 %; streams in which it never comes count as their whole length.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness import save
from shiftproof.metrics.sequential import DriftTest

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]

STREAMS, IMAGES = 10_000, 500
LEVELS = {0.05: 20.0, 0.01: 100.0}
NULLS: dict[str, tuple[Draw, int]] = {
    "continuous scores, 1,000 references": (lambda generator, count: generator.normal(size=count), 1_000),
    "scores of five values, 50 references": (lambda generator, count: generator.integers(0, 5, count).astype(float), 50),
}
DRIFTS: dict[str, Draw] = {
    "all scores up by 0.25 standard deviations (sd)": lambda generator, count: generator.normal(0.25, size=count),
    "by 0.5": lambda generator, count: generator.normal(0.5, size=count),
    "by 1": lambda generator, count: generator.normal(1, size=count),
    "down by 0.5": lambda generator, count: generator.normal(-0.5, size=count),
    "5 % of images up by 4 sd": lambda generator, count: generator.normal(4 * (generator.random(count) < 0.05)),
    "20 % of images up by 4 sd": lambda generator, count: generator.normal(4 * (generator.random(count) < 0.2)),
    "1.5 times the standard deviation": lambda generator, count: 1.5 * generator.normal(size=count),
}
QUIET = (0, 500, 2_000)
DELAYS, LONGEST = 100, 3_000


def false_alarms(draw: Draw, reference: int, streams: int, seed: int) -> dict[str, float]:
    """Share of null streams with an alarm, by the probability that is promised."""
    generator = np.random.default_rng(seed)
    peaks = np.empty(streams)
    for stream in range(streams):
        test = DriftTest(draw(generator, reference))
        test.add(draw(generator, IMAGES).tolist(), generator.random(IMAGES).tolist())
        peaks[stream] = max(test.history)
    return {str(promised): float((peaks >= level).mean()) for promised, level in LEVELS.items()}


def delays(draw: Draw, quiet: int, seed: int) -> dict[str, float]:
    """Median and 90th percentile of the images until the alarm."""
    generator = np.random.default_rng(seed)
    waited = np.empty(DELAYS)
    for stream in range(DELAYS):
        test = DriftTest(generator.normal(size=1_000))
        test.add(generator.normal(size=quiet).tolist(), generator.random(quiet).tolist())
        for _ in range(0, LONGEST, 50):
            test.add(draw(generator, 50).tolist(), generator.random(50).tolist())
            if max(test.history[-50:]) >= LEVELS[0.01]:
                break
        drifted = np.array(test.history[quiet:])
        reached = np.flatnonzero(drifted >= LEVELS[0.01])
        waited[stream] = reached[0] + 1 if len(reached) else LONGEST
    return {"median": float(np.median(waited)), "late": float(np.quantile(waited, 0.9))}


def table(figures: dict[str, dict[str, dict[str, float]]]) -> str:
    lines = [f"| {STREAMS:,} null streams of {IMAGES} images | promised 5 % | promised 1 % |", "|---|---|---|"]
    for name, found in figures["null"].items():
        lines.append(f"| {name} | {100 * found['0.05']:.2f} % | {100 * found['0.01']:.2f} % |")
    lines += ["", f"| drift | {' | '.join(f'after {quiet:,} images' for quiet in QUIET)} |", f"|---|{'---|' * len(QUIET)}"]
    for name in DRIFTS:
        cells = [figures["delay"][f"{name}/{quiet}"] for quiet in QUIET]
        shown = [f"{cell['median']:,.0f} ({cell['late']:,.0f})" for cell in cells]
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def main() -> None:
    if sys.argv[1:2] == ["--table"]:
        print(table(json.loads(Path(sys.argv[2]).read_text())["drift_alarms"]))
        return
    figures: dict[str, dict[str, dict[str, float]]] = {"null": {}, "delay": {}}
    for name, (draw, reference) in NULLS.items():
        figures["null"][name] = false_alarms(draw, reference, STREAMS, seed=reference)
        print(name, figures["null"][name], flush=True)
    for number, (name, draw) in enumerate(DRIFTS.items()):
        for quiet in QUIET:
            figures["delay"][f"{name}/{quiet}"] = delays(draw, quiet, 10 * number + quiet)
            print(name, quiet, figures["delay"][f"{name}/{quiet}"], flush=True)
    print(table(figures))
    save("drift_alarms", figures)


if __name__ == "__main__":
    main()
