"""Label errors at the bench: a model's doubts become a review project, and its verdicts corrected labels."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiftproof.bench.job import Job
from shiftproof.curation.funnel import Step
from shiftproof.curation.options import LabelReview
from shiftproof.curation.pictures import add_pictures, undone_on_error
from shiftproof.curation.project import Item, Project, ReviewSettings
from shiftproof.curation.provenance import ID, making_of, origin
from shiftproof.curation.review_classes import joined_keys, review_classes
from shiftproof.curation.screens import ANCHOR_LABELS
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput, listed
from shiftproof.files import write_whole
from shiftproof.places import local_path
from shiftproof.runs.predict import Progress
from shiftproof.studies.base import model_ref
from shiftproof.studies.labels.options import LabelOptions
from shiftproof.studies.labels.study import KEPT, REPLACED, REVIEWED, UNTOLD, LabelStudy
from shiftproof.tables import csv_text
from shiftproof.types import Classifier, Dataset, Fact, ModelRef, Results, Run, Sample
from shiftproof.writing.listed import check_listing, save_listing

LABEL_BEFORE = "label_before"
"""Fact of a corrected image: the classes that it was labelled as."""

TABLE = "labels.csv"

INSTRUCTIONS = """\
The label that is marked may be wrong. Mark what the picture shows, and take out what it does not.

- Leave the label as it is where it is right, even if something else is there too; mark that as well if it is as clear.
- Say bad if none of the classes can be told.
- What a model takes it for can be shown, once you have thought about it yourself.
- Unsure is an answer."""


def label_project(
    images: Dataset,
    rows: Sequence[Mapping[str, Any]],
    suspects: int,
    folder: Path,
    model: ModelRef,
    *,
    review: ReviewSettings,
    progress: Progress | None = None,
) -> Project:
    """The project of the first images, the likeliest errors, of `rows`; all of these are listed in a table beside it.

    Rows have `id`, `label`, `suggested`, `self_confidence`, `probability` and `confident`.
    """
    if images.classes is None:
        raise BadInput(f"{images.ref.name} has no labels to review")
    samples, keys = {sample.id: sample for sample in images.samples}, images.classes.keys
    first = rows[:suspects]
    added = add_pictures(folder, {row["id"]: images.source(samples[row["id"]]) for row in first}, progress=progress)
    items = [
        Item(
            row["id"],
            (added.names[row["id"]],),
            joined_keys(keys[label] for label in samples[row["id"]].labels),
            shown={model.name: f"{row['suggested']} {100 * row['probability']:.0f} %"},
            facts={**(origin(images, samples[row["id"]]) if isinstance(images, ImageList) else {ID: row["id"]})},
        )
        for row in first
        if row["id"] in added.names
    ]
    if not items:
        raise BadInput(f"none of the {len(first):,} likeliest label errors of {images.ref.name} can be read")
    write_whole(folder / TABLE, csv_text(rows, list(rows[0])).encode())
    steps = [Step("labelled", len(rows)), Step("likeliest label errors", len(items))]
    sources = [images] if isinstance(images, ImageList) else []
    return review.save(
        folder,
        f"Labels of {images.ref.name}",
        ANCHOR_LABELS,
        items,
        review_classes(images.classes),
        making_of(sources, steps, models=[model], choices={"suspects": len(items)}),
    )


@dataclass(frozen=True)
class LabelErrors:
    """Images by how likely their label is wrong, and what was made of that."""

    results: Results
    images: Sequence[Mapping[str, Any]]  # every labelled one, the likeliest error first
    suspects: int  # how many of the first are shown, and asked about
    project: Project | None = None  # for reviewers
    corrected: str | None = None  # location of the manifest with corrected labels

    def to_json(self) -> dict[str, Any]:
        """The same as JSON."""
        return {
            "suspects": self.suspects,
            "images": list(self.images),
            "project": None if self.project is None else str(self.project.folder),
            "corrected": self.corrected,
            "results": json.loads(self.results.to_json()),
        }


def label_errors(job: Job, options: LabelOptions, review: LabelReview, report: str | Path | None) -> LabelErrors:
    """Predicts what is not stored, ranks the labels, and makes or reads the review."""
    from shiftproof.review.jobs import instructions_in  # the web stack is for those who review

    bench, model, images = job.bench, job.model, job.images
    review.check()
    if review.corrected is not None:
        check_listing(images, review.corrected)  # a slip costs a second and not an hour
    after = None if review.reviewed is None else corrected_images(images, review.reviewed, review.database)
    work = options.assemble(LabelStudy, [model], images, bench.context)
    (study,) = work.studies
    assert isinstance(study, LabelStudy)  # noqa: S101 - assembled as one
    study = dataclasses.replace(study, corrected=after)
    work = dataclasses.replace(work, studies=[study], datasets=[images, *([] if after is None else [after])])
    if study.head:
        bench.tell(f"labels are judged by heads, cross-validated on features of {model.ref.name} in {study.folds} folds")
        _check_features(model)
    else:
        job.check_classes()
    job.fill(work)
    load = bench.loader(study, work)
    judged = study.judged(Run(model_ref(model), images.ref), load)
    if isinstance(judged, str):
        raise BadInput(f"{images.ref.name}: {judged}")
    rows, suspects = judged.rows(judged.ranked.order), len(judged.first(options.suspects))
    project = location = None
    if review.project is not None:
        folder = local_path(review.project, "a review project")
        told = instructions_in(review.instructions) if review.instructions else INSTRUCTIONS
        asked = ReviewSettings(reviewers_each=review.reviewers_per_item or 2, instructions=told)
        with undone_on_error(folder):
            project = label_project(images, rows, suspects, folder, model_ref(model), review=asked, progress=job.progress)
    if review.corrected is not None and after is not None:
        location = save_listing(after, review.corrected)
    return LabelErrors(bench.report(work, report), rows, suspects, project, location)


def _check_features(model: Classifier) -> None:
    if not model.has_features:
        raise BadInput(
            f"{model.ref.name} shows no features to fit heads to; name the tensor or layer that holds them with --features, "
            "or let it judge the labels itself: --judge model"
        )


def corrected_images(images: Dataset, project: str, database: str | None) -> View:
    """The images with the labels that reviewers agreed on, none where they could not tell; open ones keep theirs.

    The facts `reviewed` and `label_before` say what became of a label.
    """
    from shiftproof.review.jobs import reviewed

    found = reviewed(project, database)
    if found.project.screen_name != ANCHOR_LABELS.name:
        raise BadInput(f"{found.project.title} asks {found.project.screen_name} and not which classes images show")
    if images.classes is None:
        raise BadInput(f"{images.ref.name} has no labels to correct")
    keys = images.classes.keys
    place_of = {key: place for place, key in enumerate(keys)}
    verdicts = {item: one for item, one in found.summary.verdicts.items() if one.outcome != "open"}
    known = {sample.id for sample in images.samples}
    if not known & verdicts.keys():
        asked = f"of its {len(found.summary.verdicts):,} images {len(verdicts):,} are decided"
        raise BadInput(
            f"{found.project.title} says nothing about {images.ref.name}: {asked}, and none of these is there; "
            "let reviewers go on, or name the dataset that the project was made from"
        )
    seen = {key for item in known & verdicts.keys() for key in verdicts[item].labels}
    if lacking := sorted(seen - place_of.keys()):
        raise BadInput(
            f"in images of {images.ref.name} reviewers saw {listed(lacking)}, and it has no such class; name the dataset "
            f"that {found.project.title} was made from"
        )

    def corrected(sample: Sample) -> Sample:
        before = "|".join(keys[label] for label in sample.labels)
        told: dict[str, Fact] = {REVIEWED: None, LABEL_BEFORE: before}
        verdict = verdicts.get(sample.id)
        if verdict is None:
            return dataclasses.replace(sample, facts={**sample.facts, **told})
        labels = tuple(sorted(place_of[key] for key in verdict.labels)) if verdict.outcome == "kept" else ()
        kept = set(labels) & set(sample.labels)
        told[REVIEWED] = KEPT if kept else REPLACED if labels else UNTOLD
        return dataclasses.replace(sample, labels=labels, facts={**sample.facts, **told})

    return View(images, images.classes, [corrected(sample) for sample in images.samples], f"{images.ref.name}, corrected")
