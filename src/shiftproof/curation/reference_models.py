"""Models whose mistakes a test set is made of: what they recognise already is not hard enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shiftproof.curation.crop_candidates import Candidate, Shown, cropped
from shiftproof.image_sets.image_list import ImageList
from shiftproof.image_sets.scoring import Scoring
from shiftproof.metrics.accuracy import is_correct
from shiftproof.prediction import Progress, predict
from shiftproof.store import Store
from shiftproof.types import Classifier


@dataclass(frozen=True)
class ReferenceModels:
    """Which models, which crops they see, how their answers are scored and where they are stored."""

    models: Sequence[Classifier]
    store: Store
    shown: Shown = "tight"
    scoring: Scoring | None = None

    def reasons(
        self,
        model: Classifier,
        images: ImageList,
        candidates: Sequence[Candidate],
        *,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Mapping[str, str]:
        """Why candidates go that a model recognises or cannot answer for, by their id."""
        if not candidates:
            return {}
        shown = cropped(images, candidates, self.shown)
        said = predict(model, shown, store=self.store, workers=workers, scoring=self.scoring, progress=progress)
        known = said.take(said.labelled)
        right = is_correct(known.labels, known.top5.classes) if len(known) else ()
        return {
            **{image.id: image.reason for image in said.set_aside},
            **{crop_id: "recognised" for crop_id, is_right in zip(known.ids, right, strict=True) if is_right},
            **dict.fromkeys(set(said.ids).difference(known.ids), "the model has no such class"),
        }
