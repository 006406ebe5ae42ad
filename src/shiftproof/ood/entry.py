"""The entry of an OOD detector in the catalog: title, function and presets; a plug-in registers one too."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from shiftproof.errors import NotKept
from shiftproof.ood.graph import Graph, Tensor
from shiftproof.types import Fact, OODScores, Predictions

PRESETS = ("authors", "openood", "pytorch-ood")
"""Hyperparameters as chosen by: the original authors, or a library."""


@dataclass(frozen=True)
class OODDetector:
    """An OOD detector: a function of predictions, or one that is fitted on training images and returns a `Fitted` value."""

    title: str  # as its paper writes it
    function: Callable[..., Any]  # (predictions, *, parameters) -> OODScores, or (training, *, parameters) -> Fitted
    needs_training: bool = False
    presets: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict)  # parameters that a library sets differently
    graph: Callable[..., Tensor] | None = None  # (graph, *, parameters) -> the same score in an ONNX graph, of a function

    @property
    def description(self) -> str:
        """What it scores, in one sentence."""
        return (inspect.getdoc(self.function) or "").partition("\n")[0]


class Fitted(ABC):
    """A detector fitted on training images."""

    @abstractmethod
    def __call__(self, predictions: Predictions) -> OODScores:
        """The OOD score of each image."""

    def graph(self, graph: Graph) -> Tensor:  # noqa: ARG002
        """The same score in an ONNX graph; NotKept where nobody wrote it down."""
        raise NotKept("its score is not written down for ONNX graphs")

    def found(self) -> dict[str, Fact]:
        """Fitted values, as far as they are printed among the parameters."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for people, such as that the model's head is nearly singular."""
        return ()
