"""Batches through the model, and its outputs into the store, committed so often that a kill costs little."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import accumulate
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.accuracy import to_top5
from shiftproof.models.loaded import joined, taken
from shiftproof.places import is_url
from shiftproof.runs.load import digests_of
from shiftproof.runs.prepare import Job, Read
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import PER_BOX, PER_IMAGE, TOP5, Rows, StoredRun, joined_rows
from shiftproof.runs.store import Store
from shiftproof.runs.workers import Batch, Block
from shiftproof.types import (
    CLEAN,
    Classifier,
    Condition,
    Dataset,
    Detections,
    Found,
    Gives,
    Inputs,
    Keep,
    Logits,
    Model,
    ObjectDetector,
    Outputs,
    Precision,
    RecordedDetector,
    Sample,
    SkippedImage,
)

PATIENCE = 10.0
"""Seconds of work that a kill may cost where rows of many conditions are gathered."""

GATHERED = 64
"""Rows of one condition that are enough for a file of their own."""

GATHERED_AWAY = 1024
"""The same for a store at a URL, where every file is a request."""

LATELY = 4096
"""Digests of images that need not be told to the store once more."""

NO_NUMBER = "the model output NaN"

RECORDED_BLOCK = 4096
"""Recorded images whose boxes go into one file."""

Sizes: TypeAlias = Sequence[tuple[int, int]]
"""Height and width of each image before preprocessing."""


@dataclass
class _Waiting:
    """Rows of a condition that wait for others."""

    rows: list[Rows] = field(default_factory=list)
    count: int = 0
    number: int | None = None  # of the first of them


class RowWriter:
    """Runs batches through the model and stores its outputs.

    Rows of a batch under one condition are committed at once, or `together` with those of so many batches. Of mixed batches
    they are gathered until there are enough of a condition for a file, but none waits longer than `PATIENCE`, and leaving
    the writer commits what there is. Where files are sealed in the end, only then are they brought to disk.
    """

    together = 1

    def __init__(
        self, model: Model, store: Store, keep: Keep, precision: Precision, *, sealed: bool, own_digests: bool = True
    ) -> None:
        self._model, self._store, self.keep, self.precision = model, store, keep, precision
        self._run_batch = runner_of(model, keep, precision)
        self._gives = None if isinstance(model, ObjectDetector) else model.gives
        self._away = is_url(store.root)
        self._sealed, self._own_digests = sealed, own_digests  # a database is no good on a file system of many machines
        self._runs: dict[Condition, StoredRun] = {}
        self._waiting: dict[Condition, _Waiting] = {}
        self._whole: list[Condition] = []  # of batches that wait for others
        self._committed = time.monotonic()
        self._touched: set[Condition] = set()
        self._stamps: list[tuple[str | None, str | None]] = []
        self._lately: dict[tuple[str | None, str | None], None] = {}
        self._introduced = False
        self.written = 0

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None:
            self._finish()
        else:
            self.commit_waiting()

    def stored(self, condition: Condition) -> StoredRun:
        """The rows of the model under a condition."""
        if condition not in self._runs:
            self._runs[condition] = self._store.run(self._model.ref, condition, self.precision)
            self._runs[condition].tidy()
        return self._runs[condition]

    def run(self, block: Block[Job]) -> BatchOutputs | None:
        """What is stored of the model's outputs for one batch; None where no image of it could be read.

        It is made here, where several batches run side by side, and not where rows are committed one after the other.
        """
        sizes = [seen.size for seen in block.said if seen.size is not None]
        return self._run_batch(block.batch, sizes).reduced() if len(block.batch) else None

    def write(
        self, job: Job, read: Sequence[Read], outputs: BatchOutputs | None, number: int | None = None
    ) -> list[SkippedImage]:
        """Commits the rows of a batch, or lets them wait for others; the images of it that were skipped.

        With a `number`, rows wait for `commit_waiting`, and lie in the order of the numbers, whenever that is.
        """
        if outputs is not None:
            self._introduce(outputs.columns)
        places: dict[Condition, list[int]] = {}
        for place, condition in enumerate(job.conditions):
            places.setdefault(condition, []).append(place)
        given = [*accumulate((not seen.reason for seen in read), initial=-1)][1:]  # places in the model's batch
        valid = [] if outputs is None else outputs.valid.tolist()
        reasons = [seen.reason or ("" if valid[place] else NO_NUMBER) for seen, place in zip(read, given, strict=True)]
        for condition, mine in places.items():
            good = [place for place in mine if not reasons[place]]
            # a file that could not even be read has no digest to be remembered by, and may be back tomorrow
            lasting = [(job.ids[place], read[place].digest or "", reasons[place]) for place in mine if reasons[place]]
            rows = Rows(
                [job.ids[place] for place in good],
                [read[place].digest or "" for place in good],
                outputs.arrays([given[place] for place in good]) if outputs is not None and good else {},
                [entry for entry in lasting if entry[1]],
            )
            waiting = self._waiting.get(condition)
            if waiting is None:
                waiting = self._waiting[condition] = _Waiting(number=number)
            waiting.rows.append(rows)
            waiting.count += len(rows.ids)
            if len(places) == 1 and number is None and not self._away:
                self._whole.append(condition)
            elif waiting.count >= (GATHERED_AWAY if self._away else GATHERED):
                self._commit(condition)
        if len(self._whole) >= self.together:
            for condition in dict.fromkeys(self._whole):
                self._commit(condition)
            self._whole.clear()
        if time.monotonic() - self._committed > PATIENCE:
            self.commit_waiting()
        self._remember((seen.stamp, seen.digest) for seen in read)
        return [SkippedImage(key, reason) for key, reason in zip(job.ids, reasons, strict=True) if reason]

    def note_committed(self, job: Job, read: Sequence[Read], rows: int) -> None:
        """What is to be known here of a batch whose rows another process has committed."""
        self._touched.update({id(one): one for one in job.conditions}.values())  # mostly one, and slow to be compared
        self.written += rows
        self._remember((seen.stamp, seen.digest) for seen in read)

    def _commit(self, condition: Condition) -> None:
        number, rows = self._taken(condition)
        if rows is not None:
            self.stored(condition).append(rows, self.keep, number, synced=not self._sealed)

    def _taken(self, condition: Condition) -> tuple[int | None, Rows | None]:
        """What waits of a condition, as one, and its number: it is to be committed now."""
        waiting = self._waiting.pop(condition, None) or _Waiting()
        rows = joined_rows([some for some in waiting.rows if some.ids or some.skipped])
        if rows is not None:
            self._touched.add(condition)
            self.written += len(rows.ids)
            if "logits" in rows.arrays and TOP5[0] not in rows.arrays and self._gives is not None:
                # of many rows at once, which takes a fraction of the time
                rows = replace(rows, arrays={**ranked(rows.arrays["logits"], self._gives), **rows.arrays})
        return waiting.number, rows

    def commit_waiting(self) -> None:
        """Commits what waits for others."""
        for condition in list(self._waiting):
            self._commit(condition)
        self._whole.clear()
        self._committed = time.monotonic()

    def _finish(self) -> None:
        self._remember([], least=1)
        self._introduce(None)
        if not self._sealed or self._away:
            self.commit_waiting()
        try:
            for condition in [*self._waiting, *self._touched.difference(self._waiting)] if self._sealed else ():
                _, rows = self._taken(condition)
                self.stored(condition).seal(rows, self.keep)
                if time.monotonic() - self._committed > PATIENCE:
                    self.commit_waiting()
        finally:
            self.commit_waiting()

    def _introduce(self, columns: int | None) -> None:
        """Tells the store what the model is, before its first row, and also where there is none to add."""
        if not self._introduced:
            head = None if isinstance(self._model, ObjectDetector) or self.keep != "features" else self._model.head
            self._store.save_model(StoredModel.of(self._model, columns), head)
            self._introduced = True

    def _remember(self, pairs: Iterable[tuple[str | None, str | None]], least: int = 1024) -> None:
        if not self._own_digests:
            return
        new = dict.fromkeys(pair for pair in pairs if pair not in self._lately)  # under many conditions an image comes often
        self._lately = {**(self._lately if len(self._lately) < LATELY else {}), **new} if new else self._lately
        self._stamps += new
        if len(self._stamps) >= least:
            self._store.digests.remember(self._stamps)
            self._stamps = []


class BatchOutputs(Protocol):
    """A model's outputs for one batch, ready to be stored."""

    @property
    def columns(self) -> int | None:
        """How many classes were scored; None for boxes."""

    @property
    def valid(self) -> NDArray[np.bool_]:
        """Which images have no NaN among their outputs, (images,)."""

    def arrays(self, places: Sequence[int]) -> dict[str, NDArray[Any]]:
        """What is stored of the images at these places of the batch."""

    def reduced(self) -> BatchOutputs:
        """The same without what is not stored, to be sent to another process."""


RunBatch: TypeAlias = Callable[[Batch, Sizes], BatchOutputs]
"""How a batch is run through a model."""


def runner_of(model: Model, keep: Keep, precision: Precision) -> RunBatch:
    """How this model is run for rows that hold `keep`; NotKept where it cannot give them."""
    if isinstance(model, ObjectDetector):
        if keep != "boxes":
            raise NotKept(f"{model.ref.name} outputs boxes, which have no {keep}; as a classifier it is named boxes:MODEL")
        return partial(detect_batch, model)
    if keep == "boxes":
        raise NotKept(f"{model.ref.name} outputs class scores, not boxes; name an object detector")
    return partial(classify_batch, model, keep, precision)


def classify_batch(model: Classifier, keep: Keep, precision: Precision, batch: Batch, _sizes: Sizes) -> ClassOutputs:
    """Class scores, and features where they are kept."""
    features = keep == "features"
    groups = places_by_shape(batch)
    parts = [model(_stacked(batch, places), features=features) for places in groups]
    outputs = parts[0] if len(parts) == 1 else taken(joined(parts), np.argsort(np.concatenate(groups)))
    if features and outputs.features is None:
        raise NotKept(f"{model.ref.name} has no features to keep; predict with --keep logits")
    return ClassOutputs(outputs, model.gives, keep, precision)


@dataclass(frozen=True)
class ClassOutputs:
    """Class scores as they are stored."""

    outputs: Outputs
    gives: Gives
    keep: Keep
    precision: Precision

    @property
    def columns(self) -> int:
        return int(self.outputs.scores.shape[1])

    def arrays(self, places: Sequence[int]) -> dict[str, NDArray[Any]]:
        return {name: rows[places] for name, rows in self._rows.items()}

    def reduced(self) -> StoredOutputs:
        # the five best follow from logits that are stored as they are, and are found when rows are committed
        follow = self.outputs.scores.dtype == self.precision and self.keep in ("logits", "features")
        return StoredOutputs(self.columns, self.valid, self._kept if follow else self._rows)

    # all are found once: rows of a batch that belong to many conditions are stored one by one

    @cached_property
    def valid(self) -> NDArray[np.bool_]:
        scores, extra = self.outputs.scores, self.outputs.extra
        if extra is None and scores.size and not np.isnan(scores.max()):
            return np.ones(len(scores), bool)
        values = scores if extra is None else np.concatenate([scores, extra], axis=1)
        return np.asarray(~np.isnan(values).any(axis=1))

    @cached_property
    def _rows(self) -> dict[str, NDArray[Any]]:
        return {**ranked(self._scores, self.gives), **self._kept}

    @cached_property
    def _scores(self) -> Logits:
        scores = self.outputs.scores
        return scores if self.valid.all() else np.where(self.valid[:, None], scores, 0)

    @cached_property
    def _kept(self) -> dict[str, NDArray[Any]]:
        """What is stored beside the five best."""
        outputs, rows = self.outputs, dict[str, NDArray[Any]]()
        if self.keep in ("logits", "features"):
            rows["logits"] = _stored_as(self._scores, self.precision)
        if self.keep == "features" and outputs.features is not None:
            rows["features"] = _stored_as(outputs.features, self.precision)
        if outputs.extra is not None:
            rows["extra"] = outputs.extra.astype(np.float32)  # few numbers, so whole ones whatever is kept of the others
        return rows


def ranked(scores: Logits, gives: Gives) -> dict[str, NDArray[Any]]:
    """What is stored of the five best classes."""
    top5 = to_top5(scores, gives)
    columns = (top5.classes.astype(np.int32), top5.scores.astype(np.float32), top5.log_total.astype(np.float32))
    return dict(zip(TOP5, columns, strict=True))


@dataclass(frozen=True)
class StoredOutputs:
    """Class scores of a batch, and no more of them than is stored."""

    columns: int
    valid: NDArray[np.bool_]
    rows: Mapping[str, NDArray[Any]]

    def arrays(self, places: Sequence[int]) -> dict[str, NDArray[Any]]:
        if len(places) == 1:  # as of many conditions in a batch; several times as fast as by a list
            return {name: rows[places[0] : places[0] + 1].copy() for name, rows in self.rows.items()}
        return {name: rows[places] for name, rows in self.rows.items()}

    def reduced(self) -> StoredOutputs:
        return self


def detect_batch(model: ObjectDetector, batch: Batch, sizes: Sizes) -> BoxOutputs:
    """Detections, in the pixels of the original images."""
    found: dict[int, Found] = {}
    for places in places_by_shape(batch):
        detected = model.detect(_stacked(batch, places), [sizes[place] for place in places])
        found |= zip(places, detected, strict=True)
    return BoxOutputs([found[place] for place in range(len(sizes))], sizes)


@dataclass(frozen=True)
class BoxOutputs:
    """Boxes of images of known sizes."""

    found: Sequence[Found]
    sizes: Sizes

    @property
    def columns(self) -> None:
        return None

    @property
    def valid(self) -> NDArray[np.bool_]:
        return np.array([bool(np.isfinite(one.boxes).all() and np.isfinite(one.scores).all()) for one in self.found], bool)

    def reduced(self) -> BoxOutputs:
        return self

    def arrays(self, places: Sequence[int]) -> dict[str, NDArray[Any]]:
        found = [self.found[place] for place in places]
        of_images = (
            np.array([self.sizes[place] for place in places], np.int32).reshape(-1, 2),
            np.array([len(one.scores) for one in found], np.int32),
        )
        of_boxes = (
            np.concatenate([np.zeros((0, 4)), *(one.boxes for one in found)]).astype(np.float32),
            np.concatenate([np.zeros(0), *(one.scores for one in found)]).astype(np.float32),
            np.concatenate([np.zeros(0), *(one.classes for one in found)]).astype(np.int32),
        )
        return dict(zip((*PER_IMAGE, *PER_BOX), (*of_images, *of_boxes), strict=True))


def places_by_shape(batch: Batch) -> list[list[int]]:
    """Images that can be stacked into one batch: all of them, or those of each shape."""
    if isinstance(batch, np.ndarray):
        return [list(range(len(batch)))]
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, array in enumerate(batch):
        groups.setdefault(array.shape, []).append(place)
    return list(groups.values())


def _stacked(batch: Batch, places: Sequence[int]) -> Inputs:
    return batch if isinstance(batch, np.ndarray) else np.stack([batch[place] for place in places])


def _stored_as(values: NDArray[np.floating], precision: Precision) -> NDArray[np.floating]:
    """The values as they go to disk; BadInput where half precision has no room for them."""
    if values.dtype == precision:
        return values.copy()
    with np.errstate(over="ignore"):  # told below
        stored = values.astype(np.dtype(precision))
    if (np.isinf(stored) & np.isfinite(values)).any():
        largest = np.abs(values[np.isfinite(values)]).max()
        raise BadInput(f"values up to {largest:,.0f} do not fit into half precision, which ends at 65,504; leave out --half")
    return stored


def record(
    model: RecordedDetector, images: Dataset, condition: Condition, *, store: Store
) -> tuple[int, list[SkippedImage]]:
    """Stores the recorded detections that are missing; how many images that were, and the unreadable ones."""
    if condition != CLEAN:
        raise BadInput(f"{model.ref.name} holds detections in the images as they are, and none under {condition}")
    store.save_model(StoredModel.of(model))
    run, digests = store.run(model.ref, condition), digests_of(images, store)
    known = run.contents("boxes", verified=True).rows
    found = _by_image(model.detections_in(images))
    new = [sample for sample in images.samples if (digest := digests[sample.id]) and (sample.id, digest) not in known]
    for start in range(0, len(new), RECORDED_BLOCK):
        some = new[start : start + RECORDED_BLOCK]
        outputs = BoxOutputs([found[sample.id] for sample in some], [_size_of(sample) for sample in some])
        arrays = outputs.arrays(range(len(some)))
        run.append(Rows([sample.id for sample in some], [digests[sample.id] or "" for sample in some], arrays), "boxes")
    return len(new), [SkippedImage(key, "cannot be read") for key, digest in digests.items() if digest is None]


def _by_image(detections: Detections) -> dict[str, Found]:
    """What was found in each image, by descending score."""
    order = np.lexsort((-detections.scores, detections.image))
    ends = np.cumsum(np.bincount(detections.image, minlength=len(detections.ids)))
    return {
        key: Found(detections.boxes[rows], detections.scores[rows], detections.classes[rows])
        for key, rows in zip(detections.ids, np.split(order, ends[:-1]), strict=True)
    }


def _size_of(sample: Sample) -> tuple[int, int]:
    """Height and width as the dataset says; zeros where it does not, since the image is not opened."""
    height, width = sample.facts.get("height"), sample.facts.get("width")
    return (height, width) if isinstance(height, int) and isinstance(width, int) else (0, 0)
