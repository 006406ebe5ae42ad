"""Images and classes of ILSVRC-2012 sorted under coarser classes, those that WordNet puts above their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from shiftproof.class_lists import coco_classes
from shiftproof.errors import BadInput
from shiftproof.image_sets.class_matching import with_wnids
from shiftproof.image_sets.views import View, objects_among
from shiftproof.image_sets.wordnet import wordnet
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes, ImageSet


def labelled_above(images: ImageSet, classes: Classes) -> View:
    """The images whose class is one of these or lies below one, labelled with it.

    Where several lie above, the nearest is the label, so that a minivan is a car although it is also a kind of truck; of
    several equally near any is right. Images below none are left out, and a note counts them. Of the classes those stay
    that an image is of.
    """
    own = None if images.classes is None else with_wnids(images.classes)
    if own is None or own.wnids is None:
        raise BadInput(f"{images.ref.name} says no wnids of its classes, so nothing is known to lie above them")
    above = [nearest_above(wnid, classes.keys) for wnid in own.wnids]
    found = [(sample, {place for label in sample.labels for place in above[label]}) for sample in images.samples]
    chosen = sorted({place for _, places in found for place in places})
    if not chosen:
        raise BadInput(
            f"no image of {images.ref.name} is of a kind of the {len(classes)} classes asked for; name them by their wnids"
        )
    new = {place: order for order, place in enumerate(chosen)}
    samples = [
        dataclasses.replace(sample, labels=tuple(new[place] for place in sorted(places)))
        for sample, places in found
        if places
    ]
    coarser = Classes(tuple(classes.names[place] for place in chosen), tuple(classes.keys[place] for place in chosen))
    note = (
        f"{len(samples):,} of {len(found):,} images are of kinds of {len(chosen)} of the {len(classes)} classes asked for "
        "and labelled with these; the others are left out"
    )
    name = f"{images.ref.name}, {len(chosen)} coarser classes"
    # an object has one class: where several lie equally near, it is of none
    objects = objects_among(images, samples, [new.get(places[0], -1) if len(places) == 1 else -1 for places in above])
    return View(images, coarser, samples, name, notes=(*getattr(images, "notes", ()), note), truths=objects)


def coco_groups() -> dict[str, list[str]]:
    """The ILSVRC classes of each class of COCO, in the form that `Scoring` and `merge_classes` take.

    >>> groups = coco_groups()
    >>> sum(map(bool, groups.values())), sum(map(len, groups.values())), groups["hot dog"], groups["toilet"]
    (55, 288, ['n07697537'], [])
    """
    coco = coco_classes()
    groups: dict[str, list[str]] = {name: [] for name in coco.names}
    for wnid in ilsvrc_classes().keys:
        for place in nearest_above(wnid, coco.keys):
            groups[coco.names[place]].append(wnid)
    return groups


def nearest_above(wnid: str, classes: Sequence[str]) -> list[int]:
    """The places of those classes that a noun is, or is a kind of in the fewest steps; none where it lies below none.

    >>> nearest_above("n03770679", ["n04490091", "n02958343"])  # a minivan, among truck and car
    [1]
    """
    if wnid not in wordnet():
        return []
    steps_up = wordnet().steps_up(wnid)
    steps = {place: steps_up[above] for place, above in enumerate(classes) if above in steps_up}
    return [place for place, count in steps.items() if count == min(steps.values())]
