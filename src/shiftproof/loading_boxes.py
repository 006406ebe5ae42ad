"""What an object detector found, out of the store, beside what is really there: both in the classes of the image set."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import ClassMismatch, DamagedFile
from shiftproof.image_sets.class_matching import described, match_columns
from shiftproof.image_sets.clusters import Clustering
from shiftproof.image_sets.label_spaces import Unmatched
from shiftproof.image_sets.scoring import Scoring
from shiftproof.loading import facts_of, locate
from shiftproof.store import Store
from shiftproof.types import Classes, Detections, FoundObjects, ImageSet, Keep, Run, Sample, Truths


def load_found(
    run: Run,
    images: ImageSet,
    *,
    store: Store,
    keep: Keep = "boxes",
    scoring: Scoring | None = None,
    clustering: Clustering | None = None,
    partial: bool = False,
    digests: Mapping[str, str | None] | None = None,
) -> FoundObjects:
    """The stored boxes of a run, with the objects of the set as it is now; MissingRuns where some were never made.

    Boxes of classes that the set does not have are left out and counted. Objects of classes that the detector does not
    have are an error, ignored, or never found, as `scoring` says.
    """
    while True:
        located = locate(run, images, store=store, keep=keep, partial=partial, digests=digests)
        try:
            arrays = located.stored.load_boxes(located.pairs, classes=located.model.outputs)
            break
        except DamagedFile:
            continue  # it is set aside now: other rows may do, or MissingRuns says what is not there any more
    truths: Truths | None = getattr(images, "truths", None)
    unmatched = (scoring or Scoring()).unmatched
    meeting = meet(images.classes if truths is not None else None, located.model.classes, located.model.outputs, unmatched)
    detections = _detections(tuple(sample.id for sample in located.kept), arrays, meeting.place_of)
    others = len(arrays["boxes"]) - len(detections.boxes)
    told = {"boxes of other classes": f"{others:,}, left out"} if others else {}
    if truths is not None:
        there = truths.of_images(detections.ids)
        truths = dataclasses.replace(there, ignored=there.ignored | np.isin(there.classes, meeting.ignored))
    return FoundObjects(
        detections,
        truths,
        arrays["image_sizes"],
        meeting.classes,
        facts=facts_of(located.kept),
        grouped=(clustering or Clustering()).of(located.kept),
        set_aside=located.set_aside,
        convention={**meeting.convention, **told, **_other_sizes_told(located.kept, arrays["image_sizes"])},
    )


class Meeting(NamedTuple):
    """The classes that boxes found and objects there share."""

    classes: Classes
    place_of: NDArray[np.integer]  # a place in `classes` for each class of the detector, or -1
    ignored: Sequence[int]  # classes whose objects are not asked for
    convention: Mapping[str, str]


def meet(of_set: Classes | None, of_model: Classes | None, outputs: int | None, unmatched: Unmatched = "error") -> Meeting:
    """The classes of the set, and where the detector's are among them; a set without boxes takes the detector's own.

    >>> dogs, animals = Classes(("dog", "wolf")), Classes(("cat", "dog"))
    >>> meet(dogs, animals, 2, "unlabelled").place_of.tolist()
    [-1, 0]
    """
    if of_set is None:
        own = of_model or Classes(tuple(str(place) for place in range(outputs or 0)))
        return Meeting(own, np.arange(len(own)), (), {})
    matching = match_columns(of_set, of_model, outputs or len(of_model or ()))
    lacking = matching.unmatched()
    if lacking and (unmatched == "error" or len(lacking) == len(of_set)):
        raise ClassMismatch(
            f"{len(lacking)} of {len(of_set)} classes of the boxes are not among the {len(matching.model)} classes of the "
            f"detector: {described(of_set, lacking)}; ask only for those it has with --unmatched unlabelled, or count "
            "these as never found with --unmatched wrong"
        )
    place_of = np.full(len(matching.model), -1)
    for place, column in enumerate(matching.columns):
        if column >= 0 and place_of[column] >= 0:
            first = of_set.names[place_of[column]]
            raise ClassMismatch(f"{first} and {of_set.names[place]} are one class of the detector; join them in the boxes")
        if column >= 0:
            place_of[column] = place
    fate = "their objects are ignored" if unmatched == "unlabelled" else "never found"
    convention = {"classes": f"{len(of_set) - len(lacking)} of {len(of_set)}, {matching.how}"}
    if lacking:
        convention["classes the detector lacks"] = f"{len(lacking)}, {fate}"
    return Meeting(of_set, place_of, lacking if unmatched == "unlabelled" else (), convention)


def _other_sizes_told(samples: Sequence[Sample], sizes: NDArray[np.integer]) -> dict[str, str]:
    """How many images are not of the size that stands beside their boxes, as photos that are turned upright when read."""
    said = [(sample.facts.get("height"), sample.facts.get("width")) for sample in samples]
    others = sum(None not in one and any(read) and list(one) != read for one, read in zip(said, sizes.tolist(), strict=True))
    return {"images of another size than their boxes say": f"{others:,}, whose boxes may be off"} if others else {}


def _detections(ids: tuple[str, ...], arrays: Mapping[str, NDArray[Any]], place_of: NDArray[np.integer]) -> Detections:
    """The boxes of classes that the set has."""
    classes = place_of[arrays["box_classes"]]
    kept = np.flatnonzero(classes >= 0)
    image = np.repeat(np.arange(len(ids)), arrays["box_counts"])
    corners, scores = (arrays[name][kept].astype(float) for name in ("boxes", "box_scores"))
    return Detections(ids, image[kept], corners, scores, classes[kept])
