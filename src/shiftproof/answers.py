"""How each kind of model is asked, and what of its answers goes into the rows of the store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.top5 import to_top5
from shiftproof.models.batches import joined, taken
from shiftproof.parallel import Batch
from shiftproof.stored_boxes import PER_BOX, PER_IMAGE
from shiftproof.types import Classifier, Found, Gives, Inputs, Keep, ObjectDetector, Outputs, Precision

Model: TypeAlias = Classifier | ObjectDetector
Sizes: TypeAlias = Sequence[tuple[int, int]]
"""Height and width of each image before it was prepared."""


class Answered(Protocol):
    """A model's answers to one batch."""

    @property
    def columns(self) -> int | None:
        """How many classes were scored; None where the answers are boxes."""

    def sound(self) -> NDArray[np.bool_]:
        """Which images were answered with numbers only, (images,)."""

    def arrays(self, places: NDArray[np.integer]) -> dict[str, NDArray[Any]]:
        """What is stored of the images at these places of the batch."""


class Asker(Protocol):
    """Whoever gives a batch to a model."""

    def __call__(self, batch: Batch, sizes: Sizes) -> Answered: ...


def asker_of(model: Model, keep: Keep, precision: Precision) -> Asker:
    """How this model is asked for rows that hold `keep`; NotKept where it cannot give them."""
    if isinstance(model, ObjectDetector):
        if keep != "boxes":
            raise NotKept(
                f"{model.ref.name} answers with boxes, which have no {keep}; as a classifier it is named boxes:MODEL"
            )
        return AskForBoxes(model)
    if keep == "boxes":
        raise NotKept(f"{model.ref.name} answers with scores of classes, not with boxes; name an object detector")
    return AskForClasses(model, keep, precision)


@dataclass(frozen=True)
class AskForClasses:
    """Asks a classifier for scores, and for features where they are kept."""

    model: Classifier
    keep: Keep
    precision: Precision

    def __call__(self, batch: Batch, sizes: Sizes) -> ClassAnswers:  # noqa: ARG002 an Asker
        features = self.keep == "features"
        groups = places_by_shape(batch)
        parts = [self.model(_stacked(batch, places), features=features) for places in groups]
        outputs = parts[0] if len(parts) == 1 else taken(joined(parts), np.argsort(np.concatenate(groups)))
        if features and outputs.features is None:
            raise NotKept(f"{self.model.ref.name} has no features to keep; predict with --keep logits")
        return ClassAnswers(outputs, self.model.gives, self.keep, self.precision)


@dataclass(frozen=True)
class ClassAnswers:
    """Scores of classes as they are kept."""

    outputs: Outputs
    gives: Gives
    keep: Keep
    precision: Precision

    @property
    def columns(self) -> int:
        return int(self.outputs.scores.shape[1])

    def sound(self) -> NDArray[np.bool_]:
        return self._sound

    def arrays(self, places: NDArray[np.integer]) -> dict[str, NDArray[Any]]:
        return {name: rows[places] for name, rows in self._rows.items()}

    # both are found once: rows of a batch that belong to many conditions are stored one by one

    @cached_property
    def _sound(self) -> NDArray[np.bool_]:
        scores, extra = self.outputs.scores, self.outputs.extra
        told = scores if extra is None else np.concatenate([scores, extra], axis=1)
        return np.asarray(~np.isnan(told).any(axis=1))

    @cached_property
    def _rows(self) -> dict[str, NDArray[Any]]:
        answers = self.outputs
        scores = answers.scores if self._sound.all() else np.where(self._sound[:, None], answers.scores, 0)
        top5 = to_top5(scores, self.gives)
        rows: dict[str, NDArray[Any]] = {
            "top5_classes": top5.classes.astype(np.int32),
            "top5_scores": top5.scores.astype(np.float32),
            "log_total": top5.log_total.astype(np.float32),
        }
        if self.keep in ("logits", "features"):
            rows["logits"] = _stored_as(scores, self.precision)
        if self.keep == "features" and answers.features is not None:
            rows["features"] = _stored_as(answers.features, self.precision)
        if answers.extra is not None:
            rows["extra"] = answers.extra.astype(np.float32)  # few numbers, so whole ones whatever is kept of the others
        return rows


@dataclass(frozen=True)
class AskForBoxes:
    """Asks an object detector, which must know how large the images were."""

    model: ObjectDetector

    def __call__(self, batch: Batch, sizes: Sizes) -> BoxAnswers:
        found: dict[int, Found] = {}
        for places in places_by_shape(batch):
            answers = self.model.detect(_stacked(batch, places), [sizes[place] for place in places])
            found |= zip(places, answers, strict=True)
        return BoxAnswers([found[place] for place in range(len(sizes))], sizes)


@dataclass(frozen=True)
class BoxAnswers:
    """Boxes of images of known sizes."""

    found: Sequence[Found]
    sizes: Sizes

    @property
    def columns(self) -> None:
        return None

    def sound(self) -> NDArray[np.bool_]:
        return np.array([bool(np.isfinite(one.boxes).all() and np.isfinite(one.scores).all()) for one in self.found], bool)

    def arrays(self, places: NDArray[np.integer]) -> dict[str, NDArray[Any]]:
        found = [self.found[place] for place in places.tolist()]
        of_images = (
            np.array([self.sizes[place] for place in places.tolist()], np.int32).reshape(-1, 2),
            np.array([len(one.scores) for one in found], np.int32),
        )
        of_boxes = (
            np.concatenate([np.zeros((0, 4)), *(one.boxes for one in found)]).astype(np.float32),
            np.concatenate([np.zeros(0), *(one.scores for one in found)]).astype(np.float32),
            np.concatenate([np.zeros(0), *(one.classes for one in found)]).astype(np.int32),
        )
        return dict(zip((*PER_IMAGE, *PER_BOX), (*of_images, *of_boxes), strict=True))


def places_by_shape(batch: Batch) -> list[list[int]]:
    """Images that can be asked together: all of them, or those of one shape after the other."""
    if isinstance(batch, np.ndarray):
        return [list(range(len(batch)))]
    groups: dict[tuple[int, ...], list[int]] = {}
    for place, array in enumerate(batch):
        groups.setdefault(array.shape, []).append(place)
    return list(groups.values())


def _stacked(batch: Batch, places: Sequence[int]) -> Inputs:
    return batch if isinstance(batch, np.ndarray) else np.stack([batch[place] for place in places])


def _stored_as(values: NDArray[np.floating], precision: Precision) -> NDArray[np.floating]:
    """The values as they go to disk; BadInput where half precision has no room for them."""
    with np.errstate(over="ignore"):  # told below
        stored = values.astype(np.dtype(precision))
    if (np.isinf(stored) & np.isfinite(values)).any():
        largest = np.abs(values[np.isfinite(values)]).max()
        raise BadInput(f"values up to {largest:,.0f} do not fit into half precision, which ends at 65,504; leave out --half")
    return stored
