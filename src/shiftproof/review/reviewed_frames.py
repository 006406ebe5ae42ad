"""What people said of frames, put back on the frames: labels of anchors, and which frames are like their anchor."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from shiftproof.curation.frames import ANCHORS_LABELLED, RELABELLED, AnchorLabels
from shiftproof.curation.original_images import Pixels
from shiftproof.curation.origins import origin_of
from shiftproof.curation.project import Item, Project
from shiftproof.curation.review_classes import TOGETHER, classes_of
from shiftproof.curation.screens import ANCHOR_LABELS, PAIR
from shiftproof.errors import BadInput
from shiftproof.image_sets.image_list import ImageList
from shiftproof.review.kept import images_of
from shiftproof.review.reasons import rejection_reason
from shiftproof.review.verdicts import Verdict

SIMILAR, BAD_ANCHOR = "similar", "bad anchor"


ANCHORS, PAIRS = "anchor frames", "frame pairs"


@dataclass(frozen=True)
class Stage:
    """How many anchors or pairs reached a stage of the review, as Table 1 of the pm-k paper counts them."""

    unit: str
    stage: str  # reviewed, accepted, labels updated
    count: int
    share: float | None  # of those reviewed; of updated labels, of those accepted; None of what it is a share of


def stages_of(project: Project, verdicts: Mapping[str, Verdict]) -> list[Stage]:
    """Anchors and pairs that people decided about, those they accepted, and anchors whose labels they changed.

    A bad anchor is not accepted, and its pairs are not either. Where people labelled the anchors before, all of these count
    as reviewed. Nothing where a project asks about no frames.
    """
    decided = [item for item in project.items if item.id in verdicts and verdicts[item.id].outcome != "open"]
    kept = [item for item in decided if verdicts[item.id].outcome == "kept"]
    if project.screen_name == ANCHOR_LABELS.name:
        labels = [(item, verdicts[item.id].labels) for item in kept if verdicts[item.id].labels]
        return stage_rows(ANCHORS, len(decided), len(labels), sum(set(new) != classes_of(item) for item, new in labels))
    if project.screen_name != PAIR.name:
        return []
    anchors: dict[str | None, Item] = {item.group: item for item in decided}
    good = [item for item in anchors.values() if not verdicts[item.id].closed_by_group]
    labelled = project.making.choices.get(ANCHORS_LABELLED)
    reviewed = labelled if isinstance(labelled, int) else len(anchors)
    changed = None if labelled is None else sum(item.facts.get(RELABELLED) is True for item in good)
    return [*stage_rows(ANCHORS, reviewed, len(good), changed), *stage_rows(PAIRS, len(decided), len(kept))]


def stage_rows(unit: str, reviewed: int, accepted: int, updated: int | None = None) -> list[Stage]:
    """The counts with their shares."""
    found = [Stage(unit, "reviewed", reviewed, None), Stage(unit, "accepted", accepted, _share(accepted, reviewed))]
    return found if updated is None else [*found, Stage(unit, "labels updated", updated, _share(updated, accepted))]


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


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
