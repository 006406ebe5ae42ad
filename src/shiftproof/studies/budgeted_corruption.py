"""Corruption errors of the full set from some of its forward passes: which to run next, and what those that were run say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.corruptions import GROUPS, IMAGENET_C
from shiftproof.errors import BadInput, MissingRuns
from shiftproof.metrics import is_correct
from shiftproof.metrics.leads import right_class_leads
from shiftproof.metrics.likely_wrong import Layout
from shiftproof.metrics.sampled_cells import Estimate
from shiftproof.studies import evidence
from shiftproof.studies.budget import Benchmark, Progress, next_pairs
from shiftproof.studies.cell_study import alexnet_told, why_unnormalised
from shiftproof.studies.cells import Baseline, Cells, Part
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.corruption import CorruptionStudy
from shiftproof.studies.corruption_galleries import Photos, contact_sheet
from shiftproof.studies.corruption_numbers import OF_LOSSES, averaged_corruptions, clean_told
from shiftproof.studies.published_baselines import alexnet_errors
from shiftproof.types import About, Curve, Finding, Measurement, ModelRef, Predictions, Run

Load = Callable[[Run], Predictions]
Numbers = NDArray[np.floating]


@dataclass(frozen=True)
class BudgetedCorruptionStudy(CorruptionStudy):
    """The corruption study within a budget: every number is the full set's, with the interval of not having run it all.

    `budget` counts forward passes, those of the unchanged images too; `precision` is the half-width of the interval of the
    mean that is wanted, as a share (0.01 is a point). Give one, or both: whichever is reached first ends it.
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
                f"a budget is for the mean over the 15, which {', '.join(extra)} does not belong to; leave it out"
            )

    def first_runs(self, model: ModelRef) -> list[Run]:
        """What is run in full before anything is chosen: the unchanged images."""
        return self._runs_of(model)[:1]

    def wanted(self, model: ModelRef, load: Load) -> Mapping[Run, tuple[str, ...]]:
        """Images to run next by the cell they are wanted in; none when the budget is spent or the precision reached."""
        sampled = self._sampled(model, load)
        if isinstance(sampled, str):
            return {}
        ids = np.array(sampled.cells.ids, dtype=object)
        columns = zip(self._runs_of(model)[1:], sampled.progress.missing.T, strict=True)
        return {run: tuple(ids[missing]) for run, missing in columns if missing.any()}

    def measure(self, load: Load) -> Iterator[Finding]:
        for run in CleanStudy.runs(self):
            sampled = self._sampled(run.model, load)
            if isinstance(sampled, str):
                continue
            if not sampled.progress.done:
                raise MissingRuns(
                    f"{run.model.name} on {run.image_set.name}: {int(sampled.progress.missing.sum())} forward passes of the "
                    "budget were not made yet; make them with: shiftproof run, with the same options"
                )
            yield from sampled.findings(run.about())
            photos = Photos(run.image_set, {}, run.image_set, self._place)
            yield contact_sheet(sampled.cells, run.about(), photos, judged=False)

    def skipped(self, load: Load) -> Iterator[str]:
        for run in CleanStudy.runs(self):
            sampled = self._sampled(run.model, load)
            reasons = [sampled] if isinstance(sampled, str) else sampled.reasons
            yield from (f"{run.image_set.name}: {reason}" for reason in reasons)

    def _sampled(self, model: ModelRef, load: Load) -> _Sampled | str:
        """What is known of a model by now, or why nothing can be."""
        clean, *runs = self._runs_of(model)
        predictions = load(clean)
        reason = evidence.nothing_read(clean, predictions) or evidence.nothing_labelled(
            clean, predictions, "the error under corruption"
        )
        if reason:
            return reason.removeprefix(f"{clean.image_set.name}: ")
        ids, clean_leads = _leads(predictions)
        row_of = {image: row for row, image in enumerate(ids)}
        table = np.full((len(ids), len(runs)), np.nan)
        for column, run in enumerate(runs):
            found, leads = _leads(load(run))
            known = np.array([image in row_of for image in found], dtype=bool)
            table[[row_of[image] for image in found if image in row_of], column] = leads[known]
        baseline, reasons = self._divisors(load)
        benchmark = Benchmark(
            ids,
            self._layout,
            self._weights(baseline),
            clean_leads=clean_leads,
            classes=evidence.labelled_only(predictions).labels[:, 0],
            seed=self.seed,
        )
        shape = (len(ids), len(self.corruptions), len(self.severities))
        cells = Cells(ids, tuple(self.corruptions), tuple(self.severities), np.zeros(shape, bool), clean_leads < 0)
        told = {**runs[0].convention(), **predictions.convention, **self._edition_told(), **self._frost_told()}
        progress = next_pairs(benchmark, table, budget=self.budget, precision=self.precision)
        return _Sampled(progress, cells, told, {**clean.convention(), **predictions.convention}, baseline, tuple(reasons))

    @property
    def _layout(self) -> Layout:
        kinds = [next(place for place, group in enumerate(GROUPS.values()) if name in group) for name in self.corruptions]
        return Layout.of_grid(np.array(kinds), len(self.severities))

    def _weights(self, baseline: Baseline | None) -> Numbers:
        """What each cell counts for in the number that the budget is spent on: mCE, or the mean error without a baseline."""
        divisors = np.ones(len(self.corruptions)) if baseline is None else np.asarray(baseline.errors)
        return np.repeat(1 / divisors, len(self.severities)) / (len(self.corruptions) * len(self.severities))

    def _divisors(self, load: Load) -> tuple[Baseline | None, tuple[str, ...]]:
        """The baseline's errors of the full set, which are known, or why there are none."""
        given = self.given_baseline
        if not isinstance(given, ModelRef):
            foreign = self._why_not_published()
            if foreign and given is None:
                return None, (why_unnormalised(foreign),)
            found = alexnet_errors(self.corruptions, self.severities, told=alexnet_told(foreign))
            return (found, found.reasons) if np.isfinite(np.asarray(found.errors)).all() else (None, found.reasons)
        answers = self.answers(given, load)
        clean = Part.of(load(self._runs_of(given)[0]))
        if isinstance(answers, str) or len(answers.cells) < len(clean.ids):
            return None, (f"the baseline {given.name} was not run in full; run it once without a budget",)
        errors = answers.cells.wrong.mean(axis=(0, 2))
        if not errors.all():
            return None, (f"the baseline {given.name} makes no mistakes under some corruption: nothing is divided by it",)
        return Baseline(given.name, errors=errors, clean_error=float(clean.wrong.mean())), ()


def _leads(predictions: Predictions) -> tuple[tuple[str, ...], Numbers]:
    """The images that have a label, and how clearly each answer is right; below 0 where it is wrong."""
    labelled = evidence.labelled_only(predictions)
    if not len(labelled):
        return (), np.empty(0)
    leads = right_class_leads(labelled.labels, labelled.top5.classes, labelled.top5.scores)
    # scores without end have no distance; right or wrong they are all the same
    right = is_correct(labelled.labels, labelled.top5.classes)
    return labelled.ids, np.where(np.isfinite(leads), leads, np.where(right, 1.0, -1.0))


@dataclass(frozen=True)
class _Sampled:
    """What is known of one model, and the numbers of the full set that follow from it."""

    progress: Progress
    cells: Cells  # which images there are, and whether they are right unchanged; of the cells only their names
    convention: Mapping[str, str]
    clean_convention: Mapping[str, str]
    baseline: Baseline | None
    reasons: tuple[str, ...]

    def findings(self, about: About) -> Iterator[Finding]:
        """Every number that the full study gives, and its curves."""
        clean_wrong = np.asarray(self.cells.clean_wrong)
        yield evidence.share("clean_error", int(clean_wrong.sum()), len(self.cells), about, self.clean_convention)
        cells = self._each_cell
        runs = self._passes_by_cell
        for (corruption, severity), found, run in zip(self._names, cells, runs, strict=True):
            cell = {**about, "corruption": corruption, "severity": severity}
            yield self._measurement("corrupted_error", found, cell, {}, images=run)
        severities = {"severities": ", ".join(map(str, self.cells.severities))}
        averaged = {**severities, "corruptions": averaged_corruptions(self.cells.corruptions)}
        everything = range(len(self.cells.corruptions))
        for place, name in enumerate(self.cells.corruptions):
            yield self._measurement("corruption_mean_error", self._mean([place]), {**about, "corruption": name}, severities)
        for group, members in GROUPS.items():
            places = [place for place, name in enumerate(self.cells.corruptions) if name in members]
            if places:
                told = {**severities, "corruptions": ", ".join(self.cells.corruptions[place] for place in places)}
                yield self._measurement("group_error", self._mean(places), {**about, "group": group}, told)
        yield self._measurement("mean_corrupted_error", self._mean(everything), about, averaged)
        relative = self._mean(everything, less=float(clean_wrong.mean()))
        yield self._measurement("relative_corrupted_error", relative, about, averaged)
        if self.baseline is not None:
            yield from self._ratios(self.baseline, about, severities, averaged)
        yield from self._curves(cells, about)

    def _ratios(
        self, baseline: Baseline, about: About, severities: Mapping[str, str], averaged: Mapping[str, str]
    ) -> Iterator[Measurement]:
        clean = float(np.mean(np.asarray(self.cells.clean_wrong)))
        errors = np.asarray(baseline.errors)
        losses = errors - (np.nan if baseline.clean_error is None else baseline.clean_error)
        for metric, mean_metric, divisors, less in [
            ("corruption_error", "mean_corruption_error", errors, 0.0),
            ("relative_corruption_error", "relative_mean_corruption_error", losses, clean),
        ]:
            beside = {"baseline": baseline.told}
            if not (np.isfinite(divisors) & (np.abs(divisors) > 1e-12)).all():
                continue
            for place, name in enumerate(self.cells.corruptions):
                found = self._mean([place], divisors=divisors, less=less)
                yield self._measurement(metric, found, {**about, "corruption": name}, {**severities, **beside})
            found = self._mean(range(len(divisors)), divisors=divisors, less=less)
            yield self._measurement(mean_metric, found, about, {**averaged, **beside})

    def _mean(self, places: Sequence[int], *, divisors: Numbers | None = None, less: float = 0.0) -> Estimate:
        """The mean over corruptions of (error - less) / divisor."""
        shares = np.zeros(len(self.cells.corruptions))
        shares[list(places)] = 1 / len(places)
        shares = shares if divisors is None else shares / divisors
        severities = len(self.cells.severities)
        found = self.progress.cells.weighted(np.repeat(shares, severities) / severities)
        return Estimate(*(end - less * float(shares.sum()) for end in found))

    @cached_property
    def _each_cell(self) -> list[Estimate]:
        return self.progress.cells.each()

    @property
    def _names(self) -> list[tuple[str, int]]:
        return [(name, severity) for name in self.cells.corruptions for severity in self.cells.severities]

    @property
    def _passes_by_cell(self) -> list[int]:
        drawn = np.concatenate([one.cells for one in self.progress.rounds])
        return np.bincount(drawn, minlength=len(self._names)).tolist()  # type: ignore[no-any-return]

    def _measurement(
        self, metric: str, found: Estimate, about: About, told: Mapping[str, str], *, images: int | None = None
    ) -> Measurement:
        convention = {**self.convention, **told, **self._told}
        convention |= clean_told(self.convention, self.clean_convention) if metric in OF_LOSSES else {}
        return Measurement(
            metric, found.value, about, len(self.cells) if images is None else images, convention, (found.low, found.high)
        )

    @property
    def _told(self) -> dict[str, str]:
        everything = self.progress.benchmark.pairs + self.progress.benchmark.clean_passes
        return {
            "passes": f"{self.progress.passes:,} of {everything:,}",
            "interval": "95 %, for the number of the full set, from the passes that were drawn",
        }

    def _curves(self, cells: Sequence[Estimate], about: About) -> Iterator[Curve]:
        severities = self.cells.severities
        clean = float(np.mean(np.asarray(self.cells.clean_wrong)))
        for place, corruption in enumerate(self.cells.corruptions):
            found = cells[place * len(severities) : (place + 1) * len(severities)]
            yield Curve(
                "degradation",
                {**about, "corruption": corruption},
                "severity",
                "share wrong",
                x=tuple(float(severity) for severity in (0, *severities)),
                y=(clean, *(one.value for one in found)),
                images=len(self.cells),
                convention={**self.convention, **self._told, **clean_told(self.convention, self.clean_convention)},
                low=(clean, *(one.low for one in found)),
                high=(clean, *(one.high for one in found)),
            )
