"""How well OOD scores separate in-distribution (ID) from out-of-distribution (OOD) images: AUROC, AUPR, FPR at a TPR.

Equal scores are never split: no threshold could.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import LEAST_CLUSTERS, Groups
from shiftproof.metrics.resampling import Shares, interval_of_shares
from shiftproof.types import OODScores

Counts: TypeAlias = NDArray[np.integer]
"""Images of one side at each score, lowest score first, (scores,); or of many drawings at once, (drawings, scores)."""


class ScoreCounts(NamedTuple):
    """Each score that occurs, lowest first, and the images that have it."""

    scores: OODScores
    id_counts: Counts
    ood_counts: Counts


def score_counts(in_scores: OODScores, out_scores: OODScores) -> ScoreCounts:
    """Images of either side at each score, lowest first; equal scores are one entry, whatever their precision.

    >>> counts = score_counts(np.array([0.1, 0.5, 0.5]), np.array([0.9, 0.5]))
    >>> counts.scores.tolist(), counts.id_counts.tolist(), counts.ood_counts.tolist()
    ([0.1, 0.5, 0.9], [1, 2, 0], [0, 1, 1])
    """
    sides = [checked_scores(in_scores, "in-distribution"), checked_scores(out_scores, "out-of-distribution")]
    runs = np.concatenate([np.sort(side) for side in sides])
    # a stable sort merges two ascending runs in one pass: several times as fast as an argsort, and no bit of a score is lost
    order = np.argsort(runs, kind="stable")
    merged = runs[order]
    last = np.flatnonzero(np.append(merged[1:] != merged[:-1], True))
    ood_counts = np.diff(np.cumsum(order >= len(sides[0]))[last], prepend=0)
    return ScoreCounts(merged[last], np.diff(last, prepend=-1) - ood_counts, ood_counts)


def checked_scores(scores: OODScores, side: str) -> OODScores:
    """The scores of one side, refused where they cannot be put in order; infinities can."""
    scores = np.asarray(scores)
    if scores.ndim != 1 or not len(scores):
        raise BadInput(f"{side} scores should be (images,) of at least one image, got shape {scores.shape}")
    if scores.dtype.kind not in "biuf":
        raise BadInput(f"{side} scores should be numbers, got {scores.dtype}")
    strange = int(np.isnan(scores).sum())
    if strange:
        raise BadInput(f"{strange} of {len(scores)} {side} scores are nan; what cannot be scored should be left out first")
    return scores


def checked_share(share: float, name: str) -> float:
    """A share of images that is more than none."""
    if not 0 < share <= 1:
        raise BadInput(f"{name} should lie above 0 and be at most 1, such as 0.95, got {share}")
    return share


def at_least(share: float, images: int) -> int:
    """The fewest images that are at least this share of all.

    >>> at_least(0.07, 100), 0.07 * 100  # rounding up the product would ask for one more
    (7, 7.000000000000001)
    """
    guess = int(share * images)
    return next(count for count in range(max(guess - 1, 0), images + 1) if count / images >= share)


def counted_auroc(id_counts: Counts, ood_counts: Counts) -> NDArray[np.floating]:
    """AUROC from the images at each score, one number a drawing."""
    below = np.cumsum(id_counts, axis=-1) - id_counts
    half_wins = (ood_counts * (2 * below + id_counts)).sum(axis=-1)
    return np.asarray(half_wins / (2 * id_counts.sum(axis=-1) * ood_counts.sum(axis=-1)))


def counted_average_precision(negative: Counts, positive: Counts) -> NDArray[np.floating]:
    """Average precision from the images at each score, positive ones to be found at the high end, one number a drawing."""
    precisions = _precisions(negative, positive)
    return np.asarray((positive * precisions).sum(axis=-1) / positive.sum(axis=-1))


def counted_precision_area(negative: Counts, positive: Counts) -> NDArray[np.floating]:
    """Area of the trapezoids under precision against recall, from precision 1 at recall 0, one number a drawing."""
    precisions = _precisions(negative, positive)
    stricter = np.append(precisions[..., 1:], np.ones_like(precisions[..., :1]), axis=-1)
    return np.asarray((positive * (precisions + stricter)).sum(axis=-1) / (2 * positive.sum(axis=-1)))


def counted_fpr(negative: Counts, positive: Counts, *, tpr: float) -> NDArray[np.floating]:
    """Share of the negative images at or above the highest score that finds at least `tpr` of the positive ones."""
    images = int(positive.sum(axis=-1).max())  # the same in every drawing
    below = np.cumsum(positive, axis=-1) - positive
    place = (below <= images - at_least(tpr, images)).sum(axis=-1, keepdims=True) - 1
    flagged = np.take_along_axis(at_or_above(negative), place, axis=-1)[..., 0]
    return np.asarray(flagged / negative.sum(axis=-1))


def at_or_above(counts: Counts) -> Counts:
    """Images that have each score or a higher one.

    >>> at_or_above(np.array([5, 0, 2]))
    array([7, 2, 2])
    """
    return np.cumsum(counts[..., ::-1], axis=-1)[..., ::-1]


def _precisions(negative: Counts, positive: Counts) -> NDArray[np.floating]:
    """Share of positive images among those at or above each score; 1 where there are none, as at the start of the curve."""
    found = at_or_above(positive)
    flagged = found + at_or_above(negative)
    if flagged[..., -1].all():  # fewest at the highest score
        return np.asarray(found / flagged)
    return np.asarray(np.divide(found, flagged, out=np.ones(flagged.shape), where=flagged > 0))


Side: TypeAlias = Literal["out", "in"]
Area: TypeAlias = Literal["average-precision", "trapezoid"]

_AREAS = {"average-precision": counted_average_precision, "trapezoid": counted_precision_area}


class Separation(NamedTuple):
    """What is usually printed of one detector on two datasets."""

    auroc: float
    aupr_out: float
    aupr_in: float
    fpr: float  # ID images flagged when enough OOD ones are
    fpr_in: float  # OOD images let through when enough ID ones are


def auroc(in_scores: OODScores, out_scores: OODScores) -> float:
    """Chance that an OOD image has a higher score than an ID one; equal scores count half.

    1 is perfect, 0.5 is chance.

    >>> auroc(np.array([0.1, 0.5]), np.array([0.5, 0.9]))  # of four pairs three are won and one is a tie
    0.875
    """
    counts = score_counts(in_scores, out_scores)
    return float(counted_auroc(counts.id_counts, counts.ood_counts))


def aupr(in_scores: OODScores, out_scores: OODScores, *, positive: Side = "out", area: Area = "average-precision") -> float:
    """Mean precision over the positive images, each at the threshold that just finds it.

    1 is perfect; chance is the positive images' share of all. With `positive="in"` ID images are to be found by low
    scores. `area="trapezoid"` joins the points of the curve by straight lines, as OpenOOD and pytorch-ood do, which
    promises more than any threshold keeps where images are few (Davis & Goadrich, 2006).

    >>> id_scores, ood_scores = np.array([0.1, 0.2, 0.6]), np.array([0.5, 0.9])
    >>> round(aupr(id_scores, ood_scores), 4)  # precision 1 of 1 and 2 of 3
    0.8333
    >>> round(aupr(id_scores, ood_scores, positive="in"), 4)  # 1 of 1, 2 of 2 and 3 of 4
    0.9167
    >>> aupr(id_scores, ood_scores, area="trapezoid")  # (1 + 1) / 4 and (1 / 2 + 2 / 3) / 4
    0.7916666666666666
    """
    precision = precision_area(area, positive)
    counts = score_counts(in_scores, out_scores)
    return precision(counts.id_counts, counts.ood_counts)


def precision_area(area: Area, positive: Side = "out") -> Callable[[Counts, Counts], float]:
    """What gives the area from the ID and OOD images at each score, lowest first."""
    of_counts = precision_areas(area, positive)
    return lambda id_counts, ood_counts: float(of_counts(id_counts, ood_counts))


def precision_areas(area: Area, positive: Side = "out") -> Callable[[Counts, Counts], NDArray[np.floating]]:
    """The same of many drawings at once, one number a drawing."""
    of_counts = _area(area)
    if is_out(positive):
        return of_counts
    return lambda id_counts, ood_counts: of_counts(ood_counts[..., ::-1], id_counts[..., ::-1])


def fpr_at_tpr(in_scores: OODScores, out_scores: OODScores, *, tpr: float = 0.95, positive: Side = "out") -> float:
    """Share of ID images flagged when at least `tpr` of the OOD ones are.

    0 is perfect. With `positive="in"` it is the share of OOD images let through when at least `tpr` of the ID ones
    are; both are printed under the same name in the literature, and differ.

    >>> id_scores, ood_scores = np.array([0.1, 0.2, 0.3, 0.8]), np.array([0.5, 0.9])
    >>> fpr_at_tpr(id_scores, ood_scores, tpr=1.0)
    0.25
    >>> fpr_at_tpr(id_scores, ood_scores, tpr=1.0, positive="in")
    0.5
    """
    checked_share(tpr, "tpr")
    id_scores, ood_scores = checked_scores(in_scores, "in-distribution"), checked_scores(out_scores, "out-of-distribution")
    if is_out(positive):
        place = len(ood_scores) - at_least(tpr, len(ood_scores))
        return float((id_scores >= np.partition(ood_scores, place)[place]).mean())
    place = at_least(tpr, len(id_scores)) - 1
    return float((ood_scores <= np.partition(id_scores, place)[place]).mean())


def share_discarded(kept_scores: OODScores, out_scores: OODScores, *, rejected: float = 0.75) -> float:
    """Share of images worth keeping that are rejected at the threshold that rejects at least `rejected` of the OOD ones.

    0 is perfect. The threshold is the highest OOD image's score that suffices, never one between two of them; images
    that reach it are rejected. Of correct predictions as `kept_scores` it is the number of Yang et al. (2024).

    >>> share_discarded(np.array([1, 2, 3, 5]), np.array([2, 4, 6, 8]))  # three of the four reach 4, and so does the 5
    0.25
    """
    return fpr_at_tpr(kept_scores, out_scores, tpr=checked_share(rejected, "rejected"))


def separation(
    in_scores: OODScores, out_scores: OODScores, *, tpr: float = 0.95, area: Area = "average-precision"
) -> Separation:
    """AUROC, AUPR and FPR, OOD and ID positive, all from one sort of the scores.

    >>> separation(np.array([0.1, 0.5]), np.array([0.5, 0.9]))
    Separation(auroc=0.875, aupr_out=0.8333333333333333, aupr_in=0.8333333333333333, fpr=0.5, fpr_in=0.5)
    """
    checked_share(tpr, "tpr")
    of_counts = _area(area)
    _, id_counts, ood_counts = score_counts(in_scores, out_scores)
    # seen from the other end, ID images are those to be found
    ends = (id_counts, ood_counts), (ood_counts[::-1], id_counts[::-1])
    return Separation(
        float(counted_auroc(id_counts, ood_counts)),
        *(float(of_counts(*sides)) for sides in ends),
        *(float(counted_fpr(*sides, tpr=tpr)) for sides in ends),
    )


def _area(area: Area) -> Callable[[Counts, Counts], NDArray[np.floating]]:
    if area not in _AREAS:
        raise BadInput(f"area should be one of {', '.join(_AREAS)}, got {area!r}")
    return _AREAS[area]


def is_out(positive: Side) -> bool:
    if positive not in ("out", "in"):
        raise BadInput(f"positive should be 'out' or 'in', got {positive!r}")
    return positive == "out"


class RocCurve(NamedTuple):
    """Shares flagged as the threshold falls, from none, (0, 0), to all, (1, 1)."""

    false_alarms: NDArray[np.floating]  # share of ID images, (points,)
    found: NDArray[np.floating]  # share of OOD images, (points,)


def roc_curve(in_scores: OODScores, out_scores: OODScores, *, points: int = 200) -> RocCurve:
    """Share of OOD images found against share of ID images flagged, from none to all.

    Only corners are kept. Where there are more than `points` of them, the way along the curve is cut into half as many
    stretches, and the first and last corner of each stay: the true curve lies within 1.5 / `points` of the one drawn.

    >>> curve = roc_curve(np.array([0.1, 0.2, 0.6]), np.array([0.5, 0.9]))
    >>> curve.false_alarms.round(2).tolist(), curve.found.tolist()
    ([0.0, 0.0, 0.33, 0.33, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])
    """
    if points < 4:
        raise BadInput(f"a curve needs at least 4 points, got {points}")
    _, id_counts, ood_counts = score_counts(in_scores, out_scores)
    across, up = (np.cumsum(np.append(0, side[::-1])) for side in (id_counts, ood_counts))
    # whether the next step goes another way than the last: exact, in whole images
    turns = np.diff(across)[:-1] * np.diff(up)[1:] != np.diff(across)[1:] * np.diff(up)[:-1]
    corner = np.concatenate([[True], turns, [True]])
    false_alarms, found = across[corner] / across[-1], up[corner] / up[-1]
    if len(found) > points:
        stretches = points // 2
        stretch = np.minimum((false_alarms + found) / 2 * stretches, stretches - 1).astype(int)
        begins = np.append(True, stretch[1:] != stretch[:-1])
        kept = begins | np.append(begins[1:], True)
        false_alarms, found = false_alarms[kept], found[kept]
    return RocCurve(false_alarms, found)


class DecomposedAuroc(NamedTuple):
    """AUROC of OOD images against ID ones that are classified correctly, and against those that are misclassified."""

    correct: float  # nan where no ID image is
    wrong: float  # nan where no ID image is
    accuracy: float

    @property
    def whole(self) -> float:
        """AUROC against all ID images, which is what the parts add up to.

        >>> round(DecomposedAuroc(86.9, 54.7, accuracy=0.7613).whole, 1)  # published of MSP and a ResNet-50
        79.2
        """
        weighed = ((self.accuracy, self.correct), (1 - self.accuracy, self.wrong))
        return sum(share * part for share, part in weighed if share)


def decomposed_auroc(in_scores: OODScores, correct: NDArray[np.bool_], out_scores: OODScores) -> DecomposedAuroc:
    """AUROC against the ID images classified correctly and against those misclassified.

    Misclassified images get high scores too, so a detector may detect new classes or only failures: the parts tell which.

    >>> decomposed_auroc(np.array([1, 2, 6]), np.array([True, True, False]), np.array([5, 7]))
    DecomposedAuroc(correct=1.0, wrong=0.5, accuracy=0.6666666666666666)
    """
    if correct.shape != np.shape(in_scores) or correct.dtype != np.bool_:
        raise BadInput(
            f"correct should say yes or no of each of {len(in_scores)} ID images, got {correct.dtype} {correct.shape}"
        )
    right, wrong = (auroc(in_scores[chosen], out_scores) if chosen.any() else float("nan") for chosen in (correct, ~correct))
    return DecomposedAuroc(right, wrong, float(correct.mean()))


def pooled_auroc(parts: Sequence[float], images: Sequence[int]) -> float:
    """AUROC of several OOD groups taken together, from that of each against the same ID images.

    >>> round(pooled_auroc([86.4, 86.9], [11_935, 31_807]), 2)  # misclassified and new classes: failures, as published
    86.76
    """
    if len(parts) != len(images) or not sum(images):
        raise BadInput(f"each part needs its number of images, some of them above 0, got {len(parts)} and {list(images)}")
    return float(np.average(parts, weights=images))


def mid_ranks(scores: OODScores) -> NDArray[np.floating]:
    """Place of each image by OOD score, 1 the lowest; equal scores share the mean of their places.

    >>> mid_ranks(np.array([0.3, 0.1, 0.3, 0.9]))
    array([2.5, 1. , 2.5, 4. ])
    """
    scores = checked_scores(scores, "image")
    return images_below(scores, scores) + 0.5


def rank_shift(first_scores: OODScores, second_scores: OODScores) -> NDArray[np.floating]:
    """Rank of each image by the second detector minus that by the first, as a share of all images, (images,).

    Above 0 the second scores it higher. The shifts of all images add up to 0.

    >>> rank_shift(np.array([1, 2, 3, 4]), np.array([10, 40, 20, 20]))  # from rank 2 to 4, from 4 to 2.5
    array([ 0.   ,  0.5  , -0.125, -0.375])
    """
    if np.shape(first_scores) != np.shape(second_scores):
        raise BadInput(f"two detectors score the same images, got {len(first_scores)} and {len(second_scores)}")
    return (mid_ranks(second_scores) - mid_ranks(first_scores)) / len(first_scores)


def rank_shift_interval(
    first_scores: OODScores,
    second_scores: OODScores,
    group: NDArray[np.bool_],
    *,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the mean `rank_shift` of the images of a group; None of fewer than `LEAST_CLUSTERS` clusters in it.

    An image counts twice: by its own shift, and by the places it gives or takes to the others. Student's t by cluster,
    corrected for skew.

    >>> generator = np.random.default_rng(0)
    >>> first = generator.normal(size=200)
    >>> group = np.arange(200) < 50
    >>> second = first + 1.0 * group + generator.normal(size=200)
    >>> low, high = rank_shift_interval(first, second, group)
    >>> bool(low < rank_shift(first, second)[group].mean() < high)
    True
    """
    return rank_shift_intervals(first_scores, second_scores, [group], clusters=clusters, level=level)[0]


def rank_shift_intervals(
    first_scores: OODScores,
    second_scores: OODScores,
    members: Sequence[NDArray[np.bool_]],
    *,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> list[tuple[float, float] | None]:
    """The same of several groups of the same images, which are sorted once."""
    shift, images = rank_shift(first_scores, second_scores), len(first_scores)
    groups = np.arange(images) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(groups)
    sides = [np.asarray(scores) for scores in (first_scores, second_scores)]
    orders = [np.argsort(scores) for scores in sides]

    def interval(group: NDArray[np.bool_]) -> tuple[float, float] | None:
        group = np.asarray(group, dtype=bool)
        if group.shape != shift.shape or not group.any():
            raise BadInput(f"group should say of each of {len(shift)} images whether it belongs, and one at least should")
        seen = float(shift[group].mean())
        if len(np.unique(groups[group])) < LEAST_CLUSTERS:
            return None
        # the share of the group that each image has below it, by which it lowers their places
        below = [
            below_in_order(scores, order, scores[order[group[order]]]) / group.sum()
            for scores, order in zip(sides, orders, strict=True)
        ]
        lowered = below[0] - below[1]
        own = np.where(group, shift - seen, 0.0) / group.sum()
        changes = np.asarray(np.bincount(groups, own + (lowered - lowered.mean()) / images), dtype=float)
        shares = Shares(changes, sizes, np.arange(len(sizes)), float(images**2 / (sizes**2).sum()))
        return interval_of_shares(seen, [shares], level=level) or (seen, seen)

    return [interval(group) for group in members]


def images_below(scores: OODScores, others: OODScores) -> NDArray[np.floating]:
    """How many of the others lie below each score; equal ones count half.

    >>> images_below(np.array([0.5, 0.9]), np.array([0.5, 0.1]))
    array([1.5, 2. ])
    """
    return below_in_order(scores, np.argsort(scores), np.sort(others))


def below_in_order(scores: OODScores, order: NDArray[np.intp], rising: OODScores) -> NDArray[np.floating]:
    """The same of scores whose order is known and others that rise."""
    # looked up in their own order they lie near one another: several times as fast
    below, not_above = (np.searchsorted(rising, scores[order], side) for side in ("left", "right"))
    found = np.empty(len(order))
    found[order] = (below + not_above) / 2
    return found
