"""What people said of frames, put back on the frames: labels of anchors, and which frames are like their anchor."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from shiftproof.curation.frames import AnchorLabels
from shiftproof.curation.original_images import Pixels
from shiftproof.curation.origins import origin_of
from shiftproof.curation.project import Project
from shiftproof.curation.review_classes import TOGETHER
from shiftproof.curation.screens import ANCHOR_LABELS, PAIR
from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList
from shiftproof.review.kept import images_of
from shiftproof.review.reasons import rejection_reason
from shiftproof.review.verdicts import Verdict

SIMILAR, BAD_ANCHOR = "similar", "bad anchor"


def agreed_labels(project: Project, verdicts: Mapping[str, Verdict]) -> AnchorLabels:
    """The classes that a majority saw on each anchor that is good; anchors without any are left out."""
    if project.screen_name != ANCHOR_LABELS.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not which classes anchors show")
    return {anchor: verdict.labels for anchor, verdict in verdicts.items() if verdict.outcome == "kept" and verdict.labels}


def reviewed_frames(project: Project, verdicts: Mapping[str, Verdict], *, pixels: Pixels = "source") -> ImageList:
    """The frames that people decided about, kept or not, with what they said in the fact `reviewed`.

    It is ``similar`` or the reason against a frame, as the study of frames reads it to tell accuracy with and without those
    that were rejected. The fact `votes` has every answer that stands. An anchor is like itself, unless it is a bad one.
    """
    if project.screen_name != PAIR.name:
        raise BadInput(f"{project.title} asks {project.screen_name} and not whether frames are like their anchors")
    decided = [item for item in project.items if item.id in verdicts and verdicts[item.id].outcome != "open"]
    if not decided:
        raise BadInput(f"no frame of {project.title} is decided so far")
    said: dict[str, str] = {}
    votes: dict[str, str] = {}
    for item in decided:
        verdict, (_, frame) = verdicts[item.id], origin_of(item)
        said[str(item.group)] = BAD_ANCHOR if verdict.closed_by_group else SIMILAR
        said[frame] = _word(project, verdict)
        votes[frame] = TOGETHER.join(f"{name} {count}" for name, count in sorted(verdict.choices.items()))
    images = images_of(project, decided, verdicts, pixels=pixels)
    facts = {sample.id: {"reviewed": said[sample.id], "votes": votes.get(sample.id, "")} for sample in images.samples}
    samples = [dataclasses.replace(sample, facts={**sample.facts, **facts[sample.id]}) for sample in images.samples]
    return dataclasses.replace(images, samples=samples)


def _word(project: Project, verdict: Verdict) -> str:
    if verdict.closed_by_group:
        return BAD_ANCHOR
    return SIMILAR if verdict.outcome == "kept" else rejection_reason(project, verdict)
