"""Models as settings say: what a person can say of a model, as typed fields, handed to the loaders."""

from __future__ import annotations

from shiftproof.errors import BadInput, listed
from shiftproof.models import load_detector, load_model, names_detector
from shiftproof.options import ModelSettings, PredictionSettings, as_typed
from shiftproof.types import Classifier, Model, Seen


def load_classifier(spec: str, options: ModelSettings) -> Classifier:
    """The classifier that a spec names, as the settings say."""
    return load_model(
        spec,
        name=options.name,
        preprocess=options.preprocess,
        classes=options.classes,
        gives=options.gives,
        features=options.features,
        output=options.scores,
        extra_output=options.extra_output,
        rotated=options.rotated,
        channels_last=options.channels_last or None,
        weights=options.weights,
        trust=options.trust,
        device=options.device,
        precision=options.precision,
        threads=options.threads,
        seen=declared_seen(options),
        boxes=_layout(options),
        score_threshold=options.score_threshold,
        nms_iou=options.nms_iou,
        max_detections=options.max_detections,
        fill=options.fill,
        fill_seed=options.fill_seed,
        proposals=options.proposals,
        max_proposals=options.max_proposals,
        min_side=options.min_side,
        proposal_output=options.proposal_output,
        adapt=options.adapt,
    )


def load_any(spec: str, options: ModelSettings, prediction: PredictionSettings | None) -> Model:
    """The classifier or object detector that a spec names."""
    if not names_detector(spec, boxes=bool(options.boxes)):
        return load_classifier(spec, options)
    said = {name: getattr(options, name) for name in ModelSettings.OF_CLASSIFIERS}
    said |= {"keep": prediction.keep, "half": prediction.half} if prediction else {}
    typed = [as_typed(name) for name, value in said.items() if value]
    if typed:
        raise BadInput(f"{spec} predicts boxes and takes no {listed(typed)}; that is for classifiers, as boxes:MODEL is one")
    return load_detector(
        spec,
        name=options.name,
        layout=_layout(options),
        preprocess=options.preprocess,
        classes=options.classes,
        weights=options.weights,
        trust=options.trust,
        device=options.device,
        precision=options.precision,
        threads=options.threads,
        score_threshold=options.score_threshold,
        nms_iou=options.nms_iou,
        max_detections=options.max_detections,
        seen=declared_seen(options),
    )


def _layout(options: ModelSettings) -> str | None:
    """The layout of a detector's outputs; None to infer it from their shapes."""
    return None if options.boxes == "auto" else options.boxes


def declared_seen(options: ModelSettings) -> Seen | None:
    """What the user declares of a model's training; None where nothing was declared."""
    if not (options.trained_on or options.augmented or options.filtered):
        return None
    told = ", ".join(options.trained_on) or Seen.training_data
    return Seen(told, tuple(options.augmented), tuple(options.filtered), tuple(options.trained_on))
