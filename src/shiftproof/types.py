"""The values everyone uses: few, frozen, checked when they are made so that nobody checks them again.

Conventions, stated once: images are RGB, boxes are ``xyxy`` in pixels, a higher anomaly score is more foreign,
ties between classes break by the lower class index. Adapters at the edge convert; nothing inside does.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept

Image: TypeAlias = NDArray[np.uint8]
"""RGB pixels, (height, width, 3)."""

Inputs: TypeAlias = NDArray[np.generic]
"""What a model eats: prepared images, (images, ...), in the layout its preparation names."""

Logits: TypeAlias = NDArray[np.floating]
"""Class scores, (images, classes); what they are (logits, probabilities, scores) the model `gives`."""

Features: TypeAlias = NDArray[np.floating]
"""What the last linear layer sees, (images, features)."""

AnomalyScores: TypeAlias = NDArray[np.floating]
"""How foreign each image looks, (images,); higher is more foreign, for every detector."""

Labels: TypeAlias = NDArray[np.integer]
"""True classes, (images, labels), padded with -1; a row of only -1 is an unlabelled image."""

Boxes: TypeAlias = NDArray[np.floating]
"""Corners in pixels, (boxes, 4), as left, top, right, bottom."""

Fact: TypeAlias = str | int | float | bool | None
Gives = Literal["logits", "probabilities", "scores"]
Answers: TypeAlias = Gives | Literal["boxes"]
"""What a model answers with: scores of classes in one of three meanings, or boxes."""
Keep = Literal["top5", "logits", "features", "boxes"]
Precision = Literal["float32", "float16"]
Decoder = Literal["pillow", "opencv"]
Output = Literal["raw", "jpeg85"]
"""Pixels as they come out of a corruption, or after the lossy save of the published files."""
CompanionKind = Literal["redrawn", "odin", "input size"]
Scored = Literal["full", "subset"]
"""Which columns compete for the first place: all of the model's, or only those of the images' classes."""

KEEPS: tuple[Keep, ...] = ("top5", "logits", "features")
"""What rows may hold, poorer first: each satisfies those before it. Boxes stand apart."""


def richest(keeps: Iterable[Keep]) -> Keep:
    """The one that satisfies all of these; whoever wants boxes wants nothing else.

    >>> richest(["top5", "features", "logits"])
    'features'
    """
    return max(keeps, key=(*KEEPS, "boxes").index)


def satisfies(kept: Keep, wanted: Keep) -> bool:
    """Whether rows that hold `kept` hold what is wanted.

    >>> satisfies("features", "top5"), satisfies("boxes", "top5")
    (True, False)
    """
    if "boxes" in (kept, wanted):
        return kept == wanted
    return KEEPS.index(kept) >= KEEPS.index(wanted)


def fingerprint_of(*parts: object) -> str:
    """A short stable digest of plain values; mappings are ordered by key first.

    >>> fingerprint_of({"b": 1, "a": 2}) == fingerprint_of({"a": 2, "b": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


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

    def __len__(self) -> int:
        return len(self.names)

    @property
    def keys(self) -> tuple[str, ...]:
        """What identifies each class: the wnid where known, else the name."""
        return self.wnids or self.names


@dataclass(frozen=True, slots=True)
class Sample:
    """One image of a set, without its pixels.

    The id is the POSIX path below the set's root, or the manifest's own. Labels are places in the set's `classes`;
    none means unlabelled, several mean that any of them is right.
    """

    id: str
    labels: tuple[int, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    boxes: Boxes | None = field(default=None, compare=False)  # arrays have no single answer to ==


class ImageSource(Protocol):
    """Where one image lies: small and picklable, so that another process can open it."""

    def stamp(self) -> str | None:
        """What changes when the bytes do (path, size, time); None where only the bytes themselves tell."""

    def read(self) -> bytes:
        """The stored bytes, as the digest sees them."""

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        """Pixels of those bytes; raises UnreadableImage."""


@runtime_checkable
class ImageSet(Protocol):
    """Which images there are, with their labels and facts."""

    @property
    def ref(self) -> ImageSetRef: ...

    @property
    def classes(self) -> Classes | None:
        """What labels are places in; None for a set without labels."""

    @property
    def samples(self) -> Sequence[Sample]: ...

    def source(self, sample: Sample) -> ImageSource: ...


@dataclass(frozen=True)
class SetAside:
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
    """A change of pixels only, as data: ids and labels stay, so two runs of one set line up row by row.

    `picture` is the image as the change sees it: ``image`` (as stored, the model's own preparation follows), an
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
    scale_strengths: bool = False  # lengths grow with the picture, for pictures that are not of the edition's size
    frost: FrostPictures | None = None

    def __post_init__(self) -> None:
        if self.name != "clean" and not 1 <= self.severity <= 5:
            raise BadInput(f"severity should be 1 to 5, got {self.severity} for {self.name}")

    def __str__(self) -> str:
        return self.name if self.severity == 0 else f"{self.name} {self.severity}"

    def key(self) -> dict[str, Fact]:
        """What the pixels depend on, in plain values; of frost pictures what they are, not where they lie."""
        return {**dataclasses.asdict(self), "frost": self.frost and self.frost.digest}


CLEAN = Condition("clean")

CORNERS = ("top left", "top right", "bottom left", "bottom right")
CROPS = ("centre", *CORNERS, "mirrored centre", *(f"mirrored {corner}" for corner in CORNERS))
"""Ten views of an image: what a model sees of it, the same moved into each corner, and all five mirrored."""


@dataclass(frozen=True)
class ModelRef:
    """A model by what its numbers depend on; the fingerprint covers weights and preparation."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class Companion:
    """What makes a network no model of its own: it is another one changed, and asked for that one's sake alone."""

    kind: CompanionKind
    of: str | None  # fingerprint of the model it was made of; None where that is not known any more


@dataclass(frozen=True)
class ImageSetRef:
    """An image set by what it holds; the fingerprint covers ids, labels and facts."""

    name: str
    fingerprint: str
    location: str | None = None  # what opens it again; None for sets that live in memory

    @property
    def place(self) -> tuple[str, str | None]:
        """What tells sets apart, however they are called: two folders of other images may have the same ids and labels."""
        return self.fingerprint, self.location


@dataclass(frozen=True)
class Run:
    """A request: this model, on this set, under this condition. `predict` answers it."""

    model: ModelRef
    image_set: ImageSetRef
    condition: Condition = CLEAN

    def about(self) -> dict[str, str | int]:
        """What a number taken from this run is about."""
        about: dict[str, str | int] = {"model": self.model.name, "image_set": self.image_set.name}
        if self.condition != CLEAN:
            about |= {"condition": self.condition.name, "severity": self.condition.severity}
        return about

    def convention(self) -> dict[str, str]:
        """How the pixels came to the model."""
        condition = self.condition
        own_rule = condition.picture == "image"
        picture = "the image, prepared by the model's own rule" if own_rule else condition.picture
        told = {"picture": picture, "output": condition.output}
        if condition.edition is not None:
            told |= {"edition": condition.edition, "seed": str(condition.seed)}
        if condition.scale_strengths:
            told["strengths"] = "scaled to the picture's size"
        elif condition.edition not in (None, condition.picture):
            told["strengths"] = "made for the edition's own size of picture, whatever the size here"
        if condition.frost is not None:
            told["frost pictures"] = condition.frost.digest
        return told


@dataclass(frozen=True)
class Seen:
    """What a model says of its own past; reports print it and warn where it spoils a benchmark."""

    training_data: str = "not declared"
    augmentations: tuple[str, ...] = ()
    filtered: tuple[str, ...] = ()  # sets this model helped to choose, e.g. ("imagenet-a",)


@dataclass(frozen=True)
class Head:
    """The last linear layer: logits = features @ weights.T + bias."""

    weights: NDArray[np.floating]  # (classes, features)
    bias: NDArray[np.floating]  # (classes,)


class Outputs(NamedTuple):
    """A model's answer to one batch."""

    scores: Logits
    features: Features | None = None
    extra: NDArray[np.floating] | None = None  # (images, numbers): a further output, such as a confidence branch


class Preparation(Protocol):
    """How an image becomes a model's input; travels to worker processes, so it pickles."""

    @property
    def decoder(self) -> Decoder:
        """Which library turns files into pixels; they differ by a level here and there, so one is named."""

    def from_image(self, image: Image) -> NDArray[np.generic]:
        """The model's own resize and crop, then normalisation; one image, without the batch axis."""

    def from_picture(self, picture: Image) -> NDArray[np.generic]:
        """The whole picture resized to the model's size, no crop, then normalisation."""

    def cut(self, image: Image) -> Image:
        """The model's own resize and crop alone: what it sees of the image, as bytes."""

    def describe(self) -> Mapping[str, Fact]:
        """Every choice in plain values: printed in reports and part of the fingerprint."""


@runtime_checkable
class CroppingPreparation(Preparation, Protocol):
    """One that can also look elsewhere than the model does."""

    def from_crops(self, image: Image) -> Mapping[str, NDArray[np.generic]]:
        """The inputs of the ten `CROPS` by their names; the first is what `from_image` gives."""


@runtime_checkable
class Classifier(Protocol):
    """Whatever answers with class scores."""

    @property
    def ref(self) -> ModelRef: ...

    @property
    def classes(self) -> Classes | None:
        """What the columns of the scores mean; None where the model does not say."""

    @property
    def preparation(self) -> Preparation: ...

    @property
    def gives(self) -> Gives: ...

    @property
    def seen(self) -> Seen: ...

    @property
    def head(self) -> Head | None:
        """The last linear layer, or None where it cannot be read."""

    def __call__(self, inputs: Inputs, *, features: bool = False) -> Outputs:
        """Scores of a batch of prepared images; features too, where asked."""


class Found(NamedTuple):
    """What a detector found in one image, surest first."""

    boxes: Boxes  # in the pixels of the image as it is stored
    scores: NDArray[np.floating]  # (boxes,)
    classes: NDArray[np.integer]  # (boxes,): places in the detector's classes


@runtime_checkable
class ObjectDetector(Protocol):
    """Whatever answers with boxes."""

    @property
    def ref(self) -> ModelRef: ...

    @property
    def classes(self) -> Classes | None: ...

    @property
    def preparation(self) -> Preparation: ...

    @property
    def seen(self) -> Seen: ...

    def detect(self, inputs: Inputs, sizes: Sequence[tuple[int, int]]) -> Sequence[Found]:
        """What is found in each prepared image, in the pixels of its original, whose sizes are (height, width)."""


@runtime_checkable
class RecordedDetector(ObjectDetector, Protocol):
    """A detector that is never asked: what it found in the images of a set was written down before."""

    def answers_for(self, images: ImageSet) -> Detections:
        """What was found in each image, in this detector's classes."""


@dataclass(frozen=True)
class Clusters:
    """Which images are one case, the unit of evidence: those of one key come from one photo, clip or patient.

    >>> frames = Clusters("clip", ("a", "a", "b"))
    >>> frames.count, frames.numbers
    (2, array([0, 0, 1]))
    """

    unit: str  # what one case is: "image", "clip", "source image", or a fact of the images such as "patient"
    keys: tuple[str, ...]  # (images,); the same key in two sets is the same case
    near_duplicates: bool = False  # whether such cases are joined where their images look alike

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def case(self) -> str:
        """What one case is, in words.

        >>> Clusters("image", ("a", "a", "b"), near_duplicates=True).case
        'image (near-duplicates joined)'
        """
        return f"{self.unit} (near-duplicates joined)" if self.near_duplicates else self.unit

    @cached_property
    def count(self) -> int:
        return len(set(self.keys))

    @cached_property
    def numbers(self) -> NDArray[np.intp] | None:
        """The case of each image as a number, (images,); None where every image is one, as metrics take it."""
        if self.count == len(self.keys):
            return None
        places = {key: place for place, key in enumerate(dict.fromkeys(self.keys))}
        return np.fromiter(map(places.__getitem__, self.keys), np.intp, len(self.keys))

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Clusters:
        """The same for some of the images."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return dataclasses.replace(self, keys=tuple(self.keys[place] for place in places.tolist()))


def joined_clusters(parts: Sequence[Clusters]) -> Clusters:
    """The cases of several sets of images, one behind the other; the same key is the same case."""
    units = dict.fromkeys(part.unit for part in parts if len(part))
    alike = any(part.near_duplicates for part in parts if len(part))
    return Clusters(" or ".join(units) or "image", tuple(key for part in parts for key in part.keys), alike)


@dataclass(frozen=True)
class Top5:
    """The five best classes of each image, and what turns their scores into probabilities."""

    classes: NDArray[np.integer]  # (images, up to 5), best first
    scores: NDArray[np.floating]  # (images, up to 5)
    log_total: NDArray[np.floating]  # (images,): log-sum-exp of all logits; nan unless the model gives logits

    def __len__(self) -> int:
        return len(self.classes)


@dataclass(frozen=True)
class Predictions:
    """What one model said of one set under one condition, row by row in the order of the set.

    Labels and columns are places in `classes`. Images that could not be read have no row; they are in `set_aside`.
    """

    ids: tuple[str, ...]
    labels: Labels
    gives: Gives
    top5: Top5
    classes: Classes | None = None
    logits: Logits | None = None
    features: Features | None = None
    head: Head | None = None
    extra: NDArray[np.floating] | None = None  # (images, numbers): a further output that was asked for by name
    facts: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)
    set_aside: tuple[SetAside, ...] = ()
    convention: Mapping[str, str] = field(default_factory=dict)
    grouped: Clusters | None = None  # None: every image is a case of its own

    def __post_init__(self) -> None:
        images = len(self.ids)
        arrays = {"labels": self.labels, "logits": self.logits, "features": self.features, "extra": self.extra}
        for what, rows in arrays.items():
            if rows is not None and (rows.ndim != 2 or len(rows) != images):
                raise BadInput(f"{what} should be ({images} images, ...) with two axes, got shape {rows.shape}")
        if len(self.top5) != images:
            raise BadInput(f"{images} ids but {len(self.top5)} rows of top5")
        if self.grouped is not None and len(self.grouped) != images:
            raise BadInput(f"{images} ids but {len(self.grouped)} keys of clusters")

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def clusters(self) -> Clusters:
        """Which images are one case."""
        return self.grouped or Clusters("image", self.ids)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which images have a label, (images,)."""
        return np.asarray((self.labels >= 0).any(axis=1))

    def need_logits(self) -> Logits:
        """The full scores, or NotKept."""
        if self.logits is None:
            raise NotKept("these predictions were stored without logits; predict again with --keep logits")
        return self.logits

    def need_features(self) -> Features:
        """The features, or NotKept."""
        if self.features is None:
            raise NotKept("these predictions have no features; predict again with --keep features, if the model shows any")
        return self.features

    def need_head(self) -> Head:
        """The last linear layer, or NotKept."""
        if self.head is None:
            raise NotKept("the model's last linear layer could not be read, or its classes are merged")
        return self.head

    def blocks(self) -> Iterator[Predictions]:
        """These predictions as one block: what is fitted on blocks can be fitted on them."""
        yield self

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Predictions:
        """The same predictions for some of the images."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return dataclasses.replace(
            self,
            ids=tuple(self.ids[place] for place in places),
            labels=self.labels[places],
            top5=Top5(self.top5.classes[places], self.top5.scores[places], self.top5.log_total[places]),
            logits=None if self.logits is None else self.logits[places],
            features=None if self.features is None else self.features[places],
            extra=None if self.extra is None else self.extra[places],
            facts={name: tuple(values[place] for place in places) for name, values in self.facts.items()},
            grouped=None if self.grouped is None else self.grouped.take(places),
        )


class Training(Protocol):
    """What a model said of its training images, block by block, as often as asked; `Predictions` are one block.

    A million rows of features need not be in memory together, so whoever learns from them learns in one pass or a few.
    """

    @property
    def head(self) -> Head | None: ...

    def __len__(self) -> int: ...

    def blocks(self) -> Iterator[Predictions]: ...


@dataclass(frozen=True)
class Detections:
    """Boxes found in some images; box `i` lies in image `ids[image[i]]`."""

    ids: tuple[str, ...]
    image: NDArray[np.integer]  # (boxes,)
    boxes: Boxes
    scores: NDArray[np.floating]  # (boxes,)
    classes: NDArray[np.integer]  # (boxes,)

    def __post_init__(self) -> None:
        counts = {len(self.image), len(self.boxes), len(self.scores), len(self.classes)}
        if len(counts) != 1 or self.boxes.shape[1:] != (4,):
            raise BadInput(f"boxes should be (boxes, 4) with one score, class and image each, got {self.boxes.shape}")


@dataclass(frozen=True)
class Truths:
    """The objects that really are in some images; box `i` lies in image `ids[image[i]]`.

    A crowd is a region of many objects: it may be found any number of times. What is ignored, as too hard or made by a
    machine, does not count whether it is found or not.
    """

    ids: tuple[str, ...]
    image: NDArray[np.integer]  # (boxes,)
    boxes: Boxes
    classes: NDArray[np.integer]  # (boxes,)
    crowd: NDArray[np.bool_]  # (boxes,)
    ignored: NDArray[np.bool_]  # (boxes,)
    areas: NDArray[np.floating]  # (boxes,): of the object where its outline is known, else of its box

    def __post_init__(self) -> None:
        columns = (self.image, self.boxes, self.classes, self.crowd, self.ignored, self.areas)
        if len(set(map(len, columns))) != 1 or self.boxes.shape[1:] != (4,):
            raise BadInput(f"boxes should be (boxes, 4) with one class, image and area each, got {self.boxes.shape}")

    def of_images(self, ids: Sequence[str]) -> Truths:
        """The objects of these images, which must be among those that these truths are of."""
        place_of = {key: place for place, key in enumerate(self.ids)}
        new = np.full(len(self.ids), -1)
        new[[place_of[key] for key in ids]] = np.arange(len(ids))
        image = new[self.image]
        kept = np.flatnonzero(image >= 0)
        return dataclasses.replace(self.take(kept), ids=tuple(ids), image=image[kept])

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Truths:
        """Some of the objects, of the same images."""
        return dataclasses.replace(
            self,
            image=self.image[rows],
            boxes=self.boxes[rows],
            classes=self.classes[rows],
            crowd=self.crowd[rows],
            ignored=self.ignored[rows],
            areas=self.areas[rows],
        )


@dataclass(frozen=True)
class FoundObjects:
    """What one detector found in one set under one condition, and what is really there, both in the classes of the set.

    Images that could not be read are not among the ids; they are in `set_aside`.
    """

    detections: Detections
    truths: Truths | None  # of the same ids; None where the set has no boxes
    sizes: NDArray[np.integer]  # (images, 2): height and width of each image
    classes: Classes
    facts: Mapping[str, tuple[Fact, ...]] = field(default_factory=dict)
    set_aside: tuple[SetAside, ...] = ()
    convention: Mapping[str, str] = field(default_factory=dict)
    grouped: Clusters | None = None  # None: every image is a case of its own

    @property
    def clusters(self) -> Clusters:
        """Which images are one case."""
        return self.grouped or Clusters("image", self.detections.ids)

    def __post_init__(self) -> None:
        if self.truths is not None and self.truths.ids != self.detections.ids:
            raise BadInput("boxes found and boxes that are really there should be of the same images in the same order")

    def __len__(self) -> int:
        return len(self.detections.ids)


About: TypeAlias = Mapping[str, str | int]


@dataclass(frozen=True)
class Measurement:
    """One number, and everything needed to say what it is the number of."""

    metric: str
    value: float
    about: About  # {"model": "resnet50", "image_set": "shapes", "class": "tench"}
    images: int
    convention: Mapping[str, str]  # {"classes": "200 of 1000"}
    interval: tuple[float, float] | None = None
    clusters: int | None = None  # independent cases behind it: photos, clips, patients; None: as many as images


@dataclass(frozen=True)
class Curve:
    """A line to draw, with the images behind each point where that is known."""

    name: str
    about: About
    x_label: str
    y_label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    images: int
    convention: Mapping[str, str]
    counts: tuple[int, ...] | None = None
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None


class DrawnBox(NamedTuple):
    """A box to draw on an image; its sides are shares of the image's width and height."""

    box: tuple[float, float, float, float]  # left, top, right, bottom
    kind: Literal["right", "wrong", "truth", "found"]  # found: nobody knows whether it is right
    caption: str = ""


class DrawnHeat(NamedTuple):
    """A heat map to draw over an image: rows of numbers from 0 to 1 that share out a part of it evenly."""

    rows: tuple[tuple[float, ...], ...]
    window: tuple[float, float, float, float]  # left, top, right, bottom as shares of the image's width and height


@dataclass(frozen=True)
class GalleryItem:
    """One image to show, under a condition where one is given, of another set than the gallery's where one is named."""

    id: str
    caption: str
    condition: Condition | None = None
    image_set: ImageSetRef | None = None
    boxes: tuple[DrawnBox, ...] = ()
    heat: DrawnHeat | None = None


@dataclass(frozen=True)
class Gallery:
    """Images worth looking at, by id, so that reports draw and never compute."""

    name: str
    about: About
    image_set: ImageSetRef
    title: str
    items: tuple[GalleryItem, ...]


Finding: TypeAlias = Measurement | Curve | Gallery


class Reading(NamedTuple):
    """How a study wants a run read: its answers scored among the classes of another set, with labels or without.

    Among no set at all they stay as the model gave them, which is enough for features.
    """

    among: ImageSetRef | None
    labelled: bool


@runtime_checkable
class Study(Protocol):
    """Whatever names the runs it needs and turns them into numbers."""

    @property
    def keep(self) -> Keep:
        """The least its runs must have stored."""

    def runs(self) -> Sequence[Run]: ...

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]: ...
