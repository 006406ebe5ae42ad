"""Where the models look, and whether that is at the object."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.boxed_pictures import boxed_pictures
from shiftproof.reports.by_model import choices
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import Page, by_subject, galleries_named, named
from shiftproof.reports.parts import Heading, Part, Pictures, Section
from shiftproof.reports.tables import measurement_table
from shiftproof.reports.words import evidence, kept_together, of_hundred, opened
from shiftproof.types import Finding, Gallery, Measurement

MISSES = ("hot_point_miss_rate", "hot_region_miss_rate")
GALLERIES = ("heat_maps_wrong", "heat_maps_right")
NAMES = frozenset({*MISSES, "heat_inside_share", *GALLERIES})


def looking_headlines(page: Page) -> list[str]:
    """How often a mistake comes of looking elsewhere, by the hot region of the answer."""
    return [
        f"{opened(page.subject(one.about), of_hundred(one.value))} mistakes look beside the object ({evidence(one)})."
        for one in named(page.results.findings, "hot_region_miss_rate")
        if (one.about.get("answers"), one.about.get("map")) == ("wrong", "of the answer")
    ]


def draw_looking(findings: Sequence[Finding], page: Page) -> Section:
    """For each model the numbers, then the photos with their heat."""
    parts: list[Part] = []
    for found in by_subject(findings).values():
        if subject := page.subject(found[0].about):
            parts.append(Heading(subject))
        parts += _numbers(found)
        parts += [_pictures(gallery, page) for name in GALLERIES for gallery in galleries_named(found, name)]
    lead = "What in an image speaks for a class: the warmer the colour, the more. A mistake may come of looking elsewhere."
    return Section("looking", "Where the models look", lead, parts)


def _numbers(findings: Sequence[Finding]) -> list[Part]:
    misses = [one for name in MISSES for one in named(findings, name)]
    on_object = named(findings, "heat_inside_share")
    if not misses:
        return []
    title = "Looking beside the object"
    return [
        dot_chart(
            title,
            misses,
            measurement_table(title, misses, value_title="Share", keys=["answers", "map"]),
            x_title="share of answers",
            labels=[_whose(one) for one in misses],
            series=[meaning_of(one.metric).title for one in misses],
            note="Of mistakes there are two maps: for the class that was answered, and for the one that is right.",
        ),
        measurement_table(
            meaning_of("heat_inside_share").title,
            on_object,
            value_title="Mean share",
            keys=["answers", "map"],
            note=" ".join(dict.fromkeys(map(_by_chance, on_object))),
        ),
        *choices("How these numbers were made", misses),
    ]


def _whose(found: Measurement) -> str:
    """Which answers, and which of their maps.

    >>> _whose(Measurement("hot_point_miss_rate", 0.5, {"answers": "wrong", "map": "of the truth"}, 2, {}))
    'mistakes, map of the truth'
    """
    answers = _answers(found)
    return f"{answers}, map {found.about.get('map')}" if answers == "mistakes" else answers


def _answers(found: Measurement) -> str:
    return {"wrong": "mistakes"}.get(str(found.about.get("answers")), "right answers")


def _by_chance(found: Measurement) -> str:
    share, _, _ = kept_together(found.convention.get("by chance", "")).partition(" of")
    return f"Spread evenly, {share} of the heat of {_answers(found)} would lie on the object."


def _pictures(gallery: Gallery, page: Page) -> Pictures:
    """The photo and its maps side by side."""
    abreast = len(gallery.items) // max(1, len({item.id for item in gallery.items}))
    made = str(gallery.about.get("heat_map", "heat"))
    note = (
        f"{made[:1].upper()}{made[1:]}. Dark edges are what the model does not see; every map is as warm as colours get at "
        "its hottest place."
    )
    return dataclasses.replace(boxed_pictures(gallery, page, abreast=abreast, note=note), whole=True)
