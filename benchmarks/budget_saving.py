"""Forward passes saved by a budget, and coverage of its sampling errors, from a full run: many designs are simulated.

    python benchmarks/budget_saving.py runs photos lite:0 [--designs 500] [--json figures.json]
    python benchmarks/budget_saving.py leads.npz

It needs a store with the full run, or its leads from ``--save``: leads (images, 75), clean_leads and clean_peaks (images,).

Baselines: as many (image, cell) pairs by simple random sampling, and the first images in all their cells; their passes for
a sampling error follow from the full run by the textbook, so they have the advantage of a known variance. All of it is
about exactly these images; `coverage_budget.py` simulates coverage for new images.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import shiftproof as sp
from shiftproof.corruptions import IMAGENET_C, corruption_groups
from shiftproof.metrics.budget import Layout, right_class_leads
from shiftproof.runs.load import load_predictions
from shiftproof.runs.store import Store
from shiftproof.studies.corruption.budget import Benchmark, Progress, next_pairs
from shiftproof.studies.corruption.cells import alexnet_errors

Numbers = NDArray[np.floating]


class FullRun(NamedTuple):
    leads: Numbers  # (images, cells)
    clean_leads: Numbers  # (images,)
    clean_peaks: Numbers  # (images,)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        return np.asarray(self.leads < 0)

    @property
    def passes(self) -> int:
        return self.leads.size + len(self.clean_leads)


def from_store(store: str, photos: str, model: str) -> FullRun:
    images, loaded = sp.open_dataset(photos), sp.load_model(model)
    study = sp.CorruptionStudy(models=[loaded], dataset=images)
    columns, peaks = [], []
    for run in study.runs():
        found = load_predictions(run, images, store=Store(store))
        columns.append(right_class_leads(found.labels, found.top5.classes, found.top5.scores))
        peaks.append(found.top5.scores[:, 0] - found.top5.scores[:, -1])
    return FullRun(np.column_stack(columns[1:]), columns[0], peaks[0])


def layout() -> Layout:
    kinds = [
        list(corruption_groups()).index(group)
        for name in IMAGENET_C
        for group, members in corruption_groups().items()
        if name in members
    ]
    return Layout.of_grid(np.array(kinds), 5)


def weights_of(number: str) -> Numbers:
    if number == "mean error":
        return np.full(75, 1 / 75)
    errors = alexnet_errors(IMAGENET_C, (1, 2, 3, 4, 5)).errors
    assert errors is not None
    return np.repeat(1 / errors / 75, 5)


def spent(full: FullRun, benchmark: Benchmark, **limits: Any) -> Progress:
    table = np.full(benchmark.shape, np.nan)
    while not (progress := next_pairs(benchmark, table, **limits)).done:
        table[progress.missing] = full.leads[progress.missing]
    return progress


def others(full: FullRun, weights: Numbers, precision: float) -> dict[str, float]:
    """Passes that simpler designs need, with the finite set accounted for."""
    wanted = (precision / 1.96) ** 2
    pairs = float((full.wrong * weights * len(weights)).var()) / wanted
    images = float((full.wrong @ weights).var()) / wanted
    rows, cells = full.leads.shape
    return {"plain pairs": pairs / (1 + pairs / full.leads.size), "first images": images / (1 + images / rows) * cells}


def trial(full: FullRun, number: str, designs: int, **limits: Any) -> dict[str, Any]:
    weights, rows = weights_of(number), len(full.leads)
    truth, ids = float(full.wrong.mean(axis=0) @ weights), [f"{row:06d}" for row in range(rows)]
    found, started = [], time.process_time()
    for seed in range(designs):
        progress = spent(full, Benchmark(ids, layout(), weights, full.clean_leads, full.clean_peaks, seed=seed), **limits)
        low, high = progress.estimate.low, progress.estimate.high
        cells = [
            one.low <= error <= one.high for one, error in zip(progress.cells.each(), full.wrong.mean(axis=0), strict=True)
        ]
        found.append(
            (progress.estimate.value - truth, (high - low) / 2, low <= truth <= high, np.mean(cells), progress.passes)
        )
    off, half, covered, cells_covered, passes = np.array(found, dtype=float).T
    share = float(covered.mean())
    figures = {
        "number": number,
        **limits,
        "designs": designs,
        "full answer": truth,
        "bias in points": 100 * float(off.mean()),
        "bias, standard error": 100 * float(off.std() / np.sqrt(designs)),
        "1.96 x true error in points": 196 * float(np.sqrt((off**2).mean())),
        "half-width in points": 100 * float(half.mean()),
        "covered": share,
        "covered, standard error": float(np.sqrt(share * (1 - share) / designs)),
        "cells covered": float(cells_covered.mean()),
        "passes": float(passes.mean()),
        "passes, most": float(passes.max()),
        "share of the full run": float(passes.mean()) / full.passes,
        "seconds a design": (time.process_time() - started) / designs,
    }
    needed = others(full, weights, limits.get("precision", float(half.mean())))
    figures |= {f"{name}, share of the full run": count / full.passes for name, count in needed.items()}
    print(f"{number}, {limits}:", flush=True)
    for name in list(figures)[len(limits) + 1 :]:
        print(f"    {name:36} {figures[name]:10.4f}", flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="+", help="STORE PHOTOS MODEL, or one .npz")
    parser.add_argument("--designs", type=int, default=500)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--save", type=Path, help="keep the leads of a store as .npz")
    given = parser.parse_args()
    if len(given.source) == 1:
        with np.load(given.source[0]) as stored:
            full = FullRun(stored["leads"], stored["clean_leads"], stored["clean_peaks"])
    else:
        full = from_store(*given.source)
    if given.save:
        np.savez(given.save, **full._asdict())
    wrong, clean = full.wrong.mean(), (full.clean_leads < 0).mean()
    print(f"{len(full.leads)} images, {full.passes} passes; clean error {clean:.3f}, mean corrupted error {wrong:.3f}")
    figures = [
        trial(full, number, given.designs, **limits)
        for number in ("mCE", "mean error")
        for limits in ({"precision": 0.01}, {"precision": 0.005}, {"budget": full.passes // 10})
    ]
    if given.json:
        given.json.write_text(json.dumps({"budget_saving": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
