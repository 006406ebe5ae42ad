"""The same question asked of networks that never learned anything: what they tell apart is pixels and not classes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from shiftproof.metrics.separation import auroc
from shiftproof.studies import evidence
from shiftproof.studies.novelty_scores import DetectorPanel, Judged
from shiftproof.studies.novelty_variants import MISTAKES_ALONE
from shiftproof.types import AnomalyScores, Measurement

VariantScores = Mapping[str, Mapping[str, AnomalyScores]]
"""By variant, then by detector."""

FITTED_AGAIN = {
    "network": "same architecture, weights drawn anew; detectors that learn were fitted on it again",
    "interval": "none: of one network; the mean over networks has one",
}


def random_network_aurocs(
    judged: Judged, panel: DetectorPanel, scores: VariantScores, *, network: int
) -> Iterator[Measurement]:
    """AUROC of the unchanged inside images against every shifted and outside set, as one random network sees them."""
    inside = scores[judged.inside.name]
    for other in (*judged.shifted, *judged.outside):
        for name, foreign in scores[other.name].items():
            if name in panel.ready:
                yield Measurement(
                    "random_network_auroc",
                    auroc(inside[name], foreign),
                    {**judged.about, "detector": name, "shift": other.name, "network": network},
                    len(inside[name]) + len(foreign),
                    {**other.convention, **panel.ready[name].convention(), **FITTED_AGAIN},
                )


def random_network_failures(
    judged: Judged, panel: DetectorPanel, scores: VariantScores, *, network: int
) -> Iterator[Measurement]:
    """AUROC of failure detection with one random network's scores: how far the bare pixels tell which answers are wrong.

    Right and wrong are the trained model's answers; a network that never learned anything has next to no right ones. Wrong
    answers are to be found alone, then together with all outside images.
    """
    everything = [one for one in judged.outside if one.name in scores]
    for inside, name in product((judged.inside, *judged.shifted), panel.ready):
        own = scores.get(inside.name, {}).get(name)
        if own is None or len(own) != len(inside) or not inside.correct.any():
            continue
        to_find = {MISTAKES_ALONE: [own[inside.wrong]]}
        if everything:
            to_find[judged.outsides[-1].name] = [own[inside.wrong], *(scores[one.name][name] for one in everything)]
        for found, parts in to_find.items():
            foreign, familiar = np.concatenate(parts), own[inside.correct]
            if len(foreign):
                told = {"right and wrong": f"answers of {judged.about['model']}, the trained model"}
                yield Measurement(
                    "random_network_failure_auroc",
                    auroc(familiar, foreign),
                    {**judged.about, "detector": name, "inside": inside.name, "outside": found, "network": network},
                    len(familiar) + len(foreign),
                    {**inside.convention, **panel.ready[name].convention(), **FITTED_AGAIN, **told},
                )


def means_over_networks(aurocs: Sequence[Measurement]) -> Iterator[Measurement]:
    """The mean over networks of one metric, with an interval from how far two or more of them lie apart."""
    for common, several in evidence.alike_but_for("network", aurocs):
        values = np.array([found.value for found in several])
        told = {**several[0].convention, "networks": str(len(several)), "interval": "none: of one network"}
        if len(several) > 1:
            told["interval"] = "95 %, Student's t over networks, on exactly these images"
        mean = f"mean_{several[0].metric}"
        yield Measurement(mean, float(values.mean()), common, several[0].images, told, _t_interval(values))


def _t_interval(values: np.ndarray[tuple[int], np.dtype[np.floating]]) -> tuple[float, float] | None:
    """Where the mean of more such networks would lie; None for one network.

    >>> low, high = _t_interval(np.array([0.4, 0.6]))  # 0.5 +- 12.706 * 0.1
    >>> low, high
    (0.0, 1.0)
    """
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return None
    half = float(stdtrit(count - 1, 0.975) * values.std(ddof=1) / np.sqrt(count))
    return max(0.0, float(values.mean()) - half), min(1.0, float(values.mean()) + half)
