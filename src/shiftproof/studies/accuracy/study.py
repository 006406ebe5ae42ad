"""Accuracy on the images as they are: overall, by class, by group, and the worst misclassifications."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import FEW, Coded, in_blocks
from shiftproof.datasets.wordnet import WordNet, wordnet
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
from shiftproof.studies.accuracy import shifts
from shiftproof.studies.base import ClassNames, CleanStudy, dataset_ref, model_refs, settle, sure_of
from shiftproof.types import (
    EXAMPLES,
    About,
    ConfusionMatrix,
    Dataset,
    DatasetRef,
    Fact,
    Finding,
    Gallery,
    GalleryItem,
    Interval,
    Keep,
    Labels,
    LoadPredictions,
    Measurement,
    ModelRef,
    Note,
    Predictions,
    Run,
)

GENERAL = {
    "n00001740": "entity",
    "n00001930": "physical entity",
    "n00002137": "abstraction",
    "n00002684": "object",
    "n00003553": "whole",
}
"""Root-level hypernyms: each is above more than a third of all nouns."""

GUESSES = 2000
"""Random pairs of classes drawn for the distance at chance: enough for a tenth of a step."""

Rows = NDArray[np.integer]
"""Places of images among the predictions, (some images,)."""


@dataclass(frozen=True)
class Severity:
    """How far each of some misclassifications is from the ground truth."""

    rows: Rows
    steps: NDArray[np.integer]  # through the nearest common ancestor; of several labels to the nearest
    egregious: NDArray[np.bool_]  # nothing in common that is not general


def confident_mistakes(run: Run, predictions: Predictions, wrong: Rows, *, shown: int) -> Iterator[Gallery]:
    """The misclassifications of highest confidence."""
    items = _items(predictions, _surest_first(predictions, wrong)[:shown])
    if items:
        yield Gallery("confident_mistakes", run.about(), run.dataset, "Most confident misclassifications", items)


def severity_of_mistakes(
    run: Run, predictions: Predictions, wrong: Rows, subject: evidence.Subject, *, shown: int
) -> Iterator[Finding]:
    """How far misclassifications are from the ground truth, how many are egregious, and the most confident of those.

    Nothing where classes are not known by their wnids.
    """
    wnids = predictions.classes.wnids if predictions.classes else None
    if wnids is None or not len(wrong):
        return
    found = severity(wnids, predictions.labels, predictions.top5.classes[:, 0], wrong)
    if not len(found.rows):
        return
    steps, egregious = _by_chance(wnids)
    told = {
        "misclassifications": f"{len(found.rows)} of {len(predictions)} images",
        "tree": "WordNet 3.0, steps through the nearest common hypernym; of several labels the nearest",
    }
    if len(found.rows) < len(wrong):
        told["not in WordNet"] = f"{len(wrong) - len(found.rows)} of {len(wrong)} misclassifications, left out"
    far = {"egregious": f"lowest common hypernym at root level: {', '.join(GENERAL.values())}"}
    mistakes = subject.take(found.rows).also(told=told)
    worst = found.rows[found.egregious]
    yield mistakes.also(told={"by chance": f"{steps:.1f} steps"}).mean("mistake_distance", found.steps.astype(float))
    by_chance = {**far, "by chance": f"{100 * egregious:.0f} %"}
    yield mistakes.also(told=by_chance).share("egregious_share", found.egregious)
    apart = dict(zip(found.rows.tolist(), found.steps.tolist(), strict=True))
    items = _items(predictions, _surest_first(predictions, worst)[:shown], apart)
    if items:
        yield Gallery("egregious_mistakes", run.about(), run.dataset, "Most confident egregious misclassifications", items)


def severity(wnids: Sequence[str], labels: Labels, predicted: NDArray[np.integer], wrong: Rows) -> Severity:
    """How far the predictions of these rows are from their labels; rows whose classes are not in WordNet are left out."""
    tree = wordnet()
    known: dict[tuple[int, ...], tuple[int, bool] | None] = {}
    kept = []
    for row in wrong.tolist():
        places = (int(predicted[row]), *(int(label) for label in labels[row] if label >= 0))
        if places not in known:
            answer, *truths = (wnids[place] for place in places)
            known[places] = _apart(tree, answer, truths)
        if (found := known[places]) is not None:
            kept.append((row, *found))
    rows, steps, egregious = zip(*kept, strict=True) if kept else ((), (), ())
    return Severity(np.array(rows, int), np.array(steps, int), np.array(egregious, bool))


def _apart(tree: WordNet, answer: str, truths: Iterable[str]) -> tuple[int, bool] | None:
    """Steps to the nearest true class, and whether the prediction is egregious for all of them; None of what is no noun."""
    known = [truth for truth in truths if truth in tree]
    if answer not in tree or not known:
        return None
    above = tree.steps_up(answer).keys()
    egregious = all((above & tree.steps_up(truth).keys()) <= GENERAL.keys() for truth in known)
    return min(tree.distance(answer, truth) for truth in known), egregious


def _by_chance(wnids: Sequence[str]) -> tuple[float, float]:
    """Mean steps between two different classes, and the share of such pairs that would be egregious."""
    tree = wordnet()
    known = [wnid for wnid in wnids if wnid in tree]
    generator = np.random.default_rng(0)
    first = generator.integers(len(known), size=GUESSES)
    other = (first + generator.integers(1, max(len(known), 2), size=GUESSES)) % len(known)
    drawn = [_apart(tree, known[one], [known[two]]) for one, two in zip(first, other, strict=True)]
    steps, egregious = np.array(drawn, float).mean(axis=0)
    return float(steps), float(egregious)


def _surest_first(predictions: Predictions, rows: Rows) -> Rows:
    # scores of one model can be ranked even where they cannot be read as confidence
    known = evidence.any_confidence(predictions)
    sureness = evidence.confidence_of_rows(predictions, rows) if known else predictions.top5.scores[rows, 0]
    return rows[np.argsort(-np.nan_to_num(sureness, nan=-np.inf), kind="stable")]


def _items(predictions: Predictions, rows: Rows, apart: Mapping[int, int] | None = None) -> tuple[GalleryItem, ...]:
    names, confidence = ClassNames(predictions.classes), evidence.confidence_of_rows(predictions, rows)
    return tuple(
        GalleryItem(
            predictions.ids[row],
            f"predicted {sure_of(names[int(predictions.top5.classes[row, 0])], sure)}, "
            f"labelled {names.of_labels(predictions.labels[row])}" + (f", {apart[row]} steps away" if apart else ""),
        )
        for row, sure in zip(rows.tolist(), confidence, strict=True)
    )


NOT_GIVEN = "not given"
FEW_VALUES = 10
"""A numeric fact with more different values than this is cut into ranges."""
MOST_GROUPS = 1000


@dataclass(frozen=True)
class Slices:
    """The groups one fact divides the images into."""

    fact: str
    names: tuple[str, ...]
    groups: NDArray[np.integer]  # (images,): the place of each image's group in `names`

    @property
    def why_useless(self) -> str | None:
        """Why these groups say nothing, or None."""
        if 2 * len(self.names) > len(self.groups):
            return f"fact {self.fact!r} has another value for nearly every image, so it makes no groups"
        if len(self.names) > MOST_GROUPS:
            return f"fact {self.fact!r} makes {len(self.names)} groups, more than the limit of {MOST_GROUPS}"
        return None


def all_slices(facts: Mapping[str, Sequence[Fact]], *, ranges: int) -> list[Slices]:
    """The groups of every fact that has more than one value."""
    found = [slices_by(fact, values, ranges=ranges) for fact, values in facts.items()]
    return [slices for slices in found if len(slices.names) > 1]


def _of_coded(fact: str, values: Coded[Fact], ranges: int) -> Slices:
    """The same of a column of few different values, each looked at once."""
    used = np.flatnonzero(np.bincount(values.codes, minlength=len(values.values)))
    different = [values.values[code] for code in used.tolist()]
    place_of = np.zeros(len(values.values), np.intp)
    place_of[used] = np.arange(len(used))
    if (numbers := as_numbers(different)) is not None:
        return _by_number(fact, numbers[place_of[values.codes]], ranges)
    found = slices_by(fact, different, ranges=ranges)
    return Slices(fact, found.names, found.groups[place_of[values.codes]])


def slices_by(fact: str, values: Sequence[Fact], *, ranges: int = 4) -> Slices:
    """Groups of equal values, or for a number of many values that many ranges with about as many images each.

    >>> slices_by("site", ["pier", "dune", None, "pier"]).names
    ('dune', 'not given', 'pier')
    >>> slices_by("width", list(range(100, 120)), ranges=2).names
    ('100 to 109', '110 to 119')
    """
    if isinstance(values, Coded):
        return _of_coded(fact, values, ranges)
    if (numbers := as_numbers(values)) is not None:
        return _by_number(fact, numbers, ranges)
    texts = [NOT_GIVEN if value is None or value == "" else str(value) for value in values]
    names = sorted(set(texts))
    places = {name: place for place, name in enumerate(names)}
    return Slices(fact, tuple(names), np.array([places[text] for text in texts], dtype=np.intp))


def as_numbers(values: Sequence[Fact]) -> NDArray[np.floating] | None:
    """A fact that is a number wherever it is given, NaN elsewhere; None of any other, and of one with a number too large.

    >>> as_numbers([1, None, 2.5]), as_numbers([1, "a"]), as_numbers([1, 10**400])
    (array([1. , nan, 2.5]), None, None)
    """
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds or not kinds <= {int, float}:
        return None
    try:
        return np.array([math.nan if value is None else value for value in values], float)
    except OverflowError:
        return None


def _by_number(fact: str, numbers: NDArray[np.floating], ranges: int) -> Slices:
    known = np.isfinite(numbers)
    distinct, groups = np.unique(numbers[known], return_inverse=True)
    if len(distinct) > FEW_VALUES:
        inner_edges = np.quantile(numbers[known], np.linspace(0, 1, ranges + 1)[1:-1])
        _, groups = np.unique(np.searchsorted(inner_edges, numbers[known], side="left"), return_inverse=True)
    members = [numbers[known][groups == group] for group in range(int(groups.max(initial=-1)) + 1)]
    names = [_range_name(float(values.min()), float(values.max())) for values in members]
    places = np.full(len(numbers), len(names))
    places[known] = groups
    return Slices(fact, (*names, *([] if known.all() else [NOT_GIVEN])), places)


def _range_name(low: float, high: float) -> str:
    return _plain(low) if low == high else f"{_plain(low)} to {_plain(high)}"


def _plain(number: float) -> str:
    return str(int(number)) if number == int(number) else f"{number:.6g}"


@dataclass(frozen=True)
class AccuracyStudy(CleanStudy):
    """Top-1 and top-5 accuracy, each class and group of images, the worst of them, and how severe misclassifications are."""

    at_least: int = 10  # images a group needs before it may be called the worst
    ranges: int = 4  # groups a numeric fact of many values is cut into
    worst_classes: int = 10  # classes whose confusions are shown
    shown: int = 24  # images in a gallery, and predicted classes of an unlabelled set
    imagenet: DatasetRef | Dataset | None = None  # ImageNet validation, where the dataset is a natural shift of it
    imagenet_accuracy: float | None = None  # of the model, where these images are not at hand

    keep: ClassVar[Keep] = "top5"

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, imagenet=self.imagenet and dataset_ref(self.imagenet))

    def runs(self) -> list[Run]:
        """Every model on the unchanged images, and on ImageNet where that is given."""
        return [*super().runs(), *self._on_imagenet.values()]

    @property
    def _on_imagenet(self) -> dict[ModelRef, Run]:
        if self.imagenet is None:
            return {}
        return {model: Run(model, dataset_ref(self.imagenet)) for model in model_refs(self.models)}

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        for run in super().runs():
            predictions = load(run)
            unlabelled = evidence.why_unlabelled(predictions, "accuracy")
            yield from evidence.skipped(run.dataset.name, evidence.why_unread(predictions), unlabelled)
            subject = evidence.Subject.of(run, predictions)
            if predictions.labelled.any():
                labelled = evidence.labelled_only(predictions)
                yield from self._with_labels(run, labelled, subject.take(predictions.labelled), load)
            elif len(predictions):
                yield from self._without_labels(predictions, subject)

    def _with_labels(
        self, run: Run, predictions: Predictions, subject: evidence.Subject, load: LoadPredictions
    ) -> Iterator[Finding | Note]:
        names, correct = ClassNames(predictions.classes), is_correct(predictions.labels, predictions.top5.classes)
        dataset = shifts.dataset_of(load, run)
        published = shifts.comparable_with(dataset, predictions)
        yield dataclasses.replace(subject.share("top1_accuracy", correct), as_published=published is not None)
        yield from shifts.not_comparable(dataset, predictions)
        if published in shifts.NATURAL_SHIFTS:
            found = shifts.Correct(correct, subject.clusters)
            imagenet, given = self._on_imagenet.get(run.model), self.imagenet_accuracy
            yield from shifts.beside_published(found, published, subject, load, imagenet=imagenet, given=given)
        if predictions.top5.classes.shape[1] == 5 and (predictions.classes is None or len(predictions.classes) > 5):
            yield subject.share("top5_accuracy", is_correct(predictions.labels, predictions.top5.classes, k=5))
        every = all_slices(predictions.facts, ranges=self.ranges)
        yield from evidence.skipped(run.dataset.name, *(groups.why_useless for groups in every))
        slices = [groups for groups in every if not groups.why_useless]
        yield from _groups(slices, correct, subject, at_least=self.at_least)
        for one, name, members in _members(slices):
            yield from _example(run, predictions, np.flatnonzero(members & ~correct), {"fact": one.fact, "group": name})
        classes = 1 + int(max(predictions.labels.max(), predictions.top5.classes.max()))
        tally = per_class_accuracy(predictions.labels, correct, classes=classes)
        yield from _classes(predictions, correct, tally, names, subject)
        for place in _worst_first(tally)[: self.worst_classes]:
            yield from _confusions(place, predictions, names, subject)
            rows = _most_confused(predictions, np.flatnonzero(~correct & (predictions.labels == place).any(axis=1)))
            yield from _example(run, predictions, rows, {"class": names[place]})
        yield confusion_matrix(run, predictions, correct, names, subject)
        yield from frequent_confusions(run, predictions, correct)
        wrong = np.flatnonzero(~correct)
        yield from severity_of_mistakes(run, predictions, wrong, subject, shown=self.shown)
        yield from confident_mistakes(run, predictions, wrong, shown=self.shown)

    def _without_labels(self, predictions: Predictions, subject: evidence.Subject) -> Iterator[Finding]:
        names = ClassNames(predictions.classes)
        answers = predictions.top5.classes[:, 0]
        counts = np.bincount(answers)
        for place in np.argsort(-counts, kind="stable")[: self.shown]:
            if counts[place]:
                yield subject.also({"predicted": names[int(place)]}).share("predicted_share", answers == place)


def _members(slices: Sequence[Slices]) -> Iterator[tuple[Slices, str, NDArray[np.bool_]]]:
    """Every group with its name and the images in it, (images,)."""
    return ((one, name, one.groups == place) for one in slices for place, name in enumerate(one.names))


def _most_confused(predictions: Predictions, wrong: Rows) -> Rows:
    """Those of some misclassified images that are predicted as the class that most of them are predicted as."""
    predicted = predictions.top5.classes[wrong, 0]
    return wrong[predicted == np.bincount(predicted).argmax()] if len(wrong) else wrong


def _example(run: Run, predictions: Predictions, wrong: Rows, about: About) -> Iterator[Gallery]:
    """The most confident misclassification of some images."""
    items = _items(predictions, _surest_first(predictions, wrong)[:1])
    if items:
        yield Gallery(EXAMPLES, {**run.about(), **about}, run.dataset, "Most confident misclassification", items)


def _groups(
    slices: Sequence[Slices], correct: NDArray[np.bool_], subject: evidence.Subject, *, at_least: int
) -> Iterator[Measurement]:
    """Every group of every fact, and the worst of those large enough to judge."""
    tallies = [grouped_accuracy(correct, groups.groups) for groups in slices]
    names = [{"fact": groups.fact, "group": name} for groups, name, _ in _members(slices)]
    if not names:
        return
    every = Tally(*(np.concatenate(column) for column in zip(*tallies, strict=True)))
    members = [rows for _, _, rows in _members(slices)]
    for name, rows in zip(names, members, strict=True):
        yield subject.also(name).take(rows).share("group_accuracy", correct[rows])
    judged = int((every.total >= at_least).sum())
    worst = worst_group(every, at_least=at_least)
    if worst is None or judged < 2:
        return
    rows = members[worst]
    told = {"groups compared": f"{judged} of {len(names)}, those with at least {at_least} images"}
    group = subject.also(names[worst], told).take(rows)
    ends = cluster_share_interval(correct[rows], clusters=group.clusters.numbers, level=1 - 0.05 / judged)
    within = evidence.interval_by(
        evidence.CLOPPER_PEARSON,
        group.clusters,
        ends,
        in_clusters=evidence.KORN_GRAUBARD,
        together=f", for all {judged} groups together by Bonferroni's correction",
    )
    yield group.number("worst_group_accuracy", float(correct[rows].mean()), within)


def _classes(
    predictions: Predictions,
    correct: NDArray[np.bool_],
    tally: Tally,
    names: ClassNames,
    subject: evidence.Subject,
) -> Iterator[Measurement]:
    if subject.clusters.numbers is not None:
        for place in np.flatnonzero(tally.total).tolist():
            rows = (predictions.labels == place).any(axis=1)
            yield subject.also({"class": names[place]}).take(rows).share("class_accuracy", correct[rows])
        return
    # a thousand classes at once: one by one they would take longer than everything else
    low, high = clopper_pearson(tally.right, tally.total)
    accuracy = tally.accuracy
    for place in np.flatnonzero(tally.total).tolist():
        interval = Interval(float(low[place]), float(high[place]), method=evidence.CLOPPER_PEARSON)
        named, images = {**subject.about, "class": names[place]}, int(tally.total[place])
        yield Measurement("class_accuracy", float(accuracy[place]), named, images, subject.convention, interval, images)


def _worst_first(tally: Tally) -> list[int]:
    """Classes with a misclassification, by the upper end of their CI, lowest first: 0 of 1 says less than 2 of 10."""
    _, high = clopper_pearson(tally.right, tally.total)
    # of a class with one image the gallery tells as much
    mistaken = np.flatnonzero((tally.right < tally.total) & (tally.total > 1))
    return [int(place) for place in mistaken[np.argsort(high[mistaken], kind="stable")]]


def confusion_matrix(
    run: Run, predictions: Predictions, correct: NDArray[np.bool_], names: ClassNames, subject: evidence.Subject
) -> ConfusionMatrix:
    """Images by true and predicted class."""
    pairs, counts = _counted_pairs(predictions, correct)
    used, places = np.unique(pairs, return_inverse=True)
    true, predicted = places.reshape(-1, 2).T
    several = bool((predictions.labels >= 0).sum(axis=1).max(initial=0) > 1)
    return ConfusionMatrix(
        "confusion_matrix",
        run.about(),
        tuple(names[place] for place in used.tolist()),
        tuple(true.tolist()),
        tuple(predicted.tolist()),
        tuple(counts.tolist()),
        len(predictions),
        {**subject.convention, **({"several labels": SEVERAL_LABELS} if several else {})},
    )


SEVERAL_LABELS = (
    "An image with several labels counts under the predicted one, or where that is none of them under the first."
)


def _counted_pairs(predictions: Predictions, correct: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every true with a predicted class that some image has, (pairs, 2), in order, and how many have it."""
    classes = 1 + int(predictions.top5.classes[:, 0].max(initial=0))
    parts = []
    for start, predicted in in_blocks(predictions.top5.classes[:, 0], FEW):
        rows = slice(start, start + len(predicted))
        true = np.where(correct[rows], predicted, predictions.labels[rows, 0])
        parts.append(np.unique((true + 1) * classes + predicted, return_counts=True))
    codes, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    found, places = np.unique(codes, return_inverse=True)
    totals = np.bincount(places, counts).astype(np.int64)
    return np.stack([found // classes - 1, found % classes], axis=1), totals


def frequent_confusions(run: Run, predictions: Predictions, correct: NDArray[np.bool_]) -> Iterator[Gallery]:
    """Images of the pairs of classes that are confused most often, the most confident of each."""
    wrong = _surest_first(predictions, np.flatnonzero(~correct))
    if not len(wrong):
        return
    predicted = predictions.top5.classes[wrong, 0].astype(np.int64)
    pairs = (predictions.labels[wrong, 0] + 1) * (1 + predicted.max()) + predicted
    _, places, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    often = [place for place in np.argsort(-counts, kind="stable")[:PAIRS_SHOWN].tolist() if counts[place] > 1]
    rows = [row for place in often for row in wrong[places.reshape(-1) == place][:EXAMPLES_EACH].tolist()]
    if rows:
        items = _items(predictions, np.array(rows))
        yield Gallery("frequent_confusions", run.about(), run.dataset, "Examples of the most frequent confusions", items)


PAIRS_SHOWN, EXAMPLES_EACH = 4, 3


def _confusions(place: int, predictions: Predictions, names: ClassNames, subject: evidence.Subject) -> Iterator[Measurement]:
    """The three classes that one class is most often predicted as."""
    rows = (predictions.labels == place).any(axis=1)
    right = is_correct(predictions.labels[rows], predictions.top5.classes[rows])
    predicted, of_class = predictions.top5.classes[rows, 0], subject.take(rows)
    times = np.bincount(predicted[~right])
    for other in np.argsort(-times, kind="stable")[:3].tolist():
        if times[other]:
            pair = of_class.also({"class": names[place], "predicted": names[other]})
            yield pair.share("confusion_rate", ~right & (predicted == other))
