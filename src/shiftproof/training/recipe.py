"""The entry of a training recipe in the catalog; a plug-in registers one too.

A recipe is data and a few small functions, those that it changes: what it does to a picture, to the loss, to the network,
to the weights at the end. Functions of torch are named as ``module:function`` and imported when a network is trained, so
that recipes can be listed, and heads be trained, without it.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shiftproof import catalog
from shiftproof.errors import BadInput, UnknownName
from shiftproof.models.loaded import LoadedClassifier
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.options import Bounds
from shiftproof.types import Dataset, Image, Sample

Level: TypeAlias = Literal["head", "network"]
"""What is trained: the last linear layer on stored features, or all weights."""

TEST_TIME: Literal["test time"] = "test time"
"""Where recipes act that train nothing beforehand."""

Setting: TypeAlias = float | int | bool | str

Weights: TypeAlias = Mapping[str, NDArray[np.floating]]
"""Tensors by name, of a head or of a whole network."""


class Pictures(Protocol):
    """The training pictures, for recipes that mix several."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: int) -> Image: ...


Augment: TypeAlias = Callable[..., Image]
"""(image, rng, others, **settings): a new picture of the same shape, whatever it is; the old one stays as it was."""

Preprocess: TypeAlias = Callable[..., ImagePreprocessing]
"""(own, **settings): the preprocessing that a model is trained with and keeps, from its own."""

Score: TypeAlias = Callable[[Weights], float]
"""Accuracy on the validation split."""

Finish: TypeAlias = Callable[..., Weights]
"""(start, ends, score, **settings): the weights to keep, of those before training and those that it ended with.

There is one end; or one of each seed where the recipe joins them, and then nothing that all of them began with.
`score` is for recipes that choose.
"""

Select: TypeAlias = Callable[..., tuple[Dataset, Dataset | None]]
"""(images, clustering, seed, **settings): the images to train with, and those left out to be measured, if any."""

Adapt: TypeAlias = Callable[..., LoadedClassifier]
"""(model, **settings): the model as it predicts at test time, with another forward pass or an adaptation."""

Thin: TypeAlias = Callable[..., list[Sample]]
"""(samples, **settings): those to train with, of images that are much alike, as the frames of a clip are."""

Weigh: TypeAlias = Callable[..., NDArray[np.floating]]
"""(samples, **settings): how much each image counts in the loss, (images,); the mean is 1."""

Hyperparameters: TypeAlias = Callable[..., Mapping[str, Any]]
"""(begun, **settings): options at network level, by name, that count where the user chose none."""


@dataclass(frozen=True)
class Stage:
    """A part of the epochs, and what is trained in it."""

    share: float  # of the epochs
    trains: Level = "network"
    rate: float = 1.0  # times the learning rate
    keeps_statistics: bool = False  # whether batch norms keep the means and variances that they begin with


@dataclass(frozen=True)
class Begun:
    """What a training begins with, as far as published hyperparameters depend on it."""

    architecture: str  # "" of a network that was not trained before
    from_file: bool  # whether the user names a file of weights
    images: int  # to train with
    epochs: int | None  # None where the user chose none
    batch_size: int | None
    schedule: str | None


@dataclass(frozen=True)
class Recipe:
    """A recipe of training; what it leaves out is done as plain training does it."""

    title: str
    description: str  # what it does, in one sentence
    cites: tuple[str, ...] = ()  # works of reference/citations.toml
    settings: Mapping[str, Setting] = field(default_factory=dict)  # with their defaults; `name:VALUE` sets the first
    levels: tuple[Level | Literal["test time"], ...] = ("head", "network")
    # what a model trained so has seen: benchmarks of these are no test of it; a function of the settings where they decide
    augmentations: tuple[str, ...] | Callable[..., tuple[str, ...]] = ()
    bounds: Mapping[str, Bounds] = field(default_factory=dict)  # of settings that are numbers
    check: Callable[..., None] | None = None  # BadInput where the settings cannot be trained with
    settled: Callable[..., Mapping[str, Setting]] | None = None  # settings as they are kept: with digests of files they name
    needs_outliers: bool = False
    trainer: str | None = None  # torch: what trains object detectors, on boxes; None: a classifier is trained, on labels
    select: Select | None = None
    thin: Thin | None = None
    weigh: Weigh | None = None
    hyperparameters: Hyperparameters | None = None
    crop: Augment | None = None  # what `augment` sees of the picture; None: the crops and flips of the baseline
    augment: Augment | None = None
    mixes: bool = False  # whether `augment` looks at other pictures
    keeps_places: bool = False  # whether `augment` leaves every object where it is, so that boxes stay true
    copies: int = 0  # augmented copies beside the plain picture, for a loss over several; 0: the augmented one alone
    preprocess: Preprocess | None = None
    loss: str | None = None  # torch: (Step, **settings) -> Tensor
    # whether every class is a question of its own (sigmoids), at both levels; a function of the settings where they decide
    multi_label: bool | Callable[..., bool] = False
    extend: str | None = None  # torch: (module, classes, **settings) -> module with further outputs or classes
    stages: tuple[Stage, ...] = (Stage(1.0),)
    averages: bool = False  # whether a running mean of the weights is kept, with the setting `decay`
    finish: Finish | None = None
    joins_seeds: bool = False  # whether `finish` makes one model of the trainings of all seeds, and not one of each
    adapt: str | None = None  # at test time: an `Adapt`, imported when it is used
    needs_torch: bool = False  # whether `adapt` changes the network, and so takes a model of torch

    @property
    def parts(self) -> frozenset[str]:
        """Which parts of training it changes."""
        choices, pictures = ("trainer", "select", "thin", "weigh", "hyperparameters"), ("crop", "augment", "preprocess")
        names = (*choices, *pictures, "loss", "extend", "averages", "finish", "adapt")
        changed = {name: getattr(self, name) for name in names}
        return frozenset(name for name, part in changed.items() if part not in (None, False)) | (
            {"stages"} if self.stages != (Stage(1.0),) else set()
        )


@dataclass(frozen=True)
class ChosenRecipe:
    """A recipe with the settings that were asked for."""

    name: str
    recipe: Recipe
    settings: Mapping[str, Setting]

    @property
    def augmentations(self) -> tuple[str, ...]:
        """What a model trained so has seen, by the words of `Seen`."""
        said = self.recipe.augmentations
        return said(**self.settings) if callable(said) else said

    @property
    def multi_label(self) -> bool:
        """Whether a model trained so answers every class as a question of its own."""
        said = self.recipe.multi_label
        return said(**self.settings) if callable(said) else said

    def __str__(self) -> str:
        changed = {key: value for key, value in self.settings.items() if value != self.recipe.settings[key]}
        first = next(iter(self.settings), "")
        told = f"{self.name}:{changed.pop(first)}" if first in changed else self.name  # it may hold commas
        return f"{told}?{','.join(f'{key}={value}' for key, value in changed.items())}" if changed else told


def recipe_of(name: str) -> Recipe:
    """A recipe by name, or UnknownName with the nearest."""
    entry: Recipe = catalog.RECIPES.load(name)
    return entry


def chosen_recipes(text: str) -> tuple[ChosenRecipe, ...]:
    """The recipes that a text names, joined by ``+``, with settings after ``?`` or one after ``:``.

    Recipes that change the same part of training cannot be joined.

    >>> [str(one) for one in chosen_recipes("baseline")]
    ['baseline']
    """
    chosen = tuple(_chosen(part.strip()) for part in text.split("+"))
    taken: dict[str, str] = {}
    for one in chosen:
        for part in sorted(one.recipe.parts & set(taken)):
            does = "adapt a model at test time" if part == "adapt" else f"change the {part} of training"
            raise BadInput(f"{taken[part]} and {one.name} both {does}: choose one of them")
        taken |= dict.fromkeys(one.recipe.parts, one.name)
    return chosen


def parted(text: str) -> tuple[str, str | None]:
    """What a text names of training, and what of test time.

    >>> parted("augmix+tta:crops"), parted("cutout")
    (('augmix', 'tta:crops'), ('cutout', None))
    """
    chosen = chosen_recipes(text)
    if not any(one.recipe.adapt for one in chosen):
        return text, None
    training = "+".join(str(one) for one in chosen if one.recipe.adapt is None)
    return training or "baseline", next((str(one) for one in chosen if one.recipe.adapt is not None), None)


def course_of(chosen: Sequence[ChosenRecipe]) -> tuple[str, ...]:
    """What recipes say of a training until it is over: those that only change its weights at the end are left out.

    >>> course_of(chosen_recipes("augmix+wise-ft:0.5")), course_of(chosen_recipes("soup"))
    (('augmix',), ('baseline',))
    """
    kept = [str(one) for one in chosen if one.recipe.parts != {"finish"}]
    return tuple(name for name in kept if name != "baseline" or len(kept) == 1) or ("baseline",)


def _chosen(text: str) -> ChosenRecipe:
    found = re.fullmatch(r"(?P<name>[^:?]+)(?::(?P<first>[^?]*))?(?:\?(?P<rest>.*))?", text)
    if found is None:
        raise BadInput(f"a recipe is written as name, name:VALUE or name?setting=value,..., got {text!r}")
    recipe = recipe_of(found["name"])
    given: dict[str, str] = {}
    if found["first"] is not None:
        if not recipe.settings:
            raise BadInput(f"{found['name']} has no setting, got {found['first']!r}")
        given[next(iter(recipe.settings))] = found["first"]
    for part in filter(None, (found["rest"] or "").split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"{text}: a setting is written as name=value, got {part!r}")
        given[name.strip()] = value.strip()
    settings = dict(recipe.settings)
    for name, value in given.items():
        if name not in settings:
            raise UnknownName(f"setting of {found['name']}", name, settings)
        settings[name] = _read(value, settings[name], f"{found['name']}, {name}")
    if recipe.check is not None:
        recipe.check(**settings)
    for name, bounds in recipe.bounds.items():
        value = settings[name]
        assert not isinstance(value, str)  # noqa: S101 - bounds are those of numbers
        bounds.check(f"{found['name']}: {name}", value)
    if recipe.settled is not None:
        found_settings = recipe.settled(**settings)
        settings = {name: found_settings[name] for name in settings}
    return ChosenRecipe(found["name"], recipe, settings)


def _read(text: str, like: Setting, what: str) -> Setting:
    if isinstance(like, str):
        return text
    if isinstance(like, bool):
        if text.lower() not in {"true", "false"}:
            raise BadInput(f"{what} should be true or false, got {text!r}")
        return text.lower() == "true"
    try:
        return type(like)(text)
    except ValueError:
        raise BadInput(
            f"{what} should be {'a whole number' if isinstance(like, int) else 'a number'}, got {text!r}"
        ) from None


def preprocessing_of(chosen: Sequence[ChosenRecipe], own: ImagePreprocessing) -> ImagePreprocessing:
    """The preprocessing that the recipes train a model with, which it keeps."""
    for one in chosen:
        if one.recipe.preprocess is not None:
            own = one.recipe.preprocess(own, **one.settings)
    return own


def torch_part(place: str) -> Callable[..., Any]:
    """A function of torch that a recipe names as ``module:function``."""
    module, _, name = place.partition(":")
    part: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return part


def accepted(function: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a recipe's settings that a function takes: others belong to other parts of the recipe."""
    parameters = inspect.signature(function).parameters
    return {name: value for name, value in settings.items() if name in parameters}
