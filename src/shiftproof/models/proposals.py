"""A classifier that looks at likely objects one by one, and names the class of each (Li et al., 2021, Algorithm 1)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.digests import digest_of
from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics.calibration import top_confidence
from shiftproof.metrics.top5 import to_top5
from shiftproof.models import detector_with, load_with
from shiftproof.models.batches import joined, taken
from shiftproof.models.boxes_as_classes import NOTHING, scores_behind_nothing, scores_in_random_order, with_nothing
from shiftproof.models.loaded import LoadedClassifier, model_ref
from shiftproof.models.options import OF_BOXES, OF_PROPOSALS, Fill, ModelOptions, ProposalAnswer
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.sliding_windows import Grid
from shiftproof.randomness import rng_for
from shiftproof.types import Boxes, Classifier, Found, Image, Inputs, ObjectDetector, Outputs, fingerprint_of

MOST = 20
"""Crops of an image that are looked at."""

LEAST_SIDE = 10
"""Pixels below which a crop is too narrow or too flat to be looked at."""

IMAGES_AT_ONCE = 8
"""Images held as bytes while their crops are asked."""

RULE = 1
"""Raised whenever the same models give other answers."""

NOTES = {
    "classes": "each says one class, and the surest of each class counts",
    "surest": "the surest answer stands",
}

AS_STORED = ImagePreparation(
    size=None, rule="none", value_range="0..255", mean=(0.0,), std=(1.0,), layout="nhwc", dtype="uint8"
)
"""Images as they are, in bytes: every crop is prepared by itself."""


class Proposer(Protocol):
    """Whoever says which parts of an image may hold an object."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def __call__(self, images: Sequence[Image]) -> Sequence[Boxes]:
        """Boxes of each image, the likeliest first."""


def load_proposals(spec: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier of this name, asked about crops that a detector or a grid proposes."""
    if options.proposals is None:
        raise BadInput(f"proposals:{spec} needs --proposals: a detector that proposes crops, as onnx:yolox.onnx, or grid")
    if options.proposal_answer == "surest":
        options.refuse("fill", "fill_seed", what="the answer to the surest crop, which has all classes,")
    of_crops = {*OF_PROPOSALS, *OF_BOXES, "name", "fill", "fill_seed"}
    unsaid: dict[str, Any] = {name: getattr(ModelOptions(), name) for name in of_crops}
    classifier = load_with(spec, dataclasses.replace(options, **unsaid))
    if options.proposals == Grid.name:
        options.refuse(*OF_BOXES, what="a grid of proposals")
        detector: ObjectDetector | Grid = Grid()
    else:
        of_boxes: dict[str, Any] = {name: getattr(options, name) for name in OF_BOXES}
        of_boxes |= {"trust": options.trust, "device": options.device, "threads": options.threads}
        detector = detector_with(options.proposals, ModelOptions(**of_boxes))
    return proposals(
        detector,
        classifier,
        most=MOST if options.most_proposals is None else options.most_proposals,
        least_side=LEAST_SIDE if options.least_side is None else options.least_side,
        answer=options.proposal_answer or "classes",
        fill=options.fill or "random",
        seed=options.fill_seed,
        name=options.name,
    )


def proposals(
    detector: ObjectDetector | Grid | Literal["grid"],
    classifier: Classifier,
    *,
    most: int = MOST,
    least_side: int = LEAST_SIDE,
    answer: ProposalAnswer = "classes",
    fill: Fill = "random",
    seed: int = 0,
    name: str | None = None,
) -> LoadedClassifier:
    """The classifier asked about crops of each image instead of the image.

    Crops are the boxes of a detector, whatever their classes, or windows of a ``grid``. Boxes with a side under
    `least_side` pixels and those touching the edge of the image go; of the others the `most` with the highest scores are
    looked at, of a grid those nearest the middle. Where none is left, the whole image is.

    Every crop says one class, and of each class its surest crop counts: the ``classes`` stand in the order of these
    confidences, and those that no crop shows follow as of `boxes_as_classes`, at random or behind "nothing found". With
    `answer` ``surest`` all that is said of the surest crop stands for the image, so that there are probabilities.
    """
    if classifier.gives == "scores":
        raise BadInput(f"{classifier.ref.name} gives scores that are no probabilities, so no crop can be called the surest")
    if answer not in get_args(ProposalAnswer):
        raise UnknownName("answer to proposals", answer, get_args(ProposalAnswer))
    if fill not in get_args(Fill):
        raise UnknownName("way to fill places", fill, get_args(Fill))
    if most < 1 or least_side < 1:
        raise BadInput(f"at least one crop of at least one pixel should be asked about, got {most} of {least_side}")
    propose, by_class = _proposer(detector), answer == "classes"
    preparation = dataclasses.replace(AS_STORED, decoder=classifier.preparation.decoder)
    chosen = ("classes", fill, seed if fill == "random" else None) if by_class else ()
    parts = fingerprint_of(classifier.ref.fingerprint, propose.fingerprint, most, least_side, RULE, *chosen)
    classes = classifier.classes
    if by_class and fill == "empty":
        if classes is None:
            raise BadInput(f"{classifier.ref.name} does not name its classes, so none can be called {NOTHING!r}")
        classes = with_nothing(classes)
    asked = _AskedCrops(propose, classifier, most, least_side)
    return LoadedClassifier(
        ref=model_ref(name or f"{classifier.ref.name} on crops by {propose.name}", parts, preparation),
        preparation=preparation,
        gives="scores" if by_class else classifier.gives,
        answer=ClassesOfCrops(asked, fill, seed) if by_class else SurestCrop(asked),
        classes=classes,
        seen=classifier.seen,
        notes=(
            *getattr(classifier, "notes", ()),
            f"of each image up to {most} crops by {propose.name} are asked and {NOTES[answer]}; "
            "the whole image where no crop is left",
        ),
        good_batch=IMAGES_AT_ONCE,
        has_features=getattr(classifier, "has_features", True),
        # logits of the head are not what the classes of several crops are told by
        read_head=(lambda: None) if by_class else (lambda: classifier.head),
    )


def _proposer(detector: ObjectDetector | Grid | str) -> Proposer:
    if isinstance(detector, str):
        if detector != Grid.name:
            raise BadInput(f"crops are proposed by a detector or by 'grid', not by {detector!r}")
        return Grid()
    return detector if isinstance(detector, Grid) else BoxesOf(detector)


class _Asked(NamedTuple):
    """What a classifier says of every crop of an image, and how sure it is of the class of each."""

    image: Image
    answers: Outputs
    sureness: NDArray[np.floating]


@dataclass(frozen=True)
class _AskedCrops:
    """Asks a classifier about the crops that are proposed of images."""

    propose: Proposer
    classifier: Classifier
    most: int
    least_side: int

    def __call__(self, inputs: Inputs, features: bool) -> Iterator[_Asked]:
        images = [np.asarray(image, np.uint8) for image in inputs]
        for image, boxes in zip(images, self.propose(images), strict=True):
            crops = crops_of(image, boxes, most=self.most, least_side=self.least_side)
            prepared = [self.classifier.preparation.from_image(crop) for crop in crops]
            alike = len({one.shape for one in prepared}) == 1
            batches = [np.stack(prepared)] if alike else [one[None] for one in prepared]
            answers = joined([self.classifier(batch, features=features) for batch in batches])
            gives = self.classifier.gives
            yield _Asked(image, answers, top_confidence(to_top5(answers.scores, gives), gives))


@dataclass(frozen=True)
class SurestCrop:
    """Answers images with what a classifier says of that crop of each which it is surest of."""

    asked: _AskedCrops

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        return joined([taken(one.answers, np.array([one.sureness.argmax()])) for one in self.asked(inputs, features)])


@dataclass(frozen=True)
class ClassesOfCrops:
    """Answers images with the classes of their crops, each as sure as its surest crop; features are those of the surest."""

    asked: _AskedCrops
    fill: Fill
    seed: int

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        return joined([self._classes(one) for one in self.asked(inputs, features)])

    def _classes(self, one: _Asked) -> Outputs:
        classes = one.answers.scores.shape[1]
        found = classes_of_crops(one.answers.scores.argmax(axis=1), one.sureness)
        if self.fill == "empty":
            scores = scores_behind_nothing(found, classes)
        else:
            rng = rng_for(digest_of(one.image.tobytes()), "proposals as classes", self.seed)
            scores = scores_in_random_order(found, classes, rng)
        return taken(one.answers, np.array([one.sureness.argmax()]))._replace(scores=scores[None])


def classes_of_crops(classes: NDArray[np.integer], sureness: NDArray[np.floating]) -> Found:
    """The class of each crop once, the surest first, with the confidence of its surest crop; of equals the earlier crop's.

    >>> found = classes_of_crops(np.array([2, 0, 0]), np.array([0.8, 0.9, 0.7]))
    >>> found.classes.tolist(), found.scores.round(3).tolist()
    ([0, 2], [0.9, 0.8])
    """
    order = np.argsort(-sureness, kind="stable")
    _, first = np.unique(classes[order], return_index=True)
    kept = order[np.sort(first)]
    scores = sureness[kept].astype(np.float32)
    for place in range(1, len(scores)):
        # stored scores are single floats, in which many sure answers are 1
        scores[place] = min(scores[place], np.nextafter(scores[place - 1], np.float32(-1)))
    return Found(np.zeros((len(kept), 4)), scores.astype(float), classes[kept])


def crops_of(image: Image, boxes: Boxes, *, most: int, least_side: int) -> list[Image]:
    """The first `most` boxes that are large enough and touch no edge, cut out; the whole image where there is none.

    >>> image = np.zeros((50, 50, 3), np.uint8)
    >>> boxes = np.array([[0, 5, 40, 45], [5, 5, 14, 45], [5, 5, 15.5, 45]])  # at the edge, too narrow, good
    >>> [crop.shape[:2] for crop in crops_of(image, boxes, most=20, least_side=10)]
    [(40, 11)]
    """
    height, width = image.shape[:2]
    exact = boxes.round(6)  # a box that ends on a pixel's edge does not touch the next one
    pixels = np.concatenate([np.floor(exact[:, :2]), np.ceil(exact[:, 2:])], axis=1).astype(int)
    large = (exact[:, 2:] - exact[:, :2] >= least_side).all(axis=1)
    inside = (pixels[:, :2] > 0).all(axis=1) & (pixels[:, 2:] < [width, height]).all(axis=1)
    crops = [image[top:bottom, left:right] for left, top, right, bottom in pixels[large & inside][:most].tolist()]
    return crops or [image]


@dataclass(frozen=True)
class BoxesOf:
    """What a detector finds, surest first."""

    detector: ObjectDetector

    @property
    def name(self) -> str:
        return self.detector.ref.name

    @property
    def fingerprint(self) -> str:
        return self.detector.ref.fingerprint

    def __call__(self, images: Sequence[Image]) -> list[Boxes]:
        inputs = np.stack([self.detector.preparation.from_image(image) for image in images])
        sizes = [(image.shape[0], image.shape[1]) for image in images]
        return [found.boxes for found in self.detector.detect(inputs, sizes)]
