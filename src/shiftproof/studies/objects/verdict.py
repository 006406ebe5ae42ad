"""What crops of objects say of a model: whether it recognises the object without its background."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Candidate, Judge, Judged, Said, rule
from shiftproof.metrics.wording import points
from shiftproof.types import Axis, Measurement, NextStep, Standard

SECTION = "objects"
ALLOWED = -0.10
"""Accuracy that objects may lose without their background."""
REMOVED = "background removed"
SHOWN = {REMOVED: "with the background removed", "both": "enlarged, with the background removed"}
"""Effects in a sentence, where they are not said as they are called."""


def axes(judged: Judged) -> Iterator[Axis]:
    for found in judged.numbers("object_difference", effect=REMOVED):
        standard = rule(found.metric, weak=ALLOWED, good=ALLOWED / 2, worse="below")
        yield Axis("objects", "Objects without background", found, SECTION, standard)


def candidates(judged: Judged) -> Iterator[Candidate]:
    """Every way of showing objects without what is around them."""
    standard = Standard("rule: objects may lose 10 points", ALLOWED, worse="below")
    for found in judged.numbers("object_difference"):
        effect = str(found.about["effect"])
        yield Candidate(found, standard, "views of objects", effect, SECTION, _say)


def _say(judged: Judged, found: Measurement) -> Said:
    effect = str(found.about["effect"])
    sentence = f"Objects lose {points(found.value)} of accuracy {SHOWN.get(effect, effect)}"
    told = "It looks at the background: saliency maps show where."
    step = NextStep(told, {"objects": {}, "saliency": {}}, "saliency.html")
    return Said(sentence, step, judged.example(found, {}, "right_only_in_image"))


JUDGE = Judge(axes, candidates)
