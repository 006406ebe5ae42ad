"""The first screen of a report: what a manager should know, in sentences, and the numbers worth remembering."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.curation import curation_headlines
from shiftproof.reports.detection_sentences import detection_headlines, detection_numbers
from shiftproof.reports.duplicates import duplicate_headlines
from shiftproof.reports.human_test import human_test_headlines
from shiftproof.reports.looking import looking_headlines
from shiftproof.reports.novelty_sentences import novelty_details, novelty_headlines, novelty_numbers
from shiftproof.reports.object_sentences import input_size_headlines, object_headlines
from shiftproof.reports.page import Page, by_subject
from shiftproof.reports.parts import Table
from shiftproof.reports.probe import probe_headlines
from shiftproof.reports.shift_sentences import corruption_headlines, perturbation_headlines, shift_details
from shiftproof.reports.tables import side_by_side
from shiftproof.reports.temporal import at_largest_k
from shiftproof.reports.temporal_sentences import temporal_headlines
from shiftproof.reports.words import (
    count,
    evidence,
    figure,
    images,
    kept_together,
    of_hundred,
    opened,
    span,
    unit_of_evidence,
)
from shiftproof.studies.results import ImageSetCard
from shiftproof.studies.verdicts import verdicts
from shiftproof.types import Measurement

KEY_NUMBERS = (
    "accuracy_beside_people",
    "top1_accuracy",
    "top5_accuracy",
    "unseen_mean_corrupted_error",
    "mean_corrupted_error",
    "unseen_mean_corruption_error",
    "mean_corruption_error",
    "unseen_mean_flip_probability",
    "mean_flip_probability",
    "unseen_mean_flip_rate",
    "mean_flip_rate",
    "anchor_accuracy",
    "pm_k_accuracy",
    "mean_average_precision",
    "pm_k_average_precision",
    "mean_performance_under_corruption",
    "relative_performance_under_corruption",
    "worst_group_accuracy",
    "rms_calibration_error",
    "overconfidence",
)
PARTIAL = ("group_accuracy", "group_error", "unseen_group_error")
"""Numbers of one group among others, which have their own sections."""
ON_THE_WHOLE = {"model", "image_set", "fact", "group"}
"""What a number of the summary may be about; conditions and classes have their own sections."""
MOST_HEADLINES = 4
MOST_TILES = 7
MOST_VERDICTS = 3


@dataclass(frozen=True)
class Tile:
    """One number in large type, and what stands behind it."""

    title: str
    value: str
    unit: str
    detail: str


@dataclass(frozen=True)
class Summary:
    headlines: Sequence[str]
    sentences: Sequence[str]
    tiles: Sequence[Tile]
    table: Table | None  # in place of tiles where there are several models or image sets
    evidence: str  # what an interval means, and what is one case
    warnings: Sequence[str]
    not_measured: Sequence[str]


def summarise(page: Page) -> Summary:
    """What the results come to: of one model on one set in sentences and tiles, of several in a table."""
    measurements = page.results.measurements
    whole = [found for found in measurements if set(found.about) <= ON_THE_WHOLE and found.metric not in PARTIAL]
    overall = [*whole, *at_largest_k(measurements), *detection_numbers(measurements)]
    alone = len(by_subject(overall)) <= 1
    own = [*_weakest(measurements), *_confidence(overall), *shift_details(measurements, overall), *novelty_details(page)]
    return Summary(
        headlines=_headlines(overall, page),
        sentences=own if alone else _verdicts(measurements),
        tiles=_tiles(overall, page) if alone else [],
        table=None if alone else _side_by_side(overall, page),
        evidence=unit_of_evidence(page.results) if any(one.interval for one in measurements) else "",
        warnings=_warnings(page),
        not_measured=page.results.skipped,
    )


def _headlines(overall: Sequence[Measurement], page: Page) -> list[str]:
    """A sentence for each study; of several models only those of the first study, the table has the rest."""
    kinds = [
        human_test_headlines(page),
        curation_headlines(page),
        duplicate_headlines(page),
        _accuracy_headlines(overall, page),
        corruption_headlines(overall, page),
        perturbation_headlines(overall, page),
        temporal_headlines(page),
        detection_headlines(page),
        object_headlines(page),
        input_size_headlines(page),
        looking_headlines(page),
        novelty_headlines(page),
        probe_headlines(page),
    ]
    told = [sentences[:MOST_HEADLINES] for sentences in kinds if sentences]
    if not told:
        return [f"{count(len(page.results.measurements))} measurements of {page.title}."]
    return [sentence for sentences in (told[:1] if len(page.models) > 1 else told) for sentence in sentences]


def _accuracy_headlines(overall: Sequence[Measurement], page: Page) -> list[str]:
    return [
        f"{opened(page.subject(one.about), of_hundred(one.value))} images are named right ({evidence(one)})."
        for one in overall
        if one.metric == "top1_accuracy" and math.isfinite(one.value)
    ]


def _weakest(measurements: Sequence[Measurement]) -> list[str]:
    return [
        f"Weakest group: {one.about['group']} ({str(one.about['fact']).replace('_', ' ')}), "
        f"{figure(one.value, 'share')} right ({evidence(one)})."
        for one in measurements
        if one.metric == "worst_group_accuracy"
    ]


def _confidence(overall: Sequence[Measurement]) -> list[str]:
    return [f"{_trust(one)} ({evidence(one)})." for one in overall if one.metric == "overconfidence" and one.interval]


def _trust(found: Measurement) -> str:
    low, high = found.interval or (-1.0, 1.0)
    gap = figure(abs(found.value), "points").lstrip("+")
    if low > 0:
        return f"Confidence is too high, on average by {gap}"
    if high < 0:
        return f"Confidence is too low, on average by {gap}"
    return f"On average confidence is neither surely too high nor too low: {figure(found.value, 'points')}"


def _verdicts(measurements: Sequence[Measurement]) -> list[str]:
    sentences = [kept_together(f"{verdict.text}.") for verdict in verdicts(measurements)]
    more = [f"{len(sentences) - MOST_VERDICTS} more pairs are compared below."] if len(sentences) > MOST_VERDICTS else []
    return [*sentences[:MOST_VERDICTS], *more]


def _tiles(overall: Sequence[Measurement], page: Page) -> list[Tile]:
    """The key numbers that there are, else the first of the others, and the images behind them."""
    key = [one for name in KEY_NUMBERS for one in overall if one.metric == name]
    by_chance = next((one for one in overall if one.metric == "chance_calibration_error"), None)
    novelty = novelty_numbers(page)
    return [
        *(_tile(found, by_chance) for found in (key or overall)[: MOST_TILES - len(novelty)]),
        *(dataclasses.replace(_tile(found, None), title=title) for title, found in novelty),
        *(_image_tile(card) for card in (_told_of(page) if overall or novelty else [])),
    ]


def _tile(found: Measurement, by_chance: Measurement | None) -> Tile:
    meaning = meaning_of(found.metric)
    value, _, unit = figure(found.value, meaning.unit).partition(" ")
    details = [str(found.about["group"])] if "group" in found.about else []
    if "k" in found.about:
        details.append(f"k = {found.about['k']}")
    if "iou" in found.about:
        details.append(f"overlap {found.about['iou']}")
    if found.interval:
        details.append(span(found.interval, meaning.unit))
    if found.metric == "rms_calibration_error" and by_chance:
        details.append(f"up to {figure(by_chance.value, 'share')} may be chance")
    return Tile(meaning.title, value, unit, " · ".join([*details, images(found.images)]))


def _told_of(page: Page) -> list[ImageSetCard]:
    """The sets that numbers are told of; others, such as training images, have their cards below."""
    cards = page.results.image_sets
    return [card for card in cards if card.name in page.image_sets] or list(cards)


def _image_tile(card: ImageSetCard) -> Tile:
    aside = count(len(card.set_aside))
    return Tile(
        "Images", count(card.images - len(card.set_aside)), "", f"{count(card.labelled)} labelled, {aside} set aside"
    )


def _side_by_side(overall: Sequence[Measurement], page: Page) -> Table:
    """The key numbers, or all where none is there."""
    found = {one.metric for one in overall}
    metrics = [name for name in KEY_NUMBERS if name in found] or list(dict.fromkeys(one.metric for one in overall))
    return side_by_side("Side by side", overall, metrics, page)


def _warnings(page: Page) -> list[str]:
    aside = [
        f"{count(len(card.set_aside))} of {images(card.images)} of {card.name} could not be read; "
        "they are part of no number and are listed below."
        for card in page.results.image_sets
        if card.set_aside
    ]
    return [*page.results.warnings, *aside]
