"""The commands that run models, measure studies and write reports, and those that find what goes wrong: labels, slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

import shiftproof as sp
from shiftproof.cli.emit import Table, emit, remark
from shiftproof.cli.options import Asked, Output, command, job_settings, result_settings, study_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shiftproof.studies.threshold.expected import Share
    from shiftproof.studies.threshold.exported import ExportedThreshold
    from shiftproof.types import Results

REPORT = Output("the report, an HTML file", "report.html")
SHOWN = 20
"""Likely label errors that are printed; the report and --json have more."""


@command(
    "model",
    "dataset",
    options=lambda: (
        *(sp.options.StudyNames, sp.options.TimeLimit, sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings),
        *(sp.PredictionSettings, sp.options.EngineSettings, sp.options.StorePlace, *result_settings()),
    ),
    studies=True,
    output=REPORT,
)
def run(asked: Asked) -> None:
    """Predict, measure and report: a robustness profile in one command, in the time you have.

    Example: shiftproof run lite:0 photos/ --minutes 10 -o report.html
    """
    with asked.job() as settings:
        results = sp.run(asked.argument("model"), asked.argument("dataset"), report=asked.output, **settings)
    emit_results(asked, results, asked.output)


@command(
    "model",
    "dataset",
    options=lambda: (
        *(sp.ModelSettings, sp.DatasetSettings, sp.PredictionSettings, sp.options.ShardSettings),
        *(sp.options.EngineSettings, sp.options.StorePlace, sp.options.PredictionTable),
    ),
)
def predict(asked: Asked) -> None:
    """Store the model's predictions; what is stored already is not predicted again.

    Example: shiftproof predict lite:0 photos/ --keep features
    """
    model, dataset, shard = asked.argument("model"), asked.argument("dataset"), asked[sp.options.ShardSettings].part
    with asked.job() as settings:
        tally = sp.store_predictions(model, dataset, shard=shard, **settings)
    skipped = [{"id": image.id, "reason": image.reason} for image in tally.skipped_images]
    before = f", {tally.stored_before:,} were stored before" if tally.stored_before else ""
    emit(
        {"predicted": tally.predicted, "stored_before": tally.stored_before, "skipped_images": skipped},
        as_json=asked.json,
        remarks=[
            *(f"skipped: {image['id']}: {image['reason']}" for image in skipped),
            f"{tally.predicted:,} images predicted{before}, {len(skipped):,} skipped; store: {settings['store']}",
        ],
        path=settings["predictions"],
    )


@command(
    "model",
    "dataset",
    options=lambda: (*study_settings(), sp.options.ForecastOptions, sp.options.TextTables),
    studies=True,
)
def plan(asked: Asked) -> None:
    """Show the runs the studies need, how much of each is stored already, and what the rest would take.

    Example: shiftproof plan lite:0 photos/ --probe --nodes 1,10,100 --price 0.9
    """
    forecast, files = asked[sp.options.ForecastOptions], asked[sp.options.TextTables]
    rows = sp.plan(asked.argument("model"), asked.argument("dataset"), forecast=forecast, **asked.settings)
    shown = [Table(rows, right=("images", "stored", "to do"))]
    if not forecast.wanted:
        emit(rows, as_json=asked.json, shown=shown, files=files)
        return
    told = [
        {
            "work": one.work,
            "passes": f"{one.passes:,}",
            "nodes": f"{one.nodes:,}",
            "hours": f"{one.hours:.3g}",
            **({} if one.gigabytes is None else {"GB stored": f"{one.gigabytes:.3g}"}),
            **({} if one.price is None else {"price": f"{one.price:,.2f}"}),
            "limit": one.limit,
        }
        for one in rows.forecasts
    ]
    numbers = ("passes", "nodes", "hours", "GB stored", "price")
    as_data = {"runs": rows, "forecasts": [one._asdict() for one in rows.forecasts]}
    emit(as_data, as_json=asked.json, shown=[*shown, Table(told, right=numbers)], files=files)


@command(
    "model",
    "dataset",
    options=lambda: (*study_settings(), sp.options.PredictionTable, *result_settings()),
    studies=True,
)
def measure(asked: Asked) -> None:
    """Measure stored predictions; never runs the model.

    MODEL may also be the name of a stored model. Example: shiftproof measure lite:0 photos/ --studies accuracy
    """
    results = sp.measure_stored(asked.argument("model"), asked.argument("dataset"), **asked.settings)
    emit_results(asked, results)


@command(
    "model",
    "dataset",
    options=lambda: (*study_settings(), sp.options.PredictionTable, *result_settings()),
    studies=True,
    output=REPORT,
)
def report(asked: Asked) -> None:
    """Write the report of stored predictions; never runs the model.

    Example: shiftproof report lite:0 photos/ -o report.html
    """
    results = sp.report(asked.argument("model"), asked.argument("dataset"), asked.output, **asked.settings)
    emit_results(asked, results, asked.output)


@command(
    click.Argument(["models"], nargs=-1),
    "dataset",
    options=lambda: (
        *(sp.options.StudyNames, sp.DatasetSettings, sp.ScoringSettings, sp.options.StorePlace, sp.options.PredictionTable),
        *result_settings(),
    ),
    studies=True,
    output=Output("a report, an HTML file"),
)
def compare(asked: Asked) -> None:
    """Put stored models side by side on the same images, with paired tests.

    Without MODELS, every stored model that has predicted these images, except companion networks that a study made of one.

    Example: shiftproof compare lite:0 lite:1 photos/
    """
    results = sp.compare(asked.argument("models"), asked.argument("dataset"), report=asked.output, **asked.settings)
    emit_results(asked, results, asked.output)


@command(
    click.Argument(["photo"], type=click.Path(exists=True, dir_okay=False)),
    options=lambda: (
        *(sp.ProbeOptions, sp.options.ProbedModel, sp.ModelSettings, sp.PredictionSettings, sp.options.StorePlace),
        *result_settings(),
    ),
    output=REPORT._replace(default="probe.html"),
)
def probe(asked: Asked) -> None:
    """Vary one photo step by step: what the model predicts, and how each OOD detector scores it.

    Example: shiftproof probe cat.jpg --vary zoom,hue,fog --ood clothes/
    """
    photo, model, options = asked.argument("photo"), asked[sp.options.ProbedModel].model, asked[sp.ProbeOptions]
    with asked.job() as settings:
        results = sp.probe(photo, model, options=options, report=asked.output, **settings)
    emit_results(asked, results, asked.output)


@command(
    "model",
    "dataset",
    options=lambda: (sp.ThresholdOptions, *job_settings(), sp.options.TextTables),
    output=Output("a JSON file with the threshold, and what to expect of it"),
)
def threshold(asked: Asked) -> None:
    """Choose the detection threshold of an OOD detector, and say what to expect of it.

    Example: shiftproof threshold lite:0 photos/ --ood clothes/ --ood-detector energy --false-alarms 0.05 -o point.json
    """
    with asked.job() as settings:
        chosen = sp.threshold(asked.argument("model"), asked.argument("dataset"), asked[sp.ThresholdOptions], **settings)
    if asked.output:
        from shiftproof.files import write_whole
        from shiftproof.places import as_path

        write_whole(as_path(asked.output), chosen.to_json().encode())
    files = asked[sp.options.TextTables]
    emit(chosen.to_json(), as_json=asked.json, **_threshold_told(chosen), path=asked.output, files=files)


@command(
    "model",
    options=lambda: (sp.options.LabelledImages, sp.EstimateOptions, *job_settings(), *result_settings()),
    output=REPORT._replace(default="estimate.html"),
)
def estimate(asked: Asked) -> None:
    """Estimate the accuracy on images without labels, as from production.

    Example: shiftproof estimate lite:0 --labelled photos/ --unlabelled production/
    """
    labelled, options = asked[sp.options.LabelledImages], asked[sp.EstimateOptions]
    with asked.job() as settings:
        results = sp.estimate_accuracy(
            asked.argument("model"), labelled.place(), options=options, report=asked.output, **settings
        )
    emit_results(asked, results, asked.output)


@command(
    "model",
    "dataset",
    options=lambda: (sp.LabelOptions, sp.LabelReview, *job_settings()),
    output=Output("a report as an HTML file", "labels.html"),
)
def labels(asked: Asked) -> None:
    """Find images whose label is likely wrong, for review, and apply the reviewers' verdicts.

    Example: shiftproof labels lite:0 photos/ --project doubtful-labels/
    """
    model, dataset, options = asked.argument("model"), asked.argument("dataset"), asked[sp.LabelOptions]
    with asked.job() as settings:
        found = sp.find_label_errors(model, dataset, options=options, report=asked.output, **settings)
    if asked.json:
        emit(found.to_json(), as_json=True, path=asked.output)
        return
    from shiftproof.cli.results import say_results

    first = found.images[: min(SHOWN, found.suspects)]
    rows = [{name: str(row[name]) for name in ("id", "label", "suggested", "self_confidence", "confident")} for row in first]
    emit(None, as_json=False, shown=[Table(rows, right=("self_confidence",))])
    remark(f"the first {len(first)} of {found.suspects:,} suspects among {len(found.images):,} labelled images")
    say_results(found.results, verbose=False)
    if found.project is not None:
        remark(f"to review them in a browser: shiftproof review {found.project.folder} --invite me")
    if found.corrected is not None:
        remark(f"corrected labels: {found.corrected}")
    emit(None, as_json=False, path=asked.output)


@command(
    "model",
    "dataset",
    options=lambda: (sp.SliceOptions, sp.options.ManifestPlace, *job_settings(), *result_settings()),
    output=Output("a report as an HTML file", "slices.html"),
)
def slices(asked: Asked) -> None:
    """Find slices, groups of images with a high error rate: by facts (metadata), classes, pixels and features.

    Example: shiftproof slices lite:0 photos/ --manifest sliced.jsonl
    """
    model, dataset, options = asked.argument("model"), asked.argument("dataset"), asked[sp.SliceOptions]
    with asked.job() as settings:
        results = sp.slices(model, dataset, options=options, report=asked.output, **settings)
    emit_results(asked, results, asked.output)


def _threshold_told(chosen: ExportedThreshold) -> dict[str, Any]:
    """The expected error rates as a table; then the threshold, its cost and the images it was evaluated on."""
    from shiftproof.metrics.wording import figure

    told = chosen.expected or chosen.where_picked
    sets = dict(told.sets)
    if told.found not in [shares.get("found") for shares in sets.values()]:
        sets["all pooled"] = {"found": told.found}
    rule = f"flag an image where {chosen.ood_detector} scores at least that"
    flags_none = chosen.threshold == float("inf")
    lines = [
        f"threshold: {'none, flag no image' if flags_none else f'{chosen.threshold:.6g}, {rule}'} ({chosen.chosen})",
        f"expected cost per image: {told.cost:.4g} at an OOD share of {figure(chosen.ood_share, 'share')}, "
        f"cost {chosen.false_alarm_cost:g} per false positive and {chosen.miss_cost:g} per false negative",
    ]
    remarks = [f"evaluated: {told.judged}"]
    if chosen.expected:
        there = chosen.where_picked
        alarms, found = (figure(share.value, "share") for share in (there.false_alarms, there.found))
        remarks.append(f"on the images it was chosen on: FPR {alarms}, TPR {found}, cost {there.cost:.4g}")
    remarks += [f"note: {note}" for note in chosen.notes]
    table = [_expected_row(name, shares) for name, shares in sets.items()]
    return {"shown": [Table(table, right=("FPR", "TPR")), *lines], "remarks": remarks}


def _expected_row(name: str, shares: Mapping[str, Share]) -> dict[str, str]:
    from shiftproof.metrics.wording import figure, span

    sides = {"FPR": shares.get("false_alarms"), "TPR": shares.get("found")}
    return {
        "images": name,
        **{
            side: f"{figure(share.value, 'share')} ({span(share.interval, 'share')}) of {share.images:,}" if share else ""
            for side, share in sides.items()
        },
    }


def emit_results(asked: Asked, results: Results, path: str | None = None) -> None:
    from shiftproof.cli.results import emit_results

    verbose = asked[sp.options.Verbosity].verbose
    emit_results(results, asked[sp.options.Tables], as_json=asked.json, verbose=verbose, path=path)
