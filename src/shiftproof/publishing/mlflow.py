"""Results as runs of MLflow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import mlflow

from shiftproof.errors import BadInput
from shiftproof.files import encodable
from shiftproof.publishing import (
    Published,
    PublishOptions,
    numbers_of,
    origin_told,
    published_models,
    refusals_told,
    told_apart,
)
from shiftproof.types import Results

LONGEST = 500
"""Letters of a parameter that every version of MLflow keeps."""


def publish_to_mlflow(results: Results, options: PublishOptions, folder: Path) -> list[Published]:  # noqa: ARG001
    """Runs of an experiment of MLflow, one a model: metrics, parameters, and all measurements as files."""
    with refusals_told("MLflow", "", mlflow.MlflowException):
        try:
            return _runs(results, options, mlflow.MlflowClient(tracking_uri=options.tracking_uri))
        except ModuleNotFoundError as missing:  # the small MLflow speaks to servers alone
            where = mlflow.get_tracking_uri() if options.tracking_uri is None else options.tracking_uri
            kind = where.partition(":")[0]  # behind it there may be a password
            raise BadInput(f"runs at {kind}: need the whole MLflow: pip install mlflow") from missing


def _runs(results: Results, options: PublishOptions, client: mlflow.MlflowClient) -> list[Published]:
    known = client.get_experiment_by_name(options.experiment)
    experiment = known.experiment_id if known else client.create_experiment(options.experiment)
    made = []
    for card in published_models(results):
        run = client.create_run(experiment, run_name=encodable(card.name)).info.run_id
        numbers = {name: value for name, value in numbers_of(results, card.name).items() if math.isfinite(value)}
        try:
            _fill(client, run, numbers, {"fingerprint": card.fingerprint, **origin_told(results)}, results, options)
        except BaseException:
            with suppress(Exception):  # what went wrong before is what is told
                client.set_terminated(run, "FAILED")
            raise
        client.set_terminated(run)
        made.append(Published(card.name, f"run {run} of experiment {options.experiment}", len(numbers)))
    return made


def _fill(
    client: mlflow.MlflowClient,
    run: str,
    numbers: Mapping[str, float],
    origin: Mapping[str, str],
    results: Results,
    options: PublishOptions,
) -> None:
    told = {name: text for name, text in origin.items() if text}
    names = told_apart([("".join(c if c.isalnum() or c in "_ .-" else "_" for c in name), name) for name in told])
    for name, text in zip(names, told.values(), strict=True):
        client.log_param(run, name, encodable(text)[:LONGEST])
    for name, value in numbers.items():
        client.log_metric(run, name.replace("=", " "), value)
    client.log_text(run, results.to_json(indent=1), "results.json")
    client.log_text(run, results.to_csv(), "measurements.csv")
    if options.attach is not None:
        client.log_artifact(run, options.attach)
