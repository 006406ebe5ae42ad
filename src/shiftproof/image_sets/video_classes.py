"""The classes of two video sets as groups of ILSVRC classes: all that WordNet puts below them."""

from __future__ import annotations

from shiftproof.errors import UnknownName
from shiftproof.image_sets.wordnet import wordnet
from shiftproof.reference import ilsvrc_classes, load_table

VIDEO_CLASSES = {"imagenet-vid": "imagenet_vid_classes", "ytbb": "ytbb_classes"}
"""The reference tables of ImageNet-Vid-Robust's and YTBB-Robust's classes."""


def video_groups(name: str) -> dict[str, list[str]]:
    """The ILSVRC classes of each class of a video set, in the form that `Scoring` and `merge_classes` take.

    The groups stand in the order of the set's own labels; one that no ILSVRC class belongs to is empty.

    >>> groups = video_groups("imagenet-vid")
    >>> len(groups), sum(map(len, groups.values())), groups["squirrel"]
    (30, 288, ['n02356798'])
    """
    if name not in VIDEO_CLASSES:
        raise UnknownName("video set", name, VIDEO_CLASSES)
    return {row["name"]: _members(row["wnid"], row.get("without", "")) for row in load_table(VIDEO_CLASSES[name])}


def _members(wnid: str, without: str) -> list[str]:
    """ILSVRC classes at or below one noun, those at or below another left out."""
    steps_up = wordnet().steps_up
    return [one for one in ilsvrc_classes().keys if wnid in steps_up(one) and without not in steps_up(one)]
