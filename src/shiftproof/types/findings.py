"""What studies find, and what a study is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from shiftproof.types.boxes import FoundObjects
from shiftproof.types.images import Condition, Dataset, DatasetRef
from shiftproof.types.models import ModelRef, Seen
from shiftproof.types.predictions import Keep, Predictions, Run, Training

About: TypeAlias = Mapping[str, str | int]


@dataclass(frozen=True)
class Interval:
    """A confidence interval, and how it was made.

    >>> Interval(0.78, 0.97, method="Clopper-Pearson").told
    '95 %, Clopper-Pearson'
    """

    low: float
    high: float
    level: float = 0.95
    method: str = ""
    cases: str = ""  # how many clusters it rests on, such as "4 clips"; empty where every image is one

    @property
    def told(self) -> str:
        """Level and method, for people."""
        return ", ".join(filter(None, [f"{100 * self.level:g} %", self.method]))


@dataclass(frozen=True)
class NoInterval:
    """Why a number has no confidence interval."""

    why: str
    too_few: bool = False  # more images, or more clusters, could give it one

    @property
    def told(self) -> str:
        return f"{'too few' if self.too_few else 'none'}: {self.why}"


@dataclass(frozen=True)
class BaselineRef:
    """What a ratio is in multiples of: a model run on the same images, or AlexNet's published numbers."""

    name: str  # of the model, or which published numbers, for people
    alexnet: bool  # so that published ratios, which are in multiples of AlexNet's, compare
    published: bool = False
    same_images: bool = True  # published numbers may be of other images, or of other files of them

    @classmethod
    def of(cls, model: ModelRef) -> BaselineRef:
        """A model that was run; AlexNet where that is its whole name, whatever kind of model it is.

        >>> BaselineRef.of(ModelRef("torchvision:alexnet", "")).alexnet, BaselineRef.of(ModelRef("not-alexnet", "")).alexnet
        (True, False)
        """
        return cls(model.name, alexnet=model.name.rpartition(":")[2].casefold() == "alexnet")


@dataclass(frozen=True)
class Measurement:
    """One number, and everything needed to say what it is the number of."""

    metric: str
    value: float
    about: About  # {"model": "resnet50", "dataset": "shapes", "class": "tench"}
    images: int
    convention: Mapping[str, str]  # {"classes": "200 of 1000"}
    interval: Interval | None = None
    clusters: int | None = None  # independent clusters behind it: photos, clips, patients; None: as many as images
    no_interval: NoInterval | None = None
    baseline: BaselineRef | None = None  # of a ratio
    as_published: bool = False  # by the protocol of the published numbers of its metric, so that these compare

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends of the interval."""
        return None if self.interval is None else (self.interval.low, self.interval.high)

    @property
    def how_sure(self) -> str:
        """Level and method of the interval, or why there is none; for people."""
        how = self.interval or self.no_interval
        return "" if how is None else how.told


@dataclass(frozen=True)
class Curve:
    """A line to draw, with the images behind each point and a confidence band where these are known."""

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
    level: float = 0.95  # of the band
    method: str = ""  # of the band
    no_interval: NoInterval | None = None
    clusters: int | None = None  # as of measurements


@dataclass(frozen=True)
class ConfusionMatrix:
    """How many images of each class were predicted as which; pairs that never came are left out."""

    name: str
    about: About
    classes: tuple[str, ...]  # those that are the true or the predicted class of any image
    true: tuple[int, ...]  # the true class of each pair, by its place among the classes
    predicted: tuple[int, ...]  # the predicted one
    counts: tuple[int, ...]  # images of each pair; they add up to `images`
    images: int
    convention: Mapping[str, str]


class DrawnBox(NamedTuple):
    """A box to draw on an image; its sides are shares of the image's width and height."""

    box: tuple[float, float, float, float]  # left, top, right, bottom
    kind: Literal["right", "wrong", "truth", "found"]  # found: a detection without ground truth
    caption: str = ""


class DrawnHeat(NamedTuple):
    """A saliency map to draw over an image: rows of numbers from 0 to 1 that share out a part of it evenly."""

    rows: tuple[tuple[float, ...], ...]
    window: tuple[float, float, float, float]  # left, top, right, bottom as shares of the image's width and height


@dataclass(frozen=True)
class GalleryItem:
    """One image to show, under a condition where one is given, of another dataset than the gallery's where one is named."""

    id: str
    caption: str
    condition: Condition | None = None
    dataset: DatasetRef | None = None
    boxes: tuple[DrawnBox, ...] = ()
    heat: DrawnHeat | None = None
    offset: int | None = None  # frames after the anchor, negative before it; None: not a frame around an anchor
    predicted: str = ""  # class name
    correct: bool | None = None  # whether the prediction is a label of the image; None: not known
    corruption: str = ""  # that its pixels show, whether made by the condition or stored
    severity: int = 0


@dataclass(frozen=True)
class Gallery:
    """Images worth looking at, by id, so that reports draw and never compute."""

    name: str
    about: About
    dataset: DatasetRef
    title: str
    items: tuple[GalleryItem, ...]


@dataclass(frozen=True)
class Skipped:
    """Something that could not be measured, and why."""

    reason: str
    study: str = ""  # class of the study, which `measure` adds; empty where it could not even begin
    about: About = field(default_factory=dict)


Topic = Literal["past", "classes", "clusters", "implausible", "study"]
"""A model's declared training, classes it lacks, dependent images, a suspicious number, or what a study itself says."""


@dataclass(frozen=True)
class Caution:
    """Something to know before numbers are trusted."""

    text: str
    topic: Topic = "study"
    about: About = field(default_factory=dict)


Finding: TypeAlias = Measurement | Curve | ConfusionMatrix | Gallery
"""What a study measures and the sections of a report draw."""
Note: TypeAlias = Skipped | Caution
"""What stands beside it among the results."""


class Reading(NamedTuple):
    """How a study wants a run read: its predictions scored among the classes of another dataset, with labels or without.

    Among no dataset at all they stay as the model gave them, which is enough for features.
    """

    among: DatasetRef | None
    labelled: bool


class LoadPredictions(Protocol):
    """What every study reads by; what else it may read, the protocols below declare."""

    def __call__(self, run: Run, /) -> Predictions: ...


@runtime_checkable
class LoadsTraining(Protocol):
    def training(self, run: Run) -> Training:
        """Predictions on training images, block by block: a training set need not fit into memory."""


@runtime_checkable
class LoadsSeen(Protocol):
    def seen(self, run: Run) -> Seen:
        """What the model of a run declares of its training."""


@runtime_checkable
class LoadsFound(Protocol):
    def found(self, run: Run) -> FoundObjects:
        """The detections of a run, and the ground truth."""


@runtime_checkable
class LoadsImages(Protocol):
    def images(self, ref: DatasetRef) -> Dataset:
        """The dataset itself, for what is known of its images beside predictions, such as boxes."""


@runtime_checkable
class LoadsOverlap(Protocol):
    def images_in_both(self, first: DatasetRef, second: DatasetRef) -> int:
        """How many images of the first dataset the second one holds too, byte for byte."""


class Loader(LoadsTraining, LoadsSeen, LoadsFound, LoadsImages, LoadsOverlap, Protocol):
    """Every way in which a study may read a store; `measure` gives one. Saliency maps: `LoadsSaliency` of that study."""

    def __call__(self, run: Run, /) -> Predictions: ...


class Known(Protocol):
    """What is known of datasets and models before any image is opened or any model is run."""

    @property
    def images(self) -> Callable[[DatasetRef], Dataset]: ...

    def unlabelled(self, ref: DatasetRef, what: str) -> str | None:
        """Why something that needs labels cannot be had of a dataset, or None."""

    def has_facts(self, ref: DatasetRef, names: Iterable[str]) -> bool:
        """Whether there are images of which all of these facts are known."""


@runtime_checkable
class Study(Protocol):
    """Whatever names the runs it needs and turns them into findings. Derive from it to have the defaults."""

    partial: ClassVar[bool] = False  # whether some of the rows of a run are enough
    needs_labels: ClassVar[bool] = True  # whether a dataset without labels leaves something unmeasured

    @property
    def keep(self) -> Keep:
        """The least its runs must have stored."""
        return "top5"

    def runs(self) -> Sequence[Run]: ...

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        """Numbers, curves and galleries; among them what could not be measured, and what to know of the rest."""

    def reading(self, run: Run) -> Reading | None:  # noqa: ARG002
        """How a run is to be read; None: as its dataset's own labels have it."""
        return None

    def why_nothing(self, known: Known) -> str | None:  # noqa: ARG002
        """Why nothing can be measured, whatever models predict; None where something can."""
        return None
