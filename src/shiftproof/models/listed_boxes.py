"""What networks say that list their boxes themselves, as boxes in pixels of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput
from shiftproof.models.candidates import Candidates
from shiftproof.models.grid_boxes import Asked, RawOutputs, corners
from shiftproof.types import Boxes

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


def end2end(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:
    """Boxes chosen inside the network, corners in pixels: rows of 7 or 6 numbers, or boxes, scores and classes apart."""
    if len(outputs) > 1:
        return _parts(outputs).each()
    (rows,) = outputs.values()
    if rows.ndim == 2 and rows.shape[1] == 7:  # number of the image, corners, class, score
        of_image = [rows[rows[:, 0] == image] for image in range(asked.images)]
        return [Candidates(mine[:, 1:5], mine[:, 6], mine[:, 5].astype(int)) for mine in of_image]
    if rows.ndim == 3 and rows.shape[2] == 6:  # corners, score, class
        return [Candidates(mine[:, :4], mine[:, 4], mine[:, 5].astype(int)) for mine in rows]
    raise BadInput(f"a list of boxes should be (boxes, 7) or (images, boxes, 6), got {rows.shape}")


def ssd(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:
    """TensorFlow's detectors: boxes as top, left, bottom, right in shares of the input, with scores, classes and counts."""
    parts = _parts(outputs)
    boxes = parts.boxes[..., [1, 0, 3, 2]] * [asked.width, asked.height, asked.width, asked.height]
    return parts._replace(boxes=boxes).each()


def detr(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:
    """DETR: logits of the classes and of no object, (images, boxes, classes + 1), and middles and sides in shares."""
    logits, boxes = _logits_and_boxes(outputs, asked)
    powers = np.exp(logits - logits.max(axis=2, keepdims=True))
    shares = powers / powers.sum(axis=2, keepdims=True)
    return [Candidates(*image) for image in zip(boxes, shares[..., :-1], strict=True)]


def rtdetr(outputs: RawOutputs, asked: Asked) -> Sequence[Candidates]:
    """RT-DETR and others of its family: logits of the classes alone, each for itself, and middles and sides in shares."""
    logits, boxes = _logits_and_boxes(outputs, asked)
    return [Candidates(*image) for image in zip(boxes, 1 / (1 + np.exp(-logits)), strict=True)]


def _logits_and_boxes(outputs: RawOutputs, asked: Asked) -> tuple[NDArray[np.floating], Boxes]:
    rows = {name: array for name, array in outputs.items() if array.ndim == 3}
    boxes = _part(rows, "boxes")
    others = [name for name, array in rows.items() if array is not boxes]
    if boxes is None or boxes.shape[2] != 4 or not others:
        shapes = ", ".join(str(array.shape) for array in outputs.values())
        raise BadInput(f"this layout wants logits (images, boxes, classes) and boxes (images, boxes, 4), got {shapes}")
    logits = np.asarray(rows[_logits_among(others)], float)
    size = np.array([asked.width, asked.height])
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
    boxes = boxes.reshape(-1, *boxes.shape[-2:])
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
