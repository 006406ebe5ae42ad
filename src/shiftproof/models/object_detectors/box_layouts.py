"""Layouts of object detectors' outputs: how each is decoded into boxes, what goes with it, and which one fits."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.catalog import BOX_LAYOUTS
from shiftproof.datasets.classes import ClassList, coco_classes, numbered_coco_classes
from shiftproof.errors import BadInput, listed
from shiftproof.models.object_detectors.loaded import BatchShape, BoxRules, Candidates
from shiftproof.models.options import ModelOptions, parse_preprocessing
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Boxes, Classes

RawOutputs: TypeAlias = Mapping[str, NDArray[np.generic]]
"""A network's outputs by name, in their order."""

STRIDES = (8, 16, 32)
"""Pixels of the input that a cell of each grid is wide."""

LARGEST_LOG = 20
"""No side is e^20 cells long."""


def yolox(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:
    """YOLOX as exported: (images, cells, 5 + classes), centre offsets and log sizes in grid cells, objectness, classes."""
    rows = _array(outputs, axes=3)
    cells = _cells(batch)
    if rows.shape[1] != len(cells):
        raise BadInput(f"yolox should give {len(cells)} boxes of {batch.height}x{batch.width} inputs, got {rows.shape[1]}")
    if rows[..., 2:4].max(initial=0) > LARGEST_LOG:
        raise BadInput("the boxes look like pixels, not like cells of a grid; say yolox-decoded")
    places, stride = cells[:, :2], cells[:, 2:]
    boxes = corners((rows[..., :2] + places) * stride, np.exp(rows[..., 2:4]) * stride)
    return _each(boxes, rows[..., 4:5] * rows[..., 5:])


def yolov5(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:  # noqa: ARG001 a layout
    """YOLOv5 to v7, YOLOX decoded in its export: (images, boxes, 5 + classes), cxcywh in pixels, objectness, classes."""
    rows = _array(outputs, axes=3)
    return _each(corners(rows[..., :2], rows[..., 2:4]), rows[..., 4:5] * rows[..., 5:])


def yolov8(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:  # noqa: ARG001 a layout
    """YOLOv8, v9 and v11: (images, 4 + classes, boxes), cxcywh in pixels, classes."""
    rows = _array(outputs, axes=3).transpose(0, 2, 1)
    return _each(corners(rows[..., :2], rows[..., 2:4]), rows[..., 4:])


def fastestdet(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:
    """FastestDet: (images, 5 + classes, rows, columns), objectness, centre offset, size, classes."""
    maps = _array(outputs, axes=4)
    images, numbers, rows, columns = maps.shape
    across, down = np.meshgrid(np.arange(columns), np.arange(rows))
    maps = maps.reshape(images, numbers, -1).transpose(0, 2, 1)
    size = np.array([batch.width, batch.height])
    places = np.stack([across.ravel(), down.ravel()], axis=1)
    middles = (places + np.tanh(maps[..., 1:3])) / [columns, rows] * size
    boxes = corners(middles, size / (1 + np.exp(-maps[..., 3:5])))
    return _each(boxes, maps[..., :1] ** 0.6 * maps[..., 5:] ** 0.4)


def _array(outputs: RawOutputs, *, axes: int) -> NDArray[np.floating]:
    """The first output with so many axes."""
    fitting = [array for array in outputs.values() if array.ndim == axes]
    if not fitting:
        shapes = ", ".join(str(array.shape) for array in outputs.values())
        raise BadInput(f"no output has {axes} axes, as this layout of boxes wants; there are {shapes}")
    return np.asarray(fitting[0], np.float32)


def _cells(batch: BatchShape) -> NDArray[np.floating]:
    """Column, row and stride of every cell, row by row, the finest grid first."""
    grids = []
    for stride in STRIDES:
        rows, columns = np.mgrid[0 : batch.height // stride, 0 : batch.width // stride]
        grids.append(np.stack([columns.ravel(), rows.ravel(), np.full(rows.size, stride)], axis=1))
    return np.concatenate(grids).astype(float)


def cell_count(size: tuple[int, int]) -> int:
    """How many cells the three grids of an input of this height and width have.

    >>> cell_count((416, 416))
    3549
    """
    return sum((size[0] // stride) * (size[1] // stride) for stride in STRIDES)


def corners(middles: NDArray[np.floating], sides: NDArray[np.floating]) -> Boxes:
    return np.concatenate([middles - sides / 2, middles + sides / 2], axis=-1)


def _each(boxes: Boxes, scores: NDArray[np.floating]) -> Sequence[Candidates]:
    """One image after the other."""
    return [Candidates(*image) for image in zip(boxes, scores, strict=True)]


Decode: TypeAlias = Callable[[RawOutputs, BatchShape], Sequence[Candidates]]
"""A network's outputs for a batch as the boxes it proposes in each image, in pixels of the input."""

Shape: TypeAlias = tuple[int | str | None, ...]
"""Sizes of an output, where they are known."""


@dataclass(frozen=True)
class BoxLayout:
    """How a network's outputs are decoded, and what goes with it where nothing else is said."""

    decode: Decode
    preprocess: str = "yolov5"
    nms_iou: float | None = 0.65  # None: the network outputs each object once
    several: bool = False  # whether a box counts for every class above the score threshold
    axes: int | None = None  # of the output that has a number a class; None: there is none
    axis: int = 2  # the one of the classes
    beside: int = 0  # numbers along it that are not classes

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", self.decode.__doc__)

    def __call__(self, outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:
        return self.decode(outputs, batch)


def layout_of(name: str) -> BoxLayout:
    """The layout of this name; an installed package may also bring a plain function. UnknownName where there is none."""
    found = BOX_LAYOUTS.load(name)
    return found if isinstance(found, BoxLayout) else BoxLayout(found)


def class_count(layout: str, shapes: Mapping[str, Shape]) -> int | None:
    """How many classes the outputs tell apart; None where their shapes do not say."""
    usual = layout_of(layout)
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
    usual = layout_of(layout)
    if usual.axes is None:
        return True
    if all(shape and len(shape) != usual.axes for shape in shapes.values()):
        return False
    other = layout_of(fitting) if fitting else usual
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


WORDS = {"counts": ("num",), "boxes": ("box", "dets"), "scores": ("score", "conf"), "classes": ("class", "label")}
"""What outputs are called that hold each part, the first that fits: num_dets are counts."""


class _Parts(NamedTuple):
    """A list of boxes for each image, the shorter ones filled up to the longest."""

    boxes: Boxes  # (images, boxes, 4)
    scores: NDArray[np.floating]  # (images, boxes)
    classes: NDArray[np.integer]  # (images, boxes)
    counts: NDArray[np.integer]  # (images,)

    def each(self) -> Sequence[Candidates]:
        columns = zip(self.boxes, self.scores, self.classes, strict=True)
        return [Candidates(*(column[:count] for column in image)) for image, count in zip(columns, self.counts, strict=True)]


def end2end(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:
    """NMS inside the network, xyxy in pixels: rows of 7 or 6 numbers, or boxes, scores and classes apart."""
    if len(outputs) > 1:
        return _parts(outputs).each()
    (rows,) = outputs.values()
    if rows.ndim == 2 and rows.shape[1] == 7:  # number of the image, corners, class, score
        of_image = [rows[rows[:, 0] == image] for image in range(batch.images)]
        return [Candidates(mine[:, 1:5], mine[:, 6], mine[:, 5].astype(int)) for mine in of_image]
    if rows.ndim == 3 and rows.shape[2] == 6:  # corners, score, class
        return [Candidates(mine[:, :4], mine[:, 4], mine[:, 5].astype(int)) for mine in rows]
    raise BadInput(f"a list of boxes should be (boxes, 7) or (images, boxes, 6), got {rows.shape}")


def ssd(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:
    """TensorFlow's detectors: boxes yxyx normalised to 0..1, with scores, classes and counts."""
    parts = _parts(outputs)
    boxes = parts.boxes[..., [1, 0, 3, 2]] * [batch.width, batch.height, batch.width, batch.height]
    return parts._replace(boxes=boxes).each()


def detr(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:
    """DETR: logits of the classes and of no object, (images, boxes, classes + 1), and cxcywh normalised to 0..1."""
    logits, boxes = _logits_and_boxes(outputs, batch)
    powers = np.exp(logits - logits.max(axis=2, keepdims=True))
    shares = powers / powers.sum(axis=2, keepdims=True)
    return [Candidates(*image) for image in zip(boxes, shares[..., :-1], strict=True)]


def rtdetr(outputs: RawOutputs, batch: BatchShape) -> Sequence[Candidates]:
    """RT-DETR and others of its family: independent logits of the classes, and cxcywh normalised to 0..1."""
    logits, boxes = _logits_and_boxes(outputs, batch)
    return [Candidates(*image) for image in zip(boxes, 1 / (1 + np.exp(-logits)), strict=True)]


def _logits_and_boxes(outputs: RawOutputs, batch: BatchShape) -> tuple[NDArray[np.floating], Boxes]:
    rows = {name: array for name, array in outputs.items() if array.ndim == 3}
    boxes = _part(rows, "boxes")
    others = [name for name, array in rows.items() if array is not boxes]
    if boxes is None or boxes.shape[2] != 4 or not others:
        shapes = ", ".join(str(array.shape) for array in outputs.values())
        raise BadInput(f"this layout wants logits (images, boxes, classes) and boxes (images, boxes, 4), got {shapes}")
    logits = np.asarray(rows[_logits_among(others)], float)
    size = np.array([batch.width, batch.height])
    return logits, corners(np.asarray(boxes[..., :2], float) * size, np.asarray(boxes[..., 2:], float) * size)


def _logits_among(names: Sequence[str]) -> str:
    """The name of the output that holds logits, or the first."""
    return next((name for name in names if "logits" in name.lower()), names[0])


def _parts(outputs: RawOutputs) -> _Parts:
    found = {part: _part(outputs, part) for part in WORDS}
    boxes = found["boxes"]
    if boxes is None or found["classes"] is None or (found["scores"] is None and boxes.shape[-1] != 5):
        named = ", ".join(f"{name} {array.shape}" for name, array in outputs.items())
        raise BadInput(f"boxes, scores and classes should be among the outputs, by name or by form; there are {named}")
    # without an axis of images they are all of one image
    boxes = boxes.reshape(math.prod(boxes.shape[:-2]), *boxes.shape[-2:])
    images, longest = boxes.shape[:2]
    # some exports put the score behind the corners
    scores = boxes[..., 4] if found["scores"] is None else found["scores"].reshape(images, longest)
    counts = np.full(images, longest) if found["counts"] is None else found["counts"].reshape(images).astype(int)
    classes = found["classes"].reshape(images, longest).astype(int)
    return _Parts(np.asarray(boxes[..., :4], float), np.asarray(scores, float), classes, counts)


def _part(outputs: RawOutputs, part: str) -> NDArray[np.generic] | None:
    """The output that holds a part: called so, of several the shortest name; else the one of the fitting form."""
    called = [name for name in outputs if _part_by_name(name) == part]
    if called:
        return outputs[min(called, key=len)]
    fitting = [array for name, array in outputs.items() if _part_by_name(name) is None and _part_by_form(array) == part]
    return fitting[0] if fitting else None


def _part_by_name(name: str) -> str | None:
    return next((part for part, words in WORDS.items() if any(word in name.lower() for word in words)), None)


def _part_by_form(array: NDArray[np.generic]) -> str:
    if array.ndim > 1 and array.shape[-1] in (4, 5) and array.dtype.kind == "f":
        return "boxes"
    if array.dtype.kind == "f":
        return "scores"
    return "counts" if array.ndim == 2 and array.shape[1] == 1 else "classes"


# NMS thresholds and preprocessing are those of each project's own evaluation on COCO
YOLOX = BoxLayout(yolox, "yolox", 0.65, axes=3, beside=5)
YOLOX_DECODED = BoxLayout(yolov5, "yolox", 0.65, axes=3, beside=5)
YOLOV5 = BoxLayout(yolov5, "yolov5", 0.6, several=True, axes=3, beside=5)
YOLOV8 = BoxLayout(yolov8, "yolov8", 0.7, several=True, axes=3, axis=1, beside=4)
FASTESTDET = BoxLayout(fastestdet, "fastestdet", 0.45, axes=4, axis=1, beside=5)
END2END = BoxLayout(end2end, "yolov5", None)
SSD = BoxLayout(ssd, "bytes,resize=squash", None)
DETR = BoxLayout(detr, "squash,size=800", None, axes=3, beside=1)
RTDETR = BoxLayout(rtdetr, "unit,resize=squash,size=640", None, several=True, axes=3)


def layout_among(options: ModelOptions, shapes: Mapping[str, Shape], fitting: str | None) -> tuple[str, tuple[str, ...]]:
    """The layout of outputs of these shapes, and a note where nobody named it, or another fits; BadInput where none does."""
    told = listed([readable_shape(shape) for shape in shapes.values()])
    if options.boxes is not None:
        if not may_be(options.boxes, shapes, fitting):
            advice = f"they look like {fitting}" if fitting else "if it is a classifier, leave --boxes out"
            raise BadInput(f"outputs {told} are not laid out as {options.boxes}; {advice}")
        doubt = f"outputs {told} are read as {options.boxes}, as asked, but look like {fitting}"
        return options.boxes, (doubt,) if fitting not in (None, options.boxes) else ()
    if fitting is None:
        raise BadInput(f"how are boxes laid out in {told}? say --boxes with one of {', '.join(BOX_LAYOUTS)}")
    return fitting, (f"outputs {told} read as {fitting}; --boxes names another layout",)


def usual_preprocessing(options: ModelOptions, layout: str) -> tuple[ImagePreprocessing, tuple[str, ...]]:
    """The usual preprocessing for a layout, and a note where the user says nothing of it."""
    usual = layout_of(layout).preprocess
    note = f"preprocessing is {usual}, as is usual for {layout}; --preprocess changes it"
    return parse_preprocessing(usual), (note,) if options.preprocess is None else ()


def classes_of_boxes(
    options: ModelOptions, count: int | None, own: ClassList | None = None
) -> tuple[Classes | None, tuple[str, ...]]:
    """What the numbers of classes mean, and a note where it was assumed."""
    coco = {len(classes): classes for classes in (coco_classes(), numbered_coco_classes())}
    if options.classes is None and own is None and count in coco:
        order = "in a row" if count == len(coco_classes()) else "by their numbers"
        return coco[count], (f"{count} classes taken as those of COCO {order}; --classes names others",)
    return options.classes_of(count, own)


def rules_of_boxes(options: ModelOptions, layout: str) -> BoxRules:
    """When a box counts, by the user's word or as is usual for the layout."""
    usual = layout_of(layout)
    return BoxRules(
        score_threshold=BoxRules.score_threshold if options.score_threshold is None else options.score_threshold,
        nms_iou=usual.nms_iou if options.nms_iou is None else options.nms_iou,
        max_detections=BoxRules.max_detections if options.max_detections is None else options.max_detections,
        several=usual.several if options.several is None else options.several,
    )
