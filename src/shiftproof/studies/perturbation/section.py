"""How stable predictions are while a picture changes a little from frame to frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.table import metric_info, with_unseen
from shiftproof.metrics.wording import evidence
from shiftproof.reports.page import (
    Page,
    by_subject,
    galleries_named,
    model_of,
    models_of,
    named,
    parts_of_each_set,
    whole_numbers,
)
from shiftproof.reports.parts import Chart, Part, Section
from shiftproof.reports.published import among_imagenet_p
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import columns_table, dot_chart, headline_numbers, measurement_table
from shiftproof.reports.words import of_hundred, opened, spoken
from shiftproof.studies.corruption.section import baseline_name, beside_the_baseline, unseen_first
from shiftproof.types import Finding, Measurement

OVERALL = with_unseen(
    "mean_flip_probability",
    "mean_flip_rate",
    "mean_top5_distance",
    "mean_top5_distance_ratio",
    "mean_zipf_distance",
)
NAMES = frozenset(
    {*OVERALL, "flip_probability", "flip_rate", "top5_distance", "top5_distance_ratio", "zipf_distance", "unstable_photos"}
)
BASELINE = 1.0
COUNTED = (
    ("flip_probability", "Flip probability", "share of frame pairs with a flip"),
    ("top5_distance", "Top-5 distance", "ranks moved per frame, 0 to 15"),
    ("zipf_distance", "Zipf distance", "Zipf distance per frame"),
)
RATIOS = {"flip_probability": "flip_rate", "top5_distance": "top5_distance_ratio"}


def draw_perturbation(findings: Sequence[Finding], page: Page) -> Section:
    """Flips by perturbation; then the means, other distances, the models among others, and the least stable photos."""
    return Section(
        "perturbation",
        "Perturbations",
        "Sequences of one photo that moves, blurs or gets noisier frame by frame: how often the prediction flips.",
        parts_of_each_set(findings, lambda found: _details(found, page)),
        parts_of_each_set(findings, lambda found: _charts(found, *COUNTED[0])),
        perturbation_headlines(page),
    )


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    overall = sorted((one for name in OVERALL for one in named(findings, name)), key=difficulty_of)
    easiest = [one for one in overall if difficulty_of(one) == difficulty_of(overall[0])]
    return [
        *(headline_numbers("In short", overall, page) if easiest == overall else _by_difficulty(overall)),
        *(chart for metric, title, x_title in COUNTED[1:] for chart in _charts(findings, metric, title, x_title)),
        *among_imagenet_p(easiest),
        *page.pictures_by_model(galleries_named(findings, "unstable_photos")),
    ]


def _by_difficulty(overall: Sequence[Measurement]) -> list[Part]:
    keys = ["difficulty", *(["model"] if len(models_of(overall)) > 1 else [])]
    # the first difficulty is not named where the published means are of it too
    told = [dataclasses.replace(one, about={**one.about, "difficulty": difficulty_of(one)}) for one in overall]
    return [columns_table("In short", told, keys)]


def _charts(findings: Sequence[Finding], metric: str, title: str, x_title: str) -> list[Part]:
    """Each metric, and the same in percent of the baseline's."""
    counted, ratios = named(findings, metric), named(findings, RATIOS.get(metric, ""))
    both = bool(counted and ratios)
    parts: list[Part] = [_chart(title, counted, x_title=x_title, reference=0.0, half=both)] if counted else []
    if ratios:
        note = f"100 % is the baseline: {baseline_name(ratios[0])}."
        title, x_title = metric_info(ratios[0].metric).title, "percent of the baseline's"
        parts.append(_chart(title, ratios, x_title=x_title, note=note, reference=BASELINE, half=both))
    return parts


def _chart(title: str, found: Sequence[Measurement], *, x_title: str, reference: float, half: bool, note: str = "") -> Chart:
    """Difficulties as series of one model; of several models, these at the least difficulty and the rest in the data."""
    difficulties, models = sorted({difficulty_of(one) for one in found}), models_of(found)
    keys = ["perturbation", *(["difficulty"] if difficulties[1:] else []), *(["model"] if models[1:] else [])]
    ordered = sorted(found, key=lambda one: (models.index(model_of(one)), difficulty_of(one), -one.value))
    shown, series = ordered, None
    if models[1:]:
        shown = [one for one in ordered if difficulty_of(one) == difficulties[0]]
        series = [model_of(one) for one in shown]
        if difficulties[1:]:
            note = f"At difficulty {difficulties[0]}; the others are in the data. {note}".strip()
    elif difficulties[1:]:
        series = [f"difficulty {difficulty_of(one)}" for one in shown]
    return dot_chart(
        title,
        shown,
        measurement_table(title, ordered, value_title=metric_info(found[0].metric).title, keys=keys),
        x_title=x_title,
        labels=[spoken(str(one.about.get("perturbation", ""))) for one in shown],
        series=series,
        note=note,
        reference=reference,
        half=half,
    )


def perturbation_headlines(page: Page) -> list[str]:
    """How often the prediction of each model flips."""
    return [
        f"{opened(page.subject(one.about), of_hundred(one.value))} frame pairs"
        f"{' of perturbations that were no part of training' if metric_info(one.metric).unseen else ''} flip the prediction "
        f"({evidence(one)})."
        for found in by_subject(whole_numbers(page.results.measurements)).values()
        for one in unseen_first(found, "mean_flip_probability")
    ]


def difficulty_of(found: Measurement) -> int:
    return int(found.about.get("difficulty", 1))


SECTION = SectionMaker(
    NAMES,
    draw_perturbation,
    headlines=perturbation_headlines,
    details=lambda page: beside_the_baseline(page, "mean_flip_rate", "mFR"),
    key_numbers=(
        "unseen_mean_flip_probability",
        "mean_flip_probability",
        "unseen_mean_flip_rate",
        "mean_flip_rate",
    ),
)
