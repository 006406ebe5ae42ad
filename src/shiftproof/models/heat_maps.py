"""Where a model looks when it thinks of a class, by whatever way the model allows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.looks import AskedClasses, HeatMaps, Look
from shiftproof.models.occlusion import CELLS, occlusion
from shiftproof.types import Classifier, Inputs

METHODS: Mapping[str, str] = {
    "grad-cam": "Grad-CAM of the last layer with rows and columns (Selvaraju et al., 2017)",
    "class-activation": "class activation of the layer before global pooling (Zhou et al., 2016)",
    "occlusion": f"loss of probability behind a grey square, at {CELLS} x {CELLS} places (Zeiler and Fergus, 2014)",
}
"""Every way of looking, the one first that tells most where a model allows several."""


def heat_maps(model: Classifier, inputs: Inputs, classes: AskedClasses, *, method: str | None = None) -> HeatMaps:
    """How much each part of each prepared image speaks for each of the classes asked of it.

    >>> import numpy as np
    >>> from shiftproof.models.wrapped import wrap_model
    >>> model = wrap_model(lambda inputs: inputs[:, :2, :, 0].mean(axis=2), name="left edge", version="1", size=(14, 14))
    >>> heat = heat_maps(model, np.ones((1, 3, 14, 14), np.float32), np.array([[0]]))
    >>> heat.shape, (heat.sum(axis=(0, 1, 2)) > 0).tolist()
    ((1, 1, 7, 7), [True, False, False, False, False, False, False])
    """
    if len(classes) != len(inputs) or classes.ndim != 2:
        raise BadInput(f"expected (images, classes) for {len(inputs)} images, got shape {classes.shape}")
    return _ways(model)[method_for(model, method)](inputs, classes)


def method_for(model: Classifier, asked: str | None = None) -> str:
    """The way that was asked for, or the best that the model allows; BadInput where it does not allow it."""
    ways = _ways(model)
    if asked is None:
        return next(name for name in METHODS if name in ways)
    if asked not in METHODS:
        raise UnknownName("heat map", asked, METHODS)
    if asked not in ways:
        raise BadInput(f"{model.ref.name} does not allow {asked}; it allows {' and '.join(ways)}")
    return asked


def _ways(model: Classifier) -> dict[str, Look]:
    inside = model.looks if isinstance(model, LoadedClassifier) else {}
    return {**inside, "occlusion": partial(occlusion, model)}
