"""Results into the tools that a team already has: MLflow, Weights & Biases, a model repository of Hugging Face.

Each destination is one file, reached through the catalog: a function from results and options to where they are now.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias

from shiftproof import catalog
from shiftproof.errors import BadInput
from shiftproof.files import read_text
from shiftproof.options import Options, option
from shiftproof.reports.headline import headline_measurements
from shiftproof.types import Measurement, ModelCard, Results

LONGEST_NAME = 200
"""Letters of the name of a number that every tracker takes, with what is added to it."""


class PublishOptions(Options):
    """Where results go, and under which name."""

    TITLE: ClassVar[str] = "Publishing"

    experiment: str = option("shiftproof", "Experiment of MLflow, or project of Weights & Biases.", common=True)
    tracking_uri: str | None = option(
        None, "Where MLflow keeps its runs, such as sqlite:///mlflow.db.  [default: as MLflow is set up]", common=True
    )
    offline: bool = option(
        False, "Weights & Biases: write to disk and send nothing; `wandb sync` sends it later.", common=True
    )
    attach: str | None = option(None, "A report to keep beside the numbers.", is_path=True, common=True)
    benchmark: str | None = option(
        None, "Hugging Face: the dataset of the Hub that the images are, as ORGANISATION/NAME.", common=True
    )
    task: str | None = option(None, "Hugging Face: the task of that benchmark.  [default: the metric]", common=True)
    benchmark_metric: str = option(
        "top1_accuracy", "Hugging Face: the metric of that benchmark, see shiftproof list metrics.", common=True
    )


@dataclass(frozen=True)
class Published:
    """Where the results of one model are now, as the destination calls it."""

    model: str
    place: str
    numbers: int


Publisher: TypeAlias = Callable[[Results, PublishOptions, Path], list[Published]]
"""Takes results, options and a folder for what is written to disk."""


def publish(
    results: str | Path | Results, to: str, *, options: PublishOptions | None = None, folder: str | Path = "."
) -> list[Published]:
    """Sends results, or a file of them as ``--json`` prints it, to ``mlflow``, ``wandb`` or ``huggingface``.

    The headline numbers become metrics; all measurements go along as a file. Each model is a run of its own.
    """
    publisher: Publisher = catalog.PUBLISHERS.load(to)
    options = options or PublishOptions()
    found = results if isinstance(results, Results) else Results.from_json(read_text(results))
    if not published_models(found):
        raise BadInput("these results have no numbers to publish")
    if options.attach is not None and not Path(options.attach).is_file():
        raise BadInput(f"there is no report {options.attach}")
    return publisher(found, options, Path(folder))


def published_models(results: Results) -> list[ModelCard]:
    """The models that numbers are about, without companions that studies made of them."""
    named = {found.about.get("model") for found in headline_measurements(results)}
    return [card for card in results.models if card.companion is None and card.name in named]


def numbers_of(results: Results, model: str) -> dict[str, float]:
    """The headline numbers of a model and the ends of their intervals, by names that trackers take.

    A name says what a number is about: ``photos/top1_accuracy``, ``photos/condition=fog/severity=3/error``.
    """
    numbers: dict[str, float] = {}
    wanted = [found for found in headline_measurements(results) if found.about.get("model") == model]
    names = told_apart([(number_name(found), f"{found.metric} {sorted(found.about.items())}") for found in wanted])
    for name, found in zip(names, wanted, strict=True):
        numbers[name] = found.value
        if found.interval is not None:
            numbers |= {f"{name}_low": found.interval.low, f"{name}_high": found.interval.high}
    return numbers


def told_apart(named: Sequence[tuple[str, str]]) -> list[str]:
    """Names, each beside what it is short for; with a digest of it where several have one name, or where it is too long.

    >>> told_apart([("a_", "a?"), ("a_", "a!"), ("b", "b")])
    ['a__5289f1df', 'a__242ed538', 'b']
    """
    several = Counter(name for name, _ in dict.fromkeys(named))
    return [
        f"{name[:LONGEST_NAME]}_{hashlib.sha256(behind.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
        if several[name] > 1 or len(name) > LONGEST_NAME
        else name
        for name, behind in named
    ]


def number_name(found: Measurement) -> str:
    """What a number is about and its metric, in signs that all trackers take.

    >>> number_name(Measurement("error", 0.1, {"model": "a", "dataset": "my photos?", "condition": "fog"}, 9, {}))
    'my photos_/condition=fog/error'
    """
    about = {key: str(value) for key, value in found.about.items() if key != "model"}
    dataset = about.pop("dataset", None)
    if dataset and not dataset.strip("."):
        dataset = "_" * len(dataset)  # of which a path would be made
    parts = [*([dataset] if dataset else []), *(f"{key}={value}" for key, value in about.items()), found.metric]
    return "/".join(re.sub(r"[^\w .=-]", "_", part, flags=re.ASCII) for part in parts)


def origin_told(results: Results) -> dict[str, str]:
    """How results came about: the command, the time and the versions, and the datasets with their fingerprints."""
    return {
        "command": results.command,
        "made": results.made,
        **{f"version of {name}": version for name, version in results.versions.items()},
        **{f"dataset {card.name}": card.fingerprint for card in results.datasets},
    }


@contextmanager
def refusals_told(by: str, advice: str, refusal: type[Exception]) -> Iterator[None]:
    """What a tracker or the disk refuses becomes BadInput, without passwords that a URL in the message may hold."""
    try:
        yield
    except (refusal, OSError) as refused:
        told = re.sub(r"(?<=://)[^/\s@]*@", "...@", str(refused))
        raise BadInput(f"{by} refused the results: {told}{advice}") from None
