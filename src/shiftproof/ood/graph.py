"""OOD scores inside an ONNX graph: arithmetic on its tensors, written as in numpy.

Nothing here imports onnx: a `Graph` collects nodes and constants as plain values, and the file that writes ONNX files takes
them from there. Sums, maxima and the like run over the second axis of (images, ...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import NotKept
from shiftproof.types import Gives, Head

Constant: TypeAlias = float | NDArray[Any]

PREFIX = "guard."
"""What all names begin with, so that none of the network's own is taken."""

SCORES, FEATURES = f"{PREFIX}scores", f"{PREFIX}features"
"""The tensors that a graph begins with, (images, classes) and (images, features) in single precision."""

TINY, SMALL = float(np.finfo(np.float64).tiny), float(np.finfo(np.float32).tiny)
"""The least normal numbers of double and of single precision."""


class Node(NamedTuple):
    """An operation of ONNX; `axes` are those of a reduction, which versions of ONNX write down differently."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    axes: tuple[int, ...] = ()


class Top(NamedTuple):
    """The largest values of each row, largest first, and their places."""

    values: Tensor
    places: Tensor


@dataclass
class Graph:
    """Nodes and constants in the order in which they were asked for."""

    gives: Gives
    classes: int
    width: int = 0  # features of an image; 0: the network shows none
    head: Head | None = None
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def scores(self) -> Tensor:
        """What the network gives, in single precision."""
        return Tensor(self, SCORES, np.dtype(np.float32))

    @property
    def logits(self) -> Tensor:
        """The logits, in double precision."""
        return self.scores.double()

    @property
    def features(self) -> Tensor:
        """The features, in single precision."""
        return Tensor(self, FEATURES, np.dtype(np.float32))

    def need_head(self) -> Head:
        """The last linear layer, or NotKept."""
        if self.head is None:
            raise NotKept("the model's last linear layer could not be read")
        return self.head

    def probabilities(self, temperature: float = 1.0) -> Tensor:
        """Probabilities of all classes, in double precision; of logits the softmax, at a temperature."""
        if self.gives == "logits":
            return (self.logits / temperature).softmax()
        if temperature == 1:
            return self.logits
        return (self.logits.at_least(TINY).log() / temperature).softmax()

    def rows(self, table: NDArray[Any], places: Tensor) -> Tensor:
        """The row of a table for each image, by its place."""
        stored = self.constant(table, table.dtype)
        return self.add("Gather", [stored.name, places.name], table.dtype, axis=0)

    def side_by_side(self, columns: Sequence[Tensor]) -> Tensor:
        """Columns, (images, 1) each, as one."""
        return self.add("Concat", [column.name for column in columns], columns[0].dtype, axis=1)

    def constant(self, value: Constant, dtype: np.dtype[Any]) -> Tensor:
        """A tensor of fixed numbers; equal ones are stored once."""
        values = np.asarray(value, dtype)
        for name, stored in self.constants.items():
            if stored.dtype == dtype and stored.shape == values.shape and np.array_equal(stored, values):
                return Tensor(self, name, dtype)
        name = f"{PREFIX}constant{len(self.constants)}"
        self.constants[name] = values
        return Tensor(self, name, dtype)

    def add(
        self, kind: str, inputs: Sequence[str], dtype: np.dtype[Any], *, axes: tuple[int, ...] = (), **attributes: Any
    ) -> Tensor:
        """The result of one more operation."""
        name = f"{PREFIX}{kind.lower()}{len(self.nodes)}"
        self.nodes.append(Node(kind, tuple(inputs), (name,), attributes, axes))
        return Tensor(self, name, dtype)


@dataclass(frozen=True, eq=False)
class Tensor:
    """What a node of the graph gives, for all images of a batch."""

    graph: Graph
    name: str
    dtype: np.dtype[Any]

    def __add__(self, other: Tensor | Constant) -> Tensor:
        return self._with("Add", other)

    def __sub__(self, other: Tensor | Constant) -> Tensor:
        return self._with("Sub", other)

    def __rsub__(self, other: Constant) -> Tensor:
        return self.graph.constant(other, self.dtype) - self

    def __mul__(self, other: Tensor | Constant) -> Tensor:
        return self._with("Mul", other)

    def __truediv__(self, other: Tensor | Constant) -> Tensor:
        return self._with("Div", other)

    def __matmul__(self, other: NDArray[Any]) -> Tensor:
        return self._with("MatMul", other)

    def __neg__(self) -> Tensor:
        return self._by("Neg")

    def above(self, other: Tensor | Constant) -> Tensor:
        return self._with("Greater", other, np.dtype(bool))

    def below(self, other: Tensor | Constant) -> Tensor:
        return self._with("Less", other, np.dtype(bool))

    def equals(self, other: Tensor | Constant) -> Tensor:
        return self._with("Equal", other, np.dtype(bool))

    def also(self, other: Tensor) -> Tensor:
        """Where both are true."""
        return self._with("And", other)

    def where(self, condition: Tensor, otherwise: float) -> Tensor:
        """The same where the condition holds."""
        instead = self.graph.constant(otherwise, self.dtype)
        return self.graph.add("Where", [condition.name, self.name, instead.name], self.dtype)

    def exp(self) -> Tensor:
        return self._by("Exp")

    def log(self) -> Tensor:
        return self._by("Log")

    def sqrt(self) -> Tensor:
        return self._by("Sqrt")

    def abs(self) -> Tensor:
        return self._by("Abs")

    def power(self, exponent: Tensor | Constant) -> Tensor:
        return self._with("Pow", exponent)

    def at_least(self, least: float) -> Tensor:
        return self._with("Max", least)

    def at_most(self, most: float) -> Tensor:
        return self._with("Min", most)

    def sum(self, *, keep: bool = False) -> Tensor:
        return self._reduced("ReduceSum", keep)

    def max(self, *, keep: bool = False) -> Tensor:
        return self._reduced("ReduceMax", keep)

    def argmax(self) -> Tensor:
        """The place of the largest value of each row, of equal ones the first."""
        return self.graph.add("ArgMax", [self.name], np.dtype(np.int64), axis=1, keepdims=0)

    def cumulated(self) -> Tensor:
        """Sums of each row up to and with every place."""
        along = self.graph.constant(np.array(1), np.dtype(np.int64))
        return self.graph.add("CumSum", [self.name, along.name], self.dtype)

    def top(self, count: int) -> Top:
        """The largest values of each row; of equal ones those that come first."""
        wanted = self.graph.constant(np.array([count]), np.dtype(np.int64))
        values = self.graph.add("TopK", [self.name, wanted.name], self.dtype, axis=1, largest=1, sorted=1)
        places = f"{values.name}.places"
        last = self.graph.nodes[-1]
        self.graph.nodes[-1] = last._replace(outputs=(values.name, places))
        return Top(values, Tensor(self.graph, places, np.dtype(np.int64)))

    def column(self, place: int, *, keep: bool = False) -> Tensor:
        """One column, (images,), or (images, 1) with `keep`."""
        wanted = self.graph.constant(np.array([place] if keep else place), np.dtype(np.int64))
        return self.graph.add("Gather", [self.name, wanted.name], self.dtype, axis=1)

    def replaced(self, places: Tensor, values: Tensor) -> Tensor:
        """The same with other values at some places of each row."""
        return self.graph.add("ScatterElements", [self.name, places.name, values.name], self.dtype, axis=1)

    def double(self) -> Tensor:
        return self._cast(np.float64)

    def single(self) -> Tensor:
        return self._cast(np.float32)

    def softmax(self) -> Tensor:
        powers = (self - self.max(keep=True)).exp()
        return powers / powers.sum(keep=True)

    def free_energy(self, temperature: float = 1.0) -> Tensor:
        """Minus the temperature times log-sum-exp over the temperature, as `scores.free_energy`."""
        scaled = self / temperature
        peak = scaled.max(keep=True)
        return ((scaled - peak).exp().sum().log() + peak.column(0)) * -temperature

    def negative_entropy(self) -> Tensor:
        """Of probabilities; one of 0 adds nothing."""
        return (self * self.at_least(TINY).log()).sum()

    def _by(self, kind: str) -> Tensor:
        return self.graph.add(kind, [self.name], self.dtype)

    def _with(self, kind: str, other: Tensor | Constant, dtype: np.dtype[Any] | None = None) -> Tensor:
        second = other if isinstance(other, Tensor) else self.graph.constant(other, self.dtype)
        return self.graph.add(kind, [self.name, second.name], dtype or self.dtype)

    def _reduced(self, kind: str, keep: bool) -> Tensor:
        return self.graph.add(kind, [self.name], self.dtype, axes=(1,), keepdims=int(keep))

    def _cast(self, kind: Any) -> Tensor:
        dtype = np.dtype(kind)
        return self if self.dtype == dtype else self.graph.add("Cast", [self.name], dtype, to=dtype)
