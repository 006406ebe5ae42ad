"""Natural images that no filter model recognises however it looks, by the steps of ImageNet-A (Hendrycks et al., 2021)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

from shiftproof.curation.class_choice import ClassChoice
from shiftproof.curation.filter_models import OTHER_VIEWS, FilterModels, Opinion, Opinions
from shiftproof.curation.filtered import Choice, Filtered
from shiftproof.curation.review_classes import joined_keys
from shiftproof.errors import BadInput
from shiftproof.image_sets.views import View
from shiftproof.types import CROPS, Classifier, CroppingPreparation, ImageSet, Sample

MOST_SHARE = 0.15
"""Share of the true class above which an image goes."""

PER_CONFUSION = 15
"""Images of one class that are taken for the same other class, at most."""

EXAMPLES = 3
"""Images of a class that are shown to reviewers who ask what it looks like."""


def filter_adversarial(
    images: ImageSet,
    filters: FilterModels,
    *,
    most_share: float = MOST_SHARE,
    per_confusion: int | None = PER_CONFUSION,
    per_class: int | None = None,
) -> Filtered:
    """The images that no model gets right in any of ten crops, nor gives the true class more than `most_share`.

    Where classes were chosen, images of others go, and answers and shares are taken over the logits of these alone. What is
    left is ordered by the largest share that any model gave the true class in any crop, the lowest first. In that order at
    most `per_confusion` images stay that the first model, in its own view, takes for the same wrong class, and at most
    `per_class` of each class.

    The first model is asked about nine further crops only of images that it gets wrong in its own view, and no model about
    an image that went before.
    """
    _check_models(filters.models)
    if images.classes is None:
        raise BadInput(f"{images.ref.name} has no labels, so nobody can tell what models get wrong in it")
    keys = images.classes.keys
    class_of = {sample.id: joined_keys(keys[label] for label in sample.labels) or "" for sample in images.samples}
    labelled = filters.labelled(images)
    choice = _of_classes(labelled.samples, class_of, filters.chosen)
    told: dict[str, Opinions] = {}
    for model in filters.models:
        name, left = model.ref.name, View(labelled, labelled.classes, choice.left)
        # what the first model leaves is hard for the others too, so they are asked about all crops at once
        said = told[name] = filters.opinions(model, left, CROPS) if told else _ten_opinions(filters, model, left)
        choice = choice.step(f"not recognised by {name} in any of ten crops", partial(_recognised, said))
        choice = choice.step(f"at most {most_share:.0%} for the true class by {name}", partial(_likely, said, most_share))
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
        if not isinstance(model.preparation, CroppingPreparation):
            raise BadInput(f"{model.ref.name} prepares images in a way of its own, which knows no corners to crop")


def _of_classes(samples: Sequence[Sample], class_of: Mapping[str, str], chosen: ClassChoice | None) -> Choice:
    choice = Choice.start(samples).step("with a label", lambda one: None if class_of[one.id] else "has no label")
    if chosen is None:
        return choice
    name = f"of the {len(chosen.classes):,} classes chosen"
    return choice.step(name, lambda one: None if one.labels else chosen.why_not(class_of[one.id]))


def _ten_opinions(filters: FilterModels, model: Classifier, images: View) -> Opinions:
    """A model's opinion of its own view, and where that is wrong of the nine others."""
    own = filters.opinions(model, images)
    wrong = [sample for sample in images.samples if sample.id in own.of and not own.of[sample.id][0].right]
    return own | filters.opinions(model, View(images, images.classes, wrong), OTHER_VIEWS)


def _recognised(said: Opinions, sample: Sample) -> str | None:
    """Why an image goes that a model gets right, or cannot answer for."""
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
        return f"recognised in the {right[0].view} with {share}"
    return f"recognised in {len(right)} crops, the {_likeliest(right).view} with {share}"


def _likely(said: Opinions, most_share: float, sample: Sample) -> str | None:
    """Why an image goes of which a model, though wrong, gives the true class too much."""
    likeliest = _likeliest(said.of[sample.id])
    if likeliest.truth <= most_share:
        return None
    return f"{likeliest.truth:.1%} for its class in the {likeliest.view}, where it is taken for {likeliest.name}"


def _likeliest(opinions: Sequence[Opinion]) -> Opinion:
    """The opinion that gives the true class most."""
    return max(opinions, key=lambda opinion: opinion.truth)


def _examples(class_of: Mapping[str, str], said: Mapping[str, Opinion]) -> dict[str, list[str]]:
    """Of each class the images that a model recognises most surely."""
    surest = sorted((-opinion.truth, image_id) for image_id, opinion in said.items() if opinion.right)
    examples: dict[str, list[str]] = {}
    for _, image_id in surest:
        examples.setdefault(class_of[image_id], []).append(image_id)
    return {key: images[:EXAMPLES] for key, images in examples.items()}
