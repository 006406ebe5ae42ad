"""Results as the command prints them: the verdict on each model, and the headline numbers as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from shiftproof.cli.emit import Table, emit, remark, say, say_table
from shiftproof.files import write_whole
from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import (
    axis_key,
    counted,
    figure,
    has_too_few,
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
from shiftproof.studies.evidence import verdicts
from shiftproof.types import Axis, Measurement, Profile, Results, Weakness

SUMMARY_ABOUT = {"model", "dataset", "condition", "severity", "versus", "fact", "group", "scored"}


def emit_results(results: Results, files: Tables, *, as_json: bool, verbose: bool, path: str | Path | None) -> None:
    """Results for people or as JSON, and as files where asked; the path of the report comes last."""
    if files.csv:
        write_whole(as_path(files.csv), results.to_csv().encode())
    if files.parquet:
        write_whole(as_path(files.parquet), results.to_parquet())
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
        "95 % CI": _interval(axis.found),
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
    found = [one for one in results.measurements if _is_headline(one)]
    detectors = list(_of_detectors(results.measurements))
    left_open = _sampling_errors(results.measurements)
    for some in filter(None, (found, detectors)):
        rows = [{**_row(one, some), **_left_open(one, some, left_open)} for one in some]
        say_table(Table(rows, right=("value", "95 % CI", "images", "cases", THESE_PHOTOS)))
    if found or detectors:
        say(unit_of_evidence(results))
    if left_open:
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


def _is_headline(measurement: Measurement) -> bool:
    rule = metric_info(measurement.metric).headline
    return rule == "always" or (rule is None and set(measurement.about) <= SUMMARY_ABOUT)


def _of_detectors(measurements: Sequence[Measurement]) -> Iterator[Measurement]:
    """AUROC of each OOD detector at either goal: on the unchanged ID images, against all OOD datasets pooled."""
    found = [one for one in measurements if one.metric == "auroc" and one.about.get("id") == one.about["dataset"]]
    # the last OOD dataset is all of them pooled, where there are several
    last = {(one.about["dataset"], one.about["goal"]): one.about["ood"] for one in found}
    yield from (one for one in found if last[one.about["dataset"], one.about["goal"]] == one.about["ood"])


def _row(measurement: Measurement, beside: Sequence[Measurement]) -> dict[str, str]:
    info = metric_info(measurement.metric)
    keys = list(dict.fromkeys(key for one in beside for key in one.about))
    always = ("model", "dataset", "recipe")
    several = [key for key in keys if key in always or len({one.about.get(key) for one in beside}) > 1]
    return {
        **{key.replace("_", " "): str(measurement.about.get(key, "")) for key in several},
        "metric": info.title,
        "value": figure(measurement.value, info.unit),
        "95 % CI": _interval(measurement),
        "images": f"{measurement.images:,}",
        **({"cases": _cases(measurement)} if any(_cases(one) != f"{one.images:,}" for one in beside) else {}),
    }


def _interval(measurement: Measurement) -> str:
    if measurement.ends is None:
        return "too few" if has_too_few(measurement) else ""
    return " to ".join(_bare(figure(bound, metric_info(measurement.metric).unit)) for bound in measurement.ends)


def _cases(measurement: Measurement) -> str:
    return f"{measurement.images if measurement.clusters is None else measurement.clusters:,}"


THESE_PHOTOS = "exactly these photos"
"""The column of sampling errors."""

_Whose = frozenset[tuple[str, str | int]]


def _sampling_errors(measurements: Sequence[Measurement]) -> dict[tuple[str, _Whose], float]:
    """By the number that each is of, where only some cells were run."""
    return {
        (str(one.about["number"]), frozenset(item for item in one.about.items() if item[0] != "number")): one.value
        for one in measurements
        if one.metric == "sampling_error" and one.value > 0
    }


def _left_open(
    measurement: Measurement, beside: Sequence[Measurement], errors: Mapping[tuple[str, _Whose], float]
) -> dict[str, str]:
    found = {(one.metric, frozenset(one.about.items())) for one in beside}
    if not found & errors.keys():
        return {}
    error = errors.get((measurement.metric, frozenset(measurement.about.items())))
    return {THESE_PHOTOS: "" if error is None else f"± {_bare(figure(error, 'share'))}"}


def _bare(text: str) -> str:
    """A figure without its unit, which is printed already."""
    return text.removesuffix("points").removesuffix("%").strip()
