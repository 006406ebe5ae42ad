"""Drawn predictions, so that every answer of a study can be worked out beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from shiftproof.types import Classes, DatasetRef, Fact, Gives, ModelRef, Predictions, Run, SkippedImage, Top5

ANIMALS = Classes(("cat", "dog", "eel", "fox", "gnu", "hen", "ibis"))

MakePredictions = Callable[..., Predictions]


def make_predictions(
    labels: Sequence[int],
    predicted: Sequence[int],
    confidence: Sequence[float] | None = None,
    *,
    gives: Gives = "logits",
    ids: Sequence[str] | None = None,
    facts: Mapping[str, Sequence[Fact]] | None = None,
    skipped_images: int = 0,
    classes: Classes | None = ANIMALS,
    with_logits: bool = False,
) -> Predictions:
    """Predictions of the first class with a given confidence; the other classes follow it in a circle, alike."""
    places = len(classes) if classes else 7
    sure = np.full(len(labels), 0.9) if confidence is None else np.asarray(confidence, dtype=float)
    ranked = (np.asarray(predicted, dtype=int)[:, None] + np.arange(places)) % places
    chances = np.where(np.arange(places) == 0, sure[:, None], (1 - sure[:, None]) / (places - 1))
    scores = np.log(np.maximum(chances, 1e-30)) if gives == "logits" else chances
    log_total = np.zeros(len(labels)) if gives == "logits" else np.full(len(labels), np.nan)
    logits = np.empty_like(scores)
    np.put_along_axis(logits, ranked, scores, axis=1)
    return Predictions(
        ids=tuple(ids if ids is not None else (f"{place:03d}.png" for place in range(len(labels)))),
        labels=np.asarray(labels, dtype=int).reshape(-1, 1),
        gives=gives,
        top5=Top5(ranked[:, :5], scores[:, :5], log_total),
        classes=classes,
        logits=logits if with_logits else None,
        facts={name: tuple(values) for name, values in (facts or {}).items()},
        skipped_images=tuple(SkippedImage(f"bad{place}.png", "truncated") for place in range(skipped_images)),
        convention={"classes": "all 7"},
    )


class Stored:
    """A store that holds these predictions under the names of their models, and remembers what was asked of it."""

    def __init__(self, **predictions: Predictions) -> None:
        self.predictions = predictions
        self.models = [ModelRef(name, f"fingerprint of {name}") for name in predictions]
        self.dataset = DatasetRef("photos", "fingerprint of photos")
        self.asked: list[Run] = []

    def load(self, run: Run) -> Predictions:
        self.asked.append(run)
        return self.predictions[run.model.name]


@pytest.fixture
def predictions_of() -> MakePredictions:
    return make_predictions


@pytest.fixture
def stored() -> type[Stored]:
    return Stored
