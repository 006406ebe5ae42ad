"""What detectors take for foreign: new classes or new styles, mistakes, distance, or the bare pixels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.reports.contact_sheets import picture_under
from shiftproof.reports.decomposition import decomposition
from shiftproof.reports.detector_findings import DetectorFindings, by_model
from shiftproof.reports.detector_names import set_title, written
from shiftproof.reports.discarded import right_answers_discarded
from shiftproof.reports.distance_scatter import distance_charts
from shiftproof.reports.page import Page, galleries_named, named, parts_of_each_set
from shiftproof.reports.parts import Cell, Column, Folded, Heading, Part, Section, Table
from shiftproof.reports.random_strip import random_failures, random_strips
from shiftproof.reports.rank_shifts import DISTRIBUTION, rank_shift_shapes, rank_shifts
from shiftproof.reports.style_or_class import with_styles_inside
from shiftproof.reports.tables import number_cells
from shiftproof.types import Condition, Finding, Gallery, Image, ImageSetRef, Measurement

BY_SET = {
    "disagreement_by_set": (
        "Where the two detectors disagree, set by set and either way",
        "Percent: share of inside and outside images that look less foreign.",
    ),
    "score_percentiles": (
        "Images at percentiles of the scores, set by set",
        "Percent: place of an image among those of its set, the least foreign first.",
    ),
}
"""Galleries of every set, folded under a title, and what their numbers are."""
MOST_SETS = 8
SMALL_SIDE = 200
"""Pixels: there are many of these pictures."""
NAMES = frozenset(
    {
        "inside_accuracy",
        "auroc_correct_inside",
        "auroc_wrong_inside",
        "auroc_correct_wrong",
        "correct_discarded",
        "rank_shift",
        DISTRIBUTION,
        "shift_auroc",
        "random_network_auroc",
        "mean_random_network_auroc",
        "random_network_failure_auroc",
        "mean_random_network_failure_auroc",
        "distance_slope",
        "distance_intercept",
        "distance_intercept_difference",
        "distance_intercept_gap",
        "distance_auroc",
        "frechet_distance",
        "detector_disagreement",
        "nearest_pairs",
        *BY_SET,
    }
)
SIDES = ("inside", "outside", "shifted")
NEEDED = frozenset({"auroc", "auroc_difference"})
"""Findings of the section before, without which nobody knows which detectors are the best."""
NOT_OF_FEATURES = {"interval", "positive", "preset", "picture", "output"}
"""Conventions that do not tell one Fréchet distance from another."""


def draw_what_is_noticed(findings: Sequence[Finding], page: Page) -> Section:
    """Each model by itself."""
    ranking = [one for one in page.results.measurements if one.metric in NEEDED]
    parts = parts_of_each_set(
        [*findings, *ranking], lambda found: [part for model in by_model(found) for part in _parts(model, page)]
    )
    lead = "A detector can be good at its task for a bad reason. These pictures tell what its score goes by."
    return Section("noticed", "What detectors notice", lead, parts)


def _parts(found: DetectorFindings, page: Page) -> list[Part]:
    parts: list[Part] = [
        *with_styles_inside(found),
        *random_strips(found),
        *random_failures(found),
        *right_answers_discarded(found),
        *decomposition(found),
        *rank_shifts(found),
        *rank_shift_shapes(found),
        *distance_charts(found),
        *_frechet_distances(found),
        *(page.pictures(gallery) for gallery in galleries_named(found.findings, "detector_disagreement")),
        *_set_by_set(found, page),
        *_pairs(found, page),
    ]
    subject = page.subject({"model": found.model})
    return [Heading(subject), *parts] if subject and parts else parts


def _set_by_set(found: DetectorFindings, page: Page) -> list[Part]:
    """Galleries of each set, inside and outside ones before the shifted: of the first few, for each is a screen long."""
    parts: list[Part] = []
    for name, (title, note) in BY_SET.items():
        galleries = galleries_named(found.findings, name)
        ordered = sorted(galleries, key=lambda one: SIDES.index(str(one.about["side"])))
        sets = dict.fromkeys(str(one.about.get("set", "")) for one in ordered)
        shown = list(sets)[:MOST_SETS]
        pictures = [_as_shown(one, page) for key in shown for one in galleries if one.about.get("set") == key]
        beyond = len(sets) - len(shown)
        more = f" {beyond} more sets are in the results." if beyond > 0 else ""
        how = " Corruptions are made anew on the stored photos." if any(map(_condition, galleries)) else ""
        parts += [Folded(f"{title} ({len(pictures)} galleries)", pictures, f"{note}{how}{more}")] if pictures else []
    return parts


def _as_shown(gallery: Gallery, page: Page) -> Part:
    """Thumbnails under the condition of the gallery's set, made anew from the stored photos."""
    about, condition = gallery.about, _condition(gallery)
    detectors = [written(str(about[key])) for key in ("detector", "versus") if key in about]
    by = f"more foreign to {' than to '.join(detectors)}" if len(detectors) > 1 else f"by {detectors[0]}"
    in_print = dataclasses.replace(gallery, title=f"{set_title(str(about['set']))} ({about['side']}): {by}")
    return (page if condition is None else _changed(page, condition)).pictures(in_print, long_side=SMALL_SIDE)


def _condition(gallery: Gallery) -> Condition | None:
    """Under which its images were shown to the model."""
    return next((item.condition for item in gallery.items if item.condition), None)


def _changed(page: Page, condition: Condition) -> Page:
    original = page.open_image
    if original is None:
        return page

    def changed(image_set: ImageSetRef, key: str) -> Image:
        return picture_under(condition, original(image_set, key), key=key)

    return dataclasses.replace(page, open_image=changed)


def _frechet_distances(found: DetectorFindings) -> list[Part]:
    numbers = named(found.findings, "frechet_distance")
    columns = [Column("Set"), Column("Fréchet distance", True), Column("Images", True), Column("How")]
    rows = [
        [Cell(set_title(str(one.about.get("set", "")))), value, behind, Cell(_how(one))]
        for one in numbers
        for value, _, behind in [number_cells(one)]
    ]
    note = "From the unchanged inside images, in features: how far a set lies away as a whole. 0 is alike."
    return [Table("Fréchet distance from the inside", columns, rows, note)] if rows else []


def _how(found: Measurement) -> str:
    """Whose features these are, and whether there are images enough for them."""
    return "; ".join(value for key, value in found.convention.items() if key not in NOT_OF_FEATURES)


def _pairs(found: DetectorFindings, page: Page) -> list[Part]:
    note = "Two and two belong together: an outside image, and the inside image nearest to it."
    return [
        dataclasses.replace(page.pictures(gallery), note=note, abreast=2)
        for gallery in galleries_named(found.findings, "nearest_pairs")
    ]
