"""What hard natural photos say of a model: its accuracy among published ones."""

from __future__ import annotations

from collections.abc import Iterator

from shiftproof.judging import Judge, Judged, column, published
from shiftproof.types import Axis

SECTION = "natural-adversarial"
TABLE = "imagenet_a_o_models"


def axes(judged: Judged) -> Iterator[Axis]:
    """Judged only where it is by the protocol of the published numbers."""
    for found in judged.overall("imagenet_a_accuracy"):
        standard = None
        if found.as_published:
            known = column(TABLE, "imagenet_a_accuracy")
            standard = published(known, f"{len(known)} published models on ImageNet-A", worse="below")
        yield Axis("natural-adversarial", "Hard natural photos", found, SECTION, standard)


JUDGE = Judge(axes)
