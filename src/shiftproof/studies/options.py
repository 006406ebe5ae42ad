"""Options of studies: what each can be told, and how it is assembled from models, a dataset and its options.

Only what help needs is imported here; an assembly imports the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from shiftproof.errors import BadInput
from shiftproof.options import Bounds, DatasetSettings, OODDetectorChoice, Options, PictureSettings, option

if TYPE_CHECKING:
    from shiftproof.corruptions.editions import Fit
    from shiftproof.datasets.image_list import ImageList
    from shiftproof.runs.store import Store
    from shiftproof.types import Caution, Classifier, Dataset, Fact, Keep, ModelRef, ObjectDetector, Study

    AnyModels: TypeAlias = Sequence[Classifier | ObjectDetector | ModelRef]
    Classifiers: TypeAlias = Sequence[Classifier | ModelRef]


@dataclass(frozen=True)
class Assembled:
    """Studies ready to run, every dataset they read, and networks that are run beside the models."""

    studies: Sequence[Study]
    datasets: Sequence[Dataset]
    companions: Sequence[Classifier] = ()
    editions: Mapping[Fit, bool] = field(default_factory=dict)  # chosen by size; whether severity is scaled to it
    unasked: Sequence[Study] = ()  # those among the studies that nobody named
    cautions: Sequence[Caution] = ()  # what is to be known of the studies, beside what they say themselves


def joined(works: Iterable[Assembled]) -> Assembled:
    """Several assemblies as one; what they share is there once."""
    works = list(works)
    sets = {one.ref: one for work in works for one in work.datasets}
    companions = {one.ref: one for work in works for one in work.companions}
    return Assembled(
        [study for work in works for study in work.studies],
        list(sets.values()),
        list(companions.values()),
        {fit: scaled for work in works for fit, scaled in work.editions.items()},
        [study for work in works for study in work.unasked],
        [caution for work in works for caution in work.cautions],
    )


@dataclass(frozen=True)
class Context:
    """What an assembly may ask for beside models and dataset."""

    store: Store
    dataset_options: DatasetSettings = field(default_factory=DatasetSettings)
    trust: bool = False  # whether model files that are programs may be run
    tell: Callable[[str], None] = lambda _: None

    def open_dataset(self, location: str) -> ImageList:
        """The dataset at a location, read as the options say."""
        from shiftproof.datasets import open_with

        return open_with(location, self.dataset_options)

    def stored_model(self, name: str) -> ModelRef:
        """The newest model of a name in the store, or the version that was named; other versions are told about."""
        from shiftproof.runs.stored_models import version_named

        ref = version_named(name, self.store).ref
        self.tell_versions(ref)
        return ref

    def tell_versions(self, ref: ModelRef) -> None:
        """A note where the name of a model has other versions."""
        from shiftproof.runs.stored_models import older_told

        told = older_told(ref, self.store)
        if told:
            self.tell(f"note: {told}")


@dataclass(frozen=True)
class Parts:
    """How a study can be done in part: any number of units from `least` to `most`, where less is contained in more."""

    least: int  # fewer tell nothing
    most: int  # all there is
    metric: str  # the number whose confidence interval more of them narrow
    unit: str = "photos"
    passes: int | None = None  # forward passes of a unit; None: counted once the study is assembled
    nested: bool = True  # whether a part of a dataset is one of any larger dataset too


class StudyOptions(Options, ABC):
    """Options of one study."""

    RUN_BY: ClassVar[frozenset[str]] = frozenset()
    """Options that ask for the study, though nobody named it."""

    def fits(self, dataset: Dataset) -> bool:  # noqa: ARG002
        """Whether the study belongs to a profile of this dataset."""
        return True

    def of(self, dataset: Dataset) -> Dataset:
        """The images of a dataset that the study has in a profile."""
        return dataset

    def parts(self, dataset: Dataset) -> Parts | None:  # noqa: ARG002
        """How the study can be done in part, where time is short; None: whole or not at all."""
        return None

    def within(self, units: int, dataset: Dataset) -> tuple[StudyOptions, Dataset]:
        """Options and dataset of a part of the study."""
        from shiftproof.datasets.subsets import drawn

        return self, drawn(dataset, units)

    @abstractmethod
    def assemble(self, study: Callable[..., Any], models: Any, dataset: Dataset, context: Context) -> Assembled:
        """The study of these models on this dataset."""

    def takes(self, name: str) -> bool:
        """Whether the study makes use of an option of its own as it is asked."""
        return name in {one.name for one in fields(self)}


class BaselineSettings(Options):
    """The baseline of corruption error (CE) and flip rate."""

    TITLE: ClassVar[str] = "Baseline"

    baseline: str | None = option(
        None, "Baseline of CE and flip rate: a stored model, or alexnet for the published one.", common=True
    )

    def baseline_in(self, context: Context) -> ModelRef | str | None:
        """A stored model, or the published one by name."""
        return self.baseline if self.baseline in (None, "alexnet") else context.stored_model(self.baseline)


class FrameSettings(Options):
    """Frames around anchor frames."""

    TITLE: ClassVar[str] = "Frames of video"

    largest_k: int = option(10, "Frames before and after an anchor frame (k of pm-k).", bounds=Bounds(1, 1000))
    without_anchor: bool = option(False, "Evaluate the neighbours without the anchor, as in Eq. 1 of Shankar et al. (2021).")


class IoUSettings(Options):
    """IoU thresholds from which on a box matches an object."""

    TITLE: ClassVar[str] = "Object detection"

    iou: tuple[str, ...] = option(
        ("0.5", "0.75", "coco"),
        "IoU thresholds of a match, comma-separated: numbers, coco (mean over ten) or ilsvrc (lower for tiny boxes); the "
        "first is used for classes, sizes, frames and corruptions.",
    )

    def thresholds(self) -> tuple[float | str, ...]:
        """The thresholds as numbers.

        >>> IoUSettings(iou=("0.5", "coco")).thresholds()
        (0.5, 'coco')
        """
        try:
            thresholds = tuple(word if word in ("coco", "ilsvrc") else float(word) for word in self.iou)
        except ValueError as problem:
            given = ",".join(self.iou)
            raise BadInput(f"--iou should be numbers, coco or ilsvrc, comma-separated; got {given!r}") from problem
        if not thresholds:
            raise BadInput("--iou should name at least one threshold, such as 0.5")
        return thresholds


class PublishedBins(Options):
    """Which bins count in RMS calibration errors."""

    TITLE: ClassVar[str] = "Calibration"

    published_bins: bool = option(False, "Leave the last bin out of RMS calibration errors, as ImageNet-A's code does.")


class CleanImages(Options):
    """Clean images, compared with a dataset of corrupted ones."""

    TITLE: ClassVar[str] = "Clean images"

    clean_images: str | None = option(
        None,
        "Clean images, for a dataset of corrupted ones; ordinary photos, for natural-adversarial; ImageNet validation, for "
        "a natural shift of it.",
    )


def pictures_of(
    options: PictureSettings, models: AnyModels, dataset: Dataset, context: Context, *, picture: str | None = None
) -> dict[str, Any]:
    """How pictures are cropped and changed, as studies of corruption take it; `picture` is the default."""
    from shiftproof.corruptions.frost_pictures import frost_pictures

    picture = picture if options.at == "picture" else options.at
    return {
        "edition": options.edition,
        "fit": fit_of(options.edition, models, dataset, context, picture=picture),
        "output": options.encoding,
        "picture": picture,
        "seed": options.seed,
        "frost": frost_pictures(options.frost_folder) if options.frost_folder else None,
        "scale_severity": options.scale_severity,
    }


def fit_of(
    edition: str | None, models: AnyModels, dataset: Dataset, context: Context, *, picture: str | None = None
) -> Fit | None:
    """The edition for the size of these images and of the models' inputs; None where one is named."""
    from shiftproof.datasets.perturbed import edition_for
    from shiftproof.types import ModelRef

    if edition is not None:
        return None
    prepared = [
        (model.name, stored.preprocessing if (stored := context.store.model(model)) else {})
        if isinstance(model, ModelRef)
        else (model.ref.name, model.preprocessing.describe())
        for model in models
    ]
    return edition_for(dataset, prepared, picture=picture)


def has_facts(dataset: Dataset, *names: str) -> bool:
    """Whether the images have all of these facts, judged by the first."""
    return bool(dataset.samples) and all(name in dataset.samples[0].facts for name in names)


def detector_names(options: OODDetectorChoice) -> tuple[str, ...] | None:
    """The OOD detectors that were named; None where none were."""
    if options.ood_detectors == ():
        raise BadInput("expected names of OOD detectors with commas between them, see shiftproof list ood")
    return options.ood_detectors


def detector_parameters(texts: Sequence[str]) -> dict[str, dict[str, Fact]]:
    """Parameters by detector.

    >>> detector_parameters(["knn.neighbours=50", "vim.dimension=none"])
    {'knn': {'neighbours': 50}, 'vim': {'dimension': None}}
    """
    parameters: dict[str, dict[str, Fact]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        detector, _, parameter = name.partition(".")
        if not (detector and parameter and value):
            raise BadInput(f"--set takes a detector's parameter, as knn.neighbours=50; got {text!r}")
        if parameter in parameters.setdefault(detector, {}):
            raise BadInput(f"--set {name} is given twice")
        parameters[detector][parameter] = _value(value)
    return parameters


def _value(text: str) -> Fact:
    words: Mapping[str, Fact] = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def named_datasets(option_name: str, texts: Sequence[str]) -> dict[str, ImageList]:
    """The datasets at NAME=DIR, or at DIR, which then goes by the name of its folder."""
    from shiftproof.datasets import open_dataset

    sets: dict[str, ImageList] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals or Path(text).exists():
            name, place = "", text
        elif not (name and place):
            raise BadInput(f"{option_name} takes NAME=DIR, as dresses=photos/dress; got {text!r}")
        images = open_dataset(place, name=name or None)
        if images.name in sets:
            raise BadInput(f"two datasets of {option_name} are called {images.name}; rename one, as {images.name}2={place}")
        sets[images.name] = images
    return sets


def keep_of(models: Classifiers, store: Store) -> Keep:
    """Features where every model has them, or has stored them; else logits, and detectors that need more are left out."""
    from shiftproof.runs.load import PRECISIONS
    from shiftproof.types import CLEAN, ModelRef

    def has_features(model: Classifier | ModelRef) -> bool:
        if isinstance(model, ModelRef):
            return any(store.run(model, CLEAN, precision).contents("features").rows for precision in PRECISIONS)
        return model.has_features

    return "features" if all(map(has_features, models)) else "logits"


SIDES = Bounds(8, 4096)
"""Sides of inputs that may be asked for."""
