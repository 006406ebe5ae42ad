"""Analyses of OOD scores (Yang et al., 2024): correct and misclassified images apart, predictions discarded, rank shift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.roc import auroc, images_below, rank_shift, rank_shift_intervals, share_discarded
from shiftproof.metrics.two_sample import discarded_interval
from shiftproof.studies import evidence
from shiftproof.studies.ood.distance import Surroundings
from shiftproof.studies.ood.goals import best_detector, new_class
from shiftproof.studies.ood.scores import MISTAKES_ALONE, Cases, Choices, DetectorPanel, Judged, Scored, Variant, percent
from shiftproof.types import CLEAN, About, Curve, Finding, Gallery, GalleryItem, Interval, Measurement, NoInterval, OODScores

BINS = 40
"""Of a distribution, between its lowest and highest hundredth."""


def analysis_findings(judged: Judged, choices: Choices) -> Iterator[Finding]:
    """Every analysis of one model's scores."""
    yield from _accuracies(judged)
    for id_set, name in product(judged.id_sets, judged.detectors):
        yield from _decomposition(judged, id_set, name, choices)
        yield from _discarded(judged, id_set, name, rejected=choices.rejected)
    yield from _shifts(judged, choices)
    yield from _rank_shifts(judged)
    for name in judged.detectors:
        yield from _distributions(judged, name)


def _accuracies(judged: Judged) -> Iterator[Measurement]:
    """Accuracy on the labelled images of each ID variant, by which the parts of an AUROC are weighed."""
    for id_set in judged.id_sets if judged.detectors else ():
        if id_set.labelled.any():
            right, clusters = id_set.correct[id_set.labelled], id_set.clusters.take(id_set.labelled)
            about = {**judged.about, "id": id_set.name}
            yield evidence.Subject(about, id_set.convention, clusters).share("id_accuracy", right)


def _decomposition(judged: Judged, id_set: Scored, name: str, choices: Choices) -> Iterator[Measurement]:
    """AUROC of OOD against correct and against misclassified images: weighted by accuracy, that of all labelled ones."""
    scores, convention = id_set.scores[name], judged.convention(id_set, name)
    about = {**judged.about, "ood_detector": name, "id": id_set.name}
    groups = {"correct": id_set.correct, "misclassified": id_set.wrong}
    if all(rows.any() for rows in groups.values()):
        right, wrong = (scores[rows] for rows in groups.values())
        cases = Cases.of(*(id_set.clusters.take(rows) for rows in groups.values()))
        yield choices.auroc("auroc_correct_wrong", right, wrong, about, convention, cases)
    for ood_set, (group, rows) in product(judged.ood_sets, groups.items()):
        if rows.any():
            told = "classified correctly" if group == "correct" else "misclassified"
            of = f"{int(rows.sum()):,} of {int(id_set.labelled.sum()):,} images, {told}"
            yield choices.auroc(
                f"auroc_{group}_id",
                scores[rows],
                ood_set.scores[name],
                {**about, "ood": ood_set.name},
                {**convention, "id": of, "ood": ood_set.told()},
                Cases.of(id_set.clusters.take(rows), ood_set.clusters),
            )


def _discarded(judged: Judged, id_set: Scored, name: str, *, rejected: float) -> Iterator[Measurement]:
    correct = id_set.scores[name][id_set.correct]
    for ood_set in judged.ood_sets if len(correct) else ():
        ood_scores = ood_set.scores[name]
        about = {**judged.about, "ood_detector": name, "id": id_set.name, "ood": ood_set.name}
        cases = Cases.of(id_set.clusters.take(id_set.correct), ood_set.clusters)
        kept, beyond = cases.by_side["in_clusters"], cases.by_side["out_clusters"]
        ends = discarded_interval(correct, ood_scores, rejected=rejected, kept_clusters=kept, out_clusters=beyond)
        yield cases.number(
            "correct_discarded",
            share_discarded(correct, ood_scores, rejected=rejected),
            "of the threshold and of what it flags",
            ends,
            {**about, "rejected": percent(rejected)},
            {**judged.convention(id_set, name), "ood": ood_set.told()},
        )


def _shifts(judged: Judged, choices: Choices) -> Iterator[Measurement]:
    """The unchanged images against each shifted and each OOD set, which random networks are held against."""
    for other in (*judged.shifted, *judged.ood):
        cases = Cases.of(judged.id_set.clusters, other.clusters)
        for name in judged.detectors:
            convention = {**judged.convention(other, name), "id": judged.id_set.told(), "shift": other.told()}
            about = {**judged.about, "ood_detector": name, "shift": other.name}
            yield choices.auroc("shift_auroc", judged.id_set.scores[name], other.scores[name], about, convention, cases)


def _rank_shifts(judged: Judged) -> Iterator[Finding]:
    """Rank shift of correct predictions, misclassifications and OOD images from the baseline to each detector.

    On average, and how the shifts of each group are distributed, in bins that all detectors have in common.
    """
    id_set = judged.id_set
    if judged.baseline not in judged.detectors or not judged.ood_sets or not id_set.labelled.any():
        return
    ood_set = judged.ood_sets[-1]
    beyond = np.zeros(len(ood_set), bool)
    groups = {
        "correct": np.append(id_set.correct, beyond),
        "wrong": np.append(id_set.wrong, beyond),
        "ood": np.append(np.zeros(len(id_set), bool), ~beyond),
    }
    together = {name: np.append(id_set.scores[name], ood_set.scores[name]) for name in judged.detectors}
    cases = Cases.of(id_set.clusters, ood_set.clusters)
    rivals = [name for name in judged.detectors if name != judged.baseline]
    moved = {name: rank_shift(together[judged.baseline], together[name]) for name in rivals}
    farthest = max((float(np.percentile(np.abs(one), 99)) for one in moved.values()), default=0.0)
    edges = np.linspace(-(farthest or 1), farthest or 1, BINS + 1)
    groups = {group: rows for group, rows in groups.items() if rows.any()}
    for name in rivals:
        own, theirs = together[judged.baseline], together[name]
        intervals = rank_shift_intervals(own, theirs, [*groups.values()], clusters=cases.joint.numbers)
        for (group, rows), ends in zip(groups.items(), intervals, strict=True):
            shifts = moved[name][rows]
            about = {**judged.about, "ood_detector": name, "versus": judged.baseline, "group": group}
            about |= {"id": id_set.name, "ood": ood_set.name}
            told = {**judged.convention(id_set, name), "order": f"of {id_set.told()} ID and {ood_set.told()} OOD"}
            subject = evidence.Subject(about, told, cases.joint.take(rows))
            yield subject.resampled("rank_shift", float(shifts.mean()), "Student's t", ends)
            yield _distribution("rank_shift_distribution", shifts, edges, about, told, "ranks moved up, as a share of all")


def _distributions(judged: Judged, name: str) -> Iterator[Curve]:
    """Histograms of the scores over common bins; of shifted datasets also by whether the prediction is correct."""
    id_set = judged.id_set
    groups = {one.name: one.scores[name] for one in (*judged.shifted, *judged.ood)}
    if id_set.labelled.any():
        scores = id_set.scores[name]
        groups = {"correct": scores[id_set.correct], "wrong": scores[id_set.wrong], **groups}
    else:
        groups = {"id": id_set.scores[name], **groups}
    low, high = np.percentile(np.concatenate(list(groups.values())), [1, 99])
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    for group, scores in groups.items():
        if len(scores):
            about = {**judged.about, "ood_detector": name, "group": group}
            yield _distribution("score_distribution", scores, edges, about, judged.convention(id_set, name), "OOD score")
    for one, answered in product(judged.shifted, ("correct", "wrong")):
        scores = one.scores[name][one.correct if answered == "correct" else one.wrong]
        if len(scores):
            about = {**judged.about, "ood_detector": name, "group": one.name, "answered": answered}
            convention = judged.convention(one, name)
            yield _distribution("score_distribution_by_answer", scores, edges, about, convention, "OOD score")


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


VariantScores = Mapping[str, Mapping[str, OODScores]]
"""By variant, then by detector."""

FITTED_AGAIN = {
    "network": "same architecture, random weights; detectors that need fitting were fitted on it again",
}
OF_ONE_NETWORK = NoInterval("of one network; the mean over networks has one")


def random_network_aurocs(
    judged: Judged, panel: DetectorPanel, scores: VariantScores, *, network: int
) -> Iterator[Measurement]:
    """AUROC of the unchanged ID images against every shifted and OOD set, as one random network sees them."""
    id_set = scores[judged.id_set.name]
    for other in (*judged.shifted, *judged.ood):
        for name, ood_scores in scores[other.name].items():
            if name in panel.ready:
                yield Measurement(
                    "random_network_auroc",
                    auroc(id_set[name], ood_scores),
                    {**judged.about, "ood_detector": name, "shift": other.name, "network": network},
                    len(id_set[name]) + len(ood_scores),
                    {**other.convention, **panel.ready[name].convention(), **FITTED_AGAIN},
                    no_interval=OF_ONE_NETWORK,
                )


def random_network_failures(
    judged: Judged, panel: DetectorPanel, scores: VariantScores, *, network: int
) -> Iterator[Measurement]:
    """AUROC of failure detection with one random network's scores: how far low-level pixel statistics tell failures.

    Correct and wrong are the trained model's predictions: a random network has next to no correct ones. Misclassifications
    are to be found alone, then together with all OOD images.
    """
    everything = [one for one in judged.ood if one.name in scores]
    for id_set, name in product((judged.id_set, *judged.shifted), panel.ready):
        own = scores.get(id_set.name, {}).get(name)
        if own is None or len(own) != len(id_set) or not id_set.correct.any():
            continue
        to_find = {MISTAKES_ALONE: [own[id_set.wrong]]}
        if everything:
            to_find[judged.ood_sets[-1].name] = [own[id_set.wrong], *(scores[one.name][name] for one in everything)]
        for found, parts in to_find.items():
            ood_scores, id_scores = np.concatenate(parts), own[id_set.correct]
            if len(ood_scores):
                told = {"correct and wrong": f"predictions of {judged.about['model']}, the trained model"}
                yield Measurement(
                    "random_network_failure_auroc",
                    auroc(id_scores, ood_scores),
                    {**judged.about, "ood_detector": name, "id": id_set.name, "ood": found, "network": network},
                    len(id_scores) + len(ood_scores),
                    {**id_set.convention, **panel.ready[name].convention(), **FITTED_AGAIN, **told},
                    no_interval=OF_ONE_NETWORK,
                )


def means_over_networks(aurocs: Sequence[Measurement]) -> Iterator[Measurement]:
    """The mean over networks of one metric, with an interval from how far two or more of them lie apart."""
    for common, several in evidence.alike_but_for("network", aurocs):
        values = np.array([found.value for found in several])
        told, images = {**several[0].convention, "networks": str(len(several))}, several[0].images
        within = _t_interval(values)
        yield evidence.measurement(f"mean_{several[0].metric}", float(values.mean()), common, images, told, within)


def _t_interval(values: np.ndarray[tuple[int], np.dtype[np.floating]]) -> Interval | NoInterval:
    """Where the mean of more such networks would lie.

    >>> interval = _t_interval(np.array([0.4, 0.6]))  # 0.5 +- 12.706 * 0.1
    >>> interval.low, interval.high
    (0.0, 1.0)
    """
    from scipy.special import stdtrit

    count = len(values)
    if count < 2:
        return NoInterval("of one network")
    half = float(stdtrit(count - 1, 0.975) * values.std(ddof=1) / np.sqrt(count))
    low, high = max(0.0, float(values.mean()) - half), min(1.0, float(values.mean()) + half)
    return Interval(low, high, method="Student's t over networks, on exactly these images")


Variants = Mapping[str, Variant]
"""What is behind each name: the dataset, its role and its condition."""


def disagreements(
    judged: Judged, variants: Variants, *, shown: int, each: int = 0, between: tuple[str, str] | None = None
) -> Iterator[Gallery]:
    """Images that two detectors place most unlike: the best of new classes and the baseline, where none are named.

    Over all sets together first, then `each` for each set and each of the two that scores them higher.
    """
    between = _two_shown(judged, between)
    if between is None:
        return
    name, versus = between
    places = {detector: _places(judged, detector) for detector in between}
    sets = [judged.id_set, *judged.ood]
    ours, theirs = (np.concatenate([places[detector][one.name] for one in sets]) for detector in between)
    rows = [(one, row) for one in sets for row in range(len(one))]
    items = []
    for place in np.argsort(-np.abs(ours - theirs), kind="stable")[:shown].tolist():
        one, row = rows[place]
        items.append(_item(one, row, variants, _both(name, ours[place], versus, theirs[place]), named=True))
    about = {**judged.about, "ood_detector": name, "versus": versus}
    title = f"Largest disagreements of {name} and {versus}, in percentile of OOD score"
    yield Gallery("detector_disagreement", about, variants[judged.id_set.name].dataset, title, tuple(items))
    for one in (judged.id_set, *judged.shifted, *judged.ood) if each else ():
        for first, second in (between, between[::-1]):
            yield from _one_way(judged, one, first, second, places, variants, each)


def _one_way(
    judged: Judged,
    scored: Scored,
    first: str,
    second: str,
    places: Mapping[str, Mapping[str, NDArray[np.floating]]],
    variants: Variants,
    most: int,
) -> Iterator[Gallery]:
    """Images of one dataset that the first detector scores highest relative to the second."""
    ours, theirs = places[first][scored.name], places[second][scored.name]
    order = np.argsort(theirs - ours, kind="stable")[:most]
    items = [
        _item(scored, row, variants, _both(first, ours[row], second, theirs[row]))
        for row in order.tolist()
        if ours[row] > theirs[row]
    ]
    if items:
        variant = variants[scored.name]
        about = {**judged.about, "ood_detector": first, "versus": second, "set": scored.name, "side": variant.role}
        title = f"{variant.title}: higher OOD score by {first} than by {second}"
        yield Gallery("disagreement_by_set", about, variant.dataset, title, tuple(items))


def scored_examples(
    judged: Judged, variants: Variants, *, percentiles: Sequence[float], of: tuple[str, str] | None = None
) -> Iterator[Gallery]:
    """Images of each set at these percentiles of a detector's score in that set, lowest OOD score first."""
    for name in _two_shown(judged, of) or tuple(judged.detectors)[:1] if percentiles else ():
        for one in (judged.id_set, *judged.shifted, *judged.ood):
            scores, variant = one.scores[name], variants[one.name]
            order = np.argsort(scores, kind="stable")
            items = []
            for percentile in percentiles:
                row = int(order[round(percentile / 100 * (len(order) - 1))])
                items.append(_item(one, row, variants, f"{percentile:g} %, score {scores[row]:.3g}"))
            about = {**judged.about, "ood_detector": name, "set": one.name, "side": variant.role}
            title = f"{variant.title}: images at percentiles of {name}"
            yield Gallery("score_percentiles", about, variant.dataset, title, tuple(items))


def _two_shown(judged: Judged, named: tuple[str, str] | None) -> tuple[str, str] | None:
    """The two detectors that are looked at, if this model has both."""
    two = named or _best_and_baseline(judged)
    return two if two is not None and judged.detectors.keys() >= set(two) else None


def _best_and_baseline(judged: Judged) -> tuple[str, str] | None:
    rivals = [name for name in judged.detectors if name != judged.baseline]
    if not judged.ood_sets or not rivals:
        return None
    return best_detector(new_class(judged.id_set.only(rivals), judged.ood_sets[-1].only(rivals))), judged.baseline


def nearest_pairs(
    judged: Judged, surroundings: Surroundings, variants: Variants, *, percentiles: Sequence[float]
) -> Iterator[Gallery]:
    """OOD images at these percentiles of the distance, each followed by the ID image nearest it."""
    id_set = variants[judged.id_set.name].dataset
    for ood_set in judged.ood:
        if ood_set.name not in surroundings.nearness:
            continue
        neighbours, distances = surroundings.nearness[ood_set.name]
        order = np.argsort(distances, kind="stable")
        items: list[GalleryItem] = []
        for percentile in percentiles:
            row = int(order[round(percentile / 100 * (len(order) - 1))])
            caption = f"{ood_set.name}, at {distances[row]:.3g}: farther than {percentile:g} %"
            items.append(GalleryItem(ood_set.ids[row], caption, dataset=variants[ood_set.name].dataset))
            items.append(GalleryItem(neighbours[row], "nearest ID", dataset=id_set))
        about = {**judged.about, "set": ood_set.name}
        title = f"Images of {ood_set.name}, each beside the ID image nearest it for {surroundings.space}"
        yield Gallery("nearest_pairs", about, variants[ood_set.name].dataset, title, tuple(items))


def _places(judged: Judged, detector: str) -> dict[str, NDArray[np.floating]]:
    """Share of the ID and OOD images with a lower OOD score than each image, by set; of itself, half."""
    order = np.concatenate([one.scores[detector] for one in (judged.id_set, *judged.ood)])
    sets = (judged.id_set, *judged.shifted, *judged.ood)
    return {one.name: images_below(one.scores[detector], order) / len(order) for one in sets}


def _both(first: str, ours: float, second: str, theirs: float) -> str:
    return f"{first} {100 * ours:.0f} %, {second} {100 * theirs:.0f} %"


def _item(scored: Scored, row: int, variants: Variants, said: str, *, named: bool = False) -> GalleryItem:
    """An image as its variant shows it, and what it is; OOD sets are named where several stand together."""
    variant = variants[scored.name]
    condition = None if variant.condition == CLEAN else variant.condition
    ood = f"OOD ({scored.name})" if named else "OOD"
    kind = ood if variant.role == "ood" else _kind(scored, row)
    return GalleryItem(scored.ids[row], f"{said}: {kind}", condition=condition, dataset=variant.dataset)


def _kind(scored: Scored, row: int) -> str:
    if not scored.labelled[row]:
        return "ID"
    return "correct" if scored.correct[row] else "wrong"
