"""Calibration: RMS, expected and debiased calibration errors, the Brier score and reliability diagrams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics.intervals import (
    LEAST_CLUSTERS,
    Groups,
    clopper_pearson,
    cluster_share_interval,
    student_quantile,
    tail_of,
)
from shiftproof.metrics.likelihood import best_right
from shiftproof.metrics.resampling import cluster_mean_interval
from shiftproof.types import Gives, Labels, Logits, Top5

Confidence = NDArray[np.floating]
"""Confidence: probability of the predicted class, (images,), 0 to 1."""


class Reliability(NamedTuple):
    """Points of a reliability diagram, one a bin that has images, least confident first."""

    confidence: NDArray[np.floating]  # mean confidence
    accuracy: NDArray[np.floating]  # share correct
    images: NDArray[np.integer]
    low: NDArray[np.floating]  # exact interval of the accuracy
    high: NDArray[np.floating]


def top_confidence(top5: Top5, gives: Gives) -> Confidence:
    """Confidence: probability of each image's predicted class, from its stored row.

    >>> row = Top5(np.array([[7, 2]]), np.log([[6.0, 3.0]]), log_total=np.log([10.0]))
    >>> top_confidence(row, "logits").round(3)  # 6 of 10
    array([0.6])
    """
    if gives == "scores":
        raise BadInput("a model that gives scores has no confidence; calibration needs logits or probabilities")
    best = top5.scores[:, 0].astype(float)
    if gives == "probabilities":
        strange = best[(best < 0) | (best > 1.01)]
        if len(strange):
            raise BadInput(f"probabilities should lie between 0 and 1, got {strange[0]:.3g}; does the model give logits?")
    else:
        with np.errstate(invalid="ignore"):  # of an infinite score nothing can be said: not a number
            best = np.exp(best - top5.log_total)
    # rounding in a stored score may lift a high confidence above 1
    return np.asarray(np.minimum(best, 1.0))


def to_probabilities(logits: Logits, gives: Gives) -> NDArray[np.floating]:
    """Probabilities of all classes, (images, classes): the softmax of logits, or what was given.

    >>> to_probabilities(np.log([[1.0, 3.0]]), "logits").round(3)
    array([[0.25, 0.75]])
    """
    if gives == "scores":
        raise BadInput("a model that gives scores has no probabilities; calibration needs logits or probabilities")
    if gives == "probabilities":
        return logits
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def rms_calibration_error(
    confidence: Confidence, correct: NDArray[np.bool_], *, bin_size: int = 100, published_bins: bool = False
) -> float:
    """Root mean square gap between confidence and accuracy over bins of `bin_size` images of similar confidence.

    0 is perfect. The last, most confident bin takes the remainder. Images of equal confidence share their accuracy, so that
    their order does not matter. With `published_bins` it is the number of the code behind the ImageNet-A paper (Hendrycks et
    al., 2021): the last bin counts as without error, and images of equal confidence stand in whatever order `np.argsort`
    leaves them in; `rms_calibration_error_bounds` tells how much hangs on that.

    >>> confidence, correct = np.array([0.9, 0.5, 0.6, 0.8]), np.array([True, False, True, True])
    >>> round(rms_calibration_error(confidence, correct, bin_size=2), 4)  # gaps 0.05 and 0.15, so sqrt(0.0125)
    0.1118
    >>> round(rms_calibration_error(confidence, correct, bin_size=2, published_bins=True), 4)  # sqrt(0.05^2 / 2)
    0.0354
    """
    _check_pairs(confidence, correct)
    _check_bins(len(confidence), bin_size, published_bins)
    order = np.argsort(confidence)
    return float(_ordered_rms_error(confidence[order], correct[order], bin_size, published_bins))


def rms_calibration_error_bounds(
    confidence: Confidence, correct: NDArray[np.bool_], *, bin_size: int = 100, published_bins: bool = False
) -> tuple[float, float]:
    """Least and largest RMS calibration error over all orders of images of equal confidence, each counted in one bin.

    >>> confidence, correct = np.full(4, 0.5), np.array([True, True, False, False])
    >>> rms_calibration_error_bounds(confidence, correct, bin_size=2)  # one correct in each bin, or both in one
    (0.0, 0.5)
    """
    _check_pairs(confidence, correct)
    _check_bins(len(confidence), bin_size, published_bins)
    order = np.argsort(confidence)
    ordered, right = confidence[order], correct[order].astype(np.int64)
    bins = _bin_edges(len(ordered), bin_size)
    bounds = [_best_squares(ordered, right, bins, published_bins, worst=worst) for worst in (False, True)]
    low, high = (float(np.sqrt(max(total, 0.0) / len(ordered))) for total in bounds)
    return low, high


def chance_calibration_error(
    confidence: Confidence,
    *,
    bin_size: int = 100,
    published_bins: bool = False,
    level: float = 0.95,
    draws: int = 200,
    seed: int = 0,
) -> float:
    """RMS calibration error that a perfectly calibrated model of these confidences stays below, `level` of the time.

    A smaller error says nothing against a model: chance alone gives as much. Answers are drawn from the confidences
    themselves (consistency resampling; Bröcker & Smith, 2007); the same seed gives the same number.

    >>> chance_calibration_error(np.ones(300))  # a model that is certain and calibrated is always correct
    0.0
    """
    _check_confidence(confidence)
    _check_bins(len(confidence), bin_size, published=False)
    generator = np.random.default_rng(seed)
    ordered = np.sort(confidence)
    rows = max(30_000 // len(ordered), 1)  # at once: few enough to stay in the processor's cache
    blocks = (generator.random((min(rows, draws - done), len(ordered))) < ordered for done in range(0, draws, rows))
    errors = [_ordered_rms_error(ordered, correct, bin_size, published_bins) for correct in blocks]
    return float(np.quantile(np.concatenate(errors), level))


def expected_calibration_error(confidence: Confidence, correct: NDArray[np.bool_], *, bins: int = 15) -> float:
    """Mean gap between confidence and accuracy over bins of equal width, each weighted by its images (Guo et al., 2017).

    0 is perfect. A confidence on an edge belongs to the bin below it.

    >>> error = expected_calibration_error(np.array([0.9, 0.7, 0.2]), np.array([True, False, False]), bins=2)
    >>> round(error, 4)  # gaps 0.3, twice, and 0.2
    0.2667
    """
    points = reliability(confidence, correct, bins=bins)
    return float(np.abs(points.confidence - points.accuracy) @ points.images / points.images.sum())


def debiased_calibration_error(confidence: Confidence, correct: NDArray[np.bool_], *, bins: int = 15) -> float:
    """Root mean square gap between confidence and accuracy over bins of about equal count, less what chance adds to it.

    0 is perfect, and before the root what a calibrated model comes to on average (Kumar et al., 2019). From the squared gap
    of a bin goes the variance of its accuracy; a sum below 0 counts as 0. Images of equal confidence share a bin; a bin of a
    single image tells nothing and counts as 0.

    >>> error = debiased_calibration_error(np.full(4, 0.9), np.array([True, False, False, False]))
    >>> round(error, 4)  # 0.65^2 - 0.25 x 0.75 / 3, and of that the root
    0.6
    """
    _check_pairs(confidence, correct)
    if bins < 1:
        raise BadInput(f"bins should be at least 1, got {bins}")
    ordered = np.sort(confidence)
    firsts = np.unique(ordered[np.arange(1, bins) * len(ordered) // bins])
    places = np.searchsorted(firsts, confidence, side="right")
    count = np.bincount(places)
    telling = count > 1
    count, gaps = count[telling], np.bincount(places, weights=confidence - correct)[telling] / count[telling]
    accuracy = np.bincount(places, weights=correct)[telling] / count
    squares = gaps**2 - accuracy * (1 - accuracy) / (count - 1)
    return float(np.sqrt(np.maximum(squares @ count, 0) / len(confidence)))


def reliability(confidence: Confidence, correct: NDArray[np.bool_], *, bins: int = 15, level: float = 0.95) -> Reliability:
    """Mean confidence, accuracy, count and exact bounds of the accuracy in bins of equal width; empty bins are left out.

    >>> points = reliability(np.array([0.9, 0.7, 0.2]), np.array([True, False, False]), bins=2)
    >>> points.confidence.round(2), points.accuracy, points.images
    (array([0.2, 0.8]), array([0. , 0.5]), array([1, 2]))
    """
    _check_pairs(confidence, correct)
    places = confidence_bins(confidence, bins)
    count = np.bincount(places, minlength=bins)
    filled = count > 0
    count, right = count[filled], np.bincount(places, weights=correct, minlength=bins)[filled]
    low, high = clopper_pearson(right.astype(int), count, level=level)
    return Reliability(
        np.bincount(places, weights=confidence, minlength=bins)[filled] / count, right / count, count, low, high
    )


def confidence_bins(confidence: Confidence, bins: int) -> NDArray[np.integer]:
    """The bin of equal width each confidence falls into, (images,); an edge belongs to the bin below it.

    >>> confidence_bins(np.array([0.0, 0.1, 0.5, 0.51, 1.0]), 2)
    array([0, 0, 0, 1, 1])
    """
    return np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], confidence, side="left")


def brier_score(labels: Labels, probabilities: NDArray[np.floating]) -> float:
    """Mean squared distance between the probabilities and the one-hot label, summed over classes (Brier, 1950).

    0 is perfect, 2 is the worst. Of several correct labels the most probable is taken as the ground truth.

    >>> round(brier_score(np.array([0, 1]), np.array([[0.8, 0.2], [0.8, 0.2]])), 2)  # (0.08 + 1.28) / 2
    0.68
    """
    return float(brier_scores(labels, probabilities).mean())


def brier_scores(labels: Labels, probabilities: NDArray[np.floating]) -> NDArray[np.floating]:
    """The Brier score of each image, (images,).

    >>> brier_scores(np.array([0, 1]), np.array([[0.8, 0.2], [0.8, 0.2]])).round(2)
    array([0.08, 1.28])
    """
    return np.asarray(1 - 2 * best_right(labels, probabilities) + (probabilities**2).sum(axis=1))


def rms_calibration_interval(
    confidence: Confidence,
    correct: NDArray[np.bool_],
    *,
    bin_size: int = 100,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the RMS gap between confidence and accuracy that chance adds nothing to, over the same bins.

    `rms_calibration_error` comes out too high, by how predictions of each bin scatter: a perfectly calibrated model shows
    an error too. The interval is about the error without that, of as many images as one likes in these bins, and so it may
    lie below the number itself; it begins at 0 where chance alone explains the number. The square of the number is taken to
    have a non-central chi-square distribution, with the gaps' covariances by cluster. None of too few clusters.

    >>> confidence = np.linspace(0.5, 1, 400)
    >>> low, high = rms_calibration_interval(confidence, np.arange(400) % 4 > 0)  # three quarters are correct throughout
    >>> bool(low < np.sqrt(1 / 48) < high)  # the spread of confidences about 0.75
    True
    """
    _check_pairs(confidence, correct)
    order = np.argsort(confidence, kind="stable")
    places = np.empty(len(confidence), int)
    places[order] = np.minimum(np.arange(len(order)) // bin_size, max(1, len(order) // bin_size) - 1)
    return _squared_gap_interval(_gaps_of(confidence, correct, places, clusters), level)


def debiased_calibration_interval(
    confidence: Confidence,
    correct: NDArray[np.bool_],
    *,
    bins: int = 15,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the RMS gap between confidence and accuracy over bins of about equal count, without what chance adds.

    As `rms_calibration_interval`; `debiased_calibration_error` has the same aim, and lies inside but where it is cut off
    at 0. None of too few clusters.

    >>> confidence = np.linspace(0.5, 1, 400)
    >>> low, high = debiased_calibration_interval(confidence, np.arange(400) % 4 > 0)
    >>> bool(low < np.sqrt(1 / 48) < high)
    True
    """
    _check_pairs(confidence, correct)
    if bins < 1:
        raise BadInput(f"bins should be at least 1, got {bins}")
    ordered = np.sort(confidence)
    firsts = np.unique(ordered[np.arange(1, bins) * len(ordered) // bins])
    places = np.unique(np.searchsorted(firsts, confidence, side="right"), return_inverse=True)[1]
    return _squared_gap_interval(_gaps_of(confidence, correct, places, clusters), level)


def expected_calibration_interval(
    confidence: Confidence,
    correct: NDArray[np.bool_],
    *,
    bins: int = 15,
    clusters: Groups | None = None,
    level: float = 0.95,
) -> tuple[float, float] | None:
    """Interval of the mean gap between confidence and accuracy that chance adds nothing to, over bins of equal width.

    `expected_calibration_error` comes out too high of few images, as `rms_calibration_interval` says of its own; this is
    about the error without that, and may lie below the number. Gaps of the shape seen are made larger and smaller until the
    number would be too small or too large for them. None of too few clusters.

    >>> confidence = np.linspace(0.5, 1, 400)
    >>> low, high = expected_calibration_interval(confidence, np.arange(400) % 4 > 0)
    >>> low < 0.125 < high  # the mean distance of confidences from 0.75
    True
    """
    _check_pairs(confidence, correct)
    places = np.unique(confidence_bins(confidence, bins), return_inverse=True)[1]
    return _absolute_gap_interval(_gaps_of(confidence, correct, places, clusters), level)


def overconfidence_interval(
    confidence: Confidence, correct: NDArray[np.bool_], *, clusters: Groups | None = None, level: float = 0.95
) -> tuple[float, float] | None:
    """Interval of mean confidence less accuracy; None of fewer than `LEAST_CLUSTERS` clusters.

    Put together from the intervals of both, with what they have in common (Zou & Donner, 2008): of few images that are all
    classified correctly, accuracy is as open as its own interval says.

    >>> low, high = overconfidence_interval(np.full(30, 0.98), np.ones(30, dtype=bool))
    >>> round(low, 2), round(high, 2)  # thirty of thirty may be 0.88 of all
    (-0.03, 0.1)
    """
    _check_pairs(confidence, correct)
    groups = np.arange(len(confidence)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    right = cluster_share_interval(np.asarray(correct, dtype=bool), clusters=clusters, level=level)
    sure = cluster_mean_interval(confidence, clusters=clusters, bounds=(0.0, 1.0), level=level)
    if right is None or sure is None:
        return None
    means = float(confidence.mean()), float(np.mean(correct))
    both = np.asarray(confidence, dtype=float), np.asarray(correct, dtype=float)
    sums = [np.bincount(groups, values - mean) for values, mean in zip(both, means, strict=True)]
    scale = float(np.sqrt((sums[0] ** 2).sum() * (sums[1] ** 2).sum()))
    common = float(sums[0] @ sums[1]) / scale if scale > 0 else 0.0

    def reach(first: float, second: float) -> float:
        return float(np.sqrt(max(first**2 + second**2 - 2 * common * first * second, 0.0)))

    seen = means[0] - means[1]
    return seen - reach(means[0] - sure[0], right[1] - means[1]), seen + reach(sure[1] - means[0], means[1] - right[0])


class _Gaps(NamedTuple):
    """Confidence less accuracy of each bin, and how it may vary."""

    gaps: NDArray[np.floating]  # (bins,)
    weights: NDArray[np.floating]  # shares of all images, (bins,)
    alone: NDArray[np.floating]  # variances that bins have each for itself, (bins,)
    common: NDArray[np.floating] | None  # (bins, clusters): times itself, what clusters add to their covariance
    cases: float  # clusters of equal size that would weigh as much

    @property
    def variances(self) -> NDArray[np.floating]:
        return self.alone if self.common is None else np.asarray(self.alone + (self.common**2).sum(axis=1))

    def variance_of(self, slopes: NDArray[np.floating]) -> float:
        """Of the sum of the gaps times these, (bins,)."""
        together = 0.0 if self.common is None else float(((slopes @ self.common) ** 2).sum())
        return float(slopes**2 @ self.alone) + together

    def squares(self) -> float:
        """Sum of the squares of all covariances, times the weights of both bins."""
        own = float(self.weights**2 @ (self.alone**2))
        if self.common is None:
            return own
        # of many bins there may be more than clusters: the smaller of both products has the same squares
        scaled = np.sqrt(self.weights)[:, None] * self.common
        product = scaled.T @ scaled if len(scaled) > scaled.shape[1] else scaled @ scaled.T
        across = 2 * float(self.weights**2 @ (self.alone * (self.common**2).sum(axis=1)))
        return own + across + float((product**2).sum())


_ANSWERS_MORE = 5
_CASES_AT_ONCE = 2000
"""Clusters, or blocks of them, whose sums in every bin are in memory together."""
_SUMS_AT_ONCE = 10_000_000  # 80 MB


def _gaps_of(
    confidence: Confidence, correct: NDArray[np.bool_], places: NDArray[np.integer], clusters: Groups | None
) -> _Gaps | None:
    """Gaps of the bins that images are placed in; None of too few clusters."""
    counts, apart = np.bincount(places), confidence - np.asarray(correct, dtype=float)
    gaps = np.bincount(places, apart) / counts
    # what a bin's accuracy would be if it were off as all are on average
    usual = np.clip(np.bincount(places, confidence) / counts - apart.mean(), 0.0, 1.0)
    # a few such predictions more, so that a bin of which all are alike is not taken as known
    scatter = _ANSWERS_MORE * usual * (1 - usual)
    least, shrunk = scatter / counts / (counts + _ANSWERS_MORE), counts / (counts + _ANSWERS_MORE)
    weights = counts / len(confidence)
    around = apart - gaps[places]
    if clusters is None:
        if len(confidence) < LEAST_CLUSTERS:
            return None
        return _Gaps(
            gaps, weights, np.bincount(places, around**2) / counts**2 * shrunk + least, None, float(len(confidence))
        )
    groups = np.unique(clusters, return_inverse=True)[1]
    sizes = np.bincount(groups)
    cases, effective = len(sizes), float(len(groups) ** 2 / (sizes**2).sum())
    if cases < LEAST_CLUSTERS:
        return None
    most = max(min(_CASES_AT_ONCE, _SUMS_AT_ONCE // len(counts)), 100)
    if cases > most:
        groups = (np.random.default_rng(0).permutation(cases) * most // cases)[groups]
        cases = most
    sums = np.bincount(places * cases + groups, around, len(counts) * cases).reshape(len(counts), cases) / counts[:, None]
    sums *= np.sqrt(shrunk * cases / (cases - 1))[:, None]
    return _Gaps(gaps, weights, least, sums, effective)


def _squared_gap_interval(found: _Gaps | None, level: float) -> tuple[float, float] | None:
    tail = tail_of(level)
    if found is None:
        return None
    gaps, weights, cases = found.gaps, found.weights, found.cases
    square = float(weights @ gaps**2)
    first, second, along = float(weights @ found.variances), found.squares(), found.variance_of(weights * gaps)
    if first <= 0:
        return float(np.sqrt(square)), float(np.sqrt(square))
    along = along / square if square > 0 else second / first

    def below(truth: float, seen: float) -> float:
        """Normal quantile of the chance that the square stays below what is seen, if it is this without chance.

        A multiple of a non-central chi-square number that has the mean and the variance of the square: by chance alone
        where the truth is 0 (Satterthwaite, 1946), and by how the gaps vary along themselves where it is large.
        """
        scale = (second + 2 * truth * along) / (first + 2 * truth)
        return _noncentral_quantile(seen / scale, first / scale, truth / scale)

    far = square + 40 * (first + np.sqrt(along * (square + first)) + along)
    quantile = student_quantile(1 - tail, max(cases - 1, 1.0))
    low = 0.0 if below(0.0, square) <= quantile else _where_zero(lambda truth: below(truth, square) - quantile, far)
    # smaller gaps than chance makes on average say nothing of how much smaller the true ones are
    high = _where_zero(lambda truth: below(truth, max(square, first)) + quantile, far)
    return min(float(np.sqrt(low)), 1.0), min(float(np.sqrt(high)), 1.0)


def _noncentral_quantile(value: float, degrees: float, centre: float) -> float:
    """Normal quantile of the chance that a non-central chi-square number stays below a value."""
    from scipy.special import chndtr, ndtri

    if degrees + centre + value < 2000:
        return float(ndtri(np.clip(chndtr(value, degrees, centre), 1e-12, 1 - 1e-12)))
    # of large ones by a power that is nearly normal (Sankaran, 1963)
    total, more, most = degrees + centre, degrees + 2 * centre, degrees + 3 * centre
    power = 1 - 2 * total * most / (3 * more**2)
    spread = more / total**2
    bend = (power - 1) * (1 - 3 * power)
    mean = 1 + power * spread * (power - 1 - (2 - power) * bend * spread / 2)
    return float(((value / total) ** power - mean) / (power * np.sqrt(2 * spread) * (1 + bend * spread / 2)))


def _absolute_gap_interval(found: _Gaps | None, level: float) -> tuple[float, float] | None:
    from scipy.special import ndtr

    tail = tail_of(level)
    if found is None:
        return None
    gaps, weights, cases = found.gaps, found.weights, found.cases
    variances = np.maximum(found.variances, 1e-18)
    errors = np.sqrt(variances)
    # bins that chance may explain are taken to be off as all are on average
    alike = max(float(weights @ (gaps**2 - variances)), 0.0)
    known = alike / (alike + variances)
    shape = np.sqrt(known * np.maximum(gaps**2 - variances, 0.0) + (1 - known) * alike) if alike > 0 else errors
    # what bins have in common, as clusters in several of them do, widens the sum as it does that of the gaps themselves
    together = 1.0
    if found.common is not None:
        signed = weights * np.where(gaps < 0, -1.0, 1.0)
        together = max(found.variance_of(signed) / float(weights**2 @ variances), 1.0)
    quantile = student_quantile(1 - tail, max(cases - 1, 1.0))

    def apart(times: float, number: float) -> float:
        """By how many standard errors the number lies above what gaps so many times the shape give (folded normal)."""
        centre = times * shape / errors
        means = np.sqrt(2 / np.pi) * np.exp(-(centre**2) / 2) + centre * (1 - 2 * ndtr(-centre))
        spread = np.maximum(1 + centre**2 - means**2, 1e-12)
        return float((number - weights @ (errors * means)) / np.sqrt(together * (weights**2 @ (variances * spread))))

    number, unit = float(weights @ np.abs(gaps)), float(weights @ shape)
    chance = float(weights @ errors) * np.sqrt(2 / np.pi)
    far = (number + 20 * float(weights @ errors) + 1e-9) / unit
    low = 0.0 if apart(0.0, number) <= quantile else _where_zero(lambda times: apart(times, number) - quantile, far)
    high = _where_zero(lambda times: apart(times, max(number, chance)) + quantile, far)
    return min(unit * low, 1.0), min(unit * high, 1.0)


def _where_zero(falling: Callable[[float], float], far: float) -> float:
    """Where a function that falls from above 0 crosses it, at most `far`."""
    low, high = 0.0, float(far)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return high


def _mean_over_ties(ordered: Confidence, correct: NDArray[np.bool_]) -> NDArray[np.floating]:
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    if len(starts) == len(ordered):
        return correct.astype(float)
    sizes = np.diff(np.append(starts, len(ordered)))
    return np.repeat(np.add.reduceat(correct, starts, axis=-1, dtype=float) / sizes, sizes, axis=-1)


def _ordered_rms_error(ordered: Confidence, correct: NDArray[np.bool_], bin_size: int, published: bool) -> Any:
    """Error of the answers to these images, or of each row of such answers."""
    edges = _bin_edges(len(ordered), bin_size)
    gaps = ordered - (correct if published else _mean_over_ties(ordered, correct))
    squares = np.add.reduceat(gaps, edges[:-1], axis=-1) ** 2 / np.diff(edges)
    return np.sqrt((squares[..., :-1] if published else squares).sum(axis=-1) / len(ordered))


def _bin_edges(images: int, bin_size: int) -> NDArray[np.integer]:
    """Where bins of sorted images begin, and where the last ends, (bins + 1,)."""
    return np.append(np.arange(max(1, images // bin_size)) * bin_size, images)


def _best_squares(
    ordered: Confidence, right: NDArray[np.integer], edges: NDArray[np.integer], published: bool, *, worst: bool
) -> float:
    """Squared gaps summed over bins, times their images, in the best or worst order of ties.

    Ties that several bins share hand on how many correct ones lie in the first and the last of these bins; between them lie
    bins of ties alone, for which the best is an even share and the worst all in as few bins as can be. So a table of the
    first against the last is all that must be kept from one such level of confidence to the next.
    """
    pick = np.max if worst else np.min
    sizes, sums = np.diff(edges), np.add.reduceat(ordered, edges[:-1])
    counted = np.ones(len(sizes))
    counted[-1] = not published
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    ends = np.append(starts[1:], len(ordered))
    first_bin = np.searchsorted(edges, starts, side="right") - 1
    last_bin = np.searchsorted(edges, ends - 1, side="right") - 1
    shared = first_bin < last_bin
    totals = np.add.reduceat(right, starts)
    settled = np.bincount(first_bin[~shared], weights=totals[~shared], minlength=len(sizes))
    alone = np.ones(len(sizes), dtype=bool)  # bins without a part of such a level
    total, carried, place = 0.0, np.zeros(1), -1  # carried: the best so far by how many correct ones lie in bin `place`
    for level in np.flatnonzero(shared):
        first, last = int(first_bin[level]), int(last_bin[level])
        if first != place:
            total, carried = total + _closed(carried, place, sums, settled, sizes, counted, pick), np.zeros(1)
        alone[first : last + 1] = False
        head, tail = edges[first + 1] - starts[level], ends[level] - edges[last]
        inside = np.arange(len(carried))[:, None] + np.arange(min(head, totals[level]) + 1)
        squares = counted[first] * (sums[first] - settled[first] - inside) ** 2 / sizes[first]
        reached = pick(carried[:, None] + squares, axis=0)  # by how many correct ones of this level lie in its first bin
        rest = totals[level] - np.arange(len(reached))[:, None] - np.arange(min(tail, totals[level]) + 1)
        between = _between(rest, last - first - 1, int(sizes[first]), float(ordered[starts[level]]), worst=worst)
        carried, place = pick(reached[:, None] + between, axis=0), last
    total += _closed(carried, place, sums, settled, sizes, counted, pick)
    return float(total + (counted * (sums - settled) ** 2 / sizes)[alone].sum())


def _closed(
    carried: NDArray[np.floating],
    place: int,
    sums: NDArray[np.floating],
    settled: NDArray[np.integer],
    sizes: NDArray[np.integer],
    counted: NDArray[np.floating],
    pick: Callable[..., Any],
) -> float:
    """The best of what was carried into a bin that no further level shares."""
    if place < 0:
        return 0.0
    squares = counted[place] * (sums[place] - settled[place] - np.arange(len(carried))) ** 2 / sizes[place]
    return float(pick(carried + squares))


def _between(right: NDArray[np.integer], bins: int, size: int, confidence: float, *, worst: bool) -> NDArray[np.floating]:
    """Squared gaps of so many bins of ties that so many correct ones are spread over; infinite where they do not fit."""
    impossible = -np.inf if worst else np.inf
    if bins == 0:
        return np.where(right == 0, 0.0, impossible)
    whole, over = np.divmod(right, size if worst else bins)

    def squared(inside: NDArray[np.integer] | int) -> NDArray[np.floating]:
        return np.asarray((size * confidence - inside) ** 2 / size)

    if worst:  # some bins all right, one with what is over, the others all wrong
        squares = whole * squared(size) + (over > 0) * squared(over) + (bins - whole - (over > 0)) * squared(0)
    else:
        squares = (bins - over) * squared(whole) + over * squared(whole + 1)
    return np.where((right >= 0) & (right <= bins * size), squares, impossible)


def _check_bins(images: int, bin_size: int, published: bool) -> None:
    if bin_size < 1:
        raise BadInput(f"bin size should be at least 1, got {bin_size}")
    if published and images < bin_size:
        raise BadInput(f"published bins need at least {bin_size} images, got {images}")


def _check_pairs(confidence: Confidence, correct: NDArray[np.bool_]) -> None:
    _check_confidence(confidence)
    if confidence.shape != correct.shape:
        raise BadInput(f"{len(confidence)} confidences but correct has shape {correct.shape}; both should be (images,)")


def _check_confidence(confidence: Confidence) -> None:
    if confidence.ndim != 1 or not len(confidence):
        raise BadInput(f"confidence should be (images,) of at least one image, got shape {confidence.shape}")
    if not ((confidence >= 0) & (confidence <= 1)).all():
        raise BadInput("confidence should lie between 0 and 1; logits become confidence by their softmax")
