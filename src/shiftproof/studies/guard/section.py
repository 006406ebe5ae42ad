"""The page of a watched stream: has the OOD score drifted, how often does the guard abstain, and what do scores look like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.wording import count, figure, images, span
from shiftproof.reports import charts
from shiftproof.reports.page import Page, curves_named, named
from shiftproof.reports.parts import Chart, Part, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import curve_table, number_table
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

EVIDENCE, ABSTAINED, SCORES, REFUSED = (
    "drift_evidence_so_far",
    "abstained_by_window",
    "score_distribution",
    "abstained_images",
)
NUMBERS = ("abstained_share", "drift_evidence", "drift_alarm", "drift_start")
NAMES = frozenset({EVIDENCE, ABSTAINED, SCORES, REFUSED, *NUMBERS})
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
        "drift is reported at": f"evidence {watch.level:g}, false alarm at most {watch.false_alarm:g} over all time",
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
    found.append(_evidence_curve(watch, about, told))
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


def _evidence_curve(watch: Watch, about: About, told: dict[str, str]) -> Curve:
    """The logarithm of the evidence over time; of many images the highest of each group, so that no alarm is lost."""
    history = np.log10(np.maximum(np.array([1.0, *watch.test.history]), 1e-6))
    ends = np.unique(np.linspace(0, len(history), min(len(history), MOST_POINTS) + 1).astype(int))
    peaks = [float(history[start:stop].max()) for start, stop in zip(ends[:-1], ends[1:], strict=True)]
    return Curve(
        EVIDENCE,
        about,
        "Images seen",
        "Evidence of drift, log10",
        tuple(float(stop - 1) for stop in ends[1:]),
        tuple(peaks),
        len(watch),
        told,
        no_interval=NONE,
    )


def _abstained_curves(watch: Watch, windows: Sequence[Window], about: About, told: dict[str, str]) -> list[Curve]:
    places = tuple(float(one.first + one.images - 1) for one in windows)
    ends = [one.abstained.interval or (np.nan, np.nan) for one in windows]
    return [
        Curve(
            ABSTAINED,
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
    several = {"reference": watch.guard.reference, "stream": scores, f"last {len(last):,}": last}
    return [_percentiles(values, {**about, "series": name}, told) for name, values in several.items() if len(values)]


def _percentiles(scores: NDArray[np.floating], about: About, told: dict[str, str]) -> Curve:
    shares = np.linspace(0.01, 0.99, 50)
    values = np.quantile(scores, shares)
    x, y = tuple(values.tolist()), tuple(shares.tolist())
    return Curve(SCORES, about, "OOD score", "Share of images below", x, y, len(scores), told, no_interval=NONE)


def draw_watch(findings: Sequence[Finding], page: Page) -> Section:
    """The verdict, the evidence over time, shares by window, distributions of scores, and what was abstained on."""
    numbers = [one for metric in NUMBERS for one in named(findings, metric)]
    main: list[Part] = [
        _chart("Evidence of drift", curves_named(findings, EVIDENCE), "Drift is reported where it reaches the level."),
        _chart("Abstained, by window", curves_named(findings, ABSTAINED), "Beside the images that the guard was made with."),
        _chart("OOD scores", curves_named(findings, SCORES), "Cumulated: a curve to the right is more out-of-distribution."),
    ]
    galleries = [one for one in findings if isinstance(one, Gallery)]
    pictures: list[Part] = [page.pictures(one) for one in galleries] if page.open_image else []
    lead = "Images as they came, seen through the guard: evidence that OOD scores changed, and the share it abstains on."
    details: list[Part] = [number_table("Numbers", numbers, page)]
    return Section("watch", "The stream", lead, details, [*main, *pictures], _verdict(findings))


def _chart(title: str, curves: Sequence[Curve], note: str) -> Chart:
    names = [str(curve.about.get("series", title)) for curve in curves]
    shares = curves[0].name != EVIDENCE
    x = charts.channel("x", curves[0].x_label, {"zero": False})
    y = charts.channel("y", curves[0].y_label, {"zero": shares}, charts.PERCENT if shares else None)
    rows = [row for curve, name in zip(curves, names, strict=True) for row in charts.curve_rows(curve, name)]
    description = f"{title}: {curves[0].y_label} against {curves[0].x_label}."
    return Chart(
        title, charts.banded_lines(rows, names, x, y, description=description), curve_table(title, curves, names), note
    )


def _verdict(findings: Sequence[Finding]) -> list[str]:
    evidence, share = named(findings, "drift_evidence")[0], named(findings, "abstained_share")[0]
    alarm, start = named(findings, "drift_alarm"), named(findings, "drift_start")
    level = evidence.convention["drift is reported at"]
    if alarm:
        first = (
            f"Drift: reported at image {count(int(alarm[0].value))}, likely begun near image {count(int(start[0].value))}"
        )
    else:
        first = f"No drift reported after {images(evidence.images)}"
    rest = f"abstained on {figure(share.value, 'share')} ({span(share.ends, 'share')})."
    return [f"{first} (evidence {evidence.value:.3g}; {level}); {rest}"]


SECTION = SectionMaker(
    NAMES, draw_watch, first=True, headlines=lambda page: _verdict(page.results.shown) if _is_watch(page) else []
)


def _is_watch(page: Page) -> bool:
    return bool(named(page.results.shown, "drift_evidence"))
