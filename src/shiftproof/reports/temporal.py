"""Whether the models are right on every frame around a frame, and not on that one alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.by_model import choices, headline_numbers
from shiftproof.reports.charts import SHARE, Spec
from shiftproof.reports.filmstrips import filmstrip
from shiftproof.reports.frame_distances import frame_distances
from shiftproof.reports.page import (
    Page,
    by_subject,
    curves_named,
    galleries_named,
    model_of,
    models_of,
    named,
    parts_of_each_set,
)
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.pixel_distances import pixel_distance_charts
from shiftproof.reports.published_frames import among_published_frames
from shiftproof.reports.tables import compact_cell, curve_table, measurement_table, side_by_side
from shiftproof.reports.words import count
from shiftproof.types import Curve, Finding, Measurement

NAMES = frozenset(
    {
        "anchor_accuracy",
        "pm_k_accuracy",
        "pm_k_drop",
        "pm_k_class_accuracy",
        "pm_k_subset_accuracy",
        "pm_k_review_accuracy",
        "hardest_frames_accuracy",
        "effective_robustness",
        "pm_k_curve",
        "conditional_robustness",
        "offset_errors",
        "pixel_distances",
        "filmstrip",
    }
)
MOST_OPEN = 12
"""Rows of classes; a longer table is folded."""


def draw_temporal(findings: Sequence[Finding], page: Page) -> Section:
    """Numbers, accuracy by distance, the models among others, kinds of frames and classes, then the frames themselves."""
    parts = parts_of_each_set(findings, lambda found: _parts(found, page))
    lead = "Frames of a video just before and after an anchor frame look much like it: how often is every one named right?"
    return Section("temporal", "Frames around frames", lead, parts)


def at_largest_k(findings: Sequence[Finding]) -> list[Measurement]:
    """Of each model and image set the accuracy on the widest frames around its anchors."""
    groups = by_subject(named(findings, "pm_k_accuracy")).values()
    return [max(named(group, "pm_k_accuracy"), key=lambda one: int(one.about.get("k", 0))) for group in groups]


def _parts(findings: Sequence[Finding], page: Page) -> list[Part]:
    around, robustness = at_largest_k(findings), named(findings, "effective_robustness")
    overall = [*named(findings, "anchor_accuracy"), *around, *named(findings, "pm_k_drop")]
    widest = "".join(f": k = {one.about.get('k')}" for one in around[:1])
    return [
        *headline_numbers(f"In short{widest}", overall, page),
        *choices("How these numbers were made", [*overall, *robustness]),
        *_charts(findings),
        *among_published_frames([*overall, *robustness]),
        *([_robustness_table(robustness)] if robustness else []),
        *_hardest_tables(around, named(findings, "hardest_frames_accuracy"), page),
        *_review_tables(named(findings, "pm_k_review_accuracy")),
        *pixel_distance_charts(curves_named(findings, "pixel_distances")),
        *subset_tables(named(findings, "pm_k_subset_accuracy")),
        *_class_tables(named(findings, "pm_k_class_accuracy")),
        *(filmstrip(gallery, page) for gallery in galleries_named(findings, "filmstrip")),
    ]


def _charts(findings: Sequence[Finding]) -> list[Part]:
    """Accuracy as more frames around the anchors must be right, and what becomes of single frames with their distance."""
    return [
        *_chart(
            "Right on every frame at most k away",
            curves_named(findings, "pm_k_curve"),
            scale=SHARE,
            note="k = 0 is the anchor alone. The band is the interval.",
        ),
        *_chart(
            "Right k frames from a right anchor",
            curves_named(findings, "conditional_robustness"),
            scale={"zero": False, "nice": True},
            note="Of the frames exactly so many before or after an anchor that is named right.",
            half=True,
        ),
        *_chart(
            "Wrong before and after the anchor",
            curves_named(findings, "offset_errors"),
            scale={"zero": True, "nice": True},
            note="Lowest at 0: anchors are easier than the frames around them. Level: they are frames like any other.",
            half=True,
        ),
    ]


def _chart(title: str, curves: Sequence[Curve], *, scale: Spec, note: str, half: bool = False) -> list[Part]:
    if not curves:
        return []
    names = [model_of(curve) for curve in curves]
    figures = curve_table(title, curves, names)
    if len(curves[0].x) < 2:
        return [figures]  # a line of one point could not be seen
    said = f"{title}: {curves[0].y_label} against {curves[0].x_label}; {', '.join(names)}."
    spec = frame_distances(curves, names, description=said, scale=scale)
    return [Chart(title, spec, figures, note, half)]


def _robustness_table(found: Sequence[Measurement]) -> Table:
    title = meaning_of("effective_robustness").title
    note = (
        "Beside the line through published models, which are of other images; straight among accuracies (linear) or among "
        "their normal quantiles (probit). Zero within the interval: one more of the published models might lie here too."
    )
    return measurement_table(title, found, value_title="Above the line", keys=[*_whose(found), "axes"], note=note)


def _hardest_tables(around: Sequence[Measurement], hardest: Sequence[Measurement], page: Page) -> list[Part]:
    """Each model on the frames chosen for it alone, beside the frames chosen for all."""
    if not hardest:
        return []
    metrics = ["pm_k_accuracy", "hardest_frames_accuracy"]
    table = side_by_side("The same frames for every model", [*around, *hardest], metrics, page)
    note = (
        "pm-k asks every model about the frames that are worst for it. The hardest frames are one for each anchor, the one "
        "that most of these models get wrong: all answer the same, and other models beside them would choose others."
    )
    return [dataclasses.replace(table, note=note)]


def _review_tables(found: Sequence[Measurement]) -> list[Part]:
    note = (
        "Frames that people found unlike their anchor are left out of all other numbers; kept, they say what review changes."
    )
    return _by_k("Frames rejected in review", found, "rejected", note=note)


def subset_tables(found: Sequence[Measurement]) -> list[Part]:
    """What is left of a number when some of the anchors go."""
    note = (
        "What is left when anchors of one kind of frame go (a video codec stores I frames whole, P and B frames as what "
        "differs from others), and clips of one frame rate."
    )
    return _by_k("Subsets of the anchors", found, "subset", note=note)


def _by_k(title: str, found: Sequence[Measurement], key: str, *, note: str) -> list[Part]:
    """A row for each value of one key of `about`, a column for each k."""
    if not found:
        return []
    keys = [*_whose(found), key]
    distances = sorted({int(one.about.get("k", 0)) for one in found})
    rows: dict[tuple[str, ...], dict[int, Measurement]] = {}
    for one in found:
        rows.setdefault(_values(one, keys), {})[int(one.about.get("k", 0))] = one
    columns = [
        *(Column(key.capitalize()) for key in keys),
        *(Column(f"k = {k}", True) for k in distances),
        Column("Anchors", True),
    ]
    cells = [
        [*map(Cell, values), *(compact_cell(numbers.get(k)) for k in distances), _anchors(numbers[max(numbers)])]
        for values, numbers in rows.items()
    ]
    return [Table(title, columns, cells, note)]


def _class_tables(found: Sequence[Measurement]) -> list[Part]:
    """The least steady classes first."""
    if not found:
        return []
    ordered = sorted(found, key=lambda one: one.value)
    title = f"By class: k = {ordered[0].about.get('k')}"
    value_title = meaning_of("pm_k_class_accuracy").title
    table = measurement_table(title, ordered, value_title=value_title, keys=["class", *_whose(found)])
    return [dataclasses.replace(table, folded=len(found) > MOST_OPEN)]


def _whose(found: Sequence[Measurement]) -> list[str]:
    """The key that tells models apart, where there are several."""
    return ["model"] if len(models_of(found)) > 1 else []


def _values(found: Measurement, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(found.about.get(key, "")) for key in keys)


def _anchors(found: Measurement) -> Cell:
    return Cell(count(found.images), found.images)
