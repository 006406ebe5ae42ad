"""Occlusion: how much less likely a class becomes when a part of the image is hidden (Zeiler and Fergus, 2014)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.metrics.calibration import to_probabilities
from shiftproof.models.looks import AskedClasses, HeatMaps
from shiftproof.types import Classifier, Inputs

CELLS = 7
"""Rows and columns of the map: 49 passes an image, and about what the last layer of a network has."""

GREY = 128


def occlusion(model: Classifier, inputs: Inputs, classes: AskedClasses) -> HeatMaps:
    """What each class loses in probability behind a grey square around each cell, twice as wide as it; gains are 0.

    Of a model that gives neither logits nor probabilities it is what the class loses in score.
    """
    channels_last = getattr(model.preparation, "layout", "nchw") == "nhwc"
    height, width = inputs.shape[1:3] if channels_last else inputs.shape[2:4]
    grey = model.preparation.from_picture(np.full((height, width, 3), GREY, np.uint8))
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
