"""Distance to the k-th nearest training image, by the directions of their features."""

from __future__ import annotations

from dataclasses import dataclass

from shiftproof.detectors.kept_rows import ROWS_AT_ONCE, KeptRows, keep_rows
from shiftproof.detectors.moments import Matrix
from shiftproof.detectors.neighbour_search import directions, kth_distances, unit_length
from shiftproof.errors import BadInput, NotKept
from shiftproof.types import AnomalyScores, Fact, Precision, Predictions, Training

_MANY = 100
"""Of fewer references for each neighbour looked at, the last neighbour says little; the authors had 1000 and more."""


@dataclass(frozen=True)
class NearestNeighbours:
    """Training features at unit length, relative to a point among them."""

    references: KeptRows
    centre: Matrix  # (features,)
    neighbours: int

    def __call__(self, predictions: Predictions) -> AnomalyScores:
        """Euclidean distance, not squared, of each image's feature direction to the k-th nearest of the training images."""
        points = directions(predictions.need_features(), self.centre)
        return kth_distances(points, self.references, self.neighbours)

    @property
    def notes(self) -> tuple[str, ...]:
        one_in = len(self.references) / self.neighbours
        if one_in >= _MANY:
            return ()
        place = f"neighbour {self.neighbours} of {len(self.references)} training images"
        return (f"{place} is one in {one_in:.3g} and likely of another class; the authors took one in 1000",)

    def found(self) -> dict[str, Fact]:
        return {"neighbours": self.neighbours, "references": len(self.references)}


def fit_knn(
    training: Training, *, neighbours: int = 1000, precision: Precision = "float32", gigabytes: float = 4.0
) -> NearestNeighbours:
    """All training features, to be searched for the k-th nearest (Sun et al., 2022); with fewer images, for the farthest.

    References that would take more than so many `gigabytes` of memory lie in a temporary file, from which the same answers
    come; `precision` float16 halves them.
    """
    if neighbours < 1:
        raise BadInput(f"the nearest neighbour is number 1, got {neighbours}")
    first = next((block.need_features() for block in training.blocks() if len(block)), None)
    if first is None:
        raise NotKept("there are no training images")
    centre = unit_length(first[:ROWS_AT_ONCE]).mean(axis=0)
    blocks = (directions(block.need_features(), centre) for block in training.blocks())
    references = keep_rows(blocks, (len(training), first.shape[1]), precision=precision, gigabytes=gigabytes)
    return NearestNeighbours(references, centre, min(neighbours, len(references)))
