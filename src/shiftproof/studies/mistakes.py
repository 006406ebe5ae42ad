"""Wrong answers worth looking at: those the model is surest of, and those far from the truth in WordNet's tree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shiftproof.image_sets.wordnet import WordNet, wordnet
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames, sure_of
from shiftproof.types import Finding, Gallery, GalleryItem, Labels, Predictions, Run

GENERAL = {
    "n00001740": "entity",
    "n00001930": "physical entity",
    "n00002137": "abstraction",
    "n00002684": "object",
    "n00003553": "whole",
}
"""What a tool and an animal have in common, and what all else is; each is above more than a third of all nouns."""

GUESSES = 2000
"""Pairs of classes drawn to say what chance would do: enough for a tenth of a step."""

Rows = NDArray[np.integer]
"""Places of images among the predictions, (some images,)."""


@dataclass(frozen=True)
class Severity:
    """How far each of some wrong answers is from the truth."""

    rows: Rows
    steps: NDArray[np.integer]  # through the nearest common ancestor; of several labels to the nearest
    egregious: NDArray[np.bool_]  # nothing in common that is not general


def confident_mistakes(run: Run, predictions: Predictions, wrong: Rows, *, shown: int) -> Iterator[Gallery]:
    """The wrong answers that the model is surest of."""
    items = _items(predictions, _surest_first(predictions, wrong)[:shown])
    if items:
        yield Gallery("confident_mistakes", run.about(), run.image_set, "Most confident mistakes", items)


def severity_of_mistakes(
    run: Run, predictions: Predictions, wrong: Rows, convention: Mapping[str, str], *, shown: int
) -> Iterator[Finding]:
    """How far wrong answers are from the truth, how many are far beyond excuse, and the surest of those.

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
        **convention,
        "wrong answers": f"{len(found.rows)} of {len(predictions)} images",
        "tree": "WordNet 3.0, steps through the nearest common hypernym; of several labels the nearest",
    }
    if len(found.rows) < len(wrong):
        told["not in the tree"] = f"{len(wrong) - len(found.rows)} of {len(wrong)} wrong answers, left out"
    far = {"egregious": f"no more in common with the truth than a tool with an animal: {', '.join(GENERAL.values())}"}
    about = run.about()
    clusters = predictions.clusters.take(found.rows)
    by_chance = {"by chance": f"{steps:.1f} steps"}
    yield evidence.mean("mistake_distance", found.steps.astype(float), about, {**told, **by_chance}, clusters)
    by_chance = {"by chance": f"{100 * egregious:.0f} %"}
    worst = found.rows[found.egregious]
    yield evidence.share("egregious_share", found.egregious, about, {**told, **far, **by_chance}, clusters)
    apart = dict(zip(found.rows.tolist(), found.steps.tolist(), strict=True))
    items = _items(predictions, _surest_first(predictions, worst)[:shown], apart)
    if items:
        yield Gallery("egregious_mistakes", about, run.image_set, "Most confident egregious mistakes", items)


def severity(wnids: Sequence[str], labels: Labels, predicted: NDArray[np.integer], wrong: Rows) -> Severity:
    """How far the answers of these rows are from their labels; rows whose classes are not in the tree are left out."""
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
    """Steps to the nearest of the truths, and whether the answer is egregious beside all; None of what is no noun."""
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
    confidence = evidence.confidence_or_nan(predictions)
    # scores of one model can be ranked even where they cannot be read as confidence
    sureness = confidence if np.isfinite(confidence).any() else predictions.top5.scores[:, 0]
    return rows[np.argsort(-np.nan_to_num(sureness[rows], nan=-np.inf), kind="stable")]


def _items(predictions: Predictions, rows: Rows, apart: Mapping[int, int] | None = None) -> tuple[GalleryItem, ...]:
    names, confidence = ClassNames(predictions.classes), evidence.confidence_or_nan(predictions)
    return tuple(
        GalleryItem(
            predictions.ids[row],
            f"predicted {sure_of(names[int(predictions.top5.classes[row, 0])], confidence[row])}, "
            f"labelled {names.of_labels(predictions.labels[row])}" + (f", {apart[row]} steps away" if apart else ""),
        )
        for row in rows.tolist()
    )
