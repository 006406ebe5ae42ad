"""A model among published ones on ImageNet and its natural shifts, and effective robustness (Taori et al., 2020)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.layout import published_dataset
from shiftproof.metrics import is_correct
from shiftproof.metrics.published import BASELINE_FAMILY, SHIFTS, Trend, trend_at
from shiftproof.metrics.trends import LEAST_CASES, unpaired_effective_robustness
from shiftproof.metrics.wording import counted
from shiftproof.studies import evidence
from shiftproof.types import (
    Clusters,
    Dataset,
    LoadPredictions,
    LoadsImages,
    Measurement,
    NoInterval,
    Note,
    Predictions,
    Run,
    Skipped,
)

IMAGENET = "imagenet"
NATURAL_SHIFTS = frozenset(SHIFTS) - {IMAGENET, "imagenet-real"}
"""Published datasets on which the same classes look otherwise."""


class Correct(NamedTuple):
    """Which images are classified correctly, and their clusters."""

    flags: NDArray[np.bool_]
    clusters: Clusters


def dataset_of(load: LoadPredictions, run: Run) -> Dataset | None:
    """The dataset of a run; None where a study may read predictions alone."""
    return load.images(run.dataset) if isinstance(load, LoadsImages) else None


def comparable_with(dataset: Dataset | None, predictions: Predictions) -> str | None:
    """The published dataset whose numbers of published models these compare with; None where they do not.

    Published numbers are of images of all its classes, with one label each, scored among these classes alone.
    """
    if dataset is None or dataset.published not in SHIFTS or predictions.classes is None:
        return None
    classes = published_dataset(dataset.published).classes
    labels = [sample.labels for sample in dataset.samples if sample.labels]
    as_published = len({label for some in labels for label in some}) == classes and all(len(some) == 1 for some in labels)
    return dataset.published if as_published and len(predictions.classes) == classes else None


def not_comparable(dataset: Dataset | None, predictions: Predictions) -> Iterator[Skipped]:
    """That published numbers are of fewer classes, where that alone keeps numbers from being compared."""
    if dataset is None or dataset.published not in NATURAL_SHIFTS or predictions.classes is None:
        return
    classes, scored = published_dataset(dataset.published).classes, len(predictions.classes)
    if classes is not None and scored > classes:
        told = f"published accuracy is among its {classes} classes, and {scored:,} were scored; compare with --scored subset"
        yield Skipped(f"{dataset.ref.name}: place among published models: {told}")


def beside_published(
    found: Correct,
    shift: str,
    subject: evidence.Subject,
    load: LoadPredictions,
    *,
    imagenet: Run | None,
    given: float | None,
) -> Iterator[Measurement | Note]:
    """Accuracy on ImageNet, measured or given, and from it effective robustness to the shift."""
    original: Correct | float | None = given
    if imagenet is not None:
        predictions = load(imagenet)
        if comparable_with(dataset_of(load, imagenet), predictions) != IMAGENET:
            told = "it is not ImageNet validation with its 1,000 classes, so its accuracy is none of published models"
            yield Skipped(f"{imagenet.dataset.name}: {told}")
        else:
            labelled = evidence.labelled_only(predictions)
            original = Correct(is_correct(labelled.labels, labelled.top5.classes), labelled.clusters)
            about = evidence.Subject(subject.about, evidence.convention_of(imagenet, predictions), labelled.clusters)
            yield dataclasses.replace(about.share("imagenet_accuracy", original.flags), as_published=True)
    if original is None:
        return
    if isinstance(original, float):
        none = NoInterval("given, not measured")
        yield Measurement("imagenet_accuracy", original, subject.about, 0, {"original": "given"}, no_interval=none)
    yield from _effective_robustness(original, found, shift, subject)


def _effective_robustness(
    original: Correct | float, found: Correct, shift: str, subject: evidence.Subject
) -> Iterator[Measurement | Note]:
    accuracy = float(original.flags.mean()) if isinstance(original, Correct) else original
    trend = trend_at(shift, accuracy)
    measured = not isinstance(original, float)
    robustness = unpaired_effective_robustness(
        original.flags if isinstance(original, Correct) else original,
        found.flags,
        *trend.points,
        original_clusters=original.clusters.numbers if isinstance(original, Correct) else None,
        clusters=found.clusters.numbers,
    )
    if robustness is None:
        few = f"{counted(found.clusters.count, found.clusters.case)}, at least {LEAST_CASES} are needed, not all alike"
        yield Skipped(f"{subject.about['dataset']}: effective robustness: too few images: {few}")
        return
    told = {
        "shift": shift,
        "trend": f"probit, through {len(trend.models):,} published models trained on {BASELINE_FAMILY}{_range(trend)}",
        "original": "measured" if measured else "given, counted as exact",
    }
    within = evidence.interval_by(
        "of the images and of one more such model about the trend", found.clusters, robustness.interval
    )
    number = subject.also(told=told).number("shift_effective_robustness", robustness.difference, within)
    yield dataclasses.replace(number, as_published=True)


def _range(trend: Trend) -> str:
    """Where the trend has a knee, which side of it."""
    if trend.low:
        return f" and at least {100 * trend.low:.1f} % accurate on ImageNet"
    return f" and less than {100 * trend.high:.1f} % accurate on ImageNet" if trend.high < 1 else ""
