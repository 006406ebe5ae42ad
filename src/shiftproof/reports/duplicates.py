"""Images that look like others, side by side with them, and how many are left without them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime

from shiftproof.curation.duplicates import DuplicateChoice, Likeness
from shiftproof.image_sets.image_list import ImageList
from shiftproof.reports.page import Page, galleries_named, named
from shiftproof.reports.parts import Cell, Column, Part, Section, Table
from shiftproof.reports.words import count, images
from shiftproof.studies import typed_command, versions
from shiftproof.studies.results import ImageSetCard, Results
from shiftproof.types import Finding, Gallery, GalleryItem, Measurement, SetAside

LEFT, PAIRS = "distinct_images", "duplicate_pairs"
NAMES = frozenset({LEFT, PAIRS})
MOST_PAIRS = 200
"""Pairs that a page shows, the least alike first: those are the doubtful ones."""


def duplicate_results(choice: DuplicateChoice, image_sets: Sequence[ImageList]) -> Results:
    """What was found, as a report draws it; the first set is the one that was searched."""
    own = image_sets[0]
    about = {"image_set": own.name}
    left = [
        Measurement(LEFT, step.left, {**about, "step": step.name}, images=choice.steps[0].left, convention={})
        for step in choice.steps
    ]
    alike = [(gone.item, gone.reason) for gone in choice.gone if isinstance(gone.reason, Likeness)]
    alike.sort(key=lambda pair: (pair[1].by, pair[1].distance), reverse=True)
    items = [item for image_id, likeness in alike[:MOST_PAIRS] for item in _pair(image_id, likeness)]
    shown = f"the {MOST_PAIRS} least alike of {count(len(alike))} pairs" if len(alike) > MOST_PAIRS else "all pairs"
    gallery = Gallery(PAIRS, about, own.ref, f"Images that look like others: {shown}", tuple(items))
    aside = tuple(SetAside(gone.item, gone.reason) for gone in choice.gone if isinstance(gone.reason, str))
    return Results(
        (*left, gallery),
        image_sets=tuple(_card(one, aside if one is own else ()) for one in image_sets),
        command=typed_command(),
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
    )


def draw_duplicates(findings: Sequence[Finding], page: Page) -> Section:
    """What each step left, and the pairs."""
    columns = [Column("Step"), Column("Images left", numeric=True)]
    rows = [[Cell(str(one.about["step"])), Cell(count(int(one.value)), one.value)] for one in named(findings, LEFT)]
    note = "Two and two belong together: the image that goes, and the one it looks like."
    pairs: list[Part] = [
        dataclasses.replace(page.pictures(gallery), note=note, abreast=2)
        for gallery in galleries_named(findings, PAIRS)
        if gallery.items
    ]
    return Section("duplicates", "Duplicates", "", [Table("What is left", columns, rows), *pairs])


def duplicate_headlines(page: Page) -> list[str]:
    """How many images look like others, in a sentence for each set."""
    left: dict[str, list[Measurement]] = {}
    for one in named(page.results.findings, LEFT):
        left.setdefault(str(one.about["image_set"]), []).append(one)
    gone = {name: int(steps[1].value - steps[-1].value) for name, steps in left.items()}  # but for those nobody can read
    return [
        f"{count(gone[name])} of {images(int(steps[1].value))} of {name} look like others." for name, steps in left.items()
    ]


def _pair(image_id: str, likeness: Likeness) -> tuple[GalleryItem, GalleryItem]:
    return (
        GalleryItem(image_id, f"goes: {likeness.apart}"),
        GalleryItem(likeness.other, "stays", image_set=likeness.image_set),
    )


def _card(one: ImageList, set_aside: tuple[SetAside, ...]) -> ImageSetCard:
    return ImageSetCard(
        one.name,
        one.ref.fingerprint,
        images=len(one.samples),
        labelled=sum(bool(sample.labels) for sample in one.samples),
        location=one.location,
        classes=None if one.classes is None else len(one.classes),
        set_aside=set_aside,
        notes=one.notes,
        credits=one.credits,
    )
