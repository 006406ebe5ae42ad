"""The command that decides whether a model may replace another, and says so to people and to machines."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

import shiftproof as sp
from shiftproof.cli.emit import Bar, Table, emit, interruptible, remark, say
from shiftproof.cli.options import Asked, command

if TYPE_CHECKING:
    from shiftproof.studies.gate.outcome import Gate


@command(
    click.Argument(["model"], required=False),
    click.Argument(["dataset"], required=False),
    options=lambda: (
        *(sp.GateOptions, sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings, sp.PredictionSettings),
        *(sp.options.StorePlace, sp.GateFiles),
    ),
)
def gate(asked: Asked) -> None:
    """Decide whether MODEL may replace a baseline: exit code 0 pass, 3 fail, 4 undecided.

    MODEL, DATASET and the rules may stand in shiftproof.toml.

    Example: shiftproof gate lite:1 photos/ --against lite:0 --margin 1
    """
    options, prediction, place = asked[sp.GateOptions], asked[sp.PredictionSettings], asked[sp.options.StorePlace]
    with interruptible(Bar(quiet=prediction.quiet)) as progress:
        found = sp.gate(
            asked.argument("model"),
            asked.argument("dataset"),
            against=options.against,
            margin=options.margin,
            least=options.least,
            most=options.most,
            metric=options.metric,
            slices=options.slices,
            under=options.under,
            rules=options.rules,
            undecided=options.undecided,
            write_baseline=options.write_baseline,
            store=place.store if "store" in place.given else None,
            model_options=asked[sp.ModelSettings],
            dataset_options=asked[sp.DatasetSettings],
            scoring=asked[sp.ScoringSettings],
            prediction=prediction,
            progress=progress,
            tell=remark,
        )
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
