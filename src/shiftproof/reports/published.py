"""One's own models as points among the published ones, and in plain words how far the two can be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reference import load_table
from shiftproof.reports.label_places import Place
from shiftproof.reports.landscape import landscape
from shiftproof.reports.page import model_of, models_of, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Table
from shiftproof.reports.tables import compact_cell, order_of
from shiftproof.reports.words import count, figure, in_a_line
from shiftproof.types import Measurement

IMAGENET_C = {"clean_error": "clean_error", "mean_corruption_error": "mce", "relative_mean_corruption_error": "relative_mce"}
IMAGENET_P = {"mean_flip_rate": "mfr", "mean_top5_distance_ratio": "mt5d"}
IMAGENET_A_O = {"imagenet_a_accuracy": "imagenet_a_accuracy", "imagenet_o_aupr": "imagenet_o_aupr"}
"""Metrics, and the columns of the published tables that hold them."""


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
    return [_chart(title, "imagenet_c_models", IMAGENET_C, overall, note=f"{note}{_flattered(ratios)}")]


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
        notes.insert(0, f"For {lacking} give a baseline (--baseline) that changes its answer under every perturbation here.")
    return [_chart(title, "imagenet_p_models", IMAGENET_P, overall, note=f"{' '.join(notes)}{_flattered(rates)}")]


def _flattered(ratios: Sequence[Measurement]) -> str:
    """Whom the published means flatter, because part of the test was part of training."""
    seen = {model_of(one): one.convention.get("seen in training") for one in ratios}
    told = [f"{model} ({names})" for model, names in seen.items() if names]
    return f" Trained with part of the test, which flatters them here: {', '.join(told)}." if told else ""


def among_imagenet_a_o(overall: Sequence[Measurement]) -> list[Part]:
    """Accuracy on ImageNet-A against AUPR on ImageNet-O; where the first alone can be had, it is marked.

    Published numbers are of 200 competing classes and of the highest probability, so these alone are placed.
    """
    found = [one for name in IMAGENET_A_O for one in named(overall, name) if _as_in_a_o(one)]
    if not found:
        return []
    first = {one.metric: one for one in reversed(found)}
    counted = [f"{in_a_line(meaning_of(name).title)}: {count(first[name].images)}" for name in IMAGENET_A_O if name in first]
    note = (
        "Published: 7,500 photos of ImageNet-A; 2,000 of ImageNet-O among 10,000 others, where a blind AUPR is 16.7 %. "
        f"Images here, {', '.join(counted)}. Where they are not the published ones, the comparison is rough."
    )
    return [_chart("Among published models: ImageNet-A and -O", "imagenet_a_o_models", IMAGENET_A_O, found, note=note)]


def _as_in_a_o(found: Measurement) -> bool:
    detector, scored = str(found.about.get("detector", "msp")), str(found.about.get("scored", ""))
    return detector == "msp" and not scored.startswith("all ")


def _chart(title: str, table: str, columns: Mapping[str, str], overall: Sequence[Measurement], *, note: str) -> Chart:
    x_metric, y_metric = list(columns)[:2]
    own = {model: _numbers(overall, model) for model in models_of(overall)}
    places = [
        Place(row["model"], float(row[columns[x_metric]]) / 100, float(row[columns[y_metric]]) / 100, _told(row, columns))
        for row in load_table(table)
    ]
    both = {model: numbers for model, numbers in own.items() if {x_metric, y_metric} <= set(numbers)}
    places += [
        Place(
            model,
            numbers[x_metric].value,
            numbers[y_metric].value,
            _said({name: figure(numbers[name].value, "share") for name in columns if name in numbers}),
            own=True,
            x_interval=numbers[x_metric].interval,
            y_interval=numbers[y_metric].interval,
        )
        for model, numbers in both.items()
    ]
    marks = [
        Place(model, numbers[x_metric].value, 0.0, "", own=True, x_interval=numbers[x_metric].interval)
        for model, numbers in own.items()
        if x_metric in numbers and model not in both
    ]
    listed = "; ".join(f"{place.name}: {place.detail}" for place in [place for place in places if place.own] or places)
    spec = landscape(
        places,
        x_title=in_a_line(meaning_of(x_metric).title),
        y_title=in_a_line(meaning_of(y_metric).title),
        x_marks=marks,
        description=f"{title}. {listed}.",
    )
    return Chart(title, spec, _figures(title, table, columns, overall), note)


def _figures(title: str, table: str, columns: Mapping[str, str], overall: Sequence[Measurement]) -> Table:
    """One's own models first."""
    numbers = [_numbers(overall, model) for model in models_of(overall)]
    own = [
        [Cell(model), *(compact_cell(found.get(metric)) for metric in columns), Cell(_behind(found, columns))]
        for model, found in zip(models_of(overall), numbers, strict=True)
    ]
    published = [
        [Cell(row["model"]), *(published_cell(row[column]) for column in columns.values()), Cell(row["source"])]
        for row in load_table(table)
    ]
    heads = [Column("Model"), *(Column(meaning_of(metric).title, True) for metric in columns), Column("From")]
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
    return ", ".join(f"{meaning_of(name).title} {value}" for name, value in figures.items())


def _numbers(overall: Sequence[Measurement], model: str) -> dict[str, Measurement]:
    """The first number of each metric, which is the one of the first difficulty."""
    return {one.metric: one for one in reversed(overall) if model_of(one) == model}


def foreign_baseline(overall: Sequence[Measurement]) -> str:
    """Why numbers in multiples of another model's say nothing beside those in multiples of AlexNet's, if any are."""
    told = {one.convention.get("baseline", "AlexNet") for one in overall}
    others = sorted(baseline for baseline in told if not _is_alexnet(baseline))
    if not others:
        return ""
    return f"numbers here are in multiples of {' and '.join(others)}, published ones of AlexNet (--baseline alexnet)."


def _placeable(overall: Sequence[Measurement]) -> list[Measurement]:
    return [one for one in overall if _is_alexnet(one.convention.get("baseline", "AlexNet"))]


def _is_alexnet(baseline: str) -> bool:
    """AlexNet's published numbers, or a model of that name run here."""
    return "alexnet" in baseline.casefold()


def _comparable(found: Sequence[Measurement], published_on: str) -> str:
    """What the published numbers stand for, and what is different here."""
    convention = found[0].convention
    baseline = convention.get("baseline", "not named")
    choices = [f"{key} {convention[key]}" for key in ("output", "frost pictures") if key in convention]
    here = "; ".join([f"baseline {baseline}", f"{count(found[0].images)} images", *choices])
    rough = "" if is_published(baseline) else " The images, the baseline or both differ, so the comparison is rough."
    return f"Published: {published_on}, baseline AlexNet. Here: {here}.{rough}"


def is_published(baseline: str) -> bool:
    """Whether the studies found that AlexNet's published numbers belong to these images.

    >>> is_published("AlexNet's published errors on these images")
    True
    >>> is_published("AlexNet's published errors, which are of files saved as jpeg85"), is_published("squeezenet")
    (False, False)
    """
    return baseline.startswith("AlexNet") and baseline.endswith(("on these images", "on these videos"))
