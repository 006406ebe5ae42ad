"""The report's section on hard natural photos: accuracy on ImageNet-A, AUPR on ImageNet-O."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, evidence
from shiftproof.reference import load_table
from shiftproof.reports.page import Page, by_images, curves_named, model_of, models_of, named
from shiftproof.reports.parts import Cell, Chart, Column, Part, Section, Table
from shiftproof.reports.published import among_imagenet_a_o, published_cell, response_rates
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table, curve_table
from shiftproof.reports.words import of_hundred, opened
from shiftproof.studies.ood.findings import detector_of, written
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
    """The numbers, then where the models stand among what was published, then response-rate accuracy."""
    hard = [one for name in HARD for one in named(findings, name)]
    novel = named(findings, "imagenet_o_aupr")
    several = ["model"] if len(models_of(findings)) > 1 else []
    tables: list[Part] = []
    if hard:
        tables.append(columns_table("Adversarially filtered photos", hard, [*several, "dataset", "scored"]))
    if novel:
        tables.append(_novel_table(novel, [*several, "dataset", "id", "ood_detector"]))
    details: list[Part] = [
        *(_response(curves, page) for curves in by_images(_curves(findings)).values()),
        *([_techniques()] if hard else []),
    ]
    among = among_imagenet_a_o([*hard, *novel])
    lead = "Adversarially filtered photos (as ImageNet-A), and OOD photos (as ImageNet-O)."
    main, details = (among, [*tables, *details]) if among else (tables, details)
    return Section("natural-adversarial", "Hard natural photos", lead, details, main, _answer(hard, page))


def _answer(hard: Sequence[Measurement], page: Page) -> list[str]:
    """Accuracy of each model on adversarially filtered photos, by the first way of scoring."""
    found = named(hard, "imagenet_a_accuracy")
    return [
        f"{opened(page.subject(one.about), of_hundred(one.value))} adversarially filtered photos are classified correctly "
        f"({evidence(one)})."
        for one in found
        if one.about.get("scored") == found[0].about.get("scored")
    ]


def _novel_table(novel: Sequence[Measurement], keys: Sequence[str]) -> Table:
    """AUPR by detector, and that of chance."""
    in_print = [dataclasses.replace(one, about={**one.about, "ood_detector": written(detector_of(one))}) for one in novel]
    blind = dict.fromkeys(one.convention["blind"] for one in novel if "blind" in one.convention)
    note = f"Chance is the share of OOD photos, {' or '.join(blind)}." if blind else ""
    return dataclasses.replace(columns_table("OOD photos", in_print, keys), note=note)


def _techniques() -> Table:
    """Accuracy of one network by training method, on the published photos."""
    rows = [
        [Cell(row["technique"]), published_cell(row["imagenet_a_accuracy"]), Cell(row["source"])]
        for row in load_table("imagenet_a_augmentations")
    ]
    return Table(
        "Published: training methods on ImageNet-A",
        [Column("A ResNet-50 with"), Column(metric_info("imagenet_a_accuracy").title, True), Column("From")],
        rows,
        note="Of the 7,500 published photos, scored among their 200 classes.",
        folded=True,
    )


def _curves(findings: Sequence[Finding]) -> list[Curve]:
    """Those of the first way of scoring; the numbers of the others stand in the table."""
    curves = curves_named(findings, "imagenet_a_response")
    return [one for one in curves if one.about.get("scored") == curves[0].about.get("scored")]


def _response(curves: Sequence[Curve], page: Page) -> Chart:
    on = f" on {curves[0].about.get('dataset')}" if len(page.datasets) > 1 else ""
    title = f"Response-rate accuracy{on}"
    names = [model_of(curve) for curve in curves]
    spec = response_rates(curves, names, description=f"{title}: accuracy against response rate of {', '.join(names)}.")
    note = (
        f"From the most confident predictions to all {count(curves[0].images)}. "
        "Flat: confidence does not separate correct from wrong predictions."
    )
    return Chart(title, spec, curve_table(title, curves, names), note, half=True)


SECTION = SectionMaker(NAMES, draw_natural_adversarial)
