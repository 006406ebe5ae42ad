"""Images that are there twice, or are among the images a model was trained on: by perceptual hash, then by features."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

from shiftproof.curation.hashed_sets import hashed_set
from shiftproof.curation.near_rows import (
    Alike,
    features_like_earlier,
    features_like_others,
    hashes_like_earlier,
    hashes_like_others,
)
from shiftproof.curation.perceptual_hashes import BITS
from shiftproof.curation.sifting import Sifted
from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.labels import relabelled
from shiftproof.loading import load_predictions
from shiftproof.prediction import Progress
from shiftproof.store import Store
from shiftproof.types import ImageSetRef, ModelRef, Predictions, Run

MOST_BITS = 8
"""Bits of a hash that may differ: no two of a thousand photos are so near, and nearly all copies cut by 2 % a side are."""

MOST_DISTANCE = 0.1
"""Cosine distance of features up to which two images are taken for one; those of photos of one class are mostly farther."""

By = Literal["hash", "features"]


@dataclass(frozen=True)
class Likeness:
    """Which image another looks like, and how that was found."""

    other: str
    image_set: ImageSetRef  # that the other is of
    by: By
    distance: float  # bits that differ, or the cosine distance

    @property
    def apart(self) -> str:
        return f"{self.distance:.0f} of {BITS} bits differ" if self.by == "hash" else f"features {self.distance:.3f} apart"

    def __str__(self) -> str:
        return f"looks like {self.other} of {self.image_set.name}: {self.apart}"


DuplicateChoice: TypeAlias = Sifted[str, Likeness | str]
"""Ids; what went has the image it looks like, or the reason why it cannot be read."""


@dataclass(frozen=True)
class FeatureDistances:
    """Whose stored features are compared, and how near two images may be."""

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
    """The images that look like none of `against`, such as a training set, and like no other image that stays.

    Hashes are compared first, of which at most so many bits may differ, then the features of what is left, where they are
    asked for. Of images that look alike the first of the set stays. Pictures of a single colour have no hash to speak of,
    so that only features tell which are alike. Hashes are remembered in the store, and so is what looks alike: studies of
    these images take it for one case.
    """
    answers = [] if features is None else [features.load(one) for one in (images, against) if one is not None]
    hashed = [hashed_set(one, store, workers=workers, progress=progress) for one in (images, against) if one is not None]
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
    """Stores which files look alike by their digests, so that it holds of them in every set that they are in."""
    sets = {one.ref: one for one in (images, against) if one is not None}
    found = [(gone.item, gone.reason) for gone in choice.gone if isinstance(gone.reason, Likeness)]
    own = store.digests.digests([images.find(item) for item, _ in found])
    others = store.digests.digests([sets[likeness.image_set].find(likeness.other) for _, likeness in found])
    store.save_alike(images.ref, [(one, other) for one, other in zip(own, others, strict=True) if one and other])


class Known(NamedTuple):
    """What is known of images, row by row: their hashes or their features."""

    ids: Sequence[str]
    rows: NDArray[Any]

    def of(self, ids: Sequence[str]) -> Known:
        """The same of some images, in their order; of one that is not known there is nothing to compare."""
        place_of = {image_id: place for place, image_id in enumerate(self.ids)}
        known = [image_id for image_id in ids if image_id in place_of]
        return Known(known, self.rows[[place_of[image_id] for image_id in known]])


@dataclass(frozen=True)
class Measure:
    """One way to see that images look alike: what it knows of them and of others, and how it compares."""

    by: By
    known: Known
    others: Known | None
    like_others: Callable[[NDArray[Any], NDArray[Any]], Alike]
    like_earlier: Callable[[NDArray[Any]], Alike]

    def applied(self, choice: DuplicateChoice, own: ImageSetRef, against: ImageSetRef | None) -> DuplicateChoice:
        """What is left of a choice without images that look like others, or like one another."""
        if against is not None and self.others is not None and len(self.others.ids):
            left = self.known.of(choice.left)
            alike = self._likenesses(left, self.others, against, self.like_others(left.rows, self.others.rows))
            choice = choice.step(f"not in {against.name}, by {self.by}", alike.get)
        left = self.known.of(choice.left)
        return choice.step(
            f"not there before, by {self.by}", self._likenesses(left, left, own, self.like_earlier(left.rows)).get
        )

    def _likenesses(self, left: Known, others: Known, image_set: ImageSetRef, alike: Alike) -> Mapping[str, Likeness]:
        """What each image that goes looks like, by its id."""
        return {
            left.ids[row]: Likeness(others.ids[place], image_set, self.by, distance)
            for row, place, distance in zip(*(column.tolist() for column in alike), strict=True)
        }


def _by_hash(known: Sequence[Known], bits: int) -> Measure:
    like_others, like_earlier = partial(hashes_like_others, bits=bits), partial(hashes_like_earlier, bits=bits)
    return Measure("hash", known[0], known[1] if known[1:] else None, like_others, like_earlier)


def _by_features(known: Sequence[Known], most: float) -> Measure:
    like_others, like_earlier = partial(features_like_others, most=most), partial(features_like_earlier, most=most)
    return Measure("features", known[0], known[1] if known[1:] else None, like_others, like_earlier)
