"""What corruptions say of an object detector: how much of its average precision is left."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Judge, Judged, rule
from shiftproof.types import Axis

SECTION = "detection-corruption"


def axes(judged: Judged) -> Iterator[Axis]:
    for found in judged.overall("relative_performance_under_corruption"):
        standard = rule(found.metric, weak=0.5, good=0.8, worse="below")
        yield Axis("detection-corruption", "mAP kept under corruption", found, SECTION, standard)


JUDGE = Judge(axes)
