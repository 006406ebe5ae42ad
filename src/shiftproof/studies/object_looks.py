"""What a model says of every object in several looks: in its whole image, cut out, alone, and enlarged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shiftproof.image_sets.crops import image_of
from shiftproof.metrics import is_correct
from shiftproof.types import Clusters, Fact, Predictions, Run

WHOLE = "image"
"""The look of an object whose image is as it was."""


@dataclass(frozen=True)
class ObjectLooks:
    """Every object that was read in all its looks, row by row; the answer to an image stands for each object in it."""

    predictions: Mapping[str, Predictions]  # by look
    convention: Mapping[str, str]

    @classmethod
    def of(cls, runs: Mapping[str, Run], load: Callable[[Run], Predictions]) -> ObjectLooks | None:
        """None where no object with a label was read in every look."""
        loaded = {look: load(run) for look, run in runs.items()}
        rows = {look: _labelled_rows(predictions) for look, predictions in loaded.items()}
        cut = [look for look in loaded if look != WHOLE]
        known = set.union(*(set(loaded[look].ids) | {aside.id for aside in loaded[look].set_aside} for look in cut))
        ids = [one for one in sorted(known) if image_of(one) in rows[WHOLE] and all(one in rows[look] for look in cut)]
        if not ids:
            return None
        places = {look: [rows[look][image_of(one) if look == WHOLE else one] for one in ids] for look in loaded}
        images = len({image_of(one) for one in ids})
        convention = {
            **runs[WHOLE].convention(),
            **loaded[WHOLE].convention,
            **({"left out": f"{len(known) - len(ids)} of {len(known)} objects"} if len(ids) < len(known) else {}),
            "objects": f"{len(ids):,} in {images:,} images",
            "whole image": "right where any class of its objects is named",
        }
        return cls({look: loaded[look].take(np.array(places[look], np.intp)) for look in loaded}, convention)

    @cached_property
    def correct(self) -> Mapping[str, NDArray[np.bool_]]:
        """By look, which objects are named right, (objects,)."""
        return {look: is_correct(found.labels, found.top5.classes) for look, found in self.predictions.items()}

    @property
    def clusters(self) -> Clusters:
        """Which objects are one case: those of one image, or of what images are clustered by."""
        cut = self.cut
        return cut.clusters if cut.grouped else Clusters("source image", tuple(map(image_of, cut.ids)))

    @property
    def cut(self) -> Predictions:
        """One of the looks in which every object is an image of its own."""
        return next(found for look, found in self.predictions.items() if look != WHOLE)

    @property
    def facts(self) -> Mapping[str, tuple[Fact, ...]]:
        """What is known of the objects."""
        return self.cut.facts


def _labelled_rows(predictions: Predictions) -> dict[str, int]:
    labelled = predictions.labelled
    return {one: row for row, one in enumerate(predictions.ids) if labelled[row]}
