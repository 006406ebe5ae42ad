"""Adversarial filtration as for ImageNet-A (Hendrycks et al., 2021): images that all filter models misclassify."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from shiftproof.curation.filtering import (
    Choice,
    ClassChoice,
    Filtered,
    FilterModels,
    ModelPrediction,
    ModelPredictions,
)
from shiftproof.curation.review_classes import joined_keys
from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput
from shiftproof.types import CROPS, Classifier, CroppingPreprocessing, Dataset, Sample

MAX_TRUE_PROBABILITY = 0.15
"""Probability of the true class above which an image is removed."""

PER_CONFUSION = 15
"""Images of one class that are misclassified as the same other class, at most."""

EXAMPLES = 3
"""Example images of a class that reviewers may see on request."""


def filter_adversarial(
    images: Dataset,
    filters: FilterModels,
    *,
    most_share: float = MAX_TRUE_PROBABILITY,
    per_confusion: int | None = PER_CONFUSION,
    per_class: int | None = None,
) -> Filtered:
    """The images that every model misclassifies in all ten crops, with a true-class probability of at most `most_share`.

    Where classes were chosen, images of others are removed, and probabilities are over the logits of the chosen ones only.
    The result is sorted by the highest true-class probability of any model in any crop, the lowest first. In that order at
    most `per_confusion` images are kept that the first model misclassifies as the same class in its own crop, and at most
    `per_class` of each class.

    The first model predicts nine further crops only of images that it misclassifies in its own crop, and no model predicts
    an image that was removed before.
    """
    _check_models(filters.models)
    if images.classes is None:
        raise BadInput(f"{images.ref.name} has no labels, so misclassified images cannot be found")
    keys = images.classes.keys
    class_of = {sample.id: joined_keys(keys[label] for label in sample.labels) or "" for sample in images.samples}
    labelled = filters.labelled(images)
    choice = _of_classes(labelled.samples, class_of, filters.chosen)
    told: dict[str, ModelPredictions] = {}
    for model in filters.models:
        name, left = model.ref.name, View(labelled, labelled.classes, choice.left)
        # what the first model leaves is hard for the others too, so they predict all crops at once
        said = told[name] = filters.opinions(model, left, CROPS) if told else filters.ten_opinions(model, left)
        choice = choice.step(f"misclassified by {name} in all ten crops", partial(_recognised, said))
        choice = choice.step(
            f"true-class probability of at most {most_share:.0%} by {name}", partial(_likely, said, most_share)
        )
    own_views = {name: {image_id: opinions[0] for image_id, opinions in said.of.items()} for name, said in told.items()}
    first = next(iter(own_views.values()))
    truth = {one.id: max(_likeliest(said.of[one.id]).truth for said in told.values()) for one in choice.left}
    filtered = Filtered(
        choice.ordered(lambda one: (truth[one.id], one.id)),
        filters.refs,
        {"most_share": most_share, "per_confusion": per_confusion, "per_class": per_class, **filters.told},
        images.classes,
        class_of,
        own_views,
        facts={image_id: {"truth_share": round(share, 6)} for image_id, share in truth.items()},
        examples=_examples(class_of, first),
    )
    filtered = filtered.at_most(per_confusion, "confusion", lambda image_id: (class_of[image_id], first[image_id].answer))
    return filtered.at_most(per_class, "class", class_of.__getitem__)


def _check_models(models: Sequence[Classifier]) -> None:
    for model in models:
        if not isinstance(model.preprocessing, CroppingPreprocessing):
            raise BadInput(f"{model.ref.name} has a preprocessing of its own, which has no ten-crop")


def _of_classes(samples: Sequence[Sample], class_of: Mapping[str, str], chosen: ClassChoice | None) -> Choice:
    choice = Choice.start(samples).step("with a label", lambda one: None if class_of[one.id] else "has no label")
    if chosen is None:
        return choice
    name = f"of the {len(chosen.classes):,} classes chosen"
    return choice.step(name, lambda one: None if one.labels else chosen.why_not(class_of[one.id]))


def _recognised(said: ModelPredictions, sample: Sample) -> str | None:
    """Why an image is removed that a model classifies correctly, or cannot predict."""
    if sample.id in said.missing:
        return said.missing[sample.id]
    opinions = said.of[sample.id]
    if math.isnan(opinions[0].truth):
        return "the model has no such class"
    right = [opinion for opinion in opinions if opinion.right]
    if not right:
        return None
    share = f"{_likeliest(right).truth:.1%}"
    if len(right) == 1:
        return f"classified correctly in the {right[0].view} crop with {share}"
    return f"classified correctly in {len(right)} crops, in the {_likeliest(right).view} crop with {share}"


def _likely(said: ModelPredictions, most_share: float, sample: Sample) -> str | None:
    """Why an image is removed whose true class has too high a probability."""
    likeliest = _likeliest(said.of[sample.id])
    if likeliest.truth <= most_share:
        return None
    return (
        f"probability {likeliest.truth:.1%} for the true class in the {likeliest.view} crop, predicted as {likeliest.name}"
    )


def _likeliest(opinions: Sequence[ModelPrediction]) -> ModelPrediction:
    """The prediction with the highest true-class probability."""
    return max(opinions, key=lambda opinion: opinion.truth)


def _examples(class_of: Mapping[str, str], said: Mapping[str, ModelPrediction]) -> dict[str, list[str]]:
    """Of each class the correctly classified images with the highest confidence."""
    most_confident = sorted((-opinion.truth, image_id) for image_id, opinion in said.items() if opinion.right)
    examples: dict[str, list[str]] = {}
    for _, image_id in most_confident:
        examples.setdefault(class_of[image_id], []).append(image_id)
    return {key: images[:EXAMPLES] for key, images in examples.items()}
