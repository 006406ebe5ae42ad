"""Labels that are likely wrong, by confident learning, and what the accuracy is once people have corrected them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from shiftproof.columns import in_blocks
from shiftproof.metrics import label_error_rate, rank_label_errors, to_probabilities
from shiftproof.metrics.label_errors import RankedLabels, given_labels
from shiftproof.metrics.likelihood import ROWS_AT_ONCE
from shiftproof.studies import evidence
from shiftproof.studies.base import ClassNames, CleanStudy, dataset_ref, settle, sure_of
from shiftproof.types import (
    Classes,
    Dataset,
    DatasetRef,
    Fact,
    Features,
    Finding,
    Gallery,
    GalleryItem,
    Keep,
    Known,
    Labels,
    LoadPredictions,
    LoadsImages,
    Measurement,
    Note,
    Predictions,
    Reading,
    Run,
    Skipped,
)

LEAST = 2
"""Images of a class below which it has no threshold of its own."""

MOST_SHOWN = 200
"""Images of a gallery."""

BY_MODEL = "the model's own"
BY_HEADS = (
    "by logistic regression on the model's features, {folds}-fold cross-validated, refitted without the least likely labels"
)

REVIEWED = "reviewed"
"""Fact of corrected images: what became of the label."""

KEPT, REPLACED, UNTOLD = "label kept", "label changed", "no label can be told"
CHANGED = (REPLACED, UNTOLD)

NOT_TOLD = "nothing that can be told"

ONLY_SUSPECTS = (
    "only suspects were reviewed: a wrong label that the prediction agrees with stays, so that the corrected accuracy is "
    "biased upwards"
)


@dataclass(frozen=True)
class Judged:
    """Labelled images, what is likely of each by probabilities that did not learn from its label, and their order."""

    predictions: Predictions  # the labelled rows, without labels where a head judges
    labels: Labels  # places in `classes`
    classes: Classes | None
    probabilities: NDArray[np.floating]
    ranked: RankedLabels
    subject: evidence.Subject

    @property
    def predicted(self) -> NDArray[np.integer]:
        """The likeliest class of each image."""
        return np.asarray(self.probabilities.argmax(axis=1))

    def agree(self, labels: Labels) -> NDArray[np.bool_]:
        """Whether the likeliest class of each image is one of these labels of it."""
        return np.asarray((labels == self.predicted[:, None]).any(axis=1))

    def first(self, share: float) -> NDArray[np.intp]:
        """The places of the likeliest errors: this share of the images, one at least."""
        return self.ranked.order[: max(1, round(share * len(self.labels)))]

    def rows(self, places: NDArray[np.intp]) -> list[dict[str, str | float | bool]]:
        """Some images as rows of a table: what they are labelled as, what is likelier, and how likely the label is."""
        names, found = ClassNames(self.classes), self.ranked
        return [
            {
                "id": self.predictions.ids[place],
                "label": names.of_labels(self.labels[place]),
                "suggested": names[int(found.suggested[place])],
                "self_confidence": float(f"{found.self_confidence[place]:.4g}"),
                "probability": float(f"{self.probabilities[place, found.suggested[place]]:.4g}"),
                "confident": bool(found.confident[place]),
            }
            for place in places.tolist()
        ]


class Reviewed(NamedTuple):
    """Labels of images after the review, and which of them people looked at."""

    labels: Labels
    told: list[Fact]  # `REVIEWED` of each image; None or empty where nobody looked


@dataclass(frozen=True)
class LabelStudy(CleanStudy):
    """Images in the order of how likely their label is wrong.

    `corrected` are the same images with the labels that people gave them; the fact `reviewed` says of which that is so.
    """

    head: bool = False  # whether heads judge, cross-validated on features, instead of the model itself
    folds: int = 5
    suspects: float = 0.1  # share of the images that are shown
    corrected: DatasetRef | Dataset | None = None
    _answered: dict[bytes, NDArray[np.floating]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, corrected=None if self.corrected is None else dataset_ref(self.corrected))

    def runs(self) -> list[Run]:
        """Every model on the unchanged images, as they are labelled and as they are corrected."""
        own = super().runs()
        return own if self.corrected is None else [*own, *(self._again(run) for run in own)]

    def _again(self, run: Run) -> Run:
        assert self.corrected is not None  # noqa: S101 asked for where there is one
        return Run(run.model, dataset_ref(self.corrected))

    @property
    def keep(self) -> Keep:
        return "features" if self.head else "logits"

    def reading(self, run: Run) -> Reading | None:  # noqa: ARG002
        """A head learns the classes of the images itself, whatever those of the model are."""
        return Reading(None, labelled=False) if self.head else None

    def why_nothing(self, known: Known) -> str | None:
        if not self.head:
            return known.unlabelled(dataset_ref(self.dataset), "a search for label errors")
        images = known.images(dataset_ref(self.dataset))
        labelled = any(sample.labels for sample in images.samples)
        return None if labelled else f"{images.ref.name}: a search for label errors needs labels, and no image has one"

    def measure(self, load: LoadPredictions) -> Iterator[Finding | Note]:
        for run in super().runs():
            judged = self.judged(run, load)
            if isinstance(judged, str):
                yield Skipped(f"{run.dataset.name}: {judged}")
                continue
            yield from self._rate(run, judged)
            reviewed = None if self.corrected is None else self._reviewed(run, judged, load)
            yield from _accuracies(judged, reviewed)
            yield from self._gallery(run, judged, reviewed)

    def judged(self, run: Run, load: LoadPredictions) -> Judged | str:
        """The images of one model in their order, or why there is none."""
        found = load(run)
        if why := evidence.why_unread(found):
            return why
        if self.head:
            return self._by_heads(run, found, load)
        if why := evidence.why_unlabelled(found, "a search for label errors") or evidence.why_no_confidence(found):
            return why
        subject = evidence.Subject.of(run, found).take(found.labelled).also(told={"probabilities": BY_MODEL})
        labelled = evidence.labelled_only(found)
        logits = labelled.need_logits()
        probabilities = np.empty(logits.shape)
        for start, rows in in_blocks(logits, ROWS_AT_ONCE):
            if not np.isfinite(rows).all():
                return "some scores are infinite or not numbers, so labels have no probability"
            probabilities[start : start + len(rows)] = to_probabilities(rows.astype(float), labelled.gives)
        return _judged(labelled, labelled.labels, labelled.classes, probabilities, subject)

    def _by_heads(self, run: Run, found: Predictions, load: LoadPredictions) -> Judged | str:
        from scipy.special import softmax

        from shiftproof.errors import BadInput
        from shiftproof.training.cross_validated import folds_of

        if not isinstance(load, LoadsImages):
            return "heads learn labels from the dataset itself, which is not at hand"
        images = load.images(run.dataset)
        label_of = {sample.id: sample.labels for sample in images.samples}
        has_label = np.array([bool(label_of[key]) for key in found.ids], bool)
        if not has_label.any():
            return "a search for label errors needs labels, and no image has one"
        labelled = found.take(has_label)
        labels = padded([label_of[key] for key in labelled.ids])
        kinds, classes = np.unique(labels[:, 0], return_inverse=True)
        if len(kinds) < 2 or np.bincount(classes).min() < LEAST:
            return (
                "heads learn each class from other images of it, and some have only one; let the model judge where it knows "
                "the classes (--judge model), or leave those classes out"
            )
        try:
            folds = folds_of(classes, labelled.clusters.keys, self.folds)
        except BadInput as reason:
            return str(reason)
        features = labelled.need_features()
        if not np.isfinite(features).all():
            return "some features are infinite or not numbers, so no head can be fitted"
        known = softmax(self._logits(features, classes, folds), axis=1)
        probabilities = np.zeros((len(labels), 1 + int(labels.max())))
        probabilities[:, kinds] = known
        about = {"probabilities": BY_HEADS.format(folds=self.folds)}
        subject = evidence.Subject.of(run, found).take(has_label).also(told=about)
        return _judged(labelled, labels, images.classes, probabilities, subject)

    def _logits(self, features: Features, classes: NDArray[np.integer], folds: NDArray[np.intp]) -> NDArray[np.floating]:
        """The answers of heads; the same question is not answered twice, for fits take long."""
        from shiftproof.training.cross_validated import out_of_sample_logits

        asked = xxhash.xxh3_128(np.ascontiguousarray(features).data)
        for told in (classes, folds):
            asked.update(np.ascontiguousarray(told).data)
        if asked.digest() not in self._answered:
            self._answered[asked.digest()] = out_of_sample_logits(features, classes, folds)
        return self._answered[asked.digest()]

    def _rate(self, run: Run, judged: Judged) -> Iterator[Finding | Note]:
        """How many labels are confidently contradicted, where classes have thresholds."""
        if np.bincount(given_labels(judged.labels, judged.probabilities)).max() < LEAST:
            yield Skipped(
                f"{run.dataset.name}: every class has one image and therefore no threshold, so that no label is confidently "
                "contradicted; images are ranked by the probability of their label"
            )
            return
        rate = label_error_rate(judged.labels, judged.probabilities, least=LEAST)
        told = {"estimate": "confident learning (Northcutt et al., 2021)"}
        yield judged.subject.also(told=told).number("contradicted_labels", rate)

    def _reviewed(self, run: Run, judged: Judged, load: LoadPredictions) -> Reviewed:
        """What people said of the images, in the order of the judged ones."""
        found = load(self._again(run))
        place_of = {key: place for place, key in enumerate(found.ids)}
        rows = np.array([place_of[key] for key in judged.predictions.ids], np.intp)
        told = [found.facts[REVIEWED][row] for row in rows.tolist()]
        if not self.head:
            return Reviewed(found.labels[rows], told)
        assert isinstance(load, LoadsImages)  # noqa: S101 as the judged ones were
        label_of = {sample.id: sample.labels for sample in load.images(self._again(run).dataset).samples}
        return Reviewed(padded([label_of[key] for key in judged.predictions.ids]), told)

    def _gallery(self, run: Run, judged: Judged, reviewed: Reviewed | None) -> Iterator[Gallery]:
        places, names = judged.first(self.suspects)[:MOST_SHOWN], ClassNames(judged.classes)

        def verdict(place: int) -> str:
            if reviewed is None or not reviewed.told[place]:
                return ""
            return f"; reviewed as {names.of_labels(reviewed.labels[place]) or NOT_TOLD}"

        items = tuple(
            GalleryItem(
                str(row["id"]),
                f"labelled {row['label']}, suggested {sure_of(str(row['suggested']), float(row['probability']))}"
                + verdict(place),
            )
            for place, row in zip(places.tolist(), judged.rows(places), strict=True)
        )
        yield Gallery("likely_label_errors", run.about(), run.dataset, "Likely label errors, the likeliest first", items)


def _accuracies(judged: Judged, reviewed: Reviewed | None) -> Iterator[Measurement]:
    """As labelled; where people have reviewed labels, as corrected too, and what that changed."""
    before = judged.agree(judged.labels)
    yield judged.subject.share("accuracy_as_labelled", before)
    if reviewed is None or not any(reviewed.told):
        return
    seen = np.array([bool(told) for told in reviewed.told], bool)
    about = {"reviewed": f"{int(seen.sum()):,} of {len(seen):,} images", "bias": ONLY_SUSPECTS}
    subject, left = judged.subject.also(told=about), np.asarray((reviewed.labels >= 0).any(axis=1))
    if left.any():
        after = judged.agree(reviewed.labels)
        yield subject.take(left).share("accuracy_as_corrected", after[left])
        yield subject.take(left).difference("accuracy_by_correction", after[left], before[left])
    changed = np.array([told in CHANGED for told in reviewed.told], bool)
    yield subject.take(seen).share("confirmed_label_errors", changed[seen])


def _judged(
    predictions: Predictions,
    labels: Labels,
    classes: Classes | None,
    probabilities: NDArray[np.floating],
    subject: evidence.Subject,
) -> Judged:
    ranked = rank_label_errors(labels, probabilities, least=LEAST)
    return Judged(predictions, labels, classes, probabilities, ranked, subject)


def padded(labels: list[tuple[int, ...]]) -> Labels:
    """Labels of images as one array, padded with -1.

    >>> padded([(2,), (0, 1)])
    array([[ 2, -1],
           [ 0,  1]])
    """
    found = np.full((len(labels), max(map(len, labels), default=1)), -1)
    for row, some in enumerate(labels):
        found[row, : len(some)] = some
    return found
