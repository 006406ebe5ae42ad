"""One's own models among published ones on ImageNet and a natural shift of it, by training family."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.layout import published_dataset
from shiftproof.metrics.published import (
    BASELINE_FAMILY,
    FAMILIES,
    PublishedModel,
    Trend,
    among,
    published_models,
    trend_at,
    trends,
)
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, evidence, figure, images
from shiftproof.reports.charts import COLOURS, NARROW, SHAPES, Spec, between, by_series, channel, start
from shiftproof.reports.page import model_of, models_of
from shiftproof.reports.parts import Cell, Chart, Column, Table
from shiftproof.reports.tables import compact_cell, order_of
from shiftproof.reports.words import kept_together
from shiftproof.studies.accuracy.shifts import IMAGENET, NATURAL_SHIFTS
from shiftproof.types import Measurement

SHOWN = ORIGINAL, SHIFTED, ROBUSTNESS = "imagenet_accuracy", "top1_accuracy", "shift_effective_robustness"
FIRST_SHIFT = "imagenet-v2"
"""What is drawn upwards where a model was measured on ImageNet alone."""
Accuracies: TypeAlias = NDArray[np.floating]
"""Shares, (models,)."""
LEFT_OUT = 0.02
"""Share of the least accurate models of the baseline family that axes need not reach."""
HEIGHT = 420
TREND_POINTS = 40
OWN_SHAPES = SHAPES[2:]


def among_published(published: str, found: Sequence[Measurement]) -> list[Chart]:
    """The chart of the models of one published dataset, from their numbers on it; none where they do not compare."""
    own = {model: _numbers(published, found, model) for model in models_of(found)}
    own = {model: numbers for model, numbers in own.items() if numbers}
    shift = FIRST_SHIFT if published == IMAGENET else published
    if not own or shift not in NATURAL_SHIFTS:
        return []
    others = published_models(SHIFTED, shift)
    title = f"Among published models: {published_dataset(published).title}"
    note = kept_together(f"{_note(shift, others)} {' '.join(_standing(published, own))}")
    return [Chart(title, _spec(title, shift, own, others), _table(title, shift, own, others), note)]


def _numbers(published: str, found: Sequence[Measurement], model: str) -> dict[str, Measurement]:
    """What is known of one model, by metric: its accuracy on ImageNet itself is the original one."""
    numbers = {one.metric: one for one in found if model_of(one) == model}
    if not (SHIFTED in numbers and numbers[SHIFTED].as_published):
        return {}
    return {ORIGINAL: numbers[SHIFTED]} if published == IMAGENET else numbers


def _baseline(models: Sequence[PublishedModel]) -> list[PublishedModel]:
    return [one for one in models if one.family == BASELINE_FAMILY]


def _across(models: Sequence[PublishedModel]) -> Accuracies:
    return np.array([one.accuracy for one in models], float)


def _up(models: Sequence[PublishedModel]) -> Accuracies:
    return np.array([one.value for one in models], float)


def _spec(title: str, shift: str, own: Mapping[str, Mapping[str, Measurement]], others: Sequence[PublishedModel]) -> Spec:
    ends = [
        _ends(values, baseline, [end for numbers in own.values() if name in numbers for end in _reach(numbers[name])])
        for name, values, baseline in zip(
            (ORIGINAL, SHIFTED),
            (_across(others), _up(others)),
            (_across(_baseline(others)), _up(_baseline(others))),
            strict=True,
        )
    ]
    drawn = _drawn(others, ends)
    percent = {"labelExpr": "datum.value + ' %'"}
    x = channel("x", f"Accuracy on {published_dataset(IMAGENET).title}", between(ends[0]), percent)
    x["axis"]["tickCount"] = {"expr": f"{NARROW} ? 3 : 5"}
    y = channel("y", f"Accuracy on {published_dataset(shift).title}", between(ends[1]), percent)
    said = "; ".join(f"{model}: {_said(numbers)}" for model, numbers in own.items())
    return {
        **start(f"{title}. {said}.", []),
        "height": HEIGHT,
        "layer": [
            *(_family(name, [one for one in drawn if one.family == name], x, y) for name in FAMILIES),
            *(_trend(part, ends[0], x, y) for part in trends(shift)),
            *_own(own, x, y),
        ],
    }


def _ends(every: Accuracies, baseline: Accuracies, own: Sequence[float]) -> tuple[float, float]:
    """Percent at both ends of an axis, in steps of five: a few models far below all others are left out."""
    low, high = min([float(np.quantile(baseline, LEFT_OUT)), *own]), max([float(every.max()), *own])
    return max(0.0, 5 * math.floor(20 * low)), min(100.0, 5 * math.ceil(20 * high))


def _reach(number: Measurement) -> tuple[float, ...]:
    return (number.value, *(number.ends or ()))


def _drawn(models: Sequence[PublishedModel], ends: Sequence[tuple[float, float]]) -> list[PublishedModel]:
    (left, _), (bottom, _) = ends
    return [one for one in models if one.accuracy is not None and 100 * one.accuracy >= left and 100 * one.value >= bottom]


def _family(name: str, models: Sequence[PublishedModel], x: Spec, y: Spec) -> Spec:
    """The points of one family; in columns, because a thousand rows would repeat their keys a thousand times."""
    columns = {
        "x": [round(100 * (one.accuracy or 0), 1) for one in models],
        "y": [round(100 * one.value, 1) for one in models],
        "name": [one.name for one in models],
    }
    colour, shape = by_series(FAMILIES, COLOURS), by_series(FAMILIES, SHAPES)
    for one in (colour, shape):
        one["legend"] = {"columns": {"expr": f"{NARROW} ? 1 : 3"}}
    tooltip = [
        {"field": "name", "title": "model"},
        {"field": "series", "title": "trained on"},
        {"field": "x", "title": "ImageNet, %"},
        {"field": "y", "title": "shifted, %"},
    ]
    return {
        "data": {"values": [{**columns, "series": name}]},
        "transform": [{"flatten": list(columns)}],
        "mark": {"type": "point", "filled": True, "size": 16, "opacity": 0.6},
        "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip},
    }


def _trend(trend: Trend, ends: tuple[float, float], x: Spec, y: Spec) -> Spec:
    """A line on probit axes, which bends on these."""
    across = np.linspace(max(ends[0] / 100, trend.low, 0.001), min(ends[1] / 100, trend.high, 0.999), TREND_POINTS)
    rows = [
        {"x": round(100 * one, 2), "y": round(100 * two, 2)}
        for one, two in zip(across.tolist(), trend.at(across).tolist(), strict=True)
    ]
    mark = {"type": "line", "color": "var(--ink)", "strokeWidth": 1.5, "clip": True}
    return {"data": {"values": rows}, "mark": mark, "encoding": {"x": x, "y": y}}


def _own(own: Mapping[str, Mapping[str, Measurement]], x: Spec, y: Spec) -> list[Spec]:
    """One's own models as large marks with their CIs; a dashed line where only one of the two accuracies is known."""
    layers: list[Spec] = []
    ink, rule = "var(--ink)", {"type": "rule", "strokeWidth": 3, "opacity": 0.6, "color": "var(--ink)"}
    for place, (model, numbers) in enumerate(own.items()):
        row: Spec = {"name": model, "tip": _said(numbers)}
        for axis, metric in (("x", ORIGINAL), ("y", SHIFTED)):
            if metric in numbers:
                row[axis] = round(100 * numbers[metric].value, 2)
                low, high = numbers[metric].ends or (numbers[metric].value,) * 2
                row |= {f"{axis}_low": round(100 * low, 2), f"{axis}_high": round(100 * high, 2)}
        data = {"data": {"values": [row]}}
        tooltip = [{"field": "name", "title": "model"}, {"field": "tip", "title": "numbers"}]
        left = "x" in row and (row["x"] - x["scale"]["domain"][0]) > 0.4 * (
            x["scale"]["domain"][1] - x["scale"]["domain"][0]
        )
        label = {"align": "right" if left else "left", "dx": -8 if left else 8, "dy": -10 - 14 * place}
        if {"x", "y"} <= row.keys():
            mark = {"type": "point", "filled": True, "size": 170, "color": ink, "stroke": "var(--card)", "opacity": 1}
            mark["shape"] = OWN_SHAPES[place % len(OWN_SHAPES)]
            layers += [
                {**data, "mark": rule, "encoding": {"x": {**x, "field": "x_low"}, "x2": {"field": "x_high"}, "y": y}},
                {**data, "mark": rule, "encoding": {"x": x, "y": {**y, "field": "y_low"}, "y2": {"field": "y_high"}}},
                {**data, "mark": mark, "encoding": {"x": x, "y": y, "tooltip": tooltip}},
                *_labels(data, label, {"x": x, "y": y}),
            ]
            continue
        known, other = ("x", {"y": {"value": 0}}) if "x" in row else ("y", {"x": {"value": 0}})
        label |= {"dy": 12 + 14 * place} if "x" in row else {"dy": -8}
        along = {known: x if known == "x" else y}
        dashed = {"type": "rule", "color": ink, "strokeDash": [5, 3], "strokeWidth": 1.5}
        layers += [
            {**data, "mark": dashed, "encoding": {**along, "tooltip": tooltip}},
            *_labels(data, label, {**along, **other}),
        ]
    return layers


def _labels(data: Spec, place: Spec, at: Spec) -> list[Spec]:
    """The name of a model, on a ground of its own among a thousand points."""
    text: Spec = {"type": "text", "fontWeight": 650, "limit": {"expr": f"{NARROW} ? 120 : 320"}, **place}
    ground = {**text, "color": "var(--card)", "stroke": "var(--card)", "strokeWidth": 4, "opacity": 0.85}
    encoding = {**at, "text": {"field": "name"}}
    return [{**data, "mark": mark, "encoding": encoding} for mark in (ground, {**text, "color": "var(--ink)"})]


def _said(numbers: Mapping[str, Measurement]) -> str:
    return ", ".join(
        f"{metric_info(name).title} {figure(numbers[name].value, metric_info(name).unit)}"
        for name in SHOWN
        if name in numbers
    )


def _note(shift: str, others: Sequence[PublishedModel]) -> str:
    size = published_dataset(shift).images
    version = ", matched frequency" if shift == "imagenet-v2" else ""
    parts = trends(shift)
    fits = " and ".join(f"{part.line.r_squared:.2f}" for part in parts)
    knee = f", in two parts, below and above {figure(parts[1].low, 'share')} on ImageNet" if len(parts) > 1 else ""
    return (
        f"{count(len(others))} published models of timm and, zero-shot, of OpenCLIP, by what they were trained on; "
        f"{published_dataset(shift).title}{version}, {count(size or 0)} images. The curve is the probit trend of the "
        f"{count(sum(len(part.models) for part in parts))} trained on {BASELINE_FAMILY} alone{knee} (R² {fits}): effective "
        "robustness is the distance above it (Taori et al., 2020). Models far below all others are not drawn."
    )


def _standing(published: str, own: Mapping[str, Mapping[str, Measurement]]) -> list[str]:
    """How many published models are less accurate, and what is lacking for a point."""
    told = []
    for model, numbers in own.items():
        found = numbers[ORIGINAL if published == IMAGENET else SHIFTED]
        every, alike = (among(SHIFTED, published, found.value, family=family) for family in (None, BASELINE_FAMILY))
        if every and alike:
            told.append(
                f"{model}: more accurate than {figure(every.below, 'share')} of all and {figure(alike.below, 'share')} of "
                f"those trained on {BASELINE_FAMILY}."
            )
        if found.images < (published_dataset(published).images or 0):
            told.append(f"It was measured on {images(found.images)} alone, so the comparison is rough.")
        if ROBUSTNESS in numbers:
            one = numbers[ROBUSTNESS]
            told.append(f"Its effective robustness is {figure(one.value, 'points')} ({evidence(one)}).")
    if published != IMAGENET and any(ORIGINAL not in numbers for numbers in own.values()):
        told.append("For effective robustness, name ImageNet validation as --clean-images, or give --imagenet-accuracy.")
    return told


def _table(title: str, shift: str, own: Mapping[str, Mapping[str, Measurement]], others: Sequence[PublishedModel]) -> Table:
    """One's own models, then the medians of each family."""
    mine = [
        [Cell(model), Cell("1", 1), *(compact_cell(numbers.get(name)) for name in SHOWN)] for model, numbers in own.items()
    ]
    for family in FAMILIES:
        models = [one for one in others if one.family == family]
        across, up = _across(models), _up(models)
        expected = np.array([float(trend_at(shift, one).at(np.array(one))) for one in across.tolist()])
        medians = [float(np.median(values)) for values in (across, up, up - expected)]
        cells = [
            Cell(figure(value, metric_info(name).unit), order_of(value)) for name, value in zip(SHOWN, medians, strict=True)
        ]
        mine.append([Cell(f"{family}, median"), Cell(count(len(models)), len(models)), *cells])
    heads = ["Accuracy on ImageNet", f"Accuracy on {published_dataset(shift).title}", "Effective robustness"]
    return Table(title, [Column("Models"), Column("Number", True), *(Column(head, True) for head in heads)], mine)
