"""Predictions out of the store, labelled by the image set as it is now."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import DamagedFile, MissingRuns, NotKept
from shiftproof.image_sets.clusters import Clustering, linked
from shiftproof.image_sets.label_spaces import LabelSpace, padded_labels
from shiftproof.image_sets.scoring import Scoring
from shiftproof.store import Store, StoredModel
from shiftproof.stored_rows import TOP5, Contents, Rows, StoredRun, joined_rows
from shiftproof.types import (
    CLEAN,
    Classes,
    Condition,
    Fact,
    Gives,
    Head,
    ImageSet,
    ImageSource,
    Keep,
    ModelRef,
    Precision,
    Predictions,
    Run,
    Sample,
    SetAside,
    Top5,
    richest,
)

PRECISIONS: tuple[Precision, ...] = ("float32", "float16")

BLOCK_ROWS = 4096
"""Training images that are read together: 50 MB with 2048 features and 1000 classes."""


def load_predictions(
    run: Run,
    images: ImageSet,
    *,
    store: Store,
    keep: Keep = "top5",
    scoring: Scoring | None = None,
    clustering: Clustering | None = None,
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
) -> Predictions:
    """The stored answers of a run, labelled by the set as it is now; MissingRuns where some were never made.

    `partial` takes what there is instead. `digests`, as of `digests_of`, spare asking for them where many runs are loaded.
    """
    while True:
        answers = _answers(run, images, store, keep, scoring or Scoring(), partial, digests)
        located = answers.located
        try:
            rows = located.stored.load(located.pairs, answers.keep, classes=located.model.outputs)
            break
        except DamagedFile:
            continue  # it is set aside now: other rows may do, or MissingRuns says what is not there any more
    predictions = answers.labelled(located.kept, rows)
    return dataclasses.replace(predictions, grouped=(clustering or Clustering()).of(located.kept))


def load_training(
    run: Run,
    images: ImageSet,
    *,
    store: Store,
    keep: Keep = "features",
    scoring: Scoring | None = None,
    clustering: Clustering | None = None,  # noqa: ARG001 what is learnt from has no intervals
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
) -> StoredTraining:
    """The same block by block, for learning from more rows than memory holds."""
    return StoredTraining(_answers(run, images, store, keep, scoring or Scoring(), partial, digests))


@dataclass(frozen=True)
class Located:
    """Where the answers of a run lie, and which images they are of."""

    stored: StoredRun
    model: StoredModel
    kept: Sequence[Sample]  # images with an answer
    digests: Mapping[str, str | None]
    set_aside: tuple[SetAside, ...]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(sample.id, self.digests[sample.id] or "") for sample in self.kept]


@dataclass(frozen=True)
class _Answers:
    """Stored scores of classes, and how they are labelled."""

    located: Located
    gives: Gives
    keep: Keep
    head: Head | None
    space: LabelSpace | None  # None where there is nothing to label

    def labelled(self, samples: Sequence[Sample], arrays: Mapping[str, NDArray[Any]]) -> Predictions:
        """Rows of the store with labels as the set has them now."""
        model = self.located.model
        predictions = Predictions(
            ids=tuple(sample.id for sample in samples),
            labels=padded_labels(samples),
            gives=self.gives,
            top5=Top5(*(_rows_of(arrays, name, model) for name in TOP5)),
            classes=model.classes,
            logits=_rows_of(arrays, "logits", model) if self.keep in ("logits", "features") else None,
            features=arrays.get("features"),
            extra=arrays.get("extra"),
            head=self.head,
            facts=facts_of(samples),
            set_aside=self.located.set_aside,
        )
        return predictions if self.space is None else self.space.project(predictions)


@dataclass(frozen=True)
class StoredTraining:
    """What a model said of its training images, read from the store anew at every walk, in the order in which it lies."""

    answers: _Answers

    def __len__(self) -> int:
        return len(self.answers.located.kept)

    @cached_property
    def _without_rows(self) -> Predictions:
        return self.answers.labelled([], {})

    @property
    def head(self) -> Head | None:
        return self._without_rows.head

    @property
    def classes(self) -> Classes | None:
        return self._without_rows.classes

    @property
    def set_aside(self) -> tuple[SetAside, ...]:
        return self.answers.located.set_aside

    def blocks(self) -> Iterator[Predictions]:
        """About `BLOCK_ROWS` images at a time."""
        located = self.answers.located
        samples = {sample.id: sample for sample in located.kept}
        for rows in _gathered(located.stored.walk(located.pairs, self.answers.keep, classes=located.model.outputs)):
            yield self.answers.labelled([samples[key] for key in rows.ids], rows.arrays)


def _gathered(files: Iterable[Rows]) -> Iterator[Rows]:
    """Rows of several files as one, where they are few."""
    some: list[Rows] = []
    for rows in files:
        some.append(rows)
        if sum(len(part.ids) for part in some) >= BLOCK_ROWS:
            yield joined_rows(some) or rows
            some = []
    if some:
        yield joined_rows(some) or some[0]


def _answers(
    run: Run,
    images: ImageSet,
    store: Store,
    keep: Keep,
    scoring: Scoring,
    partial: bool,
    digests: Mapping[str, str | None] | None,
) -> _Answers:
    keep = richest([keep, scoring.keep])
    located = locate(run, images, store=store, keep=keep, partial=partial, digests=digests)
    model = located.model
    if model.gives == "boxes":
        raise NotKept(f"{model.ref.name} answered with boxes, and this asks for classes; name a study of detection")
    space = None
    if images.classes is not None and located.kept:
        space = scoring.space(images.classes, model.classes, outputs=model.outputs or 0)
    head = store.head(run.model) if keep == "features" else None
    return _Answers(located, model.gives, keep, head, space)


def locate(
    run: Run,
    images: ImageSet,
    *,
    store: Store,
    keep: Keep,
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
) -> Located:
    """Where the answers of a run lie; MissingRuns where some were never made, unless `partial` takes what there is."""
    model = store.model(run.model)
    if model is None:
        raise _missing(run, store, keep, len(images.samples), len(images.samples))
    digests = digests_of(images, store) if digests is None else digests
    stored, contents = _fullest(store, run, keep, digests)
    aside = tuple(_aside(digests, contents))
    kept = [sample for sample in images.samples if (sample.id, digests[sample.id]) in contents.rows]
    missing = len(digests) - len(kept) - len(aside)
    if missing and not partial:
        raise _missing(run, store, keep, missing, len(digests))
    return Located(stored, model, kept, digests, aside)


def has_answered(model: ModelRef, images: ImageSet, *, store: Store) -> bool:
    """Whether every image of the set that can be read has a stored answer of this model, or was set aside."""
    digests = digests_of(images, store)
    contents = _fullest(store, Run(model, images.ref), "top5", digests)[1]
    known = {**contents.rows, **contents.aside}
    return bool(contents.rows) and all(digest is None or (key, digest) in known for key, digest in digests.items())


def facts_of(samples: Sequence[Sample]) -> dict[str, tuple[Fact, ...]]:
    """Every fact that some image has, one entry an image, None where it has not."""
    names = dict.fromkeys(name for sample in samples for name in sample.facts)
    return {name: tuple(sample.facts.get(name) for sample in samples) for name in names}


def digests_of(images: ImageSet, store: Store) -> dict[str, str | None]:
    """The digest of every image by its id, in the order of the set; None for one that cannot be read."""
    samples = images.samples
    digests = store.digests.digests([images.source(sample) for sample in samples])
    return dict(zip((sample.id for sample in samples), digests, strict=True))


def alike_in(images: ImageSet, store: Store) -> dict[str, str]:
    """Images that look like another, by id: those that are alike have the same value.

    That is known where duplicates were looked for, among these images or others with the same bytes. What is made out of
    an image, such as a crop, looks like what is made out of its near-duplicate.
    """
    pairs = list(store.alike())
    known = {digest for pair in pairs for digest in pair}
    if not known:
        return {}
    sources = [images.source(sample) for sample in images.samples]
    behind = {place: inner for place, source in enumerate(sources) if (inner := _innermost(source)) is not source}
    digests = store.digests.digests([*sources, *behind.values()])
    own, stored = digests[: len(sources)], digests[len(sources) :]
    made_of = ((own[place], digest) for place, digest in zip(behind, stored, strict=True))
    pairs += [(made, of) for made, of in made_of if made and of and known & {made, of}]
    group_of = linked(pairs)
    return {
        sample.id: group_of[digest]
        for sample, digest in zip(images.samples, own, strict=True)
        if digest is not None and digest in group_of
    }


def _innermost(source: ImageSource) -> ImageSource:
    """The stored image that another is made out of when it is read; itself where it is stored as it is."""
    while (inner := getattr(source, "source", None)) is not None:
        source = inner
    return source


def _rows_of(arrays: Mapping[str, NDArray[Any]], name: str, model: StoredModel) -> NDArray[Any]:
    if name in arrays:
        return arrays[name]
    width = {"top5_classes": (5,), "top5_scores": (5,), "logits": (model.outputs or 0,)}.get(name, ())
    return np.empty((0, *width), np.int32 if name == "top5_classes" else np.float32)


def _fullest(store: Store, run: Run, keep: Keep, digests: Mapping[str, str | None]) -> tuple[StoredRun, Contents]:
    """The rows that answer most of these images; full precision where both answer as many."""
    stored = [store.run(run.model, run.condition, precision) for precision in PRECISIONS]
    found = [(one, one.contents(keep)) for one in stored]
    return max(found, key=lambda one: sum(pair in one[1].rows for pair in digests.items()))


def _aside(digests: Mapping[str, str | None], contents: Contents) -> Iterator[SetAside]:
    for image_id, digest in digests.items():
        if digest is None:
            yield SetAside(image_id, "cannot be read")
        elif (image_id, digest) not in contents.rows and (image_id, digest) in contents.aside:
            yield SetAside(image_id, contents.aside[image_id, digest])


def _missing(run: Run, store: Store, keep: Keep, missing: int, images: int) -> MissingRuns:
    place = run.image_set.location or run.image_set.name
    kept = {"top5": [], "boxes": ["--boxes", "auto"]}.get(keep, ["--keep", keep])
    command = shlex.join(["shiftproof", "predict", run.model.name, place, "--store", str(store.root), *kept])
    if run.condition != CLEAN:
        command = "shiftproof run, with the same options"
    return MissingRuns(
        f"{run.model.name} on {run.image_set.name} ({run.condition}): {missing} of {images} images have no prediction",
        call=python_call(run, store, keep),
        command=command,
    )


def python_call(run: Run, store: Store, keep: Keep) -> str:
    """What makes a run from Python."""
    condition = "" if run.condition == CLEAN else f", condition={_spelled(run.condition)}"
    stored = f'{condition}, store="{store.root}"'
    if keep == "boxes":
        return f"sp.detect(detector, images{stored})"
    kept = "" if keep == "top5" else f', keep="{keep}"'
    return f"sp.predict(model, images{stored}{kept})"


def _spelled(condition: Condition) -> str:
    """A condition as Python makes it.

    >>> _spelled(Condition("fog", 3, edition="tiny-64"))
    'sp.Condition("fog", 3, edition="tiny-64")'
    """
    plain = Condition(condition.name, condition.severity)
    said = {
        field.name: getattr(condition, field.name)
        for field in dataclasses.fields(condition)
        if getattr(condition, field.name) != getattr(plain, field.name)
    }
    parts = [json.dumps(condition.name), *([str(condition.severity)] if condition.severity else [])]
    parts += [f"{name}={json.dumps(value) if isinstance(value, str) else repr(value)}" for name, value in said.items()]
    return f"sp.Condition({', '.join(parts)})"
