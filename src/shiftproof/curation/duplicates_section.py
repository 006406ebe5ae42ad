"""Near-duplicates in pairs, and the number of images left without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shiftproof.metrics.wording import count, images
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Column, Part, Section, Table
from shiftproof.reports.sections import SectionMaker
from shiftproof.studies.measure import typed_command, versions
from shiftproof.types import DatasetCard, Finding, Gallery, GalleryItem, Measurement, Results, SkippedImage

if TYPE_CHECKING:
    from shiftproof.curation.duplicates import Duplicate, DuplicateChoice
    from shiftproof.datasets.image_list import ImageList

LEFT, PAIRS = "distinct_images", "duplicate_pairs"
NAMES = frozenset({LEFT, PAIRS})
MOST_PAIRS = 200
"""Pairs that a page shows, the least alike first: those are the doubtful ones."""


def duplicate_results(choice: DuplicateChoice, datasets: Sequence[ImageList]) -> Results:
    """What was found, for a report; the first dataset is the one that was searched."""
    from shiftproof.curation.duplicates import Duplicate  # which every report would import otherwise

    own = datasets[0]
    about = {"dataset": own.name}
    left = [
        Measurement(LEFT, step.left, {**about, "step": step.name}, images=choice.steps[0].left, convention={})
        for step in choice.steps
    ]
    alike = [(gone.item, gone.reason) for gone in choice.removed if isinstance(gone.reason, Duplicate)]
    alike.sort(key=lambda pair: (pair[1].by, pair[1].distance), reverse=True)
    items = [item for image_id, likeness in alike[:MOST_PAIRS] for item in _pair(image_id, likeness)]
    shown = f"the {MOST_PAIRS} least alike of {count(len(alike))} pairs" if len(alike) > MOST_PAIRS else "all pairs"
    gallery = Gallery(PAIRS, about, own.ref, f"Near-duplicates: {shown}", tuple(items))
    aside = tuple(SkippedImage(gone.item, gone.reason) for gone in choice.removed if isinstance(gone.reason, str))
    return Results(
        (*left, gallery),
        datasets=tuple(_card(one, aside if one is own else ()) for one in datasets),
        command=typed_command(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def draw_duplicates(findings: Sequence[Finding], page: Page) -> Section:
    """The images left after each step, and the pairs."""
    columns = [Column("Step"), Column("Images left", numeric=True)]
    rows = [[Cell(str(one.about["step"])), Cell(count(int(one.value)), one.value)] for one in named(findings, LEFT)]
    note = "Shown in pairs: the removed image, and its duplicate."
    pairs: list[Part] = [
        dataclasses.replace(page.pictures(gallery), note=note, abreast=2)
        for gallery in galleries_named(findings, PAIRS)
        if gallery.items
    ]
    left = Table("Images left after each step", columns, rows)
    return Section("duplicates", "Duplicates", "", pairs, [left], duplicate_headlines(page))


def duplicate_headlines(page: Page) -> list[str]:
    """The number of near-duplicates, in a sentence per dataset."""
    left: dict[str, list[Measurement]] = {}
    for one in named(page.results.shown, LEFT):
        left.setdefault(str(one.about["dataset"]), []).append(one)
    gone = {name: int(steps[1].value - steps[-1].value) for name, steps in left.items()}  # but for those nobody can read
    return [
        f"{count(gone[name])} of {images(int(steps[1].value))} of {name} are near-duplicates."
        for name, steps in left.items()
    ]


def _pair(image_id: str, likeness: Duplicate) -> tuple[GalleryItem, GalleryItem]:
    return (
        GalleryItem(image_id, f"removed: {likeness.apart}"),
        GalleryItem(likeness.other, "kept", dataset=likeness.dataset),
    )


def _card(one: ImageList, skipped_images: tuple[SkippedImage, ...]) -> DatasetCard:
    return DatasetCard(
        one.name,
        one.ref.fingerprint,
        images=len(one.samples),
        labelled=sum(bool(sample.labels) for sample in one.samples),
        location=one.location,
        classes=None if one.classes is None else len(one.classes),
        skipped_images=skipped_images,
        notes=one.notes,
        credits=one.credits,
    )


SECTION = SectionMaker(NAMES, draw_duplicates, headlines=duplicate_headlines)
