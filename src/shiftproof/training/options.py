"""Options of training: those of both levels, those of heads, those of networks."""

from __future__ import annotations

from dataclasses import fields
from typing import ClassVar, Literal

from shiftproof.errors import BadInput
from shiftproof.options import CORRUPTIONS, POSITIVE, SEVERITIES, SHARE, Bounds, CorruptionChoice, Options, option
from shiftproof.training.recipe import Level, chosen_recipes

SEEDS = "Number of trainings, with one random seed each."
PENALTY = Bounds(0, 1e9, open_below=True)
"""Of the L2 penalty; an endless one has no fit."""


class HeadOptions(Options):
    """How a head is fitted to features."""

    TITLE: ClassVar[str] = "Head level"

    fit: Literal["logistic", "ridge"] = option(
        "logistic", "Multinomial logistic regression, or ridge regression to the classes, scaled to logits."
    )
    l2: float | None = option(
        None, "L2 penalty of the weights, per image.  [default: the best on the validation split]", bounds=PENALTY
    )
    copies: int = option(4, "Augmented copies of each image, beside the image itself.", bounds=Bounds(1, 1000))


class NetworkOptions(Options):
    """How the weights of a whole network are optimised."""

    TITLE: ClassVar[str] = "Network level"

    epochs: int = option(10, "Passes over the training images.", bounds=Bounds(1), common=True)
    batch_size: int | None = option(None, "Images per batch.  [default: 64]", bounds=Bounds(1))
    optimizer: Literal["sgd", "adamw"] = option("sgd", "SGD with Nesterov momentum, or AdamW.")
    learning_rate: float | None = option(
        None, "Learning rate.  [default: the best of a search on held-out images]", bounds=POSITIVE, common=True
    )
    momentum: float = option(0.9, "Momentum of SGD.", bounds=Bounds(0, 1, open_above=True))
    weight_decay: float = option(5e-4, "Weight decay.", bounds=Bounds(0))
    schedule: Literal["cosine", "step", "plateau"] = option("cosine", "Schedule of the learning rate.")
    milestones: tuple[int, ...] = option(
        (),
        "Epochs after which the step schedule multiplies the rate by 0.1.  [default: a half and three quarters of them]",
        bounds=Bounds(1),
    )
    warmup: float = option(0.0, "Epochs of linear warm-up.", bounds=Bounds(0))
    freeze: tuple[str, ...] = option((), "Layers to freeze, by the beginning of their names, comma-separated.")
    batch_norms: Literal["train", "frozen"] = option(
        "train", "Whether batch norms take the statistics of the training images, or keep those they have."
    )
    clip_gradient: float | None = option(None, "Norm that gradients are clipped to.", bounds=POSITIVE)
    patience: int | None = option(
        None, "Epochs without a better accuracy on the validation split before training stops.", bounds=Bounds(1)
    )
    image_size: int | None = option(
        None, "Side of the training images in pixels.  [default: the model's own]", bounds=Bounds(8, 4096)
    )


class TrainingSettings(NetworkOptions, HeadOptions):
    """What is trained, how, and how often."""

    TITLE: ClassVar[str] = "Training"

    level: Level = option(
        "head", "What is trained: the last linear layer on stored features, without torch, or the network.", common=True
    )
    seeds: int = option(1, SEEDS, bounds=Bounds(1, 1000), common=True)
    seed: int = option(0, "Random seed.", common=True)
    validation: float = option(
        0.2,
        "Share of the images kept as validation split, by class and by whole clusters: hyperparameters are chosen there.",
        bounds=SHARE,
        common=True,
    )
    outliers: str | None = option(None, "Images of none of the classes, for recipes that need some.", common=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        other, its_level = (NetworkOptions, "network") if self.level == "head" else (HeadOptions, "head")
        names = [one.name for one in fields(other) if "told" in one.metadata]
        if self.milestones and self.schedule != "step":
            raise BadInput(
                f"--milestones say when the step schedule lowers the rate, and --schedule is {self.schedule}; say "
                "--schedule step too, or leave them out"
            )
        self.refuse(names, f"--level is {self.level}", f"leave it out, or say --level {its_level}")


class TrainOptions(TrainingSettings):
    """A training by one recipe."""

    TITLE: ClassVar[str] = "Training"

    recipe: str = option(
        "baseline",
        "Recipe, or several joined by +, with settings as augmix?severity=3+wise-ft:0.5; see shiftproof list recipes.",
        common=True,
    )


class GridOptions(CorruptionChoice, TrainingSettings):
    """Which recipes are compared, and on what."""

    TITLE: ClassVar[str] = "Recipes"

    recipes: str = option(
        "baseline,cutout,augmix",
        "Recipes as train takes them, comma-separated; the others are compared with the first.",
        common=True,
    )
    corruptions: tuple[str, ...] = option(("all",), CORRUPTIONS, common=True)
    severities: tuple[int, ...] = option((3,), SEVERITIES, bounds=Bounds(1, 5), common=True)
    judge_on: str | None = option(
        None, "Images to test the trained models on.  [default: a part of the dataset, see --judge-share]", common=True
    )
    judge_share: float = option(
        0.3, "Share of the images held out to test the models on, by class and by whole clusters.", bounds=SHARE
    )
    models: str = option("recipes", "Folder for the trained models.", is_path=True, common=True)
    seeds: int = option(3, SEEDS, bounds=Bounds(1, 1000), common=True)

    @property
    def names(self) -> list[str]:
        """The recipes, the baseline first; BadInput where there is none to compare it with."""
        found = separated(self.recipes)
        if len(set(found)) < 2 or len(set(found)) < len(found):
            raise BadInput(
                f"--recipes should be two or more recipes, each once, with commas between them, got {self.recipes!r}"
            )
        return found

    def of(self, recipe: str) -> TrainOptions:
        """The same for a training by one of them; outliers go to recipes that need some."""
        given = {one.name: getattr(self, one.name) for one in fields(TrainingSettings) if one.name in self.given}
        if not any(one.recipe.needs_outliers for one in chosen_recipes(recipe)):
            given.pop("outliers", None)
        return TrainOptions(**given | {"seeds": self.seeds, "recipe": recipe})


def separated(text: str) -> list[str]:
    """Recipes with commas between them; a comma before another setting of the same recipe parts nothing.

    >>> separated("baseline, augmix?severity=3,width=2, corrupted:fog+wise-ft:0.5")
    ['baseline', 'augmix?severity=3,width=2', 'corrupted:fog+wise-ft:0.5']
    """
    found: list[str] = []
    for part in (one.strip() for one in text.split(",")):
        if found and "?" in found[-1] and "=" in part.partition("?")[0]:
            found[-1] += f",{part}"
        elif part:
            found.append(part)
    return found
