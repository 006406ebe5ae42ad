"""Stored predictions as a table for other programs: a row for each image, or for each box of an object detector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import unlabelled
from shiftproof.errors import ClassMismatch
from shiftproof.files import encodable, writing
from shiftproof.metrics.accuracy import is_correct
from shiftproof.places import as_path
from shiftproof.registry import missing_extra
from shiftproof.runs.load import load_found, load_predictions
from shiftproof.runs.store import Store
from shiftproof.tables import csv_text
from shiftproof.types import Classes, Dataset, Fact, FoundObjects, Predictions, Run

Columns: TypeAlias = Mapping[str, Sequence[Any]]
"""A table by column, all of the same length."""

BEST = 5
SEVERAL = " | "
"""Between the classes of an image that has several correct ones."""

RUN: Mapping[str, type] = {"model": str, "dataset": str, "condition": str, "severity": int, "picture": str, "output": str}
CLASSIFIED: Mapping[str, type] = {
    **RUN,
    "id": str,
    "label": str,
    "label_wnid": str,
    "prediction": str,
    "prediction_wnid": str,
    "correct": bool,
    "confidence": float,
    **{
        f"{what}_{place}": kind
        for place in range(2, BEST + 1)
        for what, kind in (("prediction", str), ("confidence", float))
    },
}
"""Columns of classifiers, before those of facts. Confidence is the probability, or the score where a model gives scores."""

BOXES: Mapping[str, type] = {
    **RUN,
    "id": str,
    "prediction": str,
    "score": float,
    **dict.fromkeys(("left", "top", "right", "bottom"), float),
    "image_width": int,
    "image_height": int,
}
"""Columns of object detectors."""


def save_predictions(
    path: str | Path, runs: Sequence[Run], datasets: Iterable[Dataset], *, store: Store, scoring: Scoring | None = None
) -> None:
    """Writes the stored predictions of runs as CSV, or as Parquet where the name ends so; never runs a model.

    Companions that a study made of a model are left out.
    """
    sets = {images.ref: images for images in datasets}
    models = {run.model: model for run in runs if (model := store.model(run.model)) and model.companion is None}
    wanted = [run for run in dict.fromkeys(runs) if run.model in models]
    boxes = any(model.gives == "boxes" for model in models.values())  # models of a job predict the same
    used = [sets[dataset] for dataset in dict.fromkeys(run.dataset for run in wanted)]
    facts = list(dict.fromkeys(name for images in used for sample in images.samples for name in sample.facts))
    kinds = BOXES if boxes else {**CLASSIFIED, **{f"fact_{name}": str for name in facts}}
    with _writer(as_path(path), kinds) as table:
        for run in wanted:
            images, shift = sets[run.dataset], run.condition
            found = _found(run, images, store) if boxes else _classified(run, images, store, scoring, facts)
            values = (run.model.name, run.dataset.name, shift.name, shift.severity, shift.picture, shift.output)
            rows = len(found["id"])
            table.write({**{name: [value] * rows for name, value in zip(RUN, values, strict=True)}, **found})


def _classified(run: Run, images: Dataset, store: Store, scoring: Scoring | None, facts: Sequence[str]) -> Columns:
    try:
        found = load_predictions(run, images, store=store, scoring=scoring, partial=True)
    except ClassMismatch:
        rule = Scoring(unmatched="unlabelled")
        found = load_predictions(run, unlabelled(images), store=store, scoring=rule, partial=True)
    return prediction_columns(found, facts)


def prediction_columns(predictions: Predictions, facts: Sequence[str] = ()) -> Columns:
    """Label, best classes and confidence in each, and some facts of the images."""
    images, classes, top5 = len(predictions), predictions.classes, predictions.top5
    scores = top5.scores.astype(np.float64)
    shares = np.exp(scores - top5.log_total[:, None]) if predictions.gives == "logits" else scores
    correct = np.zeros(images, bool)
    if (has := predictions.labelled).any():
        correct[has] = is_correct(predictions.labels[has], top5.classes[has])
    best = range(min(BEST, top5.classes.shape[1]))
    own = [[place for place in row if place >= 0] for row in predictions.labels.tolist()]
    with_wnids = classes is not None and classes.wnids is not None
    nothing = [None] * images
    columns: dict[str, Sequence[Any]] = {
        "id": [encodable(one) for one in predictions.ids],
        "label": [_joined(classes, row) for row in own],
        "label_wnid": [_joined(classes, row, wnids=True) for row in own] if with_wnids else nothing,
        "prediction": [_joined(classes, [place]) for place in top5.classes[:, 0].tolist()],
        "prediction_wnid": nothing,
        "correct": [right if row else None for right, row in zip(correct.tolist(), own, strict=True)],
        "confidence": _numbers(shares[:, 0]),
    }
    if with_wnids:
        columns["prediction_wnid"] = [_joined(classes, [place], wnids=True) for place in top5.classes[:, 0].tolist()]
    for place in range(1, BEST):
        there = place in best
        names = [_joined(classes, [one]) for one in top5.classes[:, place].tolist()] if there else nothing
        columns |= {f"prediction_{place + 1}": names}
        columns |= {f"confidence_{place + 1}": _numbers(shares[:, place]) if there else nothing}
    return {**columns, **{f"fact_{name}": [_text(one) for one in predictions.facts.get(name, nothing)] for name in facts}}


def _joined(classes: Classes | None, places: Sequence[int], *, wnids: bool = False) -> str | None:
    if not places:
        return None
    names = None if classes is None else classes.wnids if wnids else classes.names
    return SEVERAL.join(str(place) if names is None else encodable(names[place]) for place in places)


def _numbers(values: Any) -> list[float | None]:
    return [one if np.isfinite(one) else None for one in values.tolist()]


def _text(fact: Fact) -> str | None:
    return None if fact is None else encodable(str(fact))


def _found(run: Run, images: Dataset, store: Store) -> Columns:
    return box_columns(load_found(run, images, store=store, scoring=Scoring(unmatched="unlabelled"), partial=True))


def box_columns(found: FoundObjects) -> Columns:
    """Image, class, score and corners of each detected box, in pixels."""
    boxes = found.detections
    sides = dict(zip(("left", "top", "right", "bottom"), boxes.boxes.T.tolist(), strict=True))
    heights, widths = found.sizes[boxes.image].reshape(-1, 2).T.tolist()
    return {
        "id": [encodable(boxes.ids[place]) for place in boxes.image.tolist()],
        "prediction": [encodable(found.classes.names[place]) for place in boxes.classes.tolist()],
        "score": _numbers(boxes.scores.astype(np.float64)),
        **sides,
        "image_width": widths,
        "image_height": heights,
    }


class _Writer(Protocol):
    def write(self, columns: Columns) -> None: ...


@contextmanager
def _writer(path: Path, kinds: Mapping[str, type]) -> Iterator[_Writer]:
    """Takes columns of some rows at a time, so that a run is in memory and not all of them."""
    parquet = path.name.lower().endswith(".parquet")
    if parquet:
        _pyarrow()  # before there is a file
    with writing(path) as unfinished, (_Parquet if parquet else _Csv)(unfinished, kinds) as table:
        yield table


class _Csv:
    def __init__(self, path: Path, kinds: Mapping[str, type]) -> None:
        self._path, self._columns, self._head = path, list(kinds), True

    def __enter__(self) -> _Csv:
        self._file = self._path.open("w", encoding="utf-8", newline="")
        self.write({name: [] for name in self._columns})
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, columns: Columns) -> None:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        self._file.write(csv_text(rows, self._columns, head=self._head))
        self._head = False


class _Parquet:
    def __init__(self, path: Path, kinds: Mapping[str, type]) -> None:
        pyarrow = _pyarrow()
        types = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
        self._pyarrow = pyarrow
        self._schema = pyarrow.schema([(name, types[kind]) for name, kind in kinds.items()])
        self._path = path

    def __enter__(self) -> _Parquet:
        from pyarrow import parquet

        self._file = parquet.ParquetWriter(self._path, self._schema)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, columns: Columns) -> None:
        self._file.write_table(self._pyarrow.table(dict(columns), schema=self._schema))


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ModuleNotFoundError as missing:
        raise missing_extra("Parquet", missing) from missing
    return pyarrow
