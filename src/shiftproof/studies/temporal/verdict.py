"""What frames of a video say of a model: how much accuracy is lost a few frames away from an anchor."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Candidate, Judge, Judged, Said, column, published, rule
from shiftproof.metrics.wording import points
from shiftproof.types import Axis, Measurement, NextStep, Standard

SECTION = "temporal"
ALLOWED = 0.05
"""Accuracy that frames at one offset may lose against their anchors."""
TABLE, PUBLISHED_K = "imagenet_vid_robust_models", 10


def axes(judged: Judged) -> Iterator[Axis]:
    """The drop from anchors to the worst frames around them, among published models at their k."""
    for found in judged.numbers("pm_k_drop"):
        if judged.knows_imagenet and found.about["k"] == PUBLISHED_K:
            known = column(TABLE, "drop")
            standard = published(known, f"{len(known)} published models on ImageNet-Vid-Robust", worse="above")
        else:
            standard = rule(found.metric, weak=0.15, good=0.05, worse="above")
        yield Axis("temporal", f"Accuracy lost within {found.about['k']} frames", found, SECTION, standard)


def candidates(judged: Judged) -> Iterator[Candidate]:
    """Every offset from the anchors."""
    standard = Standard("rule: at most 5 points below the anchor frames", ALLOWED, worse="above")
    for found in judged.numbers("offset_loss"):
        side = "after" if int(found.about["offset"]) > 0 else "before"
        yield Candidate(found, standard, "offsets", side, SECTION, _say)


def _say(judged: Judged, found: Measurement) -> Said:
    offset = int(found.about["offset"])
    frames = f"{abs(offset)} frame{'s' if abs(offset) > 1 else ''} {'after' if offset > 0 else 'before'} the anchor frames"
    sentence = f"{frames[:1].upper()}{frames[1:]} accuracy is {points(found.value)} lower"
    told = "Look at the frames around the anchors: cuts, motion blur, and objects that leave the picture."
    step = NextStep(told, {"temporal": {}}, "frames.html")
    return Said(sentence, step, judged.example(found, {"offset": offset}))


JUDGE = Judge(axes, candidates)
