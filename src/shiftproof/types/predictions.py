"""Runs and what a classifier predicted in them, row by row."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.types.images import CLEAN, Classes, Clusters, Condition, DatasetRef, Fact, Labels, SkippedImage
from shiftproof.types.models import Features, Gives, Head, Logits, ModelRef
from shiftproof.types.shown import counted, in_a_line

OODScores: TypeAlias = NDArray[np.floating]
"""OOD score of each image, (images,); higher is more out-of-distribution, for every detector."""

Keep = Literal["top5", "logits", "features", "boxes"]

Scored = Literal["full", "subset"]
"""Label space of the argmax: all classes of the model, or only those of the dataset."""

KEEPS: tuple[Keep, ...] = ("top5", "logits", "features")
"""What rows may hold, poorer first: each satisfies those before it. Boxes stand apart."""


def richest(keeps: Iterable[Keep]) -> Keep:
    """The one that satisfies all of these; boxes go with nothing else.

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


@dataclass(frozen=True)
class Run:
    """A request: this model, on this dataset, under this condition."""

    model: ModelRef
    dataset: DatasetRef
    condition: Condition = CLEAN

    def about(self) -> dict[str, str | int]:
        """What a number taken from this run is about."""
        about: dict[str, str | int] = {"model": self.model.name, "dataset": self.dataset.name}
        if self.condition != CLEAN:
            about |= {"condition": self.condition.name, "severity": self.condition.severity}
        return about

    def convention(self) -> dict[str, str]:
        """How the pixels came to the model."""
        condition = self.condition
        own_rule = condition.picture == "image"
        picture = "the original image, preprocessed for the model" if own_rule else condition.picture
        told = {"picture": picture, "output": condition.output}
        if condition.edition is not None:
            told |= {"edition": condition.edition, "seed": str(condition.seed)}
        if condition.scale_severity:
            told["severity parameters"] = "scaled to the image size"
        elif condition.edition not in (None, condition.picture):
            told["severity parameters"] = "those of the edition, not scaled to this image size"
        if condition.frost is not None:
            told["frost pictures"] = condition.frost.digest
        return told


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
    """The predictions of one model on one dataset under one condition, row by row in its order.

    Labels and columns are places in `classes`. Images that could not be read have no row; they are in `skipped_images`.
    """

    ids: Sequence[str]  # a tuple, or a column of texts where there are many
    labels: Labels
    gives: Gives
    top5: Top5
    classes: Classes | None = None
    logits: Logits | None = None
    features: Features | None = None
    head: Head | None = None
    extra: NDArray[np.floating] | None = None  # (images, numbers): a further output of the model, chosen by name
    facts: Mapping[str, Sequence[Fact]] = field(default_factory=dict)
    skipped_images: tuple[SkippedImage, ...] = ()
    convention: Mapping[str, str] = field(default_factory=dict)
    grouped: Clusters | None = None  # None: every image is a cluster of its own

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

    def __repr__(self) -> str:
        scores = "top 5" if self.logits is None else f"{self.gives} of {counted(self.logits.shape[1], 'class', 'classes')}"
        kept = None if self.features is None else counted(self.features.shape[1], "feature")
        skipped = f"{len(self.skipped_images):,} skipped" if self.skipped_images else None
        return in_a_line(self, counted(len(self), "image"), f"{int(self.labelled.sum()):,} labelled", scores, kept, skipped)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def clusters(self) -> Clusters:
        """Which images are one cluster."""
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
            raise NotKept("the model's last linear layer could not be read, or class groups are merged")
        return self.head

    def blocks(self) -> Iterator[Predictions]:
        """These predictions as one block: what is fitted on blocks can be fitted on them."""
        yield self

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Predictions:
        """The same predictions for some of the images."""
        places = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return dataclasses.replace(
            self,
            ids=tuple(self.ids[place] for place in places.tolist()),
            labels=self.labels[places],
            top5=Top5(self.top5.classes[places], self.top5.scores[places], self.top5.log_total[places]),
            logits=None if self.logits is None else self.logits[places],
            features=None if self.features is None else self.features[places],
            extra=None if self.extra is None else self.extra[places],
            facts={name: tuple(values[place] for place in places.tolist()) for name, values in self.facts.items()},
            grouped=None if self.grouped is None else self.grouped.take(places),
        )


class Training(Protocol):
    """Predictions on the training images, block by block, any number of times; `Predictions` are one block.

    A million rows of features need not be in memory together, so detectors are fitted in one pass or a few.
    """

    @property
    def head(self) -> Head | None: ...

    def __len__(self) -> int: ...

    def blocks(self) -> Iterator[Predictions]: ...
