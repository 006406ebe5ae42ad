"""Coverage of our 95 % confidence intervals by simulation: the table of docs/intervals.md.

    python benchmarks/interval_coverage.py [--simulations 2000] [--quick] [--only auroc,fpr] [--clusters 26,100]
                                           [--json figures.json]
    python benchmarks/interval_coverage.py --table figures.json more.json --json benchmarks/coverage.json
                                           --docs docs/intervals.md

Images are drawn from populations with known values, and the interval of each metric is computed: at 26, 100 and 1,000
clusters, where every image is a cluster of its own ("alone"), where clusters have 1 to 20 images with an intra-cluster
correlation of a third ("clusters"), and where scores are rounded so that there are ties ("ties"). `--only` takes prefixes of
names; results are added to those in the JSON file. `--table` simulates nothing: it merges such files, as of a run in
parts, and writes the table of the docs. The intervals of a budget have a script of their own, coverage_budget.py.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, ndtr, ndtri, softmax

from shiftproof import metrics
from shiftproof.metrics.boxes import Matches, match
from shiftproof.metrics.delong import placements
from shiftproof.metrics.detection import over_classes, resampled_precision
from shiftproof.metrics.resampling import Resampled, interval_of, left_out_interval, resampled_means
from shiftproof.metrics.temporal import worst_frames_sweep
from shiftproof.metrics.trends import intercept_difference
from shiftproof.studies.corruption.numbers import loss_may_be_none
from shiftproof.studies.estimate.calibrated import Answers, KnownShifts
from shiftproof.studies.ood.analyses import means_over_networks
from shiftproof.studies.ood.distance import groups_by_distance, with_id_error
from shiftproof.studies.threshold.study import ThresholdChoice
from shiftproof.types import Clusters, Detections, Measurement, Truths

Numbers = NDArray[np.floating]
Interval = tuple[float, float] | None

CLUSTERS = (26, 100, 1000)
BEGINS, ENDS = "<!-- made by benchmarks/interval_coverage.py --table -->", "<!-- end of the table -->"
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

    @property
    def count(self) -> int:
        """How many clusters there are."""
        return int(self.clusters[-1]) + 1

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

Draws = Callable[[Sample], Mapping[str, tuple[Interval, float]]]
"""The same of several numbers of one sample, by the names of their rows."""


@dataclass(frozen=True)
class Row:
    """A number, and the cells it is simulated in."""

    name: str
    title: str
    draw: Draw | Draws
    designs: tuple[str, ...] = ("alone", "clusters")
    cases: tuple[int, ...] = CLUSTERS

    @property
    def cells(self) -> list[tuple[int, str]]:
        return [(cases, design) for cases in self.cases for design in self.designs]


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


def worst_group(sample: Sample) -> tuple[Interval, float]:
    """Of eight groups that are all alike, the one that looks worst."""
    right, group = sample.normal() < ndtri(0.8), sample.clusters % 8
    rows = group == np.argmin(np.bincount(group, right) / np.bincount(group))
    inside = None if sample.groups is None else sample.groups[rows]
    return metrics.cluster_share_interval(right[rows], clusters=inside, level=1 - 0.05 / 8), 0.8


def slice_gap(sample: Sample) -> tuple[Interval, float]:
    """A fifth of the clusters, less accurate than the others."""
    members = sample.clusters % 5 == 0
    right = sample.normal() < np.where(members, ndtri(0.6), ndtri(0.85))
    return metrics.slice_gap(right, members, clusters=sample.groups).interval, 0.25


def paired(sample: Sample) -> tuple[Interval, float]:
    easy = sample.normal()
    right = [np.sqrt(0.6) * easy + np.sqrt(0.4) * sample.normal() < ndtri(share) for share in (0.8, 0.75)]
    return metrics.paired_difference(right[0], right[1], clusters=sample.groups).interval, 0.05


_TRAINED = (0.6, 0.1, 0.5)  # share of ease that recipes have in common, spread of seeds, noise of single answers


def recipe_gains(seeds: int, recipes: int = 1, together: bool = False) -> Draw:
    """Trainings of a baseline and of recipes, so many seeds of each; of several, all alike, the gain furthest from none."""
    common, spread, noise = _TRAINED

    def draw(sample: Sample) -> tuple[Interval, float]:
        easy, tables = np.sqrt(common) * sample.normal(), []
        for recipe in range(1 + recipes):
            own = easy + np.sqrt(1 - common) * sample.normal() + (0.2 if recipe and not together else 0.0)
            moved = sample.generator.normal(scale=spread, size=(seeds, 1))
            tables.append(own + moved + noise * np.array([sample.normal() for _ in range(seeds)]) > -0.8)
        found = metrics.recipe_gains(tables[0], tables[1:], clusters=sample.groups)
        if together:
            furthest = max(found, key=lambda one: abs(one.gain) / max(_width(one.simultaneous), 1e-9))
            return furthest.simultaneous, 0.0
        whole = np.sqrt(1 + spread**2 + noise**2)
        return found[0].interval, float(ndtr(1.0 / whole) - ndtr(0.8 / whole))

    return draw


def _width(interval: Interval) -> float:
    return 0.0 if interval is None else interval[1] - interval[0]


def mean_of(values: Callable[[Sample], Numbers], bounds: tuple[float, float] | None = None) -> Draw:
    def number(sample: Sample) -> float:
        return float(values(sample).mean())

    def draw(sample: Sample) -> tuple[Interval, float]:
        found = metrics.cluster_mean_interval(values(sample), clusters=sample.groups, bounds=bounds)
        return found, truth_of(number, False)

    return draw


def left_out_mean(values: Callable[[Sample], Numbers], bounds: tuple[float, float] | None = None) -> Draw:
    """As numbers along sequences are done: clusters, or blocks of them, left out in turn."""

    def number(sample: Sample) -> float:
        return float(values(sample).mean())

    def draw(sample: Sample) -> tuple[Interval, float]:
        means = resampled_means(values(sample)[:, None], clusters=sample.groups, resamples=0)
        return without_each(sample, means, lambda part: part[:, 0], bounds), truth_of(number, False)

    return draw


def without_each(
    sample: Sample, means: Resampled, number: Callable[[Numbers], Numbers], bounds: tuple[float, float] | None = None
) -> Interval:
    with np.errstate(all="ignore"):
        seen, left_out = number(means.seen), number(means.left_out)
    return left_out_interval(seen, left_out, bounds=bounds, cases=sample.count)


def confidences(sample: Sample) -> Numbers:
    return np.asarray(expit(1.5 + 1.5 * sample.normal()))


def top5_distances(sample: Sample) -> Numbers:
    return np.asarray(0.5 * np.maximum(sample.normal() + 0.3, 0) ** 2)


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
    return left_out_interval(seen, left_out, cases=sample.count), _flip_rate_truth()


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
    return interval_of(*parts, cases=sample.count), _mce_truth(False)


def relative_mce(sample: Sample) -> tuple[Interval, float]:
    """As the study does: images left out jointly for the model and the baseline, and nothing divided by what may be 0."""
    own, other = errors(sample)
    means = [resampled_means(table, clusters=sample.groups, resamples=0) for table in (own, other)]

    def ratio(one: Numbers, base: Numbers) -> Numbers:
        lost = base[:, 1:] - base[:, :1]
        # of a baseline that loses nothing nothing can be said, whatever rounding makes of it
        return np.asarray(((one[:, 1:] - one[:, :1]) / np.where(np.abs(lost) < 1e-12, np.nan, lost)).mean(axis=1))

    lost, without = ((part[:, 1:] - part[:, :1]).T for part in (means[1].seen, means[1].left_out))
    if any(loss_may_be_none(*loss, cases=sample.count) for loss in zip(lost, without, strict=True)):
        return None, _mce_truth(True)
    seen, left_out = ratio(means[0].seen, means[1].seen), ratio(means[0].left_out, means[1].left_out)
    return left_out_interval(seen, left_out, cases=sample.count), _mce_truth(True)


def corruption_means(sample: Sample) -> dict[str, tuple[Interval, float]]:
    """Mean errors and what they add to the clean one, and both of one corruption in multiples of the baseline's."""
    own, other = errors(sample)
    columns = np.column_stack(
        [own[:, 1:].mean(axis=1), own[:, 1:].mean(axis=1) - own[:, 0], own[:, 1], other[:, 1], own[:, 0], other[:, 0]]
    )
    means = resampled_means(columns, clusters=sample.groups, resamples=500)
    true, base = _expected(_CLEAN[0], _BETTER), _expected(_CLEAN[1], 0.0)

    def drawn(number: Callable[[Numbers], Numbers]) -> Interval:
        with np.errstate(all="ignore"):
            seen, again, without = map(number, means)
        return interval_of(seen, again, without, cases=sample.count)

    lost, without = (part[:, 3] - part[:, 5] for part in (means.seen, means.left_out))
    relative = None
    if not loss_may_be_none(lost, without, cases=sample.count):
        relative = without_each(sample, means, lambda part: (part[:, 2] - part[:, 4]) / (part[:, 3] - part[:, 5]))
    return {
        "corrupted-error": (drawn(lambda part: part[:, 0]), float(true[1:].mean())),
        "error-added": (drawn(lambda part: part[:, 1]), float(true[1:].mean() - true[0])),
        "one-corruption": (drawn(lambda part: part[:, 2] / part[:, 3]), float(true[1] / base[1])),
        "one-relative": (relative, float((true[1] - true[0]) / (base[1] - base[0]))),
    }


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


def pm_k_drop(sample: Sample) -> tuple[Interval, float]:
    """What the worst of five frames loses: no anchor gains."""
    frames = sample.normal()[:, None] + 0.3 * sample.generator.normal(size=(len(sample), 5))
    found = metrics.paired_difference(frames[:, 0] < 0.8, frames.max(axis=1) < 0.8, clusters=sample.groups)
    return found.interval, float(ndtr(0.8 / np.sqrt(1.09))) - _pm_k_truth()


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


def shift_robustness(sample: Sample) -> tuple[Interval, float]:
    """One more model of a hundred like it, on a thousand images before the shift and on others under it."""
    generator = sample.generator
    x = generator.uniform(0.55, 0.85, 101)
    y = ndtr(0.95 * ndtri(x) - 0.4 + generator.normal(scale=0.05, size=101))
    before = Sample.of(generator, 1000, "alone").normal() < ndtri(x[0])
    found = metrics.unpaired_effective_robustness(
        np.asarray(before), np.asarray(sample.normal() < ndtri(y[0])), x[1:], y[1:], clusters=sample.groups
    )
    return None if found is None else found.interval, 0.0


_CLASSES, _LABELLED, _SPREAD = 8, 100, 1.5  # of a dataset whose accuracy is estimated without labels, and how images differ


def without_labels(sample: Sample) -> dict[str, tuple[Interval, float]]:
    """Images under a shift of a new group, estimated from labelled ones under shifts of four groups.

    A group has a scale of its own by which it moves the logits, so that confidence means another accuracy in each; half of
    the images, of one site, are harder.
    """
    generator = sample.generator
    scales = dict(zip("abcdt", np.exp(generator.normal(scale=0.15, size=5)), strict=True))
    labelled = Sample.of(generator, _LABELLED, "alone")
    easy, labels, site = labelled.normal(), generator.integers(_CLASSES, size=len(labelled)), np.arange(len(labelled)) % 2

    def answers(of: Sample, easy: Numbers, labels: Any, site: Any, group: str, harm: float) -> Answers:
        logits = generator.normal(size=(len(of), _CLASSES))
        logits[np.arange(len(of)), labels] += 3.5 - 0.5 * site - harm + _SPREAD * easy
        return Answers(scales[group] * 2 * logits, labels, logits.argmax(axis=1) == labels, of.clusters, (site,))

    clean = answers(labelled, easy, labels, site, "a", 0.0)
    shifted = {group: answers(labelled, easy, labels, site, group, generator.uniform(0.5, 2.5)) for group in "abcd"}
    groups, half = dict(zip("abcd", "abcd", strict=True)), generator.random(len(labelled)) < 0.5
    made = KnownShifts(clean, shifted, groups, half).calibration(len(sample))
    harm, site = float(generator.uniform(0.5, 2.5)), np.arange(len(sample)) % 2
    target = answers(sample, sample.normal(), generator.integers(_CLASSES, size=len(sample)), site, "t", harm)
    view = made.view(target.logits, target.cases)
    easy_site, hard_site = _accuracy_at(3.5 - harm), _accuracy_at(3.0 - harm)
    return {
        "estimate": (made.interval(view.look()), (easy_site + hard_site) / 2),
        "estimate-slice": (made.interval_in_slice(view.look(site == 1)), hard_site),
    }


def _accuracy_at(level: float) -> float:
    """The chance that a normal logit of this mean is above all others, by the midpoints of a thousand quantiles."""
    own = level + np.sqrt(1 + _SPREAD**2) * ndtri((np.arange(1000) + 0.5) / 1000)
    return float((ndtr(own) ** (_CLASSES - 1)).mean())


# ---- separation -------------------------------------------------------------------------------------------------------


def sides(sample: Sample, distance: float, few: bool) -> tuple[Numbers, Numbers, dict[str, Any]]:
    """Scores inside and outside; `few` sets the sample, as the outside one, against a thousand clusters inside."""
    design = "clusters" if sample.clustered else "alone"
    inside = Sample.of(sample.generator, 1000 if few else sample.count, design)
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


def distances(sample: Sample, few: bool) -> dict[str, tuple[Interval, float]]:
    """Lines through AUROCs of groups alike in distance, of two sets against the same inside images, or a fifth as many."""
    lines, count = [], len(sample) // 5 if few else len(sample)
    inside = sample.generator.normal(size=count)
    clusters = Clusters("image", tuple(map(str, range(count))))
    for begins in (0.5, 0.4):
        away = sample.generator.uniform(0.2, 0.8, len(sample))
        scores = sample.normal() + np.sqrt(2) * ndtri(begins + 0.4 * away)
        parts, above = groups_by_distance(away), placements(inside, scores)[1]
        middles, aurocs = (np.array([values[part].mean() for part in parts]) for values in (away, above))
        lines.append(with_id_error(metrics.fit_line(middles, aurocs), middles, parts, inside, scores, clusters))
    first, second = lines
    beside = "-few" if few else ""
    return {
        f"distance-slope{beside}": (first.slope_interval, 0.4),
        f"distance-intercept{beside}": (first.intercept_interval, 0.5),
        f"intercept-difference{beside}": (intercept_difference(first, second).interval, 0.1),
    }


def same_photos(sample: Sample) -> dict[str, tuple[Interval, float]]:
    """Photos inside, and copies of the same photos outside: a case stands on both sides."""
    distance = float(np.sqrt(2) * ndtri(0.9))
    easy = np.sqrt(0.5) * sample.normal()
    inside, outside = (easy + np.sqrt(0.5) * sample.normal() + shift for shift in (0.0, distance))
    groups: dict[str, Any] = {"in_clusters": sample.clusters, "out_clusters": sample.clusters}
    return {
        "auroc-copies": (metrics.auroc_interval(inside, outside, **groups), 0.9),
        "aupr-copies": (metrics.aupr_interval(inside, outside, **groups), truth_of(precision_of(distance), False)),
        "fpr-copies": (metrics.fpr_interval(inside, outside, **groups), float(ndtr(-(distance + ndtri(0.05))))),
    }


def thresholds(sample: Sample) -> dict[str, tuple[Interval, float]]:
    """What a threshold flags: of the images that it was picked on, and of the half that it was not picked on."""
    inside, outside, groups = sides(sample, 2.0, few=False)
    cases = groups.get("in_clusters"), groups.get("out_clusters")
    halves = [
        np.arange(len(side)) % 2 if case is None else case % 2 for side, case in zip((inside, outside), cases, strict=True)
    ]
    least_alarms, cheapest = ThresholdChoice(false_alarms=0.05), ThresholdChoice(cheapest=True)
    exchanged = [least_alarms.pick(inside[halves[0] != half], outside[halves[1] != half], None) for half in (0, 1)]

    def flagged(place: int, at: float | Numbers) -> tuple[Interval, float]:
        side, distance = (inside, 0.0) if place == 0 else (outside, 2.0)
        return metrics.cluster_share_interval(side >= at, clusters=cases[place]), float(np.mean(ndtr(distance - at)))

    return {
        "alarms-picked": flagged(0, least_alarms.pick(inside, outside, None)),
        "found-cheapest": flagged(1, cheapest.pick(inside, outside, None)),
        "alarms-other": flagged(0, np.choose(halves[0], exchanged)),
        "found-other": flagged(1, np.choose(halves[1], exchanged)),
    }


@cache
def network_aurocs(images: int) -> Numbers:
    """AUROCs of thousands of random networks on the same images, by their energy."""
    generator = np.random.default_rng(images)
    inside, outside = generator.normal(size=(images, 8)), 0.5 + 1.2 * generator.normal(size=(images, 8))
    found = []
    for _ in range(5000):
        first, second = generator.normal(size=(8, 16)) / np.sqrt(8), generator.normal(size=(16, 10)) / 4
        scores = [-logsumexp(np.maximum(side @ first, 0) @ second, axis=1) for side in (inside, outside)]
        found.append(metrics.auroc(*scores))
    return np.array(found)


def random_networks(networks: int) -> Draw:
    """The mean that more networks would have on the same images."""

    def draw(sample: Sample) -> tuple[Interval, float]:
        every = network_aurocs(len(sample))
        drawn = sample.generator.choice(every, networks).tolist()
        (mean,) = means_over_networks(
            [Measurement("random_network_auroc", one, {"network": place}, 1, {}) for place, one in enumerate(drawn)]
        )
        return mean.ends, float(every.mean())

    return draw


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
        other = Sample.of(sample.generator, sample.count, design)
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


@cache
def precision_of(distance: float) -> Callable[[Sample], float]:
    def number(sample: Sample) -> float:
        return metrics.aupr(sample.rounded(sample.normal()), sample.rounded(sample.normal() + distance))

    return number


def area_of_precision(distance: float) -> Draw:
    def draw(sample: Sample) -> tuple[Interval, float]:
        inside, outside, groups = sides(sample, distance, few=False)
        return metrics.aupr_interval(inside, outside, **groups), truth_of(precision_of(distance), sample.ties)

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


def surest_half(sample: Sample) -> tuple[Interval, float]:
    """A point of the curve of accuracy by response rate."""
    sure, right = answers(1.8)(sample)
    half = np.argsort(-sure, kind="stable")[: len(sure) // 2]
    groups = None if sample.groups is None else sample.groups[half]
    return metrics.cluster_share_interval(right[half], clusters=groups), _surest_half_truth()


@cache
def _surest_half_truth() -> float:
    sure, right = answers(1.8)(large())
    return float(right[sure > np.median(sure)].mean())


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


def objects(generator: np.random.Generator, images: int) -> Truths:
    """One to three objects of five classes an image."""
    image = np.repeat(np.arange(images), generator.integers(1, 4, images))
    start, none = np.arange(len(image)) * 10.0, np.zeros(len(image), bool)
    boxes = np.column_stack([start, 0 * start, start + 8, 0 * start + 8])
    classes = generator.integers(5, size=len(image))
    return Truths(tuple(map(str, range(images))), image, boxes, classes, none, none, np.full(len(image), 64.0))


def found_among(generator: np.random.Generator, truths: Truths, easy: Numbers, harder: float = 0.0) -> Matches:
    """Some of the objects, the more and the surer the easier an image is, and false alarms."""
    level = easy[truths.image] - harder
    found = generator.normal(size=len(level)) < 0.6 + 0.8 * level
    where = np.repeat(np.arange(len(truths.ids)), generator.poisson(0.8, len(truths.ids)))
    scores = np.append(0.6 + 0.3 * level[found], np.full(len(where), 0.3)) + 0.3 * generator.normal(
        size=found.sum() + len(where)
    )
    stray = np.tile([0.0, 100.0, 8.0, 108.0], (len(where), 1))
    detections = Detections(
        truths.ids,
        np.append(truths.image[found], where),
        np.concatenate([truths.boxes[found], stray]),
        expit(scores),
        np.append(truths.classes[found], generator.integers(5, size=len(where))),
    )
    return match(detections, truths)


def without_images(sample: Sample, matches: Matches, images: NDArray[np.integer] | None = None) -> Resampled:
    """Average precision of each class, as seen and without each cluster, or block of clusters."""
    return resampled_precision(matches, images, clusters=sample.groups, resamples=0)


def mean_precision(sample: Sample) -> tuple[Interval, float]:
    truths, easy = objects(sample.generator, len(sample)), sample.normal()
    matches = found_among(sample.generator, truths, easy)
    return metrics.average_precision_interval(matches, clusters=sample.groups), _boxes_truth()[0]


def boxes(sample: Sample) -> dict[str, tuple[Interval, float]]:
    """Boxes found in the same images unchanged and in two cells."""
    truths, easy = objects(sample.generator, len(sample)), sample.normal()
    again = [without_images(sample, found_among(sample.generator, truths, easy, harder)) for harder in HARDER]
    table = Resampled(*(np.hstack(parts) for parts in zip(*map(over_classes, again), strict=True)))
    true = _boxes_truth()
    share = (0.0, 1.0)
    return {
        "class-precision": (without_each(sample, again[0], lambda part: part[:, 0], share), true[0]),
        "mpc": (without_each(sample, table, lambda part: part[:, 1:].mean(axis=1), share), float(np.mean(true[1:]))),
        "rpc": (
            without_each(sample, table, lambda part: part[:, 1:].mean(axis=1) / part[:, 0]),
            float(np.mean(true[1:]) / true[0]),
        ),
    }


HARDER = (0.0, 0.5, 1.0)


@cache
def _boxes_truth() -> list[float]:
    generator = np.random.default_rng(1)
    truths, easy = objects(generator, 100_000), generator.normal(size=100_000)
    return [_whole(found_among(generator, truths, easy, harder)) for harder in HARDER]


def _whole(matches: Matches, images: NDArray[np.integer] | None = None) -> float:
    """Mean average precision of very many images."""
    times = None if images is None else np.bincount(images, minlength=len(matches.ids))
    return float(np.nanmean(metrics.average_precision(matches, times=times)))


def frames(sample: Sample) -> dict[str, tuple[Interval, float]]:
    """The worst of an anchor and the frames before and after it."""
    matches, anchors, worst = _frames(sample.generator, sample.normal())
    near, far = (over_classes(without_images(sample, matches, images)) for images in (anchors, worst))
    lost = Resampled(*(one - other for one, other in zip(near, far, strict=True)))
    true = _frames_truth()
    return {
        "pm-k-precision": (without_each(sample, far, lambda part: part[:, 0], (0.0, 1.0)), true[1]),
        "precision-drop": (without_each(sample, lost, lambda part: part[:, 0]), true[0] - true[1]),
    }


def _frames(generator: np.random.Generator, easy: Numbers) -> tuple[Matches, NDArray[np.integer], NDArray[np.integer]]:
    """Boxes in three frames an anchor, the anchors' own images, and the worst of each three."""
    count = 3 * len(easy)
    matches = found_among(generator, objects(generator, count), np.repeat(easy, 3) + 0.3 * generator.normal(size=count))
    worst = worst_frames_sweep(matches, np.tile([-1, 0, 1], len(easy)), np.repeat(np.arange(len(easy)), 3), largest_k=1)[-1]
    return matches, np.arange(1, count, 3), worst


@cache
def _frames_truth() -> tuple[float, float]:
    generator = np.random.default_rng(1)
    matches, anchors, worst = _frames(generator, generator.normal(size=60_000))
    return _whole(matches, anchors), _whole(matches, worst)


ALL = ("alone", "clusters", "ties")


def rows() -> Iterator[Row]:
    yield Row("accuracy-80", "accuracy, 80 %", accuracy(0.8))
    yield Row("accuracy-97", "accuracy, 97 %", accuracy(0.97))
    yield Row("worst-group", "worst accuracy of 8 groups", worst_group, cases=(100, 1000))
    yield Row("slice-gap", "gap of a fifth of the images", slice_gap, cases=(100, 1000))
    yield Row("estimate", "accuracy without labels", without_labels, cases=(100,))
    yield Row("estimate-slice", "accuracy without labels, half of the images", without_labels, cases=(100,))
    yield Row("surest-half", "accuracy on the most confident half", surest_half)
    yield Row("paired", "paired difference of accuracies", paired)
    for truth in (0.7, 0.9, 0.97):
        yield Row(f"auroc-{truth}", f"AUROC {truth:.2f}, as many OOD as ID", auroc(truth), ALL)
    for truth in (0.9, 0.95, 0.97, 0.99):
        yield Row(f"auroc-few-{truth}", f"AUROC {truth:.2f}, 1000 ID clusters", auroc(truth, few=True), ALL, (26,))
    yield Row("auroc-bootstrap", "AUROC 0.90, bootstrap", auroc_drawn_again, cases=(26, 100))
    yield Row("auroc-difference", "difference of AUROCs", auroc_differences(together=False), ALL)
    for seeds in (2, 3, 5):
        yield Row(f"gain-{seeds}", f"gain of a recipe, {seeds} seeds", recipe_gains(seeds))
    yield Row("gain-together", "four gains of 0, 3 seeds, simultaneous", recipe_gains(3, recipes=4, together=True))
    yield Row("auroc-together", "four differences of AUROCs, simultaneous", auroc_differences(together=True), ALL)
    yield Row("auroc-copies", "AUROC 0.90, photos against copies of them", same_photos)
    yield Row("aupr-copies", "AUPR, photos against copies of them", same_photos)
    yield Row("fpr-copies", "FPR at 95 % TPR, photos against copies of them", same_photos)
    yield Row("aupr", "AUPR", area_of_precision(1.5), ALL)
    yield Row("fpr", "FPR at 95 % TPR", false_alarms())
    yield Row("fpr-few", "FPR at 95 % TPR, 1000 ID clusters", false_alarms(few=True), cases=(26,))
    yield Row("discarded", "share discarded at 75 % TPR", false_alarms(tpr=0.75))
    yield Row("alarms-picked", "FPR, threshold of 5 % chosen on these images", thresholds)
    yield Row("found-cheapest", "TPR at the lowest cost, chosen on these images", thresholds)
    yield Row("alarms-other", "FPR, threshold of 5 % chosen on the other half", thresholds, cases=(100, 1000))
    yield Row("found-other", "TPR, threshold of 5 % chosen on the other half", thresholds, cases=(100, 1000))
    yield Row("aurra", "AURRA", selective(metrics.aurra_interval, metrics.aurra), ALL)
    yield Row("aurc", "AURC, error of 3 %", selective(metrics.aurc_interval, metrics.aurc, 4.0), ALL)
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
    yield Row("corrupted-error", "mean error under corruption", corruption_means)
    yield Row("error-added", "error added by corruption", corruption_means)
    yield Row("one-corruption", "CE of one corruption, baseline measured", corruption_means)
    yield Row("one-relative", "relative CE of one corruption, baseline measured", corruption_means)
    yield Row("mce", "mCE, baseline measured", mce)
    yield Row("relative-mce", "relative mCE, baseline measured", relative_mce)
    yield Row("pm-k", "pm-k accuracy", pm_k)
    yield Row("pm-k-drop", "pm-k drop", pm_k_drop)
    yield Row("flip-probability", "flip probability", left_out_mean(flips, (0.0, 1.0)))
    yield Row("top5-distance", "top-5 distance", left_out_mean(top5_distances))
    yield Row("flip-rate", "flip rate, baseline measured", flip_rate)
    for axes in ("linear", "probit"):
        yield Row(f"robustness-{axes}", f"effective robustness, {axes} axes", robustness(axes))
    yield Row("shift-robustness", "effective robustness to a natural shift", shift_robustness)
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
    yield Row("temperature", "temperature", temperature, ("alone",))
    for name, told, few in (("", "", False), ("-few", ", a fifth as many ID", True)):
        lines = partial(Row, draw=partial(distances, few=few), designs=("alone",))
        yield lines(f"distance-slope{name}", f"slope of AUROC over distance{told}")
        yield lines(f"distance-intercept{name}", f"AUROC at distance 0{told}")
        yield lines(f"intercept-difference{name}", f"difference of AUROCs at distance 0{told}")
    for networks in (2, 5):
        title = f"mean AUROC of {networks} random networks, images as given"
        yield Row(f"random-networks-{networks}", title, random_networks(networks), ("alone",))
    yield Row("mean-share", "mean confidence", mean_of(confidences, (0.0, 1.0)))
    yield Row("overconfidence", "overconfidence", calibration(metrics.overconfidence_interval, "mean", 0.8, 0.3))
    yield Row("nll", "negative log-likelihood", mean_of(loss))
    yield Row("brier", "Brier score", mean_of(brier))
    yield Row("map50", "mAP50", mean_precision, cases=(26, 100))
    yield Row("class-precision", "AP50 of one class", boxes, cases=(26, 100))
    yield Row("mpc", "mPC, mAP50 in 2 cells", boxes, cases=(26, 100))
    yield Row("rpc", "rPC", boxes, cases=(26, 100))
    yield Row("pm-k-precision", "pm-k mAP50", frames, cases=(26,))
    yield Row("precision-drop", "pm-k drop of mAP50", frames, cases=(26,))


STANDS_FOR = {
    "accuracy-80 accuracy-97": """
        top1_accuracy top5_accuracy class_accuracy group_accuracy confusion_rate predicted_share agreement shared_errors
        id_accuracy imagenet_accuracy imagenet_a_accuracy imagenet_a_top5_accuracy ordinary_accuracy ordinary_top5_accuracy
        clean_error corrupted_error degradation egregious_share pointing_game_miss_rate salient_region_miss_rate
        object_accuracy scale_factor_accuracy scaled_crop_accuracy scaled_crop_total
        input_size_accuracy input_size_scale_accuracy input_size_curve reliability
        kept_share rejection_share failure_mode_share gold_accuracy
        human_accuracy human_test_accuracy subset_share subset_accuracy human_subset_accuracy
        abstained_share abstained_by_window
        accuracy_as_labelled accuracy_as_corrected confirmed_label_errors slice_accuracy""",
    "worst-group": "worst_group_accuracy",
    "slice-gap": "slice_gap",
    "estimate": "estimated_accuracy",
    "estimate-slice": "estimated_group_accuracy",
    "surest-half": "response_rate_accuracy",
    "paired": "accuracy_difference object_difference input_size_difference corruption_loss accuracy_by_correction",
    "gain-2 gain-3 gain-5 gain-together": "recipe_gain recipe_shift_gain recipe_clean_change",
    "auroc-0.7 auroc-0.9 auroc-0.97 auroc-bootstrap": "auroc auroc_correct_id shift_auroc",
    "auroc-few-0.9 auroc-few-0.95 auroc-few-0.97 auroc-few-0.99": "auroc auroc_misclassified_id auroc_correct_wrong",
    "auroc-copies": "shift_auroc",
    "auroc-difference auroc-together": "auroc_difference",
    "aupr aupr-copies": "aupr_out aupr_in imagenet_o_aupr",
    "fpr fpr-few fpr-copies": "fpr_at_tpr fpr_in_at_tpr",
    "discarded": "correct_discarded",
    "alarms-picked alarms-other": "operating_fpr",
    "found-cheapest found-other": "operating_tpr",
    "aurra": "aurra imagenet_a_aurra",
    "aurc": "aurc",
    "e-aurc": "e_aurc",
    "augrc": "augrc",
    "coverage-at-risk": "coverage_at_risk",
    "rank-shift": "rank_shift",
    "corrupted-error": """
        corruption_mean_error group_error mean_corrupted_error mean_c_bar_error unseen_group_error
        unseen_mean_corrupted_error unseen_mean_c_bar_error""",
    "error-added": "corruption_mean_loss relative_corrupted_error unseen_relative_corrupted_error",
    "one-corruption": "corruption_error",
    "one-relative": "relative_corruption_error",
    "mce": "mean_corruption_error unseen_mean_corruption_error",
    "relative-mce": "relative_mean_corruption_error unseen_relative_mean_corruption_error",
    "pm-k": """
        anchor_accuracy pm_k_accuracy pm_k_class_accuracy pm_k_subset_accuracy pm_k_review_accuracy hardest_frames_accuracy
        pm_k_curve conditional_robustness offset_errors""",
    "pm-k-drop": "offset_loss pm_k_drop pm_k_class_drop pm_k_subset_drop pm_k_review_drop",
    "flip-probability": "flip_probability mean_flip_probability unseen_mean_flip_probability",
    "top5-distance": """
        top5_distance mean_top5_distance zipf_distance mean_zipf_distance
        unseen_mean_top5_distance unseen_mean_zipf_distance""",
    "flip-rate": """
        flip_rate mean_flip_rate unseen_mean_flip_rate
        top5_distance_ratio mean_top5_distance_ratio unseen_mean_top5_distance_ratio""",
    "robustness-linear robustness-probit": "effective_robustness",
    "shift-robustness": "shift_effective_robustness",
    "rms-calibrated rms-off": "rms_calibration_error imagenet_a_calibration_error",
    "debiased-calibrated debiased-off": "debiased_calibration_error",
    "ece-calibrated ece-off": "expected_calibration_error",
    "temperature": "temperature",
    "distance-slope distance-slope-few": "distance_slope",
    "distance-intercept distance-intercept-few": "distance_intercept",
    "intercept-difference intercept-difference-few": "distance_intercept_difference",
    "random-networks-2 random-networks-5": "mean_random_network_auroc mean_random_network_failure_auroc",
    "overconfidence": "overconfidence corrupted_overconfidence",
    "mean-share": "mean_confidence saliency_on_object class_object_share",
    "nll": "negative_log_likelihood mistake_distance",
    "brier": "brier_score",
    "map50": "mean_average_precision size_average_precision anchor_average_precision clean_average_precision",
    "class-precision": "class_average_precision localization_precision corrupted_average_precision",
    "mpc": """
        corruption_mean_precision mean_performance_under_corruption unseen_mean_performance_under_corruption""",
    "rpc": "relative_performance_under_corruption unseen_relative_performance_under_corruption",
    "pm-k-precision": "pm_k_average_precision pm_k_subset_precision pm_k_precision_curve",
    "precision-drop": "pm_k_precision_drop",
}
"""Measurements, and curves with a band, whose interval each row is the simulation of: by one method, of the like shape."""


def simulate(together: Sequence[Row], cases: int, design: str, simulations: int) -> list[Tally]:
    """Rows of the same samples, drawn once for all of them."""
    generator = np.random.default_rng([cases, ALL.index(design), sum(map(ord, together[0].name))])
    counts = np.zeros((len(together), 3), int)  # below, above, none
    widths = np.zeros(len(together))
    for _ in range(simulations):
        found = together[0].draw(Sample.of(generator, cases, design))
        for place, row in enumerate(together):
            interval, truth = found[row.name] if isinstance(found, Mapping) else found
            if interval is None or not np.isfinite(interval).all():
                counts[place, 2] += 1
                continue
            low, high = interval
            counts[place, :2] += truth < low - 1e-12, truth > high + 1e-12
            widths[place] += high - low
    tallies = []
    for (below, above, none), width in zip(counts.tolist(), widths.tolist(), strict=True):
        told = simulations - none
        shares = [count / max(told, 1) for count in (told - below - above, below, above)]
        tallies.append(Tally(simulations, shares[0], shares[1], shares[2], width / max(told, 1), none / simulations))
    return tallies


def table(cells: dict[str, dict[str, Any]]) -> str:
    """The figures as Markdown, a line for each number and design; a cell is coverage, misses below and above, width."""
    titles = {row.name: row for row in rows()}
    lines = ["| metric | images | 26 clusters | 100 | 1000 |", "|---|---|---|---|---|"]
    for name, row in titles.items():
        for design in row.designs:
            found = [cells.get(f"{name}/{cases}/{design}") for cases in CLUSTERS]
            if any(found):
                lines.append(f"| {row.title} | {design} | {' | '.join(map(_cell, found))} |")
    return "\n".join(lines)


def numbers_told() -> str:
    """Which rows stand for which numbers, as Markdown."""
    titles = {row.name: row.title for row in rows()}
    lines = ["| rows | metrics of a report |", "|---|---|"]
    for names, numbers in STANDS_FOR.items():
        told = ", ".join(f"`{number}`" for number in numbers.split())
        lines.append(f"| {'; '.join(titles[name] for name in names.split())} | {told} |")
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
        simulated = {f"{row.name}/{cases}/{design}" for row in rows() for cases, design in row.cells}
        together = {key: cell for cells in files for key, cell in sorted(cells.items()) if key in simulated}
        if options.json:
            options.json.write_text(json.dumps({"coverage": together}, indent=1) + "\n")
        if options.docs:
            page = options.docs.read_text()
            before, after = page.split(BEGINS)[0], page.split(ENDS)[1]
            options.docs.write_text(f"{before}{BEGINS}\n{table(together)}\n\n{numbers_told()}\n{ENDS}{after}")
        print(table(together))
        return
    known = json.loads(options.json.read_text())["coverage"] if options.json and options.json.exists() else {}
    wanted, counts = tuple(options.only.split(",")), {int(count) for count in options.clusters.split(",")}
    for _, several in groupby(rows(), key=lambda row: row.draw):
        family = list(several)
        cells = {cell: None for row in family for cell in row.cells if cell[0] in counts}
        for cases, design in cells if any(row.name.startswith(wanted) for row in family) else ():
            if options.quick and cases > 100:
                continue
            started = time.process_time()
            rows_here = [row for row in family if (cases, design) in row.cells]
            tallies = simulate(rows_here, cases, design, 200 if options.quick else options.simulations)
            for row, tally in zip(rows_here, tallies, strict=True):
                key = f"{row.name}/{cases}/{design}"
                known[key] = tally._asdict()
                print(f"{key:32} {_cell(known[key])}   {time.process_time() - started:.0f} s", flush=True)
            if options.json:
                options.json.write_text(json.dumps({"coverage": known}, indent=1) + "\n")
    print(table(known))


if __name__ == "__main__":
    main()
