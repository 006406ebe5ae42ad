"""Images of classes that models do not know and are sure of all the same, as in ImageNet-O (Hendrycks et al., 2021)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from shiftproof.curation.candidates import FOLDER, candidate_pairs, with_folders
from shiftproof.curation.filter_models import FilterModels, Opinion, Opinions
from shiftproof.curation.filtered import Choice, Filtered
from shiftproof.curation.filtered_project import Beside
from shiftproof.curation.novel_classes import select_novel_classes
from shiftproof.errors import BadInput, listed
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.scoring import Scoring
from shiftproof.image_sets.views import View
from shiftproof.image_sets.wordnet import wordnet
from shiftproof.prediction import predict
from shiftproof.types import Classes, Sample

LEAST_SHARE = 0.5
"""Share that a model should give some class of its own: more than to all others together.

The makers of ImageNet-O kept what a ResNet-50 was sure of, and named no figure.
"""


def filter_novel(
    images: ImageList,
    filters: FilterModels,
    inside: Sequence[str] | None,
    *,
    subtrees: Sequence[str] = (),
    least_share: float = LEAST_SHARE,
    per_class: int | None = None,
) -> Filtered:
    """The images of other classes than those `inside` of which every model gives some class at least `least_share`.

    Classes of images and of the inside are wnids. What is an inside class, a kind of one or above one in WordNet goes, as
    does what lies under `subtrees`; with None for `inside` all classes stay. Where classes were chosen, shares are taken
    over the logits of these alone. What is left is ordered by the share of the model least sure, the largest first; in that
    order at most `per_class` images of each class stay.
    """
    outside = with_folders(images)
    class_of = {sample.id: str(sample.facts.get(FOLDER) or "") for sample in outside.samples}
    choice = _of_new_classes(outside.samples, class_of, inside, subtrees)
    told: dict[str, Mapping[str, Opinion]] = {}
    for model in filters.models:
        said = filters.opinions(model, View(outside, filters.classes, choice.left))
        told[model.ref.name] = {image_id: opinions[0] for image_id, opinions in said.of.items()}
        name = f"at least {least_share:.0%} for some class by {model.ref.name}"
        choice = choice.step(name, partial(_doubt, said, least_share))
    sure = {one.id: min(said[one.id].confidence for said in told.values()) for one in choice.left}
    filtered = Filtered(
        choice.ordered(lambda one: (-sure[one.id], one.id)),
        filters.refs,
        {"least_share": least_share, "per_class": per_class, **filters.told},
        _named(class_of.values()),
        class_of,
        told,
        facts={image_id: {"least_confidence": round(share, 6)} for image_id, share in sure.items()},
    )
    return filtered.at_most(per_class, "class", class_of.__getitem__)


def nearest_inside(filtered: Filtered, images: ImageList, inside_images: ImageList, filters: FilterModels) -> Beside:
    """The inside image nearest each image that is left, in the features of the first model."""
    new, known = (
        predict(
            filters.models[0],
            some,
            store=filters.store,
            keep="features",
            workers=filters.workers,
            scoring=Scoring(unmatched="unlabelled"),
            progress=filters.progress,
        )
        for some in (View(with_folders(images), None, filtered.choice.left), inside_images)
    )
    return Beside(inside_images, candidate_pairs(new, known, first=len(new)))


def _of_new_classes(
    samples: Sequence[Sample], class_of: Mapping[str, str], inside: Sequence[str] | None, subtrees: Sequence[str]
) -> Choice:
    choice = Choice.start(samples).step("of a class", lambda one: None if class_of[one.id] else "nobody says what it shows")
    if inside is None:
        return choice
    wnids = sorted({class_of[sample.id] for sample in choice.left})
    if strange := [wnid for wnid in wnids if wnid not in wordnet()]:
        raise BadInput(
            f"{len(strange)} of {len(wnids)} classes are no wnids, so WordNet cannot tell whether they are new: "
            f"{listed(strange)}; name them by wnids, or take all as new with --inside none"
        )
    selection = select_novel_classes(inside, wnids, subtrees=subtrees)
    for step in selection.steps[1:]:
        reasons = {gone.wnid: f"its class {gone.reason}" for gone in selection.removed if gone.step == step.name}
        choice = choice.step(step.name, partial(_class_reason, reasons, class_of))
    return choice


def _doubt(said: Opinions, least_share: float, sample: Sample) -> str | None:
    """Why an image goes of which a model is not sure, or cannot answer for."""
    if sample.id in said.missing:
        return said.missing[sample.id]
    confidence = said.of[sample.id][0].confidence
    return None if confidence >= least_share else f"{confidence:.1%} for the likeliest class"


def _class_reason(reasons: Mapping[str, str], class_of: Mapping[str, str], sample: Sample) -> str | None:
    return reasons.get(class_of[sample.id])


def _named(keys: Iterable[str]) -> Classes:
    """The classes of these wnids, as WordNet calls them; of other keys the key is the name."""
    tree, known = wordnet(), sorted(set(keys) - {""})
    return Classes(tuple(tree.name(key) if key in tree else key for key in known), tuple(known))
