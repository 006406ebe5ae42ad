"""AlexNet's published errors and flip probabilities, and whether they belong to the images at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shiftproof.reference import load_table
from shiftproof.studies.cells import Baseline

ALEXNET = "alexnet"
"""The name under which the published numbers are asked for."""

EVERY_SEVERITY = (1, 2, 3, 4, 5)


def alexnet_errors(corruptions: Sequence[str], severities: Sequence[int], *, told: str) -> Baseline:
    """The published errors of these corruptions over these severities, not a number where there is none.

    >>> found = alexnet_errors(["brightness", "spatter"], [1], told="AlexNet's")
    >>> found.errors, found.reasons
    (array([0.4514,    nan]), ("of spatter AlexNet's error is published over all five severities alone",))
    """
    rows = {row["corruption"]: row for row in load_table("alexnet_corruption_errors")}
    means, reasons = [], []
    for name in corruptions:
        row = rows.get(name, {"mean": "", "s1": ""})
        if row["mean"] and tuple(sorted(severities)) == EVERY_SEVERITY:
            means.append(float(row["mean"]))
        elif row["s1"]:
            means.append(float(np.mean([float(row[f"s{severity}"]) for severity in severities])))
        else:
            means.append(np.nan)
            over = "published over all five severities alone" if row["mean"] else "not published"
            reasons.append(f"of {name} AlexNet's error is {over}")
    return Baseline(told, errors=np.array(means), clean_error=float(rows["clean"]["mean"]), reasons=tuple(reasons))


def alexnet_flips() -> dict[str, float]:
    """The published flip probability of each perturbation."""
    rows = load_table("alexnet_flip_probabilities")
    return {row["perturbation"]: float(row["flip_probability"]) for row in rows}
