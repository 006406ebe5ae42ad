"""The report's section on saliency: how often the maps miss the object, and the maps themselves."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import evidence
from shiftproof.reports.galleries import boxed_pictures
from shiftproof.reports.page import Page, by_subject, galleries_named, in_columns, named
from shiftproof.reports.parts import Part, Pictures, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import dot_chart, measurement_table
from shiftproof.reports.words import kept_together, of_hundred, opened
from shiftproof.studies.saliency import BY_CHANCE, PREDICTED
from shiftproof.types import Finding, Gallery, Measurement

MISSES = ("pointing_game_miss_rate", "salient_region_miss_rate")
GALLERIES = ("saliency_misclassified", "saliency_correct")
NAMES = frozenset({*MISSES, "saliency_on_object", *GALLERIES})


def saliency_headlines(page: Page) -> list[str]:
    """How often the salient region of misclassified images misses the object, in a sentence."""
    return [
        f"{opened(page.subject(one.about), of_hundred(one.value))} misclassified images have their salient region off the "
        f"object ({evidence(one)})."
        for one in named(page.results.shown, "salient_region_miss_rate")
        if (one.about.get("predictions"), one.about.get("map")) == ("misclassified", PREDICTED)
    ]


def draw_saliency(findings: Sequence[Finding], page: Page) -> Section:
    """How often the maps miss the object, then each image beside its maps; several models in columns."""
    models = {page.subject(found[0].about): found for found in by_subject(findings).values()}
    return Section(
        "saliency",
        "Saliency maps",
        "Which parts of an image support a class; warmer is more salient. Is the saliency on the object?",
        in_columns({model: [*_shares(found), *_galleries(found, page)] for model, found in models.items()}),
        in_columns({model: _misses(found) for model, found in models.items()}),
        saliency_headlines(page),
    )


def _galleries(findings: Sequence[Finding], page: Page) -> list[Part]:
    return [_pictures(gallery, page) for name in GALLERIES for gallery in galleries_named(findings, name)]


def _misses(findings: Sequence[Finding]) -> list[Part]:
    misses = [one for name in MISSES for one in named(findings, name)]
    title = "Saliency off the object"
    return (
        []
        if not misses
        else [
            dot_chart(
                title,
                misses,
                measurement_table(title, misses, value_title="Share", keys=["predictions", "map"]),
                x_title="share of images",
                labels=[_whose(one) for one in misses],
                series=[metric_info(one.metric).title for one in misses],
                note="Misclassified images have two maps: of the predicted class and of the true class.",
            )
        ]
    )


def _shares(findings: Sequence[Finding]) -> list[Part]:
    on_object = named(findings, "saliency_on_object")
    return (
        []
        if not on_object
        else [
            measurement_table(
                metric_info("saliency_on_object").title,
                on_object,
                value_title="Mean share",
                keys=["predictions", "map"],
                note=" ".join(dict.fromkeys(map(_by_chance, on_object))),
            )
        ]
    )


def _whose(found: Measurement) -> str:
    """Which images, and which of their maps.

    >>> _whose(Measurement("pointing_game_miss_rate", 0.5, {"predictions": "misclassified", "map": "true class"}, 2, {}))
    'misclassified, map of the true class'
    """
    which = str(found.about["predictions"])
    return f"{which}, map of the {found.about['map']}" if which == "misclassified" else which


def _by_chance(found: Measurement) -> str:
    share = kept_together(found.convention[BY_CHANCE])
    return f"Spread evenly, {share} of the saliency of {found.about['predictions']} images would lie on the object."


def _pictures(gallery: Gallery, page: Page) -> Pictures:
    """Each image beside its maps."""
    abreast = len(gallery.items) // max(1, len({item.id for item in gallery.items}))
    made = str(gallery.about["saliency_method"])
    note = (
        f"{made[:1].upper()}{made[1:]}. Dark edges lie outside the model's input; the colours of every map end at its own "
        "maximum."
    )
    return dataclasses.replace(boxed_pictures(gallery, page, abreast=abreast, note=note), whole=True)


SECTION = SectionMaker(NAMES, draw_saliency, headlines=saliency_headlines)
