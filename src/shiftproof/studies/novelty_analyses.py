"""What it is that detectors see (Yang et al., 2024): new classes or mistakes, at what cost, and what each moves up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.ranks import rank_shift, rank_shift_interval
from shiftproof.metrics.separation import share_discarded
from shiftproof.metrics.two_sample import discarded_interval
from shiftproof.studies import evidence
from shiftproof.studies.novelty_choices import Cases, Choices, percent
from shiftproof.studies.novelty_scores import Judged, Scored
from shiftproof.types import About, Curve, Finding, Measurement

BINS = 40
"""Of a distribution, between its lowest and highest hundredth."""


def analysis_findings(judged: Judged, choices: Choices) -> Iterator[Finding]:
    """Every analysis of one model's scores."""
    yield from _accuracies(judged)
    for inside, name in product(judged.insides, judged.detectors):
        yield from _decomposition(judged, inside, name, choices)
        yield from _discarded(judged, inside, name, rejected=choices.rejected)
    yield from _shifts(judged, choices)
    yield from _rank_shifts(judged)
    for name in judged.detectors:
        yield from _distributions(judged, name)


def _accuracies(judged: Judged) -> Iterator[Measurement]:
    """Share right of the labelled images of each inside variant, by which the parts of an AUROC are weighed."""
    for inside in judged.insides if judged.detectors else ():
        if inside.labelled.any():
            right, clusters = inside.correct[inside.labelled], inside.clusters.take(inside.labelled)
            about = {**judged.about, "inside": inside.name}
            yield evidence.share("inside_accuracy", right, about, inside.convention, clusters)


def _decomposition(judged: Judged, inside: Scored, name: str, choices: Choices) -> Iterator[Measurement]:
    """AUROC against right and against wrong answers; weighed by accuracy they add up to that against all labelled images."""
    scores, convention = inside.scores[name], judged.convention(inside, name)
    about = {**judged.about, "detector": name, "inside": inside.name}
    groups = {"correct": inside.correct, "wrong": inside.wrong}
    if all(rows.any() for rows in groups.values()):
        right, wrong = (scores[rows] for rows in groups.values())
        cases = Cases.of(*(inside.clusters.take(rows) for rows in groups.values()))
        yield choices.auroc("auroc_correct_wrong", right, wrong, about, convention, cases)
    for outside, (group, rows) in product(judged.outsides, groups.items()):
        if rows.any():
            of = f"{int(rows.sum()):,} of {int(inside.labelled.sum()):,} images, answered {group}"
            yield choices.auroc(
                f"auroc_{group}_inside",
                scores[rows],
                outside.scores[name],
                {**about, "outside": outside.name},
                {**convention, "inside": of, "outside": outside.told()},
                Cases.of(inside.clusters.take(rows), outside.clusters),
            )


def _discarded(judged: Judged, inside: Scored, name: str, *, rejected: float) -> Iterator[Measurement]:
    correct = inside.scores[name][inside.correct]
    for outside in judged.outsides if len(correct) else ():
        foreign = outside.scores[name]
        about = {**judged.about, "detector": name, "inside": inside.name, "outside": outside.name}
        cases = Cases.of(inside.clusters.take(inside.correct), outside.clusters)
        kept, beyond = cases.by_side["in_clusters"], cases.by_side["out_clusters"]
        within = discarded_interval(correct, foreign, rejected=rejected, kept_clusters=kept, out_clusters=beyond)
        told = {"outside": outside.told(), **cases.told("of the threshold and of what it flags", within)}
        yield Measurement(
            "correct_discarded",
            share_discarded(correct, foreign, rejected=rejected),
            {**about, "rejected": percent(rejected)},
            len(correct) + len(foreign),
            {**judged.convention(inside, name), **told},
            within,
            cases.count,
        )


def _shifts(judged: Judged, choices: Choices) -> Iterator[Measurement]:
    """The unchanged images against each shifted and each outside set, which random networks are held against."""
    for other in (*judged.shifted, *judged.outside):
        cases = Cases.of(judged.inside.clusters, other.clusters)
        for name in judged.detectors:
            convention = {**judged.convention(other, name), "inside": judged.inside.told(), "shift": other.told()}
            about = {**judged.about, "detector": name, "shift": other.name}
            yield choices.auroc("shift_auroc", judged.inside.scores[name], other.scores[name], about, convention, cases)


def _rank_shifts(judged: Judged) -> Iterator[Finding]:
    """How far each detector moves right answers, wrong ones and outside images up the order of the baseline.

    On average, and how the shifts of each group are distributed, in bins that all detectors have in common.
    """
    inside = judged.inside
    if judged.baseline not in judged.detectors or not judged.outsides or not inside.labelled.any():
        return
    outside = judged.outsides[-1]
    beyond = np.zeros(len(outside), bool)
    groups = {
        "correct": np.append(inside.correct, beyond),
        "wrong": np.append(inside.wrong, beyond),
        "outside": np.append(np.zeros(len(inside), bool), ~beyond),
    }
    together = {name: np.append(inside.scores[name], outside.scores[name]) for name in judged.detectors}
    cases = Cases.of(inside.clusters, outside.clusters)
    rivals = [name for name in judged.detectors if name != judged.baseline]
    moved = {name: rank_shift(together[judged.baseline], together[name]) for name in rivals}
    farthest = max((float(np.percentile(np.abs(one), 99)) for one in moved.values()), default=0.0)
    edges = np.linspace(-(farthest or 1), farthest or 1, BINS + 1)
    for name, (group, rows) in product(rivals, groups.items()):
        if rows.any():
            shifts = moved[name][rows]
            about = {**judged.about, "detector": name, "versus": judged.baseline, "group": group}
            about |= {"inside": inside.name, "outside": outside.name}
            told = {**judged.convention(inside, name), "order": f"of {inside.told()} inside and {outside.told()} outside"}
            own, theirs = together[judged.baseline], together[name]
            within = rank_shift_interval(own, theirs, rows, clusters=cases.joint.numbers)
            clusters = cases.joint.take(rows)
            stated = {**told, **evidence.resampled_told(clusters, within, what="Student's t")}
            yield Measurement("rank_shift", float(shifts.mean()), about, len(shifts), stated, within, clusters.count)
            yield _distribution("rank_shift_distribution", shifts, edges, about, told, "places moved up, as a share of all")


def _distributions(judged: Judged, name: str) -> Iterator[Curve]:
    """Share of images by score, in bins that all groups have in common; of shifted sets by right and wrong answers too."""
    inside = judged.inside
    groups = {one.name: one.scores[name] for one in (*judged.shifted, *judged.outside)}
    if inside.labelled.any():
        scores = inside.scores[name]
        groups = {"correct": scores[inside.correct], "wrong": scores[inside.wrong], **groups}
    else:
        groups = {"inside": inside.scores[name], **groups}
    low, high = np.percentile(np.concatenate(list(groups.values())), [1, 99])
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    for group, scores in groups.items():
        if len(scores):
            about = {**judged.about, "detector": name, "group": group}
            yield _distribution("score_distribution", scores, edges, about, judged.convention(inside, name), "anomaly score")
    for one, answered in product(judged.shifted, ("correct", "wrong")):
        scores = one.scores[name][one.correct if answered == "correct" else one.wrong]
        if len(scores):
            about = {**judged.about, "detector": name, "group": one.name, "answered": answered}
            convention = judged.convention(one, name)
            yield _distribution("score_distribution_by_answer", scores, edges, about, convention, "anomaly score")


def _distribution(
    name: str,
    values: NDArray[np.floating],
    edges: NDArray[np.floating],
    about: About,
    convention: Mapping[str, str],
    across: str,
) -> Curve:
    """Share of images by value; what lies beyond the edges counts in the last bins."""
    counts, _ = np.histogram(np.clip(values, edges[0], edges[-1]), edges)
    return Curve(
        name,
        about,
        across,
        "share of images",
        x=tuple(((edges[1:] + edges[:-1]) / 2).tolist()),
        y=tuple((counts / len(values)).tolist()),
        images=len(values),
        convention={**convention, "bins": f"{len(edges) - 1} of equal width, the last two open"},
        counts=tuple(counts.tolist()),
    )
