"""One photo over and over, a little different each time: nearer, from elsewhere, in other colours, more and more spoilt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image as Pillow

from shiftproof.catalog import CORRUPTIONS
from shiftproof.errors import BadInput, UnknownName
from shiftproof.image_sets.image_list import FileImage, ImageList
from shiftproof.types import Decoder, Image, ImageSource, Sample

PIXELS = 1
"""Raised whenever a variation comes out otherwise than before, so that stored answers to the old one are not used."""

NEAREST = 4.0
"""How many times as large the middle of the photo gets at most."""

WINDOW = 0.7
"""Share of each side that a crop keeps."""


@dataclass(frozen=True)
class Variation:
    """A way to vary a photo: from where to where, and how."""

    low: float
    high: float
    unit: str
    make: Callable[[Image, float], Image]


def zoomed(image: Image, factor: float) -> Image:
    """The middle of the photo, `factor` times as large: fewer pixels of it, cut to the same shape.

    >>> zoomed(np.zeros((100, 60, 3), np.uint8), 2.0).shape
    (50, 30, 3)
    """
    return _window(image, 1 / factor, 0.0)


def moved(image: Image, place: float) -> Image:
    """A window of seven tenths of each side, from the upper left corner at -1 through the middle to the lower right at 1."""
    return _window(image, WINDOW, place)


def recoloured(image: Image, degrees: float) -> Image:
    """The photo with every hue turned by so many degrees; black, grey and white stay."""
    if degrees == 0:
        return image
    hue, saturation, value = Pillow.fromarray(image).convert("HSV").split()
    turned = (np.asarray(hue, np.int16) + round(degrees * 256 / 360)) % 256
    joined = Pillow.merge("HSV", (Pillow.fromarray(turned.astype(np.uint8)), saturation, value))
    return np.array(joined.convert("RGB"))


def _window(image: Image, share: float, place: float) -> Image:
    height, width = (max(1, round(side * share)) for side in image.shape[:2])
    top, left = (round((side - kept) * (1 + place) / 2) for side, kept in zip(image.shape[:2], (height, width), strict=True))
    return np.ascontiguousarray(image[top : top + height, left : left + width])


VARIATIONS: Mapping[str, Variation] = {
    "zoom": Variation(1.0, NEAREST, "times as near", zoomed),
    "crop": Variation(-1.0, 1.0, "from upper left to lower right", moved),
    "hue": Variation(-180.0, 180.0, "degrees", recoloured),
}
"""What can be varied beside the severity of a corruption."""


def values_of(by: str, steps: int) -> list[float]:
    """The strengths a photo is shown at, evenly spaced; nearness grows by the same factor each time.

    >>> values_of("zoom", 3), values_of("fog", 9)
    ([1.0, 2.0, 4.0], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    """
    if by in CORRUPTIONS:
        return [float(severity) for severity in range(6)]
    if by not in VARIATIONS:
        raise UnknownName("variation", by, [*VARIATIONS, *CORRUPTIONS])
    if steps < 2:
        raise BadInput(f"a photo is varied in at least 2 steps, got {steps}")
    variation = VARIATIONS[by]
    spaced = np.geomspace if by == "zoom" else np.linspace
    return [round(float(value), 6) for value in spaced(variation.low, variation.high, steps)]


def unchanged_at(by: str) -> float:
    """The strength at which the photo is as it is, or nearest to it."""
    return 1.0 if by == "zoom" else 0.0


def unit_of(by: str) -> str:
    """What the strengths are counted in."""
    return VARIATIONS[by].unit if by in VARIATIONS else "severity"


@dataclass(frozen=True, slots=True)
class VariedImage:
    """The photo at one strength; its bytes are those of the photo, and how it is varied."""

    source: ImageSource
    key: str
    by: str
    value: float

    def stamp(self) -> str | None:
        stamp = self.source.stamp()
        return None if stamp is None else f"{stamp}\0{self._recipe()}"

    def read(self) -> bytes:
        return self.source.read() + self._recipe().encode()

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        photo = self.source.decode(data.removesuffix(self._recipe().encode()), decoder=decoder)
        if self.by in VARIATIONS:
            return VARIATIONS[self.by].make(photo, self.value)
        if self.value == 0:
            return photo
        from shiftproof.corruptions.applying import corrupt  # only where it is needed: it loads OpenCV

        return corrupt(photo, self.by, int(self.value), key=self.key, scale_strengths=True)

    def _recipe(self) -> str:
        return f"\0shiftproof variation {PIXELS} {self.by} {self.value}"


def varied(photo: str | Path, by: str, *, steps: int = 9) -> ImageList:
    """A photo varied step by step, as an image set with the facts `photo`, `varied` and `strength`."""
    path = Path(photo)
    if not path.is_file():
        raise BadInput(f"there is no photo at {photo}")
    source = FileImage(str(path.resolve()))
    values = {f"{path.name}/{by}/{place:02d}": value for place, value in enumerate(values_of(by, steps))}
    samples = [Sample(key, facts={"photo": path.name, "varied": by, "strength": value}) for key, value in values.items()]
    return ImageList(f"{by} of {path.name}", samples, None, lambda key: VariedImage(source, path.name, by, values[key]))
