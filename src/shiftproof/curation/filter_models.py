"""Models whose opinion decides which images become a test set, asked about one view of an image or about ten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from shiftproof.curation.class_choice import ClassChoice
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.scoring import Scoring
from shiftproof.image_sets.views import labelled_among
from shiftproof.loading import digests_of, load_training
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.prediction import Progress, fill_conditions
from shiftproof.store import Store
from shiftproof.types import CLEAN, CROPS, Classes, Classifier, Condition, Fact, ImageSet, ModelRef, Predictions, Run

OWN_VIEW, *OTHER_VIEWS = CROPS


def conditions_of(views: Sequence[str]) -> dict[str, Condition]:
    """Under which conditions these views are stored; the model's own view alone is an ordinary prediction.

    With others beside it, it is cut out of the image together with them, which is then opened once.
    """
    if tuple(views) == (OWN_VIEW,):
        return {OWN_VIEW: CLEAN}
    return {view: Condition("clean", picture=view) for view in views}


class Opinion(NamedTuple):
    """What a model makes of one view of an image."""

    view: str
    answer: str  # key of the class it names
    name: str  # that class as people call it
    confidence: float  # the share it gives that class
    truth: float  # the share it gives the true class; nan where it has no such class
    right: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.confidence:.0%})"


@dataclass(frozen=True)
class Opinions:
    """A model's opinions by the ids of the images, in the order of the views; or why it has none."""

    of: Mapping[str, tuple[Opinion, ...]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, more: Opinions) -> Opinions:
        """These, with more views of some of the images behind them."""
        joined = {image_id: (*opinions, *more.of.get(image_id, ())) for image_id, opinions in self.of.items()}
        return Opinions(joined, {**self.missing, **more.missing})


@dataclass(frozen=True)
class FilterModels:
    """Which models, the classes that their answers and shares are taken over, and how they are asked."""

    models: Sequence[Classifier]
    store: Store
    chosen: ClassChoice | None = None  # None: all classes that each model has
    workers: int | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not self.models:
            raise BadInput("at least one filter model should be named")
        names = [model.ref.name for model in self.models]
        if len(set(names)) < len(names):
            raise BadInput(f"every filter model needs a name of its own, got {listed(names)}")
        for model in self.models:
            if model.gives == "scores":
                raise BadInput(
                    f"{model.ref.name} gives scores, of which no class has a share; a filter model gives logits or "
                    "probabilities, as proposals: does with proposal_answer=surest"
                )

    @property
    def refs(self) -> list[ModelRef]:
        return [model.ref for model in self.models]

    @property
    def classes(self) -> Classes | None:
        """The classes that were chosen; None for all."""
        return None if self.chosen is None else self.chosen.classes

    @property
    def told(self) -> dict[str, Fact]:
        """How many classes were chosen, for who asks how a set came about."""
        return {"classes": "all" if self.classes is None else len(self.classes)}

    def labelled(self, images: ImageSet) -> ImageSet:
        """The images with labels among the chosen classes alone."""
        return images if self.classes is None else labelled_among(images, self.classes)

    def opinions(self, model: Classifier, images: ImageSet, views: Sequence[str] = (OWN_VIEW,)) -> Opinions:
        """What a model makes of these views of each image; what is stored is not asked again."""
        if not images.samples:
            return Opinions()
        conditions, ids = conditions_of(views), [sample.id for sample in images.samples]
        asked = dict.fromkeys(conditions.values(), ids)
        fill_conditions(model, images, asked, store=self.store, keep="logits", workers=self.workers, progress=self.progress)
        digests = digests_of(images, self.store)
        found: dict[str, tuple[Opinion, ...]] = {}
        missing: dict[str, str] = {}
        for view, condition in conditions.items():
            run = Run(model.ref, images.ref, condition)
            # block by block: the logits of all images of a large set would not fit in memory
            said = load_training(run, images, store=self.store, keep="logits", scoring=self._scoring, digests=digests)
            missing |= {image.id: image.reason for image in said.set_aside}
            for block in said.blocks():
                for image_id, opinion in zip(block.ids, _opinions(block, view), strict=True):
                    found[image_id] = (*found.get(image_id, ()), opinion)
        return Opinions({image_id: some for image_id, some in found.items() if image_id not in missing}, missing)

    def shown(self, images: ImageSet) -> dict[str, dict[str, str]]:
        """What each model takes an image for in its own view, by the id of the image, as reviewers may call it up."""
        found: dict[str, dict[str, str]] = {}
        for model in self.models:
            for image_id, (opinion, *_) in self.opinions(model, self.labelled(images)).of.items():
                found.setdefault(image_id, {})[model.ref.name] = str(opinion)
        return found

    @property
    def _scoring(self) -> Scoring:
        return Scoring(unmatched="unlabelled") if self.classes is None else Scoring("subset")


def _opinions(said: Predictions, view: str) -> Iterator[Opinion]:
    if said.classes is None:
        raise BadInput("a filter model should name its classes; --filter MODEL?classes=FILE names them")
    keys, names = said.classes.keys, said.classes.names
    shares = to_probabilities(said.need_logits(), said.gives)
    first = said.top5.classes[:, 0]
    confidence = np.take_along_axis(shares, first[:, None], axis=1)[:, 0]
    of_labels = np.take_along_axis(shares, np.maximum(said.labels, 0), axis=1)
    truth = np.where(said.labelled, np.where(said.labels >= 0, of_labels, 0).max(axis=1), np.nan)
    right = (said.labels == first[:, None]).any(axis=1)
    for answer, sure, true_share, is_right in zip(
        first.tolist(), confidence.tolist(), truth.tolist(), right.tolist(), strict=True
    ):
        yield Opinion(view, keys[answer], names[answer], sure, true_share, is_right)
