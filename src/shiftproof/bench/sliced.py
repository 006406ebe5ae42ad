"""Slices at the bench: groups of images that go wrong together, in a report and as facts of a manifest."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from shiftproof.bench.job import Job
from shiftproof.datasets.subsets import View
from shiftproof.runs.image_facts import with_image_facts
from shiftproof.studies.base import model_ref
from shiftproof.studies.slices.options import SliceOptions
from shiftproof.studies.slices.study import NO, YES, Found, SliceStudy
from shiftproof.types import Dataset, Results, Run
from shiftproof.writing.listed import check_listing, save_listing


def find_slices(job: Job, options: SliceOptions, manifest: str | Path | None, report: str | Path | None) -> Results:
    """Predicts what is not stored, finds and confirms slices, and writes them where that is asked for."""
    bench, model, images = job.bench, job.model, job.images
    if manifest is not None:
        check_listing(images, manifest)  # a slip costs a second and not an hour
    job.check_classes()
    looked_at = images
    if not options.facts_alone:
        looked_at = with_image_facts(images, bench.store, workers=job.prediction.workers, progress=job.progress)
    work = options.assemble(SliceStudy, [model], looked_at, bench.context)
    job.fill(work)
    results = bench.report(work, report)
    if manifest is not None:
        (study,) = work.studies
        assert isinstance(study, SliceStudy)  # noqa: S101 - assembled as one
        found = study.found(Run(model_ref(model), looked_at.ref), bench.loader(study, work))
        if isinstance(found, Found):
            location = save_listing(_with_slices(images, found), manifest)
            bench.tell(f"manifest: {location}, with {len(found.slices)} slices as facts")
        else:
            bench.tell(f"no manifest is written: {found}")
    return results


def _with_slices(images: Dataset, found: Found) -> View:
    """The images with a fact for each slice: yes or no, none of an image that was not looked at."""
    inside = {
        one.words: {found.predictions.ids[row] for row in np.flatnonzero(one.members).tolist()} for one in found.slices
    }
    seen = set(found.predictions.ids)
    samples = [
        dataclasses.replace(
            sample,
            facts={
                **sample.facts,
                **{
                    words: (YES if sample.id in some else NO) if sample.id in seen else None
                    for words, some in inside.items()
                },
            },
        )
        for sample in images.samples
    ]
    return View(images, images.classes, samples)
