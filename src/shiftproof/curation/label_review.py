"""A review project of labels that are likely wrong: people mark what each image shows, and take out what it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shiftproof.curation.funnel import Step
from shiftproof.curation.pictures import add_pictures
from shiftproof.curation.project import Item, Project, ReviewSettings
from shiftproof.curation.provenance import ID, making_of, origin
from shiftproof.curation.review_classes import joined_keys, review_classes
from shiftproof.curation.screens import ANCHOR_LABELS
from shiftproof.datasets.image_list import ImageList
from shiftproof.errors import BadInput
from shiftproof.files import write_whole
from shiftproof.runs.predict import Progress
from shiftproof.tables import csv_text
from shiftproof.types import Dataset, ModelRef

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
