"""Corruption errors of all images from some of their forward passes: which to run next, and what those that were run say.

Every number is the full study's, made of a table in which cells that were not run are estimated image by image; so its
interval, too, is about photos like these, and takes in that some cells were not run. What the draw alone leaves open for
exactly these photos stands beside it as the sampling error.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import IMAGENET_C, corruption_groups, corruption_of
from shiftproof.errors import BadInput, MissingRuns, listed
from shiftproof.metrics import is_correct
from shiftproof.metrics.budget import Estimate, Layout, right_class_leads
from shiftproof.metrics.intervals import LEAST_CLUSTERS, normal_quantile
from shiftproof.metrics.resampling import RESAMPLES
from shiftproof.metrics.table import metric_info
from shiftproof.studies import evidence
from shiftproof.studies.corruption.budget import Benchmark, Progress, next_pairs, stored_pairs
from shiftproof.studies.corruption.cells import (
    Baseline,
    Cells,
    Part,
    Photos,
    alexnet_errors,
    contact_sheet,
    right_classes,
    why_unnormalised,
)
from shiftproof.studies.corruption.numbers import (
    LOSSES,
    OF_LOSSES,
    Number,
    clean_told,
    compared,
    measured_means,
    seen_told,
    slopes,
    why_no_ratios,
)
from shiftproof.studies.corruption.study import NEEDS_LABELS, CorruptionStudy, clean_runs, seen_in_training
from shiftproof.types import (
    EXAMPLES,
    About,
    BaselineRef,
    Clusters,
    Curve,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    LoadPredictions,
    Measurement,
    ModelRef,
    NoInterval,
    Note,
    Predictions,
    Run,
)

Numbers = NDArray[np.floating]

LIKE_THESE = f"BCa bootstrap, {RESAMPLES} draws, each in all its cells together, those that were not run estimated,"
BOTH_SAMPLED = "sampled too and included; --half-width refers to the model's own passes"
LIKE_THESE_CELLS = "Clopper-Pearson at the effective sample size (Korn-Graubard)"


@dataclass(frozen=True)
class BudgetedCorruptionStudy(CorruptionStudy):
    """The corruption study within a budget: its numbers, with intervals for photos like these of which some cells were run.

    `budget` counts forward passes, those of the unchanged images too; `precision` is the sampling error of the mean that is
    wanted, as a share (0.01 is a point): half the width of the interval for exactly these photos, which more passes narrow.
    It is of the model's own passes: what a baseline that was sampled too leaves open comes on top, and is narrowed by passes
    of the baseline.
    Give one, or both: whichever is reached first ends it.
    """

    budget: int | None = None
    precision: float | None = None

    partial: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.budget is None and self.precision is None:
            raise BadInput("give a budget, a precision or both")
        extra = [name for name in self.corruptions if name not in IMAGENET_C]
        if extra and len(extra) < len(self.corruptions):
            raise BadInput(
                "a budget is for the mean over the 15 of ImageNet-C; leave out what is not among them: "
                f"{listed(extra, most=3)}"
            )

    def first_runs(self, model: ModelRef) -> list[Run]:
        """What is run in full before anything is chosen: the unchanged images."""
        return self._runs_of(model)[:1]

    def wanted(self, model: ModelRef, load: LoadPredictions) -> Mapping[Run, tuple[str, ...]]:
        """Images to run next by the cell they are wanted in; none when the budget is spent or the precision reached."""
        sampled = self._sampled(model, load)
        if isinstance(sampled, str):
            return {}
        ids = np.array(sampled.progress.benchmark.ids, dtype=object)
        columns = zip(self._runs_of(model)[1:], sampled.progress.missing.T, strict=True)
        return {run: tuple(ids[missing]) for run, missing in columns if missing.any()}

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        yield from self._cautions()
        for run in clean_runs(self):
            sampled = self._sampled(run.model, load)
            reasons = [sampled] if isinstance(sampled, str) else sampled.why_no_ratios(run.model.name)
            yield from evidence.skipped(run.dataset.name, *reasons)
            if isinstance(sampled, str):
                continue
            if not sampled.progress.done:
                raise MissingRuns(
                    f"{run.model.name} on {run.dataset.name}: {int(sampled.progress.missing.sum())} forward passes of the "
                    "budget were not made yet; make them with: shiftproof run, with the same options"
                )
            yield from sampled.findings(run.about(), seen_in_training(load, run))
            photos = Photos(run.dataset, {}, run.dataset, self._place)
            yield contact_sheet(sampled.cells, run.about(), photos, judged=False)
            yield from self._examples(run, load)

    def _examples(self, run: Run, load: LoadPredictions) -> Iterator[Gallery]:
        """Of each corruption a photo that is correct when clean and misclassified where it was run, as severely as any."""
        known, names = self._known(run.model, load), right_classes(load(self._runs_of(run.model)[0]))
        lost = (known.table <= 0) & (known.clean_leads > 0)[:, None]  # nan, not run, is neither
        for place, name in enumerate(self.corruptions):
            cells = lost[:, place * len(self.severities) : (place + 1) * len(self.severities)]
            steps = np.flatnonzero(cells.any(axis=0))
            if len(steps):
                severity, image = self.severities[steps[-1]], known.ids[int(np.argmax(cells[:, steps[-1]]))]
                caption, condition = f"{names[image]}, misclassified at severity {severity}", self.condition(name, severity)
                item = GalleryItem(image, caption, condition, correct=False, corruption=name, severity=severity)
                about = {**run.about(), "corruption": name}
                yield Gallery(EXAMPLES, about, run.dataset, "Misclassified under corruption", (item,))

    def _sampled(self, model: ModelRef, load: LoadPredictions) -> _Sampled | str:
        """What is known of a model by now, or why nothing can be."""
        clean, *runs = self._runs_of(model)
        predictions = load(clean)
        reason = evidence.why_unread(predictions) or evidence.why_unlabelled(predictions, NEEDS_LABELS)
        if reason:
            return reason
        known = self._known(model, load)
        baseline, sampled, reasons = (None, None, ()) if model == self.given_baseline else self._divisors(load)
        same = sampled is not None and set(sampled.benchmark.ids) == set(known.ids)
        benchmark = dataclasses.replace(
            known.benchmark(self._layout, self._weights(baseline), self.seed), before=sampled if same else None
        )
        progress = next_pairs(benchmark, known.table, budget=self.budget, precision=self.precision)
        told = {**runs[0].convention(), **predictions.convention, **self._edition_told(), **self._frost_told()}
        unchanged_told = {**clean.convention(), **predictions.convention}
        return _Sampled(
            progress,
            tuple(self.corruptions),
            tuple(self.severities),
            told,
            unchanged_told,
            BaselineRef.of(model) if model == self.given_baseline else baseline,
            sampled,
            tuple(reasons),
            known.clusters,
        )

    def _known(self, model: ModelRef, load: LoadPredictions) -> _Known:
        clean, *runs = self._runs_of(model)
        predictions = load(clean)
        ids, clean_leads = _leads(predictions)
        row_of = {image: row for row, image in enumerate(ids)}
        table = np.full((len(ids), len(runs)), np.nan)
        for column, run in enumerate(runs):
            found, leads = _leads(load(run))
            known = np.array([image in row_of for image in found], dtype=bool)
            table[[row_of[image] for image in found if image in row_of], column] = leads[known]
        labelled = evidence.labelled_only(predictions)
        classes = labelled.labels[:, 0] if ids else np.empty(0, int)
        clean_peaks = peaks_of(labelled.top5.scores) if ids else np.empty(0)
        return _Known(ids, clean_leads, clean_peaks, classes, table, labelled.clusters)

    @property
    def _layout(self) -> Layout:
        groups = list(corruption_groups())
        kinds = [groups.index(corruption_of(name).group) for name in self.corruptions]
        return Layout.of_grid(np.array(kinds), len(self.severities))

    def _weights(self, baseline: Baseline | None) -> Numbers:
        """What each cell counts for in the number that the budget is spent on: mCE, or the mean error without a baseline."""
        divisors = np.ones(len(self.corruptions))
        if baseline is not None and baseline.cells is not None:
            divisors = np.maximum(baseline.cells.wrong.mean(axis=(0, 2)), 0.02)
        elif baseline is not None:
            divisors = np.asarray(baseline.errors)
        return np.repeat(1 / divisors, len(self.severities)) / (len(self.corruptions) * len(self.severities))

    def _divisors(self, load: LoadPredictions) -> tuple[Baseline | None, Progress | None, tuple[str, ...]]:
        """What errors are divided by, how far it came where it was sampled too, and what cannot be divided and why."""
        given = self.given_baseline
        if not isinstance(given, ModelRef):
            measured_on = self._why_not_published()
            if measured_on and given is None:
                return None, None, (why_unnormalised(measured_on),)
            found = alexnet_errors(self.corruptions, self.severities, measured_on=measured_on)
            whole = np.isfinite(np.asarray(found.errors)).all()
            return found if whole else None, None, found.reasons
        found_cells = self.model_cells(given, load)
        clean = Part.of(load(self._runs_of(given)[0]))
        if not isinstance(found_cells, str) and len(found_cells.cells) == len(clean.ids):
            return Baseline(BaselineRef.of(given), cells=found_cells.cells), None, ()
        known = self._known(given, load)
        designs = [known.benchmark(self._layout, weights, self.seed) for weights in self._weights_without_baseline()]
        drawn = [progress for design in designs if (progress := stored_pairs(design, known.table))]
        if not drawn:
            stored = int((~np.isnan(known.table)).sum())
            return (
                None,
                None,
                (
                    f"the baseline {given.name} has {stored:,} of {known.table.size:,} predictions, and none of the sampled "
                    f"cells with seed {self.seed}; run {given.name} with the same --budget or --half-width, or in full",
                ),
            )
        best = max(drawn, key=lambda progress: progress.pairs)
        cells = _as_cells(best, self.corruptions, self.severities, known.clusters)
        return Baseline(BaselineRef.of(given), cells=cells), best, ()

    def _weights_without_baseline(self) -> list[Numbers]:
        """Those that a baseline's own budget may have been spent by: of its mean error, or of its mCE against AlexNet's."""
        alexnet = alexnet_errors(self.corruptions, self.severities)
        published = [self._weights(alexnet)] if np.isfinite(np.asarray(alexnet.errors)).all() else []
        return [self._weights(None), *published]


@dataclass(frozen=True)
class _Known:
    """What is stored of one model."""

    ids: Sequence[str]
    clean_leads: Numbers  # (images,)
    clean_peaks: Numbers  # (images,)
    classes: NDArray[np.integer]  # (images,)
    table: Numbers  # leads, (images, cells); nan where a pair was not run
    clusters: Clusters

    def benchmark(self, layout: Layout, weights: Numbers, seed: int) -> Benchmark:
        return Benchmark(self.ids, layout, weights, self.clean_leads, self.clean_peaks, self.classes, seed=seed)


def _as_cells(
    progress: Progress, corruptions: Sequence[str], severities: Sequence[int], clusters: Clusters | None = None
) -> Cells:
    """Every image in every cell, in the order of the ids, as the full study has them."""
    ids = tuple(progress.benchmark.ids)
    table = progress.cells.by_image.reshape(len(ids), len(corruptions), len(severities))
    clean = np.asarray(progress.benchmark.clean_leads) < 0
    return Cells(ids, tuple(corruptions), tuple(severities), table, clean, clusters).take(sorted(ids))


def _leads(predictions: Predictions) -> tuple[Sequence[str], Numbers]:
    """The images that have a label, and the margin of the correct class; below 0 where misclassified."""
    labelled = evidence.labelled_only(predictions)
    if not len(labelled):
        return (), np.empty(0)
    leads = right_class_leads(labelled.labels, labelled.top5.classes, labelled.top5.scores)
    # scores without end have no distance; right or wrong they are all the same
    right = is_correct(labelled.labels, labelled.top5.classes)
    return labelled.ids, np.where(np.isfinite(leads), leads, np.where(right, 1.0, -1.0))


def peaks_of(scores: Numbers) -> Numbers:
    """First of the best scores minus the last one kept, (images,); 0 where scores are without end."""
    with np.errstate(invalid="ignore"):
        peaks = np.asarray(scores[:, 0] - scores[:, -1], dtype=float)
    return np.where(np.isfinite(peaks), peaks, 0.0)


@dataclass(frozen=True)
class _Sampled:
    """What is known of one model, and the numbers that follow from it."""

    progress: Progress
    corruptions: tuple[str, ...]
    severities: tuple[int, ...]
    convention: Mapping[str, str]
    clean_convention: Mapping[str, str]
    divisor: Baseline | BaselineRef | None  # a reference: this model is the baseline itself
    sampled_baseline: Progress | None
    reasons: tuple[str, ...]
    clusters: Clusters  # of the images, in the order of the benchmark

    @cached_property
    def cells(self) -> Cells:
        return _as_cells(self.progress, self.corruptions, self.severities, self.clusters)

    @property
    def baseline(self) -> Baseline | None:
        return Baseline(self.divisor, cells=self.cells) if isinstance(self.divisor, BaselineRef) else self.divisor

    def why_no_ratios(self, model: str) -> Iterator[str]:
        yield from self.reasons
        if self.baseline is not None and self.progress.done:
            yield from why_no_ratios(self.cells, dataclasses.replace(self.baseline, reasons=()), model)

    def findings(self, about: About, seen: Collection[str] = ()) -> Iterator[Finding]:
        """Every number that the full study gives, and its curves."""
        cells, baseline = (self.cells, None) if self.baseline is None else compared(self.cells, self.baseline)
        if not len(cells):
            return
        left = len(self.cells) - len(cells)
        beside = {"without the baseline's prediction": f"{left} of {len(self.cells)}, left out"} if left else {}
        clean_wrong = np.asarray(cells.clean_wrong, bool)
        clean = evidence.Subject(about, {**self.clean_convention, **beside}, cells.clusters)
        yield clean.share("clean_error", clean_wrong)
        for (corruption, severity), like_these, these, run in zip(
            self._names, self._each_like_these, self.progress.cells.each(), self._passes_by_cell, strict=True
        ):
            cell = {**about, "corruption": corruption, "severity": severity}
            within = self._within(self._bounds(like_these, these))
            told = {**self.convention, **self._passes, **seen_told([corruption], seen)}
            cases = min(run, self.clusters.count)
            yield evidence.measurement("corrupted_error", like_these.value, cell, run, told, within, cases)
            yield self._sampling_error("corrupted_error", these.half_width, cell, run)
        for measured in measured_means(cells, baseline, seen):
            number, value, interval = measured.number, measured.value, measured.interval
            own, theirs = slopes(number, cells, baseline)
            shift, margin = self._of_these_photos(own, theirs)
            of = {**about, **number.about}
            told = {**self.convention, **number.convention, **beside, **self._passes}
            told |= clean_told(self.convention, self.clean_convention) if number.metric in OF_LOSSES else {}
            bounds = None
            if interval is not None and not self._all_alike(own, with_clean=number.metric in LOSSES):
                bounds = _within(number, value + shift, margin, interval)
            within = measured._replace(interval=bounds).within(LIKE_THESE, cells.clusters)
            count = cells.clusters.count
            found = evidence.measurement(number.metric, value + shift, of, len(cells), told, within, count)
            yield dataclasses.replace(found, baseline=number.baseline)
            yield self._sampling_error(number.metric, margin, of, len(cells), both=bool(theirs.any()))
        yield from self._curves(about)

    def _all_alike(self, own: Numbers, *, with_clean: bool) -> bool:
        """Whether every prediction behind a number is correct, or none: then, as of a full run, nothing can be told."""
        run = np.concatenate([self.progress.leads[one.images, one.cells] for one in self.progress.rounds]) < 0
        counts = np.concatenate([own[one.cells] != 0 for one in self.progress.rounds])
        answers = [run[counts], *([np.asarray(self.cells.clean_wrong)] if with_clean else [])]
        return all(found.all() or not found.any() for found in answers)

    def _of_these_photos(self, own: Numbers, theirs: Numbers) -> tuple[float, float]:
        """How far results that are known keep the value from its estimate, and the half-width of the sampling error."""
        sampled = self.progress.cells
        found = sampled.weighted(own)
        shift = found.value - float(sampled.values @ own)
        if isinstance(self.divisor, BaselineRef) or self.sampled_baseline is None or not theirs.any():
            return shift, 0.0 if isinstance(self.divisor, BaselineRef) and theirs.any() else found.half_width
        variance = sampled.variance_less(own, self.sampled_baseline.cells, -theirs)
        return shift, normal_quantile(0.975) * float(np.sqrt(variance))

    @cached_property
    def _each_like_these(self) -> list[Estimate]:
        return self.progress.cells.each_like_these(clusters=self.clusters.numbers)

    def _bounds(self, like_these: Estimate, these: Estimate) -> tuple[float, float] | None:
        """The interval of a cell, never narrower than that of exactly these photos; none of too few cases."""
        few = self.clusters.numbers is not None and self.clusters.count < LEAST_CLUSTERS
        return None if few else (min(like_these.low, these.low), max(like_these.high, these.high))

    def _within(self, ends: tuple[float, float] | None) -> Interval | NoInterval | None:
        return evidence.interval_by(LIKE_THESE_CELLS, self.clusters, ends)

    @property
    def _names(self) -> list[tuple[str, int]]:
        return [(name, severity) for name in self.corruptions for severity in self.severities]

    @property
    def _passes_by_cell(self) -> list[int]:
        drawn = np.concatenate([one.cells for one in self.progress.rounds])
        return np.bincount(drawn, minlength=len(self._names)).tolist()  # type: ignore[no-any-return]

    def _sampling_error(
        self, metric: str, half_width: float, about: About, images: int, *, both: bool = False
    ) -> Measurement:
        told = {**self._passes, "half-width": "of the 95 % CI for exactly these photos"}
        if both and self.sampled_baseline is not None:
            told["baseline"] = BOTH_SAMPLED
        return Measurement("sampling_error", half_width, {**about, "number": metric}, images, told)

    @property
    def _passes(self) -> dict[str, str]:
        everything = self.progress.benchmark.pairs + self.progress.benchmark.clean_passes
        return {"passes": f"{self.progress.passes:,} of {everything:,}"}

    def _curves(self, about: About) -> Iterator[Curve]:
        subject = evidence.Subject(about, {}, self.cells.clusters)
        clean = subject.share("clean_error", np.asarray(self.cells.clean_wrong, bool))
        for place, corruption in enumerate(self.corruptions):
            cells = self._each_like_these[place * len(self.severities) : (place + 1) * len(self.severities)]
            these = self.progress.cells.each()[place * len(self.severities) : (place + 1) * len(self.severities)]
            bounds = [clean.ends, *map(self._bounds, cells, these)]
            known = [one for one in bounds if one is not None]
            banded, within = len(known) == len(bounds), self._within(bounds[-1])
            yield Curve(
                "degradation",
                {**about, "corruption": corruption},
                "severity",
                "error",
                x=tuple(float(severity) for severity in (0, *self.severities)),
                y=(clean.value, *(one.value for one in cells)),
                images=len(self.cells),
                convention={
                    **self.convention,
                    **self._passes,
                    **clean_told(self.convention, self.clean_convention),
                },
                low=tuple(low for low, _ in known) if banded else None,
                high=tuple(high for _, high in known) if banded else None,
                method=within.method if isinstance(within, Interval) else "",
                no_interval=within if isinstance(within, NoInterval) else None,
            )


def _within(number: Number, value: float, margin: float, interval: tuple[float, float]) -> tuple[float, float]:
    """An interval no narrower than the sampling error and, of a share, between 0 and 1."""
    low, high = min(interval[0], value - margin), max(interval[1], value + margin)
    is_share = metric_info(number.metric).unit == "share" and number.baseline is None
    return (max(low, 0.0), min(high, 1.0)) if is_share else (low, high)
