"""Models as they are typed: loaded as the options say, or found in the store by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from shiftproof.errors import BadInput, UnknownName, listed

if TYPE_CHECKING:
    from shiftproof.answers import Model
    from shiftproof.store import Store
    from shiftproof.types import Classifier, ModelRef, Seen

Options: TypeAlias = dict[str, Any]
"""What was typed, by the names of the options."""

CLASSIFIERS_OF_BOXES = ("boxes:", "proposals:")
"""Models that ask a detector and answer with classes."""


OF_PROPOSALS = ("proposals", "most_proposals", "least_side", "proposal_answer")
"""Options of the crops that a classifier is asked about."""

ABOUT_MODEL = (
    "name",
    "prepare",
    "classes",
    "gives",
    "features",
    "extra_output",
    "turned",
    "weights",
    "boxes",
    "fill",
    *OF_PROPOSALS,
    "trained_on",
    "augmented",
    "filtered",
)
"""Options that say which model it is, or what to know of it."""

OF_CLASSIFIERS = (
    *("gives", "features", "extra_output", "turned", "scores", "channels_last", "fill", *OF_PROPOSALS, "keep", "half"),
)
"""Options that mean nothing to a model that answers with boxes."""


def model_of(spec: str, options: Options) -> Classifier:
    """The model that was named, as the options say."""
    from shiftproof.models import load_model

    return load_model(
        spec,
        name=options["name"],
        prepare=options["prepare"],
        classes=options["classes"],
        gives=options["gives"],
        features=options["features"],
        output=options["scores"],
        extra_output=options["extra_output"],
        turned=options["turned"],
        channels_last=options["channels_last"],
        weights=options["weights"],
        device=options["device"],
        precision=options["autocast"],
        threads=options["threads"],
        seen=_seen(options),
        boxes=_layout(options),
        least_score=options["least_score"],
        overlap=options["overlap"],
        most_boxes=options["most_boxes"],
        fill=options["fill"],
        fill_seed=options["fill_seed"],
        **{name: options[name] for name in OF_PROPOSALS},
    )


def _layout(options: Options) -> str | None:
    """The layout of a detector's outputs; None where their shapes are to tell."""
    return None if options["boxes"] == "auto" else options["boxes"]


def _seen(options: Options) -> Seen | None:
    """The user's word on a model's past; None where nothing was said."""
    from shiftproof.types import Seen

    said = options["trained_on"] or options["augmented"] or options["filtered"]
    past = Seen(options["trained_on"] or "not declared", tuple(options["augmented"]), tuple(options["filtered"]))
    return past if said else None


def model_asked(spec: str, options: Options) -> Model:
    """The classifier or object detector that was named, as the options say."""
    if not (spec.startswith("results:") or (options["boxes"] and not spec.startswith(CLASSIFIERS_OF_BOXES))):
        return model_of(spec, options)
    _refuse_of_classifiers(spec, options)
    from shiftproof.models import load_detector

    return load_detector(
        spec,
        name=options["name"],
        layout=_layout(options),
        prepare=options["prepare"],
        classes=options["classes"],
        weights=options["weights"],
        device=options["device"],
        precision=options["autocast"],
        threads=options["threads"],
        least_score=options["least_score"],
        overlap=options["overlap"],
        most=options["most_boxes"],
        seen=_seen(options),
    )


def _refuse_of_classifiers(spec: str, options: Options) -> None:
    """BadInput where something was said that an object detector would pass over in silence."""
    typed = [f"--{name.replace('_', '-')}" for name in OF_CLASSIFIERS if options.get(name)]
    if typed:
        raise BadInput(
            f"{spec} answers with boxes and takes no {listed(typed)}; that is for classifiers, as boxes:MODEL is one"
        )


def stored_model(name: str, store: Store) -> ModelRef:
    """A stored model by its name, or by the beginning of its fingerprint where names repeat."""
    found = [model.ref for model in store.models() if name == model.ref.name or model.ref.fingerprint.startswith(name)]
    if len(found) > 1:
        prints = ", ".join(ref.fingerprint[:8] for ref in found)
        raise BadInput(f"{len(found)} stored models are called {name!r}; name one by its fingerprint: {prints}")
    if not found:
        raise UnknownName("stored model", name, (model.ref.name for model in store.models()))
    return found[0]


def stored_or_loaded(name: str, options: Options) -> ModelRef:
    """A stored model by its name; the model itself where options say something of it, which the store then learns."""
    from shiftproof.store import Store, StoredModel

    store = Store(options["store"])
    if not any(options[option] for option in ABOUT_MODEL):
        try:
            return stored_model(name, store)
        except UnknownName:
            pass
    model = model_asked(name, options)
    if store.model(model.ref) is not None:
        store.save_model(StoredModel.of(model))
    return model.ref


def answer_with_boxes(models: Sequence[Model | ModelRef], options: Options) -> bool:
    """Whether models answer with boxes; BadInput where some do and others do not."""
    from shiftproof.studies.clean_study import model_ref

    names: dict[bool, str] = {}
    for model in models:
        names[answers_with_boxes(model, options)] = model_ref(model).name
    if len(names) > 1:
        raise BadInput(f"{names[True]} answers with boxes and {names[False]} with classes; compare models that answer alike")
    return True in names


def answers_with_boxes(model: Model | ModelRef, options: Options) -> bool:
    from shiftproof.store import Store
    from shiftproof.types import ModelRef, ObjectDetector

    if not isinstance(model, ModelRef):
        return isinstance(model, ObjectDetector)
    stored = Store(options["store"]).model(model)
    return stored is not None and stored.gives == "boxes"
