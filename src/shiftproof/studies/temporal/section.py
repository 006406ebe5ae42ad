"""The report's section on temporal robustness: pm-k accuracy, its curves and tables, and filmstrips."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from shiftproof.metrics.published import AROUND_FRAMES
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.trends import Line, fit_line
from shiftproof.metrics.wording import count, evidence, figure, has_too_few
from shiftproof.reference import load_table
from shiftproof.reports.charts import NARROW, PERCENT, SHARE, Spec, banded_lines, channel, curve_rows
from shiftproof.reports.page import (
    Page,
    by_subject,
    curves_named,
    galleries_named,
    grouped,
    in_columns,
    model_of,
    models_of,
    named,
    parts_of_each_set,
)
from shiftproof.reports.parts import Cell, Chart, Column, Filmstrip, Folded, Frame, Part, Picture, Section, Table
from shiftproof.reports.published import published_cell
from shiftproof.reports.scatter_plot import Place, scatter_plot
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import compact_cell, curve_table, headline_numbers, measurement_table, side_by_side
from shiftproof.reports.words import in_a_line, kept_together, of_hundred, opened, per_hundred, spoken
from shiftproof.studies.temporal.study import ONE_CASE, PUBLISHED_TABLES
from shiftproof.types import Curve, Finding, Gallery, GalleryItem, Measurement

NAMES = frozenset(
    {
        "anchor_accuracy",
        "pm_k_accuracy",
        "offset_loss",
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
"""With and without the frames that reviewers rejected."""
MOST_OPEN = 12
"""Rows of classes; a longer table is folded."""


def draw_temporal(findings: Sequence[Finding], page: Page) -> Section:
    """Accuracy by k; then numbers, accuracy by offset, published models, subsets and classes, and filmstrips."""
    return Section(
        "temporal",
        "Temporal robustness (pm-k)",
        "Share of anchor frames that are classified correctly on every frame within k.",
        parts_of_each_set(findings, lambda found: _details(found, page)),
        parts_of_each_set(findings, lambda found: _by_distance(curves_named(found, "pm_k_curve"))),
        temporal_headlines(page),
    )


def at_largest_k(findings: Sequence[Finding]) -> list[Measurement]:
    """pm-k accuracy at the largest k of each model and dataset."""
    groups = by_subject(named(findings, "pm_k_accuracy")).values()
    return [max(named(group, "pm_k_accuracy"), key=lambda one: int(one.about.get("k", 0))) for group in groups]


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    around, robustness = at_largest_k(findings), named(findings, "effective_robustness")
    overall = [*named(findings, "anchor_accuracy"), *around, *named(findings, "pm_k_drop")]
    median = named(findings, "pm_k_median_class_drop")
    largest = "".join(f": k = {one.about.get('k')}" for one in around[:1])
    return [
        *_with_note(headline_numbers(f"In short{largest}", [*overall, *median], page), _one_case(overall)),
        *_charts(findings),
        *among_published_frames([*overall, *robustness]),
        *([_robustness_table(robustness)] if robustness else []),
        *_hardest_tables(around, named(findings, "hardest_frames_accuracy"), page),
        *_review_tables(named(findings, "pm_k_review_accuracy"), named(findings, "pm_k_review_drop")),
        *pixel_distance_charts(curves_named(findings, "pixel_distances")),
        *subset_tables(named(findings, "pm_k_subset_accuracy"), named(findings, "pm_k_subset_drop")),
        *_class_tables(named(findings, "pm_k_class_accuracy"), named(findings, "pm_k_class_drop")),
        *in_columns(
            {
                model: [filmstrip(one, page) for one in some]
                for model, some in grouped(galleries_named(findings, "filmstrip"), model_of).items()
            }
        ),
    ]


def _by_distance(curves: Sequence[Curve]) -> list[Part]:
    title = "pm-k accuracy: correct on every frame at most k away"
    return _chart(title, curves, scale=SHARE, note="k = 0 is the anchor alone.")


def _charts(findings: Sequence[Finding]) -> list[Part]:
    """Accuracy of single frames by distance from a correct anchor, error by offset."""
    return [
        *_chart(
            "Accuracy k frames from a correct anchor",
            curves_named(findings, "conditional_robustness"),
            scale={"zero": False, "nice": True},
            note="Of the frames exactly k before or after an anchor that is classified correctly.",
            half=True,
        ),
        *_chart(
            "Error before and after the anchor",
            [curve for curve in curves_named(findings, "offset_errors") if model_of(curve)],
            scale={"zero": True, "nice": True},
            note="Lowest at 0: anchors are easier than the frames around them. Level: they are frames like any other.",
            half=True,
        ),
        *_over_all_models([curve for curve in curves_named(findings, "offset_errors") if not model_of(curve)]),
        *_offset_losses(named(findings, "offset_loss")),
    ]


def _offset_losses(losses: Sequence[Measurement]) -> list[Part]:
    """What frames at each offset lose against their anchors, by which the verdict judges them."""
    if not losses:
        return []
    title, keys = metric_info(losses[0].metric).title, ["offset", *(["model"] if len(models_of(losses)) > 1 else [])]
    table = measurement_table(title, losses, value_title="Accuracy lost", keys=keys)
    return [Folded(title, [table], "Accuracy on anchor frames minus accuracy on the frames at one offset from them.")]


def _over_all_models(curves: Sequence[Curve]) -> list[Part]:
    """Mean error by offset over all models: one line, or one before review and one after it."""
    if not curves:
        return []
    models = int(curves[0].about.get("models", 1))
    over, reviewed = f", mean over {models} models" if models > 1 else "", len(curves) > 1
    title = f"Error by offset{' before and after review' if reviewed else ''}{over}"
    note = "Before review the frames that reviewers rejected count too." if reviewed else ""
    return _chart(title, curves, scale={"zero": True, "nice": True}, note=note)


def _chart(title: str, curves: Sequence[Curve], *, scale: Spec, note: str, half: bool = False) -> list[Part]:
    if not curves:
        return []
    alone = len(curves) == 1
    names = [model_of(one) or ("all models" if alone else REVIEW[str(one.about.get("rejected"))]) for one in curves]
    note = f"{note} {'The band is the 95 % CI.' if curves[0].low else f'No band: {ONE_CASE}.'}".strip()
    figures = curve_table(title, curves, names)
    if len(curves[0].x) < 2:
        return [figures]  # a line of one point could not be seen
    said = f"{title}: {curves[0].y_label} against {curves[0].x_label}; {', '.join(names)}."
    spec = frame_distances(curves, names, description=said, scale=scale)
    return [Chart(title, spec, figures, note, half)]


MOST_TICKS = 10


def frame_distances(curves: Sequence[Curve], names: Sequence[str], *, description: str, scale: Spec) -> Spec:
    """A line for each model over whole numbers of frames, with a band for its CI; `scale` is that of the y axis."""
    far = [place for curve in curves for place in curve.x]
    x = channel("x", curves[0].x_label, {"domain": [min(far), max(far)], "nice": False})
    # no half frames: a tick for each where they are few, which tickMinStep alone does not keep to
    few = {"values": list(range(int(min(far)), int(max(far)) + 1))} if max(far) - min(far) <= MOST_TICKS else {}
    x["axis"] |= {"tickMinStep": 1, "format": "d", "tickCount": {"expr": f"{NARROW} ? 5 : {MOST_TICKS}"}, **few}
    y = channel("y", curves[0].y_label, scale, PERCENT)
    rows = [row for curve, name in zip(curves, names, strict=True) for row in _rows(curve, name)]
    return banded_lines(rows, names, x, y, description=description)


def _rows(curve: Curve, name: str) -> list[Spec]:
    behind = dict(zip(curve.x, curve.counts or (curve.images,) * len(curve.x), strict=True))
    return [{**row, "tip": f"{figure(row['y'], 'share')} of {count(behind[row['x']])}"} for row in curve_rows(curve, name)]


def _robustness_table(found: Sequence[Measurement]) -> Table:
    title = metric_info("effective_robustness").title
    note = (
        "Distance from the line through published models, which are of other images; fitted to accuracies (linear) or to "
        "their normal quantiles (probit). Zero within the CI: one more of the published models might lie here too."
    )
    return measurement_table(title, found, value_title="Effective robustness", keys=[*_whose(found), "axes"], note=note)


def _hardest_tables(around: Sequence[Measurement], hardest: Sequence[Measurement], page: Page) -> list[Part]:
    """Accuracy on each model's own worst frames compared with the hardest frames for all."""
    if not hardest:
        return []
    metrics = ["pm_k_accuracy", "hardest_frames_accuracy"]
    table = side_by_side("The same frames for every model", [*around, *hardest], metrics, page)
    note = (
        "pm-k takes the worst frames of each model. The hardest frames are one for each anchor, the one that most of these "
        "models misclassify: the same for all, and another choice of models would give others."
    )
    return [dataclasses.replace(table, note=note)]


def _review_tables(found: Sequence[Measurement], drops: Sequence[Measurement]) -> list[Part]:
    note = "Frames that reviewers found unlike their anchor are left out of all other numbers."
    return _by_k("Frames rejected in review", found, "rejected", drops, note=note)


def subset_tables(found: Sequence[Measurement], drops: Sequence[Measurement] = ()) -> list[Part]:
    """A number on all but one frame type, and on clips of one frame rate."""
    note = (
        "Without one frame type, among the anchors and around them (a video codec stores I frames whole, P and B frames as "
        "differences from others), and clips of one frame rate."
    )
    return _by_k("Subsets of the anchors", found, "subset", drops, note=note)


def _by_k(
    title: str, found: Sequence[Measurement], key: str, drops: Sequence[Measurement] = (), *, note: str = ""
) -> list[Part]:
    """A row for each value of one key of `about`, a column for each k and one for the drop between them."""
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
        *([Column("Drop", True)] if lost else []),
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
    """Lowest pm-k accuracy first."""
    largest = max((int(one.about.get("k", 0)) for one in found), default=0)
    worst = {(one.about.get("class"), model_of(one)): one.value for one in found if one.about.get("k") == largest}
    ordered = sorted(found, key=lambda one: worst.get((one.about.get("class"), model_of(one)), 0.0))
    tables = _by_k(f"By class: k = {largest}", ordered, "class", drops)
    folded = len(worst) > MOST_OPEN
    return [dataclasses.replace(table, folded=folded) for table in tables if isinstance(table, Table)]


def _one_case(found: Sequence[Measurement]) -> str:
    """Why some of these numbers have no CI for lack of clips; nothing where all have one."""
    return f"No CI: {ONE_CASE}." if any(has_too_few(one) for one in found) else ""


def _with_note(parts: Sequence[Part], more: str) -> list[Part]:
    """The tables with one more sentence in their notes."""
    return [
        dataclasses.replace(part, note=f"{part.note} {more}".strip()) if isinstance(part, Table) else part for part in parts
    ]


def _whose(found: Sequence[Measurement]) -> list[str]:
    """The key of the model, where there are several."""
    return ["model"] if len(models_of(found)) > 1 else []


def _values(found: Measurement, keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(found.about.get(key, "")) for key in keys)


def _anchors(found: Measurement) -> Cell:
    return Cell(count(found.images), found.images)


TITLE = "Pixel distance from the anchor"
NOTE = (
    "L-infinity distance: 1 is from black to white in any channel of any pixel. If both curves coincide, "
    "misclassifications do not come from larger pixel changes."
)
SHARES = (0.1, 0.5, 0.9)
"""Quantiles in the table."""


def pixel_distance_charts(curves: Sequence[Curve]) -> list[Part]:
    """Empirical distribution for each group of pairs."""
    if not curves:
        return []
    names = [_name(curve) for curve in curves]
    heads = [f"{figure(share, 'share')} of pairs within" for share in SHARES]
    rows = [
        [Cell(name), *(_cell(_within(curve, share)) for share in SHARES), Cell(count(curve.images), curve.images)]
        for curve, name in zip(curves, names, strict=True)
    ]
    figures = Table(TITLE, [Column("Which"), *(Column(head, True) for head in heads), Column("Pairs", True)], rows)
    x = channel("x", curves[0].x_label, SHARE)
    y = channel("y", curves[0].y_label, SHARE, PERCENT)
    drawn = [row for curve, name in zip(curves, names, strict=True) for row in curve_rows(_whole(curve), name)]
    said = f"{TITLE}: {curves[0].y_label} against {curves[0].x_label}; {', '.join(names)}."
    return [Chart(TITLE, banded_lines(drawn, names, x, y, description=said, steps=True), figures, NOTE)]


def _name(curve: Curve) -> str:
    pairs = curve.about["pairs"]
    which = f"misclassifications of {model_of(curve)}" if pairs == "mistakes" else f"{pairs} pairs"
    return f"{which} ({count(curve.images)})"


def _whole(curve: Curve) -> Curve:
    """The curve extended to both ends of the axis."""
    counts = (0, *(curve.counts or ()), curve.images) if curve.counts else None
    return dataclasses.replace(curve, x=(0.0, *curve.x, 1.0), y=(0.0, *curve.y, 1.0), counts=counts)


def _within(curve: Curve, share: float) -> float:
    """Quantile of the distances."""
    return curve.x[int(np.searchsorted(curve.y, share))]


def _cell(distance: float) -> Cell:
    return Cell(figure(distance, "number"), distance)


SIDE = 144
"""Pixels; 21 thumbnails of this size come to about 60 kB."""
QUALITY = 56


def filmstrip(gallery: Gallery, page: Page) -> Filmstrip:
    """The frames of one gallery, titled with its model where the page has several."""
    several = len(page.models) > 1 and "model" in gallery.about
    title = f"{gallery.title}: {gallery.about['model']}" if several else gallery.title
    note = f"{count(len(gallery.items))} frames in the order of time; the row scrolls sideways."
    return Filmstrip(title, [_frame(item, gallery, page) for item in gallery.items], note)


def _frame(item: GalleryItem, gallery: Gallery, page: Page) -> Frame:
    dataset = item.dataset or gallery.dataset
    shown = page.thumbnail(dataset, item.id, long_side=SIDE, quality=QUALITY)
    return Frame(Picture(item.id, kept_together(item.caption), *shown), item.offset or 0, correct=item.correct is not False)


def among_published_frames(overall: Sequence[Measurement]) -> list[Part]:
    """pm-k accuracy against anchor accuracy, if effective robustness was measured."""
    robustness = named(overall, "effective_robustness")
    own = {model: {one.metric: one for one in overall if model_of(one) == model} for model in models_of(overall)}
    placed = {model: numbers for model, numbers in own.items() if set(AROUND_FRAMES) <= set(numbers)}
    return [_among_published(str(robustness[0].about["published"]), placed)] if robustness and placed else []


def _among_published(table: str, own: Mapping[str, Mapping[str, Measurement]]) -> Chart:
    title = "Among published models: pm-k accuracy"
    others = [_published_place(row) for row in load_table(table)]
    places = [*others, *(_own_place(model, numbers) for model, numbers in own.items())]
    line = fit_line(np.array([one.x for one in others]), np.array([one.y for one in others]))
    spec = scatter_plot(
        places,
        x_title=in_a_line(metric_info("anchor_accuracy").title),
        y_title=in_a_line(metric_info("pm_k_accuracy").title),
        line=_ends_of(line, places),
        description=f"{title}. {'; '.join(f'{one.name}: {one.detail}' for one in places if one.own)}.",
    )
    return Chart(
        title, spec, _published_table(title, table, own), kept_together(f"{_published_note(table, own)}{_beyond(places)}")
    )


def _published_place(row: Mapping[str, str]) -> Place:
    original, perturbed = (float(row[column]) / 100 for column in AROUND_FRAMES.values())
    return Place(spoken(row["model"]), original, perturbed, _place_in_words(original, perturbed))


def _own_place(model: str, numbers: Mapping[str, Measurement]) -> Place:
    anchor, around = (numbers[metric] for metric in AROUND_FRAMES)
    said = _place_in_words(anchor.value, around.value)
    return Place(model, anchor.value, around.value, said, True, anchor.ends, around.ends)


def _place_in_words(original: float, perturbed: float) -> str:
    return f"anchor accuracy {figure(original, 'share')}, pm-k accuracy {figure(perturbed, 'share')}"


def _ends_of(line: Line, places: Sequence[Place]) -> list[tuple[float, float]]:
    """Ends of the line, at the least and the most accurate of all models."""
    ends = np.array([min(one.x for one in places), max(one.x for one in places)])
    return list(zip(ends.tolist(), line.at(ends).tolist(), strict=True))


def _published_note(table: str, own: Mapping[str, Mapping[str, Measurement]]) -> str:
    around = next(iter(own.values()))["pm_k_accuracy"]
    return (
        f"Published: {PUBLISHED_TABLES.get(table, table)}. "
        f"Here: {count(around.images)} anchors, k = {around.about.get('k')}. "
        "The published numbers are of other images, so the comparison is rough. The line is fitted to the published models: "
        "a model above it loses less around the anchors than others of its accuracy."
    )


def _beyond(places: Sequence[Place]) -> str:
    """Which models lie outside the range of the published ones, where the line is extrapolated."""
    published = [place.x for place in places if not place.own]
    outside = [place.name for place in places if place.own and not min(published) <= place.x <= max(published)]
    return f" Outside the range of the published models the line is extrapolated: {', '.join(outside)}." if outside else ""


def _published_table(title: str, table: str, own: Mapping[str, Mapping[str, Measurement]]) -> Table:
    """The report's own models first."""
    mine = [
        [Cell(model), *(compact_cell(numbers[metric]) for metric in AROUND_FRAMES), Cell("this report")]
        for model, numbers in own.items()
    ]
    published = [
        [
            Cell(spoken(row["model"])),
            *(published_cell(row[column]) for column in AROUND_FRAMES.values()),
            Cell("published"),
        ]
        for row in load_table(table)
    ]
    heads = [Column("Model"), *(Column(metric_info(metric).title, True) for metric in AROUND_FRAMES), Column("From")]
    return Table(title, heads, [*mine, *published])


def temporal_headlines(page: Page) -> list[str]:
    """Anchor accuracy and pm-k accuracy of each model, in a sentence."""
    sentences = []
    for found in by_subject(page.results.measurements).values():
        for anchor in named(found, "anchor_accuracy"):
            for around in at_largest_k(found):
                if math.isfinite(anchor.value) and math.isfinite(around.value):
                    share = opened(page.subject(anchor.about), of_hundred(anchor.value))
                    still = _still(anchor.value, around.value)
                    within = f"every frame within {around.about['k']} of them"
                    behind = evidence(around) if around.ends else f"{around.convention['clips']}, so no CI"
                    sentences.append(f"{share} anchor frames are classified correctly, {still} on {within} ({behind}).")
    return sentences


def _still(anchor: float, around: float) -> str:
    """The second share beside the first.

    >>> _still(0.85, 0.6), _still(0.85, 0.849), _still(0.5, 0.0)
    ('but only about 60', 'and as many', 'but none')
    """
    before, after = (per_hundred(share).lower() for share in (anchor, around))
    if before == after:
        return "and as many"
    return f"{'but only' if 0 < around < anchor else 'but' if around < anchor else 'and'} {after}"


SECTION = SectionMaker(
    NAMES,
    draw_temporal,
    headlines=temporal_headlines,
    key_numbers=("anchor_accuracy", "pm_k_accuracy"),
    numbers=at_largest_k,
)
