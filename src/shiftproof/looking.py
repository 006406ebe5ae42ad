"""Model x chosen images: where it looks for some classes, into the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.answers import places_by_shape
from shiftproof.errors import BadInput
from shiftproof.loading import digests_of, load_predictions
from shiftproof.models.heat_maps import heat_maps, method_for
from shiftproof.models.looks import HeatMaps
from shiftproof.models.preparation import ImagePreparation
from shiftproof.preparing import Job, Read, prepare
from shiftproof.store import Store
from shiftproof.stored_looks import AskedLooks, LookedAt, LooksFolder, to_columns
from shiftproof.types import CLEAN, Classifier, ImageSet, ImageSetRef, Predictions, Sample, SetAside, Study

if TYPE_CHECKING:
    from shiftproof.image_sets.scoring import Scoring
    from shiftproof.prediction import Progress


@runtime_checkable
class LookingStudy(Study, Protocol):
    """A study that asks where models look in some of the images they answered."""

    @property
    def method(self) -> str | None:
        """One of `METHODS`; None for the best that each model allows."""

    def looks(self, predictions: Predictions, images: ImageSet) -> AskedLooks:
        """Which classes to look for in which images: places in the classes of the predictions."""


def fill_looks(
    study: LookingStudy,
    model: Classifier,
    image_sets: Mapping[ImageSetRef, ImageSet],
    *,
    store: Store,
    scoring: Scoring | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> tuple[SetAside, ...]:
    """Makes the maps of this model that the study asks for and that are not there yet; images that cannot be read now."""
    aside: list[SetAside] = []
    for run in study.runs():
        if run.model == model.ref:
            images = image_sets[run.image_set]
            predictions = load_predictions(run, images, store=store, keep=study.keep, scoring=scoring)
            asked = to_columns(study.looks(predictions, images), predictions.classes, model.classes)
            folder = LooksFolder(store.root, model.ref, method_for(model, study.method))
            aside += look_at(model, images, asked, folder, store=store, batch_size=batch_size, progress=progress)
    return tuple(aside)


def look_at(
    model: Classifier,
    images: ImageSet,
    asked: AskedLooks,
    folder: LooksFolder,
    *,
    store: Store,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Iterator[SetAside]:
    """Looks at every image that has no map of its classes yet, a batch at a time; yields those that cannot be read."""
    if not isinstance(model.preparation, ImagePreparation):
        raise BadInput(f"{model.ref.name} has a preparation of its own, which does not say what part of an image it shows")
    digests = digests_of(images, store)
    wanted = [sample for sample in images.samples if sample.id in asked]
    left = [one for one in wanted if not set(asked[one.id]) <= folder.classes_of(one.id, digests[one.id] or "")]
    size = batch_size or int(getattr(model, "good_batch", 8))
    if progress:
        progress.begin(f"{model.ref.name} · {images.ref.name} · where it looks", len(wanted), len(wanted) - len(left))
    for start in range(0, len(left), size):
        samples = left[start : start + size]
        arrays, read = prepare(_job(samples, images, model.preparation))
        yield from (SetAside(one.id, seen.reason) for one, seen in zip(samples, read, strict=True) if seen.reason)
        good = [(one, seen) for one, seen in zip(samples, read, strict=True) if not seen.reason]
        for places in places_by_shape(arrays):
            batch = [good[place] for place in places]
            classes = _same_width([asked[sample.id] for sample, _ in batch])
            maps = heat_maps(model, np.stack([arrays[place] for place in places]), classes, method=folder.method)
            for (sample, seen), row, found in zip(batch, classes, maps, strict=True):
                folder.save(sample.id, seen.digest or "", _looked_at(model.preparation, seen, row.tolist(), found))
        if progress:
            progress.advance(len(samples))
    if progress:
        progress.end()


def _job(samples: list[Sample], images: ImageSet, preparation: ImagePreparation) -> Job:
    return Job(samples, [images.source(sample) for sample in samples], [CLEAN] * len(samples), preparation)


def _same_width(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """The classes asked of each image as one array: the first of an image is asked again where others have more."""
    width = max(map(len, rows))
    return np.array([[*row, *([row[0]] * (width - len(row)))] for row in rows], np.int64).reshape(len(rows), width)


def _looked_at(preparation: ImagePreparation, read: Read, classes: Sequence[int], maps: HeatMaps) -> LookedAt:
    height, width = read.size or (0, 0)
    return LookedAt(tuple(classes), maps, (height, width), preparation.window(height, width))
