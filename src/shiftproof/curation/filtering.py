"""Adversarial filtration: filter models, their predictions on one or ten crops, and the images that they leave."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.curation.funnel import Funnel
from shiftproof.datasets.classes import resolve, with_wnids
from shiftproof.datasets.label_spaces import LabelSpace, Scoring, choose_classes
from shiftproof.datasets.subsets import View, labelled_among
from shiftproof.errors import BadInput, listed
from shiftproof.files import load_csv
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.options import PredictionSettings
from shiftproof.runs.engines import Engine
from shiftproof.runs.load import digests_of, load_training, unprojected
from shiftproof.runs.predict import FollowUp, Progress, fill_conditions
from shiftproof.runs.records import StoredModel
from shiftproof.runs.store import Store
from shiftproof.runs.write import ranked
from shiftproof.types import (
    CLEAN,
    CROPS,
    Classes,
    Classifier,
    Condition,
    Dataset,
    Fact,
    Logits,
    ModelRef,
    Predictions,
    Run,
    Sample,
)

REASONS: Mapping[str, str] = {
    "rare": "known to few people",
    "dated": "obsolete",
    "coarse": "too broad",
    "backdrop": "background in most images",
    "overlapping": "images show another class as well",
}
"""Reasons for which ImageNet-A excludes classes (Hendrycks et al., 2021); a table may give others too."""


@dataclass(frozen=True)
class ClassChoice:
    """The classes that predictions are made among, and the reasons why others are excluded, by wnid or name."""

    classes: Classes
    left_out: Mapping[str, str] = field(default_factory=dict)

    def why_not(self, key: str) -> str:
        """Why a class is excluded."""
        return f"its class is {self.left_out[key]}" if key in self.left_out else "its class was not chosen"


def choose_some(
    classes: Classes, *, only: Sequence[str] | None = None, left_out: Mapping[str, str] | None = None
) -> ClassChoice:
    """A subset of a model's classes: `only` these, or all, except those `left_out` for a reason.

    >>> choose_some(Classes(("cat", "dog", "web site")), left_out={"web site": "overlapping"}).classes.names
    ('cat', 'dog')
    """
    known, reasons = with_wnids(classes), dict(left_out or {})
    wanted, unknown = resolve(known.keys if only is None else only, known)
    unwanted, strange = resolve(reasons, known)
    if strangers := unknown + strange:
        raise BadInput(f"{len(strangers)} of the classes named are none of the model's: {listed(strangers)}")
    columns = sorted(set(wanted.values()).difference(unwanted.values()))
    if len(columns) < 2:
        raise BadInput(f"{len(columns)} classes are chosen; at least two are needed")
    return ClassChoice(choose_classes(known, columns).classes, {known.keys[unwanted[key]]: reasons[key] for key in reasons})


def load_left_out(path: str | Path) -> dict[str, str]:
    """Excluded classes: a CSV file with the columns `wnid` and `reason`, such as one of the REASONS."""
    rows = load_csv(path, "a table of excluded classes")
    if not rows or not all(row.get("wnid") and row.get("reason") for row in rows):
        raise BadInput(
            f"{path} should be a table with the columns wnid and reason and both in every row; reasons are "
            f"{listed(REASONS)} or your own"
        )
    return {row["wnid"]: row["reason"] for row in rows}


OWN_VIEW, *OTHER_VIEWS = CROPS


def conditions_of(views: Sequence[str]) -> dict[str, Condition]:
    """The conditions under which crops are stored; the model's own crop alone is an ordinary prediction.

    With others, it is cut out together with them, so that the image is decoded once.
    """
    if tuple(views) == (OWN_VIEW,):
        return {OWN_VIEW: CLEAN}
    return {view: Condition("clean", picture=view) for view in views}


class ModelPrediction(NamedTuple):
    """A model's prediction on one crop of an image."""

    view: str
    answer: str  # key of the predicted class
    name: str  # of the predicted class
    confidence: float  # probability of the predicted class
    truth: float  # probability of the true class; nan where the model has no such class
    right: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.confidence:.0%})"


@dataclass(frozen=True)
class ModelPredictions:
    """A model's predictions by image id, in the order of the crops; or why there are none."""

    of: Mapping[str, tuple[ModelPrediction, ...]] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def __or__(self, more: ModelPredictions) -> ModelPredictions:
        """These, with further crops of some of the images appended."""
        joined = {image_id: (*opinions, *more.of.get(image_id, ())) for image_id, opinions in self.of.items()}
        return ModelPredictions(joined, {**self.missing, **more.missing})


@dataclass(frozen=True)
class FilterModels:
    """The filter models, the classes they predict among, and how they are run."""

    models: Sequence[Classifier]
    store: Store
    chosen: ClassChoice | None = None  # None: all classes of each model
    workers: int | None = None
    engine: Engine | None = None
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
                    f"{model.ref.name} outputs scores that are no probabilities; a filter model needs logits or "
                    "probabilities, as proposals: outputs with proposal_output=most-confident"
                )

    @property
    def refs(self) -> list[ModelRef]:
        return [model.ref for model in self.models]

    @property
    def classes(self) -> Classes | None:
        """The chosen classes; None for all."""
        return None if self.chosen is None else self.chosen.classes

    @property
    def told(self) -> dict[str, Fact]:
        """The number of chosen classes, for the provenance."""
        return {"classes": "all" if self.classes is None else len(self.classes)}

    def labelled(self, images: Dataset) -> Dataset:
        """The images with labels among the chosen classes only."""
        return images if self.classes is None else labelled_among(images, self.classes)

    def ten_opinions(self, model: Classifier, images: Dataset) -> ModelPredictions:
        """A model's prediction on its own crop and, where it is misclassified, on the nine others."""
        conditions = [*conditions_of(OTHER_VIEWS).values()]
        own = self.opinions(model, images, follow_up=FollowUp(conditions, self._misclassified(model, images)))
        wrong = [sample for sample in images.samples if sample.id in own.of and not own.of[sample.id][0].right]
        return own | self.opinions(model, View(images, images.classes, wrong), OTHER_VIEWS)

    def opinions(
        self,
        model: Classifier,
        images: Dataset,
        views: Sequence[str] = (OWN_VIEW,),
        follow_up: FollowUp | None = None,
    ) -> ModelPredictions:
        """A model's predictions on these crops of each image; stored ones are not computed again."""
        if not images.samples:
            return ModelPredictions()
        conditions, ids = conditions_of(views), [sample.id for sample in images.samples]
        asked = dict.fromkeys(conditions.values(), ids)
        fill_conditions(
            model,
            images,
            asked,
            store=self.store,
            engine=self.engine,
            progress=self.progress,
            settings=PredictionSettings(keep="logits", workers=self.workers),
            follow_up=follow_up,
        )
        digests, stored = digests_of(images, self.store), self.store.model(model.ref)
        found: dict[str, tuple[ModelPrediction, ...]] = {}
        missing: dict[str, str] = {}
        for view, condition in conditions.items():
            run = Run(model.ref, images.ref, condition)
            # block by block: the logits of all images of a large dataset would not fit in memory
            said = load_training(
                run, images, store=self.store, keep="logits", scoring=self._scoring, digests=digests, model=stored
            )
            missing |= {image.id: image.reason for image in said.skipped_images}
            for block in said.blocks():
                for image_id, opinion in zip(block.ids, _opinions(block, view), strict=True):
                    found[image_id] = (*found.get(image_id, ()), opinion)
        return ModelPredictions({image_id: some for image_id, some in found.items() if image_id not in missing}, missing)

    def shown(self, images: Dataset) -> dict[str, dict[str, str]]:
        """The prediction of each model on its own crop, by image id, as reviewers may see it on request."""
        found: dict[str, dict[str, str]] = {}
        for model in self.models:
            for image_id, (opinion, *_) in self.opinions(model, self.labelled(images)).of.items():
                found.setdefault(image_id, {})[model.ref.name] = str(opinion)
        return found

    def _misclassified(self, model: Classifier, images: Dataset) -> Callable[[Sequence[str], Logits], list[Sample]]:
        """Tells by their logits which images the model misclassifies."""
        samples = {sample.id: sample for sample in images.samples}

        @cache
        def described(outputs: int) -> tuple[StoredModel, LabelSpace | None]:
            space = None if images.classes is None else self._scoring.space(images.classes, model.classes, outputs=outputs)
            return StoredModel.of(model, outputs), space

        def misclassified(ids: Sequence[str], logits: Logits) -> list[Sample]:
            some, (stored, space) = [samples[image_id] for image_id in ids], described(logits.shape[1])
            arrays = {"logits": logits, **ranked(logits, model.gives)}
            said = unprojected(some, arrays, stored, model.gives, "logits")
            right = _right(said if space is None else space.project(said)).tolist()
            return [sample for sample, is_right in zip(some, right, strict=True) if not is_right]

        return misclassified

    @property
    def _scoring(self) -> Scoring:
        return Scoring(unmatched="unlabelled") if self.classes is None else Scoring("subset")


def _opinions(said: Predictions, view: str) -> Iterator[ModelPrediction]:
    if said.classes is None:
        raise BadInput("a filter model should name its classes; --filter MODEL?classes=FILE names them")
    keys, names = said.classes.keys, said.classes.names
    shares = to_probabilities(said.need_logits(), said.gives)
    first = said.top5.classes[:, 0]
    confidence = np.take_along_axis(shares, first[:, None], axis=1)[:, 0]
    of_labels = np.take_along_axis(shares, np.maximum(said.labels, 0), axis=1)
    truth = np.where(said.labelled, np.where(said.labels >= 0, of_labels, 0).max(axis=1), np.nan)
    right = _right(said)
    for answer, sure, true_share, is_right in zip(
        first.tolist(), confidence.tolist(), truth.tolist(), right.tolist(), strict=True
    ):
        yield ModelPrediction(view, keys[answer], names[answer], sure, true_share, is_right)


def _right(said: Predictions) -> NDArray[np.bool_]:
    """Which images are classified correctly."""
    return np.asarray((said.labels == said.top5.classes[:, :1]).any(axis=1))


Choice: TypeAlias = Funnel[Sample, str]


@dataclass(frozen=True)
class Filtered:
    """The images left by the filter models, in review order, with what is known of each by its id."""

    choice: Choice
    models: Sequence[ModelRef]
    limits: Mapping[str, Fact]  # thresholds, by name
    classes: Classes
    class_of: Mapping[str, str]  # class key
    opinions: Mapping[str, Mapping[str, ModelPrediction]]  # by model name and image id, on the model's own crop
    facts: Mapping[str, Mapping[str, Fact]]
    examples: Mapping[str, Sequence[str]] = field(
        default_factory=dict
    )  # correctly classified images of high confidence, by class key

    def step(self, name: str, reasons: Mapping[str, str]) -> Filtered:
        """The same after one more step, which removes images for these reasons, by id."""
        return dataclasses.replace(self, choice=self.choice.step(name, lambda sample: reasons.get(sample.id)))

    def at_most(self, most: int | None, what: str, group_of: Callable[[str], Hashable]) -> Filtered:
        """The same with the first `most` images of each group; all for None."""
        if most is None:
            return self
        before: Counter[Hashable] = Counter()
        reasons = {}
        for sample in self.choice.left:
            group = group_of(sample.id)
            before[group] += 1
            if before[group] > most:
                reasons[sample.id] = f"{most} of its {what} come before it"
        return self.step(f"at most {most} of each {what}", reasons)

    def shown(self, image_id: str) -> dict[str, str]:
        """The prediction of each model on an image."""
        return {model: str(said[image_id]) for model, said in self.opinions.items() if image_id in said}

    def table(self) -> list[tuple[str, ...]]:
        """A row for every image: id, class, outcome, reason, and the predictions of the models."""
        rows = [
            (one.id, self.class_of[one.id], step, reason or "", *self._answers(one.id))
            for one, step, reason in self.choice.outcomes()
        ]
        return [("id", "class", "step", "reason", *self.opinions), *sorted(rows)]

    def _answers(self, image_id: str) -> list[str]:
        shown = self.shown(image_id)
        return [shown.get(model, "") for model in self.opinions]
