"""How the candidates of a review project came about, as its data card and report tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.curation.project import Making
from shiftproof.curation.sifting import Step
from shiftproof.image_sets.image_list import ImageList
from shiftproof.studies import typed_command, versions
from shiftproof.types import Fact, ModelRef, Sample


def making_of(
    image_sets: Sequence[ImageList],
    steps: Sequence[Step],
    *,
    models: Sequence[ModelRef] = (),
    choices: Mapping[str, Fact] | None = None,
) -> Making:
    """What a pipeline took, which models it asked, what each step left, and the command and versions it ran with."""
    return Making(
        typed_command(),
        tuple(steps),
        tuple({"name": model.name, "fingerprint": model.fingerprint} for model in models),
        tuple(_source(images) for images in image_sets),
        versions(),
        dict(choices or {}),
    )


def origin(images: ImageList, sample: Sample) -> dict[str, Fact]:
    """Where the image of an item lies, in the facts by which an export finds its own pixels again."""
    return {"source": images.location or images.name, "id": sample.id}


def _source(images: ImageList) -> dict[str, str]:
    return {
        "name": images.name,
        "location": images.location or "",
        "fingerprint": images.ref.fingerprint,
        "licence": "; ".join(images.credits),
    }
