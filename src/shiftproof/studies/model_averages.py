"""The main numbers over several models: the mean and how far they spread."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from shiftproof.studies import evidence
from shiftproof.types import About, Measurement

AVERAGED = ("auroc", "aupr_out", "fpr_at_tpr", "aurc", "correct_discarded")


NO_INTERVAL = {"interval": "none: these models are all that there are; their spread stands beside it"}


def averages_over_models(found: Sequence[Measurement]) -> Iterator[Measurement]:
    """Mean and standard deviation of every main number that two models or more have."""
    for metric in AVERAGED:
        of_metric = [one for one in found if one.metric == metric]
        for common, several in evidence.alike_but_for("model", of_metric):
            if len(several) > 1:
                yield from _mean_and_spread(metric, common, several)


def _mean_and_spread(metric: str, common: About, several: Sequence[Measurement]) -> Iterator[Measurement]:
    mean, spread = ("mean_auroc", "auroc_spread") if metric == "auroc" else ("model_mean", "model_spread")
    about: About = {**common, "models": len(several), **({} if metric == "auroc" else {"of": metric})}
    images = min(one.images for one in several)
    convention = _shared([one.convention for one in several])
    values = np.array([one.value for one in several])
    yield Measurement(mean, float(values.mean()), about, images, convention)
    told = {**convention, "spread": "standard deviation of the models, as of a sample"}
    yield Measurement(spread, float(values.std(ddof=1)), about, images, told)


def _shared(conventions: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What is said alike of all of them; the parameters a detector found are each model's own, and so are intervals."""
    first, *others = conventions
    alike = {key: text for key, text in first.items() if all(other.get(key) == text for other in others)}
    return {key: text for key, text in alike.items() if key not in ("interval", "cases")} | NO_INTERVAL
