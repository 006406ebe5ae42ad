"""OOD images that models are confident about, as in ImageNet-O (Hendrycks et al., 2021)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from shiftproof.curation.filtered_project import NearestImages
from shiftproof.curation.filtering import Choice, Filtered, FilterModels, ModelPrediction, ModelPredictions
from shiftproof.curation.novel_classes import select_novel_classes
from shiftproof.curation.ood_candidates import FOLDER, candidate_pairs, with_folders
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import View
from shiftproof.datasets.wordnet import wordnet
from shiftproof.errors import BadInput, listed
from shiftproof.options import PredictionSettings
from shiftproof.runs.predict import predict_images
from shiftproof.types import Classes, Sample

MIN_CONFIDENCE = 0.5
"""Confidence above which an OOD image is kept. ImageNet-O kept what a ResNet-50 was confident about, without a figure."""


def filter_novel(
    images: ImageList,
    filters: FilterModels,
    id_classes: Sequence[str] | None,
    *,
    subtrees: Sequence[str] = (),
    least_share: float = MIN_CONFIDENCE,
    per_class: int | None = None,
) -> Filtered:
    """The images of OOD classes on which every model has a confidence of at least `least_share`.

    All classes are wnids. `id_classes` (in-distribution), their hyponyms and hypernyms are removed, and so is what lies
    under `subtrees`; with None for `id_classes` all classes are kept. Where classes were chosen, probabilities are over the
    logits of these only. The result is sorted by the lowest confidence of any model, the highest
    first; in that order at most `per_class` images of each class are kept.
    """
    ood_images = with_folders(images)
    class_of = {sample.id: str(sample.facts.get(FOLDER) or "") for sample in ood_images.samples}
    choice = _of_new_classes(ood_images.samples, class_of, id_classes, subtrees)
    told: dict[str, Mapping[str, ModelPrediction]] = {}
    for model in filters.models:
        said = filters.opinions(model, View(ood_images, filters.classes, choice.left))
        told[model.ref.name] = {image_id: opinions[0] for image_id, opinions in said.of.items()}
        name = f"confidence of at least {least_share:.0%} by {model.ref.name}"
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


def nearest_id_images(filtered: Filtered, images: ImageList, id_images: ImageList, filters: FilterModels) -> NearestImages:
    """The ID image nearest to each image that is left, in the features of the first model."""
    new, known = (
        predict_images(
            filters.models[0],
            some,
            store=filters.store,
            settings=PredictionSettings(keep="features", workers=filters.workers),
            scoring=Scoring(unmatched="unlabelled"),
            progress=filters.progress,
        )
        for some in (View(with_folders(images), None, filtered.choice.left), id_images)
    )
    return NearestImages(id_images, candidate_pairs(new, known, first=len(new)))


def _of_new_classes(
    samples: Sequence[Sample], class_of: Mapping[str, str], id_classes: Sequence[str] | None, subtrees: Sequence[str]
) -> Choice:
    choice = Choice.start(samples).step("of a class", lambda one: None if class_of[one.id] else "has no class")
    if id_classes is None:
        return choice
    wnids = sorted({class_of[sample.id] for sample in choice.left})
    if strange := [wnid for wnid in wnids if wnid not in wordnet()]:
        raise BadInput(
            f"{len(strange)} of {len(wnids)} classes are no wnids, so WordNet cannot tell whether they are new: "
            f"{listed(strange)}; name them by wnids, or take all as new with --id-classes none"
        )
    selection = select_novel_classes(id_classes, wnids, subtrees=subtrees)
    for step in selection.steps[1:]:
        reasons = {gone.wnid: f"its class {gone.reason}" for gone in selection.removed if gone.step == step.name}
        choice = choice.step(step.name, partial(_class_reason, reasons, class_of))
    return choice


def _doubt(said: ModelPredictions, least_share: float, sample: Sample) -> str | None:
    """Why an image is removed on which a model is not confident, or has no prediction."""
    if sample.id in said.missing:
        return said.missing[sample.id]
    confidence = said.of[sample.id][0].confidence
    return None if confidence >= least_share else f"confidence {confidence:.1%}"


def _class_reason(reasons: Mapping[str, str], class_of: Mapping[str, str], sample: Sample) -> str | None:
    return reasons.get(class_of[sample.id])


def _named(keys: Iterable[str]) -> Classes:
    """The classes of these wnids, named as in WordNet; other keys are their own names."""
    tree, known = wordnet(), sorted(set(keys) - {""})
    return Classes(tuple(tree.name(key) if key in tree else key for key in known), tuple(known))
