"""How often a model is right on the images as they are: overall, by class, by group, and what it gets wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import (
    clopper_pearson,
    cluster_share_interval,
    grouped_accuracy,
    is_correct,
    per_class_accuracy,
    worst_group,
)
from shiftproof.metrics.accuracy import Tally
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames
from shiftproof.studies.clean_study import CleanStudy
from shiftproof.studies.mistakes import confident_mistakes, severity_of_mistakes
from shiftproof.studies.slices import Slices, all_slices
from shiftproof.types import About, Clusters, Finding, Keep, Measurement, Predictions, Run


@dataclass(frozen=True)
class AccuracyStudy(CleanStudy):
    """Top-1 and top-5 accuracy, each class and group of images, the worst of them, and how bad the mistakes are."""

    at_least: int = 10  # images a group needs before it may be called the worst
    ranges: int = 4  # groups a numeric fact of many values is cut into
    worst_classes: int = 10  # classes whose confusions are shown
    shown: int = 24  # images in a gallery, and predicted classes of an unlabelled set

    keep: ClassVar[Keep] = "top5"

    def measure(self, load: Callable[[Run], Predictions]) -> Iterator[Finding]:
        for run in self.runs():
            predictions = load(run)
            convention = evidence.convention_of(run, predictions)
            if predictions.labelled.any():
                yield from self._with_labels(run, evidence.labelled_only(predictions), convention)
            elif len(predictions):
                yield from self._without_labels(run, predictions, convention)

    def skipped(self, load: Callable[[Run], Predictions]) -> Iterator[str]:
        for run in self.runs():
            predictions = load(run)
            reasons = [evidence.nothing_read(run, predictions), evidence.nothing_labelled(run, predictions, "accuracy")]
            yield from (reason for reason in reasons if reason)
            slices = all_slices(evidence.labelled_only(predictions).facts, ranges=self.ranges)
            yield from (f"{run.image_set.name}: {groups.why_useless}" for groups in slices if groups.why_useless)

    def _with_labels(self, run: Run, predictions: Predictions, convention: Mapping[str, str]) -> Iterator[Finding]:
        about = run.about()
        names = ClassNames(predictions.classes)
        correct, clusters = is_correct(predictions.labels, predictions.top5.classes), predictions.clusters
        yield evidence.share("top1_accuracy", correct, about, convention, clusters)
        if predictions.top5.classes.shape[1] == 5 and (predictions.classes is None or len(predictions.classes) > 5):
            among = is_correct(predictions.labels, predictions.top5.classes, k=5)
            yield evidence.share("top5_accuracy", among, about, convention, clusters)
        slices = [groups for groups in all_slices(predictions.facts, ranges=self.ranges) if not groups.why_useless]
        yield from _groups(slices, correct, about, convention, clusters, at_least=self.at_least)
        classes = 1 + int(max(predictions.labels.max(), predictions.top5.classes.max()))
        tally = per_class_accuracy(predictions.labels, correct, classes=classes)
        yield from _classes(predictions, correct, tally, names, about, convention)
        for place in _worst_first(tally)[: self.worst_classes]:
            yield from _confusions(place, predictions, names, about, convention)
        wrong = np.flatnonzero(~correct)
        yield from severity_of_mistakes(run, predictions, wrong, convention, shown=self.shown)
        yield from confident_mistakes(run, predictions, wrong, shown=self.shown)

    def _without_labels(self, run: Run, predictions: Predictions, convention: Mapping[str, str]) -> Iterator[Finding]:
        names = ClassNames(predictions.classes)
        answers = predictions.top5.classes[:, 0]
        counts = np.bincount(answers)
        for place in np.argsort(-counts, kind="stable")[: self.shown]:
            about = {**run.about(), "predicted": names[int(place)]}
            if counts[place]:
                yield evidence.share("predicted_share", answers == place, about, convention, predictions.clusters)


def _groups(
    slices: Sequence[Slices],
    correct: NDArray[np.bool_],
    about: About,
    convention: Mapping[str, str],
    clusters: Clusters,
    *,
    at_least: int,
) -> Iterator[Measurement]:
    """Every group of every fact, and the worst of those large enough to judge."""
    tallies = [grouped_accuracy(correct, groups.groups) for groups in slices]
    names = [(groups.fact, name) for groups in slices for name in groups.names]
    if not names:
        return
    every = Tally(*(np.concatenate(column) for column in zip(*tallies, strict=True)))
    members = [groups.groups == place for groups in slices for place in range(len(groups.names))]
    for (fact, name), rows in zip(names, members, strict=True):
        yield evidence.share(
            "group_accuracy", correct[rows], {**about, "fact": fact, "group": name}, convention, clusters.take(rows)
        )
    judged = int((every.total >= at_least).sum())
    worst = worst_group(every, at_least=at_least)
    if worst is None or judged < 2:
        return
    rows = members[worst]
    inside = clusters.take(rows)
    interval = cluster_share_interval(correct[rows], clusters=inside.numbers, level=1 - 0.05 / judged)
    told = evidence.interval_told("Clopper-Pearson", inside, interval, in_clusters=evidence.KORN_GRAUBARD)
    if interval is not None:
        told["interval"] += f", for all {judged} groups together by Bonferroni's correction"
    yield Measurement(
        "worst_group_accuracy",
        float(correct[rows].mean()),
        {**about, "fact": names[worst][0], "group": names[worst][1]},
        int(rows.sum()),
        {
            **convention,
            "groups looked at": f"{judged} of {len(names)}, those with at least {at_least} images",
            **told,
        },
        interval,
        inside.count,
    )


def _classes(
    predictions: Predictions,
    correct: NDArray[np.bool_],
    tally: Tally,
    names: ClassNames,
    about: About,
    convention: Mapping[str, str],
) -> Iterator[Measurement]:
    clusters = predictions.clusters
    if clusters.numbers is not None:
        for place in np.flatnonzero(tally.total).tolist():
            rows = (predictions.labels == place).any(axis=1)
            named = {**about, "class": names[place]}
            yield evidence.share("class_accuracy", correct[rows], named, convention, clusters.take(rows))
        return
    # a thousand classes at once: one by one they would take longer than everything else
    low, high = clopper_pearson(tally.right, tally.total)
    accuracy, stated = tally.accuracy, {**convention, **evidence.EXACT}
    for place in np.flatnonzero(tally.total).tolist():
        named, interval = {**about, "class": names[place]}, (float(low[place]), float(high[place]))
        images = int(tally.total[place])
        yield Measurement("class_accuracy", float(accuracy[place]), named, images, stated, interval, images)


def _worst_first(tally: Tally) -> list[int]:
    """Classes with a mistake, those first that are most surely bad: 0 of 1 says less than 2 of 10."""
    _, high = clopper_pearson(tally.right, tally.total)
    # of a class with one image the gallery tells as much
    mistaken = np.flatnonzero((tally.right < tally.total) & (tally.total > 1))
    return [int(place) for place in mistaken[np.argsort(high[mistaken], kind="stable")]]


def _confusions(
    place: int, predictions: Predictions, names: ClassNames, about: About, convention: Mapping[str, str]
) -> Iterator[Measurement]:
    """The three classes that one class is most often taken for."""
    rows = (predictions.labels == place).any(axis=1)
    right = is_correct(predictions.labels[rows], predictions.top5.classes[rows])
    answers, clusters = predictions.top5.classes[rows, 0], predictions.clusters.take(rows)
    taken_for = np.bincount(answers[~right])
    for other in np.argsort(-taken_for, kind="stable")[:3].tolist():
        if taken_for[other]:
            pair = {**about, "class": names[place], "predicted": names[other]}
            yield evidence.share("confusion_rate", ~right & (answers == other), pair, convention, clusters)
