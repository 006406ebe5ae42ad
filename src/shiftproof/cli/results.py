"""Results as the command prints them: the verdict on each model, and the headline numbers as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shiftproof.cli.emit import emit, remark, say, say_table, write_tables
from shiftproof.files import write_whole
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import (
    axis_key,
    counted,
    figure,
    labels_missing,
    limit_told,
    mark_told,
    names_or_more,
    next_command,
    none_told,
    number_told,
    some_told,
    span,
    unit_of_evidence,
)
from shiftproof.options import Tables
from shiftproof.places import as_path
from shiftproof.reports.headline import THESE_PHOTOS, headline_tables, interval_told
from shiftproof.studies.evidence import verdicts
from shiftproof.tables import Table
from shiftproof.types import Axis, Profile, Results, Weakness


def emit_results(results: Results, files: Tables, *, as_json: bool, verbose: bool, path: str | Path | None) -> None:
    """Results for people or as JSON, and as files where asked; the path of the report comes last."""
    if files.csv is not None:
        write_whole(as_path(files.csv), results.to_csv().encode())
    if files.parquet is not None:
        write_whole(as_path(files.parquet), results.to_parquet())
    write_tables(headline_tables(results), files)
    if not as_json:
        say_results(results, verbose=verbose)
    emit(results.to_json(indent=1) if as_json else None, as_json=as_json, path=path)


MOST_LINES = 25
"""Of the verdict on one model, with the path of its report."""
MOST_REMARKS = 3
NEXT_STEPS = 3
"""Weaknesses that are printed with what to do next, where there is room."""
MOST_OF_SEVERAL = 3
"""Weaknesses of each model that are printed where there are several."""


def say_results(results: Results, *, verbose: bool = False) -> None:
    """The verdict on each model; the headline numbers and what was left out if `verbose`, or where there is no verdict."""
    judged = [one for one in results.profiles if one.axes]
    brief = _brief_remarks(results)
    if judged:
        _say_verdict(judged, results, room=MOST_LINES - 1 - len(brief))
    missing = labels_missing(results)
    if verbose or not (judged or missing):
        _say_numbers(results)
        return
    if not judged:
        _say_headlines(results)
    if missing:
        say(missing)
    for verdict in verdicts(results.measurements):
        say(verdict.text)
    for text in brief:
        remark(text)


def _say_verdict(profiles: Sequence[Profile], results: Results, *, room: int) -> None:
    """The scorecard, models side by side, and the weaknesses of each."""
    card = _scorecard(profiles, results)
    say_table(card)
    for verdict in profiles:
        whose = f"{verdict.model}: " if len(profiles) > 1 else ""
        say(f"{whose}{some_told(verdict) if verdict.weaknesses else none_told(verdict)}")
        shown = verdict.weaknesses[: MOST_OF_SEVERAL if len(profiles) > 1 else None]
        steps = min(NEXT_STEPS, room - 2 - len(card.rows) - len(shown))
        for place, weakness in enumerate(shown):
            say(f"{place + 1}. {weakness.sentence} {_behind(weakness)}")
            if place < steps and (command := next_command(weakness, verdict.model, results)):
                say(f"   next: {command}")


def _scorecard(profiles: Sequence[Profile], results: Results) -> Table:
    several = len({name for one in profiles for name in one.datasets}) > 1
    lines = dict.fromkeys(line for one in profiles for line in map(axis_key, one.axes))
    if len(profiles) == 1:
        origins = list(dict.fromkeys(map(results.origin_of, profiles[0].datasets)))
        title = f"{profiles[0].model} on {names_or_more(origins)}"
        rows = [_line(title, axis, several=several) for axis in profiles[0].axes]
        return Table(rows, right=("value", "95 % CI"))
    cells = {(one.model, axis_key(axis)): axis for one in profiles for axis in one.axes}
    rows = [
        {
            "": next(_axis_title(axis, several=several) for (_, key), axis in cells.items() if key == line),
            **{one.model: _cell(cells.get((one.model, line))) for one in profiles},
        }
        for line in lines
    ]
    return Table(rows)


def _line(title: str, axis: Axis, *, several: bool) -> dict[str, str]:
    return {
        title: _axis_title(axis, several=several),
        "value": figure(axis.found.value, metric_info(axis.found.metric).unit),
        "95 % CI": interval_told(axis.found),
        "mark": mark_told(axis),
        "weak is": limit_told(axis),
    }


def _axis_title(axis: Axis, *, several: bool) -> str:
    return f"{axis.title}, {axis.found.about['dataset']}" if several and "dataset" in axis.found.about else axis.title


def _cell(axis: Axis | None) -> str:
    return "" if axis is None else f"{number_told(axis.found)} {mark_told(axis)}"


def _behind(weakness: Weakness) -> str:
    unit = metric_info(weakness.found.metric).unit
    more = f"; {weakness.more} more like this" if weakness.more else ""
    return f"(95 % CI {span(weakness.found.ends, unit)}; {weakness.standard.told}{more})"


def _brief_remarks(results: Results) -> list[str]:
    """Skipped images and warnings as far as they are few, and how much else there is to know."""
    skipped = [f"skipped: {image.id}: {image.reason}" for card in results.datasets for image in card.skipped_images]
    warnings = [f"warning: {text}" for text in results.warnings]
    told = [*warnings, *skipped][:MOST_REMARKS]
    counts = {
        "more warning": max(0, len(warnings) - len(told)),
        "more skipped image": len(skipped) - max(0, len(told) - len(warnings)),
        "omission": len(results.skipped),
    }
    more = ", ".join(counted(number, what) for what, number in counts.items() if number)
    return [*told, *([f"{more}: see --verbose"] if more else [])]


def _say_headlines(results: Results) -> None:
    """The headline numbers."""
    tables = headline_tables(results)
    for table in tables:
        say_table(table)
    if tables:
        say(unit_of_evidence(results))
    if any(THESE_PHOTOS in table.rows[0] for table in tables):
        say(f"{THESE_PHOTOS.capitalize()}: sampling error on exactly these photos, from cells that were not run.")


def _say_numbers(results: Results) -> None:
    """The headline numbers, the verdicts on models compared, and what was skipped or left out."""
    _say_headlines(results)
    for verdict in verdicts(results.measurements):
        say(verdict.text)
    for dataset in results.datasets:
        for image in dataset.skipped_images[:20]:
            remark(f"skipped: {image.id}: {image.reason}")
        if len(dataset.skipped_images) > 20:
            remark(f"skipped: {len(dataset.skipped_images) - 20} more in {dataset.name}; --json lists them all")
    for reason in results.skipped:
        remark(f"left out: {reason}")
    for warning in results.warnings:
        remark(f"warning: {warning}")
