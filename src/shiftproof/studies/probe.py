"""One photo, varied step by step: what the model says of it, and how foreign each detector finds it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shiftproof.catalog import DETECTORS
from shiftproof.image_sets.varied import unchanged_at, unit_of
from shiftproof.metrics.calibration import to_probabilities
from shiftproof.metrics.ranks import images_below
from shiftproof.studies import evidence
from shiftproof.studies.class_names import ClassNames
from shiftproof.studies.clean_study import image_set_ref, model_refs
from shiftproof.studies.novelty_scores import DetectorPanel, check_detectors
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
    Measurement,
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

    def _judges(self, model: ModelRef, load: Load) -> tuple[DetectorPanel, Mapping[str, AnomalyScores]]:
        """The detectors of a model, and what they say of the outside images."""
        training = (
            None if self.training is None else getattr(load, "training", load)(Run(model, image_set_ref(self.training)))
        )
        panel = DetectorPanel(self._names, training, preset=self.preset, parameters=self.parameters)
        if self.out_set is None:
            return panel, {}
        return panel, panel.scores(load(Run(model, image_set_ref(self.out_set))))


class _Steps(NamedTuple):
    """The pictures of one variation: how strong each is, and what findings about them are about."""

    by: str
    strengths: NDArray[np.floating]
    about: About

    @classmethod
    def of(cls, run: Run, predictions: Predictions) -> _Steps:
        by, photo = (str(predictions.facts[name][0]) for name in ("varied", "photo"))
        strengths = np.array([float(value or 0) for value in predictions.facts["strength"]])
        return cls(by, strengths, {"model": run.model.name, "image_set": photo, "varied": by})

    @property
    def unchanged(self) -> int:
        """The place of the picture that is the photo itself, or nearest to it."""
        return int(np.abs(self.strengths - unchanged_at(self.by)).argmin())

    def curve(self, name: str, shares: NDArray[np.floating], convention: Mapping[str, str], **more: str) -> Curve:
        x, y = tuple(self.strengths.tolist()), tuple(np.asarray(shares, float).tolist())
        label = "share of outside images less foreign" if name == "probe_percentile" else "probability"
        about = {**self.about, **more}
        return Curve(name, about, f"{self.by}, {unit_of(self.by)}", label, x, y, images=len(x), convention=dict(convention))


def _answers(run: Run, predictions: Predictions) -> Iterator[Finding]:
    """How often and how probably the first answer stays, how sure the model is of what it says, and the pictures."""
    steps = _Steps.of(run, predictions)
    convention = evidence.convention_of(run, predictions)
    names, answers = ClassNames(predictions.classes), predictions.top5.classes[:, 0]
    first = int(answers[steps.unchanged])
    about = {**steps.about, "class": names[first]}
    yield Measurement("answer_kept_share", float((answers == first).mean()), about, len(answers), convention)
    confidence = evidence.confidence_or_nan(predictions)
    if np.isfinite(confidence).all():
        probabilities = to_probabilities(predictions.need_logits(), predictions.gives)[:, first]
        yield steps.curve("probe_probability", probabilities, convention, **{"class": names[first]})
        yield steps.curve("probe_confidence", confidence, convention)
    items = [
        GalleryItem(key, f"{steps.by} {strength:.3g}: {names[int(best)]}" + ("" if np.isnan(sure) else f" {sure:.0%}"))
        for key, strength, best, sure in zip(predictions.ids, steps.strengths, answers, confidence, strict=True)
    ]
    title = f"What {run.model.name} says as {steps.by.replace('_', ' ')} changes"
    yield Gallery("probe_pictures", steps.about, run.image_set, title, tuple(items))


def _places(
    run: Run, predictions: Predictions, panel: DetectorPanel, outside: Mapping[str, AnomalyScores]
) -> Iterator[Finding]:
    """Each detector's score as its place among those of the outside images."""
    steps = _Steps.of(run, predictions)
    for name, scores in panel.scores(predictions).items():
        if name in outside:
            convention = {
                **panel.ready[name].convention(),
                "place": f"share of {len(outside[name]):,} outside images that look less foreign, ties by half",
            }
            yield steps.curve("probe_percentile", place_among(scores, outside[name]), convention, detector=name)


def place_among(scores: AnomalyScores, others: AnomalyScores) -> NDArray[np.floating]:
    """Share of the others that each score lies above; equal ones count half.

    >>> place_among(np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    array([0.   , 0.375, 1.   ])
    """
    return images_below(scores, others) / len(others)
