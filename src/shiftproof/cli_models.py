"""Models as they are typed: loaded as the options say, or found in the store by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from shiftproof.cli_options import about_store, as_json_option
from shiftproof.errors import BadInput, UnknownName, listed

if TYPE_CHECKING:
    from shiftproof.answers import Model
    from shiftproof.store import Store
    from shiftproof.types import Classifier, ImageSet, ModelRef, Seen

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
        trust=options["trust"],
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
        trust=options["trust"],
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
    """The newest model of a name in the store, or the version that was named; other versions are told about."""
    from shiftproof.stored_models import version_named

    ref = version_named(name, store).ref
    tell_versions(ref, store)
    return ref


def tell_versions(ref: ModelRef, store: Store) -> None:
    """A remark where the name of a model has other versions."""
    from shiftproof.console import remark
    from shiftproof.stored_models import older_told

    told = older_told(ref, store)
    if told:
        remark(f"note: {told}")


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
        store.save_model(StoredModel.of(model), asked=False)
    return model.ref


def compared_models(names: Sequence[str], images: ImageSet, store: Store) -> list[ModelRef]:
    """The stored models that were named; else the newest version of every name, if it has answered these images."""
    from shiftproof.console import remark
    from shiftproof.loading import has_answered
    from shiftproof.stored_models import versions

    if names:
        chosen = [stored_model(name, store) for name in names]
    else:
        known = versions(store)
        answered = [one for one in known if has_answered(one.model.ref, images, store=store)]
        chosen = [one.ref for one in answered if one.newest]
        for ref in chosen:
            tell_versions(ref, store)
        for one in answered:
            if not one.newest and one.model.ref.name not in {ref.name for ref in chosen}:
                remark(
                    f"note: {one.name} has answered {images.ref.name}, but it is an older version; predict with the newest"
                )
    if len(chosen) < 2:
        found = ", ".join(one.name for one in versions(store)) or "none"
        place = images.ref.location or images.ref.name
        raise BadInput(f"comparing needs two models with stored answers for {place}; stored in {store.root}: {found}")
    return chosen


@click.group(invoke_without_command=True)
@about_store
@as_json_option
@click.pass_context
def models(context: click.Context, store: str, as_json: bool) -> None:
    """List stored models: when each was asked, its fingerprint, preparation, runs and rows; also rename and forget them.

    A name has a version for each preparation and weights that it was used for. The newest counts, others are
    NAME@FINGERPRINT.
    Example: shiftproof models --store runs
    """
    if context.invoked_subcommand is not None:
        return
    from shiftproof.console import say_json, say_table
    from shiftproof.store import Store
    from shiftproof.stored_models import SHORT, preparation_told, stored_models

    found = stored_models(Store(store))
    if as_json:
        say_json(found)
        return
    rows = [
        {
            "name": one["name"],
            "fingerprint": one["fingerprint"][:SHORT],
            "stored (UTC)": one["stored"][:16].replace("T", " "),
            "gives": one["gives"],
            "runs": f"{one['runs']:,}",
            "rows": f"{one['rows']:,}",
            "companions": f"{len(one['companions']):,}",
            "preparation": preparation_told(one["preparation"]),
        }
        for one in found
    ]
    say_table(rows, right=("runs", "rows", "companions"))


def _store_of_group() -> str:
    above = click.get_current_context().parent
    return str(above.params["store"]) if above else "runs"


beside_models = click.option("--store", default=_store_of_group, show_default="runs", help="Folder of predictions.")
"""The store as it was named before or after the sub-command."""


@models.command()
@click.argument("old")
@click.argument("new")
@beside_models
@as_json_option
def rename(old: str, new: str, store: str, as_json: bool) -> None:
    """Call a stored model otherwise, with all its versions and companions; OLD@FINGERPRINT renames one version.

    Example: shiftproof models rename mine mine-2024
    """
    from shiftproof.console import remark, say_json
    from shiftproof.store import Store
    from shiftproof.stored_models import rename_model

    names = rename_model(old, new, Store(store))
    if as_json:
        say_json({"renamed": names})
    else:
        remark(f"{old} is now {listed(names)}")


@models.command()
@click.argument("name")
@click.option("--all-versions", is_flag=True, help="Every version of NAME, where it has several.")
@beside_models
@as_json_option
def forget(name: str, all_versions: bool, store: str, as_json: bool) -> None:
    """Delete what is stored of a model and of its companions: rows, heat maps and all.

    Example: shiftproof models forget mine@1c0ffee1
    """
    from shiftproof.console import remark, say_json
    from shiftproof.store import Store
    from shiftproof.stored_models import forget_model

    names = forget_model(name, Store(store), all_versions=all_versions)
    if as_json:
        say_json({"forgotten": names})
    else:
        remark(f"forgotten: {listed(names)}")


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
