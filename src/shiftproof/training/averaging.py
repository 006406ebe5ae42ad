"""Recipes about the weights at the end of training, about the head, and about how much each image counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, UnknownName
from shiftproof.training.recipe import Recipe, Score, Stage, Weights
from shiftproof.types import Sample


def interpolated(start: Weights, ends: Sequence[Weights], score: Score, *, alpha: float) -> Weights:  # noqa: ARG001
    """The weights `alpha` of the way from those before training to those after it.

    >>> before, after = {"bias": np.array([0.0, 4.0])}, {"bias": np.array([2.0, 0.0])}
    >>> interpolated(before, [after], lambda _: 0.0, alpha=0.25)["bias"]
    array([0.5, 3. ])
    """
    (end,) = ends
    return {name: _between(start[name], values, alpha) for name, values in end.items()}


def _check_alpha(*, alpha: float) -> None:
    if not 0 <= alpha <= 1:
        raise BadInput(f"wise-ft: alpha should be 0 (the weights before training) to 1 (those after), got {alpha:g}")


def _between(first: NDArray[np.floating], second: NDArray[np.floating], share: float) -> NDArray[np.floating]:
    if not np.issubdtype(second.dtype, np.floating):
        return second
    mean = (1 - share) * first.astype(np.float64) + share * second.astype(np.float64)
    return mean.astype(second.dtype)


def greedy_soup(start: Weights, ends: Sequence[Weights], score: Score) -> Weights:  # noqa: ARG001
    """The mean of the trainings' weights, each taken in only if the mean does not get worse on the validation split.

    The best comes first.

    >>> ends = [{"bias": np.array([1.0])}, {"bias": np.array([3.0])}, {"bias": np.array([90.0])}]
    >>> greedy_soup({}, ends, lambda weights: -abs(float(weights["bias"][0]) - 2))["bias"]
    array([2.])
    """
    ranked = sorted(range(len(ends)), key=lambda place: -score(ends[place]))
    taken = [ends[ranked[0]]]
    best = score(taken[0])
    for place in ranked[1:]:
        mean = _mean([*taken, ends[place]])
        if (now := score(mean)) >= best:
            taken, best = [*taken, ends[place]], now
    return _mean(taken)


def _mean(several: Sequence[Weights]) -> Weights:
    return {name: _mean_of([one[name] for one in several]) for name in several[0]}


def _mean_of(several: Sequence[NDArray[np.floating]]) -> NDArray[np.floating]:
    kind = several[0].dtype
    if not np.issubdtype(kind, np.floating):  # counters of batch norm and the like
        return several[0]
    return np.asarray(np.mean(several, axis=0, dtype=np.float64), kind)


def balanced(samples: Sequence[Sample], *, by: str) -> NDArray[np.floating]:
    """Weights by which all groups of a class count alike: a group is a class and, where named, the value of a fact.

    >>> cows = [Sample("a", (0,), {"ground": "grass"})] * 3 + [Sample("b", (0,), {"ground": "sand"})]
    >>> balanced(cows, by="ground").round(2).tolist()
    [0.67, 0.67, 0.67, 2.0]
    """
    facts = dict.fromkeys(fact for sample in samples for fact in sample.facts)
    if by and by not in facts:
        raise UnknownName("fact of these images to balance them by", by, facts)
    groups = [(sample.labels, sample.facts.get(by) if by else None) for sample in samples]
    sizes = Counter(groups)
    return np.array([len(samples) / len(sizes) / sizes[group] for group in groups])


LINEAR_PROBE = Recipe(
    title="Linear probe",
    description="Only the last linear layer is trained, on the features as they are.",
    stages=(Stage(1.0, trains="head"),),
)

WISE_FT = Recipe(
    title="WiSE-FT",
    description="Weights are interpolated between those before and after training; alpha 1 is after.",
    cites=("wortsman2022robust",),
    settings={"alpha": 0.5},
    check=_check_alpha,
    finish=interpolated,
)

SOUP = Recipe(
    title="Greedy model soup",
    description="Greedy model soup: mean of the weights of several seeds, each added unless validation accuracy falls.",
    cites=("wortsman2022model",),
    finish=greedy_soup,
    joins_seeds=True,
)

BALANCED = Recipe(
    title="Balanced groups",
    description="All groups of images have equal weight: a group is a class or, where named, a class and a value of a fact.",
    cites=("kirichenko2023last",),
    settings={"by": ""},
    weigh=balanced,
)
