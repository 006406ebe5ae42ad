"""The gate at the bench: predictions of a model and of its baseline, paired image by image, and held to rules."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import shiftproof
from shiftproof.bench.steps import Bench, can_be_loaded
from shiftproof.datasets.clusters import Clustering, clustering
from shiftproof.errors import BadInput
from shiftproof.options import ModelSettings, PictureSettings, PredictionSettings
from shiftproof.runs.load import alike_in, digests_of, load_predictions
from shiftproof.runs.stored_models import SHORT
from shiftproof.studies.base import ClassNames
from shiftproof.studies.evidence import confidence_or_nan, labelled_only
from shiftproof.studies.gate.baseline import Baseline, classes_print, is_baseline, tags_of
from shiftproof.studies.gate.checks import Compared, checked, overall, worst_slices
from shiftproof.studies.gate.outcome import Gate
from shiftproof.studies.gate.per_image import Columns, columns_of, keep_for, kept_of
from shiftproof.studies.gate.rules import CLASS, GateRule, Policy, parsed_condition
from shiftproof.studies.measure import versions
from shiftproof.studies.options import pictures_of
from shiftproof.types import CLEAN, Classifier, Condition, Dataset, Model, ModelRef, ObjectDetector, Predictions, Run

if TYPE_CHECKING:
    from shiftproof.runs.predict import Progress

AS_THEY_ARE = "clean"
"""The images as they are, in the list of conditions of a baseline."""

Rows = NDArray[np.intp]


@contextmanager
def collection(*, enabled: bool) -> Iterator[None]:
    """With garbage collection or without: names and digests of 50,000 images hold no cycle, and looking takes long."""
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        yield
    finally:
        (gc.enable if before else gc.disable)()


@dataclass(frozen=True)
class Gated:
    """One job of the gate: a dataset, the rules, and what they need of each model."""

    bench: Bench
    images: Dataset
    rules: Sequence[GateRule]
    prediction: PredictionSettings
    progress: Progress | None

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return columns_of([rule.metric for rule in self.rules])

    @cached_property
    def digests(self) -> Mapping[str, str | None]:
        return digests_of(self.images, self.bench.store)

    @cached_property
    def clustering(self) -> Clustering:
        by = self.bench.scoring_options.cluster
        found = clustering(by)
        found.check([self.images])
        return found.joining(self.images.samples, {} if by else alike_in(self.images, self.bench.store))

    def conditions(self, model: Model | ModelRef) -> dict[str | None, Condition]:
        """The conditions that rules name, the images as they are first; pictures are those of a corruption study."""
        from shiftproof.studies.corruption.study import CorruptionStudy

        found: dict[str | None, Condition] = {None: CLEAN}
        for text in dict.fromkeys(rule.condition for rule in self.rules if rule.condition):
            name, severity = parsed_condition(text)
            pictures = pictures_of(PictureSettings(), [model], self.images, self.bench.context)
            study = CorruptionStudy([model], self.images, corruptions=[name], severities=[severity], **pictures)
            found[text] = study.condition(name, severity)
        return found

    def model(self, model: str | Model | ModelRef, options: ModelSettings) -> Model | ModelRef:
        """The model itself, so that a file that changed is noticed; a stored one where only its name is known."""
        if isinstance(model, str):
            if "?" not in model and not can_be_loaded(model):
                return self.bench.context.stored_model(model)
            from shiftproof.models import spelled_options  # what is stored is read without models
            from shiftproof.models.by_settings import load_any

            spec, said = spelled_options(model)
            model = load_any(spec, dataclasses.replace(options, **said), self.prediction)
        if isinstance(model, ObjectDetector):
            raise BadInput(
                f"the gate judges classifiers, and {model.ref.name} predicts boxes; name boxes:MODEL to judge one"
            )
        if isinstance(model, ModelRef):
            return model
        adapted: Classifier = self.bench.adapted(model, self.images)
        return adapted

    def predictions(
        self, model: Model | ModelRef, conditions: Mapping[str | None, Condition]
    ) -> dict[str | None, Predictions]:
        """What the model predicts for labelled images under every condition; what is not stored is predicted now."""
        keep = keep_for(self.columns)
        if not isinstance(model, ModelRef):
            from shiftproof.runs.predict import check_classes, fill_conditions

            check_classes(model, self.images, self.bench.scoring)
            self.bench.tell_preprocessing(model, [self.images], self.prediction)
            with collection(enabled=True):
                fill_conditions(
                    model,
                    self.images,
                    dict.fromkeys(conditions.values()),
                    store=self.bench.store,
                    settings=self.prediction,
                    keep=keep,
                    progress=self.progress,
                )
        ref = model if isinstance(model, ModelRef) else model.ref
        found = {
            text: labelled_only(
                load_predictions(
                    Run(ref, self.images.ref, condition),
                    self.images,
                    store=self.bench.store,
                    keep=keep,
                    scoring=self.bench.scoring,
                    clustering=self.clustering,
                    digests=self.digests,
                )
            )
            for text, condition in conditions.items()
        }
        if not len(found[None]):
            raise BadInput(
                f"no image of {self.images.ref.name} has a label that {ref.name} knows, and a gate compares with labels"
            )
        return found

    def tags(self, ids: Sequence[str]) -> NDArray[np.uint32]:
        """What tells whether picture and label of each image are those of a baseline."""
        keys = self.images.classes.keys if self.images.classes else ()
        labels = {sample.id: [keys[place] for place in sample.labels] for sample in self.images.samples}
        return tags_of([self.digests[one] for one in ids], [labels[one] for one in ids])

    def baseline(self, model: Model | ModelRef) -> Baseline:
        """What the model got right, as a file holds it."""
        ref = model if isinstance(model, ModelRef) else model.ref
        conditions = self.conditions(model)
        found = self.predictions(model, conditions)
        common = set.intersection(*(set(one.ids) for one in found.values()))
        ids = tuple(one for one in found[None].ids if one in common)
        return Baseline(
            model=ref.name,
            fingerprint=ref.fingerprint,
            dataset=self.images.ref.name,
            classes=classes_print(self.images.classes),
            scoring=self.scoring(found[None], conditions),
            ids=ids,
            tags=self.tags(ids),
            runs={
                text or AS_THEY_ARE: kept_of(one.take(_places(one.ids, ids)), self.columns) for text, one in found.items()
            },
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            version=shiftproof.__version__,
        )

    @staticmethod
    def scoring(predictions: Predictions, conditions: Mapping[str | None, Condition]) -> dict[str, str]:
        """How labels and outputs were matched, and how pictures were made: what two results must have in common."""
        pictures = {
            str(text): f"{condition.picture}, {condition.edition}, {condition.output}, seed {condition.seed}"
            for text, condition in conditions.items()
            if text is not None
        }
        return {**{str(key): str(value) for key, value in predictions.convention.items()}, **pictures}

    def judged(self, model: Model | ModelRef, against: str | Model | ModelRef | None, policy: Policy | None) -> Gate:
        """The verdict of the rules on a model."""
        held = self.held(against)
        conditions = self.conditions(model)
        new = self.predictions(model, conditions)
        old = None if against is None else self.old(against, held, conditions, new)
        compared = {text: _compared(found, old, text, self.columns) for text, found in new.items()}
        checks = checked(self.rules, compared, policy)
        clean, ref = compared[None], model if isinstance(model, ModelRef) else model.ref
        worst, slices = worst_slices(clean, new[None].ids)
        lost, gained = _moved(clean, new[None])
        name = ref.name
        if old is not None and old.name == name and old.fingerprint != ref.fingerprint:
            name, old = f"{name}@{ref.fingerprint[:SHORT]}", old.called(f"{name}@{old.fingerprint[:SHORT]}")
        return Gate(
            verdict=overall(checks),
            model=name,
            dataset=self.images.ref.name,
            against=None if old is None else old.name,
            images=len(new[None]),
            compared=len(clean.both) if old else 0,
            checks=tuple(checks),
            worst=worst,
            slices=slices,
            lost=lost,
            gained=gained,
            new_images=old.new_images(new[None].ids) if old else (),
            gone_images=old.gone if old else (),
            changed_images=old.changed if old else (),
            notes=_notes(ref, new[None], old),
            made=datetime.now(UTC).isoformat(timespec="seconds"),
            versions=versions(),
        )

    def held(self, against: str | Model | ModelRef | None) -> Baseline | None:
        """The baseline where it is a file, checked before anything is predicted; BadInput where it is of other images."""
        if not isinstance(against, str):
            return None
        if not is_baseline(against):
            if against.endswith(".json"):
                wrong = "is no baseline as shiftproof gate writes it" if Path(against).exists() else "is not there"
                raise BadInput(f"{against} {wrong}; write it with: shiftproof gate MODEL DATASET --write-baseline {against}")
            return None
        held, classes, again = Baseline.load(against), classes_print(self.images.classes), _again(against)
        name = self.images.ref.name
        if held.classes != classes:
            raise BadInput(
                f"{against} is of {held.dataset} ({held.classes}), and {name} has other classes ({classes}); {again}"
            )
        for condition in dict.fromkeys(rule.condition for rule in self.rules):
            held.columns(condition or AS_THEY_ARE, self.columns, against)
        if not {sample.id for sample in self.images.samples} & set(held.ids):
            raise BadInput(f"{against} is of {held.dataset}, and none of its images is in {name}; {again}")
        return held

    def old(
        self,
        against: str | Model | ModelRef,
        held: Baseline | None,
        conditions: Mapping[str | None, Condition],
        new: Mapping[str | None, Predictions],
    ) -> _Old:
        """What the baseline got right: out of its file, of the store or predicted now."""
        if held is not None:
            return self._from_file(str(against), held, conditions, new)
        plain = {name: getattr(self.bench.model_options, name) for name in ("trust", "device", "threads")}
        loaded = self.model(against, ModelSettings(**plain))
        found = self.predictions(loaded, conditions)
        ref = loaded if isinstance(loaded, ModelRef) else loaded.ref
        runs = {text: (one.ids, kept_of(one, self.columns)) for text, one in found.items()}
        return _Old(ref.name, ref.fingerprint, runs)

    def _from_file(
        self,
        path: str,
        held: Baseline,
        conditions: Mapping[str | None, Condition],
        new: Mapping[str | None, Predictions],
    ) -> _Old:
        """The images of the file whose pictures and labels are still the same."""
        scoring = self.scoring(new[None], conditions)
        for key in scoring.keys() & held.scoring.keys():
            if scoring[key] != held.scoring[key]:
                raise BadInput(
                    f"{path} was made with {key} {held.scoring[key]!r}, and now it is {scoring[key]!r}; {_again(path)}"
                )
        now = {sample.id for sample in self.images.samples}
        places = np.array([place for place, one in enumerate(held.ids) if one in now], np.intp)
        present = [held.ids[place] for place in places.tolist()]
        same = self.tags(present) == held.tags[places]
        if not same.any():
            raise BadInput(
                f"every image of {path} has another picture or label in {self.images.ref.name} now; {_again(path)}"
            )
        usable = tuple(one for one, kept in zip(present, same.tolist(), strict=True) if kept)
        columns = {text: held.columns(text or AS_THEY_ARE, self.columns, path) for text in conditions}
        return _Old(
            held.model,
            held.fingerprint,
            {text: (usable, {name: one[places[same]] for name, one in kept.items()}) for text, kept in columns.items()},
            gone=tuple(one for one in held.ids if one not in now),
            changed=tuple(one for one, kept in zip(present, same.tolist(), strict=True) if not kept),
        )


def _again(path: str) -> str:
    return f"write it again: shiftproof gate MODEL DATASET --write-baseline {path}"


@dataclass(frozen=True)
class _Old:
    """The baseline: which images it has, and what is kept of each, by condition."""

    name: str
    fingerprint: str
    runs: Mapping[str | None, tuple[Sequence[str], Columns]]
    gone: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def called(self, name: str) -> _Old:
        return dataclasses.replace(self, name=name)

    def new_images(self, ids: Sequence[str]) -> tuple[str, ...]:
        """Images of the new model that the baseline never had."""
        known = {*self.runs[None][0], *self.changed}
        return tuple(one for one in ids if one not in known)


def _places(ids: Sequence[str], wanted: Sequence[str]) -> Rows:
    place_of = {one: place for place, one in enumerate(ids)}
    return np.fromiter((place_of[one] for one in wanted), np.intp, len(wanted))


def _places_or_none(ids: Sequence[str], wanted: Sequence[str]) -> Rows:
    """The place of each wanted image, -1 where it is not there."""
    place_of = {one: place for place, one in enumerate(ids)}
    return np.fromiter((place_of.get(one, -1) for one in wanted), np.intp, len(wanted))


def _compared(new: Predictions, old: _Old | None, condition: str | None, columns: Sequence[str]) -> Compared:
    """Both models on the images of the new one."""
    facts = {CLASS: _class_names(new), **new.facts}
    kept = kept_of(new, columns)
    if old is None:
        return Compared(kept, None, np.empty(0, np.intp), new.clusters, facts)
    ids, theirs = old.runs[condition]
    places = np.arange(len(ids)) if ids == new.ids else _places_or_none(ids, new.ids)
    both = np.flatnonzero(places >= 0)
    return Compared(kept, {name: one[places[both]] for name, one in theirs.items()}, both, new.clusters, facts)


def _class_names(predictions: Predictions) -> tuple[str, ...]:
    """The class of each image, of several labels the first."""
    names = ClassNames(predictions.classes)
    places, first = np.unique(predictions.labels[:, 0], return_inverse=True)
    named = [names[place] for place in places.tolist()]
    return tuple(named[place] for place in first.tolist())


def _moved(compared: Compared, new: Predictions) -> tuple[tuple[str, ...], int]:
    """Images that only the baseline has right, the most confident mistakes first, and how many only the new model has."""
    if compared.old is None:
        return (), 0
    ours, theirs = compared.new["correct"][compared.both].astype(bool), compared.old["correct"].astype(bool)
    rows = compared.both[theirs & ~ours]
    sureness = np.nan_to_num(confidence_or_nan(new)[rows], nan=0.0)
    return tuple(new.ids[row] for row in rows[np.argsort(-sureness, kind="stable")]), int((ours & ~theirs).sum())


def _notes(ref: ModelRef, new: Predictions, old: _Old | None) -> tuple[str, ...]:
    skipped = [f"{len(new.skipped_images)} images could not be read"] if new.skipped_images else []
    same = old is not None and old.fingerprint == ref.fingerprint
    return (*skipped, *(["the model is its own baseline: both have the same weights and preprocessing"] if same else []))
