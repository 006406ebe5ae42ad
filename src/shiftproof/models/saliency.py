"""Saliency maps: how much each part of an image supports a class, by whichever method a model allows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput, UnknownName
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.types import Classifier, Inputs

Saliency: TypeAlias = NDArray[np.floating]
"""How much each part of an image supports a class, (images, classes, rows, columns), nothing below 0.

Rows and columns share out the model's input evenly; the scale differs from one method to another.
"""

AskedClasses: TypeAlias = NDArray[np.integer]
"""Classes to explain in each image, (images, classes): columns of the model's scores."""

SaliencyMethod: TypeAlias = Callable[[Inputs, AskedClasses], Saliency]


@dataclass
class LazySaliency:
    """A saliency method that is made when it is first used."""

    make: Callable[[], SaliencyMethod]

    def __call__(self, inputs: Inputs, classes: AskedClasses) -> Saliency:
        return self._made(inputs, classes)

    @cached_property
    def _made(self) -> SaliencyMethod:
        return self.make()


CELLS = 7
"""Rows and columns of the map: 49 passes an image, and about what the last layer of a network has."""

GREY = 128


def occlusion(model: Classifier, inputs: Inputs, classes: AskedClasses) -> Saliency:
    """Occlusion (Zeiler and Fergus, 2014): what a class loses in probability behind a grey square around each cell.

    Squares are twice as wide as cells; gains are 0.

    Of a model that gives neither logits nor probabilities it is what the class loses in score.
    """
    channels_last = model.preprocessing.layout == "nhwc"
    height, width = inputs.shape[1:3] if channels_last else inputs.shape[2:4]
    grey = model.preprocessing.from_picture(np.full((height, width, 3), GREY, np.uint8))
    before = _chances(model, inputs, classes)
    rows, columns = _squares(height), _squares(width)
    heat = np.zeros((*classes.shape, len(rows), len(columns)), np.float32)
    for row, vertical in enumerate(rows):
        for column, horizontal in enumerate(columns):
            place = (vertical, horizontal) if channels_last else (slice(None), vertical, horizontal)
            hidden = np.array(inputs)
            hidden[(slice(None), *place)] = grey[place]
            heat[:, :, row, column] = before - _chances(model, hidden, classes)
    return np.maximum(heat, 0)


def _squares(side: int) -> list[slice]:
    """What is hidden along one side for each cell: half a cell more than it at both ends.

    >>> _squares(14)[:3], _squares(14)[-1]
    ([slice(0, 3, None), slice(1, 5, None), slice(3, 7, None)], slice(11, 14, None))
    """
    cells = min(CELLS, side)
    edges = np.linspace(0, side, 2 * cells + 1).round().astype(int)
    return [slice(int(edges[max(0, 2 * cell - 1)]), int(edges[min(2 * cells, 2 * cell + 3)])) for cell in range(cells)]


def _chances(model: Classifier, inputs: Inputs, classes: AskedClasses) -> NDArray[np.floating]:
    scores = model(inputs).scores
    chances = scores if model.gives == "scores" else to_probabilities(scores, model.gives)
    return np.take_along_axis(chances, classes, axis=1)


METHODS: Mapping[str, str] = {
    "grad-cam": "Grad-CAM of the last layer with rows and columns (Selvaraju et al., 2017)",
    "class-activation": "class activation of the layer before global pooling (Zhou et al., 2016)",
    "occlusion": f"loss of probability behind a grey square, at {CELLS} x {CELLS} places (Zeiler and Fergus, 2014)",
}
"""Every method, the most telling first."""


def saliency_maps(model: Classifier, inputs: Inputs, classes: AskedClasses, *, method: str | None = None) -> Saliency:
    """Saliency maps of each input for each of the classes named for it.

    >>> import numpy as np
    >>> from shiftproof.models.wrapped import wrap_model
    >>> model = wrap_model(lambda inputs: inputs[:, :2, :, 0].mean(axis=2), name="left edge", version="1", size=(14, 14))
    >>> heat = saliency_maps(model, np.ones((1, 3, 14, 14), np.float32), np.array([[0]]))
    >>> heat.shape, (heat.sum(axis=(0, 1, 2)) > 0).tolist()
    ((1, 1, 7, 7), [True, False, False, False, False, False, False])
    """
    if len(classes) != len(inputs) or classes.ndim != 2:
        raise BadInput(f"expected (images, classes) for {len(inputs)} images, got shape {classes.shape}")
    return _ways(model)[method_for(model, method)](inputs, classes)


def method_for(model: Classifier, method: str | None = None) -> str:
    """The method of this name, or the best that the model allows; BadInput where it does not allow it."""
    ways = _ways(model)
    if method is None:
        return next(name for name in METHODS if name in ways)
    if method not in METHODS:
        raise UnknownName("saliency method", method, METHODS)
    if method not in ways:
        raise BadInput(f"{model.ref.name} does not allow {method}; it allows {' and '.join(ways)}")
    return method


def _ways(model: Classifier) -> dict[str, SaliencyMethod]:
    inside = model.saliency if isinstance(model, LoadedClassifier) else {}
    return {**inside, "occlusion": partial(occlusion, model)}
