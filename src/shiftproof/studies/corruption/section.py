"""The report's section on corruption robustness: errors by corruption and severity, relative to a baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from shiftproof.corruptions import corruption_groups
from shiftproof.metrics.table import metric_info, unseen, with_unseen
from shiftproof.metrics.wording import evidence, figure, images
from shiftproof.reports.charts import legend, small_lines
from shiftproof.reports.galleries import contact_sheet
from shiftproof.reports.heat_map import Heat, RowGroup, heat_map
from shiftproof.reports.page import (
    Page,
    by_subject,
    curves_named,
    galleries_named,
    model_of,
    models_of,
    named,
    parts_of_each_set,
    whole_numbers,
)
from shiftproof.reports.parts import Cell, Chart, Column, Panel, Panels, Part, Section, Table
from shiftproof.reports.published import among_imagenet_c
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import (
    bars,
    chart_of_each_model,
    columns_table,
    curve_table,
    headline_numbers,
    measurement_table,
    with_column,
)
from shiftproof.reports.words import of_hundred, opened, spoken
from shiftproof.types import Curve, Finding, Gallery, Measurement

OVERALL = with_unseen(
    "clean_error",
    "mean_corrupted_error",
    "mean_c_bar_error",
    "relative_corrupted_error",
    "mean_corruption_error",
    "relative_mean_corruption_error",
)
NAMES = frozenset(
    {
        *OVERALL,
        "corrupted_error",
        "corruption_mean_error",
        *with_unseen("group_error"),
        "corruption_error",
        "relative_corruption_error",
        "sampling_error",
        "degradation",
        "fragile_photos",
        "contact_sheet",
        "corruption_loss",
        "corruption_mean_loss",
        "corrupted_overconfidence",
    }
)
BESIDE_ERROR = {"corruption_loss": "Accuracy lost", "corrupted_overconfidence": "Overconfidence"}
"""Numbers of a cell that stand beside its error in the data, each with the title of its column."""
BASELINE = 1.0
"""The ratio to the baseline of a model with the baseline's error."""


def draw_corruption(findings: Sequence[Finding], page: Page) -> Section:
    """A heat map of each model; then the numbers, every corruption, where the models stand among others, and photos."""
    return Section(
        "corruption",
        "Corruptions",
        "Error on the same photos under corruptions of growing severity.",
        parts_of_each_set(findings, lambda found: _details(found, page)),
        parts_of_each_set(findings, _heat_maps),
        corruption_headlines(page),
    )


def _heat_maps(findings: Sequence[Finding]) -> list[Part]:
    return chart_of_each_model("Error by severity", findings, "corrupted_error", _heat_map)


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    overall = [one for name in OVERALL for one in named(findings, name)]
    return [
        *_in_short(overall, named(findings, "sampling_error"), page),
        *_by_group(named(findings, "group_error")),
        *_by_unseen_group(named(findings, "unseen_group_error")),
        *_by_corruption(findings),
        *_degradation(curves_named(findings, "degradation")),
        *among_imagenet_c(overall),
        *_contact_sheets(galleries_named(findings, "contact_sheet"), page),
        *page.pictures_by_model(galleries_named(findings, "fragile_photos")),
    ]


def _in_short(overall: Sequence[Measurement], errors: Sequence[Measurement], page: Page) -> list[Part]:
    """The numbers, and where only some cells were run, the sampling error."""
    tables = headline_numbers("In short", overall, page)
    if not errors or len(models_of(overall)) > 1:
        of_numbers = [
            replace(one, about={**one.about, "number": metric_info(str(one.about["number"])).title})
            for one in errors
            if one.about["number"] in OVERALL
        ]
        left_open = measurement_table(
            "Sampling error", of_numbers, value_title="±, these photos", keys=["model", "number"], note=_BUDGET
        )
        return [*tables, *([left_open] if of_numbers else [])]
    return [_with_sampling_error(table, overall, errors) if isinstance(table, Table) else table for table in tables]


_BUDGET = (
    "Only some cells were run. CIs cover the sampling of photos and of cells; ± is the sampling error from cells that were "
    "not run alone, for exactly these photos."
)


def _with_sampling_error(table: Table, found: Sequence[Measurement], errors: Sequence[Measurement]) -> Table:
    """A further column for a table that has a row for each of these measurements; none where every cell was run."""
    values = {_number_and_about(one, str(one.about["number"])): one.value for one in errors}
    wanted = [values.get(_number_and_about(one, one.metric)) for one in found]
    if not any(wanted):
        return table
    cells = [Cell("–") if value is None else Cell(f"± {figure(value, 'share')}", value) for value in wanted]
    rows = [[*row, cell] for row, cell in zip(table.rows, cells, strict=True)]
    columns = [*table.columns, Column("Sampling error, these photos", True)]
    return replace(table, columns=columns, rows=rows, note=" ".join(filter(None, [table.note, _BUDGET])))


def _number_and_about(found: Measurement, number: str) -> tuple[str, frozenset[tuple[str, object]]]:
    return number, frozenset((key, value) for key, value in found.about.items() if key != "number")


def _heat_map(findings: Sequence[Finding], title: str) -> Chart:
    clean, cells = named(findings, "clean_error"), named(findings, "corrupted_error")
    means = named(findings, "corruption_mean_error")
    names = list(dict.fromkeys(_corruption(one) for one in cells))
    severities = sorted({int(one.about.get("severity", 0)) for one in cells})
    heat = [
        *(Heat(spoken(name), "clean", one.value, _tip(one)) for one in clean for name in names),
        *(Heat(spoken(_corruption(one)), str(one.about.get("severity", 0)), one.value, _tip(one)) for one in cells),
        *(Heat(spoken(_corruption(one)), "mean", one.value, _tip(one)) for one in means if _corruption(one) in names),
    ]
    blocks = [["clean"] if clean else [], [str(severity) for severity in severities], ["mean"] if means else []]
    spec = heat_map(
        heat,
        _row_groups(names, named(findings, "group_error")),
        [block for block in blocks if block],
        x_title="severity",
        description=f"{title}, error in percent. {_described(heat)}",
    )
    shown, keys = [*clean, *cells], ("corruption", "severity")
    figures = _with_sampling_error(
        measurement_table(title, shown, value_title="Error", keys=keys), shown, named(findings, "sampling_error")
    )
    for metric, column in BESIDE_ERROR.items():
        figures = with_column(figures, column, shown, named(findings, metric), keys)
    note = f"Error on {images(cells[0].images)}, in percent; a stronger colour is a higher error. CIs: in the data."
    return Chart(title, spec, figures, note)


def _row_groups(names: Sequence[str], group_errors: Sequence[Measurement]) -> list[RowGroup]:
    means = {str(one.about.get("group", "")): f": mean {figure(one.value, 'share')}" for one in group_errors}
    return [
        RowGroup(f"{group.capitalize()}{means.get(group, '')}", [spoken(name) for name in members])
        for group, members in grouped(names).items()
    ]


def _described(heat: Sequence[Heat]) -> str:
    rows: dict[str, list[str]] = {}
    for cell in heat:
        rows.setdefault(cell.row, []).append(f"{cell.column} {100 * cell.value:.0f}")
    return " ".join(f"{row}: {', '.join(cells)}." for row, cells in rows.items())


def _by_corruption(findings: Sequence[Finding]) -> list[Part]:
    """Mean errors, and the same in percent of the baseline's."""
    means, ratios = named(findings, "corruption_mean_error"), named(findings, "corruption_error")
    keys = ["corruption", *(["model"] if len(models_of([*means, *ratios])) > 1 else [])]
    parts: list[Part] = []
    if means:
        title, x_title = "Mean error by corruption", "error, mean over all severities"
        figures = columns_table(title, [*means, *named(findings, "corruption_mean_loss")], keys)
        parts.append(bars(title, means, "corruption", x_title=x_title, figures=figures, half=bool(ratios)))
    if ratios:
        relative = named(findings, "relative_corruption_error")
        parts.append(
            bars(
                "Corruption error (CE)",
                ratios,
                "corruption",
                x_title="error in percent of the baseline's",
                figures=columns_table("Corruption error", [*ratios, *relative], keys),
                note=f"100 % is the baseline's error: {baseline_name(ratios[0])}."
                + (" Relative CE, of the increase over the clean error: in the data." if relative else ""),
                reference=BASELINE,
                half=bool(means),
            )
        )
    return parts


def _by_group(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    note = "Means over the corruptions of a group and all severities."
    return [bars("Error by group", found, "group", x_title="error", note=note)]


def _by_unseen_group(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    note = "The same without corruptions that a model declares to have been trained with, of groups that have some."
    return [bars("Error by group, unseen corruptions", found, "group", x_title="error", note=note)]


def _degradation(curves: Sequence[Curve]) -> list[Part]:
    if not curves:
        return []
    series = models_of(curves)
    panels = []
    for name in (name for members in grouped(map(_corruption, curves)).values() for name in members):
        drawn = [curve for curve in curves if _corruption(curve) == name]
        description = f"Error under {spoken(name)} by severity: {'; '.join(_path(curve) for curve in drawn)}."
        panels.append(Panel(spoken(name), small_lines(drawn, list(map(model_of, drawn)), series, description=description)))
    names = [
        " · ".join(filter(None, [spoken(_corruption(curve)), *([model_of(curve)] * (len(series) > 1))])) for curve in curves
    ]
    figures = curve_table("Error as severity grows", curves, names)
    clean = "; severity 0 is the clean image" if 0 in curves[0].x else ""
    note = f"Error on {images(curves[0].images)}{clean}. Bands: 95 % CI."
    return [Panels("Error as severity grows", panels, legend(series), figures, note)]


def _path(curve: Curve) -> str:
    return f"{model_of(curve)} {', '.join(f'{100 * y:.0f} %' for y in curve.y)}".strip()


def _contact_sheets(galleries: Sequence[Gallery], page: Page) -> list[Part]:
    """One for all models: the same photo looks the same for each, and half a megabyte is enough."""
    return [contact_sheet(gallery, page, with_captions=len(galleries) == 1) for gallery in galleries[:1]]


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """Corruptions by group, all in the order of the paper; those it has not come last.

    >>> grouped(["fog", "our_own", "shot_noise"])
    {'noise': ['shot_noise'], 'weather': ['fog'], 'others': ['our_own']}
    """
    wanted = list(dict.fromkeys(names))
    known = {group: [name for name in members if name in wanted] for group, members in corruption_groups().items()}
    others = [name for name in wanted if not any(name in members for members in known.values())]
    return {group: members for group, members in {**known, "others": others}.items() if members}


def _corruption(finding: Finding) -> str:
    return str(finding.about.get("corruption", ""))


def _tip(found: Measurement) -> str:
    return f"{figure(found.value, 'share')} ({evidence(found)})"


def corruption_headlines(page: Page) -> list[str]:
    """Error of each model on corrupted and on clean images."""
    sentences = []
    for found in by_subject(whole_numbers(page.results.measurements)).values():
        unchanged = "".join(f", on clean images {figure(one.value, 'share')}" for one in _known(found, "clean_error"))
        for one in unseen_first(found, "mean_corrupted_error"):
            share = opened(page.subject(one.about), of_hundred(one.value))
            new = ", under corruptions that were no part of training," if metric_info(one.metric).unseen else ""
            sentences.append(f"{share} corrupted images{new} are misclassified ({evidence(one)}){unchanged}.")
    return sentences


def corruption_details(page: Page) -> list[str]:
    """Which corruption is the hardest, and mCE."""
    hardest = sorted(_known(page.results.measurements, "corruption_mean_error"), key=lambda one: -one.value)[:1]
    return [
        *(
            f"Hardest corruption: {spoken(str(one.about.get('corruption', '')))}, error {figure(one.value, 'share')} "
            f"({evidence(one)})."
            for one in hardest
        ),
        *beside_the_baseline(page, "mean_corruption_error", "mCE"),
    ]


def beside_the_baseline(page: Page, metric: str, short: str) -> list[str]:
    """What a mean is in percent of the baseline's."""
    return [
        f"{short}{' without what was part of training' if metric_info(one.metric).unseen else ''} is "
        f"{figure(one.value, 'share')} ({evidence(one)}); 100\u202f% is the baseline, {baseline_name(one)}."
        for one in unseen_first(whole_numbers(page.results.measurements), metric)
    ]


def unseen_first(found: Sequence[Finding], name: str) -> list[Measurement]:
    """The mean over what the model was not trained with where there is one; else the mean of that name."""
    return _known(found, unseen(name)) or _known(found, name)


def _known(found: Iterable[Finding], name: str) -> list[Measurement]:
    return [one for one in named(found, name) if math.isfinite(one.value)]


def baseline_name(found: Measurement) -> str:
    """What a ratio is in multiples of."""
    return found.baseline.name if found.baseline else "not named"


SECTION = SectionMaker(
    NAMES,
    draw_corruption,
    headlines=corruption_headlines,
    details=corruption_details,
    key_numbers=(
        "unseen_mean_corrupted_error",
        "mean_corrupted_error",
        "unseen_mean_corruption_error",
        "mean_corruption_error",
        *with_unseen("mean_c_bar_error"),
    ),
    partial=with_unseen("group_error"),
)
