"""How the models do on hard natural photos, and whether they notice what is none of their classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reference import load_table
from shiftproof.reports.by_model import choices, columns_table
from shiftproof.reports.detector_names import written
from shiftproof.reports.page import Page, by_images, curves_named, model_of, models_of, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.published import among_imagenet_a_o, published_cell
from shiftproof.reports.response_rates import response_rates
from shiftproof.reports.standings import detector_of
from shiftproof.reports.tables import curve_table
from shiftproof.reports.words import count
from shiftproof.types import Curve, Finding, Measurement

HARD = (
    "imagenet_a_accuracy",
    "imagenet_a_top5_accuracy",
    "ordinary_accuracy",
    "ordinary_top5_accuracy",
    "imagenet_a_calibration_error",
    "imagenet_a_aurra",
)
NAMES = frozenset({*HARD, "imagenet_o_aupr", "imagenet_a_response"})


def draw_natural_adversarial(findings: Sequence[Finding], page: Page) -> Section:
    """The numbers, then where the models stand among what was published, then accuracy on the surest answers."""
    hard = [one for name in HARD for one in named(findings, name)]
    novel = named(findings, "imagenet_o_aupr")
    several = ["model"] if len(models_of(findings)) > 1 else []
    tables: list[Part] = []
    if hard:
        tables.append(columns_table("Photos that models fail on", hard, [*several, "image_set", "scored"]))
    if novel:
        tables.append(_novel_table(novel, [*several, "image_set", "inside", "detector"]))
    parts = [
        *tables,
        *choices("How these numbers were made", [*hard, *novel]),
        *among_imagenet_a_o([*hard, *novel]),
        *(_response(curves, page) for curves in by_images(_curves(findings)).values()),
        *([_techniques()] if hard else []),
    ]
    lead = "Photos that were chosen because models fail on them, and photos of things that no class is for."
    return Section("natural-adversarial", "Hard natural photos", lead, parts)


def _novel_table(novel: Sequence[Measurement], keys: Sequence[str]) -> Table:
    """AUPR by detector, and what it is to be held against."""
    in_print = [dataclasses.replace(one, about={**one.about, "detector": written(detector_of(one))}) for one in novel]
    blind = dict.fromkeys(one.convention["blind"] for one in novel if "blind" in one.convention)
    note = f"One that sees nothing reaches the share of novel photos, {' or '.join(blind)}." if blind else ""
    return dataclasses.replace(columns_table("Photos of no known class", in_print, keys), note=note)


def _techniques() -> Table:
    """What ways of training did for one network on the published photos."""
    rows = [
        [Cell(row["technique"]), published_cell(row["imagenet_a_accuracy"]), Cell(row["source"])]
        for row in load_table("imagenet_a_augmentations")
    ]
    return Table(
        "Published: what ways of training do on ImageNet-A",
        [Column("A ResNet-50 with"), Column(meaning_of("imagenet_a_accuracy").title, True), Column("From")],
        rows,
        note="Of the 7,500 published photos, scored among their 200 classes.",
        folded=True,
    )


def _curves(findings: Sequence[Finding]) -> list[Curve]:
    """Those of the first way of scoring; the numbers of the others stand in the table."""
    curves = curves_named(findings, "imagenet_a_response")
    return [one for one in curves if one.about.get("scored") == curves[0].about.get("scored")]


def _response(curves: Sequence[Curve], page: Page) -> Chart:
    on = f" on {curves[0].about.get('image_set')}" if len(page.image_sets) > 1 else ""
    title = f"Accuracy on the surest answers{on}"
    names = [model_of(curve) for curve in curves]
    spec = response_rates(curves, names, description=f"{title}, against the share of images answered: {', '.join(names)}.")
    note = f"From the surest photos alone to all {count(curves[0].images)}. Flat: confidence does not tell right from wrong."
    return Chart(title, spec, curve_table(title, curves, names), note, half=True)
