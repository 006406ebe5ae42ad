"""One photo varied step by step (zoom, crop, hue, corruptions): the predictions, and the OOD score of each detector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.catalog import CORRUPTIONS, OOD_DETECTORS
from shiftproof.datasets.image_list import FileImage, ImageList
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.metrics.roc import images_below
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, dataset_ref, load_training, model_refs, settle
from shiftproof.studies.ood.scores import DetectorPanel, check_detectors
from shiftproof.types import (
    About,
    Classifier,
    Curve,
    Dataset,
    DatasetRef,
    Decoder,
    Fact,
    Finding,
    Gallery,
    GalleryItem,
    Image,
    ImageSource,
    Keep,
    LoadPredictions,
    Measurement,
    ModelRef,
    Note,
    OODScores,
    Predictions,
    Reading,
    Run,
    Sample,
    Skipped,
    Study,
)


@dataclass(frozen=True)
class ProbeStudy(Study):
    """Probability of the photo's predicted class, and the percentile of each OOD score among OOD images, by step.

    `datasets` are variations of one photo (`varied`); detectors that learn do so from `training`.
    """

    models: Sequence[ModelRef | Classifier]
    datasets: Sequence[DatasetRef | Dataset]
    ood_dataset: DatasetRef | Dataset | None = None
    training: DatasetRef | Dataset | None = None
    detectors: Sequence[str] | None = None  # None: all that can be had
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict, hash=False)
    keep: Keep = "features"

    def __post_init__(self) -> None:
        settle(
            self,
            models=model_refs(self.models),
            datasets=tuple(map(dataset_ref, self.datasets)),
            ood_dataset=self.ood_dataset and dataset_ref(self.ood_dataset),
            training=self.training and dataset_ref(self.training),
        )
        check_detectors(self._names, preset=self.preset, parameters=self.parameters)

    def runs(self) -> list[Run]:
        """Every model on every variation, on the OOD set and on its training images."""
        others = [images for images in (self.ood_dataset, self.training) if images is not None]
        return [Run(model, dataset_ref(images)) for model in model_refs(self.models) for images in [*self.datasets, *others]]

    def reading(self, run: Run) -> Reading | None:
        """OOD images have no ID class."""
        return Reading(None, labelled=False) if run.dataset == self.ood_dataset else None

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        if self.ood_dataset is None:
            yield Skipped("no OOD images were given (--ood), so OOD scores have no percentiles among them")
        for model in model_refs(self.models):
            panel, ood_set = self._judges(model, load)
            for images in map(dataset_ref, self.datasets):
                run = Run(model, images)
                predictions = load(run)
                if len(predictions):
                    yield from _answers(run, predictions)
                    yield from _places(run, predictions, panel, ood_set)
            if self.ood_dataset is not None:
                yield from panel.notes(model.name)

    @property
    def _names(self) -> tuple[str, ...]:
        return OOD_DETECTORS.usable if self.detectors is None else tuple(self.detectors)

    def _judges(self, model: ModelRef, load: LoadPredictions) -> tuple[DetectorPanel, Mapping[str, OODScores]]:
        """The detectors of a model, and their scores of the OOD images."""
        training = None if self.training is None else load_training(load, Run(model, dataset_ref(self.training)))
        panel = DetectorPanel(self._names, training, preset=self.preset, parameters=self.parameters)
        if self.ood_dataset is None:
            return panel, {}
        return panel, panel.scores(load(Run(model, dataset_ref(self.ood_dataset))))


class _Steps(NamedTuple):
    """The pictures of one variation: how strong each is, and what findings about them are about."""

    by: str
    strengths: NDArray[np.floating]
    about: About

    @classmethod
    def of(cls, run: Run, predictions: Predictions) -> _Steps:
        by, photo = (str(predictions.facts[name][0]) for name in ("varied", "photo"))
        strengths = np.array([float(value or 0) for value in predictions.facts["strength"]])
        return cls(by, strengths, {"model": run.model.name, "dataset": photo, "varied": by})

    @property
    def unchanged(self) -> int:
        """The place of the picture that is the photo itself, or nearest to it."""
        return int(np.abs(self.strengths - unchanged_at(self.by)).argmin())

    def curve(self, name: str, shares: NDArray[np.floating], convention: Mapping[str, str], **more: str) -> Curve:
        x, y = tuple(self.strengths.tolist()), tuple(np.asarray(shares, float).tolist())
        label = "share of OOD images with a lower score" if name == "probe_percentile" else "probability"
        about = {**self.about, **more}
        return Curve(name, about, f"{self.by}, {unit_of(self.by)}", label, x, y, images=len(x), convention=dict(convention))


def _answers(run: Run, predictions: Predictions) -> Iterator[Finding]:
    """How often and how probably the first prediction is kept, the confidence at each step, and the pictures."""
    steps = _Steps.of(run, predictions)
    convention = evidence.convention_of(run, predictions)
    names, answers = ClassNames(predictions.classes), predictions.top5.classes[:, 0]
    first = int(answers[steps.unchanged])
    about = {**steps.about, "class": names[first]}
    yield Measurement("prediction_kept_share", float((answers == first).mean()), about, len(answers), convention)
    confidence = evidence.confidence_or_nan(predictions)
    if np.isfinite(confidence).all():
        probabilities = to_probabilities(predictions.need_logits(), predictions.gives)[:, first]
        yield steps.curve("probe_probability", probabilities, convention, **{"class": names[first]})
        yield steps.curve("probe_confidence", confidence, convention)
    items = [
        GalleryItem(key, f"{steps.by} {strength:.3g}: {names[int(best)]}" + ("" if np.isnan(sure) else f" {sure:.0%}"))
        for key, strength, best, sure in zip(predictions.ids, steps.strengths, answers, confidence, strict=True)
    ]
    title = f"Predictions of {run.model.name} by {steps.by.replace('_', ' ')}"
    yield Gallery("probe_pictures", steps.about, run.dataset, title, tuple(items))


def _places(run: Run, predictions: Predictions, panel: DetectorPanel, ood_set: Mapping[str, OODScores]) -> Iterator[Finding]:
    """Each OOD score as a percentile among those of the OOD images."""
    steps = _Steps.of(run, predictions)
    for name, scores in panel.scores(predictions).items():
        if name in ood_set:
            convention = {
                **panel.ready[name].convention(),
                "place": f"share of {len(ood_set[name]):,} OOD images with a lower OOD score, ties by half",
            }
            yield steps.curve("probe_percentile", place_among(scores, ood_set[name]), convention, ood_detector=name)


def place_among(scores: OODScores, others: OODScores) -> NDArray[np.floating]:
    """Share of the others that each score lies above; equal ones count half.

    >>> place_among(np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    array([0.   , 0.375, 1.   ])
    """
    return images_below(scores, others) / len(others)


PIXELS = 1
"""Raised whenever a variation comes out otherwise than before, so that stored predictions of the old one are not used."""

NEAREST = 4.0
"""How many times as large the middle of the photo gets at most."""

WINDOW = 0.7
"""Share of each side that a crop keeps."""


@dataclass(frozen=True)
class Variation:
    """A way to vary a photo: from where to where, and how."""

    low: float
    high: float
    unit: str
    make: Callable[[Image, float], Image]
    unchanged: float = 0.0  # strength at which the photo is as it is
    geometric: bool = False  # whether strengths grow by the same factor each time, not by the same amount


def zoomed(image: Image, factor: float) -> Image:
    """The middle of the photo, `factor` times as large: fewer pixels of it, cut to the same shape.

    >>> zoomed(np.zeros((100, 60, 3), np.uint8), 2.0).shape
    (50, 30, 3)
    """
    return _window(image, 1 / factor, 0.0)


def moved(image: Image, place: float) -> Image:
    """A window of seven tenths of each side, from the upper left corner at -1 through the middle to the lower right at 1."""
    return _window(image, WINDOW, place)


def recoloured(image: Image, degrees: float) -> Image:
    """The photo with every hue turned by so many degrees; black, grey and white stay."""
    if degrees == 0:
        return image
    hue, saturation, value = Pillow.fromarray(image).convert("HSV").split()
    turned = (np.asarray(hue, np.int16) + round(degrees * 256 / 360)) % 256
    joined = Pillow.merge("HSV", (Pillow.fromarray(turned.astype(np.uint8)), saturation, value))
    return np.array(joined.convert("RGB"))


def _window(image: Image, share: float, place: float) -> Image:
    height, width = (max(1, round(side * share)) for side in image.shape[:2])
    top, left = (round((side - kept) * (1 + place) / 2) for side, kept in zip(image.shape[:2], (height, width), strict=True))
    return np.ascontiguousarray(image[top : top + height, left : left + width])


VARIATIONS: Mapping[str, Variation] = {
    "zoom": Variation(1.0, NEAREST, "times as near", zoomed, unchanged=1.0, geometric=True),
    "crop": Variation(-1.0, 1.0, "from upper left to lower right", moved),
    "hue": Variation(-180.0, 180.0, "degrees", recoloured),
}
"""What can be varied beside the severity of a corruption."""


def values_of(by: str, steps: int) -> list[float]:
    """The steps a photo is shown at, evenly spaced; a zoom grows by the same factor each time.

    >>> values_of("zoom", 3), values_of("fog", 9)
    ([1.0, 2.0, 4.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    """
    if by in CORRUPTIONS:
        return [float(severity) for severity in range(6)]
    if by not in VARIATIONS:
        raise UnknownName("variation", by, [*VARIATIONS, *CORRUPTIONS])
    if steps < 2:
        raise BadInput(f"a photo is varied in at least 2 steps, got {steps}")
    variation = VARIATIONS[by]
    spaced = np.geomspace if variation.geometric else np.linspace
    return [round(float(value), 6) for value in spaced(variation.low, variation.high, steps)]


def unchanged_at(by: str) -> float:
    """The step at which the photo is unchanged, or nearest to that."""
    return VARIATIONS[by].unchanged if by in VARIATIONS else 0.0


def unit_of(by: str) -> str:
    """Unit of the steps."""
    return VARIATIONS[by].unit if by in VARIATIONS else "severity"


@dataclass(frozen=True, slots=True)
class VariedImage:
    """The photo at one step; its bytes are those of the photo, and how it is varied."""

    source: ImageSource
    key: str
    by: str
    value: float

    def stamp(self) -> str | None:
        stamp = self.source.stamp()
        return None if stamp is None else f"{stamp}\0{self._recipe()}"

    def read(self) -> bytes:
        return self.source.read() + self._recipe().encode()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        photo = self.source.decode(data.removesuffix(self._recipe().encode()), decoder=decoder)
        if self.by in VARIATIONS:
            return VARIATIONS[self.by].make(photo, self.value)
        if self.value == 0:
            return photo
        from shiftproof.corruptions.apply import corrupt  # only where it is needed: it loads OpenCV

        return corrupt(photo, self.by, int(self.value), key=self.key, scale_severity=True)

    def _recipe(self) -> str:
        return f"\0shiftproof variation {PIXELS} {self.by} {self.value}"


def varied(photo: str | Path, by: str, *, steps: int = 9) -> ImageList:
    """A photo varied step by step, as a dataset with the facts `photo`, `varied` and `strength`."""
    path = Path(photo)
    if not path.is_file():
        raise BadInput(f"there is no photo at {photo}")
    source = FileImage(str(path.resolve()))
    values = {f"{path.name}/{by}/{place:02d}": value for place, value in enumerate(values_of(by, steps))}
    samples = [Sample(key, facts={"photo": path.name, "varied": by, "strength": value}) for key, value in values.items()]
    return ImageList(f"{by} of {path.name}", samples, None, lambda key: VariedImage(source, path.name, by, values[key]))
