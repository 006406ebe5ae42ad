"""Several models on the same images: how far apart they are, whether that is more than chance, and where they differ."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import is_correct
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, CleanStudy, sure_of
from shiftproof.studies.evidence import paired_differences
from shiftproof.types import (
    About,
    Finding,
    Gallery,
    GalleryItem,
    Keep,
    LoadPredictions,
    Measurement,
    Note,
    Predictions,
    Run,
    Skipped,
)


@dataclass(frozen=True)
class ComparisonStudy(CleanStudy):
    """Every pair of models on the images all of them read: paired difference, exact test, shared errors, agreement."""

    shown: int = 24  # images in the gallery

    keep: ClassVar[Keep] = "top5"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.models) < 2:
            raise BadInput("a comparison needs at least two models")

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        runs = self.runs()
        together, name = _Together.of(runs, load), runs[0].dataset.name
        if not together.images:
            yield Skipped(f"{name}: no image was read by every model, so there is nothing to compare")
            return
        abouts = [{**first.about(), "versus": second.model.name} for first, second in combinations(runs, 2)]
        if together.labelled:
            yield from _differences(together, abouts)
        else:
            why = "saying which model is better needs labels, and no image has one that every model knows"
            yield Skipped(f"{name}: {why}")
        yield from _agreements(together, abouts)
        yield from _disagreements(together, runs, shown=self.shown)


@dataclass(frozen=True)
class _Together:
    """The predictions of every model, row by row for the same images."""

    predictions: Sequence[Predictions]
    labelled: bool
    convention: Mapping[str, str]

    @classmethod
    def of(cls, runs: Sequence[Run], load: LoadPredictions) -> _Together:
        # only the best classes are compared; the scores of all classes of all models would fill the memory
        loaded = [dataclasses.replace(load(run), logits=None, features=None, facts={}) for run in runs]
        labelled = all(predictions.labelled.any() for predictions in loaded)
        usable = [evidence.labelled_only(predictions) if labelled else predictions for predictions in loaded]
        read, common = (set.intersection(*(set(model.ids) for model in models)) for models in (loaded, usable))
        known = {image for model in loaded for image in (*model.ids, *(aside.id for aside in model.skipped_images))}
        left = evidence.left_out(skipped_images=len(known) - len(read), read=len(read), labelled=len(common))
        convention = _joined([{**run.convention(), **model.convention} for run, model in zip(runs, loaded, strict=True)])
        return cls([_in_order(model, common) for model in usable], labelled, {**convention, **left})

    @property
    def images(self) -> int:
        return len(self.predictions[0])

    @property
    def subject(self) -> evidence.Subject:
        return evidence.Subject({}, self.convention, self.predictions[0].clusters)

    @cached_property
    def correct(self) -> NDArray[np.bool_]:
        """(models, images)."""
        return np.array([is_correct(model.labels, model.top5.classes) for model in self.predictions])

    @cached_property
    def confidence(self) -> NDArray[np.floating]:
        """(models, images), nan where a model does not tell."""
        return np.array([evidence.confidence_or_nan(model) for model in self.predictions])


def _joined(conventions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """One convention of several; where they differ, all of what they say."""
    keys = dict.fromkeys(key for convention in conventions for key in convention)
    return {key: "; ".join(dict.fromkeys(convention.get(key, "not stated") for convention in conventions)) for key in keys}


def _in_order(predictions: Predictions, wanted: set[str]) -> Predictions:
    """The wanted images in the order of their ids, so that every model has the same rows."""
    row_of = {image: row for row, image in enumerate(predictions.ids)}
    return predictions.take(np.array([row_of[image] for image in sorted(wanted)], dtype=np.intp))


def _differences(together: _Together, abouts: Sequence[About]) -> Iterator[Measurement]:
    pairs = list(zip(abouts, combinations(together.correct, 2), strict=True))
    found = paired_differences(together.subject, pairs, metrics=("accuracy_difference", "accuracy_difference_p"))
    for (about, (first, second)), numbers in zip(pairs, found, strict=True):
        yield from numbers
        mistaken = ~(first & second)
        if mistaken.any():
            shared = ~(first | second)[mistaken]
            yield together.subject.also(about).take(mistaken).share("shared_errors", shared)


def _agreements(together: _Together, abouts: Sequence[About]) -> Iterator[Measurement]:
    for about, (first, second) in zip(abouts, combinations(together.predictions, 2), strict=True):
        same = _same_class(first, second)
        if same is not None:
            yield together.subject.also(about).share("agreement", same)


def _same_class(first: Predictions, second: Predictions) -> NDArray[np.bool_] | None:
    """Where two models give the same class; None where their classes cannot be matched."""
    if first.classes is None or second.classes is None:
        comparable = first.classes is second.classes
        return first.top5.classes[:, 0] == second.top5.classes[:, 0] if comparable else None
    if (first.classes.wnids is None) != (second.classes.wnids is None):
        return None
    place_in_first = {key: place for place, key in enumerate(first.classes.keys)}
    places = np.array([place_in_first.get(key, -1) for key in second.classes.keys])
    return np.asarray(first.top5.classes[:, 0] == places[second.top5.classes[:, 0]])


def _disagreements(together: _Together, runs: Sequence[Run], *, shown: int) -> Iterator[Gallery]:
    """Images that some models misclassify, the most confident first; without labels, those predicted differently."""
    confidence = np.nan_to_num(together.confidence, nan=0.0)
    if together.labelled:
        differ = together.correct.any(axis=0) & ~together.correct.all(axis=0)
        sureness = np.where(together.correct, 0.0, confidence).max(axis=0)
    else:
        matches = [_same_class(together.predictions[0], other) for other in together.predictions[1:]]
        differ = np.any([~same for same in matches if same is not None], axis=0)
        sureness = confidence.min(axis=0)
    rows = np.flatnonzero(differ)
    rows = rows[np.argsort(-sureness[rows], kind="stable")][:shown]
    if len(rows):
        about = {"dataset": runs[0].dataset.name, "models": ", ".join(run.model.name for run in runs)}
        items = tuple(GalleryItem(together.predictions[0].ids[row], _caption(together, runs, row)) for row in rows.tolist())
        yield Gallery("disagreements", about, runs[0].dataset, "Where the models disagree", items)


def _caption(together: _Together, runs: Sequence[Run], row: int) -> str:
    answers = [
        f"{run.model.name}: {sure_of(ClassNames(model.classes)[int(model.top5.classes[row, 0])], confidence)}"
        for run, model, confidence in zip(runs, together.predictions, together.confidence[:, row], strict=True)
    ]
    if not together.labelled:
        return "; ".join(answers)
    first = together.predictions[0]
    return "; ".join([f"labelled {ClassNames(first.classes).of_labels(first.labels[row])}", *answers])
