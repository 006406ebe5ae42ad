"""Saliency maps of chosen images, computed once and stored.

    runs/
      looks/<method>-<key>/       key = model fingerprint (preprocessing included), method, format
        looks.json                all of that in the open
        <image>.safetensors       the maps of one image, class by class; there whole or not at all

An image is known by its id and the digest of its file, as rows of predictions are.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.classes import match_columns
from shiftproof.errors import BadInput, DamagedFile, MissingRuns
from shiftproof.files import check_inside, quarantine, write_whole
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.models.saliency import METHODS, Saliency, method_for, saliency_maps
from shiftproof.runs.chunks import reading, save_chunk
from shiftproof.runs.load import digests_of, load_predictions
from shiftproof.runs.prepare import Job, Read, prepare
from shiftproof.runs.store import Store
from shiftproof.runs.write import places_by_shape
from shiftproof.types import (
    CLEAN,
    Classes,
    Classifier,
    Dataset,
    DatasetRef,
    ModelRef,
    Predictions,
    Run,
    SkippedImage,
    Study,
    fingerprint_of,
)

if TYPE_CHECKING:
    from shiftproof.datasets.label_spaces import Scoring
    from shiftproof.runs.predict import Progress

FORMAT = 1

SaliencyRequest: TypeAlias = Mapping[str, Sequence[int]]
"""The classes whose saliency is wanted in each image, by its id: columns of the model's scores."""


@dataclass(frozen=True)
class ImageSaliency:
    """Saliency maps of one image, one a class."""

    classes: tuple[int, ...]  # columns of the model's scores
    maps: Saliency  # (classes, rows, columns)
    size: tuple[int, int]  # height and width of the image
    window: tuple[float, float, float, float]  # what the maps cover, in its pixels: left, top, right, bottom

    def of_classes(self, classes: Sequence[int]) -> ImageSaliency:
        """The same for some of the classes, in this order."""
        places = [self.classes.index(one) for one in classes]
        return dataclasses.replace(self, classes=tuple(classes), maps=self.maps[places])


@dataclass(frozen=True)
class SaliencyMaps:
    """Saliency maps of some images by one method."""

    method: str
    of: Mapping[str, ImageSaliency]  # by image id


def load_saliency(
    run: Run, asked: SaliencyRequest, *, root: Path, digests: Mapping[str, str | None], method: str | None = None
) -> SaliencyMaps:
    """The stored maps, for each image those of its classes in this order; MissingRuns where some were never made.

    Without a method it is the first that has them all.
    """
    most = 0
    for name in METHODS if method is None else [method]:
        folder = SaliencyFolder(root, run.model, name)
        stored = {key: folder.load(key, digests.get(key) or "") for key in asked}
        found = {
            key: one.of_classes(asked[key])
            for key, one in stored.items()
            if one is not None and set(asked[key]) <= set(one.classes)
        }
        if len(found) == len(asked):
            return SaliencyMaps(name, found)
        most = max(most, len(found))
    place = run.dataset.location or run.dataset.name
    command = shlex.join(["shiftproof", "run", run.model.name, place, "--studies", "saliency", "--store", str(root)])
    raise MissingRuns(
        f"{run.model.name} on {run.dataset.name}: {len(asked) - most} of {len(asked)} images have no saliency maps yet",
        call=f'sp.run(model, images, studies=["saliency"], store="{root}")',
        command=f"{command}, with the same options",
    )


def to_columns(asked: SaliencyRequest, classes: Classes | None, of_model: Classes | None) -> SaliencyRequest:
    """Places in the scored classes as columns of the model's scores.

    >>> to_columns({"a.png": [1]}, Classes(("dog", "eel")), Classes(("cat", "dog", "eel")))
    {'a.png': [2]}
    """
    if classes is None or of_model is None or classes == of_model:
        return asked
    columns = match_columns(classes, of_model, len(of_model)).columns
    if any(columns[place] < 0 for places in asked.values() for place in places):
        raise BadInput("saliency maps are of single classes of the model; leave out --class-groups")
    return {key: [columns[place] for place in places] for key, places in asked.items()}


class SaliencyFolder:
    """The maps of one model by one method."""

    def __init__(self, root: Path, model: ModelRef, method: str) -> None:
        self.method = method
        self._model = model
        self._folder = root / "looks" / f"{method}-{fingerprint_of(model.fingerprint, method, FORMAT)[:16]}"

    def classes_of(self, image_id: str, digest: str) -> set[int]:
        """The classes that an image has stored maps of."""
        found = self.load(image_id, digest)
        return set() if found is None else set(found.classes)

    def load(self, image_id: str, digest: str) -> ImageSaliency | None:
        """The maps of an image; None where there are none, or they are damaged and were quarantined."""
        path = self._path(image_id, digest)
        check_inside(path.parent, path.parents[2])
        try:
            with reading(path) as file:
                about = file.json(file.text("about"), dict)
                size, window = (_numbers(about.get(name), count) for name, count in (("size", 2), ("window", 4)))
                classes, maps = file.array("classes"), file.array("maps")
                if size is None or window is None or classes.ndim != 1 or maps.ndim != 3 or len(maps) != len(classes):
                    raise file.damaged(f"maps of {maps.shape} for classes of {classes.shape}")
        except FileNotFoundError:
            return None
        except DamagedFile as damaged:
            quarantine(path, damaged.reason, "run with --studies saliency computes the maps of this image again")
            return None
        return ImageSaliency(
            tuple(classes.tolist()), maps, (int(size[0]), int(size[1])), (window[0], window[1], window[2], window[3])
        )

    def save(self, image_id: str, digest: str, saliency: ImageSaliency) -> None:
        """Adds the maps of an image to those of other classes that are there."""
        if not (self._folder / "looks.json").exists():
            told = {"format": FORMAT, "model": dataclasses.asdict(self._model), "method": self.method}
            write_whole(self._folder / "looks.json", json.dumps(told, indent=1).encode(), inside=self._folder.parents[1])
        before = self.load(image_id, digest)
        parts = [saliency] if before is None else [before, saliency]
        maps = {number: one for part in parts for number, one in zip(part.classes, part.maps, strict=True)}
        arrays: dict[str, NDArray[Any]] = {
            "classes": np.array(list(maps), np.int64),
            "maps": np.stack(list(maps.values())).astype(np.float32),
        }
        about = {"id": image_id, "digest": digest, "size": saliency.size, "window": saliency.window}
        save_chunk(self._path(image_id, digest), arrays, {"about": json.dumps(about)})

    def _path(self, image_id: str, digest: str) -> Path:
        return self._folder / f"{fingerprint_of(image_id, digest)}.safetensors"


def _numbers(value: object, count: int) -> list[float] | None:
    """So many numbers, or None where it is something else."""
    fits = isinstance(value, list) and len(value) == count and all(type(one) in (int, float) for one in value)
    return value if fits and isinstance(value, list) else None


@runtime_checkable
class NeedsSaliency(Study, Protocol):
    """A study that needs saliency maps of some predicted images."""

    @property
    def method(self) -> str | None:
        """One of `METHODS`; None for the best that each model allows."""

    def saliency_request(self, predictions: Predictions, images: Dataset) -> SaliencyRequest:
        """Which classes of which images: places in the classes of the predictions."""


def check_saliency(study: NeedsSaliency, run: Run, images: Dataset, *, store: Store, scoring: Scoring | None = None) -> None:
    """MissingRuns where some of the maps that the study requests of a stored run were never made."""
    predictions = load_predictions(run, images, store=store, keep=study.keep, scoring=scoring)
    model = store.model(run.model)
    classes = None if model is None else model.classes
    asked = to_columns(study.saliency_request(predictions, images), predictions.classes, classes)
    load_saliency(run, asked, root=store.root, digests=digests_of(images, store), method=study.method)


def fill_saliency(
    study: NeedsSaliency,
    model: Classifier,
    datasets: Mapping[DatasetRef, Dataset],
    *,
    store: Store,
    scoring: Scoring | None = None,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> tuple[SkippedImage, ...]:
    """Computes the maps of this model that the study requests and that are not stored; returns the unreadable images."""
    skipped: list[SkippedImage] = []
    for run in study.runs():
        if run.model == model.ref:
            images = datasets[run.dataset]
            predictions = load_predictions(run, images, store=store, keep=study.keep, scoring=scoring)
            asked = to_columns(study.saliency_request(predictions, images), predictions.classes, model.classes)
            folder = SaliencyFolder(store.root, model.ref, method_for(model, study.method))
            skipped += compute_saliency(model, images, asked, folder, store=store, batch_size=batch_size, progress=progress)
    return tuple(skipped)


def compute_saliency(
    model: Classifier,
    images: Dataset,
    asked: SaliencyRequest,
    folder: SaliencyFolder,
    *,
    store: Store,
    batch_size: int | None = None,
    progress: Progress | None = None,
) -> Iterator[SkippedImage]:
    """Computes the maps of every image that lacks some of its classes, a batch at a time; yields the unreadable images."""
    if not isinstance(model.preprocessing, ImagePreprocessing):
        raise BadInput(
            f"{model.ref.name} has a preprocessing of its own, so it is not known which part of an image it shows"
        )
    digests = digests_of(images, store)
    wanted = [sample for sample in images.samples if sample.id in asked]
    left = [one for one in wanted if not set(asked[one.id]) <= folder.classes_of(one.id, digests[one.id] or "")]
    size = batch_size or model.default_batch_size
    if progress:
        progress.begin(f"{model.ref.name} · {images.ref.name} · saliency", len(wanted), len(wanted) - len(left))
    for start in range(0, len(left), size):
        samples = left[start : start + size]
        arrays, read = prepare(Job.of(images, samples, CLEAN, model.preprocessing))
        yield from (SkippedImage(one.id, seen.reason) for one, seen in zip(samples, read, strict=True) if seen.reason)
        good = [(one, seen) for one, seen in zip(samples, read, strict=True) if not seen.reason]
        for places in places_by_shape(arrays):
            batch = [good[place] for place in places]
            classes = _same_width([asked[sample.id] for sample, _ in batch])
            maps = saliency_maps(model, np.stack([arrays[place] for place in places]), classes, method=folder.method)
            for (sample, seen), row, found in zip(batch, classes, maps, strict=True):
                folder.save(sample.id, seen.digest or "", _image_saliency(model.preprocessing, seen, row.tolist(), found))
        if progress:
            progress.advance(len(samples))
    if progress:
        progress.end()


def _same_width(rows: Sequence[Sequence[int]]) -> NDArray[np.int64]:
    """The classes of each image as one array; an image with fewer repeats its first."""
    width = max(map(len, rows))
    return np.array([[*row, *([row[0]] * (width - len(row)))] for row in rows], np.int64).reshape(len(rows), width)


def _image_saliency(preprocessing: ImagePreprocessing, read: Read, classes: Sequence[int], maps: Saliency) -> ImageSaliency:
    height, width = read.size or (0, 0)
    return ImageSaliency(tuple(classes), maps, (height, width), preprocessing.window(height, width))
