"""How the outputs of object detectors are laid out: every layout by name, what usually goes with it, and which fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from shiftproof.catalog import BOX_LAYOUTS
from shiftproof.models.candidates import Candidates
from shiftproof.models.grid_boxes import STRIDES, Asked, RawOutputs, cell_count

Decode: TypeAlias = Callable[[RawOutputs, Asked], Sequence[Candidates]]
"""What a network gave to a batch, as the boxes it proposes in each image."""

Shape: TypeAlias = tuple[int | str | None, ...]
"""Sizes of an output, where they are known."""


class Usual(NamedTuple):
    """What goes with a layout where nothing else is said."""

    prepare: str
    overlap: float | None = None  # None: the network gives each object once
    several: bool = False
    axes: int | None = None  # that the output with a number a class has; None: there is none
    axis: int = 2  # the one of the classes
    beside: int = 0  # numbers along it that are not classes


USUAL: Mapping[str, Usual] = {
    # the figures are those of each project's own evaluation on COCO
    "yolox": Usual("yolox", 0.65, axes=3, beside=5),
    "yolox-decoded": Usual("yolox", 0.65, axes=3, beside=5),
    "yolov5": Usual("yolov5", 0.6, several=True, axes=3, beside=5),
    "yolov8": Usual("yolov8", 0.7, several=True, axes=3, axis=1, beside=4),
    "fastestdet": Usual("fastestdet", 0.45, axes=4, axis=1, beside=5),
    "end2end": Usual("yolov5"),
    "ssd": Usual("bytes,resize=squash"),
    "detr": Usual("squash,size=800", axes=3, beside=1),
    "rtdetr": Usual("unit,resize=squash,size=640", several=True, axes=3),
}
OTHER = Usual("yolov5", 0.65)
"""For layouts that installed packages bring."""


def decoder_of(layout: str) -> Decode:
    """The function that reads this layout; UnknownName where there is none."""
    decode: Decode = BOX_LAYOUTS.load(layout)
    return decode


def usual_for(layout: str) -> Usual:
    """What goes with this layout."""
    return USUAL.get(layout, OTHER)


def class_count(layout: str, shapes: Mapping[str, Shape]) -> int | None:
    """How many classes the outputs tell apart; None where their shapes do not say."""
    usual = usual_for(layout)
    if usual.axes is None:
        return None
    of_classes = [shape for name, shape in shapes.items() if len(shape) == usual.axes and "box" not in name.lower()]
    numbers = of_classes[0][usual.axis] if of_classes else None
    return numbers - usual.beside if isinstance(numbers, int) else None


def may_be(layout: str, shapes: Mapping[str, Shape], fitting: str | None) -> bool:
    """Whether outputs of these shapes, which fit another layout or none, can hold this one, as far as that is known.

    >>> may_be("yolox", {"logits": (1, 1000)}, None), may_be("yolov5", {"output": (1, 3549, 85)}, "yolox")
    (False, True)
    """
    usual = usual_for(layout)
    if usual.axes is None:
        return True
    if all(shape and len(shape) != usual.axes for shape in shapes.values()):
        return False
    other = USUAL.get(fitting or "", usual)
    return other.axes != usual.axes or other.axis == usual.axis


def readable_shape(shape: Shape) -> str:
    """A shape as one reads it.

    >>> readable_shape(("boxes", None, 4))
    '(boxes, ?, 4)'
    """
    return f"({', '.join('?' if size is None else str(size) for size in shape)})"


def guess_layout(
    shapes: Mapping[str, Shape], size: tuple[int, int] | None, *, suppresses: bool = False, decodes: bool = False
) -> str | None:
    """The layout that outputs of these shapes have, for inputs of this height and width; None where they fit none for sure.

    `suppresses` says that the network drops doubled boxes itself, `decodes` that it takes powers, as of sides.

    >>> guess_layout({"output": (1, 3549, 85)}, (416, 416)), guess_layout({"logits": (1, 1000)}, (224, 224))
    ('yolox', None)
    """
    named = " ".join(shapes).lower()
    if "detection_boxes" in named:
        return "ssd"
    if len(shapes) > 1 and "box" in named and any(word in named for word in ("label", "class")):
        return "end2end"
    if len(shapes) > 1 and "pred_boxes" in named:
        return {92: "detr", 80: "rtdetr"}.get(_width(shapes, of="logits"))
    if suppresses:
        return "end2end"
    return next(filter(None, (_dense(shape, size, decodes) for shape in shapes.values())), None)


def _width(shapes: Mapping[str, Shape], *, of: str) -> int:
    width = next((shape[-1] for name, shape in shapes.items() if of in name.lower()), None)
    return width if isinstance(width, int) else 0


def _dense(shape: Shape, size: tuple[int, int] | None, decodes: bool) -> str | None:
    if size is None:
        return None
    cells = cell_count(size)
    match shape:
        case (_, int(boxes), int(numbers)) if boxes == cells and numbers > 5:
            return "yolox-decoded" if decodes else "yolox"
        case (_, int(boxes), int(numbers)) if boxes == 3 * cells and numbers > 5:
            return "yolov5"
        case (_, int(numbers), int(boxes)) if boxes == cells and numbers > 4:
            return "yolov8"
        case (_, int(boxes), 6) if boxes < cells:
            return "end2end"
        case (_, int(numbers), int(rows), int(columns)) if numbers > 5 and (rows, columns) == _middle_grid(size):
            return "fastestdet"
        case _:
            return None


def _middle_grid(size: tuple[int, int]) -> tuple[int, int]:
    return size[0] // STRIDES[1], size[1] // STRIDES[1]
