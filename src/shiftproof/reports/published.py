"""One's own models in a scatter plot of published ones, and whether the two are comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.published import IMAGENET_A_O, IMAGENET_C, IMAGENET_P, PublishedTable
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, figure
from shiftproof.reference import load_table
from shiftproof.reports.charts import PERCENT, SHARE, Spec, banded_lines, channel, curve_rows
from shiftproof.reports.page import model_of, models_of, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.scatter_plot import Place, scatter_plot
from shiftproof.reports.tables import compact_cell, key_title, order_of
from shiftproof.reports.words import in_a_line
from shiftproof.types import Curve, Measurement


def among_imagenet_c(overall: Sequence[Measurement]) -> list[Part]:
    """Clean error against mCE; without a baseline there is no mCE, and clean errors are marked alone."""
    title, foreign = "Among published models: ImageNet-C", foreign_baseline(overall)
    overall = _placeable(overall)
    ratios = named(overall, "mean_corruption_error")
    if not ratios and not named(overall, "clean_error"):
        return []
    missing = "mCE needs a baseline's errors on the same images (--baseline); without them only clean errors can be placed."
    missing = f"Only clean errors can be placed: {foreign}" if foreign else missing
    note = _comparable(ratios, "50,000 images of ImageNet-C") if ratios else missing
    return [_chart(title, IMAGENET_C, overall, note=f"{note}{_flattered(ratios)}")]


def among_imagenet_p(overall: Sequence[Measurement]) -> list[Part]:
    """Mean flip rate against mean top-5 distance; where the one alone can be had, it is marked."""
    if not overall:
        return []
    title, foreign = "Among published models: ImageNet-P", foreign_baseline(overall)
    overall = _placeable(overall)
    rates, distances = named(overall, "mean_flip_rate"), named(overall, "mean_top5_distance_ratio")
    notes = [_comparable(rates or distances, "50,000 photos of ImageNet-P")] if rates or distances else []
    lacking = " and ".join(name for name, found in (("mFR", rates), ("mT5D", distances)) if not found)
    if foreign:
        notes.insert(0, f"None of these models can be placed: {foreign}")
    elif lacking:
        notes.insert(
            0, f"For {lacking} give a baseline (--baseline) with a flip probability above 0 under every perturbation."
        )
    return [_chart(title, IMAGENET_P, overall, note=f"{' '.join(notes)}{_flattered(rates)}")]


def _flattered(ratios: Sequence[Measurement]) -> str:
    """The models that were trained on some of the test corruptions, which makes their means optimistic."""
    seen = {model_of(one): one.convention.get("seen in training") for one in ratios}
    told = [f"{model} ({names})" for model, names in seen.items() if names]
    return f" Trained on some of the test corruptions, so their numbers are optimistic: {', '.join(told)}." if told else ""


def among_imagenet_a_o(overall: Sequence[Measurement]) -> list[Part]:
    """Accuracy on ImageNet-A against AUPR on ImageNet-O; where the first alone can be had, it is marked.

    Published numbers are of 200 classes and the maximum softmax probability, so only such numbers are placed.
    """
    found = [one for name in IMAGENET_A_O.columns for one in named(overall, name) if one.as_published]
    if not found:
        return []
    first = {one.metric: one for one in reversed(found)}
    counted = [
        f"{in_a_line(metric_info(name).title)}: {count(first[name].images)}"
        for name in IMAGENET_A_O.columns
        if name in first
    ]
    note = (
        "Published: 7,500 photos of ImageNet-A; 2,000 of ImageNet-O among 10,000 others, where chance is 16.7 %. "
        f"Images here, {', '.join(counted)}. Where they are not the published ones, the comparison is rough."
    )
    return [_chart("Among published models: ImageNet-A and -O", IMAGENET_A_O, found, note=note)]


def _chart(title: str, table: PublishedTable, overall: Sequence[Measurement], *, note: str) -> Chart:
    columns = table.columns
    x_metric, y_metric = list(columns)[:2]
    own = {model: _numbers(overall, model) for model in models_of(overall)}
    places = [
        Place(row["model"], float(row[columns[x_metric]]) / 100, float(row[columns[y_metric]]) / 100, _told(row, columns))
        for row in load_table(table.name)
    ]
    both = {model: numbers for model, numbers in own.items() if {x_metric, y_metric} <= set(numbers)}
    places += [
        Place(
            model,
            numbers[x_metric].value,
            numbers[y_metric].value,
            _said({name: figure(numbers[name].value, "share") for name in columns if name in numbers}),
            own=True,
            x_interval=numbers[x_metric].ends,
            y_interval=numbers[y_metric].ends,
        )
        for model, numbers in both.items()
    ]
    marks = [
        Place(model, numbers[x_metric].value, 0.0, "", own=True, x_interval=numbers[x_metric].ends)
        for model, numbers in own.items()
        if x_metric in numbers and model not in both
    ]
    listed = "; ".join(f"{place.name}: {place.detail}" for place in [place for place in places if place.own] or places)
    spec = scatter_plot(
        places,
        x_title=in_a_line(metric_info(x_metric).title),
        y_title=in_a_line(metric_info(y_metric).title),
        x_marks=marks,
        description=f"{title}. {listed}.",
    )
    return Chart(title, spec, _figures(title, table, overall), note)


def _figures(title: str, table: PublishedTable, overall: Sequence[Measurement]) -> Table:
    """One's own models first."""
    columns = table.columns
    numbers = [_numbers(overall, model) for model in models_of(overall)]
    own = [
        [Cell(model), *(compact_cell(found.get(metric)) for metric in columns), Cell(_behind(found, columns))]
        for model, found in zip(models_of(overall), numbers, strict=True)
    ]
    published = [
        [Cell(row["model"]), *(published_cell(row[column]) for column in columns.values()), Cell(row["source"])]
        for row in load_table(table.name)
    ]
    heads = [Column("Model"), *(Column(metric_info(metric).title, True) for metric in columns), Column("From")]
    return Table(title, heads, [*own, *published])


def published_cell(text: str) -> Cell:
    """Percent of a published table as a share; a dash where it has none."""
    return Cell(figure(float(text) / 100, "share"), order_of(float(text) / 100)) if text else Cell("–")


def _behind(found: Mapping[str, Measurement], columns: Mapping[str, str]) -> str:
    known = [found[metric] for metric in columns if metric in found]
    return f"this report, {count(known[0].images)} images" if known else "this report"


def _told(row: Mapping[str, str], columns: Mapping[str, str]) -> str:
    return f"{_said({name: f'{row[column]} %' for name, column in columns.items() if row[column]})} ({row['source']})"


def _said(figures: Mapping[str, str]) -> str:
    return ", ".join(f"{metric_info(name).title} {value}" for name, value in figures.items())


def _numbers(overall: Sequence[Measurement], model: str) -> dict[str, Measurement]:
    """The first number of each metric, which is the one of the first difficulty."""
    return {one.metric: one for one in reversed(overall) if model_of(one) == model}


def foreign_baseline(overall: Sequence[Measurement]) -> str:
    """Why numbers normalised by another baseline are not comparable with published ones, if any are."""
    others = sorted({one.baseline.name for one in overall if one.baseline and not one.baseline.alexnet})
    if not others:
        return ""
    return f"numbers here are normalised by {' and '.join(others)}, published ones by AlexNet (--baseline alexnet)."


def _placeable(overall: Sequence[Measurement]) -> list[Measurement]:
    return [one for one in overall if one.baseline is None or one.baseline.alexnet]


def _comparable(found: Sequence[Measurement], published_on: str) -> str:
    """The conventions of the published numbers, and of those here."""
    convention, baseline = found[0].convention, found[0].baseline
    choices = [f"{key_title(key).lower()} {convention[key]}" for key in ("output", "frost pictures") if key in convention]
    name = baseline.name if baseline else "not named"
    here = "; ".join([f"baseline {name}", f"{count(found[0].images)} images", *choices])
    same = baseline is not None and baseline.published and baseline.same_images
    rough = "" if same else " The images, the baseline or both differ, so the comparison is rough."
    return f"Published: {published_on}, baseline AlexNet. Here: {here}.{rough}"


def response_rates(curves: Sequence[Curve], names: Sequence[str], *, description: str) -> Spec:
    """Response-rate accuracy: accuracy on the most confident images, by their share of all.

    A line for each model, with a band for its confidence interval where it has one.
    """
    x = channel("x", curves[0].x_label, SHARE, PERCENT)
    y = channel("y", curves[0].y_label, {"zero": False, "nice": True}, PERCENT)
    rows = [row for curve, name in zip(curves, names, strict=True) for row in _rows(curve, name)]
    return banded_lines(rows, names, x, y, description=description)


def _rows(curve: Curve, name: str) -> list[Spec]:
    kept = curve.counts or (curve.images,) * len(curve.x)
    return [
        {**row, "x_tip": f"{figure(row['x'], 'share')} ({count(images)} images)", "tip": figure(row["y"], "share")}
        for row, images in zip(curve_rows(curve, name), kept, strict=True)
    ]
