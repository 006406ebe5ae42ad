"""Accuracy of the models: overall, by group and by class, and which classes they confuse."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shiftproof.metrics.table import metric_info
from shiftproof.metrics.wording import count, evidence, figure
from shiftproof.reports.confusion_matrix import confusion_parts
from shiftproof.reports.page import (
    Page,
    by_subject,
    galleries_named,
    in_columns,
    matrices_named,
    named,
    parts_of_each_set,
    whole_numbers,
)
from shiftproof.reports.parts import Chart, Part, Prose, Section
from shiftproof.reports.sections import SectionMaker
from shiftproof.reports.tables import dot_chart, measurement_table, number_table
from shiftproof.reports.words import kept_together, of_hundred, opened
from shiftproof.studies.accuracy.shift_chart import SHOWN, among_published
from shiftproof.types import Finding, Measurement

OVERALL = ("top1_accuracy", "top5_accuracy")
NAMES = frozenset(
    {
        *OVERALL,
        "group_accuracy",
        "worst_group_accuracy",
        "class_accuracy",
        "confusion_rate",
        "confusion_matrix",
        "frequent_confusions",
        "confident_mistakes",
        "mistake_distance",
        "egregious_share",
        "egregious_mistakes",
        "predicted_share",
        "imagenet_accuracy",
        "shift_effective_robustness",
    }
)
WORST_SHOWN = 20
ENOUGH_TO_JUDGE = 5
"""With fewer images than this in every class a chart of classes would show nothing but intervals."""


def draw_accuracy(findings: Sequence[Finding], page: Page) -> Section:
    """All models together; then, of each dataset, published models and each model in a column of details."""
    return Section(
        "accuracy",
        "Accuracy",
        "Top-1 and top-5 accuracy, by class and by group, and which classes are confused.",
        parts_of_each_set(findings, lambda found: [*_among_published(found, page), *_columns(found, page)]),
        _overall([one for name in OVERALL for one in named(findings, name)], page),
        accuracy_headlines(page),
    )


def _among_published(findings: Sequence[Finding], page: Page) -> list[Part]:
    """Where the models stand on a dataset that models were published on; the findings are of one dataset."""
    names = {str(one.about.get("dataset", "")) for one in findings}
    numbers = [one for name in SHOWN for one in named(findings, name)]
    published = [card.published for card in page.results.datasets if card.published and card.name in names]
    return [part for one in published for part in among_published(one, numbers)]


def _columns(findings: Sequence[Finding], page: Page) -> list[Part]:
    """The details of each model, and of each condition where there are several."""
    subjects = by_subject(findings).values()
    return in_columns({_whose(found[0], page): _details(found, page) for found in subjects})


def _whose(finding: Finding, page: Page) -> str:
    return page.subject({key: value for key, value in finding.about.items() if key != "dataset"})


def _overall(found: Sequence[Measurement], page: Page) -> list[Part]:
    if not found:
        return []
    titles = [metric_info(one.metric).title for one in found]
    subjects = [page.subject(one.about) for one in found]
    labels, series = (subjects, titles) if any(subjects) else (titles, None)
    figures = number_table("Accuracy", found, page)
    return [dot_chart("Overall", found, figures, x_title="accuracy", labels=labels, series=series)]


def _details(findings: Sequence[Finding], page: Page) -> list[Part]:
    return [
        *_groups(named(findings, "group_accuracy"), named(findings, "worst_group_accuracy")),
        *_classes(named(findings, "class_accuracy")),
        *(part for matrix in matrices_named(findings, "confusion_matrix") for part in confusion_parts(matrix)),
        *(page.pictures(gallery) for gallery in galleries_named(findings, "frequent_confusions")),
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
    return f"Worst group: {found.about['group']}, {figure(found.value, 'share')} ({evidence(found)})."


def _classes(found: Sequence[Measurement]) -> list[Part]:
    if not found:
        return []
    worst_first = sorted(found, key=_badness)
    if max(one.images for one in found) < ENOUGH_TO_JUDGE:
        note = f"No class has {ENOUGH_TO_JUDGE} images, too few to rank classes."
        return [measurement_table("Every class", worst_first, value_title="Accuracy", keys=["class"], note=note)]
    title = "Every class" if len(found) <= WORST_SHOWN else f"The {WORST_SHOWN} worst of {count(len(found))} classes"
    note = "Sorted by the upper end of the CI, lowest first, so that classes of few images do not lead by chance."
    return [_worst_chart(title, worst_first, "class", note=note)]


def _worst_chart(title: str, worst_first: Sequence[Measurement], key: str, *, note: str) -> Chart:
    shown = worst_first[:WORST_SHOWN]
    labels = [str(one.about[key]) for one in shown]
    figures = measurement_table(title, worst_first, value_title="Accuracy", keys=[key])
    return dot_chart(title, shown, figures, x_title="accuracy", labels=labels, note=note)


def _confusions(found: Sequence[Measurement]) -> list[Part]:
    note = "For the worst classes: share of their images predicted as each other class."
    title, keys = "Confusions of the worst classes", ["class", "predicted"]
    return [measurement_table(title, found, value_title="Share", keys=keys, note=note)] if found else []


def _severity(distances: Sequence[Measurement], egregious: Sequence[Measurement]) -> list[Part]:
    far = [
        f"A misclassification is on average {figure(one.value, 'number')} steps from the true class in the WordNet "
        f"hierarchy ({evidence(one)}); random pairs of classes are {one.convention['by chance']} apart."
        for one in distances
    ]
    worst = [
        f"{of_hundred(one.value)} misclassifications are egregious ({evidence(one)}): the predicted and the true class "
        f"share only a root-level hypernym. Of random pairs {kept_together(one.convention['by chance'])} would be."
        for one in egregious
    ]
    return [Prose([*far, *worst])] if far or worst else []


def _predicted(found: Sequence[Measurement]) -> list[Part]:
    title = "Predicted classes of unlabelled images"
    figures = measurement_table(title, found, value_title="Share", keys=["predicted"])
    labels = [str(one.about["predicted"]) for one in found]
    return (
        [dot_chart(title, found, figures, x_title="share of images predicted as this class", labels=labels)] if found else []
    )


def _badness(found: Measurement) -> tuple[float, float]:
    """Sort key: the upper end of the CI, then the accuracy itself."""
    return (found.ends[1] if found.ends else found.value, found.value)


def accuracy_headlines(page: Page) -> list[str]:
    """How many of a hundred images each model classifies correctly."""
    return [
        f"{opened(page.subject(one.about), of_hundred(one.value))} images are classified correctly ({evidence(one)})."
        for one in whole_numbers(page.results.measurements)
        if one.metric == "top1_accuracy" and math.isfinite(one.value)
    ]


def weakest_groups(page: Page) -> list[str]:
    """The group with the lowest accuracy."""
    return [
        f"Weakest group: {one.about['group']} ({str(one.about['fact']).replace('_', ' ')}), "
        f"accuracy {figure(one.value, 'share')} ({evidence(one)})."
        for one in page.results.measurements
        if one.metric == "worst_group_accuracy"
    ]


SECTION = SectionMaker(
    NAMES,
    draw_accuracy,
    headlines=accuracy_headlines,
    details=weakest_groups,
    key_numbers=("top1_accuracy", "top5_accuracy"),
    minor_numbers=("worst_group_accuracy",),
    partial=("group_accuracy",),
)
