"""Confidence intervals of AUROCs, and whether detectors differ on the same images (DeLong et al., 1988).

Each image has a placement among those of the other side, and the placements' spread is that of the AUROC. They come from
sorted scores, not from all pairs (Sun & Xu, 2014). Images of one cluster, a photo or a clip, are one unit: their placements
are summed before they are squared, and what a cluster has on both sides counts together (Obuchowski, 1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import DRAWS, LEAST_CLUSTERS, Groups, simultaneous_differences, student_quantile, tail_of
from shiftproof.metrics.resampling import UNSEEN
from shiftproof.metrics.roc import below_in_order, checked_scores
from shiftproof.types import OODScores

Placements: TypeAlias = NDArray[np.floating]
"""For each image the share of the other side's images it is ranked correctly against, equal scores by half, (images,)."""

_NO_VARIANCE = 1e-15
"""Below it a variance of placements is rounding."""


class AurocDifference(NamedTuple):
    """AUROC of a first detector minus that of a second; neither interval nor p of fewer than `LEAST_CLUSTERS` clusters."""

    difference: float
    interval: tuple[float, float] | None
    p: float | None


def auroc_interval(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the AUROC; None where images come in fewer than `LEAST_CLUSTERS` clusters on a side.

    Wilson's, at the number of independent cases that would tell as much as DeLong's variance says, with Student's t for how
    few cases that variance is known from. Where few images make up all that is lost, as near 0 and 1, their variance is too
    small more often than not, and is raised; such intervals err on the wide side. Clusters are numbers that both sides
    share.

    Where the sides do not overlap, all scores are equal, or placements add up to the same in every cluster, as where each
    photo's copy is farther out by the same, nothing varies. The interval is then the exact one of as many pairs as the
    smaller side has cases, since pairs without a common image are independent. Of a single image on a side it is the whole
    range.

    >>> low, high = auroc_interval(np.arange(40), np.arange(40) + 20)  # 0.875 with a standard error of 0.037
    >>> round(low, 2), round(high, 2)
    (0.78, 0.93)
    >>> copies = np.repeat(np.arange(40), 9)  # nine copies of every image tell no more
    >>> again = auroc_interval(copies, copies + 20, in_clusters=copies, out_clusters=copies + 40)
    >>> bool(np.allclose(again, (low, high), atol=0.001))
    True
    >>> low, high = auroc_interval(np.arange(10), np.arange(10, 20))  # ten pairs, all won: 0.025 ** (1 / 10)
    >>> round(low, 2), high
    (0.69, 1.0)
    """
    tail = tail_of(level)
    one = _placed([in_scores], [out_scores], in_clusters, out_clusters)
    seen, cases = float(one.seen[0]), one.least
    if cases == 1 and not one.clustered:
        return 0.0, 1.0
    if one.too_few:
        return None
    cautious = 0.0 if one.is_flat else float(one.cautious_variances()[0])
    # of the same images on both sides, placements may vary and yet cancel: what is left is rounding
    if cautious < 1e-15:
        alike = float(tail ** (1 / cases))
        return seen * alike, 1 - (1 - seen) * alike
    if seen * (1 - seen) < 1e-12:
        return 0.0, 1.0  # one side is at its end, and yet placements differ: rounding alone
    independent = seen * (1 - seen) / cautious
    quantile = student_quantile(1 - tail, one.degrees()[0])
    weight = independent + quantile**2
    middle = (seen * independent + quantile**2 / 2) / weight
    half = quantile * float(np.sqrt(seen * (1 - seen) * independent + quantile**2 / 4)) / weight
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def auroc_covariance(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
) -> NDArray[np.floating]:
    """Covariances of the AUROCs of several detectors on the same images, (detectors, detectors).

    Scores are (detectors, images); clusters are numbers that both sides share.

    >>> id_scores, ood_scores = np.array([[1, 2, 3, 5], [1, 2, 3, 4]]), np.array([[4, 6, 7, 8], [5, 6, 7, 8]])
    >>> auroc_covariance(id_scores, ood_scores).round(4)  # the second is never wrong: its placements are all 1
    array([[0.0078, 0.    ],
           [0.    , 0.    ]])
    """
    if in_scores.ndim != 2 or out_scores.ndim != 2 or len(in_scores) != len(out_scores):
        raise BadInput(f"scores should be (detectors, images) on either side, got {in_scores.shape} and {out_scores.shape}")
    every = _placed(list(in_scores), list(out_scores), in_clusters, out_clusters)
    if every.least < 2:
        raise BadInput("the covariance of AUROCs needs at least two images, and two clusters, on either side")
    return every.covariance


def auroc_difference(
    first_in: OODScores,
    first_out: OODScores,
    second_in: OODScores,
    second_out: OODScores,
    *,
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    level: float = 0.95,
) -> AurocDifference:
    """How much better the first detector separates the same images than the second, with a two-sided p-value.

    The p-value is the chance of a difference at least this large if both were equally good. Where all pairs of images differ
    alike, as those of two detectors with the same order do, interval and p-value are the exact ones of as many independent
    pairs as the smaller side has cases; of a single image on a side they say nothing, the whole range and 1.

    >>> id_scores, ood_scores = np.arange(10), np.arange(10, 20)
    >>> found = auroc_difference(id_scores, ood_scores, ood_scores, id_scores)  # always correct against always wrong
    >>> found.difference, found.p == 2 * 0.5**10
    (1.0, True)
    """
    tail = tail_of(level)
    if len(first_in) != len(second_in) or len(first_out) != len(second_out):
        raise BadInput(
            "two detectors are compared on the same images, "
            f"got {len(first_in)} and {len(second_in)} ID, {len(first_out)} and {len(second_out)} OOD"
        )
    both = _placed([first_in, second_in], [first_out, second_out], in_clusters, out_clusters)
    apart = both.differences(np.array([1]), 0, turned=True)
    seen, cases = float(apart.seen[0]), both.least
    if cases == 1 and not both.clustered:
        return AurocDifference(seen, (-1.0, 1.0), 1.0)
    if both.too_few:
        return AurocDifference(seen, None, None)
    if apart.is_flat:
        return _exact_difference(seen, cases, tail)
    error = float(np.sqrt(both.cautious_differences(np.array([1]), 0)[0, 0]))
    degrees = apart.degrees()[0]
    half = student_quantile(1 - tail, degrees) * error
    return AurocDifference(seen, (max(-1.0, seen - half), min(1.0, seen + half)), _two_sided_p(seen / error, degrees))


def auroc_differences(
    in_scores: OODScores,
    out_scores: OODScores,
    *,
    versus: int = 0,
    in_clusters: Groups | None = None,
    out_clusters: Groups | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[AurocDifference]:
    """Every other detector's AUROC minus that of detector `versus`, on the same images, for all comparisons together.

    Scores are (detectors, images). Intervals are simultaneous, and p-values corrected, by the same draws of the largest
    deviation (single-step max-T; see `simultaneous_differences`): an interval leaves out 0 exactly where its p-value is
    below one minus `level`. Detectors that order all images as `versus` does stand apart with the exact interval of
    `auroc_difference`, at a level for so many comparisons.

    >>> generator = np.random.default_rng(0)
    >>> id_scores, ood_scores = generator.normal(size=(3, 200)), generator.normal(1, size=(3, 200))
    >>> ood_scores[2] += 1
    >>> same, better = auroc_differences(id_scores, ood_scores)
    >>> same.p > 0.05 > better.p, same.interval[0] < 0 < better.interval[0]
    (True, True)
    """
    tail_of(level)
    every = _placed(list(in_scores), list(out_scores), in_clusters, out_clusters)
    others = np.delete(np.arange(len(in_scores)), versus)
    apart = every.differences(others, versus)
    if every.too_few or every.least == 1:
        return [AurocDifference(float(seen), None, None) for seen in apart.seen]
    flat = apart.flat()
    exact_tail = (1 - level) / 2 / max(len(others), 1)
    found = [_exact_difference(float(seen), every.least, exact_tail, asked=len(others)) for seen in apart.seen]
    if flat.all():
        return found
    together = simultaneous_differences(
        apart.seen[~flat],
        every.cautious_differences(others[~flat], versus),
        degrees_of_freedom=float(apart.degrees()[~flat].min()),
        level=level,
        draws=draws,
        seed=seed,
    )
    for place, one in zip(np.flatnonzero(~flat).tolist(), together, strict=True):
        low, high = one.interval
        found[place] = AurocDifference(one.difference, (max(-1.0, low), min(1.0, high)), one.p)
    return found


def placements(in_scores: OODScores, out_scores: OODScores) -> tuple[Placements, Placements]:
    """Share of OOD images above each ID one, and of ID images below each OOD one.

    The mean of either is the AUROC.

    >>> placements(np.array([0.1, 0.5]), np.array([0.5, 0.9]))
    (array([1.  , 0.75]), array([0.75, 1.  ]))
    """
    id_scores, ood_scores = checked_scores(in_scores, "in-distribution"), checked_scores(out_scores, "out-of-distribution")
    id_order, ood_order = np.argsort(id_scores), np.argsort(ood_scores)
    above = 1 - below_in_order(id_scores, id_order, ood_scores[ood_order]) / len(ood_scores)
    return above, below_in_order(ood_scores, ood_order, id_scores[id_order]) / len(id_scores)


@dataclass(frozen=True)
class _Side:
    """Placements of one side's images by several detectors, and the cluster of each image."""

    placed: NDArray[np.floating]  # (detectors, images), or differences of such
    numbers: Groups | None  # of the clusters, sorted, (clusters,); None where every image is a cluster of its own
    groups: Groups | None  # place of each image's cluster among them, (images,)

    @classmethod
    def of(cls, placed: NDArray[np.floating], clusters: Groups | None) -> _Side:
        if clusters is None:
            return cls(placed, None, None)
        if np.shape(clusters) != placed.shape[1:]:
            raise BadInput(f"every image needs a cluster: {placed.shape[1]} images, clusters of shape {np.shape(clusters)}")
        return cls(placed, *np.unique(clusters, return_inverse=True))

    @property
    def cases(self) -> int:
        return self.placed.shape[1] if self.numbers is None else len(self.numbers)

    @property
    def is_clustered(self) -> bool:
        return bool(self.cases < self.placed.shape[1])

    @cached_property
    def mean(self) -> NDArray[np.floating]:
        """Of all placements, (detectors,)."""
        return np.asarray(self.placed.mean(axis=1))

    @cached_property
    def _centred(self) -> NDArray[np.floating]:
        return np.asarray(self.placed - self.mean[:, None])

    def sums(self, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """Of each cluster, over all images, (detectors, clusters)."""
        if self.groups is None:
            return np.asarray(values / values.shape[1])
        return np.asarray(np.stack([np.bincount(self.groups, row, self.cases) for row in values]) / values.shape[1])

    def deviations(self) -> NDArray[np.floating]:
        """What each case adds to the mean placement's distance from the true value, (detectors, cases)."""
        return self.sums(self._centred)

    def effective_cases(self) -> float:
        """Clusters of equal size that would weigh as these do; as many as there are where their sizes are equal."""
        if self.groups is None:
            return float(self.cases)
        sizes = np.bincount(self.groups)
        return float(sizes.sum() ** 2 / (sizes**2).sum())

    def raised(self, variances: NDArray[np.floating]) -> NDArray[np.floating]:
        """Variances of the mean placement, raised by what may be missing from the few cases that lose, (detectors,)."""
        seen, images = self.mean, self.placed.shape[1]
        losses = self.sums(np.where(seen[:, None] < 0.5, self.placed, 1 - self.placed))
        losing = np.divide(
            losses.sum(axis=1) ** 2, (losses**2).sum(axis=1), out=np.zeros(len(seen)), where=seen * (1 - seen) > 0
        )
        alone = (self._centred**2).mean(axis=1) / images
        design = np.divide(
            variances, alone, out=np.full(len(seen), images / self.effective_cases()), where=alone > _NO_VARIANCE
        )
        outright = seen * (1 - seen) / images * np.maximum(design, 1.0)
        missing = UNSEEN / (UNSEEN + losing)
        return np.asarray(np.maximum(variances, variances + missing * (outright - variances)))


@dataclass(frozen=True)
class _Placed:
    """Several detectors on the same images: placements of both sides, by cluster."""

    id_side: _Side
    ood_side: _Side

    @property
    def seen(self) -> NDArray[np.floating]:
        return self.ood_side.mean

    @property
    def least(self) -> int:
        """Cases of the side that has fewer."""
        return min(self.id_side.cases, self.ood_side.cases)

    @property
    def clustered(self) -> bool:
        return self.id_side.is_clustered or self.ood_side.is_clustered

    @property
    def too_few(self) -> bool:
        return self.clustered and self.least < LEAST_CLUSTERS

    def flat(self) -> NDArray[np.bool_]:
        """Where all placements of either side are alike, or add up to the same in every cluster, (detectors,)."""
        # placements are multiples of half an image's share: less than that is rounding
        alike = (np.ptp(self.id_side.placed, axis=1) < 1e-12) & (np.ptp(self.ood_side.placed, axis=1) < 1e-12)
        return np.asarray(alike | (self.covariance.diagonal() < _NO_VARIANCE))

    @property
    def is_flat(self) -> bool:
        return bool(self.flat().all())

    @cached_property
    def covariance(self) -> NDArray[np.floating]:
        within, across = self._parts
        return np.asarray(within[0] + within[1] + across + across.T)

    def cautious_variances(self) -> NDArray[np.floating]:
        """Variances of the AUROCs, raised where few cases make up all that is lost, (detectors,)."""
        (of_id, of_ood), across = self._parts
        plain = [of_id.diagonal(), of_ood.diagonal()]
        raised = [side.raised(variances) for side, variances in zip((self.id_side, self.ood_side), plain, strict=True)]
        scale = np.sqrt(plain[0] * plain[1])
        shared = np.divide(across.diagonal(), scale, out=np.zeros(len(scale)), where=scale > 0)
        total = raised[0] + raised[1] + 2 * shared * np.sqrt(raised[0] * raised[1])
        return np.asarray(np.maximum(total, self.covariance.diagonal()))

    def cautious_differences(self, others: NDArray[np.integer], versus: int) -> NDArray[np.floating]:
        """Covariances of the differences between some detectors and one, (others, others), from cautious variances."""
        covariance, cautious = self.covariance, self.cautious_variances()
        # rounding apart, a detector that is never wrong has no variance, and none to share
        plain = covariance.diagonal()
        factors = np.sqrt(np.divide(cautious, plain, out=np.ones(len(plain)), where=plain > _NO_VARIANCE))
        raised = covariance * np.outer(factors, factors)
        np.fill_diagonal(raised, cautious)
        apart = (
            raised[np.ix_(others, others)]
            - raised[others, versus][:, None]
            - raised[others, versus]
            + raised[versus, versus]
        )
        # never narrower than the differences' own placements
        own = self.differences(others, versus).covariance.diagonal()
        wider = np.sqrt(np.maximum(own / np.maximum(apart.diagonal(), _NO_VARIANCE), 1.0))
        return np.asarray(apart * np.outer(wider, wider))

    def differences(self, others: NDArray[np.integer], versus: int, *, turned: bool = False) -> _Placed:
        """Placements by some detectors minus those by one; `turned` is the other way round."""
        sign = -1.0 if turned else 1.0
        return _Placed(
            *(
                _Side(sign * (side.placed[others] - side.placed[versus]), side.numbers, side.groups)
                for side in (self.id_side, self.ood_side)
            )
        )

    def degrees(self) -> NDArray[np.floating]:
        """Degrees of freedom of the variances (Satterthwaite, 1946), (detectors,)."""
        (of_id, of_ood), _ = self._parts
        free = [max(side.effective_cases() - 1, 1.0) for side in (self.id_side, self.ood_side)]
        total = of_id.diagonal() + of_ood.diagonal()
        each = of_id.diagonal() ** 2 / free[0] + of_ood.diagonal() ** 2 / free[1]
        least = np.full(len(total), min(free))
        degrees = np.divide(total**2, each, out=least, where=each > 1e-30)
        common = self._common()
        if common is not None and len(common[0]):  # what one cluster has on both sides is no second case
            degrees = np.minimum(degrees, max(sum(free) + 2 - len(common[0]), min(free)))
        return np.asarray(degrees)

    def _common(self) -> tuple[NDArray[np.integer], NDArray[np.integer]] | None:
        """Places of the clusters that both sides have, on either."""
        if self.id_side.numbers is None or self.ood_side.numbers is None:
            return None
        places = np.intersect1d(self.id_side.numbers, self.ood_side.numbers, assume_unique=True, return_indices=True)[1:]
        return places[0], places[1]

    @cached_property
    def _parts(self) -> tuple[tuple[NDArray[np.floating], NDArray[np.floating]], NDArray[np.floating]]:
        """Covariances by the cases of each side, and between the sides, all (detectors, detectors)."""
        deviations = [side.deviations() for side in (self.id_side, self.ood_side)]
        within = [each @ each.T * (each.shape[1] / max(each.shape[1] - 1, 1)) for each in deviations]
        common = self._common()
        if common is None or not len(common[0]):
            return (within[0], within[1]), np.zeros_like(within[0])
        cases = self.id_side.cases + self.ood_side.cases - len(common[0])
        across = deviations[0][:, common[0]] @ deviations[1][:, common[1]].T
        return (within[0], within[1]), across * (cases / max(cases - 1, 1))


def _placed(
    in_scores: Sequence[OODScores],
    out_scores: Sequence[OODScores],
    in_clusters: Groups | None,
    out_clusters: Groups | None,
) -> _Placed:
    each = [placements(*sides) for sides in zip(in_scores, out_scores, strict=True)]
    id_placed, ood_placed = (np.stack(side) for side in zip(*each, strict=True))
    return _Placed(_Side.of(id_placed, in_clusters), _Side.of(ood_placed, out_clusters))


def _exact_difference(seen: float, cases: int, tail: float, asked: int = 1) -> AurocDifference:
    """Of pairs that all differ alike, as many as there are independent ones; p corrected for so many questions."""
    alike = tail ** (1 / cases)
    # equally good detectors differ like this in at most 1 / (1 + difference) of all pairs: the rest must make up for it
    p = min(1.0, asked * 2 * (1 + abs(seen)) ** -cases)
    return AurocDifference(seen, (seen * alike - (1 - alike), seen * alike + (1 - alike)), p)


def _two_sided_p(deviation: float, degrees: float) -> float:
    from scipy.special import stdtr

    return 2 * float(stdtr(degrees, -abs(deviation)))
