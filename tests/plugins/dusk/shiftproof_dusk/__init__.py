"""One of everything: corruption, sequence, OOD detector, metric, dataset layout, kind of model, study and recipe."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from shiftproof.corruptions import Corruption, Perturbation, Severities
from shiftproof.corruptions.sequences import Canvas
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.layout import Example, layout
from shiftproof.metrics import MetricInfo
from shiftproof.models import ModelOptions, model_kind, wrap_model
from shiftproof.ood.entry import OODDetector
from shiftproof.ood.inputs import logits_of
from shiftproof.options import Bounds
from shiftproof.studies.kind import StudyKind
from shiftproof.training.recipe import Pictures, Recipe
from shiftproof.types import Classes, Classifier, Image, OODScores, Predictions, Sample


def dusk(image: Image, rng: np.random.Generator, *, darkness: float) -> Image:
    """Evening light: every pixel loses the same share of its brightness."""
    return np.asarray((image * (1 - darkness)).round(), np.uint8)


DUSK = Corruption(dusk, "dusk", Severities("darkness", (0.2, 0.35, 0.5, 0.65, 0.8)), random=False)


def nightfall(canvas: Canvas, rng: np.random.Generator, *, step: float, frames: int) -> Iterator[Image]:
    """The light going, frame by frame."""
    yield from (dusk(canvas.picture, rng, darkness=step * frame) for frame in range(frames))


NIGHTFALL = Perturbation(nightfall, "nightfall", Severities("step frames", ((0.02, 31),)))


def flat_logits(predictions: Predictions) -> OODScores:
    """Minus the standard deviation of the logits: a flat row is out-of-distribution."""
    return np.asarray(-logits_of(predictions).std(axis=1))


FLAT_LOGITS = OODDetector("Flat logits", flat_logits)


@layout(
    holds="a text file with a path and a class in each line",
    labels="the class behind the path",
    endings=(".lst",),
    example=Example({"a.png": "", "b.png": "", "all.lst": "a.png cat\nb.png dog\n"}, opened="all.lst"),
)
def open_index(location: str, *, name: str | None = None, classes: Classes | None = None) -> ImageList:
    """The images that a text file lists, a path and a class a line."""
    rows = [line.rsplit(" ", 1) for line in Path(location).read_text(encoding="utf-8").splitlines()]
    classes, places = places_of((key for _, key in rows), classes)
    samples = [Sample(path, (places[key],)) for path, key in rows]
    return ImageList(name or Path(location).stem, samples, classes, FilesBelow(str(Path(location).parent)))


@model_kind(example=lambda _: "rose,leaf,sky")
def load_colour(names: str, options: ModelOptions) -> Classifier:
    """Mean red, green and blue as the logits of three classes, as in colour:rose,leaf,sky."""
    return wrap_model(
        lambda inputs: 20 * inputs.mean(axis=(2, 3)),
        name=options.name or "colour",
        version="1",
        class_names=names.split(","),
        preprocess=options.preprocess or "unit,size=32",
        seen=options.seen,
    )


def evening(image: Image, rng: np.random.Generator, others: Pictures, *, darkest: float) -> Image:
    """A picture of training at some hour of the evening."""
    return dusk(image, rng, darkness=rng.uniform(0, darkest))


EVENING = Recipe(
    title="Evening",
    description="Pictures lose a random share of their brightness.",
    settings={"darkest": 0.8},
    bounds={"darkest": Bounds(0, 1)},
    augmentations=("dusk",),
    augment=evening,
)

HESITATION_RATE = MetricInfo("Hesitation", "Share of images with less than 50 % confidence.", "share", "low")
HESITATION = StudyKind(
    title="Hesitation",
    question="How often is the confidence below 50 %?",
    study="shiftproof_dusk.hesitation:HesitationStudy",
    section="shiftproof_dusk.hesitation:SECTION",
    by_default=False,
)
