"""How foreign every detector finds every image of a study, for one model: the arrays that all its numbers are made of."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors import ReadyDetector, as_one, parameters_of, ready
from shiftproof.errors import BadInput, NotKept
from shiftproof.image_sets.clusters import FOUND_UNITS
from shiftproof.metrics import is_correct
from shiftproof.studies import evidence
from shiftproof.studies.novelty_variants import ALL_OUTSIDE, Role, Variant
from shiftproof.types import About, AnomalyScores, Clusters, Fact, ModelRef, Predictions, Training, joined_clusters

ODIN_EPS = "odin_eps"
"""What ODIN is called where the model's inputs were perturbed for it."""


@dataclass(frozen=True)
class Scored:
    """What every detector says of the images of one variant, row by row."""

    name: str
    ids: tuple[str, ...]
    scores: Mapping[str, AnomalyScores]  # by detector
    correct: NDArray[np.bool_]  # (images,); False where there is no label
    labelled: NDArray[np.bool_]  # (images,)
    convention: Mapping[str, str]
    clusters: Clusters
    set_aside: int = 0

    @classmethod
    def of(cls, variant: Variant, model: ModelRef, predictions: Predictions, scores: Mapping[str, AnomalyScores]) -> Scored:
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
            apart_from_inside(predictions.clusters, variant.name) if variant.role == "outside" else predictions.clusters,
            len(predictions.set_aside),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Which images are answered wrong, as far as labels tell, (images,)."""
        return self.labelled & ~self.correct

    def only(self, detectors: Collection[str]) -> Scored:
        """The same without the detectors that could not be had elsewhere."""
        return dataclasses.replace(self, scores={name: self.scores[name] for name in detectors})

    def told(self) -> str:
        """The images in words.

        >>> nothing = np.zeros(2, bool)
        >>> Scored("dresses", ("a", "b"), {}, nothing, nothing, {}, Clusters("image", ("a", "b")), 1).told()
        '2 images (1 set aside)'
        """
        return f"{len(self):,} images" + (f" ({self.set_aside:,} set aside)" if self.set_aside else "")


def apart_from_inside(clusters: Clusters, name: str) -> Clusters:
    """The cases of an outside set: images of new classes are other images, even where they are called the same.

    A patient or camera that was named as the case is the same one on either side.

    >>> [apart_from_inside(Clusters(unit, ("1",)), "dresses").keys for unit in ("image", "patient")]
    [('dresses: 1',), ('1',)]
    """
    if not FOUND_UNITS.issuperset(clusters.unit.split(" or ")):
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
        sum(part.set_aside for part in parts),
    )


@dataclass(frozen=True)
class Judged:
    """One model's images, scored by every detector that it can have."""

    about: About
    inside: Scored  # the set that others are held against
    more_inside: Sequence[Scored]
    shifted: Sequence[Scored]
    outside: Sequence[Scored]
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
        """The variants in their roles, the inside set first; detectors that one of them has to do without are in none."""
        roles: dict[Role, list[Scored]] = {"inside": [], "shifted": [], "outside": []}
        for variant, one in scored:
            roles[variant.role].append(one.only(detectors))
        inside, *more = roles["inside"]
        return cls(about, inside, more, roles["shifted"], roles["outside"], detectors, baseline)

    @property
    def insides(self) -> tuple[Scored, ...]:
        """The inside set, and behind it whatever else shows the same classes."""
        return self.inside, *self.more_inside, *self.shifted

    @cached_property
    def outsides(self) -> tuple[Scored, ...]:
        """Every outside set and, where there are several, behind them all as one."""
        return *self.outside, *([pooled(ALL_OUTSIDE, self.outside)] if len(self.outside) > 1 else [])

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


class DetectorPanel:
    """The detectors of one model; one that cannot answer is left out from there on, with the reason."""

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
        for name in names:
            try:
                self.ready[name] = self._made_ready(name, training, preset, parameters)
            except (NotKept, BadInput) as reason:
                self.left_out[name] = str(reason)
        if perturbed is not None:
            odin = ready("odin", preset=preset, parameters=parameters.get("odin"))
            self.ready[ODIN_EPS] = dataclasses.replace(odin, parameters={**odin.parameters, "inputs": perturbed})

    def scores(self, predictions: Predictions, perturbed: Predictions | None = None) -> dict[str, AnomalyScores]:
        """How foreign each detector finds the images; `perturbed` is what the model says of them for ODIN's sake."""
        scores = {}
        for name, detector in list(self.ready.items()):
            try:
                scores[name] = self._scored(detector, predictions, perturbed if name == ODIN_EPS else None)
            except (NotKept, BadInput) as reason:
                del self.ready[name]
                self.left_out[name] = str(reason)
        return scores

    def _scored(self, detector: ReadyDetector, predictions: Predictions, instead: Predictions | None) -> AnomalyScores:
        if instead is not None and instead.ids != predictions.ids:
            raise BadInput("not every image has an answer with its input perturbed")
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
