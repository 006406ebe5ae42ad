"""What object detection says of a model: its average precision, which nothing judges on images of one's own."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Judge, Judged
from shiftproof.types import Axis

SECTION = "detection"


def axes(judged: Judged) -> Iterator[Axis]:
    for found in judged.overall("mean_average_precision"):
        yield Axis("detection", "Objects found (mAP)", found, SECTION)


JUDGE = Judge(axes)
