"""Any Python function as an object detector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from shiftproof.class_lists import classes_from
from shiftproof.models.candidates import BoxRules, Candidates
from shiftproof.models.loaded import model_ref
from shiftproof.models.loaded_detector import LoadedDetector
from shiftproof.models.options import ModelOptions
from shiftproof.models.preparation import ImagePreparation
from shiftproof.models.presets import parse_preparation
from shiftproof.types import Classes, Inputs, Seen


def wrap_detector(
    function: Callable[[Inputs], Iterable[Any]],
    *,
    name: str,
    version: str,
    class_names: Classes | Sequence[str],
    size: tuple[int, int] | None = (640, 640),
    prepare: str | ImagePreparation = "unit,resize=letterbox",
    least_score: float = 0.0,
    overlap: float | None = None,
    most: int = BoxRules.most,
    seen: Seen | str | None = None,
    batch_size: int | None = None,
) -> LoadedDetector:
    """The function as an object detector; it takes a batch of inputs and gives boxes, scores and classes of each.

    Boxes are (boxes, 4): left, top, right, bottom in pixels of the input; classes are places in `class_names`. They are
    taken as they are unless an `overlap` is named above which the less sure of two is dropped. Nobody can see inside a
    function, so its name and version stand for its weights. `size` is (height, width); None gives images of any size.

    >>> def whole(inputs):
    ...     return [([[0, 0, 64, 32]], [image.mean()], [0]) for image in inputs]
    >>> detector = wrap_detector(whole, name="whole", version="1", class_names=["light"], size=(64, 64))
    >>> (found,) = detector.detect(np.full((1, 3, 64, 64), 0.5), [(100, 200)])
    >>> found.boxes.tolist(), found.scores.tolist()
    ([[0.0, 0.0, 200.0, 50.0]], [0.5])
    """
    if isinstance(prepare, str):
        prepare = parse_preparation(f"{prepare},resize=none" if size is None else prepare, size=size)
    rules = BoxRules(least_score=least_score, overlap=overlap, most=most)

    def propose(inputs: Inputs) -> list[Candidates]:
        return [
            Candidates(np.reshape(boxes, (-1, 4)), np.asarray(scores, float), np.asarray(classes, int))
            for boxes, scores, classes in function(inputs)
        ]

    return LoadedDetector(
        ref=model_ref(name, f"{name}\0{version}", prepare, rules=str(rules)),
        preparation=prepare,
        propose=propose,
        rules=rules,
        classes=classes_from(class_names),
        seen=ModelOptions(seen=seen).seen_or(),
        batch_size=batch_size,
    )
