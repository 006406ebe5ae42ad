"""From stored predictions to measurements: which rows count, what stands beside each number, and why one cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import FEW, in_blocks
from shiftproof.errors import BadInput
from shiftproof.metrics import aurra, aurra_bounds, aurra_interval, cluster_share_interval, paired_difference, top_confidence
from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.resampling import cluster_mean_interval
from shiftproof.metrics.wording import counted, several
from shiftproof.types import (
    About,
    Clusters,
    Curve,
    FoundObjects,
    Interval,
    Measurement,
    NoInterval,
    Predictions,
    Run,
    Skipped,
    Top5,
    joined_clusters,
)

FALSE_ALARMS = 0.05
"""The chance, over all pairs compared together, of calling one of two equally good models better."""


CLOPPER_PEARSON = "Clopper-Pearson"
KORN_GRAUBARD = "Korn-Graubard"
DEGENERATE = NoInterval("the bootstrap distribution is degenerate")

Ends: TypeAlias = tuple[float, float] | None
"""Both ends of an interval as metrics give them, or None where there is none."""


def convention_of(run: Run, predictions: Predictions) -> dict[str, str]:
    """What stands beside every number of a run: how pixels came to the model, which classes and images counted."""
    read, labelled = len(predictions), int(predictions.labelled.sum())
    left = left_out(skipped_images=len(predictions.skipped_images), read=read, labelled=labelled)
    return {**run.convention(), **predictions.convention, **left}


def left_out(*, skipped_images: int, read: int, labelled: int) -> dict[str, str]:
    """How many images a number goes without, in words; nothing where it has them all.

    >>> left_out(skipped_images=3, read=997, labelled=900)
    {'skipped images': '3 of 1000', 'without label': '97 of 997, left out of what needs labels'}
    """
    aside = {"skipped images": f"{skipped_images} of {skipped_images + read}"} if skipped_images else {}
    partly = {"without label": f"{read - labelled} of {read}, left out of what needs labels"} if 0 < labelled < read else {}
    return {**aside, **partly}


def labelled_only(predictions: Predictions) -> Predictions:
    """The rows that have a label."""
    return predictions if predictions.labelled.all() else predictions.take(predictions.labelled)


def skipped(of: str, *reasons: str | None) -> Iterator[Skipped]:
    """Of a dataset or model what cannot be measured, for those reasons that there are."""
    return (Skipped(f"{of}: {reason}") for reason in reasons if reason)


def why_unread(predictions: Predictions | FoundObjects) -> str | None:
    """Why there is nothing to measure at all, or None."""
    if len(predictions):
        return None
    skipped = len(predictions.skipped_images)
    return f"nothing to measure, {f'all {skipped} images were skipped' if skipped else 'it has no images'}"


def why_unlabelled(predictions: Predictions, what: str) -> str | None:
    """Why what needs labels is left out, or None."""
    if not len(predictions) or predictions.labelled.any():
        return None
    return f"{what} needs labels, and no image has one"


def why_no_confidence(predictions: Predictions) -> str | None:
    """Why nothing can be said of the model's confidence, or None."""
    try:
        confidence = top_confidence(predictions.top5, predictions.gives)
    except BadInput as reason:
        return str(reason)
    if len(confidence) and not np.isfinite(confidence).any():
        return "its scores are infinite or not numbers, so it has no confidence"
    return None


def confidence_or_nan(predictions: Predictions) -> NDArray[np.floating]:
    """Confidence in each predicted class, nan where the model gives none."""
    try:
        return top_confidence(predictions.top5, predictions.gives)
    except BadInput:  # `why_no_confidence` passes the reason on
        return np.full(len(predictions), np.nan)


def any_confidence(predictions: Predictions) -> bool:
    """Whether confidence in the predicted class is known of some image."""
    if predictions.gives == "probabilities":  # one that is none spoils all
        return bool(np.isfinite(confidence_or_nan(predictions)).any())
    return any(
        np.isfinite(confidence_of_rows(predictions, np.arange(start, start + len(some)))).any()
        for start, some in in_blocks(predictions.top5.log_total, FEW)
    )


def confidence_of_rows(predictions: Predictions, rows: NDArray[np.integer]) -> NDArray[np.floating]:
    """Confidence in the predicted class of some images, as `confidence_or_nan` has it."""
    if predictions.gives == "probabilities":
        return np.asarray(confidence_or_nan(predictions)[rows])
    if predictions.gives == "scores":
        return np.full(len(rows), np.nan)
    top5 = predictions.top5
    return top_confidence(Top5(top5.classes[rows], top5.scores[rows], top5.log_total[rows]), predictions.gives)


class Point(NamedTuple):
    """One point of a curve: flags of images, (images,) or (models, images), and their clusters."""

    x: float
    flags: NDArray[np.bool_]
    clusters: Clusters


class Band(NamedTuple):
    """Bounds of the points of a curve and how they were made; none where any of the points has too few clusters."""

    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    method: str = ""
    no_interval: NoInterval | None = None


@dataclass(frozen=True)
class Subject:
    """What numbers are of: what they are about, the conventions they follow, and the clusters of the images."""

    about: About
    convention: Mapping[str, str]
    clusters: Clusters  # of the images, in the order of whatever is measured of them

    @classmethod
    def of(cls, run: Run, predictions: Predictions) -> Subject:
        """A model on all images of a dataset."""
        return cls(run.about(), convention_of(run, predictions), predictions.clusters)

    def also(self, about: About | None = None, told: Mapping[str, str] | None = None) -> Subject:
        """The same, about something more particular, or by further conventions."""
        return Subject({**self.about, **(about or {})}, {**self.convention, **(told or {})}, self.clusters)

    def take(self, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Subject:
        """Some of the images."""
        return Subject(self.about, self.convention, self.clusters.take(rows))

    def number(self, metric: str, value: float, within: Interval | NoInterval | None = None) -> Measurement:
        """A number with its confidence interval, or with the reason why it has none."""
        count = self.clusters.count
        return measurement(metric, value, self.about, len(self.clusters), self.convention, within, count)

    def resampled(self, metric: str, value: float, method: str, ends: Ends) -> Measurement:
        """A number with an interval by resampling the images, or the clusters they come in."""
        return self.number(metric, value, resampled_by(method, self.clusters, ends))

    def share(self, metric: str, flags: NDArray[np.bool_]) -> Measurement:
        """A share of images with its interval: exact, or by cluster where images come in clusters."""
        ends = cluster_share_interval(flags, clusters=self.clusters.numbers)
        within = interval_by(CLOPPER_PEARSON, self.clusters, ends, in_clusters=KORN_GRAUBARD)
        return self.number(metric, float(flags.mean()), within)

    def mean(self, metric: str, values: NDArray[np.floating], *, bounds: tuple[float, float] | None = None) -> Measurement:
        """A mean over images, of values between the `bounds` where there are any, with its interval."""
        ends = cluster_mean_interval(values, clusters=self.clusters.numbers, bounds=bounds)
        return self.resampled(metric, float(values.mean()), "Student's t" if bounds is None else "Wilson", ends)

    def difference(self, metric: str, before: NDArray[np.bool_], after: NDArray[np.bool_]) -> Measurement:
        """What the share of the same images loses from `before` to `after`, with its interval."""
        found = paired_difference(before, after, clusters=self.clusters.numbers)
        within = interval_by("Bonett-Price", self.clusters, found.interval, in_clusters="Student's t")
        return self.number(metric, found.difference, within)

    def mean_accuracy_answered(
        self, metric: str, confidence: NDArray[np.floating], correct: NDArray[np.bool_]
    ) -> Measurement:
        """AURRA with its interval, and how far the order of equally confident predictions could move it."""
        ends = aurra_interval(confidence, correct, clusters=self.clusters.numbers)
        low, high = (f"{100 * bound:.2f} %" for bound in aurra_bounds(confidence, correct))
        ties = {"ties": f"mean over their orders; between {low} and {high}"} if low != high else {}
        return self.also(told=ties).resampled(metric, aurra(confidence, correct), "jackknife", ends)

    def curve(
        self,
        name: str,
        axes: tuple[str, str],
        x: Iterable[float],
        y: Iterable[float],
        counts: Iterable[int] | None = None,
        *,
        images: int | None = None,
        clusters: int | None = None,
        band: Band | None = None,
    ) -> Curve:
        """A line with the images behind each point; of all images unless it says of how many."""
        return Curve(
            name,
            self.about,
            *axes,
            x=tuple(map(float, x)),
            y=tuple(map(float, y)),
            images=len(self.clusters) if images is None else images,
            clusters=self.clusters.count if clusters is None else clusters,
            convention=self.convention,
            counts=None if counts is None else tuple(map(int, counts)),
            **(band or Band())._asdict(),
        )

    def share_curve(self, name: str, axes: tuple[str, str], points: Sequence[Point], *, apart: bool = False) -> Curve:
        """Shares with a band as `share` has its interval; no band where any of the points has too few clusters for one.

        Points share their images, or have each their own and stand `apart`, as frames by their distance do.
        """
        found = [
            Subject(self.about, self.convention, joined_clusters([clusters] * len(flags))).share(name, flags.ravel())
            for flags, clusters in ((np.atleast_2d(point.flags), point.clusters) for point in points)
        ]
        known = [one.interval for one in found if one.interval is not None]
        none = next((one.no_interval for one in found if one.no_interval is not None), None)
        band = Band(no_interval=none)
        if known and len(known) == len(found):
            band = Band(tuple(one.low for one in known), tuple(one.high for one in known), known[0].method, none)
        counts = [len(point.clusters) for point in points]
        images = sum(counts) if apart else max(counts, default=0)
        cases = max((point.clusters.count for point in points), default=0)
        x, y = [point.x for point in points], [one.value for one in found]
        return self.curve(name, axes, x, y, counts, images=images, clusters=cases, band=band)


def measurement(
    metric: str,
    value: float,
    about: About,
    images: int,
    convention: Mapping[str, str],
    within: Interval | NoInterval | None,
    clusters: int | None = None,
) -> Measurement:
    """A number with its confidence interval, or with the reason why it has none."""
    interval, none = (within, None) if isinstance(within, Interval) else (None, within)
    return Measurement(metric, value, about, images, convention, interval, clusters, none)


def interval_by(
    method: str, clusters: Clusters, ends: Ends, *, in_clusters: str | None = None, together: str = ""
) -> Interval | NoInterval | None:
    """An interval with its method, another where images come in clusters, or that there are too few clusters.

    `together` says how it was corrected for several comparisons.
    """
    if clusters.numbers is None:
        return None if ends is None else Interval(*ends, method=f"{method}{together}")
    cases = counted(clusters.count, clusters.case)
    if ends is None:
        return too_few(cases)
    return Interval(*ends, method=f"{in_clusters or method}, by {clusters.case}{together}", cases=cases)


def resampled_by(method: str, clusters: Clusters, ends: Ends) -> Interval | NoInterval:
    """The same for what is resampled: images, or the clusters they come in."""
    cases = counted(clusters.count, clusters.case)
    if ends is None:
        return too_few(cases) if clusters.count < LEAST_CLUSTERS else DEGENERATE
    clustered = "" if clusters.numbers is None else cases
    return Interval(*ends, method=f"{method} over {several(clusters.case)}", cases=clustered)


def too_few(cases: str) -> NoInterval:
    """That more clusters are needed for an interval."""
    return NoInterval(f"{cases}, and each is one cluster; at least {LEAST_CLUSTERS} are needed", too_few=True)


def alike_but_for(key: str, found: Iterable[Measurement]) -> list[tuple[About, list[Measurement]]]:
    """The measurements in groups that are about the same but for one thing, each with what its group has in common."""
    groups: dict[tuple[tuple[str, str | int], ...], list[Measurement]] = {}
    for one in found:
        groups.setdefault(tuple(item for item in one.about.items() if item[0] != key), []).append(one)
    return [(dict(common), some) for common, some in groups.items()]


Answers = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which images a first and a second classify correctly, row by row the same images."""


def paired_differences(
    subject: Subject, pairs: Sequence[tuple[About, Answers]], *, metrics: tuple[str, str]
) -> Iterator[tuple[Measurement, ...]]:
    """Of each pair the difference and its p-value under these two names, both corrected for how many pairs there are.

    The correction is Bonferroni's for both, so that an interval leaves out 0 where its p-value is small. Of too few clusters
    there is no p-value.
    """
    difference, chance = metrics
    clusters = subject.clusters
    beside = f", Bonferroni's correction for {len(pairs)} comparisons" if len(pairs) > 1 else ""
    test = "Bonett-Price" if clusters.numbers is None else f"Student's t, by {clusters.case}"
    for about, (first, second) in pairs:
        found = paired_difference(first, second, clusters=clusters.numbers, level=1 - FALSE_ALARMS / len(pairs))
        together = beside.replace("comparisons", "comparisons together")
        within = interval_by("Bonett-Price", clusters, found.interval, in_clusters="Student's t", together=together)
        of_pair = subject.also(about)
        numbers = [of_pair.number(difference, found.difference, within)]
        if found.p is not None:
            numbers.append(of_pair.also(told={"test": test + beside}).number(chance, min(1.0, found.p * len(pairs))))
        yield tuple(numbers)


class Verdict(NamedTuple):
    """What can be said of two models on the same images."""

    dataset: str
    model: str
    versus: str
    better: str | None  # the name of the better model; None where it cannot be told
    text: str


def verdicts(measurements: Iterable[Measurement]) -> list[Verdict]:
    """A verdict on every pair of models that was compared, in the order of their measurements."""
    measurements = list(measurements)
    p_values = {_pair(found): found.value for found in measurements if found.metric == "accuracy_difference_p"}
    return [verdict(found, p_values.get(_pair(found))) for found in measurements if found.metric == "accuracy_difference"]


def verdict(difference: Measurement, p_value: float | None) -> Verdict:
    """A verdict from an `accuracy_difference` and its p-value, both corrected for the number of comparisons.

    >>> from shiftproof.types import Interval
    >>> about = {"model": "old", "versus": "new", "dataset": "photos"}
    >>> sure = Measurement("accuracy_difference", -0.12, about, 500, {}, interval=Interval(-0.16, -0.08))
    >>> verdict(sure, 0.0004).text
    'new is better than old on photos by 12.0 points (8.0 to 16.0; p < 0.001; 500 images)'
    >>> open_case = Measurement("accuracy_difference", 0.01, about, 500, {}, interval=Interval(-0.02, 0.04))
    >>> verdict(open_case, 0.62).text
    'old and new do not differ significantly on photos: +1.0 points (-2.0 to +4.0; p = 0.62; 500 images)'
    """
    dataset, model, versus = _pair(difference)
    if p_value is None or difference.ends is None:
        why = difference.no_interval.told if difference.no_interval else "too few"
        text = f"{model} and {versus} cannot be compared on {dataset}: {why}"
        return Verdict(dataset, model, versus, None, text)
    low, high = difference.ends
    chance = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
    behind = f"{chance}; {difference.images} images"
    if p_value >= FALSE_ALARMS or low <= 0 <= high:
        numbers = f"{100 * difference.value:+.1f} points ({100 * low:+.1f} to {100 * high:+.1f}; {behind})"
        text = f"{model} and {versus} do not differ significantly on {dataset}: {numbers}"
        return Verdict(dataset, model, versus, None, text)
    better, worse = (model, versus) if low > 0 else (versus, model)
    nearer, farther = sorted((100 * abs(low), 100 * abs(high)))
    numbers = f"{100 * abs(difference.value):.1f} points ({nearer:.1f} to {farther:.1f}; {behind})"
    return Verdict(dataset, model, versus, better, f"{better} is better than {worse} on {dataset} by {numbers}")


def _pair(found: Measurement) -> tuple[str, str, str]:
    return str(found.about["dataset"]), str(found.about["model"]), str(found.about["versus"])
