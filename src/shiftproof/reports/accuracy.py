"""How often the models are right: overall, by group, by class, and what they mistake for what."""

from __future__ import annotations

from collections.abc import Sequence

from shiftproof.metrics.meanings import meaning_of
from shiftproof.reports.generic import dot_chart
from shiftproof.reports.page import Page, by_subject, galleries_named, named
from shiftproof.reports.parts import Chart, Heading, Part, Prose, Section
from shiftproof.reports.tables import measurement_table, number_table
from shiftproof.reports.words import count, evidence, figure, kept_together, of_hundred
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
        "mistake_distance",
        "egregious_share",
        "egregious_mistakes",
        "predicted_share",
    }
)
WORST_SHOWN = 20
ENOUGH_TO_JUDGE = 5
"""With fewer images than this in every class a chart of classes would show nothing but intervals."""


def draw_accuracy(findings: Sequence[Finding], page: Page) -> Section:
    """All models together first, then each of them in detail."""
    parts: list[Part] = [*_overall([one for name in OVERALL for one in named(findings, name)], page)]
    for about in by_subject(findings).values():
        details = _details(about, page)
        if details and (subject := page.subject(about[0].about)):
            parts.append(Heading(subject))
        parts += details
    lead = "The share of images whose right name comes first, or is among the first five."
    return Section("accuracy", "Accuracy", lead, parts)


def _overall(found: Sequence[Measurement], page: Page) -> list[Part]:
    if not found:
        return []
    titles = [meaning_of(one.metric).title for one in found]
    subjects = [page.subject(one.about) for one in found]
    labels, series = (subjects, titles) if any(subjects) else (titles, None)
    figures = number_table("Accuracy", found, page)
    return [dot_chart("Overall", found, figures, x_title="share of images right", labels=labels, series=series)]


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    return [
        *_groups(named(findings, "group_accuracy"), named(findings, "worst_group_accuracy")),
        *_classes(named(findings, "class_accuracy")),
        *_confusions(named(findings, "confusion_rate")),
        *_predicted(named(findings, "predicted_share")),
        *_severity(named(findings, "mistake_distance"), named(findings, "egregious_share")),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "egregious_mistakes")),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "confident_mistakes")),
    ]


def _groups(found: Sequence[Measurement], worst: Sequence[Measurement]) -> list[Part]:
    """A chart for each fact, its groups from the worst to the best."""
    facts: dict[str, list[Measurement]] = {}
    for one in sorted(found, key=_badness):
        facts.setdefault(str(one.about["fact"]), []).append(one)
    return [
        _worst_chart(
            f"By {fact.replace('_', ' ')}",
            groups,
            "group",
            note=" ".join(_worst_note(one) for one in worst if one.about["fact"] == fact),
        )
        for fact, groups in facts.items()
    ]


def _worst_note(found: Measurement) -> str:
    return f"The worst group of all is {found.about['group']}: {figure(found.value, 'share')} ({evidence(found)})."


def _classes(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    worst_first = sorted(found, key=_badness)
    if max(one.images for one in found) < ENOUGH_TO_JUDGE:
        note = f"No class has {ENOUGH_TO_JUDGE} images, too few to say of any that it is bad."
        return [measurement_table("Every class", worst_first, value_title="Accuracy", keys=["class"], note=note)]
    title = "Every class" if len(found) <= WORST_SHOWN else f"The {WORST_SHOWN} worst of {count(len(found))} classes"
    note = "The worst first, by the upper end of the interval: a class of which few images were seen is seldom surely bad."
    return [_worst_chart(title, worst_first, "class", note=note)]


def _worst_chart(title: str, worst_first: Sequence[Measurement], key: str, *, note: str) -> Chart:
    shown = worst_first[:WORST_SHOWN]
    labels = [str(one.about[key]) for one in shown]
    figures = measurement_table(title, worst_first, value_title="Accuracy", keys=[key])
    return dot_chart(title, shown, figures, x_title="share of images right", labels=labels, note=note)


def _confusions(found: Sequence[Measurement]) -> list[Part]:
    note = "For the classes that are most surely bad: how large a part of their images was given which other name."
    title, keys = "What the worst classes are taken for", ["class", "predicted"]
    return [measurement_table(title, found, value_title="Share", keys=keys, note=note)] if found else []


def _severity(distances: Sequence[Measurement], egregious: Sequence[Measurement]) -> list[Part]:
    far = [
        f"A wrong answer lies {figure(one.value, 'number')} steps from the truth in WordNet's tree, on average "
        f"({evidence(one)}); two classes drawn at random lie {one.convention['by chance']} apart."
        for one in distances
    ]
    worst = [
        f"{of_hundred(one.value)} wrong answers are egregious ({evidence(one)}): they have no more in common with the truth "
        f"than a tool with an animal. Of random pairs of classes {kept_together(one.convention['by chance'])} would be."
        for one in egregious
    ]
    return [Prose([*far, *worst])] if far or worst else []


def _predicted(found: Sequence[Measurement]) -> list[Part]:
    title = "What the model sees in images without labels"
    figures = measurement_table(title, found, value_title="Share", keys=["predicted"])
    labels = [str(one.about["predicted"]) for one in found]
    return [dot_chart(title, found, figures, x_title="share of images given this name", labels=labels)] if found else []


def _badness(found: Measurement) -> tuple[float, float]:
    """Small for what is surely bad."""
    return (found.interval[1] if found.interval else found.value, found.value)
