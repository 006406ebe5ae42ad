"""AUROC of the detectors by distance to the ID images in a feature space."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.budget import clustered_variance
from shiftproof.metrics.delong import placements
from shiftproof.metrics.frechet import Moments, frechet_distance, moments_of
from shiftproof.metrics.intervals import LEAST_CLUSTERS, student_quantile
from shiftproof.metrics.trends import Line, fit_line, intercept_difference, interval_gap
from shiftproof.metrics.wording import counted
from shiftproof.ood.nearest_neighbours import nearest_rows
from shiftproof.studies import evidence
from shiftproof.studies.ood.scores import Judged, Scored, Variant
from shiftproof.types import Clusters, Curve, Features, Finding, Interval, Measurement, NoInterval, OODScores, Predictions

MOST_GROUPS, LEAST_GROUPS, IMAGES_A_GROUP = 100, 5, 50
WELCH = "Welch's t over the groups of either set"
STUDENT = "least squares with Student's t over groups, plus the uncertainty from the ID images"
MIXED = NoInterval("groups of similar distance mix images of one cluster, so groups are not independent")
OF_INTERVALS = NoInterval("of intervals")
BIASED = NoInterval("biased upwards for few images, which a CI would not show")

DISTANCES, FRECHET = "the distance analysis", "the Fréchet distance"


class Nearness(NamedTuple):
    """The ID image nearest each image of a variant, and how far away it is."""

    neighbours: tuple[str, ...]
    distances: NDArray[np.floating]  # (images,)


class Surroundings:
    """How far the images of every variant lie from the ID set; of all their features only the ID set's are kept."""

    def __init__(self, space: str) -> None:
        self.space = space  # the model whose features measure distance
        self.nearness: dict[str, Nearness] = {}  # by variant
        self.frechet: dict[str, float] = {}
        self.features = 0  # of an image, as that model sees it
        self.left_out: dict[str, str] = {}
        self._references: tuple[Sequence[str], Features] | None = None
        self._moments: Moments | None = None

    def add(self, variant: Variant, own: Predictions, points: Predictions) -> None:
        """Takes in the images of a variant, the ID dataset first; distances are measured in the features of `points`."""
        for what, take in ((DISTANCES, self._take_distances), (FRECHET, self._take_moments)):
            try:
                if what not in self.left_out:
                    self._check_same_images(variant, own, points)
                    take(variant, points)
            except (NotKept, BadInput) as reason:
                # without the ID set there is nothing to measure from; without another, the rest is still there
                self.left_out[what if variant.role == "id" else f"{what} of {variant.name}"] = str(reason)

    def free(self) -> None:
        """Forgets the features."""
        self._references = self._moments = None

    def _check_same_images(self, variant: Variant, own: Predictions, points: Predictions) -> None:
        if own.ids != points.ids:
            raise BadInput(f"{self.space} has not read the same images of {variant.name}")

    def _take_distances(self, variant: Variant, points: Predictions) -> None:
        features = points.need_features()
        if not np.isfinite(features).all():
            raise BadInput(f"some features of {variant.name} are infinite or not numbers")
        if self._references is None:
            self._references = points.ids, features
            return
        ids, references = self._references
        places, distances = nearest_rows(features, references)
        self.nearness[variant.name] = Nearness(tuple(ids[place] for place in places.tolist()), distances)

    def _take_moments(self, variant: Variant, points: Predictions) -> None:
        moments = moments_of([points.need_features()])
        if self._moments is None:
            self._moments, self.features = moments, len(moments.mean)
        else:
            self.frechet[variant.name] = frechet_distance(self._moments, moments)


def distance_findings(judged: Judged, surroundings: Surroundings, *, groups: int | None) -> Iterator[Finding]:
    """For every shifted and OOD set and every detector: AUROC of groups by distance, and the line through them.

    Then, for every pair of a shifted and an OOD set, whether their lines begin at different heights.
    """
    lines: dict[tuple[str, str], Line] = {}  # by detector and set
    for other in (*judged.shifted, *judged.ood):
        yield from _frechet(judged, other, surroundings)
        if other.name not in surroundings.nearness:
            continue
        distances = surroundings.nearness[other.name].distances
        parts = groups_by_distance(distances, groups)
        if len(parts) < LEAST_GROUPS:
            continue
        told = {
            "distance": f"to the nearest ID image, between directions of features of {surroundings.space}",
            "groups": f"{len(parts)} of about {len(other) // len(parts)} images of similar distance",
        }
        middles = np.array([distances[part].mean() for part in parts])
        for name in judged.detectors:
            id_set, other_scores = judged.id_set.scores[name], other.scores[name]
            _, share_above = placements(id_set, other_scores)
            aurocs = np.array([share_above[part].mean() for part in parts])
            if np.ptp(middles) > 0:
                line = fit_line(middles, aurocs)
                lines[name, other.name] = with_id_error(line, middles, parts, id_set, other_scores, judged.id_set.clusters)
            counts = [len(part) for part in parts]
            yield from _line(judged, other, name, middles, aurocs, counts, told, lines.get((name, other.name)))
    yield from _heights(judged, lines)


def with_id_error(
    line: Line,
    middles: NDArray[np.floating],
    parts: Sequence[NDArray[np.intp]],
    id_set: OODScores,
    other_scores: OODScores,
    clusters: Clusters,
) -> Line:
    """The line with intervals that know of the ID images too, by the `clusters` these come in.

    All groups are held against the same ID images: what other ones would change moves the whole line, and does not show
    in how the groups scatter about it. The standard errors stay those of the groups: between two lines, the rest cancels.
    """
    if clusters.count < LEAST_CLUSTERS:
        return line
    across = middles - middles.mean()
    slope = across / (across @ across)
    order, sizes = np.argsort(other_scores), [len(part) for part in parts]
    ends = [np.searchsorted(other_scores[order], id_set, side) for side in ("left", "right")]
    intervals = []
    for value, error, (low, high), weights in (
        (line.slope, line.slope_error, line.slope_interval, slope),
        (line.intercept, line.intercept_error, line.intercept_interval, 1 / len(middles) - middles.mean() * slope),
    ):
        # what each ID image adds to the number: the groups' shares above it, weighted as the line weighs groups
        of_image = np.zeros(len(other_scores))
        of_image[np.concatenate(parts)] = np.repeat(weights / sizes, sizes)
        below = np.append(0.0, np.cumsum(of_image[order]))
        of_id = below[-1] - (below[ends[0]] + below[ends[1]]) / 2
        open_ = float(clustered_variance(of_id[:, None], clusters.numbers)[0])
        spread = error**2 + open_
        degrees = spread**2 / (error**4 / (line.points - 2) + open_**2 / (clusters.count - 1)) if spread > 0 else 1.0
        reach = student_quantile(0.975, degrees) * float(np.sqrt(spread))
        intervals.append((min(low, value - reach), max(high, value + reach)))
    return dataclasses.replace(line, slope_interval=intervals[0], intercept_interval=intervals[1])


def _heights(judged: Judged, lines: Mapping[tuple[str, str], Line]) -> Iterator[Measurement]:
    """How much higher the lines of shifted sets begin than those of OOD sets, and what lies between their intervals."""
    for name, shifted, ood_set in product(judged.detectors, judged.shifted, judged.ood):
        if not {(name, shifted.name), (name, ood_set.name)} <= lines.keys():
            continue
        if any(_why_none(judged, one) for one in (shifted, ood_set)):
            continue  # their intercepts have no intervals to hold against each other
        one, other = lines[name, shifted.name], lines[name, ood_set.name]
        about = {**judged.about, "ood_detector": name, "set": shifted.name, "versus": ood_set.name}
        images, convention = len(shifted) + len(ood_set), judged.convention(shifted, name)
        higher = intercept_difference(one, other)
        within = Interval(*higher.interval, method=WELCH)
        yield Measurement("distance_intercept_difference", higher.value, about, images, convention, within)
        gap = interval_gap(one.intercept_interval, other.intercept_interval)
        told = {**convention, "between": "the 95 % intervals of either intercept; below 0 they overlap"}
        yield Measurement("distance_intercept_gap", gap, about, images, told, no_interval=OF_INTERVALS)


def too_few_for(groups: int, surroundings: Surroundings) -> dict[str, str]:
    """What cannot be looked at in so many groups, and why."""
    return {
        f"{DISTANCES} of {name}": f"{groups} groups need {2 * groups} images, and it has {len(near.distances)}"
        for name, near in surroundings.nearness.items()
        if len(near.distances) < 2 * groups
    }


def groups_by_distance(distances: NDArray[np.floating], groups: int | None = None) -> list[NDArray[np.intp]]:
    """Rows of similar distance, nearest first, as many in each group or one fewer; none where images are too few.

    >>> [group.tolist() for group in groups_by_distance(np.array([0.3, 0.1, 0.2, 0.9]), 2)]
    [[1, 2], [0, 3]]
    """
    count = groups or int(np.clip(len(distances) // IMAGES_A_GROUP, LEAST_GROUPS, MOST_GROUPS))
    if len(distances) < 2 * count:
        return []
    return np.array_split(np.argsort(distances, kind="stable"), count)


def _frechet(judged: Judged, other: Scored, surroundings: Surroundings) -> Iterator[Measurement]:
    if other.name not in surroundings.frechet:
        return
    told = {"features": f"{surroundings.features:,} of {surroundings.space}"}
    if min(len(judged.id_set), len(other)) <= surroundings.features:
        told["few images"] = "rank-deficient: fewer images than features, so the number is too high and compares badly"
    about = {**judged.about, "set": other.name}
    images = len(judged.id_set) + len(other)
    distance, convention = surroundings.frechet[other.name], {**other.convention, **told}
    yield Measurement("frechet_distance", distance, about, images, convention, no_interval=BIASED)


def _why_none(judged: Judged, other: Scored) -> NoInterval | None:
    """Why the line of a set has no intervals; None where it has them."""
    if other.clusters.numbers is not None:
        return MIXED
    id_set = judged.id_set.clusters
    few = id_set.count < LEAST_CLUSTERS
    return evidence.too_few(f"ID {counted(id_set.count, id_set.unit)}") if few else None


def _line(
    judged: Judged,
    other: Scored,
    name: str,
    middles: NDArray[np.floating],
    aurocs: NDArray[np.floating],
    counts: list[int],
    told: Mapping[str, str],
    line: Line | None,
) -> Iterator[Finding]:
    about, images = {**judged.about, "ood_detector": name, "set": other.name}, len(other)
    convention = {**judged.convention(other, name), **told}
    yield Curve(
        "distance_auroc",
        about,
        "mean distance to the nearest ID image",
        "AUROC against the ID set",
        x=tuple(middles.tolist()),
        y=tuple(aurocs.tolist()),
        images=images,
        convention=convention,
        counts=tuple(counts),
    )
    if line is not None:
        none = _why_none(judged, other)
        for metric, value, within in (
            ("distance_slope", line.slope, line.slope_interval),
            ("distance_intercept", line.intercept, line.intercept_interval),
        ):
            stated = none or Interval(*within, method=STUDENT)
            yield evidence.measurement(metric, value, about, images, convention, stated, other.clusters.count)
