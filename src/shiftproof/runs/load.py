"""Predictions out of the store, labelled by the dataset as it is now."""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import in_blocks
from shiftproof.datasets.classes import match_columns
from shiftproof.datasets.clusters import Clustering, linked
from shiftproof.datasets.label_spaces import LabelSpace, Scoring, padded_labels
from shiftproof.datasets.manifest import ManifestFiles
from shiftproof.datasets.near_names import near_told
from shiftproof.datasets.sample_table import fact_names, ids_of, is_long, taken
from shiftproof.errors import ClassMismatch, DamagedFile, MissingRuns, NotKept
from shiftproof.runs.digests import Digests, FewDigests
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import TOP5, Contents, RowPlaces, Rows, StoredRun, joined_rows
from shiftproof.runs.store import Store
from shiftproof.types import (
    CLEAN,
    Classes,
    Condition,
    Dataset,
    Detections,
    Fact,
    FoundObjects,
    Gives,
    Head,
    ImageSource,
    Keep,
    ModelRef,
    Precision,
    Predictions,
    Run,
    Sample,
    SkippedImage,
    Top5,
    richest,
)

PRECISIONS: tuple[Precision, ...] = ("float32", "float16")

BLOCK_ROWS = 4096
"""Training images that are read together: 50 MB with 2048 features and 1000 classes."""


def load_predictions(
    run: Run,
    images: Dataset,
    *,
    store: Store,
    keep: Keep = "top5",
    scoring: Scoring | None = None,
    clustering: Clustering | None = None,
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
    model: StoredModel | None = None,
) -> Predictions:
    """The stored predictions of a run, labelled by the dataset as it is now; MissingRuns where some were never made.

    `partial` takes what there is instead. `digests`, as of `digests_of`, and `model`, as the store has it, are read once
    where many runs are loaded.
    """
    while True:
        scores = _stored_scores(run, images, store, keep, scoring or Scoring(), partial, digests, model)
        located = scores.located
        try:
            rows = located.load(scores.keep)
            break
        except DamagedFile:
            continue  # it is quarantined now: other rows may do, or MissingRuns says what is not there any more
    predictions = scores.labelled(located.kept, rows)
    return dataclasses.replace(predictions, grouped=(clustering or Clustering()).of(located.kept))


def load_training(
    run: Run,
    images: Dataset,
    *,
    store: Store,
    keep: Keep = "features",
    scoring: Scoring | None = None,
    clustering: Clustering | None = None,  # noqa: ARG001 training data has no confidence intervals
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
    model: StoredModel | None = None,
) -> StoredTraining:
    """The same block by block, to fit OOD detectors on more rows than memory holds."""
    return StoredTraining(_stored_scores(run, images, store, keep, scoring or Scoring(), partial, digests, model))


@dataclass(frozen=True)
class Located:
    """Where the rows of a run lie, and which images they are of."""

    stored: StoredRun
    model: StoredModel
    kept: Sequence[Sample]  # images with a row
    digests: Mapping[str, str | None]
    skipped_images: tuple[SkippedImage, ...]
    contents: Contents  # of the run, as they were read
    places: RowPlaces | None  # of the rows of all images, where each has one

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        return pairs_of(self.kept, self.digests)

    def load(self, keep: Keep) -> dict[str, NDArray[Any]]:
        """The rows of the images that have one."""
        return self.stored.load(self.pairs, keep, classes=self.model.outputs, contents=self.contents, places=self.places)


@dataclass(frozen=True)
class _StoredScores:
    """Stored class scores, and how they are labelled."""

    located: Located
    gives: Gives
    keep: Keep
    head: Head | None
    space: LabelSpace | None  # None where there is nothing to label

    def labelled(self, samples: Sequence[Sample], arrays: Mapping[str, NDArray[Any]]) -> Predictions:
        """Rows of the store with the labels that the dataset has now."""
        said = dataclasses.replace(
            unprojected(samples, arrays, self.located.model, self.gives, self.keep),
            head=self.head,
            skipped_images=self.located.skipped_images,
        )
        return said if self.space is None else self.space.project(said)


def unprojected(
    samples: Sequence[Sample], arrays: Mapping[str, NDArray[Any]], model: StoredModel, gives: Gives, keep: Keep
) -> Predictions:
    """Rows as they are stored, with labels in the classes of the dataset and scores in those of the model."""
    return Predictions(
        ids=samples.ids if is_long(samples) else tuple(ids_of(samples)),
        labels=padded_labels(samples),
        gives=gives,
        top5=Top5(*(_rows_of(arrays, name, model) for name in TOP5)),
        classes=model.classes,
        logits=_rows_of(arrays, "logits", model) if keep in ("logits", "features") else None,
        features=arrays.get("features"),
        extra=arrays.get("extra"),
        facts=facts_of(samples),
    )


@dataclass(frozen=True)
class StoredTraining:
    """Predictions for training images, read from the store again at every pass, in the order of the files."""

    scores: _StoredScores

    def __len__(self) -> int:
        return len(self.scores.located.kept)

    @cached_property
    def _without_rows(self) -> Predictions:
        return self.scores.labelled([], {})

    @property
    def head(self) -> Head | None:
        return self._without_rows.head

    @property
    def classes(self) -> Classes | None:
        return self._without_rows.classes

    @property
    def skipped_images(self) -> tuple[SkippedImage, ...]:
        return self.scores.located.skipped_images

    def blocks(self) -> Iterator[Predictions]:
        """About `BLOCK_ROWS` images at a time."""
        located = self.scores.located
        samples = {sample.id: sample for sample in located.kept}
        for rows in _gathered(located.stored.walk(located.pairs, self.scores.keep, classes=located.model.outputs)):
            yield self.scores.labelled([samples[key] for key in rows.ids], rows.arrays)


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


def _stored_scores(
    run: Run,
    images: Dataset,
    store: Store,
    keep: Keep,
    scoring: Scoring,
    partial: bool,
    digests: Mapping[str, str | None] | None,
    model: StoredModel | None,
) -> _StoredScores:
    keep = richest([keep, scoring.keep])
    located = locate(run, images, store=store, keep=keep, partial=partial, digests=digests, model=model)
    model = located.model
    if model.gives == "boxes":
        raise NotKept(f"{model.ref.name} output boxes, and this study needs classes; name a study of object detection")
    space = None
    if images.classes is not None and located.kept:
        space = scoring.space(images.classes, model.classes, outputs=model.outputs or 0)
    head = store.head(run.model) if keep == "features" else None
    return _StoredScores(located, model.gives, keep, head, space)


def locate(
    run: Run,
    images: Dataset,
    *,
    store: Store,
    keep: Keep,
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
    model: StoredModel | None = None,
) -> Located:
    """Where the rows of a run lie; MissingRuns where some were never made, unless `partial` takes what there is."""
    model = model or store.model(run.model)
    if model is None:
        raise _missing(run, store, keep, len(images.samples), len(images.samples))
    digests = digests_of(images, store) if digests is None else digests
    stored, contents, places = _fullest(store, run, keep, pairs_of(images.samples, digests))
    there = places.file >= 0
    skipped = tuple(_skipped(digests, contents))
    kept = taken(images.samples, there)
    missing = len(digests) - len(kept) - len(skipped)
    if missing and not partial:
        raise _missing(run, store, keep, missing, len(digests))
    return Located(stored, model, kept, digests, skipped, contents, places if there.all() else None)


class Pairs(Sequence[tuple[str, str]]):
    """Images by id and digest, as rows of the store are; an unreadable one has an empty digest."""

    def __init__(self, ids: Sequence[str], digests: Mapping[str, str | None]) -> None:
        self._ids, self._digests = ids, digests

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, place: int) -> tuple[str, str]: ...
    @overload
    def __getitem__(self, place: slice) -> list[tuple[str, str]]: ...
    def __getitem__(self, place: int | slice) -> tuple[str, str] | list[tuple[str, str]]:
        if not isinstance(place, slice):
            return self[place : place + 1][0]
        ids, known = self._ids[place], self._digests
        if isinstance(known, Digests):
            return [(one, digest or "") for one, digest in zip(ids, known.of(ids, place.start or 0), strict=True)]
        return [(one, known[one] or "") for one in ids]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return chain.from_iterable(some for _, some in in_blocks(self))


def pairs_of(samples: Sequence[Sample], digests: Mapping[str, str | None]) -> Sequence[tuple[str, str]]:
    """The images by id and digest; `digests` are of a dataset that these samples, in its order, are all or some of."""
    if isinstance(digests, FewDigests) and len(digests) == len(samples):
        return digests.pairs
    return Pairs(ids_of(samples), digests)


def has_predictions(model: ModelRef, images: Dataset, *, store: Store) -> bool:
    """Whether every readable image of the dataset has a stored prediction of this model, or was skipped."""
    digests = digests_of(images, store)
    _, contents, places = _fullest(store, Run(model, images.ref), "top5", pairs_of(images.samples, digests))
    there = places.file >= 0
    if not contents.rows:
        return False
    left = Pairs(ids_of(taken(images.samples, ~there)), digests) if not there.all() else ()
    return all(not digest or (key, digest) in contents.skipped for key, digest in left)


def facts_of(samples: Sequence[Sample]) -> dict[str, Sequence[Fact]]:
    """Every fact that some image has, one entry an image, None where it has not."""
    if is_long(samples):
        return samples.fact_columns()
    return {name: tuple(sample.facts.get(name) for sample in samples) for name in fact_names(samples)}


def digests_of(images: Dataset, store: Store) -> Mapping[str, str | None]:
    """The digest of every image by its id, in the order of the dataset; None for an unreadable one."""
    samples = images.samples
    if is_long(samples):
        if samples.digests is not None and (told := Digests(samples.ids, samples.digests)).all_readable:
            return told
        return Digests(samples.ids, store.digests.columns(_sources(images), len(samples)))
    digests = store.digests.digests([*_sources(images)])
    return FewDigests(zip(ids_of(samples), digests, strict=True))


def _sources(images: Dataset) -> Iterable[ImageSource]:
    """Where each image lies, in the order of the dataset."""
    find = getattr(images, "find", None)
    if isinstance(find, ManifestFiles) and find.table is images.samples:
        return find.each()  # one by one they are looked up by their ids
    return map(images.source, images.samples)


def alike_in(images: Dataset, store: Store) -> dict[str, str]:
    """Near-duplicate images by id: those of one group have the same value.

    They are known where duplicates were searched, among these images or others with the same bytes. A crop of an image is
    a near-duplicate of a crop of that image's near-duplicate.
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
    while (inner := source.source) is not None:
        source = inner
    return source


def _rows_of(arrays: Mapping[str, NDArray[Any]], name: str, model: StoredModel) -> NDArray[Any]:
    if name in arrays:
        return arrays[name]
    width = {"top5_classes": (5,), "top5_scores": (5,), "logits": (model.outputs or 0,)}.get(name, ())
    return np.empty((0, *width), np.int32 if name == "top5_classes" else np.float32)


def _fullest(store: Store, run: Run, keep: Keep, pairs: Sequence[tuple[str, str]]) -> tuple[StoredRun, Contents, RowPlaces]:
    """The rows that cover most of these images, and where they lie; full precision where both cover as many."""
    stored = [store.run(run.model, run.condition, precision) for precision in PRECISIONS]
    found = [(one, contents, _places(contents, pairs)) for one in stored for contents in (one.contents(keep),)]
    return max(found, key=lambda one: int((one[2].file >= 0).sum()))


def _places(contents: Contents, pairs: Sequence[tuple[str, str]]) -> RowPlaces:
    """Where the rows of images lie."""
    if not contents.rows:
        return RowPlaces([], np.full(len(pairs), -1, np.int32), np.zeros(len(pairs), np.int32))
    return contents.places(pairs)


def _skipped(digests: Mapping[str, str | None], contents: Contents) -> Iterator[SkippedImage]:
    readable = digests.all_readable if isinstance(digests, Digests) else None not in digests.values()
    if not contents.skipped and readable:  # as of most datasets
        return
    for image_id, digest in digests.items():
        if digest is None:
            yield SkippedImage(image_id, "cannot be read")
        elif (image_id, digest) in contents.skipped and (image_id, digest) not in contents.rows:
            yield SkippedImage(image_id, contents.skipped[image_id, digest])


def _missing(run: Run, store: Store, keep: Keep, missing: int, images: int) -> MissingRuns:
    place = run.dataset.location or run.dataset.name
    kept = {"top5": [], "boxes": ["--boxes", "auto"]}.get(keep, ["--keep", keep])
    command = shlex.join(["shiftproof", "predict", run.model.name, place, "--store", str(store.root), *kept])
    if run.condition != CLEAN:
        command = "shiftproof run, with the same options"
    return MissingRuns(
        f"{run.model.name} on {run.dataset.name} ({run.condition}): {missing} of {images} images have no prediction",
        call=python_call(run, store, keep),
        command=command,
    )


def python_call(run: Run, store: Store, keep: Keep) -> str:
    """The Python call that makes a run."""
    condition = "" if run.condition == CLEAN else f", condition={_spelled(run.condition)}"
    stored = f'{condition}, store="{store.root}"'
    if keep == "boxes":
        return f"sp.predict(detector, images{stored})"
    kept = "" if keep == "top5" else f', keep="{keep}"'
    return f"sp.predict(model, images{stored}{kept})"


def _spelled(condition: Condition) -> str:
    """A condition as Python code.

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


def load_found(
    run: Run,
    images: Dataset,
    *,
    store: Store,
    keep: Keep = "boxes",
    scoring: Scoring | None = None,
    clustering: Clustering | None = None,
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
    model: StoredModel | None = None,
) -> FoundObjects:
    """The stored detections of a run with the ground truth of the dataset as it is now; MissingRuns where some are missing.

    Detections of classes that the dataset does not have are left out and counted. Objects of classes that the detector
    does not have are an error, ignored, or never found, as `scoring` says.
    """
    while True:
        located = locate(run, images, store=store, keep=keep, partial=partial, digests=digests, model=model)
        try:
            arrays = located.load(keep)
            break
        except DamagedFile:
            continue  # it is quarantined now: other rows may do, or MissingRuns says what is not there any more
    truths = images.truths
    meeting = meet(images.classes if truths is not None else None, located.model.classes, located.model.outputs, scoring)
    detections = _detections(tuple(sample.id for sample in located.kept), arrays, meeting.place_of)
    others = len(arrays["boxes"]) - len(detections.boxes)
    told = {"boxes of other classes": f"{others:,}, left out"} if others else {}
    if truths is not None:
        there = truths.of_images(detections.ids)
        truths = dataclasses.replace(there, ignored=there.ignored | np.isin(there.classes, meeting.ignored))
    return FoundObjects(
        detections,
        truths,
        arrays["image_sizes"],
        meeting.classes,
        facts=facts_of(located.kept),
        grouped=(clustering or Clustering()).of(located.kept),
        skipped_images=located.skipped_images,
        convention={**meeting.convention, **told, **_other_sizes_told(located.kept, arrays["image_sizes"])},
    )


class Meeting(NamedTuple):
    """How the classes of detections and ground truth match."""

    classes: Classes
    place_of: NDArray[np.integer]  # a place in `classes` for each class of the detector, or -1
    ignored: Sequence[int]  # classes whose objects are not asked for
    convention: Mapping[str, str]


def meet(of_set: Classes | None, of_model: Classes | None, outputs: int | None, scoring: Scoring | None = None) -> Meeting:
    """The classes of the dataset, and where the object detector's are among them; without boxes, the detector's own.

    >>> dogs, animals = Classes(("dog", "wolf")), Classes(("cat", "dog"))
    >>> meet(dogs, animals, 2, Scoring(unmatched="unlabelled")).place_of.tolist()
    [-1, 0]
    """
    if of_set is None:
        own = of_model or Classes(tuple(str(place) for place in range(outputs or 0)))
        return Meeting(own, np.arange(len(own)), (), {})
    scoring = scoring or Scoring()
    of_set, class_map = scoring.renamed(of_set, of_model)
    matching, unmatched = match_columns(of_set, of_model, outputs or len(of_model or ())), scoring.unmatched
    lacking = matching.unmatched()
    if lacking and (unmatched == "error" or len(lacking) == len(of_set)):
        raise ClassMismatch(
            f"{len(lacking)} of {len(of_set)} classes of the boxes are not among the {len(matching.model)} classes of the "
            f"detector: {near_told(of_set, lacking, matching.model)}; say which is which with --class-map, score only those "
            "it has with --unmatched unlabelled, or count these as never found with --unmatched wrong"
        )
    place_of = np.full(len(matching.model), -1)
    for place, column in enumerate(matching.columns):
        if column >= 0 and place_of[column] >= 0:
            first = of_set.names[place_of[column]]
            raise ClassMismatch(f"{first} and {of_set.names[place]} are one class of the detector; join them in the boxes")
        if column >= 0:
            place_of[column] = place
    fate = "their objects are ignored" if unmatched == "unlabelled" else "never found"
    convention = {"classes": f"{len(of_set) - len(lacking)} of {len(of_set)}, {matching.how}", **class_map}
    if lacking:
        convention["classes the detector lacks"] = f"{len(lacking)}, {fate}"
    return Meeting(of_set, place_of, lacking if unmatched == "unlabelled" else (), convention)


def _other_sizes_told(samples: Sequence[Sample], sizes: NDArray[np.integer]) -> dict[str, str]:
    """How many images differ in size from their annotation, as photos that are rotated upright when read."""
    said = [(sample.facts.get("height"), sample.facts.get("width")) for sample in samples]
    others = sum(None not in one and any(read) and list(one) != read for one, read in zip(said, sizes.tolist(), strict=True))
    return {"images whose size differs from the annotation": f"{others:,}, whose boxes may be off"} if others else {}


def _detections(ids: tuple[str, ...], arrays: Mapping[str, NDArray[Any]], place_of: NDArray[np.integer]) -> Detections:
    """The detections of classes that the dataset has."""
    classes = place_of[arrays["box_classes"]]
    kept = np.flatnonzero(classes >= 0)
    image = np.repeat(np.arange(len(ids)), arrays["box_counts"])
    corners, scores = (arrays[name][kept].astype(float) for name in ("boxes", "box_scores"))
    return Detections(ids, image[kept], corners, scores, classes[kept])
