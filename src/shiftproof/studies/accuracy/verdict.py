"""What accuracy says of a model: how good it is among published ones, and which classes and groups fall behind."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import LEAST_IMAGES, Candidate, Judge, Judged, Said, published
from shiftproof.metrics.published import published_models
from shiftproof.types import Axis, Measurement, NextStep, Standard

SECTION = "accuracy"
BEHIND = 0.10
"""How far a class or a group may lie below the accuracy on all images."""
LEAST_CLASSES = 100
"""Classes that photos need to be held against the ImageNet validation images: fewer may be easier or harder than all."""


def axes(judged: Judged) -> Iterator[Axis]:
    for found in judged.overall("top1_accuracy"):
        yield Axis("accuracy", "Clean accuracy", found, SECTION, _standard(judged, found))


def _standard(judged: Judged, found: Measurement) -> Standard | None:
    """Published models on the same dataset; on the ImageNet validation images for other photos of most of their classes."""
    card = judged.dataset(found)
    if not judged.knows_imagenet or card is None:
        return None
    if card.published is not None:
        known, where = published_models(found.metric, card.published) if found.as_published else (), card.published
    else:
        enough = (card.classes or 0) >= LEAST_CLASSES
        known = published_models(found.metric, "imagenet") if enough else ()
        where = "the ImageNet validation images, which are other photos"
    return (
        published((one.value for one in known), f"{len(known):,} published models on {where}", worse="below")
        if known
        else None
    )


def candidates(judged: Judged) -> Iterator[Candidate]:
    """Every class and group with enough images, against the accuracy on all images."""
    for overall in judged.overall("top1_accuracy"):
        standard = Standard(
            "rule: at most 10 points below the accuracy on all images", overall.value - BEHIND, worse="below"
        )
        of_dataset = {"dataset": overall.about["dataset"]}
        for found in judged.numbers("class_accuracy", **of_dataset):
            if _is_large(found):
                name = str(found.about["class"])
                yield Candidate(found, standard, "classes", name, SECTION, _of_class)
        for found in judged.numbers("group_accuracy", **of_dataset):
            if _is_large(found) and found.images < overall.images:
                name = f"{found.about['fact']} {found.about['group']}"
                yield Candidate(found, standard, "groups", name, SECTION, _of_group)


def _is_large(found: Measurement) -> bool:
    clusters = found.images if found.clusters is None else found.clusters
    return clusters >= LEAST_IMAGES


def _of_class(judged: Judged, found: Measurement) -> Said:
    name = str(found.about["class"])
    shows = {"class": name}
    confused = judged.numbers("confusion_rate", dataset=found.about["dataset"], **shows)
    most = max(confused, key=lambda one: one.value, default=None)
    other = "" if most is None else str(most.about["predicted"])
    as_other = f", {_counted(most)} predicted as {other}" if most else ""
    sentence = f"Class {name}: {_counted(found)} of {found.images} correct{as_other}"
    told = f"Check the labels of {name}{f' against {other}' if other else ''}; if they are right, label more images of it."
    step = NextStep(told, {"accuracy": {}, "saliency": {}}, "saliency.html")
    return Said(sentence, step, judged.example(found, shows))


def _of_group(judged: Judged, found: Measurement) -> Said:
    fact, group = str(found.about["fact"]), str(found.about["group"])
    sentence = f"Where {fact} is {group}: {_counted(found)} of {found.images} correct"
    step = NextStep(f"Label more images with {fact} {group}, for training and for testing.")
    return Said(sentence, step, judged.example(found, {"fact": fact, "group": group}))


def _counted(found: Measurement) -> int:
    """The images that a share counts."""
    return round(found.value * found.images)


JUDGE = Judge(axes, candidates)
