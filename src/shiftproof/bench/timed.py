"""A robustness profile at the bench: the studies that fit, as far as they come within some minutes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.bench.steps import Bench
from shiftproof.corruptions.editions import Fit
from shiftproof.datasets.clusters import clustering
from shiftproof.errors import listed
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import Progress, check_classes, worker_pool
from shiftproof.runs.records import Reached
from shiftproof.runs.workers import Workers
from shiftproof.studies.choice import Studies, StudyEntry, choice_of
from shiftproof.studies.options import Assembled, joined
from shiftproof.studies.timed_profile import TimedProfile
from shiftproof.types import Caution, Dataset, Keep, Model, Results, richest


def run_profile(
    bench: Bench,
    model: Model,
    images: Dataset,
    studies: Studies,
    minutes: float,
    prediction: PredictionSettings,
    progress: Progress | None,
    *,
    started: float,
) -> Assembled:
    """The studies as far as they come within so many minutes of forward passes."""
    names = choice_of(studies).names
    works = [(entry, bench.whole(entry, [model], images, False, names)) for entry in bench.entries([model], images, studies)]
    check_classes(model, images, bench.scoring)
    left = bench.measurable(joined(work for _, work in works), [model])
    entries = [entry for entry, work in works if any(study is one for study in work.studies for one in left)]
    clustering(bench.scoring_options.cluster).check([images])
    bench.tell_preprocessing(model, [images], prediction)
    if not prediction.quiet:
        told = listed(entry.name for entry in entries)
        bench.tell(f"profile of {model.ref.name} on {images.ref.name} within {minutes:g} minutes: {told}")
    with worker_pool(prediction.workers, model.preprocessing, images) as workers:
        desk = _Desk(bench, model, images, prediction, workers)
        reached = TimedProfile(
            entries,
            images,
            desk,
            minutes=minutes,
            reached=bench.store.reached(model.ref, images.ref),
            started=started,
            progress=progress,
        ).spend()
    done = [entry for entry in entries if entry.key in reached.units]
    work = joined(desk.assemble(entry, entry.images(images, reached), reached.units[entry.key]) for entry in done)
    return dataclasses.replace(work, cautions=desk.left_out)


def save_whole(bench: Bench, model: Model, images: Dataset, studies: Studies, *, full: bool) -> None:
    """Keeps in mind that these studies are stored whole."""
    known, size = bench.store.reached(model.ref, images.ref) or Reached(), len(images.samples)
    done = {entry.key: entry.most(images) if full else None for entry in bench.entries([model], images, studies)}
    others = known.units if known.images == size else {}
    drawn_for = {key: count for key, count in known.drawn.items() if key not in done and key in others}
    reached = dataclasses.replace(known, images=size, units={**others, **done}, drawn=drawn_for)
    bench.store.save_reached(model.ref, images.ref, reached)


@dataclass
class _Desk:
    """What a profile has done for it, at one bench for one model."""

    bench: Bench
    model: Model
    images: Dataset
    prediction: PredictionSettings
    workers: Workers
    editions: set[Fit] = dataclasses.field(default_factory=set)  # told already
    left_out: list[Caution] = dataclasses.field(default_factory=list)

    def assemble(self, entry: StudyEntry, images: Dataset, units: int | None = None) -> Assembled:
        work = entry.assemble([self.model], images, self.bench.context, units)
        for fit, scaled in work.editions.items():
            if fit not in self.editions and not self.prediction.quiet:
                self.editions.add(fit)
                self.bench.tell_edition(fit, scaled=scaled)
        return work

    def fill(self, works: Sequence[Assembled], progress: Progress, *, keep: Keep | None = None) -> None:
        keeps = [one for one in (keep, self.prediction.keep) if one is not None]
        settings = dataclasses.replace(self.prediction, keep=richest(keeps)) if keeps else self.prediction  # type: ignore[arg-type]  # never boxes
        self.bench.fill_runs(self.model, joined(works), settings, progress, self.workers)

    def measure(self, work: Assembled) -> Results:
        return self.bench.measure(work)

    def save(self, reached: Reached) -> None:
        self.bench.store.save_reached(self.model.ref, self.images.ref, reached)

    def tell(self, text: str) -> None:
        if not self.prediction.quiet:
            self.bench.tell(text)

    def leave_out(self, entry: StudyEntry, why: str) -> None:
        self.left_out.append(Caution(f"{entry.kind.title} was not measured: {why}"))
