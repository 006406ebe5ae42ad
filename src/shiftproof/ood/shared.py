"""Images of several detectors: what two of them learn of training images, or ask of others, alike is computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from shiftproof.types import Head, OODScores, Predictions, Training

Given = ParamSpec("Given")
Learnt = TypeVar("Learnt")
Scorer = TypeVar("Scorer")

MOST_BYTES = 128e6
"""Rows of a training set that stay in memory while detectors are fitted; of more, every walk reads them again."""


@dataclass(frozen=True)
class SharedTraining:
    """Training images that several detectors are fitted on, and what was learnt of them; see `learnt_once`."""

    images: Training
    learnt: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _blocks: list[Predictions] = field(default_factory=list, repr=False)

    @property
    def head(self) -> Head | None:
        return self.images.head

    def __len__(self) -> int:
        return len(self.images)

    def blocks(self) -> Iterator[Predictions]:
        if self._blocks:
            yield from self._blocks
            return
        read: list[Predictions] | None = []
        for block in self.images.blocks():
            arrays = (block.logits, block.features, block.extra)
            size = sum(array.nbytes for array in arrays if array is not None)
            if read is not None:
                read = [*read, block] if size * len(self) <= MOST_BYTES * len(block) else None
            yield block
        self._blocks[:] = read or []  # another walk beside this one may have ended before


def learnt_once(
    learn: Callable[Concatenate[Training, Given], Learnt],
) -> Callable[Concatenate[Training, Given], Learnt]:
    """Of `SharedTraining`, whatever this function learns with these parameters is learnt the first time alone."""

    @wraps(learn)
    def once(training: Training, /, *given: Given.args, **named: Given.kwargs) -> Learnt:
        if not isinstance(training, SharedTraining):
            return learn(training, *given, **named)
        key = learn, given, tuple(sorted(named.items()))
        if key not in training.learnt:
            training.learnt[key] = learn(training, *given, **named)
        found: Learnt = training.learnt[key]
        return found

    return once


@dataclass(frozen=True, repr=False)
class SharedPredictions(Predictions):
    """Predictions that several detectors score, and what was computed of them; see `scored_once`."""

    # not handed on by `dataclasses.replace`, of which `take` makes use: of other images nothing is known
    known: dict[Hashable, Any] = field(default_factory=dict, init=False, compare=False)

    @classmethod
    def of(cls, predictions: Predictions) -> SharedPredictions:
        return cls(**{one.name: getattr(predictions, one.name) for one in fields(Predictions)})


def scored_once(score: Callable[[Scorer, Predictions], OODScores]) -> Callable[[Scorer, Predictions], OODScores]:
    """Of `SharedPredictions`, the scores of one fitted value are computed the first time alone.

    They are given to whoever asks, so nobody may change them.
    """

    @wraps(score)
    def once(self: Scorer, predictions: Predictions) -> OODScores:
        if not isinstance(predictions, SharedPredictions):
            return score(self, predictions)
        key = score, id(self)  # of a value with arrays there is no hash
        if key not in predictions.known:
            found = score(self, predictions)
            found.flags.writeable = False
            predictions.known[key] = self, found  # itself too: its number is nobody else's as long as it is there
        scores: OODScores = predictions.known[key][1]
        return scores

    return once
