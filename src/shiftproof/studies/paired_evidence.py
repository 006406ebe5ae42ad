"""Differences in accuracy on the same images, several at once: how large each is, and whether it is more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shiftproof.metrics import PairedCounts, difference_interval, holm, mcnemar_p
from shiftproof.studies import evidence
from shiftproof.studies.verdicts import FALSE_ALARMS
from shiftproof.types import About, Measurement


def paired_differences(
    pairs: Sequence[tuple[About, PairedCounts]], convention: Mapping[str, str], *, metrics: tuple[str, str]
) -> Iterator[tuple[Measurement, Measurement]]:
    """Of each pair the difference and its p-value under these two names, both corrected for how many pairs there are."""
    counts = [counted for _, counted in pairs]
    p_values = holm(np.array([mcnemar_p(counted.only_first, counted.only_second) for counted in counts]))
    interval, test = dict(evidence.PAIRED), {"test": "exact McNemar"}
    if len(pairs) > 1:
        interval["interval"] = f"95 % for all {len(pairs)} comparisons together, Bonett-Price with Bonferroni's correction"
        test["test"] = f"exact McNemar, Holm's correction for {len(pairs)} comparisons"
    difference, chance = metrics
    for (about, counted), p_value in zip(pairs, p_values.tolist(), strict=True):
        bounds = difference_interval(counted, level=1 - FALSE_ALARMS / len(pairs))
        yield (
            Measurement(difference, counted.difference, about, counted.images, {**convention, **interval}, bounds),
            Measurement(chance, p_value, about, counted.images, {**convention, **test}),
        )
