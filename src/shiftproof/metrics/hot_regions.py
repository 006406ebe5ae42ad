"""Whether heat lies on the object: the hottest point, the hottest region and all of the heat, against what is inside.

Heat is (images, rows, columns), nothing below 0; inside says of every place whether it belongs to the object.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shiftproof.errors import BadInput

Heat = NDArray[np.floating]
"""(images, rows, columns), nothing below 0."""

Inside = NDArray[np.bool_]
"""(images, rows, columns)."""


def heat_inside(heat: Heat, inside: Inside) -> NDArray[np.floating]:
    """Share of each map's heat that lies inside, (images,); nan for a map without heat.

    1 is all of it. What chance would give is the share of places that are inside.

    >>> heat_inside(np.array([[[3.0, 1.0], [0.0, 0.0]]]), np.array([[[True, False], [True, False]]]))
    array([0.75])
    """
    _check(heat, inside)
    totals = heat.sum(axis=(1, 2))
    held = np.where(inside, heat, 0).sum(axis=(1, 2))
    return np.asarray(np.divide(held, totals, out=np.full(len(heat), np.nan), where=totals > 0))


def hot_point_inside(heat: Heat, inside: Inside) -> NDArray[np.bool_]:
    """Whether the hottest place of each map lies inside, (images,): the pointing game (Zhang et al., 2018).

    Of places that are equally hot the first counts, row by row.

    >>> hot_point_inside(np.array([[[3.0, 1.0], [0.0, 0.0]]]), np.array([[[False, True], [True, True]]]))
    array([False])
    """
    _check(heat, inside)
    hottest = heat.reshape(len(heat), -1).argmax(axis=1)
    return np.asarray(inside.reshape(len(heat), -1)[np.arange(len(heat)), hottest])


def hot_region(heat: Heat, *, share: float = 0.1) -> NDArray[np.bool_]:
    """The hottest `share` of the places of each map, (images, rows, columns); places as hot as the last of them too.

    Places without heat are never hot, so the region of a map with few hot places is smaller.

    >>> hot_region(np.array([[[3.0, 1.0], [0.0, 1.0]]]), share=0.5)
    array([[[ True,  True],
            [False,  True]]])
    """
    if not 0 < share <= 1:
        raise BadInput(f"a share of places is above 0 and at most 1, got {share:g}")
    places = heat.reshape(len(heat), heat.shape[1] * heat.shape[2])
    counted = int(np.ceil(share * places.shape[1]))
    least = np.sort(places, axis=1)[:, -counted] if len(heat) else np.zeros(0)
    return np.asarray((heat >= least[:, None, None]) & (heat > 0))


def hot_region_meets(heat: Heat, inside: Inside, *, share: float = 0.1) -> NDArray[np.bool_]:
    """Whether any of the hottest `share` of the places of each map lies inside, (images,).

    >>> heat, inside = np.array([[[3.0, 1.0], [0.0, 0.0]]]), np.array([[[False, True], [False, False]]])
    >>> hot_region_meets(heat, inside, share=0.25), hot_region_meets(heat, inside, share=0.5)
    (array([False]), array([ True]))
    """
    _check(heat, inside)
    return np.asarray((hot_region(heat, share=share) & inside).any(axis=(1, 2)))


def _check(heat: Heat, inside: Inside) -> None:
    if heat.ndim != 3 or heat.shape != inside.shape:
        raise BadInput(
            f"expected (images, rows, columns) of heat and of what is inside, got {heat.shape} and {inside.shape}"
        )
    if heat.size and heat.min() < 0:
        raise BadInput("heat should nowhere be below 0")
