"""A linear head fitted to features, without torch: logistic or ridge regression, the penalty chosen on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax

from shiftproof.errors import BadInput
from shiftproof.runs.workers import Workers

Targets = NDArray[np.floating]
"""What rows should be predicted as, (rows, classes); each row adds up to 1, or of several labels each is 0 or 1."""

PENALTIES = tuple(10.0**exponent for exponent in np.arange(1.0, -5.01, -0.5).tolist())
"""L2 penalties that are tried, the strongest first."""

WORSE = 2
"""Penalties in a row, none of them the best on held-out rows, after which no weaker one is tried."""

BLOCK = 4096
"""Rows that are computed with at a time, in double precision."""

DOUBLED_BYTES = 2**30
"""Bytes of features that are turned into double precision once; more are turned block by block at every step."""

Kind = Literal["logistic", "ridge"]


class Linear(NamedTuple):
    """A linear layer: logits = features @ weight.T + bias."""

    weight: NDArray[np.floating]  # (classes, features)
    bias: NDArray[np.floating]  # (classes,)

    def __call__(self, features: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.asarray(features @ self.weight.T + self.bias)


class Surprise(NamedTuple):
    """How far logits are from targets."""

    losses: NDArray[np.floating]  # (rows,)
    slopes: NDArray[np.floating]  # (rows, classes): their derivatives by the logits


def cross_entropy(logits: NDArray[np.floating], targets: Targets) -> Surprise:
    """Of the classes' probabilities by softmax, which the labels of a row share."""
    logs = log_softmax(logits, axis=1)
    return Surprise(-(targets * logs).sum(axis=1), np.exp(logs) - targets)


def binary_cross_entropies(logits: NDArray[np.floating], targets: Targets) -> Surprise:
    """The sum over classes, each a yes or no of its own by a sigmoid: a row may have several labels, or none.

    >>> found = binary_cross_entropies(np.array([[0.0, np.log(3)]]), np.array([[1.0, 0.0]]))  # -log 1/2 - log 1/4
    >>> found.losses.round(4).tolist(), found.slopes.round(2).tolist()
    ([2.0794], [[-0.5, 0.75]])
    """
    return Surprise((np.logaddexp(0, logits) - targets * logits).sum(axis=1), expit(logits) - targets)


@dataclass(frozen=True)
class Design:
    """Rows to fit a head to, or to score one on."""

    features: NDArray[np.floating]  # (rows, features)
    targets: Targets
    weights: NDArray[np.floating]  # (rows,); they add up to 1
    multi_label: bool = False  # whether every class is a question of its own

    @property
    def surprise(self) -> Callable[[NDArray[np.floating], Targets], Surprise]:
        """The loss of rows like these."""
        return binary_cross_entropies if self.multi_label else cross_entropy

    def __len__(self) -> int:
        return len(self.features)

    def blocks(self) -> Iterator[tuple[NDArray[np.float64], Targets, NDArray[np.floating]]]:
        """The rows, some at a time."""
        for start in range(0, len(self), BLOCK):
            part = slice(start, start + BLOCK)
            yield self.features[part].astype(np.float64, copy=False), self.targets[part], self.weights[part]

    def in_double(self) -> Design:
        """The same in double precision, where that fits into memory."""
        return replace(self, features=self.features.astype(np.float64)) if self.features.nbytes < DOUBLED_BYTES else self

    def loss(self, head: Linear) -> float:
        """Cross-entropy of the head's probabilities: the mean over rows by their weights."""
        return sum(float(w @ self.surprise(head(x), t).losses) for x, t, w in self.blocks())

    def accuracy(self, head: Linear) -> float:
        """Share of rows, by their weights, whose highest logit is one of their classes."""
        right = sum(float(w[t[np.arange(len(t)), head(x).argmax(axis=1)] > 0].sum()) for x, t, w in self.blocks())
        return round(right, 12)  # so that heads that are right on the same rows have the same


class Scaling(NamedTuple):
    """Makes the mean of every feature 0 and the mean of their variances 1: a penalty means the same for every network."""

    mean: NDArray[np.float64]
    spread: float

    @classmethod
    def of(cls, design: Design) -> Scaling:
        mean = sum((w @ x for x, _, w in design.blocks()), np.zeros(design.features.shape[1]))
        variance = sum(float(w @ ((x - mean) ** 2).mean(axis=1)) for x, _, w in design.blocks())
        return cls(mean, float(np.sqrt(variance)) or 1.0)

    def scaled(self, head: Linear) -> Linear:
        """The head that does to scaled features what this one does to features."""
        return Linear(head.weight * self.spread, head.bias + head.weight @ self.mean)

    def unscaled(self, head: Linear) -> Linear:
        """The reverse."""
        weight = head.weight / self.spread
        return Linear(weight, head.bias - weight @ self.mean)


def fit_logistic(design: Design, l2: float, *, start: Linear | None = None) -> Linear:
    """Multinomial logistic regression: the least mean cross-entropy plus l2 / 2 times the squared weights, by L-BFGS.

    Of rows with several labels it is a logistic regression for each class. The penalty is on the weights of scaled features,
    not on the bias. A `start` near the optimum saves time.
    """
    scaling, (classes, features) = Scaling.of(design), (design.targets.shape[1], design.features.shape[1])

    def value_and_slope(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        table = flat.reshape(classes, features + 1)
        scaled = Linear(table[:, :-1], table[:, -1])
        head = scaling.unscaled(scaled)
        value, slope = 0.5 * l2 * float((scaled.weight**2).sum()), np.zeros_like(table)
        for x, t, w in design.blocks():
            losses, slopes = design.surprise(head(x), t)
            value += float(w @ losses)
            error = w[:, None] * slopes
            slope[:, :-1] += error.T @ x
            slope[:, -1] += error.sum(axis=0)
        slope[:, :-1] = (slope[:, :-1] - np.outer(slope[:, -1], scaling.mean)) / scaling.spread + l2 * scaled.weight
        return value, slope.ravel()

    first = scaling.scaled(start) if start else Linear(np.zeros((classes, features)), np.zeros(classes))
    found = minimize(
        value_and_slope,
        np.column_stack(first).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 1000, "gtol": 1e-6, "ftol": 1e-12},
    )
    table = found.x.reshape(classes, features + 1)
    return scaling.unscaled(Linear(table[:, :-1], table[:, -1]))


def fit_ridge(design: Design, penalties: Sequence[float]) -> Iterator[Linear]:
    """Ridge regression to the targets for each penalty: the least mean squared error plus l2 times the squared weights.

    The penalty is as that of `fit_logistic`. The features' covariance is diagonalised once for all of them.
    """
    scaling, features = Scaling.of(design), design.features.shape[1]
    middle = sum((w @ t for _, t, w in design.blocks()), np.zeros(design.targets.shape[1]))
    square, product = np.zeros((features, features)), np.zeros((features, len(middle)))
    for x, t, w in design.blocks():
        scaled = (x - scaling.mean) / scaling.spread
        square += (scaled * w[:, None]).T @ scaled
        product += (scaled * w[:, None]).T @ (t - middle)
    values, axes = eigh(square)
    along = axes.T @ product
    for l2 in penalties:
        yield scaling.unscaled(Linear((axes @ (along / (values[:, None] + l2))).T, middle))


def as_logits(head: Linear, held_out: Design) -> Linear:
    """The head times the one number that makes its outputs the best logits on held-out rows."""
    found = minimize_scalar(
        lambda log: held_out.loss(Linear(head.weight * np.exp(log), head.bias * np.exp(log))),
        bounds=(-3.0, 8.0),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return Linear(head.weight * np.exp(found.x), head.bias * np.exp(found.x))


class Tried(NamedTuple):
    """A penalty, and how the head that was fitted with it does on held-out rows."""

    l2: float
    loss: float
    accuracy: float


class Fit(NamedTuple):
    """Fits for a worker process: one for each penalty, each begun where the last one ended."""

    training: Design
    held_out: Design
    kind: Kind
    penalties: tuple[float, ...]
    start: Linear | None = None


def fit(job: Fit) -> tuple[list[NDArray[np.generic]], list[Tried]]:
    """Weight and bias of the head for each penalty, and how it does."""
    training, held_out = job.training.in_double(), job.held_out.in_double()
    heads = _logistic(training, job.penalties, job.start) if job.kind == "logistic" else fit_ridge(training, job.penalties)
    found = [head if job.kind == "logistic" else as_logits(head, held_out) for head in heads]
    told = [Tried(l2, held_out.loss(head), held_out.accuracy(head)) for l2, head in zip(job.penalties, found, strict=True)]
    return [part for head in found for part in head], told


def _logistic(training: Design, penalties: Sequence[float], start: Linear | None) -> Iterator[Linear]:
    for l2 in penalties:
        start = fit_logistic(training, l2, start=start)
        yield start


@dataclass(frozen=True)
class FittedHead:
    """The head with the penalty that is best on held-out rows, and all that were tried."""

    head: Linear
    l2: float
    tried: tuple[Tried, ...]


def fit_head(
    training: Design,
    held_out: Design,
    *,
    kind: Kind = "logistic",
    penalties: Sequence[float] = PENALTIES,
    advance: Callable[[int], None] = lambda _: None,
) -> FittedHead:
    """The head whose penalty, of these in falling order, gives the least loss on held-out rows.

    It is fitted in a worker process, on one thread unless the environment says otherwise, so that the same rows give the
    same bytes however many cores there are and whatever else they do. `advance` is told of penalties that are done.
    """
    if not all(np.isfinite(design.features).all() for design in (training, held_out)):
        raise BadInput(
            "some features of the model are not finite numbers, so the loss is none either; look at its preprocessing"
        )
    heads: list[Linear] = []
    tried: list[Tried] = []
    # ridge regression has the work in common, logistic regression may stop before the weakest penalties
    steps = [tuple(penalties)] if kind == "ridge" else [(l2,) for l2 in penalties]
    with Workers(1) as pool:
        for step in steps:
            job = Fit(training, held_out, kind, step, heads[-1] if heads else None)
            for block in pool.blocks(fit, [job]):
                arrays = [np.array(part) for part in block.batch]
                heads += map(Linear, arrays[::2], arrays[1::2])
                tried += block.said
            advance(len(step))
            losses = [one.loss for one in tried]
            if len(losses) - 1 - int(np.argmin(losses)) >= WORSE:
                break
    best = int(np.argmin([one.loss for one in tried]))
    advance(len(penalties) - len(tried))
    return FittedHead(heads[best], tried[best].l2, tuple(tried))
