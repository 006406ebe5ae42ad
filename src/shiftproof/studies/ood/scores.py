"""OOD scores of every image of a study by every OOD detector, for one model."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal, TypeAlias, TypedDict, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept, listed
from shiftproof.metrics import is_correct
from shiftproof.metrics.delong import auroc_interval
from shiftproof.metrics.roc import Area, auroc
from shiftproof.metrics.two_sample import bootstrap_auroc_interval
from shiftproof.ood import ReadyDetector, as_one, parameters_of, ready
from shiftproof.ood.shared import SharedPredictions, SharedTraining
from shiftproof.studies import evidence
from shiftproof.types import (
    CLEAN,
    About,
    Caution,
    Clusters,
    Condition,
    DatasetRef,
    Fact,
    Measurement,
    ModelRef,
    Note,
    OODScores,
    Predictions,
    Run,
    Skipped,
    Training,
    joined_clusters,
)

AurocInterval: TypeAlias = Literal["delong", "bootstrap"]


class BySide(TypedDict):
    """Clusters as metrics of two sides take them."""

    in_clusters: NDArray[np.intp] | None
    out_clusters: NDArray[np.intp] | None


@dataclass(frozen=True)
class Cases:
    """The cases behind two sides in one numbering: a photo and its blurred copy may stand on both."""

    joint: Clusters  # of the ID images, and behind them of the OOD ones
    id_images: int  # how many of them are ID

    @classmethod
    def of(cls, id_set: Clusters, ood_set: Clusters) -> Cases:
        return cls(joined_clusters([id_set, ood_set]), len(id_set))

    @property
    def count(self) -> int:
        return self.joint.count

    @property
    def by_side(self) -> BySide:
        """None where every image is a case of its own, on either side."""
        numbers = self.joint.numbers
        if numbers is None:
            return {"in_clusters": None, "out_clusters": None}
        return {"in_clusters": numbers[: self.id_images], "out_clusters": numbers[self.id_images :]}

    def number(
        self,
        metric: str,
        value: float,
        method: str,
        ends: tuple[float, float] | None,
        about: About,
        convention: Mapping[str, str],
    ) -> Measurement:
        """A number of both sides, with its interval by cluster where images are not cases of their own."""
        subject = evidence.Subject(about, convention, self.joint)
        return subject.number(metric, value, evidence.interval_by(method, self.joint, ends))


INTERVALS = {
    "delong": (auroc_interval, "Wilson with DeLong's variance"),
    "bootstrap": (bootstrap_auroc_interval, "bootstrap over the images of either side"),
}


@dataclass(frozen=True)
class Choices:
    """How the numbers of one study are made."""

    tpr: float = 0.95  # share to be found when false alarms are counted
    risk: float = 0.05  # share of answers that may be wrong
    rejected: float = 0.75  # share of the OOD images that may not pass
    area: Area = "average-precision"
    interval: AurocInterval = "delong"

    def __post_init__(self) -> None:
        for name in ("tpr", "risk", "rejected"):
            if not 0 < getattr(self, name) < 1:
                raise BadInput(f"{name} is a share between 0 and 1, such as 0.75; got {getattr(self, name)}")
        for name, chosen, known in (("area", self.area, Area), ("interval", self.interval, AurocInterval)):
            if chosen not in get_args(known):
                raise BadInput(f"{name} should be {' or '.join(get_args(known))}, got {chosen!r}")

    def auroc(
        self,
        metric: str,
        id_set: OODScores,
        ood_set: OODScores,
        about: About,
        convention: Mapping[str, str],
        cases: Cases,
    ) -> Measurement:
        """AUROC with its interval; where the sides do not overlap, drawing images again tells none."""
        find, method = INTERVALS[self.interval]
        ends = find(id_set, ood_set, **cases.by_side)
        return cases.number(metric, auroc(id_set, ood_set), method, ends, about, convention)


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(0.75), percent(0.999)
    ('75 %', '99.9 %')
    """
    return f"{100 * share:g} %"


Role = Literal["id", "shifted", "ood"]
ROLE_TITLES = {"id": "ID", "shifted": "shifted", "ood": "OOD"}

ALL_OOD = "all OOD"
"""What several OOD sets are called together."""

MISTAKES_ALONE = "mistakes alone"
"""Stands for the OOD dataset where misclassifications are the only positives of failure detection."""


@dataclass(frozen=True)
class Variant:
    """Images under one name: ID, covariate-shifted, or OOD."""

    name: str
    role: Role
    dataset: DatasetRef
    condition: Condition = CLEAN

    @property
    def title(self) -> str:
        """Its name and its role."""
        return f"{self.name} ({ROLE_TITLES[self.role]})"

    def run(self, model: ModelRef) -> Run:
        """What has to be asked of a model."""
        return Run(model, self.dataset, self.condition)


def check_variants(variants: Sequence[Variant], training: Sequence[DatasetRef]) -> None:
    """BadInput where a name stands for two things, or the same images for two."""
    times = Counter([variant.name for variant in variants] + [ALL_OOD, MISTAKES_ALONE])
    twice = [name for name, count in times.items() if count > 1]
    if twice:
        raise BadInput(f"datasets of one study need names of their own; given twice: {listed(twice)}")
    sets = [(variant.title, variant.dataset) for variant in variants if variant.condition == CLEAN]
    sets += [(f"{images.name} (training)", images) for images in training]
    for (first, ours), (second, theirs) in combinations(sets, 2):
        if ours.place == theirs.place:
            raise BadInput(f"{first} and {second} are the same images; a set is there for one thing")


ODIN_EPS = "odin_eps"
"""What ODIN is called where the model's inputs were perturbed for it."""


@dataclass(frozen=True)
class Scored:
    """What every detector says of the images of one variant, row by row."""

    name: str
    ids: Sequence[str]
    scores: Mapping[str, OODScores]  # by detector
    correct: NDArray[np.bool_]  # (images,); False where there is no label
    labelled: NDArray[np.bool_]  # (images,)
    convention: Mapping[str, str]
    clusters: Clusters
    skipped_images: int = 0

    @classmethod
    def of(cls, variant: Variant, model: ModelRef, predictions: Predictions, scores: Mapping[str, OODScores]) -> Scored:
        correct, labels, answers = predictions.labelled.copy(), predictions.labels, predictions.top5.classes
        if correct.any():
            correct[correct] = is_correct(labels[correct], answers[correct])
        return cls(
            variant.name,
            predictions.ids,
            scores,
            correct,
            predictions.labelled,
            evidence.convention_of(variant.run(model), predictions),
            apart_from_id(predictions.clusters, variant.name) if variant.role == "ood" else predictions.clusters,
            len(predictions.skipped_images),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which images are misclassified, as far as labels tell, (images,)."""
        return self.labelled & ~self.correct

    def only(self, detectors: Collection[str]) -> Scored:
        """The same without the detectors that could not be had elsewhere."""
        return dataclasses.replace(self, scores={name: self.scores[name] for name in detectors})

    def told(self) -> str:
        """The images in words.

        >>> nothing = np.zeros(2, bool)
        >>> Scored("dresses", ("a", "b"), {}, nothing, nothing, {}, Clusters("image", ("a", "b")), 1).told()
        '2 images (1 skipped)'
        """
        return f"{len(self):,} images" + (f" ({self.skipped_images:,} skipped)" if self.skipped_images else "")


def apart_from_id(clusters: Clusters, name: str) -> Clusters:
    """The cases of an OOD set: images of new classes are other images, even where they are called the same.

    A patient or camera that was named as the case is the same one on either side.

    >>> apart_from_id(Clusters("image", ("1",)), "dresses").keys
    ('dresses: 1',)
    >>> apart_from_id(Clusters("patient", ("1",), named=True), "dresses").keys
    ('1',)
    """
    if clusters.named:
        return clusters
    return dataclasses.replace(clusters, keys=tuple(f"{name}: {key}" for key in clusters.keys))


def pooled(name: str, parts: Sequence[Scored]) -> Scored:
    """The images of several variants as one."""
    first = parts[0]
    return Scored(
        name,
        tuple(image for part in parts for image in part.ids),
        {detector: np.concatenate([part.scores[detector] for part in parts]) for detector in first.scores},
        np.concatenate([part.correct for part in parts]),
        np.concatenate([part.labelled for part in parts]),
        first.convention,
        joined_clusters([part.clusters for part in parts]),
        sum(part.skipped_images for part in parts),
    )


@dataclass(frozen=True)
class Judged:
    """One model's images, scored by every detector that it can have."""

    about: About
    id_set: Scored  # the set that others are held against
    more_id: Sequence[Scored]
    shifted: Sequence[Scored]
    ood: Sequence[Scored]
    detectors: Mapping[str, ReadyDetector]
    baseline: str  # the detector that others are compared with, which may be missing

    @classmethod
    def of(
        cls,
        about: About,
        scored: Sequence[tuple[Variant, Scored]],
        detectors: Mapping[str, ReadyDetector],
        *,
        baseline: str,
    ) -> Judged:
        """The variants in their roles, the ID set first; detectors that one of them has to do without are in none."""
        roles: dict[Role, list[Scored]] = {"id": [], "shifted": [], "ood": []}
        for variant, one in scored:
            roles[variant.role].append(one.only(detectors))
        id_set, *more = roles["id"]
        return cls(about, id_set, more, roles["shifted"], roles["ood"], detectors, baseline)

    @property
    def id_sets(self) -> tuple[Scored, ...]:
        """The ID set, and behind it whatever else shows the same classes."""
        return self.id_set, *self.more_id, *self.shifted

    @cached_property
    def ood_sets(self) -> tuple[Scored, ...]:
        """Every OOD set and, where there are several, behind them all as one."""
        return *self.ood, *([pooled(ALL_OOD, self.ood)] if len(self.ood) > 1 else [])

    def convention(self, scored: Scored, detector: str) -> dict[str, str]:
        """What stands beside every number of one detector on one variant."""
        ready = self.detectors[detector]
        notes = {"notes": "; ".join(ready.notes)} if ready.notes else {}
        return {**scored.convention, **ready.convention(), **notes}


def check_detectors(names: Iterable[str], *, preset: str, parameters: Mapping[str, Mapping[str, Fact]]) -> None:
    """UnknownName or BadInput now rather than after an hour."""
    for name in {*names, *parameters}:
        if "+" in name and name in parameters:
            raise BadInput(f"{name} has no parameters but those of its members: {' and '.join(name.split('+'))}")
        for part in name.split("+"):
            parameters_of(part, preset=preset, chosen=parameters.get(part))


def left_out(reasons: Mapping[str, str], of: str) -> Iterator[Skipped]:
    """What a model cannot have, and why.

    >>> next(left_out({"knn": "it learns from training images"}, "lite:0")).reason
    'knn on lite:0: it learns from training images'
    """
    return (Skipped(f"{what} on {of}: {why}") for what, why in reasons.items())


class DetectorPanel:
    """The detectors of one model; one that cannot be computed is left out from there on, with the reason."""

    def __init__(
        self,
        names: Sequence[str],
        training: Training | None,
        *,
        preset: str,
        parameters: Mapping[str, Mapping[str, Fact]],
        perturbed: str | None = None,
    ) -> None:
        self.ready: dict[str, ReadyDetector] = {}
        self.left_out: dict[str, str] = {}
        shared = None if training is None else SharedTraining(training)
        for name in names:
            try:
                self.ready[name] = self._made_ready(name, shared, preset, parameters)
            except (NotKept, BadInput) as reason:
                self.left_out[name] = str(reason)
        if perturbed is not None:
            odin = ready("odin", preset=preset, parameters=parameters.get("odin"))
            self.ready[ODIN_EPS] = dataclasses.replace(odin, parameters={**odin.parameters, "inputs": perturbed})

    def notes(self, of: str) -> Iterator[Note]:
        """Which detectors a model has to do without, and what the others have to say themselves."""
        yield from left_out(self.left_out, of)
        for name, detector in self.ready.items():
            yield from (Caution(f"{name} for {of}: {note}") for note in detector.notes)

    def scores(self, predictions: Predictions, perturbed: Predictions | None = None) -> dict[str, OODScores]:
        """OOD scores by detector; `perturbed` are the predictions on inputs perturbed as ODIN perturbs them."""
        scores, predictions = {}, SharedPredictions.of(predictions)
        for name, detector in list(self.ready.items()):
            try:
                scores[name] = self._scored(detector, predictions, perturbed if name == ODIN_EPS else None)
            except (NotKept, BadInput) as reason:
                del self.ready[name]
                self.left_out[name] = str(reason)
        return scores

    def _scored(self, detector: ReadyDetector, predictions: Predictions, instead: Predictions | None) -> OODScores:
        if instead is not None and instead.ids != predictions.ids:
            raise BadInput("not every image has a prediction with a perturbed input")
        with np.errstate(all="ignore"):  # what is not a number is counted
            found = detector(predictions if instead is None else instead)
        strange = int((~np.isfinite(found)).sum())
        if strange:
            raise BadInput(f"its scores of {strange:,} of {len(found):,} images are infinite or not numbers")
        return found

    def _made_ready(
        self, name: str, training: Training | None, preset: str, parameters: Mapping[str, Mapping[str, Fact]]
    ) -> ReadyDetector:
        """A detector of the catalog, or several of them as one where their names are joined by a plus."""
        if "+" not in name or training is None:
            return ready(name, training, preset=preset, parameters=parameters.get(name))
        members = [
            self.ready.get(part) or ready(part, training, preset=preset, parameters=parameters.get(part))
            for part in name.split("+")
        ]
        return as_one(members, training)
