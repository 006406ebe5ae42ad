"""The commands that ask whether it is the label or the model: likely label errors, and images that go wrong together."""

from __future__ import annotations

import shiftproof as sp
from shiftproof.cli.emit import Bar, Table, emit, interruptible, remark
from shiftproof.cli.options import Asked, Output, command

SHOWN = 20
"""Images that are printed; the report and --json have more."""


@command(
    "model",
    "dataset",
    options=lambda: (
        *(sp.LabelOptions, sp.LabelReview, sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings, sp.PredictionSettings),
        sp.options.StorePlace,
    ),
    output=Output("a report as an HTML file", "labels.html"),
)
def labels(asked: Asked) -> None:
    """Find images whose label is likely wrong, for review, and apply the reviewers' verdicts.

    Example: shiftproof labels lite:0 photos/ --project doubtful-labels/
    """
    prediction = asked[sp.PredictionSettings]
    with interruptible(Bar(quiet=prediction.quiet)) as progress:
        found = sp.find_label_errors(
            asked.argument("model"),
            asked.argument("dataset"),
            options=asked[sp.LabelOptions],
            review=asked[sp.LabelReview],
            store=asked[sp.options.StorePlace].store,
            report=asked.output,
            model_options=asked[sp.ModelSettings],
            dataset_options=asked[sp.DatasetSettings],
            scoring=asked[sp.ScoringSettings],
            prediction=prediction,
            progress=progress,
            tell=remark,
        )
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
    options=lambda: (
        *(sp.SliceOptions, sp.options.ManifestPlace, sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings),
        *(sp.PredictionSettings, sp.options.StorePlace, sp.options.Tables, sp.options.Verbosity),
    ),
    output=Output("a report as an HTML file", "slices.html"),
)
def slices(asked: Asked) -> None:
    """Find slices, groups of images with a high error rate: by facts (metadata), classes, pixels and features.

    Example: shiftproof slices lite:0 photos/ --manifest sliced.jsonl
    """
    prediction = asked[sp.PredictionSettings]
    with interruptible(Bar(quiet=prediction.quiet)) as progress:
        results = sp.slices(
            asked.argument("model"),
            asked.argument("dataset"),
            options=asked[sp.SliceOptions],
            manifest=asked[sp.options.ManifestPlace].manifest,
            store=asked[sp.options.StorePlace].store,
            report=asked.output,
            model_options=asked[sp.ModelSettings],
            dataset_options=asked[sp.DatasetSettings],
            scoring=asked[sp.ScoringSettings],
            prediction=prediction,
            progress=progress,
            tell=remark,
        )
    from shiftproof.cli.results import emit_results

    verbose = asked[sp.options.Verbosity].verbose
    emit_results(results, asked[sp.options.Tables], as_json=asked.json, verbose=verbose, path=asked.output)
