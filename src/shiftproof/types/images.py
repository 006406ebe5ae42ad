"""Images, their labels and facts, datasets, conditions and clusters."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import Texts
from shiftproof.errors import BadInput
from shiftproof.types.shown import in_a_line

if TYPE_CHECKING:
    from shiftproof.types.boxes import Truths

Image: TypeAlias = NDArray[np.uint8]
"""RGB pixels, (height, width, 3)."""

Labels: TypeAlias = NDArray[np.integer]
"""True classes, (images, labels), padded with -1; a row of only -1 is an unlabelled image."""

Boxes: TypeAlias = NDArray[np.floating]
"""Corners in pixels, (boxes, 4), as left, top, right, bottom."""

Fact: TypeAlias = str | int | float | bool | None

Decoder = Literal["pillow", "opencv"]

Output = Literal["raw", "jpeg85"]
"""Pixels as they come out of a corruption, or after the lossy save of the published files."""


def fingerprint_of(*parts: object) -> str:
    """A short stable digest of plain values; mappings are ordered by key first.

    >>> fingerprint_of({"b": 1, "a": 2}) == fingerprint_of({"a": 2, "b": 1})
    True
    """
    return fingerprint_of_text([stable_text(parts)])


def fingerprint_of_text(pieces: Iterable[str]) -> str:
    """The digest of a text that comes in pieces."""
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(piece.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def stable_text(value: object) -> str:
    """Plain values as the text that fingerprints are of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (np.integer, np.floating)):
        return value.item()
    raise TypeError(f"{type(value).__name__} has no stable text")


@dataclass(frozen=True)
class Classes:
    """An ordered list of classes; a label is a place in it.

    Names are what people read and may repeat (ILSVRC-2012 has two cranes); wnids, where known, never do.
    """

    names: tuple[str, ...]
    wnids: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.wnids is not None and len(self.wnids) != len(self.names):
            raise BadInput(f"{len(self.names)} class names but {len(self.wnids)} wnids")

    def __repr__(self) -> str:
        return in_a_line(self, self.in_short)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def keys(self) -> tuple[str, ...]:
        """What identifies each class: the wnid where known, else the name."""
        return self.wnids or self.names

    @property
    def in_short(self) -> str:
        """The names of a few classes, or the first of many.

        >>> Classes(tuple("abcdef")).in_short
        'a, b, c, 3 more'
        """
        return ", ".join(self.names if len(self) <= 5 else (*self.names[:3], f"{len(self) - 3:,} more"))


@dataclass(frozen=True, slots=True)
class Sample:
    """One image of a dataset, without its pixels.

    The id is the POSIX path below the dataset's root, or the manifest's own. Labels are places in the dataset's `classes`;
    none means unlabelled, several mean that any of them is correct.
    """

    id: str
    labels: tuple[int, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    boxes: Boxes | None = field(default=None, compare=False)  # arrays cannot be compared by ==


class ImageSource(Protocol):
    """Where one image lies: small and picklable, so that another process can open it."""

    @property
    def source(self) -> ImageSource | None:
        """The image that this one is made from when it is read, as a crop is; None for an image that is stored as it is."""

    def stamp(self) -> str | None:
        """What changes when the bytes do (path, size, time); None where only the bytes themselves tell."""

    def read(self) -> bytes:
        """The stored bytes, as the digest sees them."""

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        """Pixels of those bytes; raises UnreadableImage."""


@dataclass(frozen=True)
class Origin:
    """The dataset that another is a part or a version of."""

    name: str
    images: int


@runtime_checkable
class Dataset(Protocol):
    """Which images there are, with their labels and facts; `datasets.image_list` has a base class and the usual dataset."""

    @property
    def ref(self) -> DatasetRef: ...

    @property
    def classes(self) -> Classes | None:
        """What labels are places in; None for a dataset without labels."""

    @property
    def samples(self) -> Sequence[Sample]: ...

    def source(self, sample: Sample) -> ImageSource: ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What was recognised and what was left out when the dataset was opened, in sentences for people."""

    @property
    def credits(self) -> tuple[str, ...]:
        """Where the images come from, for reports that show them."""

    @property
    def published(self) -> str | None:
        """The published dataset that this is a copy of, or looks like, such as ``imagenet-a``."""

    @property
    def cut(self) -> str | None:
        """How pictures that shiftproof wrote were cut out of their images, such as ``imagenet-224``."""

    @property
    def truths(self) -> Truths | None:
        """The ground-truth boxes; None for a dataset without."""

    @property
    def origin(self) -> Origin | None:
        """What this is a draw, a view or perturbation sequences of; None for a dataset as it was opened."""


@dataclass(frozen=True)
class SkippedImage:
    """An image that could not be read, and why; counted in every result."""

    id: str
    reason: str


@dataclass(frozen=True)
class FrostPictures:
    """A folder of frost pictures to use instead of our own, by what it holds."""

    folder: str
    digest: str


@dataclass(frozen=True)
class Condition:
    """A change of pixels only, as data: ids and labels stay, so two runs of one dataset line up row by row.

    `picture` is the image as the change sees it: ``image`` (as stored, the model's own preprocessing follows), an
    edition (its resize and crop), ``whole`` (as stored) or ``model-size`` (the model's own resize and crop); these
    three are then resized whole to the model's size. One of the ten `CROPS` is looked at as it is, without a change.
    """

    name: str
    severity: int = 0
    _: dataclasses.KW_ONLY
    edition: str | None = None
    output: Output = "raw"
    picture: str = "image"
    seed: int = 0
    scale_severity: bool = False  # severity parameters in pixels grow with the picture; for sizes no edition has
    frost: FrostPictures | None = None

    def __post_init__(self) -> None:
        if self.name != "clean" and not 1 <= self.severity <= 5:
            raise BadInput(f"severity should be 1 to 5, got {self.severity} for {self.name}")

    def __str__(self) -> str:
        return self.name if self.severity == 0 else f"{self.name} {self.severity}"

    def key(self) -> dict[str, Fact]:
        """What the pixels depend on, in plain values; of frost pictures what they are, not where they lie."""
        told = {one.name: getattr(self, one.name) for one in dataclasses.fields(self)}
        told["frost"] = self.frost and self.frost.digest
        told["scale_strengths"] = told.pop("scale_severity")  # as stores have it
        return told


CLEAN = Condition("clean")

CORNERS = ("top left", "top right", "bottom left", "bottom right")

CROPS = ("centre", *CORNERS, "mirrored centre", *(f"mirrored {corner}" for corner in CORNERS))
"""Ten-crop: centre, four corners, and their mirror images."""


@dataclass(frozen=True)
class DatasetRef:
    """A dataset by what it holds; the fingerprint covers ids, labels and facts."""

    name: str
    fingerprint: str
    location: str | None = None  # what opens it again; None for datasets in memory

    @property
    def place(self) -> tuple[str, str | None]:
        """What tells datasets apart, whatever their names: two folders of other images may have the same ids and labels."""
        return self.fingerprint, self.location


@dataclass(frozen=True)
class Clusters:
    """Which images are one cluster, the independent unit: those of one key come from one photo, clip or patient.

    >>> frames = Clusters("clip", ("a", "a", "b"))
    >>> frames.count, frames.numbers
    (2, array([0, 0, 1]))
    """

    unit: str  # what one cluster is: "image", "clip", "source image", or a fact of the images such as "patient"
    keys: Sequence[str]  # (images,); the same key in two datasets is the same cluster
    near_duplicates: bool = False  # whether clusters are joined where their images are near-duplicates
    named: bool = False  # whether the user said what a cluster is; otherwise keys come from the names of images

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def case(self) -> str:
        """What one cluster is, in words.

        >>> Clusters("image", ("a", "a", "b"), near_duplicates=True).case
        'image (near-duplicates joined)'
        """
        return f"{self.unit} (near-duplicates joined)" if self.near_duplicates else self.unit

    @cached_property
    def count(self) -> int:
        if isinstance(self.keys, Texts) and self.keys.repeated is None:
            return len(self.keys)
        return len(set(self.keys))

    @cached_property
    def numbers(self) -> NDArray[np.intp] | None:
        """The cluster of each image as a number, (images,); None where every image is one, as metrics take it."""
        if self.count == len(self.keys):
            return None
        places = {key: place for place, key in enumerate(dict.fromkeys(self.keys))}
        return np.fromiter(map(places.__getitem__, self.keys), np.intp, len(self.keys))

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Clusters:
        """The same for some of the images."""
        places: NDArray[Any] = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if isinstance(self.keys, Texts):
            return dataclasses.replace(self, keys=self.keys.take(places))
        rows_taken = places.tolist()
        keys = itemgetter(*rows_taken)(self.keys) if len(rows_taken) > 1 else (self.keys[place] for place in rows_taken)
        return dataclasses.replace(self, keys=tuple(keys))


def joined_clusters(parts: Sequence[Clusters]) -> Clusters:
    """The clusters of several datasets, one behind the other; the same key is the same cluster."""
    if len(parts) == 1 and len(parts[0]):
        return parts[0]
    units = dict.fromkeys(part.unit for part in parts if len(part))
    alike = any(part.near_duplicates for part in parts if len(part))
    named = any(part.named for part in parts if len(part))
    return Clusters(" or ".join(units) or "image", tuple(chain.from_iterable(part.keys for part in parts)), alike, named)
