"""AUROC over several models: the mean and how far they spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shiftproof.studies import evidence
from shiftproof.types import About, Measurement


def averages_over_models(aurocs: Sequence[Measurement]) -> Iterator[Measurement]:
    """Mean and standard deviation of every AUROC that two models or more have."""
    for common, several in evidence.alike_but_for("model", aurocs):
        if len(several) > 1:
            about: About = {**common, "models": len(several)}
            images = min(found.images for found in several)
            convention = _shared([found.convention for found in several])
            values = np.array([found.value for found in several])
            yield Measurement("mean_auroc", float(values.mean()), about, images, convention)
            spread = {**convention, "spread": "standard deviation of the models, as of a sample"}
            yield Measurement("auroc_spread", float(values.std(ddof=1)), about, images, spread)


def _shared(conventions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What is said alike of all of them; the parameters a detector found are each model's own."""
    first, *others = conventions
    return {key: text for key, text in first.items() if all(other.get(key) == text for other in others)}
