"""Coverage of the confidence intervals of a budgeted corruption study, by simulation.

    python benchmarks/coverage_budget.py [--simulations 2000] [--share 0.3] [--clusters] [--json figures.json]
    python benchmarks/coverage_budget.py --store runs --photos photos/ --models lite:0 lite:2 [--save tables.npz]
    python benchmarks/coverage_budget.py --tables tables.npz

Photos are drawn from a population with known errors, a budget is spent on them as in the study, and the study's intervals
are computed. Synthetic populations have photos of beta-distributed difficulty, correlated between two models; `--tables`
resamples photos of a full run of two models. There are 3 corruptions at 3 severities, so that thousands of designs can be
simulated; the baseline is run once in full and once with the same budget. With `--clusters` photos come in clusters of 1 to
5, with an intra-cluster correlation of a third in difficulty.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, ndtr

from shiftproof.metrics.budget import Layout
from shiftproof.studies.corruption.budget import Benchmark, Progress, next_pairs
from shiftproof.studies.corruption.cells import Baseline, Cells
from shiftproof.studies.corruption.numbers import measured_means
from shiftproof.types import BaselineRef, Clusters

Numbers = NDArray[np.floating]

CORRUPTIONS, SEVERITIES = ("gaussian_noise", "contrast", "pixelate"), (1, 3, 5)
LAYOUT = Layout.of_grid(np.array([0, 3, 3]), len(SEVERITIES))
WEIGHTS = np.full(len(LAYOUT), 1 / len(LAYOUT))
MEANS = {
    "mean_corrupted_error": "mean error",
    "relative_corrupted_error": "error added",
    "mean_corruption_error": "mCE",
    "relative_mean_corruption_error": "relative mCE",
}


@dataclass(frozen=True)
class Answers:
    """Leads of two models on the same photos: (photos, 1 + cells) each, those of the unchanged photos first."""

    own: Numbers
    baseline: Numbers
    clusters: NDArray[np.integer] | None = None  # of each photo; None: every one is a case of its own

    def take(self, rows: NDArray[np.integer]) -> Answers:
        return Answers(self.own[rows], self.baseline[rows])


@dataclass(frozen=True)
class Population:
    """Photos without end, or a table of them that is drawn from with replacement."""

    name: str
    draw: Callable[[int, np.random.Generator], Answers]
    truth: Mapping[str, float]
    cells: Numbers  # errors of the model, (cells,)


def made_up(name: str, right: float, wrong: float, *, clustered: bool = False) -> Population:
    """Photos that are named wrong with a chance of the distribution Beta(right, wrong) at the middle severity."""

    def draw(cases: int, rng: np.random.Generator, clustered: bool = clustered) -> Answers:
        photos, clusters = cases, None
        if clustered:
            clusters = np.repeat(np.arange(cases), rng.integers(1, 6, cases))
            photos = len(clusters)
            shared = np.sqrt(1 / 3) * rng.normal(size=cases)[clusters] + np.sqrt(2 / 3) * rng.normal(size=photos)
            chance = betaincinv(right, wrong, ndtr(shared))[:, None]
        else:
            chance = rng.beta(right, wrong, size=(photos, 1))
        chance = np.clip(chance, 1e-9, 1 - 1e-9)
        hard = np.log(chance / (1 - chance)) + np.array([0.0, 1.0])  # the baseline is worse
        hard = hard + rng.normal(scale=0.7, size=(photos, 2))
        harder = np.tile([-1.2, 0.0, 1.2], 3) + np.repeat([-0.3, 0.0, 0.3], 3)
        both = (
            -(hard[:, [model], None] + np.concatenate([[-2.0], harder]) + 0.7 * rng.logistic(size=(photos, 1, 10)))
            for model in (0, 1)
        )
        own, baseline = (leads[:, 0] for leads in both)
        return Answers(own, baseline, clusters)

    # of single photos: a photo of a cluster is, by itself, as hard as any
    return _with_truth(name, draw, draw(1_000_000, np.random.default_rng(1), clustered=False))


def of_tables(name: str, tables: Answers) -> Population:
    """The photos of a real run as all the photos that there are."""
    photos = len(tables.own)
    return _with_truth(name, lambda count, rng: tables.take(rng.integers(photos, size=count)), tables)


def _with_truth(name: str, draw: Callable[[int, np.random.Generator], Answers], everything: Answers) -> Population:
    own, baseline = everything.own < 0, everything.baseline < 0
    errors, divisors = (wrong[:, 1:].mean(axis=0).reshape(3, 3).mean(axis=1) for wrong in (own, baseline))
    added, theirs = errors - own[:, 0].mean(), divisors - baseline[:, 0].mean()
    truth = {
        "mean_corrupted_error": float(errors.mean()),
        "relative_corrupted_error": float(added.mean()),
        "mean_corruption_error": float((errors / divisors).mean()),
        "relative_mean_corruption_error": float((added / theirs).mean()),
    }
    return Population(name, draw, truth, np.asarray(own[:, 1:].mean(axis=0)))


def simulated(population: Population, photos: int, share: float, simulations: int) -> dict[str, dict[str, float]]:
    """Coverage of every number, with half-widths and how often there was no interval."""
    found: dict[str, list[tuple[float, float, float]]] = {}
    for number in range(simulations):
        for name, value, low, high in one_study(population, photos, share, number):
            found.setdefault(name, []).append((value, low, high))
    return {name: _told(np.array(rows), simulations) for name, rows in found.items()}


def _told(rows: Numbers, simulations: int) -> dict[str, float]:
    off, low, high = rows.T  # distances from the truth
    there = np.isfinite(low)
    covered = float(((low <= 0) & (high >= 0))[there].mean())
    return {
        "covered": covered,
        "standard error": float(np.sqrt(covered * (1 - covered) / min(there.sum(), simulations))),
        "truth below": float((low > 0)[there].mean()),
        "truth above": float((high < 0)[there].mean()),
        "bias in points": 100 * float(off.mean()),
        "half-width in points": 50 * float((high - low)[there].mean()),
        "without interval": float(1 - there.mean()),
    }


def one_study(population: Population, photos: int, share: float, number: int) -> Iterator[tuple[str, float, float, float]]:
    """Name, value, low and high of each number of one study, less the truth."""
    answers = population.draw(photos, np.random.default_rng((number, photos)))
    theirs = spent(answers.baseline, share, seed=number)
    progress = spent(answers.own, share, seed=number, before=theirs)
    cells = Cells(*_named(progress.cells.by_image), answers.own[:, 0] < 0, _grouped(answers))
    for one, truth in zip(progress.cells.each_like_these(clusters=answers.clusters), population.cells, strict=True):
        yield "one cell", one.value - truth, one.low - truth, one.high - truth
    whole = np.asarray(answers.baseline[:, 1:] < 0, dtype=float)
    baselines = {"full": whole, "budgeted": theirs.cells.by_image}
    for how, table in baselines.items():
        against = Baseline(
            BaselineRef("baseline", alexnet=False),
            cells=Cells(*_named(table), answers.baseline[:, 0] < 0, _grouped(answers)),
        )
        for measured, value, interval, _ in measured_means(cells, against):
            if measured.metric not in MEANS or (how == "budgeted" and measured.baseline is None):
                continue
            beside = f", baseline {how}" if measured.baseline else ""
            truth = population.truth[measured.metric]
            low, high = (np.nan, np.nan) if interval is None else interval
            yield MEANS[measured.metric] + beside, value - truth, low - truth, high - truth


def spent(leads: Numbers, share: float, *, seed: int, before: Progress | None = None) -> Progress:
    """A share of the cells of these photos, run as the study would."""
    ids = [f"{row:06d}" for row in range(len(leads))]
    benchmark = Benchmark(ids, LAYOUT, WEIGHTS, clean_leads=leads[:, 0], seed=seed, before=before)
    pairs = max(benchmark.least_pairs, int(share * benchmark.pairs))
    progress = next_pairs(benchmark, leads[:, 1:], budget=benchmark.clean_passes + pairs)
    # what was not drawn decides nothing, so all rounds can be drawn at once; then it is forgotten
    table = np.full(benchmark.shape, np.nan)
    for one in progress.rounds:
        table[one.images, one.cells] = leads[one.images, 1 + one.cells]
    return replace(progress, leads=table)


def _grouped(answers: Answers) -> Clusters | None:
    return None if answers.clusters is None else Clusters("clip", tuple(map(str, answers.clusters.tolist())))


def _named(table: Numbers) -> tuple[tuple[str, ...], tuple[str, ...], tuple[int, ...], Numbers]:
    return tuple(f"{row:06d}" for row in range(len(table))), CORRUPTIONS, SEVERITIES, table.reshape(len(table), 3, 3)


def from_store(store: str, photos: str, models: Sequence[str]) -> Answers:
    """A model and its baseline, run in full on these photos."""
    import shiftproof as sp
    from shiftproof.metrics.budget import right_class_leads
    from shiftproof.runs.load import load_predictions
    from shiftproof.runs.store import Store

    images, tables = sp.open_dataset(photos), []
    for model in map(sp.load_model, models):
        study = sp.CorruptionStudy(models=[model], dataset=images, corruptions=CORRUPTIONS, severities=SEVERITIES)
        found = [load_predictions(run, images, store=Store(store)) for run in study.runs()]
        tables.append(np.column_stack([right_class_leads(one.labels, one.top5.classes, one.top5.scores) for one in found]))
    return Answers(*tables)


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--photos-drawn", type=int, nargs="+", default=[26, 100, 1000])
    parser.add_argument("--share", type=float, help="share of the cells that is run [default: 0.3, of 1000 photos 0.1]")
    parser.add_argument("--clusters", action="store_true", help="photos in clusters, as many as photos are to be drawn")
    parser.add_argument("--only", default="", help="beginning of a population's name, such as half")
    parser.add_argument("--tables", type=Path, help="leads of two models in full, as --save keeps them")
    parser.add_argument("--store", help="a store that has two models in full")
    parser.add_argument("--photos", default="photos")
    parser.add_argument("--models", nargs=2, metavar=("MODEL", "BASELINE"), default=["lite:0", "lite:2"])
    parser.add_argument("--save", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    tables = from_store(given.store, given.photos, given.models) if given.store else None
    if given.tables:
        with np.load(given.tables) as stored:
            tables = Answers(stored["own"], stored["baseline"])
    if given.save and tables is not None:
        np.savez(given.save, own=tables.own, baseline=tables.baseline)
    populations = (
        [
            made_up("half of them wrong", 0.8, 0.9, clustered=given.clusters),
            made_up("few of them wrong", 0.4, 2.5, clustered=given.clusters),
        ]
        if tables is None
        else [of_tables("real photos", tables)]
    )
    figures: dict[str, Any] = {}
    for population in (one for one in populations if one.name.startswith(given.only)):
        for photos in given.photos_drawn:
            share, started = given.share or (0.1 if photos >= 1000 else 0.3), time.process_time()
            found = simulated(population, photos, share, given.simulations)
            seconds = time.process_time() - started
            drawn = f"{photos} {'clusters' if given.clusters else 'photos'}"
            title = f"{population.name}, {drawn}, {share:.0%} of the cells, {given.simulations} simulations"
            print(f"{title}, {seconds:.0f} s of a processor", flush=True)
            for name, one in found.items():
                print(
                    f"    {name:34} {100 * one['covered']:5.1f} % +- {100 * one['standard error']:.1f}  "
                    f"below {100 * one['truth below']:.1f}, above {100 * one['truth above']:.1f}, "
                    f"half-width {one['half-width in points']:.2f}, bias {one['bias in points']:+.2f} points, "
                    f"no interval {100 * one['without interval']:.1f} %",
                    flush=True,
                )
            figures[title] = {"seconds": seconds, **found}
    if given.json:
        given.json.write_text(json.dumps({"coverage_budget": figures}, indent=1) + "\n")
    return figures


if __name__ == "__main__":
    main()
