"""A classifier of region proposals, whose predictions are pooled (Li et al., 2021, Algorithm 1)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics.accuracy import to_top5
from shiftproof.metrics.calibration import top_confidence
from shiftproof.models import detector_with, load_with
from shiftproof.models.classifiers.boxes_as_classes import (
    NOTHING,
    scores_behind_nothing,
    scores_in_random_order,
    with_nothing,
)
from shiftproof.models.kind import model_kind
from shiftproof.models.loaded import LoadedClassifier, joined, model_ref, taken
from shiftproof.models.options import BOX_OPTIONS, PROPOSAL_OPTIONS, Fill, ModelOptions, ProposalOutput
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.randomness import rng_for
from shiftproof.runs.digests import digest_of
from shiftproof.types import Boxes, Classifier, Found, Image, Inputs, ObjectDetector, Outputs, fingerprint_of

STEP = 0.5
"""The longest way from one window to the next, as a share of its side."""

MARGIN = 1
"""Pixels between the windows and the edge of the image."""


@dataclass(frozen=True)
class Grid:
    """Which windows: their sizes, as shares of the image's shorter side, and their widths over their heights.

    The size is that of the square; other shapes have its area.
    """

    scales: tuple[float, ...] = (0.35, 0.5, 0.7)
    aspects: tuple[float, ...] = (0.5, 1.0, 2.0)

    name = "grid"

    def __post_init__(self) -> None:
        if not all(0 < scale < 1 for scale in self.scales) or not all(aspect > 0 for aspect in self.aspects):
            raise BadInput("windows have sizes between 0 and 1, shares of the image's shorter side, and aspects above 0")

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.scales, self.aspects, STEP, MARGIN)

    def __call__(self, images: Sequence[Image]) -> list[Boxes]:
        return [self.windows(*image.shape[:2]) for image in images]

    def windows(self, height: int, width: int) -> Boxes:
        """Windows over an image of this size, those nearest its middle first; shapes that do not fit are left out.

        >>> Grid(scales=(0.5,), aspects=(1.0,)).windows(100, 100)[:2].tolist()  # in the middle, then above it
        [[25.0, 25.0, 75.0, 75.0], [25.0, 1.0, 75.0, 51.0]]
        """
        windows = [
            (left, top, left + wide, top + high)
            for scale, aspect in itertools.product(self.scales, self.aspects)
            for wide, high in [_shape(scale * min(height, width), aspect)]
            for top, left in itertools.product(_starts(height, high), _starts(width, wide))
        ]
        boxes = np.array(windows, dtype=np.float64).reshape(-1, 4)
        return boxes[np.argsort(_from_middle(boxes, height, width).round(6), kind="stable")]


def _shape(side: float, aspect: float) -> tuple[float, float]:
    return side * math.sqrt(aspect), side / math.sqrt(aspect)


def _starts(length: int, side: float) -> list[float]:
    """Where windows begin along one axis: evenly spread from margin to margin, none where they do not fit."""
    room = length - 2 * MARGIN - side
    if room < 0:
        return []
    steps = 2 * math.ceil(room / (2 * STEP * side))  # an even number, so that one lies in the middle
    return [MARGIN + room * place / steps for place in range(steps + 1)] if steps else [float(MARGIN)]


def _from_middle(boxes: Boxes, height: int, width: int) -> NDArray[np.floating]:
    """How far the middle of each window lies from that of the image, in shares of its sides, (boxes,)."""
    across = (boxes[:, 0] + boxes[:, 2]) / (2 * width) - 0.5
    down = (boxes[:, 1] + boxes[:, 3]) / (2 * height) - 0.5
    return np.asarray(np.hypot(across, down))


MAX_PROPOSALS = 20
"""Maximum number of crops per image."""

MIN_SIDE = 10
"""Minimum side of a crop, in pixels."""

IMAGES_AT_ONCE = 8
"""Images held as bytes while their crops are classified."""

RULE = 1
"""Raised whenever the same models give other outputs."""

NOTES = {
    "classes": "each predicts one class, and the most confident of each class counts",
    "most-confident": "the most confident prediction stands",
}

AS_STORED = ImagePreprocessing(
    size=None, rule="none", value_range="0..255", mean=(0.0,), std=(1.0,), layout="nhwc", dtype="uint8"
)
"""Images as they are, in bytes: every crop is preprocessed by itself."""


class Proposer(Protocol):
    """A source of region proposals: parts of an image that may hold an object."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def __call__(self, images: Sequence[Image]) -> Sequence[Boxes]:
        """Boxes of each image, the likeliest first."""


@model_kind(goes_by_boxes=True)
def load_proposals(spec: str, options: ModelOptions) -> LoadedClassifier:
    """The classifier of this name, run on crops that an object detector or a grid proposes."""
    if options.proposals is None:
        raise BadInput(f"proposals:{spec} needs --proposals: a detector that proposes crops, as onnx:yolox.onnx, or grid")
    if options.proposal_output == "most-confident":
        options.refuse("fill", "fill_seed", what="the output for the most confident crop, which has all classes,")
    of_crops = {*PROPOSAL_OPTIONS, *BOX_OPTIONS, "name", "fill", "fill_seed"}
    unsaid: dict[str, Any] = {name: getattr(ModelOptions(), name) for name in of_crops}
    classifier = load_with(spec, dataclasses.replace(options, **unsaid))
    if options.proposals == Grid.name:
        options.refuse(*BOX_OPTIONS, what="a grid of proposals")
        detector: ObjectDetector | Grid = Grid()
    else:
        of_boxes: dict[str, Any] = {name: getattr(options, name) for name in BOX_OPTIONS}
        of_boxes |= {"trust": options.trust, "device": options.device, "threads": options.threads}
        detector = detector_with(options.proposals, ModelOptions(**of_boxes))
    return proposals(
        detector,
        classifier,
        max_proposals=MAX_PROPOSALS if options.max_proposals is None else options.max_proposals,
        min_side=MIN_SIDE if options.min_side is None else options.min_side,
        output=options.proposal_output or "classes",
        fill=options.fill or "random",
        seed=options.fill_seed,
        name=options.name,
    )


def proposals(
    detector: ObjectDetector | Grid | Literal["grid"],
    classifier: Classifier,
    *,
    max_proposals: int = MAX_PROPOSALS,
    min_side: int = MIN_SIDE,
    output: ProposalOutput = "classes",
    fill: Fill = "random",
    seed: int = 0,
    name: str | None = None,
) -> LoadedClassifier:
    """The classifier run on crops of each image instead of the image.

    Crops are the boxes of a detector, whatever their classes, or windows of a ``grid``. Boxes with a side under
    `min_side` pixels and those touching the edge of the image are removed; of the others the `max_proposals` with the
    highest scores are classified, of a grid those nearest the middle. Where none is left, the whole image is.

    Every crop predicts one class, and of each class its most confident crop counts: the ``classes`` stand in the order of
    these confidences, and those that no crop shows follow as of `boxes_as_classes`, at random or behind "nothing found".
    With `output` ``most-confident`` the outputs for the most confident crop stand for the image, so it has probabilities.
    """
    if classifier.gives == "scores":
        raise BadInput(f"{classifier.ref.name} gives no probabilities, so its crops cannot be ranked by confidence")
    if output not in get_args(ProposalOutput):
        raise UnknownName("output of proposals", output, get_args(ProposalOutput))
    if fill not in get_args(Fill):
        raise UnknownName("way to rank classes without a detection", fill, get_args(Fill))
    if max_proposals < 1 or min_side < 1:
        raise BadInput(f"at least one crop of at least one pixel is needed, got {max_proposals} of {min_side}")
    propose, by_class = _proposer(detector), output == "classes"
    preprocessing = dataclasses.replace(AS_STORED, decoder=classifier.preprocessing.decoder)
    chosen = ("classes", fill, seed if fill == "random" else None) if by_class else ()
    parts = fingerprint_of(classifier.ref.fingerprint, propose.fingerprint, max_proposals, min_side, RULE, *chosen)
    classes = classifier.classes
    if by_class and fill == "empty":
        if classes is None:
            raise BadInput(f"{classifier.ref.name} does not name its classes, so none can be called {NOTHING!r}")
        classes = with_nothing(classes)
    crops = _CropClassifier(propose, classifier, max_proposals, min_side)
    return LoadedClassifier(
        ref=model_ref(name or f"{classifier.ref.name} on crops by {propose.name}", parts, preprocessing),
        preprocessing=preprocessing,
        gives="scores" if by_class else classifier.gives,
        forward=ClassesOfCrops(crops, fill, seed) if by_class else MostConfidentCrop(crops),
        classes=classes,
        seen=classifier.seen,
        notes=(
            *classifier.notes,
            f"of each image up to {max_proposals} crops by {propose.name} are classified: {NOTES[output]}; "
            "the whole image where no crop is left",
        ),
        default_batch_size=IMAGES_AT_ONCE,
        has_features=classifier.has_features,
        # logits of the head are not what the classes of several crops are told by
        read_head=(lambda: None) if by_class else (lambda: classifier.head),
    )


def _proposer(detector: ObjectDetector | Grid | str) -> Proposer:
    if isinstance(detector, str):
        if detector != Grid.name:
            raise BadInput(f"crops are proposed by a detector or by 'grid', not by {detector!r}")
        return Grid()
    return detector if isinstance(detector, Grid) else BoxesOf(detector)


class _CropOutputs(NamedTuple):
    """Outputs of a classifier for every crop of an image, and its confidence in the class of each."""

    image: Image
    outputs: Outputs
    confidence: NDArray[np.floating]


@dataclass(frozen=True)
class _CropClassifier:
    """Runs a classifier on the crops that are proposed of images."""

    propose: Proposer
    classifier: Classifier
    max_proposals: int
    min_side: int

    def __call__(self, inputs: Inputs, features: bool) -> Iterator[_CropOutputs]:
        images = [np.asarray(image, np.uint8) for image in inputs]
        for image, boxes in zip(images, self.propose(images), strict=True):
            crops = crops_of(image, boxes, max_proposals=self.max_proposals, min_side=self.min_side)
            prepared = [self.classifier.preprocessing.from_image(crop) for crop in crops]
            alike = len({one.shape for one in prepared}) == 1
            batches = [np.stack(prepared)] if alike else [one[None] for one in prepared]
            outputs = joined([self.classifier(batch, features=features) for batch in batches])
            gives = self.classifier.gives
            yield _CropOutputs(image, outputs, top_confidence(to_top5(outputs.scores, gives), gives))


@dataclass(frozen=True)
class MostConfidentCrop:
    """The outputs of a classifier for the crop of each image that it is most confident of."""

    crops: _CropClassifier

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        return joined([taken(one.outputs, np.array([one.confidence.argmax()])) for one in self.crops(inputs, features)])


@dataclass(frozen=True)
class ClassesOfCrops:
    """The classes of the crops, each with the confidence of its best crop; features are those of the most confident."""

    crops: _CropClassifier
    fill: Fill
    seed: int

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        return joined([self._classes(one) for one in self.crops(inputs, features)])

    def _classes(self, one: _CropOutputs) -> Outputs:
        classes = one.outputs.scores.shape[1]
        found = classes_of_crops(one.outputs.scores.argmax(axis=1), one.confidence)
        if self.fill == "empty":
            scores = scores_behind_nothing(found, classes)
        else:
            rng = rng_for(digest_of(one.image.tobytes()), "proposals as classes", self.seed)
            scores = scores_in_random_order(found, classes, rng)
        return taken(one.outputs, np.array([one.confidence.argmax()]))._replace(scores=scores[None])


def classes_of_crops(classes: NDArray[np.integer], confidence: NDArray[np.floating]) -> Found:
    """The class of each crop once, by descending confidence, that of its best crop; of ties the earlier crop's.

    >>> found = classes_of_crops(np.array([2, 0, 0]), np.array([0.8, 0.9, 0.7]))
    >>> found.classes.tolist(), found.scores.round(3).tolist()
    ([0, 2], [0.9, 0.8])
    """
    order = np.argsort(-confidence, kind="stable")
    _, first = np.unique(classes[order], return_index=True)
    kept = order[np.sort(first)]
    scores = confidence[kept].astype(np.float32)
    for place in range(1, len(scores)):
        # stored scores are single floats, in which many high confidences are 1
        scores[place] = min(scores[place], np.nextafter(scores[place - 1], np.float32(-1)))
    return Found(np.zeros((len(kept), 4)), scores.astype(float), classes[kept])


def crops_of(image: Image, boxes: Boxes, *, max_proposals: int, min_side: int) -> list[Image]:
    """The first `max_proposals` boxes that are large enough and touch no edge, cut out; the whole image where there is none.

    >>> image = np.zeros((50, 50, 3), np.uint8)
    >>> boxes = np.array([[0, 5, 40, 45], [5, 5, 14, 45], [5, 5, 15.5, 45]])  # at the edge, too narrow, good
    >>> [crop.shape[:2] for crop in crops_of(image, boxes, max_proposals=20, min_side=10)]
    [(40, 11)]
    """
    height, width = image.shape[:2]
    exact = boxes.round(6)  # a box that ends on a pixel's edge does not touch the next one
    pixels = np.concatenate([np.floor(exact[:, :2]), np.ceil(exact[:, 2:])], axis=1).astype(int)
    large = (exact[:, 2:] - exact[:, :2] >= min_side).all(axis=1)
    inside = (pixels[:, :2] > 0).all(axis=1) & (pixels[:, 2:] < [width, height]).all(axis=1)
    crops = [image[top:bottom, left:right] for left, top, right, bottom in pixels[large & inside][:max_proposals].tolist()]
    return crops or [image]


@dataclass(frozen=True)
class BoxesOf:
    """What an object detector finds, by descending score."""

    detector: ObjectDetector

    @property
    def name(self) -> str:
        return self.detector.ref.name

    @property
    def fingerprint(self) -> str:
        return self.detector.ref.fingerprint

    def __call__(self, images: Sequence[Image]) -> list[Boxes]:
        inputs = np.stack([self.detector.preprocessing.from_image(image) for image in images])
        sizes = [(image.shape[0], image.shape[1]) for image in images]
        return [found.boxes for found in self.detector.detect(inputs, sizes)]
