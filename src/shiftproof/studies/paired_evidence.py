"""Differences in accuracy on the same images, several at once: how large each is, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import paired_difference
from shiftproof.studies import evidence
from shiftproof.studies.verdicts import FALSE_ALARMS
from shiftproof.types import About, Clusters, Measurement

Answers = tuple[NDArray[np.bool_], NDArray[np.bool_]]
"""Which images a first and a second got right, row by row the same images."""


def paired_differences(
    pairs: Sequence[tuple[About, Answers]],
    convention: Mapping[str, str],
    *,
    metrics: tuple[str, str],
    clusters: Clusters,
) -> Iterator[tuple[Measurement, ...]]:
    """Of each pair the difference and its p-value under these two names, both corrected for how many pairs there are.

    The correction is Bonferroni's for both, so that an interval leaves out 0 where its p-value is small. Of too few clusters
    there is no p-value.
    """
    difference, chance = metrics
    beside = f", Bonferroni's correction for {len(pairs)} comparisons" if len(pairs) > 1 else ""
    test = "Bonett-Price" if clusters.numbers is None else f"Student's t, by {clusters.case}"
    for about, (first, second) in pairs:
        found = paired_difference(first, second, clusters=clusters.numbers, level=1 - FALSE_ALARMS / len(pairs))
        told = evidence.interval_told("Bonett-Price", clusters, found.interval, in_clusters="Student's t")
        if "interval" in told and found.interval is not None:
            told["interval"] += beside.replace("comparisons", "comparisons together")
        numbers = [(difference, found.difference, told, found.interval)]
        if found.p is not None:
            numbers.append((chance, min(1.0, found.p * len(pairs)), {"test": test + beside}, None))
        yield tuple(
            Measurement(metric, value, about, len(first), {**convention, **stated}, bounds, clusters.count)
            for metric, value, stated, bounds in numbers
        )
