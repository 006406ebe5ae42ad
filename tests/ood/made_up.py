"""Predictions of a made-up network whose classes are well apart, on images of its classes and on foreign ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.accuracy import to_top5
from shiftproof.types import Features, Head, Predictions

CLASSES, FEATURES = 12, 48


def a_head(seed: int = 0, *, classes: int = CLASSES, features: int = FEATURES) -> Head:
    """Each class has some features, which its weights ask for and others share."""
    generator = np.random.default_rng(seed)
    weights = (_typical(classes, features) - 0.25) / 2 + 0.05 * generator.normal(size=(classes, features))
    return Head(weights.astype(np.float32), (0.1 * generator.normal(size=classes)).astype(np.float32))


def predictions_of(
    features: Features,
    head: Head,
    labels: NDArray[np.integer] | None = None,
    extra: NDArray[np.floating] | None = None,
) -> Predictions:
    """What a network with these features and this head says; without labels the images are unlabelled."""
    logits = features @ head.weights.T + head.bias
    return Predictions(
        ids=tuple(f"{number}.png" for number in range(len(features))),
        labels=np.full((len(features), 1), -1) if labels is None else labels.reshape(len(features), -1),
        gives="logits",
        top5=to_top5(logits, "logits"),
        logits=logits,
        features=features,
        head=head,
        extra=extra,
    )


def inside(images: int = 240, seed: int = 1, *, head: Head | None = None, wrong: float = 0.1) -> Predictions:
    """Images of every class in turn, a share of them with a label the model does not give."""
    head = head or a_head()
    classes, width = head.weights.shape
    generator = np.random.default_rng(seed)
    of_class = np.arange(images) % classes
    features = np.maximum(4 * _typical(classes, width)[of_class] + generator.normal(0, 0.5, (images, width)), 0).astype(
        np.float32
    )
    labels = np.where(generator.random(images) < wrong, (of_class + 1) % classes, of_class)
    return predictions_of(features, head, labels)


def outside(images: int = 60, seed: int = 2, *, head: Head | None = None) -> Predictions:
    """Images that have a little of everything, and less of it."""
    head = head or a_head()
    generator = np.random.default_rng(seed)
    features = np.maximum(generator.normal(0.5, 0.9, (images, head.weights.shape[1])), 0).astype(np.float32)
    return predictions_of(features, head)


def _typical(classes: int, features: int) -> Features:
    """A quarter of the features for every class, (classes, features)."""
    generator = np.random.default_rng(9)
    return (generator.permuted(np.tile(np.arange(features), (classes, 1)), axis=1) < features // 4).astype(np.float32)


@dataclass(frozen=True)
class InBlocks:
    """Training images that come some at a time."""

    whole: Predictions
    size: int

    @property
    def head(self) -> Head | None:
        return self.whole.head

    def __len__(self) -> int:
        return len(self.whole)

    def blocks(self) -> Iterator[Predictions]:
        for start in range(0, len(self.whole), self.size):
            yield self.whole.take(np.arange(start, min(start + self.size, len(self.whole))))


def with_logits(logits: NDArray[np.floating], labels: NDArray[np.integer] | None = None) -> Predictions:
    """Images of which only these logits are known."""
    return dataclasses.replace(
        predictions_of(np.zeros((len(logits), 1)), Head(np.zeros((logits.shape[1], 1)), np.zeros(logits.shape[1])), labels),
        logits=logits,
        top5=to_top5(logits, "logits"),
        features=None,
        head=None,
    )
