"""Results as runs of MLflow."""

from __future__ import annotations

import math
from pathlib import Path

import mlflow

from shiftproof.errors import BadInput
from shiftproof.publishing import Published, PublishOptions, numbers_of, origin_told, published_models
from shiftproof.types import Results

LONGEST = 500
"""Letters of a parameter that every version of MLflow keeps."""


def publish_to_mlflow(results: Results, options: PublishOptions, folder: Path) -> list[Published]:  # noqa: ARG001
    """Runs of an experiment of MLflow, one a model: metrics, parameters, and all measurements as files."""
    try:
        return _runs(results, options, mlflow.MlflowClient(tracking_uri=options.tracking_uri))
    except mlflow.MlflowException as refused:
        raise BadInput(f"MLflow refused the results: {refused}") from refused
    except ModuleNotFoundError as missing:  # the small MLflow speaks to servers alone
        where = mlflow.get_tracking_uri() if options.tracking_uri is None else options.tracking_uri
        raise BadInput(f"runs at {where} need the whole MLflow: pip install mlflow") from missing


def _runs(results: Results, options: PublishOptions, client: mlflow.MlflowClient) -> list[Published]:
    known = client.get_experiment_by_name(options.experiment)
    experiment = known.experiment_id if known else client.create_experiment(options.experiment)
    made = []
    for card in published_models(results):
        run = client.create_run(experiment, run_name=card.name).info.run_id
        for name, told in {"fingerprint": card.fingerprint, **origin_told(results)}.items():
            if told:
                client.log_param(run, "".join(c if c.isalnum() or c in "_ .-/" else "_" for c in name), told[:LONGEST])
        numbers = {name: value for name, value in numbers_of(results, card.name).items() if math.isfinite(value)}
        for name, value in numbers.items():
            client.log_metric(run, name.replace("=", " "), value)
        client.log_text(run, results.to_json(indent=1), "results.json")
        client.log_text(run, results.to_csv(), "measurements.csv")
        if options.attach is not None:
            client.log_artifact(run, options.attach)
        client.set_terminated(run)
        made.append(Published(card.name, f"run {run} of experiment {options.experiment}", len(numbers)))
    return made
