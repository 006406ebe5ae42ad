"""The user's word on how labels of images and outputs of a model meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shiftproof.class_lists import COCO
from shiftproof.errors import BadInput
from shiftproof.files import read_json
from shiftproof.image_sets.coarser_classes import coco_groups
from shiftproof.image_sets.label_spaces import LabelSpace, Rule, Unmatched, match_classes, merge_classes
from shiftproof.image_sets.video_classes import VIDEO_CLASSES, video_groups
from shiftproof.types import Classes, Keep, Scored


@dataclass(frozen=True)
class Scoring:
    """Which classes compete, what becomes of classes the model lacks, and which classes count as one.

    With `groups`, the answers are groups: each is a name with the model's classes (wnids or names) that belong to it.
    """

    classes: Scored = "full"
    unmatched: Unmatched = "error"
    groups: Mapping[str, Sequence[str]] | None = None
    rule: Rule = "max"

    @property
    def keep(self) -> Keep:
        """The least that must be stored: among other classes than the model's own, the five best are other five."""
        return "top5" if self.classes == "full" and self.groups is None else "logits"

    def space(self, of_set: Classes, of_model: Classes | None, *, outputs: int) -> LabelSpace:
        """The label space of these images and this model; ClassMismatch where they do not meet."""
        if self.groups is not None:
            return merge_classes(self.groups, of_model, of_set=of_set, rule=self.rule, unmatched=self.unmatched)
        return match_classes(of_set, of_model, outputs=outputs, scored=self.classes, unmatched=self.unmatched)


def load_groups(path: str | Path) -> dict[str, list[str]]:
    """Groups from a JSON file like ``{"dog": ["n02085620", "n02085782"]}``; or ``coco``, ``imagenet-vid`` or ``ytbb``."""
    if str(path) in VIDEO_CLASSES:
        return video_groups(str(path))
    if str(path) == COCO:
        return coco_groups()
    groups = read_json(path)
    fits = isinstance(groups, dict) and all(isinstance(members, list) for members in groups.values())
    if not fits or not any(groups.values()):
        raise BadInput(f'{path} should hold groups as {{"dog": ["n02085620", ...], ...}}')
    return {name: [str(member) for member in members] for name, members in groups.items()}
