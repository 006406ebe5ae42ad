"""Groups of images that go wrong together: one half of the images finds them, the other confirms them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics import holm, is_correct, slice_gap, split_half
from shiftproof.metrics.intervals import LEAST_CLUSTERS, cluster_sizes
from shiftproof.metrics.slices import Gap
from shiftproof.studies import evidence
from shiftproof.studies.accuracy.study import confident_mistakes
from shiftproof.studies.base import ClassNames, CleanStudy, dataset_ref
from shiftproof.studies.slices.search import (
    Branch,
    Group,
    Grouping,
    Kind,
    Members,
    Search,
    branches,
    by_class,
    by_facts,
    by_features,
    described,
    in_pairs,
)
from shiftproof.types import (
    Finding,
    Gallery,
    Interval,
    Keep,
    Known,
    LoadPredictions,
    Note,
    Predictions,
    Run,
    Skipped,
)

SURE = 0.05
"""The chance that any slice is called one although none is worse than the others."""

SHOWN = 12
"""Misclassified images of a slice that are shown."""

YES, NO = "yes", "no"
"""Whether an image is in a slice, as the value of a fact that is named after it."""


@dataclass(frozen=True)
class FoundSlice:
    """A group of images that is less accurate than the others, confirmed on images that did not find it."""

    words: str
    kind: Kind
    common: str  # what its images have in common besides, in words
    members: NDArray[np.bool_]  # among all labelled images
    gap: Gap  # on the half that confirms
    p: float  # that it is a slice of its own, corrected for all that were to be confirmed

    @property
    def rule(self) -> str:
        """The slice as a rule of the gate names it, where a manifest has it as a fact."""
        return f"{self.words}={YES}"


@dataclass(frozen=True)
class Found:
    """The slices of one model, and what they were searched among."""

    predictions: Predictions  # the labelled rows
    correct: NDArray[np.bool_]
    confirms: NDArray[np.bool_]  # the half that confirms
    slices: tuple[FoundSlice, ...]
    tried: int  # groups that were looked at
    handed_over: int  # of them, to the half that confirms


@dataclass(frozen=True)
class Confirming:
    """The half of the images that confirms slices."""

    correct: NDArray[np.bool_]
    clusters: NDArray[np.integer] | None
    least: int  # images that a group needs to be told apart from one that overlaps with it
    level: float

    def gaps(self, several: Sequence[Members]) -> Iterator[tuple[Gap, float]]:
        """The gap of each group, and the p-value that it is a slice of its own.

        That is also of its images beyond the slices before it, or where it lies within one of them, of those among its
        images: what overlaps with a slice is worse for that alone.
        """
        before: list[Members] = []
        for members in several:
            gap = self._gap(members, np.ones(len(members), bool))
            p = max([gap.p, *(self._beside(members, other) for other in before)])
            yield gap, p
            if p <= SURE:
                before.append(members)

    def _beside(self, members: Members, other: Members) -> float:
        if not (members & other).any():
            return 0.0
        rows = ~other if (members & ~other).sum() >= self.least else other
        if not (members & rows).any() or not (~members & rows).any():
            return 1.0
        return self._gap(members, rows).p

    def _gap(self, members: Members, rows: Members) -> Gap:
        clusters = None if self.clusters is None else self.clusters[rows]
        return slice_gap(self.correct[rows], members[rows], clusters=clusters, level=self.level)


@dataclass(frozen=True)
class SliceStudy(CleanStudy):
    """Slices by facts and their pairs, by class and WordNet, and by clusters of features where these are kept."""

    smallest: int = 20  # images of a slice
    most: int = 20  # slices that one half hands to the other
    keep: Keep = "top5"

    def why_nothing(self, known: Known) -> str | None:
        return known.unlabelled(dataset_ref(self.dataset), "a search for slices")

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        for run in self.runs():
            found = self.found(run, load)
            if isinstance(found, str):
                yield Skipped(f"{run.dataset.name}: {found}")
            else:
                yield from self._told(run, load(run), found)

    def found(self, run: Run, load: LoadPredictions) -> Found | str:
        """The slices of one model, or why there can be none."""
        read = load(run)
        if why := evidence.why_unread(read) or evidence.why_unlabelled(read, "a search for slices"):
            return why
        predictions = evidence.labelled_only(read)
        correct = is_correct(predictions.labels, predictions.top5.classes)
        # keys decide, so that neither half has a part of a cluster of the other
        finds, least = split_half(predictions.clusters.keys), self.smallest // 2
        if min(finds.sum(), (~finds).sum()) < 2 * least:
            return (
                f"slices need {2 * least} labelled images in either of two halves that share no cluster, and these are "
                f"{int(finds.sum())} and {int((~finds).sum())}"
            )
        search = Search(correct, finds, least)
        labels = np.take_along_axis(predictions.labels, (predictions.labels >= 0).argmax(axis=1)[:, None], axis=1)[:, 0]
        names = ClassNames(predictions.classes)
        by_fact, classes = list(by_facts(predictions.facts)), by_class(labels, names.__getitem__)
        wnids = predictions.classes.wnids if predictions.classes else None
        kinds = branches(wnids, np.unique(labels).tolist()) if wnids else []
        common = partial(described, groupings=[*by_fact, classes], kinds=kinds, labels=labels)
        groupings = [*by_fact, classes, *in_pairs(by_fact), *_clusters(predictions, common)]
        groups = [group for one in groupings for group in search.groups(one)] + list(search.kinds(kinds, labels))
        chosen = [
            (group, members)
            for group, members in search.chosen(groups, self.most)
            if _enough_clusters(predictions, members & ~finds) and _enough_clusters(predictions, ~members & ~finds)
        ]
        confirming = Confirming(
            correct[~finds], predictions.clusters.take(~finds).numbers, least, 1 - SURE / max(1, len(chosen))
        )
        gaps = list(confirming.gaps([members[~finds] for _, members in chosen]))
        corrected = holm(np.array([p for _, p in gaps])) if gaps else np.empty(0)
        slices = [
            FoundSlice(
                group.words,
                group.kind,
                _in_common(group, members, [*by_fact, classes], kinds, labels),
                members,
                gap,
                float(p),
            )
            for (group, members), (gap, _), p in zip(chosen, gaps, corrected, strict=True)
            if p <= SURE
        ]
        tried = sum(len(one.names) for one in groupings) + len(kinds)
        ordered = tuple(sorted(slices, key=lambda one: (one.p, one.words)))
        return Found(predictions, correct, ~finds, ordered, tried, len(chosen))

    def _told(self, run: Run, read: Predictions, found: Found) -> Iterator[Finding]:
        subject = evidence.Subject.of(run, read).take(read.labelled)
        told = {
            "tried": f"{found.tried:,} candidates on one half of the images, {found.handed_over} tested on the other half",
            "test": f"Fisher's exact test, one-sided, Holm's correction for {found.handed_over} slices, at {100 * SURE:g} %",
        }
        yield subject.also(told=told).number("confirmed_slices", len(found.slices))
        level = 1 - SURE / max(1, found.handed_over)
        for one in found.slices:
            about = {"slice": one.words, "found by": one.kind}
            rule = {
                "gate rule": f"slices = {json.dumps(one.rule, ensure_ascii=False)}",
                **({"in common": one.common} if one.common else {}),
            }
            confirming = subject.take(found.confirms).also(about, {**told, **rule})
            inside = subject.take(found.confirms & one.members).also(about, {**told, **rule})
            yield inside.share("slice_accuracy", found.correct[found.confirms & one.members])
            clustered = subject.clusters.numbers is not None
            method = f"Newcombe{', at the effective sample size' if clustered else ''}, at {level:.4g}"
            within = Interval(*one.gap.interval, method=f"{method} for {found.handed_over} slices together")
            yield confirming.number("slice_gap", one.gap.gap, within)
            yield confirming.number("slice_gap_p", one.p)
            yield from _gallery(run, found, one, about)


def _gallery(run: Run, found: Found, one: FoundSlice, about: dict[str, str]) -> Iterator[Gallery]:
    wrong = np.flatnonzero(one.members & ~found.correct)
    title = f"{one.words[:1].upper()}{one.words[1:]}: misclassified images" + (f" ({one.common})" if one.common else "")
    for gallery in confident_mistakes(run, found.predictions, wrong, shown=SHOWN):
        yield dataclasses.replace(gallery, name="slice_examples", about={**gallery.about, **about}, title=title)


def _clusters(predictions: Predictions, common: partial[str]) -> Iterator[Grouping]:
    """Clusters of features, named after what their images have in common."""
    if predictions.features is None or not np.isfinite(predictions.features).all():
        return
    for clusters in by_features(predictions.features):
        count = int(clusters.max()) + 1
        words = [common(clusters == place) if (clusters == place).any() else "" for place in range(count)]
        names = [f"feature cluster {place + 1} of {count}" for place in range(count)]
        yield Grouping(
            "features", [f"{name}: {told}" if told else name for name, told in zip(names, words, strict=True)], clusters
        )


def _in_common(
    group: Group, members: Members, groupings: list[Grouping], kinds: list[Branch], labels: NDArray[np.integer]
) -> str:
    """What the members share besides what the slice is called after."""
    if group.kind == "features":
        return ""  # it is called after that
    others = [one for one in groupings if not (one.fact and one.fact in group.words)]
    of_classes = group.kind in ("classes", "WordNet")
    return described(members, [one for one in others if one.fact or not of_classes], [] if of_classes else kinds, labels)


def _enough_clusters(predictions: Predictions, rows: NDArray[np.bool_]) -> bool:
    numbers = predictions.clusters.numbers
    return bool(rows.any()) and (numbers is None or len(cluster_sizes(numbers[rows])) >= LEAST_CLUSTERS)
