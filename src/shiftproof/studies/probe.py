"""One photo, varied step by step: what the model says of it, and how foreign each detector finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.catalog import DETECTORS
from shiftproof.image_sets.varied import unchanged_at, unit_of
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.metrics.ranks import images_below
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames
from shiftproof.studies.clean_study import image_set_ref, model_refs
from shiftproof.studies.novelty_scores import Panel, check_detectors
from shiftproof.studies.telling import Load, TellingStudy, Told
from shiftproof.types import (
    About,
    AnomalyScores,
    Classifier,
    Curve,
    Fact,
    Finding,
    Gallery,
    GalleryItem,
    ImageSet,
    ImageSetRef,
    Keep,
    ModelRef,
    Predictions,
    Reading,
    Run,
)


@dataclass(frozen=True)
class ProbeStudy(TellingStudy):
    """Probability of the first answer, and the place of each detector's score among those of an outside set, step by step.

    `image_sets` are variations of one photo (`image_sets.varied`); detectors that learn do so from `training`.
    """

    models: Sequence[ModelRef | Classifier]
    image_sets: Sequence[ImageSetRef | ImageSet]
    out_set: ImageSetRef | ImageSet | None = None
    training: ImageSetRef | ImageSet | None = None
    detectors: Sequence[str] | None = None  # None: all that can be had
    preset: str = "authors"
    parameters: Mapping[str, Mapping[str, Fact]] = field(default_factory=dict, hash=False)
    keep: Keep = "features"

    by_default: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", model_refs(self.models))
        object.__setattr__(self, "image_sets", tuple(map(image_set_ref, self.image_sets)))
        for name in ("out_set", "training"):
            images = getattr(self, name)
            object.__setattr__(self, name, images and image_set_ref(images))
        check_detectors(self._names, preset=self.preset, parameters=self.parameters)

    def runs(self) -> list[Run]:
        """Every model on every variation, on the outside set and on its training images."""
        others = [images for images in (self.out_set, self.training) if images is not None]
        return [
            Run(model, image_set_ref(images)) for model in model_refs(self.models) for images in [*self.image_sets, *others]
        ]

    def reading(self, run: Run) -> Reading | None:
        """Outside images have no class that the model knows."""
        return Reading(None, labelled=False) if run.image_set == self.out_set else None

    def findings(self, load: Load, told: Told) -> Iterator[Finding]:
        if self.out_set is None:
            told.left_out.append(
                "no outside images were given (--out-images), so no detector's place among them can be told"
            )
        for model in model_refs(self.models):
            panel, outside = self._judges(model, load)
            for images in map(image_set_ref, self.image_sets):
                run = Run(model, images)
                predictions = load(run)
                if len(predictions):
                    yield from _answers(run, predictions)
                    yield from _places(run, predictions, panel, outside)
            if self.out_set is not None:
                told.leave_out(panel.left_out, of=model.name)
                told.pass_on(panel.ready, of=model.name)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(DETECTORS if self.detectors is None else self.detectors)

    def _judges(self, model: ModelRef, load: Load) -> tuple[Panel, Mapping[str, AnomalyScores]]:
        """The detectors of a model, and what they say of the outside images."""
        training = (
            None if self.training is None else getattr(load, "training", load)(Run(model, image_set_ref(self.training)))
        )
        panel = Panel(self._names, training, preset=self.preset, parameters=self.parameters)
        if self.out_set is None:
            return panel, {}
        return panel, panel.scores(load(Run(model, image_set_ref(self.out_set))))


def _answers(run: Run, predictions: Predictions) -> Iterator[Finding]:
    """How probable the first answer stays, how sure the model is of what it says, and the pictures with their answers."""
    strengths = np.array([float(value or 0) for value in predictions.facts["strength"]])
    by = str(predictions.facts["varied"][0])
    about: About = {"model": run.model.name, "image_set": run.image_set.name, "varied": by}
    convention = evidence.convention_of(run, predictions)
    names = ClassNames(predictions.classes)
    first = int(predictions.top5.classes[np.abs(strengths - unchanged_at(by)).argmin(), 0])
    confidence = evidence.confidence_or_nan(predictions)
    if np.isfinite(confidence).all():
        probabilities = to_probabilities(predictions.need_logits(), predictions.gives)[:, first]
        yield _curve("probe_probability", {**about, "class": names[first]}, strengths, probabilities, by, convention)
        yield _curve("probe_confidence", about, strengths, confidence, by, convention)
    items = [
        GalleryItem(key, f"{by} {strength:g}: {names[int(best)]}" + ("" if np.isnan(sure) else f" {sure:.0%}"))
        for key, strength, best, sure in zip(
            predictions.ids, strengths, predictions.top5.classes[:, 0], confidence, strict=True
        )
    ]
    yield Gallery("probe_pictures", about, run.image_set, f"What {run.model.name} says as {by} changes", tuple(items))


def _places(run: Run, predictions: Predictions, panel: Panel, outside: Mapping[str, AnomalyScores]) -> Iterator[Finding]:
    """Each detector's score as its place among those of the outside images."""
    strengths = np.array([float(value or 0) for value in predictions.facts["strength"]])
    by = str(predictions.facts["varied"][0])
    for name, scores in panel.scores(predictions).items():
        if name in outside:
            about = {"model": run.model.name, "image_set": run.image_set.name, "varied": by, "detector": name}
            convention = {
                **panel.ready[name].convention(),
                "place": f"share of {len(outside[name]):,} outside images that look less foreign, ties by half",
            }
            yield _curve("probe_percentile", about, strengths, place_among(scores, outside[name]), by, convention)


def place_among(scores: AnomalyScores, others: AnomalyScores) -> NDArray[np.floating]:
    """Share of the others that each score lies above; equal ones count half.

    >>> place_among(np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    array([0.   , 0.375, 1.   ])
    """
    return images_below(scores, others) / len(others)


def _curve(
    name: str,
    about: About,
    strengths: NDArray[np.floating],
    shares: NDArray[np.floating],
    by: str,
    convention: Mapping[str, str],
) -> Curve:
    label = {"probe_percentile": "share of outside images less foreign"}.get(name, "probability")
    x, y = tuple(strengths.tolist()), tuple(np.asarray(shares, float).tolist())
    return Curve(name, about, f"{by}, {unit_of(by)}", label, x, y, images=len(x), convention=dict(convention))
