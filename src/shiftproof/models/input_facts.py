"""What the input of a graph says about itself, and the preprocessing that makes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from shiftproof.errors import BadInput
from shiftproof.models.options import PRESETS, ModelOptions
from shiftproof.models.preprocessing import ImagePreprocessing, InputType, Layout

MOST_AT_A_TIME = 4096
"""Images in a batch of fixed size: it is filled up by repeating the last one."""


@dataclass(frozen=True)
class InputFacts:
    """What a graph wants to be fed."""

    name: str
    dtype: InputType
    layout: Layout
    channels: int | None
    size: tuple[int, int] | None  # height, width; None where free
    batch_size: int | None

    @classmethod
    def of_shape(cls, name: str, dtype: InputType, dimensions: Sequence[int | str | None]) -> InputFacts:
        """The facts of an input of this shape, in which free sizes are None or names; BadInput where it is no image.

        >>> InputFacts.of_shape("x", "uint8", (1, 224, 192, 3)).size
        (224, 192)
        """
        if len(dimensions) != 4:
            raise BadInput(f"the model should take (images, channels, height, width) or channels last, got {dimensions}")
        batch, *rest = dimensions
        if isinstance(batch, int) and batch > MOST_AT_A_TIME:
            raise BadInput(f"the model wants {batch:,} images at a time; more than {MOST_AT_A_TIME:,} are never given")
        layout: Layout = "nhwc" if rest[2] in {1, 3} and rest[0] not in {1, 3} else "nchw"
        channels, height, width = rest if layout == "nchw" else (rest[2], rest[0], rest[1])
        return cls(
            name=name,
            dtype=dtype,
            layout=layout,
            channels=channels if isinstance(channels, int) else None,
            size=(height, width) if isinstance(height, int) and isinstance(width, int) else None,
            batch_size=batch if isinstance(batch, int) else None,
        )


def preprocessing_for(
    facts: InputFacts, options: ModelOptions, own: ImagePreprocessing | None = None
) -> tuple[ImagePreprocessing, tuple[str, ...]]:
    """How images become what the graph takes, by the user's word or `own`, and what there is to say about it."""
    own = PRESETS["bytes"] if own is None and facts.dtype == "uint8" else own
    preprocessing, notes = options.preprocessing(own, size=facts.size)
    if facts.channels == 1 and preprocessing.channels != "grey":
        mean, std = preprocessing.mean[:1], preprocessing.std[:1]
        preprocessing = dataclasses.replace(preprocessing, channels="grey", mean=mean, std=std)
        notes = (*notes, "one input channel: images are converted to greyscale")
    elif facts.channels not in {None, 1, 3}:
        raise BadInput(f"the model takes {facts.channels} channels; images have 3, or 1 when converted to greyscale")
    return dataclasses.replace(preprocessing, layout=facts.layout, dtype=facts.dtype), notes
