"""Accuracy by the scale factor of objects, in their images and as crops resized to their scale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import listed
from shiftproof.metrics import is_correct
from shiftproof.metrics.objects import SCALE_FACTORS, accuracy_by_scale, scale_factor
from shiftproof.models.input_sizes import Sizing
from shiftproof.studies import evidence
from shiftproof.studies.base import dataset_ref, model_ref
from shiftproof.types import (
    About,
    Classifier,
    Dataset,
    DatasetRef,
    Fact,
    LoadPredictions,
    Measurement,
    ModelRef,
    Predictions,
    Run,
    Sample,
    joined_clusters,
)

CONVENTION = {
    "scale factor": (
        "the power of two, 1 to 1/16, at or above the larger of the box's width and height as shares of the image's; the "
        "published bins include both ends, so that objects of exactly half count twice there"
    )
}


class ScaledCrops(NamedTuple):
    """The crops of one scale factor, resized to that factor times a side (Li et al., 2021, section 5)."""

    factor: float
    times: int  # 224 or 448
    model: ModelRef | Classifier  # at this size
    dataset: DatasetRef | Dataset
    sizing: Sizing = "input"

    @property
    def side(self) -> int:
        """Side of the square that the crops are resized to."""
        return side_of(self.factor, self.times)

    @property
    def run(self) -> Run:
        return Run(model_ref(self.model), dataset_ref(self.dataset))


def side_of(factor: float, times: int) -> int:
    """Side of the square that a crop of this scale factor is resized to.

    >>> side_of(1 / 2, 224), side_of(1 / 16, 448)
    (112, 28)
    """
    return round(factor * times)


def samples_by_factor(crops: Dataset) -> dict[float, list[Sample]]:
    """The crops of each scale factor that has any, largest first; crops of images of unknown size are left out."""
    found = {
        factor: [sample for sample in crops.samples if sample.facts.get("scale_factor") == factor]
        for factor in SCALE_FACTORS
    }
    return {factor: some for factor, some in found.items() if some}


def factors_from_facts(facts: Mapping[str, Sequence[Fact]]) -> NDArray[np.floating] | None:
    """Scale factors of crops, (objects,); None where image sizes are unknown."""
    told = facts.get("scale_factor", ())
    return np.array(told, float) if len(told) and None not in told else None


def largest_factors(images: Dataset) -> dict[str, float]:
    """Scale factor of the largest object of every image of known size, by the image's id."""
    truths = images.truths
    if truths is None:
        return {}
    facts = {sample.id: sample.facts for sample in images.samples}
    sizes = np.array([[facts[one].get(side) for side in ("width", "height")] for one in truths.ids], float)[truths.image]
    told = np.isfinite(sizes).all(axis=1)
    largest = np.zeros(len(truths.ids))
    np.maximum.at(largest, truths.image[told], scale_factor(truths.boxes[told], sizes=sizes[told]))
    return {one: factor for one, factor in zip(truths.ids, largest.tolist(), strict=True) if factor}


def accuracies_by_scale(
    metric: str, correct: NDArray[np.bool_], factors: NDArray[np.floating], subject: evidence.Subject
) -> Iterator[Measurement]:
    """Accuracy on the objects of each scale factor that has any; `kept_at` is the input side that it corresponds to."""
    table = accuracy_by_scale(correct, factors)
    for factor, side, total in zip(table.factors, table.input_sizes, table.tally.total.tolist(), strict=True):
        if total:
            rows = factors == factor
            of_factor = subject.also({"scale_factor": factor_name(factor), "kept_at": side}, CONVENTION)
            yield of_factor.take(rows).share(metric, correct[rows])


def scaled_accuracies(
    crops: Sequence[ScaledCrops], factors: Sequence[float], about: About, load: LoadPredictions
) -> Iterator[Measurement]:
    """Accuracy on the crops of each scale factor at that factor times each side, and over all crops.

    The total pools images; it is measured only where the crops of all `factors` were run.
    """
    for times in dict.fromkeys(one.times for one in crops):
        shown = {one: evidence.labelled_only(load(one.run)) for one in crops if one.times == times}
        right = {one: is_correct(found.labels, found.top5.classes) for one, found in shown.items() if len(found)}
        for one, correct in right.items():
            named = {**about, "scale_factor": factor_name(one.factor), "times": times, "side": one.side}
            crops_of = evidence.Subject(named, _convention(one, shown[one]), shown[one].clusters)
            yield crops_of.share("scaled_crop_accuracy", correct)
        if right and {one.factor for one in shown} == set(factors):
            first = next(iter(right))
            stated = {**_convention(first, shown[first]), "total": "pooled over images"}
            clusters = joined_clusters([shown[one].clusters for one in right])
            pooled = evidence.Subject({**about, "times": times}, stated, clusters)
            yield pooled.share("scaled_crop_total", np.concatenate(list(right.values())))


def _convention(one: ScaledCrops, found: Predictions) -> dict[str, str]:
    enlarged = ", then upscaled to the model's own input" if one.sizing == "picture" else ""
    resized = f"whole crop to a square of the scale factor times {one.times}{enlarged}"
    return {**evidence.convention_of(one.run, found), **CONVENTION, "resized": resized}


def lacking_scales(crops: Sequence[ScaledCrops], factors: Sequence[float], sides: Sequence[int]) -> str | None:
    """Which scale factors and sides were not run, listed; None where all were."""
    shown = {(one.factor, one.times) for one in crops}
    lacking = [f"{factor_name(factor)} x {times}" for times in sides for factor in factors if (factor, times) not in shown]
    return listed(lacking) if lacking else None


def factor_name(factor: float) -> str:
    """A scale factor as a fraction.

    >>> factor_name(1.0), factor_name(0.125)
    ('1', '1/8')
    """
    return "1" if factor == 1 else f"1/{round(1 / factor)}"
