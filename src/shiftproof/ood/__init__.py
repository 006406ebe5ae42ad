"""OOD detectors: out-of-distribution scores of images from a model's predictions. Higher is more OOD, for every one.

A detector that needs no training is a function of predictions; one that must learn first is a function ``fit_x`` of training
predictions whose result is a frozen value that scores. The catalog names them all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

import numpy as np

from shiftproof.catalog import OOD_DETECTORS
from shiftproof.errors import BadInput, BrokenPlugin, NotKept, UnknownName
from shiftproof.ood.entry import PRESETS, Fitted, OODDetector
from shiftproof.ood.graph import Graph, Tensor
from shiftproof.types import Fact, OODScores, Predictions, Training

Detector: TypeAlias = Callable[[Predictions], OODScores]

_NO_TRAINING = "it learns from training images, and none were given (--training)"


@dataclass(frozen=True)
class ReadyDetector:
    """A detector that can score, with everything its scores depend on.

    `parameters` are those given and, behind them, those found when it was fitted.
    """

    name: str
    preset: str
    parameters: Mapping[str, Fact]
    score: Detector
    notes: tuple[str, ...] = ()  # sentences for people, such as that the model's head is nearly singular

    def __call__(self, predictions: Predictions) -> OODScores:
        return self.score(predictions)

    def graph(self, graph: Graph) -> Tensor:
        """The same score in an ONNX graph; NotKept where nobody wrote it down."""
        if isinstance(self.score, Fitted):
            return self.score.graph(graph)
        written = detector_of(self.name).graph
        if written is None:
            raise NotKept("its score is not written down for ONNX graphs")
        return written(graph, **self.parameters)

    def convention(self) -> dict[str, str]:
        """The convention of every number of this detector."""
        told = ", ".join(f"{name} {_plainly(value)}" for name, value in self.parameters.items())
        return {"parameters": told or "none", "preset": self.preset}


def detector_of(name: str) -> OODDetector:
    """An OOD detector by name, or UnknownName with the nearest."""
    entry: OODDetector = OOD_DETECTORS.load(name)
    return entry


def needs_training(name: str) -> bool:
    """Whether a detector must learn from training images first; an ensemble learns the scales of its members."""
    return "+" in name or detector_of(name).needs_training


def title_of(name: str) -> str:
    """A detector's name as papers write it; one that the catalog does not have stays as it is.

    >>> title_of("vim"), title_of("msp+knn"), title_of("our_own")
    ('ViM', 'MSP + KNN', 'our_own')
    """
    return " + ".join(_title(part) for part in name.split("+"))


def _title(name: str) -> str:
    try:
        return detector_of(name).title
    except (UnknownName, BrokenPlugin):
        return name


def parameters_of(name: str, *, preset: str = "authors", chosen: Mapping[str, Fact] | None = None) -> dict[str, Fact]:
    """Every parameter of a detector: those chosen, else the preset's, else the original authors'."""
    if preset not in PRESETS:
        raise UnknownName("preset", preset, PRESETS)
    entry = detector_of(name)
    signature = inspect.signature(entry.function).parameters.values()
    own = {one.name: one.default for one in signature if one.kind is inspect.Parameter.KEYWORD_ONLY}
    kinds = get_type_hints(entry.function) if chosen else {}
    for key, value in (chosen or {}).items():
        if key not in own:
            raise UnknownName(f"parameter of {name}", key, own)
        if not _fits(value, kinds[key]):
            raise BadInput(f"{key} of {name} should be {_in_words(kinds[key])}, got {value!r}")
    return {**own, **entry.presets.get(preset, {}), **(chosen or {})}


def ready(
    name: str,
    training: Training | None = None,
    *,
    preset: str = "authors",
    parameters: Mapping[str, Fact] | None = None,
) -> ReadyDetector:
    """The detector of this name, fitted where it must be; NotKept says what it lacks.

    Names joined by + make an ensemble, such as ``msp+vim``; its parameters are then called after their detector, as
    ``vim.dimension``.
    """
    if "+" in name:
        return _ready_ensemble(name, training, preset, parameters or {})
    given = parameters_of(name, preset=preset, chosen=parameters)
    entry = detector_of(name)
    if not entry.needs_training:
        return ReadyDetector(name, preset, given, partial(entry.function, **given))
    if training is None:
        raise NotKept(_NO_TRAINING)
    fitted: Fitted = entry.function(training, **given)
    return ReadyDetector(name, preset, {**given, **fitted.found()}, fitted, fitted.notes)


@dataclass(frozen=True)
class Ensemble(Fitted):
    """Detectors with the mean and the standard deviation of their scores over the training images."""

    members: tuple[Detector, ...]
    means: tuple[float, ...]
    spreads: tuple[float, ...]

    def __call__(self, predictions: Predictions) -> OODScores:
        """Mean of the members' scores, each counted in standard deviations above its mean."""
        each = zip(self.members, self.means, self.spreads, strict=True)
        return np.asarray(np.mean([(score(predictions) - mean) / spread for score, mean, spread in each], axis=0))

    def graph(self, graph: Graph) -> Tensor:
        each = zip(self.ready_members, self.means, self.spreads, strict=True)
        first, *others = [(member.graph(graph) - mean) / spread for member, mean, spread in each]
        return sum(others, start=first) / len(self.members)

    @property
    def ready_members(self) -> list[ReadyDetector]:
        """The members by name, or NotKept."""
        ready = [member for member in self.members if isinstance(member, ReadyDetector)]
        if len(ready) < len(self.members):
            raise NotKept("it has members without a name")
        return ready


def fit_ensemble(training: Training, members: Mapping[str, Detector]) -> Ensemble:
    """The members on one scale; they are fitted already, by name."""
    if len(members) < 2:
        raise BadInput(f"an ensemble takes two or more different detectors, got {', '.join(members) or 'none'}")
    scored = [[score(block) for score in members.values()] for block in training.blocks()]
    if not scored:
        raise NotKept("there are no training images to learn from")
    scores = [np.concatenate(blocks).astype(np.float64) for blocks in zip(*scored, strict=True)]
    alike = [name for name, one in zip(members, scores, strict=True) if not one.std() > 0]
    if alike:
        raise NotKept(f"{alike[0]} gives every training image the same score, so its scale is unknown")
    return Ensemble(
        tuple(members.values()), tuple(float(one.mean()) for one in scores), tuple(float(one.std()) for one in scores)
    )


def as_one(members: Sequence[ReadyDetector], training: Training) -> ReadyDetector:
    """The ensemble of detectors that are ready already; its parameters and notes are theirs, called after them."""
    fitted = fit_ensemble(training, {member.name: member for member in members})
    told = {f"{member.name}.{key}": value for member in members for key, value in member.parameters.items()}
    notes = tuple(f"{member.name}: {note}" for member in members for note in member.notes)
    return ReadyDetector("+".join(member.name for member in members), members[0].preset, told, fitted, notes)


def _ready_ensemble(name: str, training: Training | None, preset: str, parameters: Mapping[str, Fact]) -> ReadyDetector:
    names = name.split("+")
    own: dict[str, dict[str, Fact]] = {member: {} for member in names}
    for key, value in parameters.items():
        member, _, parameter = key.partition(".")
        if member not in own:
            raise UnknownName(f"detector in {name}", member, own)
        own[member][parameter] = value
    if training is None:
        raise NotKept(_NO_TRAINING)
    return as_one([ready(member, training, preset=preset, parameters=own[member]) for member in names], training)


def _fits(value: Fact, kind: Any) -> bool:
    """Whether a value is of a kind that a signature names; a whole number is a number too, yes and no are not.

    >>> _fits(3, float | None), _fits(None, float | None), _fits(2.5, int), _fits(True, int)
    (True, True, False, False)
    """
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if get_args(kind):
        return any(_fits(value, one) for one in get_args(kind))
    return isinstance(value, (int, float) if kind is float else kind) and not isinstance(value, bool)


def _in_words(kind: Any) -> str:
    """A kind as people say it.

    >>> _in_words(int | None), _in_words(Literal["eucos", "euclidean"])
    ('a whole number or none', 'eucos or euclidean')
    """
    if get_args(kind):
        return " or ".join(one if isinstance(one, str) else _in_words(one) for one in get_args(kind))
    return {int: "a whole number", float: "a number"}.get(kind, "none")


def _plainly(value: Fact) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
