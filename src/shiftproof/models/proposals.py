"""A classifier that looks at likely objects one by one: the crop it is surest of speaks for the image (Li et al., 2021)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from shiftproof.errors import BadInput
from shiftproof.metrics.calibration import top_confidence
from shiftproof.metrics.top5 import to_top5
from shiftproof.models import detector_with, load_with
from shiftproof.models.batches import joined, taken
from shiftproof.models.loaded import LoadedClassifier, model_ref
from shiftproof.models.options import OF_BOXES, ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.sliding_windows import Grid
from shiftproof.types import Boxes, Classifier, Image, Inputs, ObjectDetector, Outputs, fingerprint_of

MOST = 20
"""Crops of an image that are looked at."""

LEAST_SIDE = 10
"""Pixels below which a crop is too narrow or too flat to be looked at."""

IMAGES_AT_ONCE = 8
"""Images held as bytes while their crops are asked."""

RULE = 1
"""Raised whenever the same models give other answers."""

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
    options.refuse("fill", "fill_seed", what=f"proposals:{spec}")
    if options.proposals is None:
        raise BadInput(f"proposals:{spec} needs --proposals: a detector that proposes crops, as onnx:yolox.onnx, or grid")
    not_its_own: dict[str, Any] = dict.fromkeys(["name", "proposals", *OF_BOXES])
    classifier = load_with(spec, dataclasses.replace(options, **not_its_own))
    if options.proposals == Grid.name:
        options.refuse(*OF_BOXES, what="a grid of proposals")
        return proposals(Grid(), classifier, name=options.name)
    of_boxes = {name: getattr(options, name) for name in OF_BOXES}
    detector = detector_with(options.proposals, ModelOptions(device=options.device, threads=options.threads, **of_boxes))
    return proposals(detector, classifier, name=options.name)


def proposals(
    detector: ObjectDetector | Grid | Literal["grid"],
    classifier: Classifier,
    *,
    most: int = MOST,
    least_side: int = LEAST_SIDE,
    name: str | None = None,
) -> LoadedClassifier:
    """The classifier asked about crops of each image instead of the image: its answer to the crop it is surest of.

    Crops are the boxes of a detector, whatever their classes, or windows of a ``grid``. Boxes with a side under
    `least_side` pixels and those touching the edge of the image go; of the others the `most` with the highest scores are
    looked at, of a grid those nearest the middle. Where none is left, the whole image is.
    """
    if classifier.gives == "scores":
        raise BadInput(f"{classifier.ref.name} gives scores that are no probabilities, so no crop can be called the surest")
    propose = _proposer(detector)
    preparation = dataclasses.replace(AS_STORED, decoder=classifier.preparation.decoder)
    parts = fingerprint_of(classifier.ref.fingerprint, propose.fingerprint, most, least_side, RULE)
    return LoadedClassifier(
        ref=model_ref(name or f"{classifier.ref.name} on crops by {propose.name}", parts, preparation),
        preparation=preparation,
        gives=classifier.gives,
        answer=SurestCrop(propose, classifier, most, least_side),
        classes=classifier.classes,
        seen=classifier.seen,
        notes=(
            *getattr(classifier, "notes", ()),
            f"of each image up to {most} crops by {propose.name} are asked and the surest answer stands; "
            "the whole image where no crop is left",
        ),
        good_batch=IMAGES_AT_ONCE,
        has_features=getattr(classifier, "has_features", True),
        read_head=lambda: classifier.head,
    )


def _proposer(detector: ObjectDetector | Grid | str) -> Proposer:
    if isinstance(detector, str):
        if detector != Grid.name:
            raise BadInput(f"crops are proposed by a detector or by 'grid', not by {detector!r}")
        return Grid()
    return detector if isinstance(detector, Grid) else BoxesOf(detector)


@dataclass(frozen=True)
class SurestCrop:
    """Answers images with what a classifier says of that crop of each which it is surest of."""

    propose: Proposer
    classifier: Classifier
    most: int
    least_side: int

    def __call__(self, inputs: Inputs, features: bool) -> Outputs:
        images = [np.asarray(image, np.uint8) for image in inputs]
        proposed = self.propose(images)
        return joined([self._surest(image, boxes, features) for image, boxes in zip(images, proposed, strict=True)])

    def _surest(self, image: Image, boxes: Boxes, features: bool) -> Outputs:
        crops = crops_of(image, boxes, most=self.most, least_side=self.least_side)
        prepared = [self.classifier.preparation.from_image(crop) for crop in crops]
        alike = len({one.shape for one in prepared}) == 1
        batches = [np.stack(prepared)] if alike else [one[None] for one in prepared]
        answers = joined([self.classifier(batch, features=features) for batch in batches])
        sureness = top_confidence(to_top5(answers.scores, self.classifier.gives), self.classifier.gives)
        return taken(answers, np.array([sureness.argmax()]))


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
