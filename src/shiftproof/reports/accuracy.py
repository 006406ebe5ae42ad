"""How often the models are right: overall, by group, by class, and what they mistake for what."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import Page, by_subject, galleries_named, named
from shiftproof.reports.parts import Heading, Part, Section
from shiftproof.reports.tables import measurement_table
from shiftproof.reports.words import count, evidence, figure, metric_of
from shiftproof.types import Finding, Measurement

OVERALL = ("top1_accuracy", "top5_accuracy")
NAMES = frozenset(
    {
        *OVERALL,
        "group_accuracy",
        "worst_group_accuracy",
        "class_accuracy",
        "confusion_rate",
        "confident_mistakes",
        "predicted_share",
    }
)
WORST_SHOWN = 20


def draw_accuracy(findings: Sequence[Finding], page: Page) -> Section:
    """All models together first, then each of them in detail."""
    parts: list[Part] = []
    for name in OVERALL:
        parts += _overall(named(findings, name), page)
    for about in by_subject(findings).values():
        details = _details(about, page)
        if details and (subject := page.subject(about[0].about)):
            parts.append(Heading(subject))
        parts += details
    return Section(
        "accuracy", "Accuracy", "The share of images whose right name comes first, or is among the first five.", parts
    )


def _overall(found: Sequence[Measurement], page: Page) -> list[Part]:
    if not found:
        return []
    title = metric_of(found[0].metric).title
    labels = [page.subject(one.about) or str(one.about.get("model", "")) for one in found]
    chart = dot_chart(title, found, x_title="share of images", labels=labels)
    return [chart, measurement_table(f"{title}: the figures", found, value_title=title, folded=True)]


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    return [
        *_groups(named(findings, "group_accuracy"), named(findings, "worst_group_accuracy")),
        *_classes(named(findings, "class_accuracy")),
        *_confusions(named(findings, "confusion_rate")),
        *_predicted(named(findings, "predicted_share")),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "confident_mistakes")),
    ]


def _groups(found: Sequence[Measurement], worst: Sequence[Measurement]) -> list[Part]:
    """A chart for each fact, its groups from the worst to the best, and all of them as one table."""
    facts = list(dict.fromkeys(str(one.about["fact"]) for one in found))
    note = " ".join(
        f"Worst: {one.about['fact']} {one.about['group']}, {figure(one.value, 'share')} ({evidence(one)})." for one in worst
    )
    charts: list[Part] = [
        dot_chart(
            f"By {fact.replace('_', ' ')}",
            sorted((one for one in found if one.about["fact"] == fact), key=_badness)[:WORST_SHOWN],
            x_title="share of images right",
            keys=["group"],
            half=len(facts) > 1,
        )
        for fact in facts
    ]
    table = measurement_table("Every group", found, value_title="Accuracy", keys=["fact", "group"], folded=True, note=note)
    return [*charts, table] if found else []


def _classes(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    worst_first = sorted(found, key=_badness)
    shown = worst_first[:WORST_SHOWN]
    title = "Every class" if len(shown) == len(found) else f"The {len(shown)} worst of {count(len(found))} classes"
    note = "In the order of the upper end of the interval: a class with a single image is seldom surely bad."
    chart = dot_chart(title, shown, x_title="share of images right", keys=["class"], note=note)
    title = f"All {count(len(found))} classes"
    return [chart, measurement_table(title, worst_first, value_title="Accuracy", keys=["class"], folded=True)]


def _confusions(found: Sequence[Measurement]) -> list[Part]:
    note = "For the classes that are most surely bad: how large a part of their images was given which other name."
    title, keys = "What the worst classes are taken for", ["class", "predicted"]
    return [measurement_table(title, found, value_title="Share", keys=keys, note=note)] if found else []


def _predicted(found: Sequence[Measurement]) -> list[Part]:
    title = "What the model sees in images without labels"
    shown = found[:WORST_SHOWN]
    return [dot_chart(title, shown, x_title="share of images given this name", keys=["predicted"])] if found else []


def _badness(found: Measurement) -> tuple[float, float]:
    """Small for what is surely bad."""
    return (found.interval[1] if found.interval else found.value, found.value)
