"""What OOD scores respond to: new classes, covariate shift, misclassification, distance or low-level pixel statistics."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.wording import evidence, figure
from shiftproof.reports.charts import SHAPES
from shiftproof.reports.galleries import picture_under
from shiftproof.reports.heat_map import Heat, RowGroup, heat_map
from shiftproof.reports.page import Page, curves_named, galleries_named, in_columns, named, parts_of_each_set
from shiftproof.reports.parts import Cell, Chart, Column, Folded, Panel, Panels, Part, Section, Table
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import compact_cell, number_cells
from shiftproof.reports.words import kept_together
from shiftproof.studies.ood.charts import auroc_ends, detector_dots, figures_of, legend_of, share_cell, stepped
from shiftproof.studies.ood.findings import (
    CHANCE,
    NEW_CLASS,
    SOURCE,
    DetectorFindings,
    by_model,
    detector_of,
    published_discarded,
    written,
)
from shiftproof.studies.ood.noticed_charts import decomposition, distance_charts, random_failures, random_strips
from shiftproof.studies.ood.scores import ROLE_TITLES
from shiftproof.studies.ood.section import what_is_noticed
from shiftproof.types import Condition, Curve, DatasetRef, Finding, Gallery, Image, Measurement

AS_PUBLISHED = "75 %"
"""The share of new classes that the published numbers reject."""
DISTRIBUTION = "rank_shift_distribution"
SHARES = {"format": ".0%"}
GROUPS = {"correct": "correct predictions", "wrong": "misclassifications", "ood": "new classes"}
BY_SET = {
    "disagreement_by_set": (
        "Largest disagreements of the two detectors, by dataset and direction",
        "Percent: share of ID and OOD images with a lower OOD score.",
    ),
    "score_percentiles": (
        "Images at percentiles of the OOD scores, by dataset",
        "Percent: percentile of the OOD score within the dataset.",
    ),
}
"""Galleries of every set, folded under a title, and what their numbers are."""
MOST_SETS = 8
SMALL_SIDE = 168
"""Pixels: there are many of these pictures."""
NAMES = frozenset(
    {
        "id_accuracy",
        "auroc_correct_id",
        "auroc_misclassified_id",
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
SIDES = ("id", "ood", "shifted")
NEEDED = frozenset({"auroc", "auroc_difference"})
"""Findings of the section before, without which nobody knows which detectors are the best."""
NOT_OF_FEATURES = {"positive", "preset", "picture", "output"}
"""Conventions that do not tell one Fréchet distance from another."""


def draw_what_is_noticed(findings: Sequence[Finding], page: Page) -> Section:
    """Each model in a column: new classes among shifted images, or else trained and random networks; then the rest."""
    ranking = [one for one in page.results.measurements if one.metric in NEEDED]
    every = [*findings, *ranking]
    return Section(
        "noticed",
        "What OOD scores respond to",
        "A high AUROC can have the wrong cause: these analyses show what a score responds to.",
        parts_of_each_set(every, lambda found: in_columns({one.model: _details(one, page) for one in by_model(found)})),
        parts_of_each_set(every, lambda found: in_columns({one.model: _main(one) for one in by_model(found)})),
        what_is_noticed(page),
    )


def _main(found: DetectorFindings) -> list[Part]:
    return with_shifted_id(found)[:1] or random_strips(found)[:1]


def _details(found: DetectorFindings, page: Page) -> list[Part]:
    return [
        *random_strips(found)[0 if with_shifted_id(found) else 1 :],
        *random_failures(found),
        *correct_predictions_discarded(found),
        *decomposition(found),
        *rank_shifts(found),
        *rank_shift_shapes(found),
        *distance_charts(found),
        *_frechet_distances(found),
        *(page.pictures(gallery) for gallery in galleries_named(found.findings, "detector_disagreement")),
        *_set_by_set(found, page),
        *_pairs(found, page),
    ]


def correct_predictions_discarded(found: DetectorFindings) -> list[Part]:
    """A heat map of shares, the published ones beside those of the same detectors."""
    shown = found.numbers("correct_discarded", ood=found.ood)
    if not shown:
        return []
    rejected = str(shown[0].about.get("rejected", "some"))
    shown = [one for one in shown if str(one.about.get("rejected", "some")) == rejected]
    id_sets = list(dict.fromkeys(str(one.about.get("id", "")) for one in shown))
    detectors = list(dict.fromkeys(map(detector_of, shown)))
    published = _published(detectors) if rejected == AS_PUBLISHED else {}
    title = kept_together(f"Correct predictions discarded when {rejected} of {found.ood} is rejected")
    heat = [_heat(one) for one in shown] + [
        Heat(written(name), column, value, f"{figure(value, 'share')} ({SOURCE}, ResNet-50, other images)")
        for name, row in published.items()
        for column, value in row.items()
    ]
    columns = list(dict.fromkeys(column for row in published.values() for column in row))
    blocks = [list(id_sets), *([columns] if columns else [])]
    spec = heat_map(
        heat,
        [RowGroup("Percent of correct predictions", [written(name) for name in detectors])],
        blocks,
        x_title="correct predictions on",
        description=f"{title}, percent. {'; '.join(f'{cell.row} {cell.column} {100 * cell.value:.0f}' for cell in heat)}.",
    )
    note = "A stronger colour: more discarded. CIs: in the data." + (
        f" Right of the gap: published with a ResNet-50 ({SOURCE}), where ImageNet-OOD is rejected; other images than here."
        if columns
        else ""
    )
    return [Chart(title, spec, _figures(title, shown, id_sets, published, columns), note)]


def _heat(found: Measurement) -> Heat:
    tip = f"{figure(found.value, 'share')} ({evidence(found)})"
    return Heat(written(detector_of(found)), str(found.about.get("id", "")), found.value, tip)


def _published(detectors: Sequence[str]) -> dict[str, dict[str, float]]:
    """Under names that no set here has."""
    known = published_discarded()
    return {
        name: {f"published {column}": value for column, value in known[name].items()} for name in detectors if name in known
    }


def _figures(
    title: str,
    shown: Sequence[Measurement],
    id_sets: Sequence[str],
    published: dict[str, dict[str, float]],
    columns: Sequence[str],
) -> Table:
    by_place = {(detector_of(one), str(one.about.get("id", ""))): one for one in shown}
    rows = []
    for detector in dict.fromkeys(map(detector_of, shown)):
        theirs = [published.get(detector, {}).get(column) for column in columns]
        rows.append(
            [
                Cell(written(detector)),
                *(compact_cell(by_place.get((detector, id_set))) for id_set in id_sets),
                *map(share_cell, theirs),
            ]
        )
    heads = [*id_sets, *columns]
    return Table(title, [Column("Detector"), *(Column(head, True) for head in heads)], rows)


def rank_shifts(found: DetectorFindings) -> list[Part]:
    """The best detectors as dots, one for each group of images; all of them in the data."""
    shifts = found.numbers("rank_shift", ood=found.ood)
    if not shifts:
        return []
    few = [name for name in found.few() if name != found.baseline]
    shown = [one for one in shifts if detector_of(one) in few] or shifts
    title = f"Rank shift relative to {written(found.baseline)}"
    return [
        detector_dots(
            title,
            shown,
            x_title="rank shift, percentiles",
            key="group",
            figures=shifts,
            series=list(map(_group, shown)),
            half=False,
            note="Above zero a group ranks higher in OOD score than by the baseline, below zero lower. "
            "Desired: new classes above zero, correct predictions below.",
        )
    ]


def rank_shift_shapes(found: DetectorFindings) -> list[Part]:
    """How the shifts of single images are spread about those means: a drawing for each of the best detectors."""
    few = [name for name in found.few() if name != found.baseline]
    curves = [one for one in curves_named(found.findings, DISTRIBUTION) if detector_of(one) in few]
    if not curves:
        return []
    title = f"Rank shift of each image relative to {written(found.baseline)}"
    top = max(y for curve in curves for y in curve.y)
    names = list(GROUPS.values())
    of_each = {name: [one for one in curves if detector_of(one) == name] for name in few}
    panels = [
        Panel(
            written(name),
            stepped([(_group(one), one) for one in own], names, top, f"{title}: {written(name)}.", ticks=SHARES),
        )
        for name, own in of_each.items()
        if own
    ]
    columns = [f"{written(detector_of(one))}: {_group(one)}" for one in curves]
    note = "Above zero an image ranks higher in OOD score than by the baseline. In percentiles of all images."
    figures = figures_of(title, "Rank shift", curves, columns)
    return [Folded(title, [Panels("Rank shifts", panels, legend_of(names), figures, note)])]


def _group(found: Curve | Measurement) -> str:
    return GROUPS.get(str(found.about.get("group")), str(found.about.get("group", "")))


def with_shifted_id(found: DetectorFindings) -> list[Part]:
    """The AUROC of new classes among unchanged and among shifted images, for the best detectors and the baseline."""
    id_sets = [*found.id_sets[:1], *found.styles]
    told = found.numbers("auroc", goal=NEW_CLASS, ood=found.ood)
    numbers = [one for one in told if one.about.get("id") in id_sets]
    if len(id_sets) < 2 or not numbers:
        return []
    few, drawn = found.few(), id_sets[: len(SHAPES)]
    ordered = sorted(numbers, key=lambda one: id_sets.index(str(one.about.get("id", ""))))
    shown = [one for one in ordered if detector_of(one) in few and one.about.get("id") in drawn]
    shown.sort(key=lambda one: few.index(detector_of(one)))
    title = "New classes among covariate-shifted images"
    left_out = f" {len(id_sets) - len(drawn)} more datasets are in the data." if len(id_sets) > len(drawn) else ""
    return [
        detector_dots(
            title,
            shown,
            x_title=f"AUROC of {found.ood}",
            key="id",
            figures=ordered,
            half=False,
            series=[str(one.about.get("id", "")) for one in shown],
            note="Covariate-shifted images count as ID. A dot at the dashed line: covariate shift scores as "
            f"high as new classes; left of it, higher.{left_out}",
            reference=CHANCE,
            ends=auroc_ends(shown),
        )
    ]


def _set_by_set(found: DetectorFindings, page: Page) -> list[Part]:
    """Galleries of each set, ID and OOD ones before the shifted: of the first few, for each is a screen long."""
    parts: list[Part] = []
    for name, (title, note) in BY_SET.items():
        galleries = galleries_named(found.findings, name)
        ordered = sorted(galleries, key=lambda one: SIDES.index(str(one.about["side"])))
        sets = dict.fromkeys(str(one.about.get("set", "")) for one in ordered)
        shown = list(sets)[:MOST_SETS]
        pictures = [_as_shown(one, page) for key in shown for one in galleries if one.about.get("set") == key]
        beyond = len(sets) - len(shown)
        more = f" {beyond} more datasets are in the results." if beyond > 0 else ""
        how = " Corruptions are applied again to the stored photos." if any(map(_condition, galleries)) else ""
        parts += [Folded(f"{title} ({len(pictures)} galleries)", pictures, f"{note}{how}{more}")] if pictures else []
    return parts


def _as_shown(gallery: Gallery, page: Page) -> Part:
    """Thumbnails under the condition of the gallery's dataset, applied again to the stored photos."""
    about, condition = gallery.about, _condition(gallery)
    detectors = [written(str(about[key])) for key in ("ood_detector", "versus") if key in about]
    by = f"higher OOD score by {' than by '.join(detectors)}" if len(detectors) > 1 else f"by {detectors[0]}"
    role = ROLE_TITLES[str(about["side"])]
    in_print = dataclasses.replace(gallery, title=f"{about['set']} ({role}): {by}")
    return (page if condition is None else _changed(page, condition)).pictures(in_print, long_side=SMALL_SIDE)


def _condition(gallery: Gallery) -> Condition | None:
    """Under which its images were shown to the model."""
    return next((item.condition for item in gallery.items if item.condition), None)


def _changed(page: Page, condition: Condition) -> Page:
    original = page.open_image
    if original is None:
        return page

    def changed(dataset: DatasetRef, key: str) -> Image:
        return picture_under(condition, original(dataset, key), key=key)

    return dataclasses.replace(page, open_image=changed)


def _frechet_distances(found: DetectorFindings) -> list[Part]:
    numbers = named(found.findings, "frechet_distance")
    columns = [Column("Dataset"), Column("Fréchet distance", True), Column("Images", True), Column("How")]
    rows = [
        [Cell(str(one.about.get("set", ""))), value, behind, Cell(_how(one))]
        for one in numbers
        for value, _, behind in [number_cells(one)]
    ]
    note = "Fréchet distance to the feature distribution of the clean ID images; 0 is identical."
    return [Table("Fréchet distance from the ID images", columns, rows, note)] if rows else []


def _how(found: Measurement) -> str:
    """The model of the features, whether there are enough images for them, and the other conventions."""
    return "; ".join(f"{key}: {value}" for key, value in found.convention.items() if key not in NOT_OF_FEATURES)


def _pairs(found: DetectorFindings, page: Page) -> list[Part]:
    note = "Shown in pairs: an OOD image, and the ID image nearest to it."
    return [
        dataclasses.replace(page.pictures(gallery), note=note, abreast=2)
        for gallery in galleries_named(found.findings, "nearest_pairs")
    ]


SECTION = SectionMaker(NAMES, draw_what_is_noticed)
