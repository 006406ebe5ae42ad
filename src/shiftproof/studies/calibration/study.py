"""Calibration: whether confidence matches accuracy, and ranks correct predictions first."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import (
    chance_calibration_error,
    clopper_pearson,
    cluster_share_interval,
    debiased_calibration_error,
    debiased_calibration_interval,
    expected_calibration_error,
    expected_calibration_interval,
    fit_temperature,
    is_correct,
    overconfidence_interval,
    reliability,
    rms_calibration_error,
    rms_calibration_error_bounds,
    rms_calibration_interval,
    split_half,
    temperature_interval,
    to_probabilities,
)
from shiftproof.metrics.accuracy import to_top5
from shiftproof.metrics.calibration import brier_scores, confidence_bins
from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.likelihood import LEAST, MOST, best_right, negative_log_likelihoods
from shiftproof.metrics.selective import answered_levels
from shiftproof.metrics.wording import counted
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, CleanStudy, sure_of
from shiftproof.types import (
    EXAMPLES,
    Curve,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    Keep,
    LoadPredictions,
    Logits,
    Measurement,
    NoInterval,
    Note,
    Predictions,
    Run,
    Skipped,
)

IMAGES_A_POINT = 8
"""How many images a point of the reliability diagram should have, on average."""
RESPONSE_RATES = 50
"""Points of the response-rate accuracy curve, at most."""


WITHOUT_CHANCE = "of the error without what chance adds to the number, which is biased upwards; may lie below it,"
A_QUANTILE = NoInterval("it is itself the 95 % quantile under perfect calibration")


Confidences: TypeAlias = NDArray[np.floating]
Correct: TypeAlias = NDArray[np.bool_]


def rms_measurement(
    metric: str, error: float, confidence: Confidences, correct: Correct, subject: evidence.Subject, bin_size: int
) -> Measurement:
    """An RMS calibration error with the interval of what it would be without chance, over the same bins."""
    ends = rms_calibration_interval(confidence, correct, bin_size=bin_size, clusters=subject.clusters.numbers)
    return subject.resampled(metric, error, WITHOUT_CHANCE, ends)


@dataclass(frozen=True)
class CalibrationStudy(CleanStudy):
    """Calibration errors, overconfidence and AURRA, with the reliability diagram, accuracy by response rate and confidences.

    Thoroughly, which needs all logits: likelihood, Brier score and debiased error too, and temperature scaling.
    """

    bin_size: int = 100  # images a bin of the RMS calibration error
    bins: int = 15  # of equal width, for the expected calibration error and the curves
    published_bins: bool = False  # leave the most confident bin out of the RMS error, as the ImageNet-A paper's code does
    brier: bool = False  # the Brier score too, which needs all logits
    thorough: bool = False

    @property
    def keep(self) -> Keep:
        return "logits" if self.brier or self.thorough else "top5"

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        for run in self.runs():
            predictions = load(run)
            yield from self._skipped(run, predictions)
            confidence = evidence.confidence_or_nan(predictions)
            counted = np.isfinite(confidence) & (predictions.labelled | ~predictions.labelled.any())
            if not counted.any():
                continue
            subject = evidence.Subject.of(run, predictions).also(told=_without_confidence(confidence)).take(counted)
            yield subject.mean("mean_confidence", confidence[counted], bounds=(0.0, 1.0))
            yield self._histogram(confidence[counted], subject)
            if predictions.labelled.any():
                yield from self._errors(predictions.take(counted), confidence[counted], subject)
                yield from _surest_mistake(run, predictions.take(counted), confidence[counted])

    def _skipped(self, run: Run, predictions: Predictions) -> Iterator[Skipped]:
        silent = evidence.why_no_confidence(predictions)
        reasons = [evidence.why_unread(predictions), evidence.why_unlabelled(predictions, "calibration")]
        if not silent and not any(reasons):
            if self.published_bins and predictions.labelled.sum() < self.bin_size:
                reasons.append(f"the RMS calibration error by published bins needs at least {self.bin_size} images")
            reasons.append(too_few(evidence.labelled_only(predictions)) if self.thorough else None)
        yield from evidence.skipped(run.model.name, silent)
        yield from evidence.skipped(run.dataset.name, *reasons)

    def _errors(self, predictions: Predictions, confidence: Confidences, subject: evidence.Subject) -> Iterator[Finding]:
        correct = is_correct(predictions.labels, predictions.top5.classes)
        yield from self._gaps(predictions, subject)
        if self.brier or self.thorough:
            scores = brier_scores(predictions.labels, to_probabilities(predictions.need_logits(), predictions.gives))
            yield subject.mean("brier_score", scores)
        if self.thorough:
            yield self._debiased(confidence, correct, subject)
            yield from likelihood(predictions, subject)
            yield from before_and_after(predictions, subject, self._gaps)
        yield self._reliability(confidence, correct, subject)
        yield subject.mean_accuracy_answered("aurra", confidence, correct)
        yield _by_response_rate(confidence, correct, subject)

    def _gaps(self, predictions: Predictions, subject: evidence.Subject) -> Iterator[Measurement]:
        """How far confidence is from accuracy, in every way that the top-1 predictions alone can tell."""
        confidence = evidence.confidence_or_nan(predictions)
        correct = is_correct(predictions.labels, predictions.top5.classes)
        clusters = subject.clusters.numbers
        if len(correct) >= self.bin_size or not self.published_bins:
            size, published = self.bin_size, self.published_bins
            in_bins = subject.also(told={"bins": self._equal_count(len(correct))})
            ties = published_ties(confidence, correct, size) if published else {}
            error = rms_calibration_error(confidence, correct, bin_size=size, published_bins=published)
            yield rms_measurement("rms_calibration_error", error, confidence, correct, in_bins.also(told=ties), size)
            if clusters is None:  # chance adds more to images that are right and wrong together
                by_chance = chance_calibration_error(confidence, bin_size=size, published_bins=published)
                about, told = in_bins.about, in_bins.convention
                yield Measurement("chance_calibration_error", by_chance, about, len(correct), told, no_interval=A_QUANTILE)
        error = expected_calibration_error(confidence, correct, bins=self.bins)
        ends = expected_calibration_interval(confidence, correct, bins=self.bins, clusters=clusters)
        in_bins = subject.also(told={"bins": f"{self.bins} of equal width"})
        yield in_bins.resampled("expected_calibration_error", error, WITHOUT_CHANCE, ends)
        ends = overconfidence_interval(confidence, correct, clusters=clusters)
        yield subject.resampled("overconfidence", float((confidence - correct).mean()), "Zou-Donner", ends)

    def _debiased(self, confidence: Confidences, correct: Correct, subject: evidence.Subject) -> Measurement:
        error = debiased_calibration_error(confidence, correct, bins=self.bins)
        ends = debiased_calibration_interval(confidence, correct, bins=self.bins, clusters=subject.clusters.numbers)
        in_bins = subject.also(told={"bins": f"{self.bins} of about equal count"})
        return in_bins.resampled("debiased_calibration_error", error, WITHOUT_CHANCE, ends)

    def _equal_count(self, images: int) -> str:
        bins = max(1, images // self.bin_size)
        text = f"{bins} of {min(self.bin_size, images)} images of similar confidence, the last with the rest"
        return f"{text}, which is left out as published" if self.published_bins else text

    def _reliability(self, confidence: Confidences, correct: Correct, subject: evidence.Subject) -> Curve:
        # with few images, few bins: a point of one image says nothing
        bins = min(self.bins, max(3, len(correct) // IMAGES_A_POINT))
        points = reliability(confidence, correct, bins=bins)
        places = confidence_bins(confidence, bins)
        band = _band([places == place for place in np.unique(places)], (points.low, points.high), correct, subject)
        in_bins, axes = subject.also(told={"bins": f"{bins} of equal width"}), ("mean confidence", "accuracy")
        return in_bins.curve("reliability", axes, points.confidence, points.accuracy, points.images, band=band)

    def _histogram(self, confidence: Confidences, subject: evidence.Subject) -> Curve:
        counts = np.bincount(confidence_bins(confidence, self.bins), minlength=self.bins)
        middles, shares = (np.arange(self.bins) + 0.5) / self.bins, counts / len(confidence)
        in_bins = subject.also(told={"bins": f"{self.bins} of equal width"})
        return in_bins.curve("confidence_histogram", ("confidence", "share of images"), middles, shares, counts)


def _surest_mistake(run: Run, predictions: Predictions, confidence: Confidences) -> Iterator[Gallery]:
    """The misclassification of highest confidence."""
    wrong = np.flatnonzero(~is_correct(predictions.labels, predictions.top5.classes))
    if len(wrong):
        row, names = int(wrong[np.argmax(confidence[wrong])]), ClassNames(predictions.classes)
        told = sure_of(names[int(predictions.top5.classes[row, 0])], confidence[row])
        caption = f"predicted {told}, labelled {names.of_labels(predictions.labels[row].tolist())}"
        item = GalleryItem(predictions.ids[row], caption, correct=False)
        yield Gallery(EXAMPLES, {**run.about(), "shows": "overconfidence"}, run.dataset, "Most confident mistake", (item,))


def _band(
    members: Sequence[NDArray[np.bool_] | NDArray[np.integer]],
    exact: tuple[NDArray[np.floating], NDArray[np.floating]],
    correct: Correct,
    subject: evidence.Subject,
) -> evidence.Band:
    """The exact bounds, or those by cluster of the images at each point where images are not cases of their own.

    Of a point with too few cases anything may be true; of too few in all there is no band.
    """
    clusters, numbers = subject.clusters, subject.clusters.numbers
    if numbers is None:
        return evidence.Band(tuple(exact[0].tolist()), tuple(exact[1].tolist()), evidence.CLOPPER_PEARSON)
    if clusters.count < LEAST_CLUSTERS:
        return evidence.Band(no_interval=evidence.too_few(counted(clusters.count, clusters.case)))
    bounds = [cluster_share_interval(correct[rows], clusters=numbers[rows]) or (0.0, 1.0) for rows in members]
    method = f"{evidence.KORN_GRAUBARD}, by {clusters.case}"
    return evidence.Band(tuple(low for low, _ in bounds), tuple(high for _, high in bounds), method)


def _by_response_rate(confidence: Confidences, correct: Correct, subject: evidence.Subject) -> Curve:
    levels = answered_levels(confidence, correct, most=RESPONSE_RATES)
    surest = np.argsort(-confidence, kind="stable")
    exact = clopper_pearson(levels.right, levels.total)
    band = _band([surest[:images] for images in levels.total], exact, correct, subject)
    axes, rates = ("response rate", "accuracy"), levels.total / len(correct)
    return subject.curve("response_rate_accuracy", axes, rates, levels.accuracy, levels.total, band=band)


def published_ties(confidence: NDArray[np.floating], correct: NDArray[np.bool_], bin_size: int) -> dict[str, str]:
    """How far the order of equally confident predictions could move the published RMS error; nothing where it cannot."""
    bounds = rms_calibration_error_bounds(confidence, correct, bin_size=bin_size, published_bins=True)
    low, high = (f"{100 * bound:.2f} %" for bound in bounds)
    return {"ties": f"ties in sort order, as published; between {low} and {high}"} if low != high else {}


def _without_confidence(confidence: NDArray[np.floating]) -> dict[str, str]:
    missing = int(np.isnan(confidence).sum())
    return {"without confidence": f"{missing} of {len(confidence)}, left out: not a number"} if missing else {}


BEFORE, AFTER = "before temperature scaling", "after temperature scaling"
AT_LEAST = 20
"""Images that either half needs, before anything is said of it."""

Judge: TypeAlias = Callable[[Predictions, evidence.Subject], Iterator[Measurement]]
"""The numbers that are compared before and after."""


def before_and_after(predictions: Predictions, subject: evidence.Subject, judge: Judge) -> Iterator[Measurement]:
    """The temperature, and of the images it was not fitted on every number without it and with it."""
    if too_few(predictions):
        return
    fitting = split_half(predictions.clusters.keys)
    learnt, held_out = predictions.take(fitting), predictions.take(~fitting)
    temperature = fit_temperature(learnt.labels, _logits(learnt))
    half = {"half": "by the images' ids, or those of their clusters, so that a cluster stays in its half"}
    within: Interval | NoInterval | None = NoInterval("its likelihood treats images of one cluster as independent")
    halved = subject.also(told=half)
    bound: dict[str, str] = {}
    if learnt.clusters.numbers is None:
        ends = temperature_interval(learnt.labels, _logits(learnt), temperature)
        within = None if ends is None else Interval(*ends, method="for large samples")
        bound = {"bound": f"between {LEAST:g} and {MOST:g}"} if ends is None else {}
    yield halved.also(told=bound).take(fitting).number("temperature", temperature, within)
    told = {"temperature": f"{temperature:.3g}, fitted on the other {len(learnt)} images"}
    for when, answers in ((BEFORE, held_out), (AFTER, _scaled(held_out, temperature))):
        other_half = halved.also({"scaling": when}, told).take(~fitting)
        yield from judge(answers, other_half)
        yield from likelihood(answers, other_half)


def likelihood(predictions: Predictions, subject: evidence.Subject) -> Iterator[Measurement]:
    """The mean negative log-likelihood; images whose class the model lacks would make it infinite and are left out."""
    surprise = negative_log_likelihoods(predictions.labels, predictions.need_logits(), predictions.gives)
    known = np.isfinite(surprise)
    missing = int((~known).sum())
    told = {"without likelihood": f"{missing} of {len(known)}, left out: true class of probability 0"} if missing else {}
    if known.any():
        yield subject.also(told=told).take(known).mean("negative_log_likelihood", surprise[known])


def too_few(predictions: Predictions) -> str | None:
    """Why no temperature can be fitted and judged, or None."""
    possible = np.isfinite(best_right(predictions.labels, _logits(predictions)))
    first = split_half(predictions.clusters.keys)
    if min((possible & first).sum(), (possible & ~first).sum()) >= AT_LEAST:
        return None
    return f"a temperature needs at least {AT_LEAST} images to be fitted on and as many others to be judged on"


def _logits(predictions: Predictions) -> Logits:
    """Logits, or the logarithms of probabilities, which are logits as good as any."""
    given = predictions.need_logits()
    if predictions.gives == "logits":
        return given
    with np.errstate(divide="ignore"):
        return np.log(given, dtype=np.result_type(given, np.float32))


def _scaled(predictions: Predictions, temperature: float) -> Predictions:
    logits = _logits(predictions)
    cooler = logits.astype(np.result_type(logits, np.float32)) / temperature
    return dataclasses.replace(predictions, gives="logits", logits=cooler, top5=to_top5(cooler, "logits"))
