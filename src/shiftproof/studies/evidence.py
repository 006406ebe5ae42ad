"""From stored predictions to measurements: which rows count, what stands beside each number, and why one cannot be had."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.metrics import (
    aurra,
    aurra_bounds,
    aurra_interval,
    cluster_share_interval,
    paired_difference,
    top_confidence,
)
from shiftproof.metrics.intervals import LEAST_CLUSTERS
from shiftproof.metrics.jackknife import cluster_mean_interval
from shiftproof.types import About, Clusters, Curve, FoundObjects, Measurement, Predictions, Run, joined_clusters

EXACT = {"interval": "95 %, Clopper-Pearson"}
KORN_GRAUBARD = "Korn-Graubard"
TOO_FEW = "too few"
"""How the reason begins where a number has no interval because more images could give it one."""

NOT_TOLD = "none: drawn again or left out, these images always give the same number, or sometimes none at all"


def convention_of(run: Run, predictions: Predictions) -> dict[str, str]:
    """What stands beside every number of a run: how pixels came to the model, which classes and images counted."""
    read, labelled = len(predictions), int(predictions.labelled.sum())
    left = left_out(set_aside=len(predictions.set_aside), read=read, labelled=labelled)
    return {**run.convention(), **predictions.convention, **left}


def left_out(*, set_aside: int, read: int, labelled: int) -> dict[str, str]:
    """How many images a number goes without, in words; nothing where it has them all.

    >>> left_out(set_aside=3, read=997, labelled=900)
    {'set aside': '3 of 1000', 'without label': '97 of 997, left out of what needs labels'}
    """
    aside = {"set aside": f"{set_aside} of {set_aside + read}"} if set_aside else {}
    partly = {"without label": f"{read - labelled} of {read}, left out of what needs labels"} if 0 < labelled < read else {}
    return {**aside, **partly}


def labelled_only(predictions: Predictions) -> Predictions:
    """The rows that have a label."""
    return predictions if predictions.labelled.all() else predictions.take(predictions.labelled)


def nothing_read(run: Run, predictions: Predictions | FoundObjects) -> str | None:
    """Why there is nothing to measure at all, or None."""
    if len(predictions):
        return None
    aside = len(predictions.set_aside)
    why = f"all {aside} images were set aside" if aside else "it has no images"
    return f"{run.image_set.name}: nothing to measure, {why}"


def nothing_labelled(run: Run, predictions: Predictions, what: str) -> str | None:
    """Why what needs labels is left out, or None."""
    if not len(predictions) or predictions.labelled.any():
        return None
    return f"{run.image_set.name}: {what} needs labels, and no image has one"


def no_confidence(run: Run, predictions: Predictions) -> str | None:
    """Why nothing can be said of the model's confidence, or None."""
    try:
        confidence = top_confidence(predictions.top5, predictions.gives)
    except BadInput as reason:
        return f"{run.model.name}: {reason}"
    if len(confidence) and not np.isfinite(confidence).any():
        return f"{run.model.name}: its scores are infinite or not numbers, so it has no confidence"
    return None


def confidence_or_nan(predictions: Predictions) -> NDArray[np.floating]:
    """Confidence in each first class, nan where the model does not tell."""
    try:
        return top_confidence(predictions.top5, predictions.gives)
    except BadInput:  # `no_confidence` passes the reason on
        return np.full(len(predictions), np.nan)


def share(
    metric: str, right: NDArray[np.bool_], about: About, convention: Mapping[str, str], clusters: Clusters
) -> Measurement:
    """A share of images with its interval: exact, or by cluster where images are not cases of their own."""
    interval = cluster_share_interval(right, clusters=clusters.numbers)
    told = {**convention, **interval_told("Clopper-Pearson", clusters, interval, in_clusters=KORN_GRAUBARD)}
    return Measurement(metric, float(right.mean()), about, len(right), told, interval, clusters.count)


def mean(
    metric: str,
    values: NDArray[np.floating],
    about: About,
    convention: Mapping[str, str],
    clusters: Clusters,
    *,
    bounds: tuple[float, float] | None = None,
) -> Measurement:
    """A mean over images, of values between the `bounds` where there are any, with its interval."""
    interval = cluster_mean_interval(values, clusters=clusters.numbers, bounds=bounds)
    told = {**convention, **resampled_told(clusters, interval, what="Student's t" if bounds is None else "Wilson")}
    return Measurement(metric, float(values.mean()), about, len(values), told, interval, clusters.count)


def difference(
    metric: str,
    before: NDArray[np.bool_],
    after: NDArray[np.bool_],
    about: About,
    convention: Mapping[str, str],
    clusters: Clusters,
) -> Measurement:
    """What the share of the same images loses from `before` to `after`, with its interval."""
    found = paired_difference(before, after, clusters=clusters.numbers)
    told = {**convention, **interval_told("Bonett-Price", clusters, found.interval, in_clusters="Student's t")}
    return Measurement(metric, found.difference, about, len(before), told, found.interval, clusters.count)


class Point(NamedTuple):
    """One point of a curve: flags of images, (images,) or (models, images), and which images are one case."""

    x: float
    flags: NDArray[np.bool_]
    clusters: Clusters


def share_curve(
    name: str,
    about: About,
    axes: tuple[str, str],
    points: Sequence[Point],
    convention: Mapping[str, str],
    *,
    apart: bool = False,
) -> Curve:
    """Shares with a band as `share` has its interval; no band where any of the points has too few cases for one.

    Points share their images, or have each their own and stand `apart`, as frames by their distance do.
    """
    found = [
        share(name, flags.ravel(), about, convention, joined_clusters([clusters] * len(flags)))
        for flags, clusters in ((np.atleast_2d(point.flags), point.clusters) for point in points)
    ]
    bounds = [one.interval for one in found if one.interval is not None]
    banded = len(bounds) == len(found)
    told = next((one.convention for one in found if one.interval is None or banded), convention)
    counts = tuple(len(point.clusters) for point in points)
    return Curve(
        name,
        about,
        *axes,
        x=tuple(float(point.x) for point in points),
        y=tuple(one.value for one in found),
        images=sum(counts) if apart else max(counts, default=0),
        convention=told,
        counts=counts,
        low=tuple(low for low, _ in bounds) if banded else None,
        high=tuple(high for _, high in bounds) if banded else None,
    )


def interval_told(
    method: str, clusters: Clusters, interval: tuple[float, float] | None, *, in_clusters: str | None = None
) -> dict[str, str]:
    """By which method an interval was made, another where images come in clusters, or why there is none."""
    if clusters.numbers is None:
        return {} if interval is None else {"interval": f"95 %, {method}"}
    cases = counted(clusters.count, clusters.case)
    if interval is None:
        return {"interval": too_few(cases)}
    return {"interval": f"95 %, {in_clusters or method}, by {clusters.case}", "cases": cases}


def resampled_told(clusters: Clusters, interval: tuple[float, float] | None, *, what: str) -> dict[str, str]:
    """The same for what is drawn again or left out: images, or the clusters they come in."""
    cases = counted(clusters.count, clusters.case)
    if interval is None:
        return {"interval": too_few(cases) if clusters.count < LEAST_CLUSTERS else NOT_TOLD}
    told = {"interval": f"95 %, {what} over {several(clusters.case)}"}
    return told if clusters.numbers is None else {**told, "cases": cases}


def too_few(cases: str) -> str:
    """Why there is no interval."""
    return f"{TOO_FEW}: {cases}, and each is one case; at least {LEAST_CLUSTERS} are needed"


def counted(number: int, unit: str) -> str:
    """A number of cases in words.

    >>> counted(1, "clip"), counted(1200, "source image")
    ('1 clip', '1,200 source images')
    """
    return f"{number:,} {unit if number == 1 else several(unit)}"


def several(unit: str) -> str:
    """The plural of what one case is.

    >>> several("image or source image"), several("body"), several("clip (near-duplicates joined)")
    ('images or source images', 'bodies', 'clips (near-duplicates joined)')
    """
    names, bracket, beside = unit.partition(" (")
    words = (re.sub("([^aeiou])y$", r"\1ie", word) for word in names.split(" or "))
    return " or ".join(word if word.endswith("s") else f"{word}s" for word in words) + bracket + beside


def mean_accuracy_answered(
    metric: str,
    confidence: NDArray[np.floating],
    correct: NDArray[np.bool_],
    about: About,
    convention: Mapping[str, str],
    clusters: Clusters,
) -> Measurement:
    """AURRA with its interval, and how far the order of equally sure answers could move it."""
    interval = aurra_interval(confidence, correct, clusters=clusters.numbers)
    low, high = (f"{100 * bound:.2f} %" for bound in aurra_bounds(confidence, correct))
    ties = {"ties": f"mean over their orders; between {low} and {high}"} if low != high else {}
    told = {**convention, **ties, **resampled_told(clusters, interval, what="jackknife")}
    return Measurement(metric, aurra(confidence, correct), about, len(correct), told, interval, clusters.count)


def alike_but_for(key: str, found: Iterable[Measurement]) -> list[tuple[About, list[Measurement]]]:
    """The measurements in groups that are about the same but for one thing, each with what its group has in common."""
    groups: dict[tuple[tuple[str, str | int], ...], list[Measurement]] = {}
    for one in found:
        groups.setdefault(tuple(item for item in one.about.items() if item[0] != key), []).append(one)
    return [(dict(common), some) for common, some in groups.items()]
