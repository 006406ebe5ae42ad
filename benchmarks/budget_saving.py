"""Forward passes saved by a budget, and coverage of its sampling errors, from a full run: many designs are simulated.

    python benchmarks/budget_saving.py runs photos lite:0 [--designs 500] [--json figures.json]
    python benchmarks/budget_saving.py leads.npz
    SHIFTPROOF_TEST_DATA=... python benchmarks/budget_saving.py

It needs a store with the full run, or its leads from ``--save``: leads (images, 75), clean_leads and clean_peaks (images,).
Without either it makes a full run of EfficientNet-Lite0 (some 15 CPU-minutes for 1000 photos; PHOTOS=250 for fewer), and
simulates 40 designs for mCE to a point alone; LEADS=leads.npz spares that run under `make benchmarks`.

Limits: the pairs that would be needed if the other 74 answers of every photo were known in full, and the guess made of them
were fitted to the full run itself. Chances in proportion to weight times spread are the best there are (Neyman, 1934), and
no unbiased estimate has a smaller variance, averaged over a model of the answers, than the difference estimator with the
expectations of that model as guesses (Godambe & Joshi, 1965). So it is a limit as far as the guess is that good. A budget
knows a few answers of each photo: the second limit is that of a guess which knows, when it asks for an answer, those asked
for before, and how hard the photo is as a whole, by all its answers; again by what is fitted to the full run.

Baselines: as many (image, cell) pairs by simple random sampling, and the first images in all their cells; their passes for
a sampling error follow from the full run by the textbook, so they have the advantage of a known variance. All of it is
about exactly these images; `coverage_budget.py` simulates coverage for new images.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import shiftproof as sp
from harness import figure
from shiftproof.corruptions import IMAGENET_C, corruption_groups
from shiftproof.datasets import ImageList
from shiftproof.metrics.budget import Layout, clean_features, fit_likely_wrong, right_class_leads
from shiftproof.runs.load import load_predictions
from shiftproof.runs.store import Store
from shiftproof.studies.corruption.budget import Benchmark, Progress, next_pairs
from shiftproof.studies.corruption.cells import alexnet_errors
from shiftproof.types import Classifier

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


def from_store(store: str, photos: str | ImageList, model: str | Classifier) -> FullRun:
    images = sp.open_dataset(photos) if isinstance(photos, str) else photos
    loaded = sp.load_model(model) if isinstance(model, str) else model
    study = sp.CorruptionStudy(models=[loaded], dataset=images)
    columns, peaks = [], []
    for run in study.runs():
        found = load_predictions(run, images, store=Store(store))
        columns.append(right_class_leads(found.labels, found.top5.classes, found.top5.scores))
        peaks.append(found.top5.scores[:, 0] - found.top5.scores[:, -1])
    return FullRun(np.column_stack(columns[1:]), columns[0], peaks[0])


def made_here(photos: int) -> FullRun:
    """Every cell of some photos, spread over the classes."""
    folder = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    every, model = sp.open_dataset(folder), sp.load_model("lite:0")
    assert isinstance(every, ImageList)
    images = dataclasses.replace(every, samples=every.samples[:: max(1, len(every.samples) // photos)][:photos])
    with tempfile.TemporaryDirectory() as store:
        study = sp.CorruptionStudy(models=[model], dataset=images)
        sp.store_predictions(model, images, studies=[study], store=store)
        return from_store(store, images, model)


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


def least_share(full: FullRun, weights: Numbers, precision: float) -> float:
    """The share of the full run that is needed where all answers but the one in question are known."""
    chance = _known_all_but_one(full)
    spread = weights * np.sqrt(chance * (1 - chance)) / len(full.leads)
    pairs = spread.sum() ** 2 / ((precision / 1.96) ** 2 + (spread**2).sum())
    return float(pairs + len(full.clean_leads)) / full.passes


def least_share_by_few(full: FullRun, weights: Numbers, precision: float) -> float:
    """The share that is needed where the answers asked for so far are known, and how hard each photo is as a whole."""
    rows, cells = full.leads.shape
    features = clean_features(full.clean_leads, full.clean_peaks)
    fitted = fit_likely_wrong(*np.divmod(np.arange(full.leads.size), cells), full.leads.ravel(), features, layout())
    order = np.random.default_rng(0).permuted(np.tile(np.arange(cells), (rows, 1)), axis=1)
    known_before, wanted, told = 0, (precision / 1.96) ** 2, 0.0
    while known_before < cells:
        known = order < known_before
        chance = _with_photos_known(fitted.chance(features, np.where(known, full.leads, np.nan)), known, full.wrong)
        drawn = np.where(known, 0.0, weights * np.sqrt(np.clip(chance * (1 - chance), 0.005, None)))
        misses = np.where(known, 0.0, weights * (full.wrong - chance)) ** 2 / np.where(known, 1.0, drawn)
        pairs = float(misses.sum() * drawn.sum()) / rows**2 / wanted / rows  # of each photo, that would do by themselves
        if told + 1 / pairs >= 1:
            return float((known_before + (1 - told) * pairs) * rows + len(full.clean_leads)) / full.passes
        told, known_before = told + 1 / pairs, known_before + 1
    return 1.0


def _with_photos_known(chance: Numbers, known: NDArray[np.bool_], wrong: NDArray[np.bool_]) -> Numbers:
    """Chances whose logits are moved by one number for each photo, fitted to all its answers that are not known."""
    chance = np.clip(chance, 1e-9, 1 - 1e-9)
    logits, moved = np.log(chance) - np.log1p(-chance), np.zeros((len(chance), 1))
    for _ in range(30):
        at = 1 / (1 + np.exp(-logits - moved))
        slope = np.where(known, 0.0, wrong - at).sum(axis=1, keepdims=True) - moved / 4
        moved += slope / (np.where(known, 0.0, at * (1 - at)).sum(axis=1, keepdims=True) + 1 / 4)
    return np.asarray(1 / (1 + np.exp(-logits - moved)))


def _known_all_but_one(full: FullRun) -> Numbers:
    """Chances of being wrong by logistic regression on clean answers and on those in all other cells, (images, cells)."""
    cells, wrong = layout(), full.wrong.astype(float)
    severity, hard = np.asarray(cells.severity), wrong.mean(axis=0)
    leads = np.clip(full.leads / np.maximum(full.leads.std(axis=0), 1e-9), -3, 3)
    groups = (np.zeros(75), cells.kind, cells.corruption, severity)
    others = [(group[:, None] == group) & ~np.eye(75, dtype=bool) for group in groups]
    known = [answers @ some / some.sum(axis=0) for some in others for answers in (wrong, leads)]
    known += [known[0] ** 2, known[1] ** 2]
    for step in (1, -1, 2, -2):  # neighbouring severities
        there = (severity + step >= 0) & (severity + step < 5)
        place = np.where(there, np.arange(75) + step, 0)
        known += [there * (wrong[:, place] - 0.5), there * leads[:, place]]
    clean = clean_features(full.clean_leads, full.clean_peaks)
    clean = np.column_stack([clean, clean[:, 0] ** 3, full.clean_leads < 0])
    told = np.concatenate([np.stack(known, axis=2), np.repeat(clean[:, None], 75, axis=1)], axis=2)
    by = (np.ones(75), cells.slope, hard, severity == 0, severity == 4)
    columns = np.concatenate([told * one[:, None] for one in by], axis=2).reshape(wrong.size, -1)
    columns = np.column_stack([columns, np.tile(np.eye(75), (len(wrong), 1))])
    at = np.zeros(columns.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-np.clip(columns @ at, -30, 30)))
        curvature = (columns * (chance * (1 - chance))[:, None]).T @ columns + np.eye(len(at))
        step_taken = np.linalg.solve(curvature, columns.T @ (wrong.ravel() - chance) - at)
        at += step_taken * min(1.0, 2 / np.abs(step_taken).max())
        if np.abs(step_taken).max() < 1e-4:
            break
    return np.asarray(chance.reshape(wrong.shape))


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
    parser.add_argument("source", nargs="*", help="STORE PHOTOS MODEL, or one .npz")
    parser.add_argument("--designs", type=int, help="designs to simulate [default: 500; 40 without a source]")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--save", type=Path, help="keep the leads of a store as .npz")
    given = parser.parse_args()
    leads = given.source[0] if len(given.source) == 1 else os.environ.get("LEADS")
    if leads and len(given.source) < 2:
        with np.load(leads) as stored:
            full = FullRun(stored["leads"], stored["clean_leads"], stored["clean_peaks"])
    else:
        full = from_store(*given.source) if given.source else made_here(int(os.environ.get("PHOTOS", "1000")))
    if given.save:
        np.savez(given.save, **full._asdict())
    wrong, clean = full.wrong.mean(), (full.clean_leads < 0).mean()
    print(f"{len(full.leads)} images, {full.passes} passes; clean error {clean:.3f}, mean corrupted error {wrong:.3f}")
    point = trial(full, "mCE", given.designs or (500 if given.source else 40), precision=0.01)
    weights = weights_of("mCE")
    least, by_few = least_share(full, weights, 0.01), least_share_by_few(full, weights, 0.01)
    figure(
        f"mCE to a point from a share of the passes, {len(full.leads)} photos",
        100 * point["share of the full run"],
        beside=f"{100 * least:.1f} % if the other 74 answers of each photo were known, "
        f"{100 * by_few:.1f} % if those drawn before and how hard it is as a whole were",
        aim="<= 5 %",
        unit="%",
    )
    figures = [point]
    if given.source:
        limited: list[tuple[str, dict[str, float]]] = [
            ("mCE", {"precision": 0.005}),
            ("mCE", {"budget": full.passes // 10}),
            ("mean error", {"precision": 0.01}),
            ("mean error", {"precision": 0.005}),
            ("mean error", {"budget": full.passes // 10}),
        ]
        figures += [trial(full, number, given.designs or 500, **limits) for number, limits in limited]
    if given.json:
        given.json.write_text(json.dumps({"budget_saving": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
