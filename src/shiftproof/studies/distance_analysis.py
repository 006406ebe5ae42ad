"""Whether detectors see how far images lie from the inside set: AUROC against distance in a feature space."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.detectors.neighbour_search import nearest_rows
from shiftproof.errors import BadInput, NotKept
from shiftproof.metrics.delong import placements
from shiftproof.metrics.frechet import Moments, frechet_distance, moments_of
from shiftproof.metrics.intervals import LEAST_CLUSTERS, student_quantile
from shiftproof.metrics.sampled_cells import clustered_variance
from shiftproof.metrics.trends import Line, fit_line, intercept_difference, interval_gap
from shiftproof.studies import evidence
from shiftproof.studies.novelty_scores import Judged, Scored
from shiftproof.studies.novelty_variants import Variant
from shiftproof.types import AnomalyScores, Clusters, Curve, Features, Finding, Measurement, Predictions

MOST_GROUPS, LEAST_GROUPS, IMAGES_A_GROUP = 100, 5, 50
WELCH = {"interval": "95 %, Welch's t over the groups of either set"}
STUDENT = {"interval": "95 %, least squares with Student's t over groups, and what the inside images leave open"}
MIXED = {"interval": "none: groups alike in distance mix images of one case, so groups are not independent"}

DISTANCES, FRECHET = "the distance analysis", "the Fréchet distance"


class Nearness(NamedTuple):
    """The inside image nearest each image of a variant, and how far away it is."""

    neighbours: tuple[str, ...]
    distances: NDArray[np.floating]  # (images,)


class Surroundings:
    """How far the images of every variant lie from the inside set; of all their features only the inside set's are kept."""

    def __init__(self, space: str) -> None:
        self.space = space  # the model whose features measure distance
        self.nearness: dict[str, Nearness] = {}  # by variant
        self.frechet: dict[str, float] = {}
        self.features = 0  # of an image, as that model sees it
        self.left_out: dict[str, str] = {}
        self._references: tuple[tuple[str, ...], Features] | None = None
        self._moments: Moments | None = None

    def add(self, variant: Variant, own: Predictions, points: Predictions) -> None:
        """Takes in the images of a variant, the inside set first: `own` are what the model says, `points` what measures."""
        for what, take in ((DISTANCES, self._take_distances), (FRECHET, self._take_moments)):
            try:
                if what not in self.left_out:
                    self._check_same_images(variant, own, points)
                    take(variant, points)
            except (NotKept, BadInput) as reason:
                # without the inside set there is nothing to measure from; without another, the rest is still there
                self.left_out[what if variant.role == "inside" else f"{what} of {variant.name}"] = str(reason)

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
        self.nearness[variant.name] = Nearness(tuple(ids[place] for place in places), distances)

    def _take_moments(self, variant: Variant, points: Predictions) -> None:
        moments = moments_of([points.need_features()])
        if self._moments is None:
            self._moments, self.features = moments, len(moments.mean)
        else:
            self.frechet[variant.name] = frechet_distance(self._moments, moments)


def distance_findings(judged: Judged, surroundings: Surroundings, *, groups: int | None) -> Iterator[Finding]:
    """For every shifted and outside set and every detector: AUROC of groups by distance, and the line through them.

    Then, for every pair of a shifted and an outside set, whether their lines begin at different heights.
    """
    lines: dict[tuple[str, str], Line] = {}  # by detector and set
    for other in (*judged.shifted, *judged.outside):
        yield from _frechet(judged, other, surroundings)
        if other.name not in surroundings.nearness:
            continue
        distances = surroundings.nearness[other.name].distances
        parts = groups_by_distance(distances, groups)
        if len(parts) < LEAST_GROUPS:
            continue
        told = {
            "distance": f"to the nearest inside image, between directions of features of {surroundings.space}",
            "groups": f"{len(parts)} of about {len(other) // len(parts)} images alike in distance",
        }
        middles = np.array([distances[part].mean() for part in parts])
        for name in judged.detectors:
            inside, foreign = judged.inside.scores[name], other.scores[name]
            _, share_above = placements(inside, foreign)
            aurocs = np.array([share_above[part].mean() for part in parts])
            if np.ptp(middles) > 0:
                line = fit_line(middles, aurocs)
                lines[name, other.name] = with_inside_error(line, middles, parts, inside, foreign, judged.inside.clusters)
            counts = [len(part) for part in parts]
            yield from _line(judged, other, name, middles, aurocs, counts, told, lines.get((name, other.name)))
    yield from _heights(judged, lines)


def with_inside_error(
    line: Line,
    middles: NDArray[np.floating],
    parts: Sequence[NDArray[np.intp]],
    inside: AnomalyScores,
    foreign: AnomalyScores,
    clusters: Clusters,
) -> Line:
    """The line with intervals that know of the inside images too, by the `clusters` these come in.

    All groups are held against the same inside images: what other ones would change moves the whole line, and does not show
    in how the groups scatter about it. The standard errors stay those of the groups: between two lines, the rest cancels.
    """
    if clusters.count < LEAST_CLUSTERS:
        return line
    across = middles - middles.mean()
    slope = across / (across @ across)
    order, sizes = np.argsort(foreign), [len(part) for part in parts]
    ends = [np.searchsorted(foreign[order], inside, side) for side in ("left", "right")]
    intervals = []
    for value, error, (low, high), weights in (
        (line.slope, line.slope_error, line.slope_interval, slope),
        (line.intercept, line.intercept_error, line.intercept_interval, 1 / len(middles) - middles.mean() * slope),
    ):
        # what each inside image adds to the number: the groups' shares above it, weighted as the line weighs groups
        of_image = np.zeros(len(foreign))
        of_image[np.concatenate(parts)] = np.repeat(weights / sizes, sizes)
        below = np.append(0.0, np.cumsum(of_image[order]))
        of_inside = below[-1] - (below[ends[0]] + below[ends[1]]) / 2
        open_ = float(clustered_variance(of_inside[:, None], clusters.numbers)[0])
        spread = error**2 + open_
        degrees = spread**2 / (error**4 / (line.points - 2) + open_**2 / (clusters.count - 1)) if spread > 0 else 1.0
        reach = student_quantile(0.975, degrees) * float(np.sqrt(spread))
        intervals.append((min(low, value - reach), max(high, value + reach)))
    return dataclasses.replace(line, slope_interval=intervals[0], intercept_interval=intervals[1])


def _heights(judged: Judged, lines: Mapping[tuple[str, str], Line]) -> Iterator[Measurement]:
    """How much higher the lines of shifted sets begin than those of outside sets, and what lies between their intervals."""
    for name, shifted, outside in product(judged.detectors, judged.shifted, judged.outside):
        if not {(name, shifted.name), (name, outside.name)} <= lines.keys():
            continue
        if any(_why_none(judged, one) for one in (shifted, outside)):
            continue  # their intercepts have no intervals to hold against each other
        one, other = lines[name, shifted.name], lines[name, outside.name]
        about = {**judged.about, "detector": name, "set": shifted.name, "versus": outside.name}
        images, convention = len(shifted) + len(outside), judged.convention(shifted, name)
        higher = intercept_difference(one, other)
        yield Measurement(
            "distance_intercept_difference", higher.value, about, images, {**convention, **WELCH}, higher.interval
        )
        gap = interval_gap(one.intercept_interval, other.intercept_interval)
        told = {
            **convention,
            "between": "the 95 % intervals of either intercept; below 0 they overlap",
            "interval": "none: of intervals",
        }
        yield Measurement("distance_intercept_gap", gap, about, images, told)


def too_few_for(groups: int, surroundings: Surroundings) -> dict[str, str]:
    """What cannot be looked at in so many groups, and why."""
    return {
        f"{DISTANCES} of {name}": f"{groups} groups need {2 * groups} images, and it has {len(near.distances)}"
        for name, near in surroundings.nearness.items()
        if len(near.distances) < 2 * groups
    }


def groups_by_distance(distances: NDArray[np.floating], groups: int | None = None) -> list[NDArray[np.intp]]:
    """Rows alike in distance, nearest first, as many in each group or one fewer; none where images are too few.

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
    if min(len(judged.inside), len(other)) <= surroundings.features:
        told["few images"] = "rank-deficient: fewer images than features, so the number is too high and compares badly"
    told["interval"] = "none: of few images the distance comes out too high, which no interval about it would tell"
    about = {**judged.about, "set": other.name}
    images = len(judged.inside) + len(other)
    yield Measurement("frechet_distance", surroundings.frechet[other.name], about, images, {**other.convention, **told})


def _why_none(judged: Judged, other: Scored) -> dict[str, str]:
    """Why the line of a set has no intervals; nothing where it has them."""
    if other.clusters.numbers is not None:
        return MIXED
    inside = judged.inside.clusters
    few = inside.count < LEAST_CLUSTERS
    return {"interval": evidence.too_few(f"inside {evidence.counted(inside.count, inside.unit)}")} if few else {}


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
    about, images = {**judged.about, "detector": name, "set": other.name}, len(other)
    convention = {**judged.convention(other, name), **told}
    yield Curve(
        "distance_auroc",
        about,
        "mean distance to the nearest inside image",
        "AUROC against the inside set",
        x=tuple(middles.tolist()),
        y=tuple(aurocs.tolist()),
        images=images,
        convention=convention,
        counts=tuple(counts),
    )
    if line is not None:
        none = _why_none(judged, other)
        stated = {**convention, **(none or STUDENT)}
        for metric, value, within in (
            ("distance_slope", line.slope, line.slope_interval),
            ("distance_intercept", line.intercept, line.intercept_interval),
        ):
            yield Measurement(metric, value, about, images, stated, None if none else within, other.clusters.count)
