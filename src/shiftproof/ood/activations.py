"""Detectors that change the features first, and take the free energy of the logits that the model's head then gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.ood.entry import Fitted, OODDetector
from shiftproof.ood.graph import Graph, Tensor
from shiftproof.ood.inputs import by_sorted_features, head_of, in_parts, parts_of
from shiftproof.ood.scores import free_energy
from shiftproof.types import Fact, Features, Head, OODScores, Predictions, Training

_HALF = 16  # bits: a count of every possible upper or lower half of a number takes half a megabyte


def quantile_of(walk: Callable[[], Iterable[NDArray[np.floating]]], share: float) -> float:
    """The value that this share of all numbers in the arrays stay below, as ``numpy.quantile`` interpolates it.

    Single-precision numbers sort as integers do once their sign bit is seen to. So one walk over the arrays counts upper
    halves of these integers, a second the lower halves behind the one upper half that matters, and nothing is kept.
    Double-precision numbers are rounded to single first.

    >>> quantile_of(lambda: [np.arange(4.0).reshape(2, 2), np.array([[4.0]])], 0.9)
    3.6
    """
    if not 0 <= share <= 1:
        raise BadInput(f"a share lies between 0 and 1, got {share}")
    upper = _counts(keys >> _HALF for keys in _keys(walk))
    if not (numbers := int(upper.sum())):
        raise BadInput("there are no numbers to take a quantile of")
    place = share * (numbers - 1)
    below = int(place)
    low, high = (_number_at(walk, upper, min(rank, numbers - 1)) for rank in (below, below + 1))
    return low + (high - low) * (place - below)


def _number_at(walk: Callable[[], Iterable[NDArray[np.floating]]], upper: NDArray[np.integer], rank: int) -> float:
    """The number that so many are before, in order of size."""
    half, rank = _find(upper, rank)
    low_bits = (1 << _HALF) - 1
    lower = _counts(keys[keys >> _HALF == half] & low_bits for keys in _keys(walk))
    other, _ = _find(lower, rank)
    return _number_of((half << _HALF) | other)


def _counts(halves: Iterator[NDArray[np.integer]]) -> NDArray[np.integer]:
    counts = np.zeros(1 << _HALF, np.int64)
    for some in halves:
        counts += np.bincount(some, minlength=1 << _HALF)
    return counts


def _find(counts: NDArray[np.integer], rank: int) -> tuple[int, int]:
    """The bin that holds the item of this rank, and the item's rank among those of its bin."""
    ends = np.cumsum(counts)
    found = int(np.searchsorted(ends, rank, side="right"))
    return found, rank - int(ends[found] - counts[found])


def _keys(walk: Callable[[], Iterable[NDArray[np.floating]]]) -> Iterator[NDArray[np.integer]]:
    """The numbers as integers of the same order, some at a time."""
    for rows in walk():
        for part in parts_of(len(rows)):
            # adding 0 makes minus zero plain zero, which it equals
            bits = (np.ascontiguousarray(rows[part], np.float32).ravel() + np.float32(0)).view(np.uint32)
            yield np.where(bits >> 31 == 1, ~bits, bits | np.uint32(1 << 31)).astype(np.int64)


def _number_of(key: int) -> float:
    bits = key ^ (1 << 31) if key >> 31 else key ^ 0xFFFFFFFF
    return float(np.array([bits], np.uint32).view(np.float32)[0])


def ash_b(predictions: Predictions, *, percentile: float = 65.0) -> OODScores:
    """Energy after ASH-B: an image's top activations are set to equal shares of the sum of all (Djurisic et al., 2023).

    The largest are those above `percentile` % of its features; the others become 0.
    """

    def shaped(features: Features, kept: NDArray[np.bool_]) -> Features:
        return _pruned((features.sum(axis=1, keepdims=True) / kept.sum(axis=1, keepdims=True)).astype(np.float32), kept)

    return _energy_of_largest(shaped, predictions, percentile)


def _ash_b_graph(graph: Graph, *, percentile: float) -> Tensor:
    kept = _largest_in(graph.features, graph, percentile)
    return _energy_in(graph, kept * (graph.features.sum(keep=True) / kept.sum(keep=True)))


ASH_B = OODDetector("ASH-B", ash_b, presets={"openood": {"percentile": 90.0}}, graph=_ash_b_graph)


def ash_s(predictions: Predictions, *, percentile: float = 90.0) -> OODScores:
    """Energy after ASH-S: activations are pruned, and the top ones rescaled (Djurisic et al., 2023).

    The largest are those above `percentile` % of its features; they grow by e to the power of the sum of all over their own.
    """

    def shaped(features: Features, kept: NDArray[np.bool_]) -> Features:
        return _pruned(features, kept) * _growth(features, kept)

    return _energy_of_largest(shaped, predictions, percentile)


def _ash_s_graph(graph: Graph, *, percentile: float) -> Tensor:
    kept = _largest_in(graph.features, graph, percentile)
    return _energy_in(graph, kept * graph.features * _growth_in(graph, kept, percentile))


ASH_S = OODDetector("ASH-S", ash_s, presets={"pytorch-ood": {"percentile": 65.0}}, graph=_ash_s_graph)


def ash_p(predictions: Predictions, *, percentile: float = 65.0) -> OODScores:
    """Energy after ASH-P: the lowest `percentile` % of an image's activations are zeroed (Djurisic et al., 2023)."""
    return _energy_of_largest(_pruned, predictions, percentile)


def _ash_p_graph(graph: Graph, *, percentile: float) -> Tensor:
    return _energy_in(graph, _largest_in(graph.features, graph, percentile) * graph.features)


ASH_P = OODDetector("ASH-P", ash_p, presets={"openood": {"percentile": 90.0}}, graph=_ash_p_graph)


def scale(predictions: Predictions, *, percentile: float = 85.0) -> OODScores:
    """Energy after SCALE: all activations of an image are rescaled, none pruned (Xu et al., 2024).

    They grow by e to the power of their sum over the sum of the largest, those above `percentile` % of them.
    """
    return _energy_of_largest(lambda features, kept: features * _growth(features, kept), predictions, percentile)


def _scale_graph(graph: Graph, *, percentile: float) -> Tensor:
    return _energy_in(graph, graph.features * _growth_in(graph, _largest_in(graph.features, graph, percentile), percentile))


SCALE = OODDetector("SCALE", scale, presets={"pytorch-ood": {"percentile": 65.0}}, graph=_scale_graph)


@dataclass(frozen=True)
class React(Fitted):
    """The value at which features are clipped."""

    clip: float

    def __call__(self, predictions: Predictions) -> OODScores:
        """Energy of the logits of the clipped features."""
        head, clip = predictions.need_head(), np.float32(self.clip)

        def clipped(features: Features) -> OODScores:
            return energy_of(np.minimum(features.astype(np.float32, copy=False), clip), head)

        return in_parts(clipped, predictions.need_features())

    def graph(self, graph: Graph) -> Tensor:
        return _energy_in(graph, graph.features.at_most(self.clip))

    def found(self) -> dict[str, Fact]:
        return {"clip": self.clip}


def fit_react(training: Training, *, percentile: float = 90.0, clip: float | None = None) -> React:
    """Energy after ReAct: features are clipped at a percentile of all training activations (Sun et al., 2021).

    A number given as `clip` is used as it is.
    """
    if clip is not None:
        return React(float(clip))
    return React(quantile_of(lambda: (block.need_features() for block in training.blocks()), percentile / 100))


REACT = OODDetector("ReAct", fit_react, needs_training=True)


def largest(features: Features, percentile: float) -> NDArray[np.bool_]:
    """Which features of each image are above `percentile` % of its own; of equal ones those that come first.

    The count is the same for every image: features - round(features * percentile / 100).

    >>> largest(np.array([[3.0, 1.0, 1.0, 0.0]]), 50)
    array([[ True,  True, False, False]])
    """
    return _largest(features, np.sort(features, axis=1), percentile)


def _largest(features: Features, rising: Features, percentile: float) -> NDArray[np.bool_]:
    """The same of features that are sorted already."""
    width = features.shape[1]
    kept = _count_kept(width, percentile)
    least = rising[:, [width - kept]]
    reached = features >= least
    if np.count_nonzero(reached) == kept * len(features):  # as of most images: no other is equal to the last one kept
        return np.asarray(reached)
    above, level = features > least, features == least
    room = kept - above.sum(axis=1, keepdims=True)
    return np.asarray(above | (level & (level.cumsum(axis=1) <= room)))


def _count_kept(width: int, percentile: float) -> int:
    kept = width - round(width * percentile / 100)
    if not 0 <= percentile <= 100 or kept < 1:
        raise BadInput(f"percentile should be 0 or more and leave at least one of {width} features, got {percentile}")
    return kept


def _largest_in(features: Tensor, graph: Graph, percentile: float) -> Tensor:
    """As `largest`, in an ONNX graph; 1 where a feature is among them, else 0."""
    kept = _count_kept(graph.width, percentile)
    least = features.top(kept).values.column(kept - 1, keep=True)
    above, level = features.above(least).single(), features.equals(least).single()
    # counts, so that no more than the room is below half a count more
    return above + level * level.cumulated().below(kept + 0.5 - above.sum(keep=True)).single()


def _growth_in(graph: Graph, kept: Tensor, percentile: float) -> Tensor:
    """As `_growth`, in an ONNX graph."""
    total = graph.features.double().sum(keep=True)
    rest = (kept * graph.features).double().sum(keep=True)
    none = rest.equals(0).double()
    ratio = (total * (1 - none) + none) / (rest + none)
    return ratio.at_most(graph.width / _count_kept(graph.width, percentile)).exp().single()


def _energy_in(graph: Graph, features: Tensor, head: Head | None = None) -> Tensor:
    """Free energy of the logits that a linear layer gives, the model's own if no other is named."""
    head = head or graph.need_head()
    return (features @ head.weights.T.astype(np.float32) + head.bias).double().free_energy()


def energy_of(features: Features, head: Head) -> OODScores:
    """Free energy of the logits that a linear layer gives."""
    return free_energy(features.astype(np.float32, copy=False) @ head.weights.T.astype(np.float32, copy=False) + head.bias)


def _energy_of_largest(
    shaped: Callable[[Features, NDArray[np.bool_]], Features], predictions: Predictions, percentile: float
) -> OODScores:
    """The free energy after features were changed, given which of them are the largest."""
    head = predictions.need_head()

    def score(features: Features, rising: Features) -> OODScores:
        return energy_of(shaped(features, _largest(features, rising, percentile)), head)

    return by_sorted_features(predictions, score)


def _pruned(features: Features, kept: NDArray[np.bool_]) -> Features:
    """Single-precision features that are kept, and 0 for the others."""
    # by their bits, in a third of the time of np.where, which takes one of two ways at every feature
    return np.asarray((features.view(np.int32) & -kept.astype(np.int32)).view(np.float32))


def _growth(features: Features, kept: NDArray[np.bool_]) -> Features:
    """By what features grow: e to the power of the sum of all over the sum of those kept, (images, 1)."""
    total = features.sum(axis=1, keepdims=True, dtype=np.float64)
    rest = _pruned(features, kept).sum(axis=1, keepdims=True, dtype=np.float64)
    ratio = np.divide(total, rest, out=np.ones_like(total), where=rest != 0)
    # features that are never negative cannot exceed this; others, whose sum may nearly vanish, are kept finite by it
    most = kept.shape[1] / kept.sum(axis=1, keepdims=True)
    return np.asarray(np.exp(np.minimum(ratio, most)), np.float32)


@dataclass(frozen=True)
class Dice(Fitted):
    """A sparse last linear layer."""

    head: Head

    def __call__(self, predictions: Predictions) -> OODScores:
        """Free energy of the logits that the sparse layer gives."""
        return in_parts(lambda features: energy_of(features, self.head), predictions.need_features())

    def graph(self, graph: Graph) -> Tensor:
        return _energy_in(graph, graph.features, self.head)


def fit_dice(training: Training, *, percentile: float = 70.0) -> Dice:
    """Energy after DICE: without the `percentile` % of the head's weights that contribute least (Sun & Li, 2022).

    The contribution of a weight is itself times the mean training feature; all classes' weights are ranked together. 70 is
    what the authors run on ImageNet; on CIFAR they run 90.
    """
    if not 0 <= percentile <= 100:
        raise BadInput(f"percentile should lie between 0 and 100, got {percentile}")
    head = head_of(training)
    contributions = head.weights * _mean_features(training)
    kept = contributions > np.percentile(contributions, percentile)
    return Dice(Head(np.where(kept, head.weights, 0), head.bias))


DICE = OODDetector("DICE", fit_dice, needs_training=True, presets={"openood": {"percentile": 90.0}})


def _mean_features(training: Training) -> NDArray[np.floating]:
    totals = [block.need_features().sum(axis=0, dtype=np.float64) for block in training.blocks()]
    if not totals:
        raise NotKept("there are no training images to learn from")
    return np.asarray(sum(totals) / len(training))
