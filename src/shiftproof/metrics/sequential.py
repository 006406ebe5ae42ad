"""Drift of a score over time: evidence that may be looked at after every image, with false alarms bounded for ever.

The rank of each new score among a reference and all scores before it is uniform as long as nothing changes, and ranks are
independent of one another (a conformal test; Vovk et al., 2003). Bets against uniform ranks gain nothing on average then, so
that the capital of whoever started with 1 reaches 1 / alpha with a probability of at most alpha, ever (Ville, 1939).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.types import OODScores

Ranks: TypeAlias = NDArray[np.floating]
"""Share of earlier scores that are lower, ties broken by a coin, (images,); uniform from 0 to 1 while nothing changes."""

LINEAR = (0.25, 0.5, 0.75, 0.95)
"""Slopes of bets on scores that shift as a whole, up or down."""

CONTAMINATED = (0.02, 0.1, 0.3, 0.7)
"""Shares of images that bets take to be of another kind, above or below nearly all others."""

STEEP = 20
"""How extreme these are: the density of their ranks is 20 rank^19."""

WIDER = (-0.8, 0.8)
"""Bets on ranks that crowd in the middle, and at both ends."""

BETS = 2 * len(LINEAR) + 2 * len(CONTAMINATED) + len(WIDER)

MOST = 1e300
"""Capital that counts as beyond all doubt."""


def stakes(ranks: Ranks) -> NDArray[np.floating]:
    """What each bet multiplies its stake by at each rank, (..., bets); each is 1 on average over uniform ranks.

    >>> middle = (np.arange(100_000) + 0.5) / 100_000
    >>> bool(np.abs(stakes(middle).mean(axis=0) - 1).max() < 1e-6)
    True
    """
    rank = np.asarray(ranks, np.float64)[..., None]
    sloped = (2 * rank - 1) * np.array([*LINEAR, *(-one for one in LINEAR)])
    shares = np.array(CONTAMINATED)
    above = shares * (STEEP * rank ** (STEEP - 1) - 1)
    below = shares * (STEEP * (1 - rank) ** (STEEP - 1) - 1)
    spread = np.array(WIDER) * (3 * (2 * rank - 1) ** 2 - 1) / 2
    return np.asarray(1 + np.concatenate([sloped, above, below, spread], axis=-1))


class DriftTest:
    """Evidence against a stream being like its reference, image by image.

    Bets are placed for drift that begins at any image: a share 1 / (t (t + 1)) of the capital waits for image t, so that a
    long quiet time costs little of what is noticed later, and nothing of the bound.

    >>> generator = np.random.default_rng(0)
    >>> test = DriftTest(generator.normal(size=500))
    >>> quiet = test.add(generator.normal(size=300), generator.random(300))
    >>> test.evidence < 20, test.alarm_at(20)
    (True, None)
    >>> shifted = test.add(generator.normal(1.5, size=100), generator.random(100))
    >>> 300 < test.alarm_at(20) < 350
    True
    """

    def __init__(self, reference: OODScores) -> None:
        if not len(reference):
            raise BadInput("a drift test needs reference scores")
        if not np.isfinite(reference).all():
            raise BadInput("reference scores should be finite numbers")
        self._seen: list[float] = sorted(np.asarray(reference, np.float64).tolist())
        self._capital = np.zeros(BETS)
        self.ranks: list[float] = []
        self.history: list[float] = []  # the evidence after each image

    @property
    def evidence(self) -> float:
        """The capital: 1 at the start, on average at most 1 while nothing changes."""
        return self.history[-1] if self.history else 1.0

    def add(self, scores: Iterable[float], coins: Iterable[float]) -> list[float]:
        """The ranks of more images, and their part in the evidence; coins, uniform from 0 to 1, break ties."""
        ranks = [self._rank(score, coin) for score, coin in zip(scores, coins, strict=True)]
        for multiples in stakes(np.array(ranks)):
            images = len(self.history) + 1
            self._capital += 1 / (images * (images + 1) * BETS)
            self._capital *= multiples
            np.minimum(self._capital, MOST, out=self._capital)
            self.history.append(float(self._capital.sum()) + 1 / (images + 1))
        self.ranks += ranks
        return ranks

    def _rank(self, score: float, coin: float) -> float:
        below, up_to = bisect_left(self._seen, score), bisect_right(self._seen, score)
        rank = (below + coin * (up_to - below + 1)) / (len(self._seen) + 1)
        insort(self._seen, score)
        return rank

    def alarm_at(self, level: float) -> int | None:
        """The first image, counted from 1, after which the evidence reached `level`; None: it never did."""
        return next((image for image, evidence in enumerate(self.history, 1) if evidence >= level), None)


def likely_start(ranks: Sequence[float] | Ranks) -> int:
    """The image, counted from 1, from which on the ranks speak most against uniform ones, by any one bet.

    >>> likely_start([0.5, 0.4, 0.6, 0.5, 0.99, 0.98, 0.99])
    5
    """
    gains = np.log(stakes(np.asarray(ranks)))
    to_the_end = np.cumsum(gains[::-1], axis=0)[::-1]
    return int(np.unravel_index(int(to_the_end.argmax()), to_the_end.shape)[0]) + 1
