"""How often our 95 % intervals hold the truth: coverage by simulation, the table of docs/intervals.md.

    python benchmarks/coverage.py [--simulations 2000] [--quick] [--only auroc,fpr] [--clusters 26,100] [--json figures.json]
    python benchmarks/coverage.py --table figures.json more.json --json benchmarks/coverage.json --docs docs/intervals.md

Images are drawn from populations whose numbers are known, and the interval of each number is asked: at 26, 100 and 1,000
clusters, where every image is a cluster of its own ("alone"), where clusters have 1 to 20 images that share a third of their
variance ("clusters"), and where scores are rounded so that many are equal ("ties"). `--only` takes the beginnings of names;
what is found is added to what the JSON file has. `--table` simulates nothing: it puts such files together, those of a run in
parts, and writes the table of the docs. A budget's intervals have a script of their own, coverage_budget.py.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri, softmax

from shiftproof import metrics
from shiftproof.metrics.matching import match
from shiftproof.metrics.resampling import interval_of, left_out_interval, resampled_means
from shiftproof.types import Detections, Truths

Numbers = NDArray[np.floating]
Interval = tuple[float, float] | None

CLUSTERS = (26, 100, 1000)
BEGINS, ENDS = "<!-- made by benchmarks/coverage.py --table -->", "<!-- end of the table -->"
SHARED = 1 / 3  # of the variance, within a cluster
MANY = 1_000_000  # images that stand for the whole population where no formula tells the truth


@dataclass(frozen=True)
class Sample:
    """Images of a population: how many clusters, and how normal numbers are drawn for them."""

    generator: np.random.Generator
    clusters: NDArray[np.integer]  # of each image
    clustered: bool
    ties: bool

    @classmethod
    def of(cls, generator: np.random.Generator, cases: int, design: str) -> Sample:
        sizes = generator.integers(1, 21, cases) if design == "clusters" else np.ones(cases, int)
        return cls(generator, np.repeat(np.arange(cases), sizes), design == "clusters", design == "ties")

    @property
    def groups(self) -> NDArray[np.integer] | None:
        return self.clusters if self.clustered else None

    def __len__(self) -> int:
        return len(self.clusters)

    def normal(self, columns: int | None = None) -> Numbers:
        """Standard normal numbers that share a part of their variance within clusters, (images,) or (images, columns)."""
        shape = (len(self),) if columns is None else (len(self), columns)
        own = self.generator.normal(size=shape)
        if not self.clustered:
            return own
        common = self.generator.normal(size=(int(self.clusters[-1]) + 1, *shape[1:]))[self.clusters]
        return np.asarray(np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own)

    def rounded(self, scores: Numbers) -> Numbers:
        """Scores in steps of a half where there are to be ties."""
        return np.round(2 * scores) / 2 if self.ties else scores


class Tally(NamedTuple):
    """What came of the simulations of one cell."""

    simulations: int
    held: float  # shares of the intervals there were
    below: float  # the truth lies below the interval
    above: float
    width: float  # on average
    none: float  # share of the simulations that gave no interval


Draw = Callable[[Sample], tuple[Interval, float]]
"""An interval of what is seen of a sample, and the truth it should hold."""


@dataclass(frozen=True)
class Row:
    """A number, and the cells it is simulated in."""

    name: str
    title: str
    draw: Draw
    designs: tuple[str, ...] = ("alone", "clusters")
    cases: tuple[int, ...] = CLUSTERS


def large(seed: int = 1, ties: bool = False) -> Sample:
    """So many images that what is seen of them is the truth."""
    return Sample(np.random.default_rng(seed), np.arange(MANY), False, ties)


@cache
def truth_of(number: Callable[[Sample], float], ties: bool) -> float:
    return number(large(ties=ties))


# ---- shares and means -------------------------------------------------------------------------------------------------


def accuracy(share: float) -> Draw:
    def draw(sample: Sample) -> tuple[Interval, float]:
        return metrics.cluster_share_interval(sample.normal() < ndtri(share), clusters=sample.groups), share

    return draw


def paired(sample: Sample) -> tuple[Interval, float]:
    easy = sample.normal()
    right = [np.sqrt(0.6) * easy + np.sqrt(0.4) * sample.normal() < ndtri(share) for share in (0.8, 0.75)]
    return metrics.paired_difference(right[0], right[1], clusters=sample.groups).interval, 0.05


def mean_of(values: Callable[[Sample], Numbers], bounds: tuple[float, float] | None = None) -> Draw:
    def number(sample: Sample) -> float:
        return float(values(sample).mean())

    def draw(sample: Sample) -> tuple[Interval, float]:
        found = metrics.cluster_mean_interval(values(sample), clusters=sample.groups, bounds=bounds)
        return found, truth_of(number, False)

    return draw


def loss(sample: Sample) -> Numbers:
    return np.asarray(np.logaddexp(0, -(2 + 2.5 * sample.normal())))


def flips(sample: Sample) -> Numbers:
    return np.asarray(sample.generator.binomial(30, expit(-3 + 1.5 * sample.normal())) / 30)


def brier(sample: Sample) -> Numbers:
    return np.asarray(2 * expit(-(2 + 2.5 * sample.normal())) ** 2)


def flip_rate(sample: Sample) -> tuple[Interval, float]:
    easy = sample.normal()
    levels = (level + 1.2 * easy + 0.6 * sample.normal() for level in (-3, -2.3))
    values = np.array([sample.generator.binomial(30, expit(level)) / 30 for level in levels])

    means = resampled_means(values.T, clusters=sample.groups, resamples=0)
    with np.errstate(all="ignore"):
        seen, left_out = (part[:, 0] / part[:, 1] for part in (means.seen, means.left_out))
    return left_out_interval(seen, left_out, cases=int(sample.clusters[-1]) + 1), _flip_rate_truth()


@cache
def _flip_rate_truth() -> float:
    sample = large()
    easy = sample.normal()
    own, baseline = (expit(level + 1.2 * easy + 0.6 * sample.normal()).mean() for level in (-3, -2.3))
    return float(own / baseline)


# ---- corruptions ------------------------------------------------------------------------------------------------------

_HARD = np.linspace(-0.6, 0.2, 5)[:, None] + np.linspace(-0.5, 0.5, 5)  # a baseline's corruptions and severities
_CLEAN, _BETTER = (-1.3, -1.1), 0.3  # of the model and of the baseline; how much better the model is under corruption


def errors(sample: Sample) -> tuple[Numbers, Numbers]:
    """Wrong answers of a model and of a baseline, (images, 6) each: clean, and shares of 5 severities of 5 corruptions."""
    easy = 0.7 * sample.normal()
    tables = []
    for clean, better in zip(_CLEAN, (_BETTER, 0.0), strict=True):
        own = easy[:, None] + 0.5 * sample.normal(5)
        noise = sample.generator.normal(scale=_NOISE, size=(len(sample), 5, 5))
        wrong = (own[:, :, None] + noise < _HARD - better).mean(axis=2)
        plain = easy + np.sqrt(0.25 + _NOISE**2) * sample.normal() < clean
        tables.append(np.column_stack([plain, wrong]))
    return tables[0], tables[1]


_NOISE = 0.5


def _expected(clean: float, better: float) -> Numbers:
    """The mean of what `errors` gives, (6,)."""
    spread = np.sqrt(0.49 + 0.25 + _NOISE**2)
    return np.append(ndtr(clean / spread), ndtr((_HARD - better) / spread).mean(axis=1))


def mce(sample: Sample) -> tuple[Interval, float]:
    """As the study does: images drawn again jointly for the model and the baseline."""
    own, other = errors(sample)
    drawn = [resampled_means(table, clusters=sample.groups, resamples=500) for table in (own, other)]
    with np.errstate(all="ignore"):
        parts = [(one[:, 1:] / base[:, 1:]).mean(axis=1) for one, base in zip(*drawn, strict=True)]
    return interval_of(*parts, cases=int(sample.clusters[-1]) + 1), _mce_truth(False)


def relative_mce(sample: Sample) -> tuple[Interval, float]:
    """As the study does: images left out jointly for the model and the baseline."""
    own, other = errors(sample)
    means = [resampled_means(table, clusters=sample.groups, resamples=0) for table in (own, other)]

    def ratio(one: Numbers, base: Numbers) -> Numbers:
        lost = base[:, 1:] - base[:, :1]
        # of a baseline that loses nothing nothing can be said, whatever rounding makes of it
        return np.asarray(((one[:, 1:] - one[:, :1]) / np.where(np.abs(lost) < 1e-12, np.nan, lost)).mean(axis=1))

    seen, left_out = ratio(means[0].seen, means[1].seen), ratio(means[0].left_out, means[1].left_out)
    return left_out_interval(seen, left_out, cases=int(sample.clusters[-1]) + 1), _mce_truth(True)


@cache
def _mce_truth(relative: bool) -> float:
    own, other = _expected(_CLEAN[0], _BETTER), _expected(_CLEAN[1], 0.0)
    if relative:
        return float(((own[1:] - own[0]) / (other[1:] - other[0])).mean())
    return float((own[1:] / other[1:]).mean())


# ---- video ------------------------------------------------------------------------------------------------------------


def pm_k(sample: Sample) -> tuple[Interval, float]:
    """Anchors that are right on all of five frames, which vary about the anchor."""
    frames = sample.normal()[:, None] + 0.3 * sample.generator.normal(size=(len(sample), 5))
    return metrics.cluster_share_interval(np.asarray(frames.max(axis=1) < 0.8), clusters=sample.groups), _pm_k_truth()


@cache
def _pm_k_truth() -> float:
    easy = ndtri((np.arange(200_000) + 0.5) / 200_000)
    return float((ndtr((0.8 - easy) / 0.3) ** 5).mean())


def robustness(axes: str) -> Draw:
    def draw(sample: Sample) -> tuple[Interval, float]:
        generator = sample.generator
        x = generator.uniform(0.4, 0.9, 46)
        if axes == "probit":
            y = ndtr(0.9 * ndtri(x) - 0.4 + generator.normal(scale=0.08, size=46))
        else:
            y = 0.9 * x - 0.1 + generator.normal(scale=0.025, size=46)
        easy, changed = sample.normal(), sample.normal()
        after = 0.95 * easy + np.sqrt(1 - 0.95**2) * changed < ndtri(y[0])
        found = metrics.measured_effective_robustness(
            easy < ndtri(x[0]),
            after,
            x[1:],
            y[1:],
            clusters=sample.groups,
            axes=axes,  # type: ignore[arg-type]
        )
        return None if found is None else found.interval, 0.0

    return draw


# ---- separation -------------------------------------------------------------------------------------------------------


def sides(sample: Sample, distance: float, few: bool) -> tuple[Numbers, Numbers, dict[str, Any]]:
    """Scores inside and outside; `few` sets the sample, as the outside one, against a thousand clusters inside."""
    design = "clusters" if sample.clustered else "alone"
    inside = Sample.of(sample.generator, 1000 if few else int(sample.clusters[-1]) + 1, design)
    groups = {} if sample.groups is None else {"in_clusters": inside.clusters, "out_clusters": sample.clusters + 10**6}
    return sample.rounded(inside.normal()), sample.rounded(sample.normal() + distance), groups


@cache
def _rounded_auroc(distance: float) -> float:
    steps = np.arange(-20, 21) / 2
    inside, outside = (np.diff(ndtr(np.append(steps - 0.25, 99) - shift)) for shift in (0, distance))
    return float(outside @ (np.cumsum(inside) - inside / 2))


def auroc(truth: float, few: bool = False) -> Draw:
    distance = float(np.sqrt(2) * ndtri(truth))

    def draw(sample: Sample) -> tuple[Interval, float]:
        inside, outside, groups = sides(sample, distance, few)
        return metrics.auroc_interval(inside, outside, **groups), _rounded_auroc(distance) if sample.ties else truth

    return draw


def auroc_drawn_again(sample: Sample) -> tuple[Interval, float]:
    """Of `--auroc-interval bootstrap`."""
    inside, outside, groups = sides(sample, float(np.sqrt(2) * ndtri(0.9)), False)
    return metrics.bootstrap_auroc_interval(inside, outside, resamples=500, **groups), 0.9


def slope(sample: Sample) -> tuple[Interval, float]:
    """Of the line through groups of images, a group for each case."""
    distances = np.sort(sample.generator.uniform(0.2, 0.8, len(sample)))
    line = metrics.fit_line(distances, 0.5 + 0.4 * distances + 0.05 * sample.normal())
    return line.slope_interval, 0.4


def temperature(sample: Sample) -> tuple[Interval, float]:
    logits = 3 * sample.normal(5)
    chances = softmax(logits / 1.5, axis=1).cumsum(axis=1)
    labels = (sample.generator.random(len(sample))[:, None] > chances).sum(axis=1)
    return metrics.temperature_interval(labels, logits, metrics.fit_temperature(labels, logits)), 1.5


def auroc_differences(together: bool) -> Draw:
    """Of one other detector, or whether all of four hold at once."""
    distances = np.array([1.5, 1.7, 1.5, 1.2, 2.0])
    true = ndtr(distances / np.sqrt(2))

    def draw(sample: Sample) -> tuple[Interval, float]:
        design = "clusters" if sample.clustered else "alone"
        other = Sample.of(sample.generator, int(sample.clusters[-1]) + 1, design)
        common = other.normal(), sample.normal()
        count = 5 if together else 2
        scores = [
            np.stack([np.sqrt(0.7) * base + np.sqrt(0.3) * side.normal() for _ in range(count)])
            for base, side in zip(common, (other, sample), strict=True)
        ]
        scores[1] += distances[:count, None]
        scores = [sample.rounded(side) for side in scores]
        groups = {} if sample.groups is None else {"in_clusters": other.clusters, "out_clusters": sample.clusters + 10**6}
        if not together:
            one = metrics.auroc_difference(scores[0][1], scores[1][1], scores[0][0], scores[1][0], **groups)  # type: ignore[arg-type]
            return one.interval, true[1] - true[0]
        found = metrics.auroc_differences(scores[0], scores[1], draws=2000, **groups)  # type: ignore[arg-type]
        bounds = [one.interval for one in found if one.interval is not None]
        # all hold where the one that misses by most, or holds by least, does
        missed = [max(low - value, value - high) for (low, high), value in zip(bounds, true[1:] - true[0], strict=True)]
        worst = int(np.argmax(missed))
        return bounds[worst], float((true[1:] - true[0])[worst])

    return draw


def area_of_precision(distance: float) -> Draw:
    def number(sample: Sample) -> float:
        return metrics.aupr(sample.rounded(sample.normal()), sample.rounded(sample.normal() + distance))

    def draw(sample: Sample) -> tuple[Interval, float]:
        inside, outside, groups = sides(sample, distance, few=False)
        return metrics.aupr_interval(inside, outside, **groups), truth_of(number, sample.ties)

    return draw


def false_alarms(few: bool = False, tpr: float = 0.95) -> Draw:
    def draw(sample: Sample) -> tuple[Interval, float]:
        inside, outside, groups = sides(sample, 2.0, few)
        return metrics.fpr_interval(inside, outside, tpr=tpr, **groups), float(ndtr(-(2.0 + ndtri(1 - tpr))))

    return draw


def moved(sample: Sample) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    first, group = sample.normal(), sample.generator.random(len(sample)) < 0.3
    return sample.rounded(first), sample.rounded(first + sample.normal() + 0.8 * group), group


def shift(sample: Sample) -> tuple[Interval, float]:
    return metrics.rank_shift_interval(*moved(sample), clusters=sample.groups), _shift_truth(sample.ties)


@cache
def _shift_truth(ties: bool) -> float:
    first, second, group = moved(large(ties=ties))
    return float(metrics.rank_shift(first, second)[group].mean())


# ---- confidence -------------------------------------------------------------------------------------------------------


def answers(level: float) -> Callable[[Sample], tuple[Numbers, NDArray[np.bool_]]]:
    """Sureness, and whether the answer is right: about 0.78 of all at a level of 1.8, 0.97 at 4."""

    def drawn(sample: Sample) -> tuple[Numbers, NDArray[np.bool_]]:
        easy = sample.normal()
        right = ndtr(sample.normal()) < expit(level + 1.5 * easy)
        return sample.rounded(easy + 0.8 * sample.generator.normal(size=len(sample))), right

    return drawn


def selective(interval: Any, area: Any, level: float = 1.8) -> Draw:
    drawn = answers(level)

    def number(sample: Sample) -> float:
        return float(area(*drawn(sample)))

    def draw(sample: Sample) -> tuple[Interval, float]:
        return interval(*drawn(sample), clusters=sample.groups), truth_of(number, sample.ties)

    return draw


def calibration(interval: Any, kind: str, steep: float, level: float) -> Draw:
    def pairs(sample: Sample) -> tuple[Numbers, Numbers]:
        easy = sample.normal()
        sure = expit(1.5 + 1.5 * easy)
        return (np.round(sure, 2) if sample.ties else sure), expit(level + steep * easy)

    @cache
    def truth(ties: bool) -> float:
        confidence, chance = pairs(large(ties=ties))
        if kind == "rms":
            return float(np.sqrt(((confidence - chance) ** 2).mean()))
        if kind == "mean":
            return float((confidence - chance).mean())
        bins = np.ceil(confidence * 15).astype(int)
        return float(np.abs(np.bincount(bins, confidence - chance)).sum() / len(confidence))

    def draw(sample: Sample) -> tuple[Interval, float]:
        confidence, chance = pairs(sample)
        return interval(confidence, ndtr(sample.normal()) < chance, clusters=sample.groups), truth(sample.ties)

    return draw


# ---- boxes ------------------------------------------------------------------------------------------------------------


def scenes(sample: Sample) -> tuple[Detections, Truths]:
    """One to three objects of five classes an image, found or not, and false alarms."""
    generator, images = sample.generator, len(sample)
    ids = tuple(map(str, range(images)))
    counts = generator.integers(1, 4, images)
    image = np.repeat(np.arange(images), counts)
    classes = generator.integers(5, size=len(image))
    boxes = np.column_stack(
        [np.arange(len(image)) * 10.0, np.zeros(len(image)), np.arange(len(image)) * 10.0 + 8, np.full(len(image), 8.0)]
    )
    easy = sample.normal()[image]
    found = generator.normal(size=len(image)) < 0.6 + 0.8 * easy
    alarms = generator.poisson(0.8, images)
    where = np.repeat(np.arange(images), alarms)
    stray = np.tile([0.0, 100.0, 8.0, 108.0], (len(where), 1))
    none = np.zeros(len(image), bool)
    truths = Truths(ids, image, boxes, classes, none, none, np.full(len(image), 64.0))
    scores = np.append(
        0.6 + 0.3 * easy[found] + 0.3 * generator.normal(size=found.sum()), 0.3 * generator.normal(size=len(where)) + 0.3
    )
    return Detections(
        ids,
        np.append(image[found], where),
        np.concatenate([boxes[found], stray]),
        expit(scores),
        np.append(classes[found], generator.integers(5, size=len(where))),
    ), truths


def mean_precision(sample: Sample) -> tuple[Interval, float]:
    return metrics.average_precision_interval(match(*scenes(sample)), clusters=sample.groups), _mean_precision_truth()


@cache
def _mean_precision_truth() -> float:
    sample = Sample(np.random.default_rng(1), np.arange(100_000), False, False)
    return float(metrics.mean_average_precision(*scenes(sample)))


ALL = ("alone", "clusters", "ties")


def rows() -> Iterator[Row]:
    yield Row("accuracy-80", "accuracy, 80 %", accuracy(0.8))
    yield Row("accuracy-97", "accuracy, 97 %", accuracy(0.97))
    yield Row("paired", "paired difference of accuracies", paired)
    for truth in (0.7, 0.9, 0.97):
        yield Row(f"auroc-{truth}", f"AUROC {truth:.2f}, as many outside", auroc(truth), ALL)
    for truth in (0.9, 0.95, 0.97, 0.99):
        yield Row(f"auroc-few-{truth}", f"AUROC {truth:.2f}, 1000 inside against", auroc(truth, few=True), ALL, (26,))
    yield Row("auroc-bootstrap", "AUROC 0.90, images drawn again", auroc_drawn_again, cases=(26, 100))
    yield Row("auroc-difference", "difference of AUROCs", auroc_differences(together=False), ALL)
    yield Row("auroc-together", "four differences of AUROCs, all at once", auroc_differences(together=True), ALL)
    yield Row("aupr", "AUPR", area_of_precision(1.5), ALL)
    yield Row("fpr", "FPR at 95 % TPR", false_alarms())
    yield Row("fpr-few", "FPR at 95 % TPR, 1000 inside against", false_alarms(few=True), cases=(26,))
    yield Row("discarded", "share discarded where 75 % are found", false_alarms(tpr=0.75))
    yield Row("aurra", "AURRA", selective(metrics.aurra_interval, metrics.aurra), ALL)
    yield Row("aurc", "AURC, 3 % wrong", selective(metrics.aurc_interval, metrics.aurc, 4.0), ALL)
    yield Row("e-aurc", "E-AURC", selective(metrics.e_aurc_interval, metrics.e_aurc), ALL)
    yield Row("augrc", "AUGRC", selective(metrics.augrc_interval, metrics.augrc), ALL)
    yield Row(
        "coverage-at-risk",
        "coverage at 10 % risk",
        selective(
            lambda sure, right, clusters: metrics.coverage_interval(sure, right, 0.1, clusters=clusters),
            lambda sure, right: metrics.coverage_at_risk(sure, right, 0.1),
        ),
        ALL,
    )
    yield Row("rank-shift", "rank shift", shift, ALL)
    yield Row("mce", "mCE, baseline measured", mce)
    yield Row("relative-mce", "relative mCE, baseline measured", relative_mce)
    yield Row("pm-k", "pm-k accuracy", pm_k)
    yield Row("flip-probability", "flip probability", mean_of(flips, (0.0, 1.0)))
    yield Row("flip-rate", "flip rate, baseline measured", flip_rate)
    for axes in ("linear", "probit"):
        yield Row(f"robustness-{axes}", f"effective robustness, {axes} axes", robustness(axes))
    for title, shape in (("calibrated", (1.5, 1.5)), ("off by 0.2", (0.8, 0.3))):
        name = title.split()[0]
        yield Row(
            f"rms-{name}",
            f"RMS calibration error, {title}",
            calibration(metrics.rms_calibration_interval, "rms", *shape),
            ALL,
        )
        yield Row(
            f"debiased-{name}",
            f"debiased calibration error, {title}",
            calibration(metrics.debiased_calibration_interval, "rms", *shape),
        )
        yield Row(f"ece-{name}", f"ECE, {title}", calibration(metrics.expected_calibration_interval, "ece", *shape))
    yield Row("temperature", "temperature", temperature, ("alone",), (100, 1000))
    yield Row("distance-slope", "slope of AUROC over distance, by group", slope, ("alone",), (26, 100))
    yield Row("overconfidence", "overconfidence", calibration(metrics.overconfidence_interval, "mean", 0.8, 0.3))
    yield Row("nll", "negative log-likelihood", mean_of(loss))
    yield Row("brier", "Brier score", mean_of(brier, (0.0, 2.0)))
    yield Row("map50", "mAP50", mean_precision, cases=(26, 100))


def simulate(row: Row, cases: int, design: str, simulations: int) -> Tally:
    generator = np.random.default_rng([cases, ALL.index(design), sum(map(ord, row.name))])
    below = above = none = 0
    width = 0.0
    for _ in range(simulations):
        interval, truth = row.draw(Sample.of(generator, cases, design))
        if interval is None or not np.isfinite(interval).all():
            none += 1
            continue
        low, high = interval
        below, above = below + (truth < low - 1e-12), above + (truth > high + 1e-12)
        width += high - low
    told = simulations - none
    held = told - below - above
    shares = [count / max(told, 1) for count in (held, below, above)]
    return Tally(simulations, shares[0], shares[1], shares[2], width / max(told, 1), none / simulations)


def table(cells: dict[str, dict[str, Any]]) -> str:
    """The figures as Markdown, a line for each number and design; a cell is coverage, misses below and above, width."""
    titles = {row.name: row for row in rows()}
    lines = ["| number | images | 26 clusters | 100 | 1000 |", "|---|---|---|---|---|"]
    for name, row in titles.items():
        for design in row.designs:
            found = [cells.get(f"{name}/{cases}/{design}") for cases in CLUSTERS]
            if any(found):
                lines.append(f"| {row.title} | {design} | {' | '.join(map(_cell, found))} |")
    return "\n".join(lines)


def _cell(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    none = f", {100 * found['none']:.0f} % none" if found["none"] >= 0.005 else ""
    held, below, above = (100 * found[name] for name in ("held", "below", "above"))
    mark = "**" if not 92.5 <= held < 97.5 else ""
    return f"{mark}{held:.1f}{mark} ({below:.1f}, {above:.1f}) ±{found['width'] / 2:.2g}{none}"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--quick", action="store_true", help="200 simulations, and no 1,000 clusters")
    parser.add_argument("--only", default="", help="beginnings of names, such as auroc,fpr")
    parser.add_argument("--clusters", default=",".join(map(str, CLUSTERS)), help="such as 26,100")
    parser.add_argument("--json", type=Path, help="where figures are kept, and added to")
    parser.add_argument("--table", type=Path, nargs="+", help="put these files of figures together, and simulate nothing")
    parser.add_argument("--docs", type=Path, help="the page whose table is written anew")
    options = parser.parse_args(arguments)
    if options.table:
        files = [json.loads(path.read_text())["coverage"] for path in options.table]
        together = {key: cell for cells in files for key, cell in sorted(cells.items())}
        if options.json:
            options.json.write_text(json.dumps({"coverage": together}, indent=1) + "\n")
        if options.docs:
            page = options.docs.read_text()
            before, after = page.split(BEGINS)[0], page.split(ENDS)[1]
            options.docs.write_text(f"{before}{BEGINS}\n{table(together)}\n{ENDS}{after}")
        print(table(together))
        return
    known = json.loads(options.json.read_text())["coverage"] if options.json and options.json.exists() else {}
    wanted, counts = tuple(options.only.split(",")), {int(count) for count in options.clusters.split(",")}
    for row in rows():
        for cases in sorted(counts & {*row.cases}) if row.name.startswith(wanted) else ():
            for design in row.designs if not (options.quick and cases > 100) else ():
                started = time.perf_counter()
                tally = simulate(row, cases, design, 200 if options.quick else options.simulations)
                key = f"{row.name}/{cases}/{design}"
                known[key] = tally._asdict()
                print(f"{key:32} {_cell(known[key])}   {time.perf_counter() - started:.0f} s", flush=True)
                if options.json:
                    options.json.write_text(json.dumps({"coverage": known}, indent=1) + "\n")
    print(table(known))


if __name__ == "__main__":
    main()
