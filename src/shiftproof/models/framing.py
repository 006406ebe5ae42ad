"""Which part of an image a model's input shows, for every rule of resizing, cropping and padding."""

from __future__ import annotations

from typing import Literal, NamedTuple

from shiftproof.types import CORNERS, Image

Pad = Literal["corner", "centre"]
"""Where a letterbox puts the image: into the top left corner, or in the middle."""

Size = tuple[int, int]
"""Height, width."""

LONGEST = 64
"""How many times as long as wide an image may be and still be resized whole."""


class Frame(NamedTuple):
    """A part of an image, the size it is resized to, and where in that the input begins; before it, where padded."""

    start: Size  # top, left
    size: Size
    resized: Size
    corner: Size = (0, 0)  # top, left

    def taken_from(self, image: Image) -> Image:
        """The part of the image that is resized."""
        return part_of(image, self.start, self.size)

    def window(self, input_size: Size) -> tuple[float, float, float, float]:
        """The region of the image that an input of this size shows: left, top, right, bottom."""
        (top, bottom), (left, right) = (
            tuple(start + place * size / resized for place in (corner, corner + shown))
            for start, size, resized, corner, shown in zip(*self, input_size, strict=True)
        )
        return left, top, right, bottom


def whole(height: int, width: int, resized: Size) -> Frame:
    """All of the image, squashed to another size."""
    return Frame((0, 0), (height, width), resized)


def shorter_side(height: int, width: int, shorter: int, input_size: Size) -> Frame:
    """The centre of an image whose shorter side is resized to so many pixels.

    Of an image too long for its width only the middle is resized, far more than the centre: whole, a strip of
    1 x 60,000 pixels would fill the memory.
    """
    most = LONGEST * min(height, width)
    start = (max(0, height - most) // 2, max(0, width - most) // 2)
    height, width = min(height, most), min(width, most)
    # the longer side is cut to whole pixels, not rounded: the published way
    resized = (max(shorter, int(shorter * height / width)), max(shorter, int(shorter * width / height)))
    corner = (round((resized[0] - input_size[0]) / 2), round((resized[1] - input_size[1]) / 2))
    return Frame(start, (height, width), resized, corner)


def centre_square(height: int, width: int, share: float, input_size: Size) -> Frame:
    """The square in the centre that is `share` times as long as the image's shorter side."""
    side = max(1, int(share * min(height, width)))
    return Frame(((height - side + 1) // 2, (width - side + 1) // 2), (side, side), input_size)


def letterbox(height: int, width: int, input_size: Size, pad: Pad) -> Frame:
    """All of the image, as large as it fits, its shape kept.

    In a corner the other side is cut to whole pixels, in the middle it is rounded: what YOLOX and YOLOv5 do.
    """
    scale = min(input_size[0] / height, input_size[1] / width)
    whole_pixels = int if pad == "corner" else round
    resized = (max(1, whole_pixels(height * scale)), max(1, whole_pixels(width * scale)))
    spare = (input_size[0] - resized[0], input_size[1] - resized[1])
    corner = (0, 0) if pad == "corner" else (-(spare[0] // 2), -(spare[1] // 2))
    return Frame((0, 0), (height, width), resized, corner)


def corners_within(size: Size, part: Size) -> dict[str, Size]:
    """Where a part of an image begins that lies in each of its corners: top, left.

    >>> corners_within((256, 341), (224, 224))
    {'top left': (0, 0), 'top right': (0, 117), 'bottom left': (32, 0), 'bottom right': (32, 117)}
    """
    lowest, rightmost = size[0] - part[0], size[1] - part[1]
    return dict(zip(CORNERS, [(0, 0), (0, rightmost), (lowest, 0), (lowest, rightmost)], strict=True))


def part_of(image: Image, start: Size, size: Size) -> Image:
    """So much of an image, from its top and left on."""
    (top, left), (height, width) = start, size
    return image[top : top + height, left : left + width]
