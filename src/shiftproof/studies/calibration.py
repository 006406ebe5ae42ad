"""Whether a model is right as often as it says it is, and surest where it is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    is_correct,
    overconfidence_interval,
    reliability,
    rms_calibration_error,
    rms_calibration_error_bounds,
    rms_calibration_interval,
    to_probabilities,
)
from shiftproof.metrics.calibration import brier_scores, confidence_bins
from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.surest_first import answered_levels
from shiftproof.studies import evidence, temperature_scaling
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.types import About, Clusters, Curve, Finding, Keep, Measurement, Predictions, Run

IMAGES_A_POINT = 8
"""How many images a point of the reliability diagram should have, on average."""
RESPONSE_RATES = 50
"""Points of the response-rate accuracy curve, at most."""


WITHOUT_CHANCE = "of the error without what chance adds to the number, which is biased upwards; may lie below it,"
A_QUANTILE = {"interval": "none: it is itself the value that chance stays below 95 times in 100"}


def rms_measurement(
    metric: str,
    error: float,
    confidence: NDArray[np.floating],
    correct: NDArray[np.bool_],
    about: About,
    convention: Mapping[str, str],
    clusters: Clusters,
    bin_size: int,
) -> Measurement:
    """An RMS calibration error with the interval of what it would be without chance, over the same bins."""
    within = rms_calibration_interval(confidence, correct, bin_size=bin_size, clusters=clusters.numbers)
    told = {**convention, **evidence.resampled_told(clusters, within, what=WITHOUT_CHANCE)}
    return Measurement(metric, error, about, len(correct), told, within, clusters.count)


@dataclass(frozen=True)
class CalibrationStudy(CleanStudy):
    """Calibration errors, overconfidence and AURRA, with the reliability diagram, accuracy by response rate and confidences.

    Thoroughly, which needs all logits: likelihood, Brier score and debiased error too, and what a temperature would mend.
    """

    bin_size: int = 100  # images a bin of the RMS calibration error
    bins: int = 15  # of equal width, for the expected calibration error and the curves
    published_bins: bool = False  # leave the most confident bin out of the RMS error, as the ImageNet-A paper's code does
    brier: bool = False  # the Brier score too, which needs all logits
    thorough: bool = False

    @property
    def keep(self) -> Keep:
        return "logits" if self.brier or self.thorough else "top5"

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
        for run in self.runs():
            predictions = load(run)
            confidence = evidence.confidence_or_nan(predictions)
            counted = np.isfinite(confidence) & (predictions.labelled | ~predictions.labelled.any())
            if not counted.any():
                continue
            convention = {**evidence.convention_of(run, predictions), **_without_confidence(confidence)}
            clusters = predictions.clusters.take(counted)
            yield evidence.mean("mean_confidence", confidence[counted], run.about(), convention, clusters, bounds=(0.0, 1.0))
            yield self._histogram(confidence[counted], run.about(), convention)
            if predictions.labelled.any():
                yield from self._errors(run.about(), predictions.take(counted), confidence[counted], convention)

    def skipped(self, load: Callable[[Run], Predictions]) -> Iterator[str]:
        for run in self.runs():
            predictions = load(run)
            reasons = [
                evidence.nothing_read(run, predictions),
                evidence.no_confidence(run, predictions),
                evidence.nothing_labelled(run, predictions, "calibration"),
            ]
            if not any(reasons):
                reasons = [f"{run.image_set.name}: {reason}" for reason in self._too_few(predictions)]
            yield from (reason for reason in reasons if reason)

    def _too_few(self, predictions: Predictions) -> Iterator[str]:
        if self.published_bins and predictions.labelled.sum() < self.bin_size:
            yield f"the RMS calibration error by published bins needs at least {self.bin_size} images"
        if self.thorough and (reason := temperature_scaling.too_few(evidence.labelled_only(predictions))):
            yield reason

    def _errors(
        self, about: About, predictions: Predictions, confidence: NDArray[np.floating], convention: Mapping[str, str]
    ) -> Iterator[Finding]:
        correct = is_correct(predictions.labels, predictions.top5.classes)
        yield from self._gaps(predictions, about, convention)
        if self.brier or self.thorough:
            scores = brier_scores(predictions.labels, to_probabilities(predictions.need_logits(), predictions.gives))
            yield evidence.mean("brier_score", scores, about, convention, predictions.clusters)
        if self.thorough:
            yield self._debiased(confidence, correct, about, convention, predictions.clusters)
            yield from temperature_scaling.likelihood(predictions, about, convention)
            yield from temperature_scaling.before_and_after(predictions, about, convention, self._gaps)
        yield self._reliability(confidence, correct, about, convention, predictions.clusters)
        yield evidence.mean_accuracy_answered("aurra", confidence, correct, about, convention, predictions.clusters)
        yield _by_response_rate(confidence, correct, about, convention, predictions.clusters)

    def _gaps(self, predictions: Predictions, about: About, convention: Mapping[str, str]) -> Iterator[Measurement]:
        """How far confidence is from accuracy, in every way that the first answers alone can tell."""
        confidence = evidence.confidence_or_nan(predictions)
        correct = is_correct(predictions.labels, predictions.top5.classes)
        images, clusters = len(correct), predictions.clusters
        if images >= self.bin_size or not self.published_bins:
            size, published = self.bin_size, self.published_bins
            stated = {**convention, "bins": self._equal_count(images), **self._ties(confidence, correct)}
            error = rms_calibration_error(confidence, correct, bin_size=size, published_bins=published)
            yield rms_measurement("rms_calibration_error", error, confidence, correct, about, stated, clusters, size)
            if clusters.numbers is None:  # chance adds more to images that are right and wrong together
                by_chance = chance_calibration_error(confidence, bin_size=size, published_bins=published)
                stated = {**convention, "bins": self._equal_count(images)}
                yield Measurement("chance_calibration_error", by_chance, about, images, {**stated, **A_QUANTILE})
        stated = {**convention, "bins": f"{self.bins} of equal width"}
        error = expected_calibration_error(confidence, correct, bins=self.bins)
        within = expected_calibration_interval(confidence, correct, bins=self.bins, clusters=clusters.numbers)
        told = {**stated, **evidence.resampled_told(clusters, within, what=WITHOUT_CHANCE)}
        yield Measurement("expected_calibration_error", error, about, images, told, within, clusters.count)
        within = overconfidence_interval(confidence, correct, clusters=clusters.numbers)
        told = {**convention, **evidence.resampled_told(clusters, within, what="Zou-Donner")}
        gap = float((confidence - correct).mean())
        yield Measurement("overconfidence", gap, about, images, told, within, clusters.count)

    def _ties(self, confidence: NDArray[np.floating], correct: NDArray[np.bool_]) -> dict[str, str]:
        return published_ties(confidence, correct, self.bin_size) if self.published_bins else {}

    def _debiased(
        self,
        confidence: NDArray[np.floating],
        correct: NDArray[np.bool_],
        about: About,
        convention: Mapping[str, str],
        clusters: Clusters,
    ) -> Measurement:
        error = debiased_calibration_error(confidence, correct, bins=self.bins)
        within = debiased_calibration_interval(confidence, correct, bins=self.bins, clusters=clusters.numbers)
        told = evidence.resampled_told(clusters, within, what=WITHOUT_CHANCE)
        stated = {**convention, "bins": f"{self.bins} of about equal count", **told}
        return Measurement("debiased_calibration_error", error, about, len(correct), stated, within, clusters.count)

    def _equal_count(self, images: int) -> str:
        bins = max(1, images // self.bin_size)
        text = f"{bins} of {min(self.bin_size, images)} images alike in confidence, the last with the rest"
        return f"{text}, which is left out as published" if self.published_bins else text

    def _reliability(
        self,
        confidence: NDArray[np.floating],
        correct: NDArray[np.bool_],
        about: About,
        convention: Mapping[str, str],
        clusters: Clusters,
    ) -> Curve:
        # with few images, few bins: a point of one image says nothing
        bins = min(self.bins, max(3, len(correct) // IMAGES_A_POINT))
        points = reliability(confidence, correct, bins=bins)
        places = confidence_bins(confidence, bins)
        exact = (points.low, points.high)
        band = _band([places == place for place in np.unique(places)], exact, correct, clusters)
        return Curve(
            "reliability",
            about,
            "mean confidence",
            "share right",
            x=tuple(points.confidence.tolist()),
            y=tuple(points.accuracy.tolist()),
            images=len(correct),
            convention={**convention, **band.told, "bins": f"{bins} of equal width"},
            counts=tuple(points.images.tolist()),
            low=band.low,
            high=band.high,
        )

    def _histogram(self, confidence: NDArray[np.floating], about: About, convention: Mapping[str, str]) -> Curve:
        counts = np.bincount(confidence_bins(confidence, self.bins), minlength=self.bins)
        return Curve(
            "confidence_histogram",
            about,
            "confidence",
            "share of images",
            x=tuple(((np.arange(self.bins) + 0.5) / self.bins).tolist()),
            y=tuple((counts / len(confidence)).tolist()),
            images=len(confidence),
            convention={**convention, "bins": f"{self.bins} of equal width"},
            counts=tuple(counts.tolist()),
        )


class _Band(NamedTuple):
    """Bounds of the points of a curve; none where any of them has too few cases."""

    low: tuple[float, ...] | None
    high: tuple[float, ...] | None
    told: dict[str, str]


def _band(
    members: Sequence[NDArray[np.bool_] | NDArray[np.integer]],
    exact: tuple[NDArray[np.floating], NDArray[np.floating]],
    correct: NDArray[np.bool_],
    clusters: Clusters,
) -> _Band:
    """The exact bounds, or those by cluster of the images at each point where images are not cases of their own.

    Of a point with too few cases anything may be true; of too few in all there is no band.
    """
    numbers = clusters.numbers
    if numbers is None:
        return _Band(tuple(exact[0].tolist()), tuple(exact[1].tolist()), evidence.EXACT)
    if clusters.count < LEAST_CLUSTERS:
        return _Band(None, None, evidence.interval_told("Clopper-Pearson", clusters, None))
    bounds = [cluster_share_interval(correct[rows], clusters=numbers[rows]) or (0.0, 1.0) for rows in members]
    told = evidence.interval_told("Clopper-Pearson", clusters, bounds[0], in_clusters=evidence.KORN_GRAUBARD)
    return _Band(tuple(low for low, _ in bounds), tuple(high for _, high in bounds), told)


def _by_response_rate(
    confidence: NDArray[np.floating],
    correct: NDArray[np.bool_],
    about: About,
    convention: Mapping[str, str],
    clusters: Clusters,
) -> Curve:
    levels = answered_levels(confidence, correct, most=RESPONSE_RATES)
    surest = np.argsort(-confidence, kind="stable")
    exact = clopper_pearson(levels.right, levels.total)
    band = _band([surest[:images] for images in levels.total], exact, correct, clusters)
    return Curve(
        "response_rate_accuracy",
        about,
        "share of images answered",
        "accuracy",
        x=tuple((levels.total / len(correct)).tolist()),
        y=tuple(levels.accuracy.tolist()),
        images=len(correct),
        convention={**convention, **band.told},
        counts=tuple(levels.total.tolist()),
        low=band.low,
        high=band.high,
    )


def published_ties(confidence: NDArray[np.floating], correct: NDArray[np.bool_], bin_size: int) -> dict[str, str]:
    """How far the order of equally confident answers could move the published RMS error; nothing where it cannot."""
    bounds = rms_calibration_error_bounds(confidence, correct, bin_size=bin_size, published_bins=True)
    low, high = (f"{100 * bound:.2f} %" for bound in bounds)
    return (
        {"ties": f"in the order that sorting leaves them in, as published; between {low} and {high}"} if low != high else {}
    )


def _without_confidence(confidence: NDArray[np.floating]) -> dict[str, str]:
    missing = int(np.isnan(confidence).sum())
    return {"without confidence": f"{missing} of {len(confidence)}, left out: not a number"} if missing else {}
