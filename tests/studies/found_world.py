"""Boxes found and objects there, small enough to work every number out beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from shiftproof.types import Classes, Detections, Fact, FoundObjects, Run, SkippedImage, Truths

ANIMALS = Classes(("cat", "dog", "eel"))
SIDE = 100

Object = tuple[str, float]
"""A class and where its square of 20 pixels begins, from left and top."""
Box = tuple[str, float, float]
"""The same and how sure the detector is."""


def world(
    images: Mapping[str, tuple[Sequence[Object], Sequence[Box]]],
    *,
    boxed: bool = True,
    facts: Mapping[str, Sequence[Fact]] | None = None,
    ignored: Sequence[int] = (),
    skipped_images: int = 0,
) -> FoundObjects:
    """Found objects of images of 100 x 200 pixels, by their ids: what is there, and what is found."""
    ids = tuple(images)
    objects = [(place, *one) for place, (real, _) in enumerate(images.values()) for one in real]
    boxes = [(place, *one) for place, (_, found) in enumerate(images.values()) for one in found]
    flags = np.zeros(len(objects), bool)
    spared = flags.copy()
    spared[list(ignored)] = True
    truths = Truths(
        ids,
        np.array([place for place, *_ in objects], int),
        _squares([start for *_, start in objects]),
        np.array([ANIMALS.names.index(name) for _, name, _ in objects], int),
        flags,
        spared,
        np.full(len(objects), 400.0),
    )
    detections = Detections(
        ids,
        np.array([place for place, *_ in boxes], int),
        _squares([start for _, _, start, _ in boxes]),
        np.array([score for *_, score in boxes], float),
        np.array([ANIMALS.names.index(name) for _, name, *_ in boxes], int),
    )
    return FoundObjects(
        detections,
        truths if boxed else None,
        np.tile([SIDE, 2 * SIDE], (len(ids), 1)),
        ANIMALS,
        facts={name: tuple(values) for name, values in (facts or {}).items()},
        skipped_images=tuple(SkippedImage(f"bad{place}.png", "truncated") for place in range(skipped_images)),
        convention={"classes": "3 of 3, by name"},
    )


def _squares(starts: Sequence[float]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    corners = np.array(starts, float).reshape(-1, 1)
    return np.hstack([corners, corners, corners + 20, corners + 20])


class Loads:
    """What a study reads runs by: found objects by model, or by condition, and a note of what was asked."""

    def __init__(self, found: Mapping[str, FoundObjects]) -> None:
        self.stored, self.asked = found, list[Run]()

    def found(self, run: Run) -> FoundObjects:
        self.asked.append(run)
        return self.stored[run.model.name if run.model.name in self.stored else str(run.condition)]
