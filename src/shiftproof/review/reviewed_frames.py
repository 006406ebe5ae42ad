"""What people said of frames, put back on the frames: labels of anchors, and which frames are like their anchor."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from shiftproof.curation.frames import AnchorLabels
from shiftproof.curation.project import Project
from shiftproof.curation.review_classes import TOGETHER
from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList
from shiftproof.review.reasons import rejection_reason
from shiftproof.review.source_images import source_images
from shiftproof.review.verdicts import Verdict
from shiftproof.types import Classes, Fact, Sample

SIMILAR, BAD_ANCHOR = "similar", "bad anchor"


def agreed_labels(project: Project, verdicts: Mapping[str, Verdict]) -> AnchorLabels:
    """The classes that a majority saw on each anchor that is good; anchors without any are left out."""
    if project.screen_name != "anchor-labels":
        raise BadInput(f"{project.title} asks {project.screen_name} and not which classes anchors show")
    return {anchor: verdict.labels for anchor, verdict in verdicts.items() if verdict.outcome == "kept" and verdict.labels}


def reviewed_frames(project: Project, verdicts: Mapping[str, Verdict], images: ImageList | None = None) -> ImageList:
    """The frames of a project of pairs with what people said in the fact `reviewed`, as the study of frames reads it.

    It is ``similar``, the reason against a frame, or false as long as nothing is decided. Labels are those that the
    project asked about. The set is opened where the project says it lies, unless it is given.
    """
    if project.screen_name != "pair":
        raise BadInput(f"{project.title} asks {project.screen_name} and not whether frames are like their anchors")
    images = images or source_images(project)
    keys = {str(item.group): [key for key in str(item.facts["labels"]).split(TOGETHER) if key] for item in project.items}
    classes = images.classes or Classes(tuple(sorted({key for some in keys.values() for key in some})))
    place_of = {key: place for place, key in enumerate(classes.keys)}
    said = _words(project, verdicts)

    def with_verdict(sample: Sample, anchor: str) -> Sample:
        facts = {**sample.facts, "reviewed": said.get(sample.id, False)}
        return dataclasses.replace(sample, labels=tuple(place_of[key] for key in keys[anchor]), facts=facts)

    pairs = [(sample, str(sample.facts["anchor"])) for sample in images.samples]
    samples = [with_verdict(sample, anchor) for sample, anchor in pairs if anchor in keys]
    return dataclasses.replace(images, samples=samples, classes=classes if place_of else None, location=None)


def _words(project: Project, verdicts: Mapping[str, Verdict]) -> dict[str, Fact]:
    """What was said of each frame that is decided, by its id; an anchor is like itself unless it is a bad one."""
    words: dict[str, Fact] = {}
    for item in project.items:
        verdict = verdicts.get(item.id)
        if verdict is None or verdict.outcome == "open":
            continue
        words.setdefault(str(item.group), BAD_ANCHOR if verdict.closed_by_group else SIMILAR)
        against = BAD_ANCHOR if verdict.closed_by_group else rejection_reason(project, verdict)
        words[item.id] = SIMILAR if verdict.outcome == "kept" else against
    return words
