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
from shiftproof.reports.words import count, has_too_few
from shiftproof.studies.temporal import ONE_CASE
from shiftproof.types import Curve, Finding, Measurement

NAMES = frozenset(
    {
        "anchor_accuracy",
        "pm_k_accuracy",
        "pm_k_drop",
        "pm_k_class_accuracy",
        "pm_k_class_drop",
        "pm_k_median_class_drop",
        "pm_k_subset_accuracy",
        "pm_k_subset_drop",
        "pm_k_review_accuracy",
        "pm_k_review_drop",
        "hardest_frames_accuracy",
        "effective_robustness",
        "pm_k_curve",
        "conditional_robustness",
        "offset_errors",
        "pixel_distances",
        "filmstrip",
    }
)
REVIEW = {"kept": "before review", "left out": "after review"}
"""What numbers are called with the frames that people rejected, and without them."""

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
    median = named(findings, "pm_k_median_class_drop")
    widest = "".join(f": k = {one.about.get('k')}" for one in around[:1])
    return [
        *_with_note(headline_numbers(f"In short{widest}", [*overall, *median], page), _one_case(overall)),
        *choices("How these numbers were made", [*overall, *median, *robustness]),
        *_charts(findings),
        *among_published_frames([*overall, *robustness]),
        *([_robustness_table(robustness)] if robustness else []),
        *_hardest_tables(around, named(findings, "hardest_frames_accuracy"), page),
        *_review_tables(named(findings, "pm_k_review_accuracy"), named(findings, "pm_k_review_drop")),
        *pixel_distance_charts(curves_named(findings, "pixel_distances")),
        *subset_tables(named(findings, "pm_k_subset_accuracy"), named(findings, "pm_k_subset_drop")),
        *_class_tables(named(findings, "pm_k_class_accuracy"), named(findings, "pm_k_class_drop")),
        *(filmstrip(gallery, page) for gallery in galleries_named(findings, "filmstrip")),
    ]


def _charts(findings: Sequence[Finding]) -> list[Part]:
    """Accuracy as more frames around the anchors must be right, and what becomes of single frames with their distance."""
    return [
        *_chart(
            "Right on every frame at most k away",
            curves_named(findings, "pm_k_curve"),
            scale=SHARE,
            note="k = 0 is the anchor alone.",
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
            [curve for curve in curves_named(findings, "offset_errors") if model_of(curve)],
            scale={"zero": True, "nice": True},
            note="Lowest at 0: anchors are easier than the frames around them. Level: they are frames like any other.",
            half=True,
        ),
        *_over_all_models([curve for curve in curves_named(findings, "offset_errors") if not model_of(curve)]),
    ]


def _over_all_models(curves: Sequence[Curve]) -> list[Part]:
    """Errors by offset of all models together: one line, or one before review and one after it."""
    if not curves:
        return []
    models = int(curves[0].about.get("models", 1))
    over, reviewed = f", mean over {models} models" if models > 1 else "", len(curves) > 1
    title = f"Wrong by offset{' before and after review' if reviewed else ''}{over}"
    note = "Before review the frames that people found unlike their anchor count too." if reviewed else ""
    return _chart(title, curves, scale={"zero": True, "nice": True}, note=note)


def _chart(title: str, curves: Sequence[Curve], *, scale: Spec, note: str, half: bool = False) -> list[Part]:
    if not curves:
        return []
    alone = len(curves) == 1
    names = [model_of(one) or ("all models" if alone else REVIEW[str(one.about.get("rejected"))]) for one in curves]
    note = f"{note} {'The band is the interval.' if curves[0].low else f'No band: {ONE_CASE}.'}".strip()
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


def _review_tables(found: Sequence[Measurement], drops: Sequence[Measurement]) -> list[Part]:
    note = (
        "Frames that people found unlike their anchor are left out of all other numbers; kept, they say what review changes."
    )
    return _by_k("Frames rejected in review", found, "rejected", drops, note=note)


def subset_tables(found: Sequence[Measurement], drops: Sequence[Measurement] = ()) -> list[Part]:
    """What is left of a number when some of the frames go."""
    note = (
        "What is left when one type of frame goes, among the anchors and around them (a video codec stores I frames whole, "
        "P and B frames as what differs from others), and clips of one frame rate."
    )
    return _by_k("Subsets of the anchors", found, "subset", drops, note=note)


def _by_k(
    title: str, found: Sequence[Measurement], key: str, drops: Sequence[Measurement] = (), *, note: str = ""
) -> list[Part]:
    """A row for each value of one key of `about`, a column for each k and one for what is lost between them."""
    if not found:
        return []
    keys = [*_whose(found), key]
    distances = sorted({int(one.about.get("k", 0)) for one in found})
    rows: dict[tuple[str, ...], dict[int, Measurement]] = {}
    for one in found:
        rows.setdefault(_values(one, keys), {})[int(one.about.get("k", 0))] = one
    lost = {_values(one, keys): one for one in drops}
    columns = [
        *(Column(key.capitalize()) for key in keys),
        *(Column(f"k = {k}", True) for k in distances),
        *([Column("Lost", True)] if lost else []),
        Column("Anchors", True),
    ]
    cells = [
        [
            *map(Cell, values),
            *(compact_cell(numbers.get(k)) for k in distances),
            *([compact_cell(lost.get(values))] if lost else []),
            _anchors(numbers[max(numbers)]),
        ]
        for values, numbers in rows.items()
    ]
    return _with_note([Table(title, columns, cells, note)], _one_case([*found, *drops]))


def _class_tables(found: Sequence[Measurement], drops: Sequence[Measurement]) -> list[Part]:
    """The least steady classes first."""
    widest = max((int(one.about.get("k", 0)) for one in found), default=0)
    worst = {(one.about.get("class"), model_of(one)): one.value for one in found if one.about.get("k") == widest}
    ordered = sorted(found, key=lambda one: worst.get((one.about.get("class"), model_of(one)), 0.0))
    tables = _by_k(f"By class: k = {widest}", ordered, "class", drops)
    folded = len(worst) > MOST_OPEN
    return [dataclasses.replace(table, folded=folded) for table in tables if isinstance(table, Table)]


def _one_case(found: Sequence[Measurement]) -> str:
    """Why some of these numbers have no interval; nothing where all have one, or none was to be had by clips."""
    return f"No interval: {ONE_CASE}." if any(has_too_few(one) for one in found) else ""


def _with_note(parts: Sequence[Part], more: str) -> list[Part]:
    """The same tables with a sentence more below them."""
    return [
        dataclasses.replace(part, note=f"{part.note} {more}".strip()) if isinstance(part, Table) else part for part in parts
    ]


def _whose(found: Sequence[Measurement]) -> list[str]:
    """The key that tells models apart, where there are several."""
    return ["model"] if len(models_of(found)) > 1 else []


def _values(found: Measurement, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(found.about.get(key, "")) for key in keys)


def _anchors(found: Measurement) -> Cell:
    return Cell(count(found.images), found.images)
