"""A robustness profile at the bench: the studies that fit, as far as they come within some minutes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.bench.job import Job
from shiftproof.corruptions.editions import Fit
from shiftproof.datasets.clusters import clustering
from shiftproof.errors import listed
from shiftproof.runs.predict import Progress, worker_pool
from shiftproof.runs.records import Reached
from shiftproof.runs.workers import Workers
from shiftproof.studies.choice import Studies, StudyEntry, choice_of
from shiftproof.studies.options import Assembled, joined
from shiftproof.studies.timed_profile import TimedProfile
from shiftproof.types import Caution, Dataset, Keep, Results, richest


def run_profile(job: Job, studies: Studies, minutes: float, *, started: float) -> Assembled:
    """The studies as far as they come within so many minutes of forward passes."""
    bench, model, images, prediction = job.bench, job.model, job.images, job.prediction
    names = choice_of(studies).names
    works = [(entry, bench.whole(entry, [model], images, False, names)) for entry in bench.entries([model], images, studies)]
    job.check_classes()
    left = bench.measurable(joined(work for _, work in works), [model])
    entries = [entry for entry, work in works if any(study is one for study in work.studies for one in left)]
    clustering(bench.scoring_options.cluster).check([images])
    bench.tell_preprocessing(model, [images], prediction)
    if not prediction.quiet:
        told = listed(entry.name for entry in entries)
        bench.tell(f"profile of {model.ref.name} on {images.ref.name} within {minutes:g} minutes: {told}")
    with worker_pool(prediction.workers, model.preprocessing, images) as workers:
        desk = _Desk(job, workers)
        reached = TimedProfile(
            entries,
            images,
            desk,
            minutes=minutes,
            reached=bench.store.reached(model.ref, images.ref),
            started=started,
            progress=job.progress,
        ).spend()
    done = [entry for entry in entries if entry.key in reached.units]
    work = joined(desk.assemble(entry, entry.images(images, reached), reached.units[entry.key]) for entry in done)
    return dataclasses.replace(work, cautions=desk.left_out)


def save_whole(job: Job, studies: Studies, *, full: bool) -> None:
    """Keeps in mind that these studies are stored whole."""
    bench, model, images = job.bench, job.model, job.images
    known, size = bench.store.reached(model.ref, images.ref) or Reached(), len(images.samples)
    done = {entry.key: entry.most(images) if full else None for entry in bench.entries([model], images, studies)}
    others = known.units if known.images == size else {}
    drawn_for = {key: count for key, count in known.drawn.items() if key not in done and key in others}
    reached = dataclasses.replace(known, images=size, units={**others, **done}, drawn=drawn_for)
    bench.store.save_reached(model.ref, images.ref, reached)


@dataclass
class _Desk:
    """What a profile has done for it, at one bench for one model."""

    job: Job
    workers: Workers
    editions: set[Fit] = dataclasses.field(default_factory=set)  # told already
    left_out: list[Caution] = dataclasses.field(default_factory=list)

    def assemble(self, entry: StudyEntry, images: Dataset, units: int | None = None) -> Assembled:
        work = entry.assemble([self.job.model], images, self.job.bench.context, units)
        for fit, scaled in work.editions.items():
            if fit not in self.editions and not self.job.prediction.quiet:
                self.editions.add(fit)
                self.job.bench.tell_edition(fit, scaled=scaled)
        return work

    def fill(self, works: Sequence[Assembled], progress: Progress, *, keep: Keep | None = None) -> None:
        keeps = [one for one in (keep, self.job.prediction.keep) if one is not None]
        settings = self.job.prediction
        if keeps:
            settings = dataclasses.replace(settings, keep=richest(keeps))  # type: ignore[arg-type]  # never boxes
        self.job.bench.fill_runs(self.job.model, joined(works), settings, progress, self.workers)

    def measure(self, work: Assembled) -> Results:
        return self.job.bench.measure(work)

    def save(self, reached: Reached) -> None:
        self.job.bench.store.save_reached(self.job.model.ref, self.job.images.ref, reached)

    def tell(self, text: str) -> None:
        if not self.job.prediction.quiet:
            self.job.bench.tell(text)

    def leave_out(self, entry: StudyEntry, why: str) -> None:
        self.left_out.append(Caution(f"{entry.kind.title} was not measured: {why}"))
