"""The commands that train."""

from __future__ import annotations

import shiftproof as sp
from shiftproof.cli.emit import Table, emit
from shiftproof.cli.options import Asked, Output, command, result_settings
from shiftproof.cli.run import REPORT, emit_results


@command(
    "model",
    "dataset",
    options=lambda: (
        *(sp.TrainOptions, sp.ModelSettings, sp.DatasetSettings, sp.options.ImageChoice),
        *(sp.options.WorkerSettings, sp.options.StorePlace),
    ),
    output=Output("a folder for the trained model", "better"),
)
def train(asked: Asked) -> None:
    """Train a model on labelled images, as a recipe says; the folder that comes out opens wherever a model does.

    Example: shiftproof train lite:0 photos/ --recipe balanced+wise-ft:0.5 -o better
    """
    model, dataset, workers = asked.argument("model"), asked.argument("dataset"), asked[sp.options.WorkerSettings]
    with asked.job() as settings:
        trained = sp.train(model, dataset, asked.output, options=asked[sp.TrainOptions], workers=workers, **settings)
    figure = "mAP" if trained.record.finds_boxes else "accuracy"
    rows = [
        {"folder": str(one.folder), "seed": one.record.seed, "validation": what, figure: f"{100 * share:.1f} %"}
        for one in trained.parts or (trained,)
        for what, share in one.accuracy.items()
    ]
    emit(
        trained.to_json(),
        as_json=asked.json,
        shown=[Table(rows, right=("seed", figure))],
        remarks=[f"to measure it: shiftproof run {trained.folder} DATASET"],
        path=trained.folder,
    )


@command(
    "model",
    "dataset",
    options=lambda: (
        *(sp.GridOptions, sp.ModelSettings, sp.DatasetSettings, sp.options.ImageChoice, sp.options.WorkerSettings),
        sp.options.StorePlace,
        *result_settings(),
    ),
    output=REPORT._replace(default="recipes.html"),
)
def recipes(asked: Asked) -> None:
    """Compare training recipes: does one help, on which shifts, and at what cost on clean images.

    Example: shiftproof recipes lite:0 photos/ --recipes baseline,augmix,corrupted:noise --seeds 3 -o recipes.html
    """
    model, dataset, workers = asked.argument("model"), asked.argument("dataset"), asked[sp.options.WorkerSettings]
    with asked.job() as settings:
        results = sp.recipes(model, dataset, options=asked[sp.GridOptions], report=asked.output, workers=workers, **settings)
    emit_results(asked, results, asked.output)
