"""Predictions out of the store, labelled by the image set as it is now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import MissingRuns
from shiftproof.image_sets.label_spaces import padded_labels
from shiftproof.image_sets.scoring import Scoring
from shiftproof.store import Contents, Store, StoredModel, StoredRun
from shiftproof.types import Fact, ImageSet, Keep, ModelRef, Precision, Predictions, Run, Sample, SetAside, Top5

PRECISIONS: tuple[Precision, ...] = ("float32", "float16")


def load_predictions(
    run: Run, images: ImageSet, *, store: Store, keep: Keep = "top5", scoring: Scoring | None = None
) -> Predictions:
    """The stored answers of a run, labelled by the set as it is now; MissingRuns where some were never made."""
    model = store.model(run.model)
    samples = list(images.samples)
    digests = store.digests.digests([images.source(sample) for sample in samples])
    stored, contents = _fullest(store, run, keep)
    if model is None or stored is None:
        raise _missing(run, store, len(samples), len(samples))
    pairs = zip(samples, digests, strict=True)
    good = [(sample, digest) for sample, digest in pairs if (sample.id, digest) in contents.rows]
    aside = tuple(_aside(samples, digests, contents))
    if len(good) + len(aside) < len(samples):
        raise _missing(run, store, len(samples) - len(good) - len(aside), len(samples))
    arrays = stored.load([(sample.id, digest or "") for sample, digest in good], keep)
    kept = [sample for sample, _ in good]
    names = dict.fromkeys(name for sample in kept for name in sample.facts)
    facts: dict[str, tuple[Fact, ...]] = {name: tuple(sample.facts.get(name) for sample in kept) for name in names}
    predictions = Predictions(
        ids=tuple(sample.id for sample in kept),
        labels=padded_labels(kept),
        gives=model.gives,
        top5=Top5(*(_rows_of(arrays, name, model) for name in ("top5_classes", "top5_scores", "log_total"))),
        classes=model.classes,
        logits=_rows_of(arrays, "logits", model) if keep in ("logits", "features") else None,
        features=arrays.get("features"),
        head=store.head(run.model) if keep == "features" else None,
        facts=facts,
        set_aside=aside,
    )
    if images.classes is None:
        return predictions
    space = (scoring or Scoring()).space(images.classes, model.classes, outputs=model.outputs or 0)
    return space.project(predictions)


def has_answered(model: ModelRef, images: ImageSet, *, store: Store) -> bool:
    """Whether some of these images have a stored answer of this model."""
    ids = {sample.id for sample in images.samples}
    contents = _fullest(store, Run(model, images.ref), "top5")[1]
    return any(image_id in ids for image_id, _ in contents.rows)


def _rows_of(arrays: dict[str, NDArray[Any]], name: str, model: StoredModel) -> NDArray[Any]:
    if name in arrays:
        return arrays[name]
    width = {"top5_classes": (5,), "top5_scores": (5,), "logits": (model.outputs or 0,)}.get(name, ())
    return np.empty((0, *width), np.int32 if name == "top5_classes" else np.float32)


def _fullest(store: Store, run: Run, keep: Keep) -> tuple[StoredRun | None, Contents]:
    """The rows at full precision where there are any, else those at half."""
    for precision in PRECISIONS:
        stored = store.run(run.model, run.condition, precision)
        contents = stored.contents(keep)
        if contents.rows or contents.aside:
            return stored, contents
    return None, Contents()


def _aside(samples: Sequence[Sample], digests: Sequence[str | None], contents: Contents) -> Iterator[SetAside]:
    for sample, digest in zip(samples, digests, strict=True):
        if digest is None:
            yield SetAside(sample.id, "cannot be read")
        elif (sample.id, digest) not in contents.rows and (sample.id, digest) in contents.aside:
            yield SetAside(sample.id, contents.aside[sample.id, digest])


def _missing(run: Run, store: Store, missing: int, images: int) -> MissingRuns:
    place = run.image_set.location or run.image_set.name
    command = shlex.join(["shiftproof", "predict", run.model.name, place, "--store", str(store.root)])
    return MissingRuns(
        f"{run.model.name} on {run.image_set.name} ({run.condition}): {missing} of {images} images have no prediction; "
        f"make them with: {command}"
    )
