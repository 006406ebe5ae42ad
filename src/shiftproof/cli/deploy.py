"""The commands around a deployment: whether a model may replace another, a guard for it, and a watch over its stream."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import shiftproof as sp
from shiftproof.cli.emit import Table, emit, remark, say
from shiftproof.cli.options import Asked, Output, command, job_settings

if TYPE_CHECKING:
    from shiftproof.studies.gate.outcome import Gate
    from shiftproof.studies.guard.watching import Watch


@command(
    click.Argument(["model"], required=False),
    click.Argument(["dataset"], required=False),
    options=lambda: (sp.GateOptions, *job_settings(), sp.GateFiles),
)
def gate(asked: Asked) -> None:
    """Decide whether MODEL may replace a baseline: exit code 0 pass, 3 fail, 4 undecided.

    MODEL, DATASET and the rules may stand in shiftproof.toml.

    Example: shiftproof gate lite:1 photos/ --against lite:0 --margin 1
    """
    place = asked[sp.options.StorePlace]
    store = place.store if "store" in place.given else None  # that of the file of rules
    with asked.job() as settings:
        found = sp.gate(asked.argument("model"), asked.argument("dataset"), **{**settings, "store": store})
    _write(found, asked[sp.GateFiles])
    if found.written:
        told = f"baseline of {found.model} on {found.dataset}: {found.images:,} images"
        emit(found.to_json(), as_json=asked.json, shown=[told], path=found.written)
        return
    emit(found.to_json(), as_json=asked.json, shown=_shown(found), remarks=found.remarks)
    _tell_github(found, as_json=asked.json)
    sys.exit(found.exit_code)


def _shown(found: Gate) -> list[str | Table]:
    """The checks as a table, of those that did not pass a sentence each, the worst slices, and the verdict last."""
    lines: list[str | Table] = [Table(found.rows(), right=("new", "baseline", "difference", "images"))]
    lines += found.sentences()
    if found.worst:
        lines.append(f"worst slices of {found.slices}, chosen after looking:")
        lines += [
            f"  {one.fact}={one.group}: {100 * one.difference:+.1f} points, {one.images:,} images; {', '.join(one.pictures)}"
            for one in found.worst
        ]
    return [*lines, found.headline]


def _write(found: Gate, files: sp.GateFiles) -> None:
    from shiftproof.files import write_whole
    from shiftproof.places import as_path

    for path, text in ((files.junit, found.to_junit), (files.markdown, found.to_markdown)):
        if path:
            write_whole(as_path(path), text().encode())


def _tell_github(found: Gate, *, as_json: bool) -> None:
    """Annotations and a step summary, where this runs as a step of GitHub Actions."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for line in found.to_annotations():
        (remark if as_json else say)(line)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if summary:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(found.to_markdown())


@command(
    "model",
    "dataset",
    options=lambda: (sp.GuardOptions, *job_settings(), sp.options.TextTables),
    output=Output("a folder with the guard", "guard"),
)
def guard(asked: Asked) -> None:
    """Write a guard for production: it accepts or abstains, image by image, in Python or inside the ONNX model.

    Without --ood it abstains where the model is likely wrong.

    Example: shiftproof guard lite:0 photos/ --ood clothes/ --ood-detector energy -o guard/
    """
    model, dataset, options = asked.argument("model"), asked.argument("dataset"), asked[sp.GuardOptions]
    with asked.job() as settings:
        made = sp.guard(model, dataset, asked.output, options=options, **settings)
    thresholds, coverage = made.rows()
    shown: list[str | Table] = [
        Table(thresholds, right=("score", "FPR", "TPR", "cost")),
        Table(coverage, right=("promised", "covered", "classes in a set", "accuracy")),
        *made.sentences(),
    ]
    record = made.record
    remarks = [f"evaluated: {record.points[0].expected.judged}", *(f"note: {note}" for note in record.notes)]
    files = asked[sp.options.TextTables]
    emit(record.to_json(), as_json=asked.json, shown=shown, remarks=remarks, path=asked.output, files=files)


@command(
    "guard",
    "source",
    options=lambda: (
        sp.WatchOptions,
        *(sp.ModelSettings, sp.DatasetSettings, sp.PredictionSettings, sp.options.StorePlace),
    ),
    output=Output("a folder with a log, watch.jsonl, and a page, watch.html", "watch"),
)
def watch(asked: Asked) -> None:
    """Watch a stream through a guard: how often it abstains, and whether OOD scores have drifted.

    SOURCE is a folder of photos, which may grow, a .csv, .jsonl or .npy file of scores, or - for JSON lines from elsewhere.
    The same command goes on where it stopped.

    Example: shiftproof watch guard/ production/ -o watch/
    """
    guard, source, options = asked.argument("guard"), asked.argument("source"), asked[sp.WatchOptions]
    with asked.job() as settings:
        seen = sp.watch(guard, source, asked.output, options=options, **settings)
    windows = Table(seen.rows(), right=("images", "abstained", "median score", "evidence"))
    emit(seen.to_json(), as_json=asked.json, shown=[windows, *seen.sentences()], path=_page(seen, asked.output))


def _page(seen: Watch, folder: str) -> str | None:
    """Where the page of a stream is; there is none before the first image."""
    return f"{folder}/watch.html" if len(seen) else None
