"""A watched stream as findings of a report: numbers, curves, and the photos that were abstained on last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shiftproof.studies.guard.section import ABSTAINED, EVIDENCE, LEVEL, REFUSED, SCORES
from shiftproof.studies.guard.watching import Watch, Window
from shiftproof.studies.measure import versions
from shiftproof.types import (
    About,
    Curve,
    DatasetCard,
    DatasetRef,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    Measurement,
    ModelCard,
    NoInterval,
    Results,
)

MOST_POINTS = 400
SHOWN = 12
CLOPPER_PEARSON = "Clopper-Pearson"
NONE = NoInterval("a statistic of this stream, not an estimate")


def results_of(watch: Watch, name: str, *, made: str, dataset: DatasetRef | None = None) -> Results:
    """What is known of a stream, as findings of a report."""
    model = watch.guard.record.model
    about: About = {"model": model.name, "dataset": name}
    card = ModelCard(model.name, model.fingerprint, model.gives, {}, classes=model.classes)
    labelled = DatasetCard(name, dataset.fingerprint if dataset else "", len(watch), 0)
    return Results(tuple(findings_of(watch, about, dataset)), (card,), (labelled,), made=made, versions=versions())


def findings_of(watch: Watch, about: About, dataset: DatasetRef | None) -> list[Finding]:
    """Numbers and curves of a stream; of photos also those that were abstained on last."""
    told = {
        "OOD detector": watch.guard.detector.name,
        "threshold": f"{watch.guard.threshold:.6g}",
        LEVEL: f"{watch.level:g}, which it reaches without drift with a probability of at most {watch.false_alarm:g}, ever",
    }
    share, total = watch.abstained, len(watch)
    within = None if share.interval is None else Interval(*share.interval, method=CLOPPER_PEARSON)
    found: list[Finding] = [Measurement("abstained_share", share.value, about, total, told, interval=within)]
    numbers = {"drift_evidence": watch.evidence, "drift_alarm": watch.alarm, "drift_start": watch.began}
    found += [
        Measurement(metric, float(value), about, total, told, no_interval=NONE)
        for metric, value in numbers.items()
        if value is not None
    ]
    found += _evidence_curves(watch, about, told)
    found += _abstained_curves(watch, list(watch.windows()), about, told)
    found += _score_curves(watch, about, told)
    if dataset is not None:
        refused = [one for one in watch.observations if not one.accept][-SHOWN:]
        items = tuple(
            GalleryItem(one.id, f"OOD score {one.ood_score:.3g}" if one.ood_score is not None else one.reason)
            for one in refused
        )
        found += [Gallery(REFUSED, about, dataset, "Abstained on last", items)] if items else []
    return found


def _evidence_curves(watch: Watch, about: About, told: dict[str, str]) -> Iterator[Curve]:
    """The logarithm of the evidence over time, and its level; of many images the highest of each group is drawn."""
    history = np.log10(np.maximum(np.array([1.0, *watch.test.history]), 1e-6))
    seen = [0, *watch.tested]
    ends = np.unique(np.linspace(0, len(history), min(len(history), MOST_POINTS) + 1).astype(int)).tolist()
    peaks = [float(history[start:stop].max()) for start, stop in pairwise(ends)]
    places = [float(seen[stop - 1]) for stop in ends[1:]]
    level = float(np.log10(watch.level))
    lines = {"evidence": (places, peaks), "drift is reported": ([places[0], places[-1]], [level, level])}
    for name, (x, y) in lines.items():
        where = {**about, "series": name}
        axes = ("Images seen", "Evidence of drift, log10")
        yield Curve(EVIDENCE, where, *axes, tuple(x), tuple(y), len(watch), told, no_interval=NONE)


def _abstained_curves(watch: Watch, windows: Sequence[Window], about: About, told: dict[str, str]) -> list[Curve]:
    places = tuple(float(one.first + one.images - 1) for one in windows)
    ends = [one.abstained.interval or (np.nan, np.nan) for one in windows]
    return [
        Curve(
            "abstained_by_window",
            {**about, "series": "stream"},
            "Images seen",
            "Abstained",
            places,
            tuple(one.abstained.value for one in windows),
            len(watch),
            told,
            counts=tuple(one.images for one in windows),
            low=tuple(float(low) for low, _ in ends),
            high=tuple(float(high) for _, high in ends),
            method=CLOPPER_PEARSON,
        ),
        Curve(
            ABSTAINED,
            {**about, "series": "reference"},
            "Images seen",
            "Abstained",
            (places[0], places[-1]),
            (watch.reference_abstained,) * 2,
            len(watch.guard.reference),
            told,
            no_interval=NONE,
        ),
    ]


def _score_curves(watch: Watch, about: About, told: dict[str, str]) -> list[Curve]:
    """Scores at percentiles: of the reference, of the stream and of its last images."""
    scores = np.array([one.ood_score for one in watch.observations if one.ood_score is not None])
    last = scores[-min(5 * watch.window, len(scores)) :]
    several = {"reference": watch.guard.reference, "stream": scores}
    several |= {f"last {len(last):,}": last} if len(last) < len(scores) else {}
    return [_percentiles(values, {**about, "series": name}, told) for name, values in several.items() if len(values)]


def _percentiles(scores: NDArray[np.floating], about: About, told: dict[str, str]) -> Curve:
    shares = np.linspace(0.01, 0.99, 50)
    values = np.quantile(scores, shares)
    x, y = tuple(values.tolist()), tuple(shares.tolist())
    return Curve(SCORES, about, "OOD score", "Share of images below", x, y, len(scores), told, no_interval=NONE)
