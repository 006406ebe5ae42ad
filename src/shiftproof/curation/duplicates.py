"""Near-duplicates within a dataset and against another, such as a training set: by perceptual hash, then by features."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.curation.funnel import Funnel
from shiftproof.curation.perceptual_hashes import BITS, PLAIN, Hashes, Indices, differing_bits, hash_dataset, near_hashes
from shiftproof.datasets.image_list import FileImage, ImageList
from shiftproof.datasets.labels import relabelled
from shiftproof.datasets.manifest import joined_labels
from shiftproof.errors import BadInput
from shiftproof.files import csv_bytes, write_whole
from shiftproof.ood.inputs import parts_of
from shiftproof.ood.nearest_neighbours import directions, nearest_rows
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import Progress
from shiftproof.runs.store import Store
from shiftproof.types import DatasetRef, Features, ModelRef, Predictions, Run, Sample

MOST_BITS = 8
"""Hamming distance of near-duplicates: no two of a thousand photos are so near, and nearly all copies cropped by 2 % are."""

MOST_DISTANCE = 0.1
"""Cosine distance of near-duplicates in feature space; photos of one class are mostly farther apart."""

By = Literal["hash", "features"]


@dataclass(frozen=True)
class Duplicate:
    """The near-duplicate of an image, and how it was found."""

    other: str
    dataset: DatasetRef  # of the other image
    by: By
    distance: float  # Hamming or cosine distance

    @property
    def apart(self) -> str:
        return f"{self.distance:.0f} of {BITS} bits differ" if self.by == "hash" else f"features {self.distance:.3f} apart"

    def __str__(self) -> str:
        return f"near-duplicate of {self.other} in {self.dataset.name}: {self.apart}"


DuplicateChoice: TypeAlias = Funnel[str, Duplicate | str]
"""Image ids; a removed one has its duplicate, or the reason why it is unreadable."""


@dataclass(frozen=True)
class FeatureDistances:
    """The model whose stored features are compared, and the distance threshold."""

    model: ModelRef
    store: Store
    most: float = MOST_DISTANCE

    def __post_init__(self) -> None:
        if not 0 <= self.most < 1:
            raise BadInput(f"a cosine distance up to which images are alike should be 0 to 1, got {self.most:g}")

    def load(self, images: ImageList) -> Predictions:
        bare = relabelled(images, labels="none")  # the model need not know the classes of the images
        return load_predictions(Run(self.model, bare.ref), bare, store=self.store, keep="features")


def without_duplicates(
    images: ImageList,
    *,
    against: ImageList | None = None,
    bits: int = MOST_BITS,
    features: FeatureDistances | None = None,
    store: str | Path = "runs",
    workers: int | None = None,
    progress: Progress | None = None,
) -> DuplicateChoice:
    """The images without near-duplicates among themselves and in `against`, such as a training set.

    Perceptual hashes are compared first, within a Hamming distance of `bits`, then the features of what is left, where they
    are given. Of near-duplicates the first is kept. Uniform images have no meaningful hash; only features compare them.
    Hashes are cached in the store, and the duplicates are recorded there: studies treat them as one cluster.
    """
    answers = [] if features is None else [features.load(one) for one in (images, against) if one is not None]
    hashed = [hash_dataset(one, store, workers=workers, progress=progress) for one in (images, against) if one is not None]
    choice = DuplicateChoice.start(sample.id for sample in images.samples)
    choice = choice.step("can be read", hashed[0].unreadable.get)
    measures = [_by_hash([Known(one.ids, one.hashes) for one in hashed], bits)]
    if features is not None:
        measures.append(_by_features([Known(one.ids, one.need_features()) for one in answers], features.most))
    for measure in measures:
        choice = measure.applied(choice, images.ref, against.ref if against else None)
    _remember(choice, images, against, Store(store))
    return choice


def _remember(choice: DuplicateChoice, images: ImageList, against: ImageList | None, store: Store) -> None:
    """Records near-duplicates by file digest, so that they are known in every dataset that holds these files."""
    sets = {one.ref: one for one in (images, against) if one is not None}
    found = [(gone.item, gone.reason) for gone in choice.removed if isinstance(gone.reason, Duplicate)]
    own = store.digests.digests([images.find(item) for item, _ in found])
    others = store.digests.digests([sets[likeness.dataset].find(likeness.other) for _, likeness in found])
    store.save_alike(images.ref, [(one, other) for one, other in zip(own, others, strict=True) if one and other])


class Known(NamedTuple):
    """Hashes or features of images, row by row."""

    ids: Sequence[str]
    rows: NDArray[Any]

    def of(self, ids: Sequence[str]) -> Known:
        """The rows of some images, in their order; images without a row are left out."""
        place_of = {image_id: place for place, image_id in enumerate(self.ids)}
        known = [image_id for image_id in ids if image_id in place_of]
        return Known(known, self.rows[[place_of[image_id] for image_id in known]])


@dataclass(frozen=True)
class Measure:
    """One way to find near-duplicates: by hash or by features."""

    by: By
    known: Known
    others: Known | None
    like_others: Callable[[NDArray[Any], NDArray[Any]], NearPairs]
    like_earlier: Callable[[NDArray[Any]], NearPairs]

    def applied(self, choice: DuplicateChoice, own: DatasetRef, against: DatasetRef | None) -> DuplicateChoice:
        """The funnel after the removal of near-duplicates of `against`, and then of one another."""
        if against is not None and self.others is not None and len(self.others.ids):
            left = self.known.of(choice.left)
            alike = self._likenesses(left, self.others, against, self.like_others(left.rows, self.others.rows))
            choice = choice.step(f"not in {against.name}, by {self.by}", alike.get)
        left = self.known.of(choice.left)
        return choice.step(
            f"not there before, by {self.by}", self._likenesses(left, left, own, self.like_earlier(left.rows)).get
        )

    def _likenesses(self, left: Known, others: Known, dataset: DatasetRef, alike: NearPairs) -> Mapping[str, Duplicate]:
        """The duplicate of each removed image, by its id."""
        return {
            left.ids[row]: Duplicate(others.ids[place], dataset, self.by, distance)
            for row, place, distance in zip(*(column.tolist() for column in alike), strict=True)
        }


def _by_hash(known: Sequence[Known], bits: int) -> Measure:
    like_others, like_earlier = partial(hashes_like_others, bits=bits), partial(hashes_like_earlier, bits=bits)
    return Measure("hash", known[0], known[1] if known[1:] else None, like_others, like_earlier)


def _by_features(known: Sequence[Known], most: float) -> Measure:
    like_others, like_earlier = partial(features_like_others, most=most), partial(features_like_earlier, most=most)
    return Measure("features", known[0], known[1] if known[1:] else None, like_others, like_earlier)


ROWS_AT_ONCE = 4096
"""Feature rows per block; a block of similarities takes 64 MB."""


class NearPairs(NamedTuple):
    """Rows with a near-duplicate, ascending, the index of the duplicate, and the distance."""

    rows: Indices
    places: Indices
    distances: NDArray[np.floating]


def hashes_like_others(hashes: Hashes, others: Hashes, *, bits: int) -> NearPairs:
    """The nearest of `others` for every hash within `bits` of one; uniform images have no duplicates.

    >>> hashes_like_others(np.array([0b1111, 1 << 40], np.uint64), np.array([0b11, 0b111], np.uint64), bits=2)
    NearPairs(rows=array([0]), places=array([1]), distances=array([1.]))
    """
    own, own_place = np.unique(hashes, return_inverse=True)
    known, first = np.unique(others, return_index=True)
    rows, places = near_hashes(own, known, bits=bits)
    nearest = _nearest(rows, first[places], differing_bits(own[rows], known[places]), len(own))
    found = np.flatnonzero((nearest[own_place] >= 0) & (hashes != PLAIN))
    places = nearest[own_place[found]]
    return NearPairs(found, places, differing_bits(hashes[found], others[places]).astype(float))


def hashes_like_earlier(hashes: Hashes, *, bits: int) -> NearPairs:
    """The nearest earlier hash that is kept for every one that is removed, since it is within `bits` of it.

    >>> hashes_like_earlier(np.array([0b1111, 0b1110, 1 << 40, 0b1110], np.uint64), bits=1)
    NearPairs(rows=array([1, 3]), places=array([0, 0]), distances=array([1., 1.]))
    """
    own, first, own_place = np.unique(hashes, return_index=True, return_inverse=True)
    order = np.argsort(first)  # equal ones stand for each other, in the order in which they come
    rows, places = near_hashes(own[order], bits=bits)
    stays = _representatives(rows, places, differing_bits(own[order][rows], own[order][places]), len(own))
    kept = np.empty(len(own), np.intp)
    kept[order] = first[order][stays]
    others = kept[own_place]
    found = np.flatnonzero((others != np.arange(len(hashes))) & (hashes != PLAIN))
    return NearPairs(found, others[found], differing_bits(hashes[found], hashes[others[found]]).astype(float))


def features_like_others(features: Features, others: Features, *, most: float) -> NearPairs:
    """The nearest of `others` for every row within a cosine distance of `most`."""
    places, distances = nearest_rows(features, others)
    cosine = distances**2 / 2  # of rows at unit length
    found = np.flatnonzero(cosine <= most)
    return NearPairs(found, places[found], cosine[found])


def features_like_earlier(features: Features, *, most: float) -> NearPairs:
    """The nearest earlier row that is kept for every one that is removed, since it is within a cosine distance of `most`.

    >>> features_like_earlier(np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]), most=0.1)
    NearPairs(rows=array([2]), places=array([0]), distances=array([0.]))
    """
    near = list(_near_features(features, most))
    rows, places, distances = (np.concatenate(column) for column in zip(*near, strict=True))
    stays = _representatives(rows, places, distances, len(features))
    found = np.flatnonzero(stays != np.arange(len(features)))
    between = dict(zip(zip(rows.tolist(), places.tolist(), strict=True), distances.tolist(), strict=True))
    apart = [between[pair] for pair in zip(stays[found].tolist(), found.tolist(), strict=True)]
    return NearPairs(found, stays[found], np.array(apart, float))


def _near_features(features: Features, most: float) -> Iterator[NearPairs]:
    """Pairs of near rows, the earlier first, block by block."""
    units = directions(features, np.zeros(features.shape[1]))
    yield NearPairs(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
    for part in parts_of(len(units), ROWS_AT_ONCE):
        for other in parts_of(part.stop, ROWS_AT_ONCE):
            apart = 1 - units[other] @ units[part].T
            rows, places = np.nonzero(apart <= most)
            before = rows + other.start < places + part.start
            rows, places = rows[before], places[before]
            yield NearPairs(rows + other.start, places + part.start, np.maximum(apart[rows, places], 0).astype(float))


def _nearest(rows: Indices, places: Indices, distances: NDArray[np.generic], count: int) -> Indices:
    """The nearest index of each of `count` rows; -1 for a row without one."""
    nearest = np.full(count, -1)
    order = np.lexsort((places, distances))[::-1]  # the last write wins
    nearest[rows[order]] = places[order]
    return nearest


def _representatives(rows: Indices, places: Indices, distances: NDArray[np.generic], count: int) -> Indices:
    """For each of `count` the nearest earlier one that is kept, or itself where it is kept; rows come before places."""
    stays = list(range(count))
    order = np.lexsort((rows, distances, places))
    for row, place in zip(rows[order].tolist(), places[order].tolist(), strict=True):
        if stays[place] == place and stays[row] == row:
            stays[place] = row
    return np.array(stays, np.intp)


def save_listing(path: Path, images: ImageList, ids: Collection[str]) -> None:
    """Writes a manifest of the images with these ids, which `open_dataset` opens with `allow_outside`.

    BadInput where they are not files of their own, as frames of clips.
    """
    wanted = frozenset(ids)
    samples = [sample for sample in images.samples if sample.id in wanted]
    names = list(dict.fromkeys(name for sample in samples for name in sample.facts))
    rows = [
        (_path(images, sample, path), sample.id, _labels(images, sample), *(sample.facts.get(name, "") for name in names))
        for sample in samples
    ]
    write_whole(path, csv_bytes([("path", "id", "labels", *names), *rows]))


def _path(images: ImageList, sample: Sample, manifest: Path) -> str:
    source = images.source(sample)
    if not isinstance(source, FileImage):
        raise BadInput(f"{images.name} has images that are no files of their own, which a manifest cannot list")
    return Path(os.path.relpath(source.path, manifest.parent)).as_posix()


def _labels(images: ImageList, sample: Sample) -> str:
    return joined_labels(images.classes.keys[label] for label in sample.labels) if images.classes else ""
