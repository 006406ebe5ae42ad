"""Any Python function as a classifier or an object detector."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from shiftproof.datasets.classes import classes_from
from shiftproof.models.loaded import LoadedClassifier, model_ref
from shiftproof.models.object_detectors.loaded import BoxRules, Candidates, LoadedDetector
from shiftproof.models.options import ModelOptions, parse_preprocessing
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.types import Classes, Gives, Head, Inputs, Outputs, Preprocessing, Seen


def wrap_model(
    function: Callable[[Inputs], Any],
    *,
    name: str,
    version: str,
    class_names: Classes | Sequence[str] | None = None,
    size: tuple[int, int] | None = (224, 224),
    gives: Gives = "logits",
    preprocess: str | Preprocessing | None = None,
    head: Head | None = None,
    seen: Seen | str | None = None,
    batch_size: int | None = None,
    has_features: bool | None = None,
) -> LoadedClassifier:
    """The function as a classifier; it takes a batch of inputs and gives scores, or scores, features and perhaps more.

    A third item is kept beside the scores of every image: a few numbers, such as a confidence. Features may be None.

    Nobody can see inside a function, so its name and version stand for its weights: change the version whenever its
    outputs change, or old predictions will be reused as new ones. `size` is (height, width).

    >>> def mean_colour(inputs):
    ...     return inputs.mean(axis=(2, 3))
    >>> model = wrap_model(mean_colour, name="mean colour", version="1", class_names=["red", "green", "blue"])
    >>> model(np.zeros((4, 3, 224, 224), np.float32)).scores.shape
    (4, 3)
    """
    preprocessing, notes = _preprocessing(preprocess, size)

    def forward(inputs: Inputs, _features: bool) -> Outputs:
        result = function(inputs)
        scores, *more = result if isinstance(result, tuple) else (result,)
        return Outputs(np.asarray(scores), *(None if part is None else np.asarray(part) for part in more))

    return LoadedClassifier(
        ref=model_ref(name, f"{name}\0{version}", preprocessing, gives=gives),
        preprocessing=preprocessing,
        gives=gives,
        forward=forward,
        classes=None if class_names is None else classes_from(class_names),
        seen=ModelOptions(seen=seen).seen_or(),
        notes=notes,
        fixed_batch_size=batch_size,
        has_features=head is not None if has_features is None else has_features,
        read_head=lambda: head,
        for_size=lambda _: forward,
    )


def _preprocessing(
    preprocess: str | Preprocessing | None, size: tuple[int, int] | None
) -> tuple[Preprocessing, tuple[str, ...]]:
    if preprocess is not None and not isinstance(preprocess, str):
        return preprocess, ()
    preprocessing, notes = ModelOptions(preprocess=preprocess).preprocessing(None, size=size)
    return (preprocessing if size else dataclasses.replace(preprocessing, size=None, rule="none")), notes


def wrap_detector(
    function: Callable[[Inputs], Iterable[Any]],
    *,
    name: str,
    version: str,
    class_names: Classes | Sequence[str],
    size: tuple[int, int] | None = (640, 640),
    preprocess: str | ImagePreprocessing = "unit,resize=letterbox",
    score_threshold: float = 0.0,
    nms_iou: float | None = None,
    max_detections: int = BoxRules.max_detections,
    seen: Seen | str | None = None,
    batch_size: int | None = None,
) -> LoadedDetector:
    """The function as an object detector; it takes a batch of inputs and gives boxes, scores and classes of each.

    Boxes are (boxes, 4): left, top, right, bottom in pixels of the input; classes are places in `class_names`. They are
    taken as they are unless `nms_iou` is given, the IoU threshold for non-maximum suppression. Nobody can see inside a
    function, so its name and version stand for its weights. `size` is (height, width); None gives images of any size.

    >>> def whole(inputs):
    ...     return [([[0, 0, 64, 32]], [image.mean()], [0]) for image in inputs]
    >>> detector = wrap_detector(whole, name="whole", version="1", class_names=["light"], size=(64, 64))
    >>> (found,) = detector.detect(np.full((1, 3, 64, 64), 0.5), [(100, 200)])
    >>> found.boxes.tolist(), found.scores.tolist()
    ([[0.0, 0.0, 200.0, 50.0]], [0.5])
    """
    if isinstance(preprocess, str):
        preprocess = parse_preprocessing(f"{preprocess},resize=none" if size is None else preprocess, size=size)
    rules = BoxRules(score_threshold=score_threshold, nms_iou=nms_iou, max_detections=max_detections)

    def propose(inputs: Inputs) -> list[Candidates]:
        return [
            Candidates(np.reshape(boxes, (-1, 4)), np.asarray(scores, float), np.asarray(classes, int))
            for boxes, scores, classes in function(inputs)
        ]

    return LoadedDetector(
        ref=model_ref(name, f"{name}\0{version}", preprocess, rules=str(rules)),
        preprocessing=preprocess,
        propose=propose,
        rules=rules,
        classes=classes_from(class_names),
        seen=ModelOptions(seen=seen).seen_or(),
        fixed_batch_size=batch_size,
    )
