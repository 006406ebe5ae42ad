"""The commands that write a guard, and that watch a stream of images with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import shiftproof as sp
from shiftproof.cli.emit import Bar, Table, emit, interruptible, remark
from shiftproof.cli.options import Asked, Output, command

if TYPE_CHECKING:
    from shiftproof.studies.guard.watching import Watch


@command(
    "model",
    "dataset",
    options=lambda: (
        *(sp.GuardOptions, sp.ModelSettings, sp.DatasetSettings, sp.ScoringSettings, sp.PredictionSettings),
        *(sp.options.StorePlace, sp.options.TextTables),
    ),
    output=Output("a folder with the guard", "guard"),
)
def guard(asked: Asked) -> None:
    """Write a guard for production: it accepts or abstains, image by image, in Python or inside the ONNX model.

    Without --ood it abstains where the model is likely wrong.

    Example: shiftproof guard lite:0 photos/ --ood clothes/ --ood-detector energy -o guard/
    """
    prediction = asked[sp.PredictionSettings]
    with interruptible(Bar(quiet=prediction.quiet)) as progress:
        made = sp.guard(
            asked.argument("model"),
            asked.argument("dataset"),
            asked.output,
            options=asked[sp.GuardOptions],
            store=asked[sp.options.StorePlace].store,
            model_options=asked[sp.ModelSettings],
            dataset_options=asked[sp.DatasetSettings],
            scoring=asked[sp.ScoringSettings],
            prediction=prediction,
            progress=progress,
            tell=remark,
        )
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
        *(sp.WatchOptions, sp.ModelSettings, sp.DatasetSettings, sp.PredictionSettings),
        sp.options.StorePlace,
    ),
    output=Output("a folder with a log, watch.jsonl, and a page, watch.html", "watch"),
)
def watch(asked: Asked) -> None:
    """Watch a stream through a guard: how often it abstains, and whether OOD scores have drifted.

    SOURCE is a folder of photos, which may grow, a .csv, .jsonl or .npy file of scores, or - for JSON lines from elsewhere.
    The same command goes on where it stopped.

    Example: shiftproof watch guard/ production/ -o watch/
    """
    prediction = asked[sp.PredictionSettings]
    with interruptible(Bar(quiet=prediction.quiet)) as progress:
        seen = sp.watch(
            asked.argument("guard"),
            asked.argument("source"),
            asked.output,
            options=asked[sp.WatchOptions],
            store=asked[sp.options.StorePlace].store,
            model_options=asked[sp.ModelSettings],
            dataset_options=asked[sp.DatasetSettings],
            prediction=prediction,
            progress=progress,
            tell=remark,
        )
    windows = Table(seen.rows(), right=("images", "abstained", "median score", "evidence"))
    emit(seen.to_json(), as_json=asked.json, shown=[windows, *seen.sentences()], path=_page(seen, asked.output))


def _page(seen: Watch, folder: str) -> str | None:
    """Where the page of a stream is; there is none before the first image."""
    return f"{folder}/watch.html" if len(seen) else None
