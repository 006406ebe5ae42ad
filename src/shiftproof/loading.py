"""Predictions out of the store, labelled by the image set as it is now."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import MissingRuns
from shiftproof.image_sets.label_spaces import padded_labels
from shiftproof.image_sets.scoring import Scoring
from shiftproof.store import Contents, Store, StoredModel, StoredRun
from shiftproof.types import CLEAN, Fact, ImageSet, Keep, ModelRef, Precision, Predictions, Run, SetAside, Top5, richest

PRECISIONS: tuple[Precision, ...] = ("float32", "float16")


def load_predictions(
    run: Run,
    images: ImageSet,
    *,
    store: Store,
    keep: Keep = "top5",
    scoring: Scoring | None = None,
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
) -> Predictions:
    """The stored answers of a run, labelled by the set as it is now; MissingRuns where some were never made.

    `partial` takes what there is instead. `digests`, as of `digests_of`, spare asking for them where many runs are loaded.
    """
    scoring = scoring or Scoring()
    keep = richest([keep, scoring.keep])
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
    arrays = stored.load([(sample.id, digests[sample.id] or "") for sample in kept], keep)
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
    if images.classes is None or not kept:
        return predictions
    space = scoring.space(images.classes, model.classes, outputs=model.outputs or 0)
    return space.project(predictions)


def has_answered(model: ModelRef, images: ImageSet, *, store: Store) -> bool:
    """Whether every image of the set that can be read has a stored answer of this model, or was set aside."""
    digests = digests_of(images, store)
    contents = _fullest(store, Run(model, images.ref), "top5", digests)[1]
    known = {**contents.rows, **contents.aside}
    return bool(contents.rows) and all(digest is None or (key, digest) in known for key, digest in digests.items())


def digests_of(images: ImageSet, store: Store) -> dict[str, str | None]:
    """The digest of every image by its id, in the order of the set; None for one that cannot be read."""
    samples = images.samples
    digests = store.digests.digests([images.source(sample) for sample in samples])
    return dict(zip((sample.id for sample in samples), digests, strict=True))


def _rows_of(arrays: dict[str, NDArray[Any]], name: str, model: StoredModel) -> NDArray[Any]:
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
    kept = [] if keep == "top5" else ["--keep", keep]
    command = shlex.join(["shiftproof", "predict", run.model.name, place, "--store", str(store.root), *kept])
    if run.condition != CLEAN:
        command = "shiftproof run, with the same options"
    return MissingRuns(
        f"{run.model.name} on {run.image_set.name} ({run.condition}): {missing} of {images} images have no prediction; "
        f"make them with: {command}"
    )
