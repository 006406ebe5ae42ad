"""The study of novelty as it is typed: sets by name, detectors with their parameters, and networks that are asked beside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shiftproof.cli_models import Options, stored_model
from shiftproof.cli_steps import Bench, pictures_as_typed
from shiftproof.corruptions.choosing import whole_numbers
from shiftproof.detectors import parameters_of
from shiftproof.errors import BadInput, MissingRuns
from shiftproof.image_sets import ImageList, open_images
from shiftproof.loading import PRECISIONS
from shiftproof.models import load_model, perturbed_by_odin, redrawn
from shiftproof.models.drawing import Draw
from shiftproof.models.odin import perturbed_ref
from shiftproof.models.redrawn import redrawn_ref
from shiftproof.preparing import check_condition
from shiftproof.store import Store
from shiftproof.studies.clean_study import model_ref
from shiftproof.types import CLEAN, Classifier, Condition, Fact, ImageSet, Keep, ModelRef

Models = Sequence[Classifier | ModelRef]

OF_NOVELTY = {
    "more_images": "--images",
    "out_images": "--out-images",
    "shifted": "--shifted",
    "training": "--training",
}
"""Options that ask for the study of novelty, each enough by itself, as they are typed."""

SEVERITY = re.compile(r"(?P<corruption>\w+):(?P<severity>\d+)")


def make_out_of_distribution(kind: Any, models: Models, images: ImageSet, options: Options) -> Bench:
    """Inside, shifted and outside sets as named, with the random and perturbed networks that the study asks too."""
    sets, store = sets_typed(options, models, images), Store(options["store"])
    random = {model_ref(model).name: _redrawn(model, options, store) for model in models}
    perturbed = {model_ref(model).name: _perturbed(model, options, store) for model in models if options["odin_eps"]}
    distance = options["distance_model"] and _distance_model(options, models, store)
    study = kind(
        models=models,
        image_set=images,
        **sets._asdict(),
        detectors=detectors_typed(options["detectors"]),
        preset=options["preset"],
        parameters=parameters_typed(options["chosen"]),
        random_networks=random,
        odin=perturbed,
        **{name: options[name] for name in ("rejected", "tpr", "risk", "area", "auroc_interval", "groups")},
        baseline=options["against"],
        distance_model=distance,
        pairs_at=whole_numbers(options["pairs_at"], least=0, most=100, what="percentiles"),
        scores_at=whole_numbers(options["scores_at"], least=0, most=100, what="percentiles"),
        examples=options["examples"],
        disagree=_two_typed(options["disagree"]),
        keep=keep_of(models, store),
    )
    asked = [*(network for some in random.values() for network in some), *perturbed.values(), distance]
    companions = [one for one in asked if one is not None and not isinstance(one, ModelRef)]
    return Bench([study], sets.opened, companions)


class TypedSets(NamedTuple):
    """What is looked at beside the inside set, as studies of novelty call it."""

    more_inside: Mapping[str, ImageList]
    shifted: Mapping[str, ImageList]
    conditions: Sequence[Condition]
    out_sets: Mapping[str, ImageList]
    training: ImageList | None

    @property
    def opened(self) -> list[ImageList]:
        named = (self.more_inside, self.shifted, self.out_sets)
        return [*(images for sets in named for images in sets.values()), *([self.training] if self.training else [])]


def sets_typed(options: Options, models: Models, images: ImageSet) -> TypedSets:
    """The sets at --images, --shifted, --out-images and --training, and corruptions of the inside set."""
    return TypedSets(
        more_inside=named_sets("--images", options["more_images"]),
        shifted=named_sets("--shifted", [text for text in options["shifted"] if not SEVERITY.fullmatch(text)]),
        conditions=_conditions(options["shifted"], options, models, images),
        out_sets=named_sets("--out-images", options["out_images"]),
        training=None if options["training"] is None else open_images(options["training"]),
    )


def parameters_typed(texts: Sequence[str]) -> dict[str, dict[str, Fact]]:
    """Parameters by detector.

    >>> parameters_typed(["knn.neighbours=50", "vim.dimension=none"])
    {'knn': {'neighbours': 50}, 'vim': {'dimension': None}}
    """
    parameters: dict[str, dict[str, Fact]] = {}
    for text in texts:
        name, _, value = text.partition("=")
        detector, _, parameter = name.partition(".")
        if not (detector and parameter and value):
            raise BadInput(f"--set takes a detector's parameter, as knn.neighbours=50; got {text!r}")
        if parameter in parameters.setdefault(detector, {}):
            raise BadInput(f"--set {name} is given twice")
        parameters[detector][parameter] = _value(value)
    return parameters


def _value(text: str) -> Fact:
    words: Mapping[str, Fact] = {"none": None, "true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def detectors_typed(text: str | None) -> tuple[str, ...] | None:
    """The detectors that were named; None where none were."""
    if text is None:
        return None
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        raise BadInput(f"expected names of detectors with commas between them, see shiftproof list detectors; got {text!r}")
    return words


def _two_typed(text: str | None) -> tuple[str, str] | None:
    """The two detectors that were named; None where none were."""
    names = detectors_typed(text)
    if names is None:
        return None
    if len(names) != 2:
        raise BadInput(f"--disagree takes two detectors, as vim,knn; got {text!r}")
    return names[0], names[1]


def named_sets(option: str, texts: Sequence[str]) -> dict[str, ImageList]:
    """The sets at NAME=DIR, or at DIR, which then goes by the name of its folder."""
    sets: dict[str, ImageList] = {}
    for text in texts:
        name, equals, place = text.partition("=")
        if not equals or Path(text).exists():
            name, place = "", text
        elif not (name and place):
            raise BadInput(f"{option} takes NAME=DIR, as dresses=photos/dress; got {text!r}")
        images = open_images(place, name=name or None)
        if images.name in sets:
            raise BadInput(
                f"two sets of {option} are called {images.name}; give one another name, as {images.name}2={place}"
            )
        sets[images.name] = images
    return sets


def _conditions(texts: Sequence[str], options: Options, models: Models, images: ImageSet) -> list[Condition]:
    """Corruptions of the inside set, of what the model itself would see of each image where nothing else was typed.

    Another cut, or a lossy save, would be a shift of its own between the unchanged images and these.
    """
    asked = list(filter(None, map(SEVERITY.fullmatch, texts)))
    if not asked:
        return []
    pictures = pictures_as_typed(options, models, images, picture="model-size")
    frost, fit = pictures.pop("frost"), pictures.pop("fit")
    pictures |= {"edition": fit.edition if fit else options["edition"], "output": pictures["output"] or "raw"}
    conditions = []
    for found in asked:
        name = found["corruption"]
        condition = Condition(name, int(found["severity"]), frost=frost if name == "frost" else None, **pictures)
        check_condition(condition)
        conditions.append(condition)
    return conditions


def _redrawn(model: Classifier | ModelRef, options: Options, store: Store) -> list[Classifier | ModelRef]:
    """Networks that never learned anything: made of a model at hand, or those stored before."""
    seeds, fan = range(1, options["random_networks"] + 1), options["random_fan"]
    if isinstance(model, ModelRef):
        return [_stored(redrawn_ref(model, Draw(seed, fan)), store) for seed in seeds]
    return [redrawn(model, seed, fan=fan) for seed in seeds]


def _perturbed(model: Classifier | ModelRef, options: Options, store: Store) -> Classifier | ModelRef:
    """The model with inputs moved as ODIN moves them, at the temperature of the detector."""
    chosen = parameters_of("odin", preset=options["preset"], chosen=parameters_typed(options["chosen"]).get("odin"))
    how = {
        "eps": options["odin_eps"],
        "temperature": float(chosen["temperature"] or 1),
        "divide_by_std": not options["odin_normalised"],
    }
    return _stored(perturbed_ref(model, **how), store) if isinstance(model, ModelRef) else perturbed_by_odin(model, **how)


def _stored(ref: ModelRef, store: Store) -> ModelRef:
    """A network made of a model, if it was asked before: by its fingerprint, for other models may bear the same name."""
    if store.model(ref) is None:
        raise MissingRuns(
            f"no {ref.name}, as made of this model with these options, is stored in {store.root}; "
            "make it with: shiftproof run, with the same options"
        )
    return ref


def _distance_model(options: Options, models: Models, store: Store) -> Classifier | ModelRef:
    """One of the models, a stored one where models are stored ones, else the model of that name, to be asked as well."""
    name: str = options["distance_model"]
    named = {model_ref(model).name: model for model in models}
    if name in named:
        return named[name]
    return stored_model(name, store) if isinstance(models[0], ModelRef) else load_model(name, trust=options["trust"])


def keep_of(models: Models, store: Store) -> Keep:
    """Features where every model has them, or has stored them; else logits, and detectors that need more are left out."""
    return "features" if all(_has_features(model, store) for model in models) else "logits"


def _has_features(model: Classifier | ModelRef, store: Store) -> bool:
    if isinstance(model, ModelRef):
        return any(store.run(model, CLEAN, precision).contents("features").rows for precision in PRECISIONS)
    return getattr(model, "has_features", True)
