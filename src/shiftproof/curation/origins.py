"""How the candidates of a review project came about, as its data card and report tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shiftproof.curation.project import Item, Making
from shiftproof.curation.sifting import Step
from shiftproof.image_sets.image_list import ImageList
from shiftproof.studies import typed_command, versions
from shiftproof.types import Fact, ModelRef, Sample

SOURCE, ID = "source", "id"
"""Facts of an item by which its image is found again."""


def making_of(
    image_sets: Sequence[ImageList | None],
    steps: Sequence[Step],
    *,
    models: Sequence[ModelRef] = (),
    choices: Mapping[str, Fact] | None = None,
) -> Making:
    """What a pipeline took, which models it asked, what each step left, and the command and versions it ran with.

    Sets that may be there and are not are None.
    """
    return Making(
        typed_command(),
        tuple(steps),
        tuple({"name": model.name, "fingerprint": model.fingerprint} for model in models),
        tuple(_source(images) for images in image_sets if images is not None),
        versions(),
        dict(choices or {}),
    )


def origin(images: ImageList, sample: Sample) -> dict[str, Fact]:
    """Where the image of an item lies, as facts by which an export finds its own pixels; of a set in memory only its id."""
    return {**({} if images.location is None else {SOURCE: images.location}), ID: sample.id}


def origin_of(item: Item) -> tuple[str | None, str]:
    """The place of the image set that an item was taken from, None where nobody said, and the id of its image there."""
    location = item.facts.get(SOURCE)
    return None if location is None else str(location), str(item.facts.get(ID, item.id))


def _source(images: ImageList) -> dict[str, str]:
    return {
        "name": images.name,
        "location": images.location or "",
        "fingerprint": images.ref.fingerprint,
        "licence": "; ".join(images.credits),
    }
