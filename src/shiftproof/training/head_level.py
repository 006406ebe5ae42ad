"""Head level: features of clean and augmented pictures through the store, then a linear head, put into the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shiftproof.datasets.classes import match_columns
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.subsets import unlabelled
from shiftproof.errors import BadInput, ClassMismatch, listed
from shiftproof.models.loaded import LoadedClassifier, NetworkGraph, preprocessed
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.options import PredictionSettings
from shiftproof.randomness import rng_for
from shiftproof.runs.load import load_predictions
from shiftproof.runs.predict import Progress, fill
from shiftproof.runs.store import Store
from shiftproof.training.heads import PENALTIES, Design, FittedHead, Linear, fit_head
from shiftproof.training.job import Job
from shiftproof.training.recipe import ChosenRecipe, Weights, preprocessing_of, recipe_of
from shiftproof.training.trained import Source, Trained, given, read_weights, record_of, write_trained
from shiftproof.types import (
    CLEAN,
    Classes,
    Classifier,
    Condition,
    Dataset,
    Decoder,
    Head,
    Image,
    ImageSource,
    Preprocessing,
    Run,
    Sample,
)

AS_INPUT = Condition("clean", picture="whole")
"""The condition of augmented pictures: they are cut to the model's input already."""

PIXELS = 1
"""Version of the pixels: raised when augmentations change, so that features of the old copies are not used."""

OTHERS = 4
"""Other pictures that an augmentation may mix in, drawn for each copy."""


@dataclass(frozen=True)
class OtherPictures:
    """Pictures that are opened when they are asked for."""

    sources: tuple[ImageSource, ...]
    preprocessing: Preprocessing

    def __len__(self) -> int:
        return len(self.sources)

    def __getitem__(self, place: int) -> Image:
        source = self.sources[place]
        return self.preprocessing.cut(source.decode(source.read(), decoder=self.preprocessing.decoder))


@dataclass(frozen=True)
class AugmentedImage:
    """One augmented copy, cut to the model's input; its bytes are those of the source image and how it is changed."""

    source: ImageSource
    key: str  # the source image's id
    recipes: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]  # names, each with its settings
    copy: int
    seed: int
    others: tuple[tuple[str, ImageSource], ...]  # by id
    preprocessing: Preprocessing

    def stamp(self) -> str | None:
        stamp = self.source.stamp()
        return None if stamp is None else f"{stamp}\0{self._suffix()}"

    def read(self) -> bytes:
        return self.source.read() + self._suffix().encode("utf-8", "surrogateescape")

    def decode(self, data: bytes, *, decoder: Decoder = "pillow") -> Image:
        stored = data.removesuffix(self._suffix().encode("utf-8", "surrogateescape"))
        picture = self.preprocessing.cut(self.source.decode(stored, decoder=decoder))
        others = OtherPictures(tuple(source for _, source in self.others), self.preprocessing)
        known = [(name, recipe_of(name), dict(settings)) for name, settings in self.recipes]
        changes = [(name, one.crop, settings) for name, one, settings in known]
        changes += [(name, one.augment, settings) for name, one, settings in known]
        for name, change, settings in changes:
            if change is not None:
                picture = change(picture, rng_for(self.key, f"{name} {self.copy}", self.seed), others, **settings)
        return picture

    def _suffix(self) -> str:
        others = [key for key, _ in self.others]
        parts = (PIXELS, *self.recipes, self.key, self.copy, self.seed, *others, self.preprocessing.describe())
        return "\0".join(["shiftproof augmented copy", *map(str, parts)])


@dataclass(frozen=True)
class CopiesOf:
    """Finds a copy by its id, which begins with that of its image."""

    images: Dataset
    samples: Mapping[str, Sample]
    recipes: tuple[ChosenRecipe, ...]
    seed: int
    preprocessing: Preprocessing

    def __call__(self, copy_id: str) -> AugmentedImage:
        key, _, copy = copy_id.rsplit("/", 2)
        return AugmentedImage(
            self.images.source(self.samples[key]),
            key,
            tuple((one.name, tuple(one.settings.items())) for one in self.recipes),
            int(copy),
            self.seed,
            tuple(self._others(key, copy)),
            self.preprocessing,
        )

    def _others(self, key: str, copy: str) -> Sequence[tuple[str, ImageSource]]:
        if not any(one.recipe.mixes for one in self.recipes):  # so that copies stay the same when images are added
            return []
        samples = self.images.samples
        places = rng_for(key, f"others {copy}", self.seed).integers(len(samples), size=OTHERS)
        return [(samples[place].id, self.images.source(samples[place])) for place in places]


def augmented(
    images: Dataset, recipes: Sequence[ChosenRecipe], preprocessing: Preprocessing, *, copies: int, seed: int
) -> ImageList:
    """Copies of every image as recipes change them; their ids are that of the image, the seed and the copy's number."""
    called = "+".join(one.name for one in recipes)
    samples = [
        Sample(f"{sample.id}/{called}-{seed}/{copy:04d}", sample.labels, sample.facts)
        for sample in images.samples
        for copy in range(copies)
    ]
    by_id = {sample.id: sample for sample in images.samples}
    return ImageList(
        f"{called} of {images.ref.name}",
        samples,
        images.classes,
        CopiesOf(images, by_id, tuple(recipes), seed, preprocessing),
    )


@dataclass(frozen=True)
class HeadLevel:
    """One training of a head; every step is done when it is first asked for, and features are stored."""

    job: Job
    model: Classifier
    store: Store
    settings: PredictionSettings
    progress: Progress | None = None
    unreadable: dict[str, str] = field(default_factory=dict)  # why, by id, as it is found

    def __post_init__(self) -> None:
        """An error now rather than after all features."""
        if not self.model.has_features:
            raise BadInput(
                f"{self.model.ref.name} shows no features to train a head on; name the tensor or layer that holds them with "
                "--features, or train the network: --level network"
            )
        if self.graph is None and not self.job.model:
            raise BadInput(
                f"{self.model.ref.name} is no ONNX graph and has no name that loads it again, so a new head could not be "
                "kept with it; export it as ONNX, or name it as torch:MODULE:FACTORY"
            )
        if self.job.multi_label and self.job.options.fit == "ridge":
            raise BadInput(
                "ridge regression has no sigmoid for each class, which the recipe trains; leave out --fit, or the recipe"
            )
        _weights(self.job.training.samples, self.job.recipes)

    @cached_property
    def graph(self) -> NetworkGraph | None:
        """The network as ONNX; None where it cannot be had so."""
        if not isinstance(self.model, LoadedClassifier) or not isinstance(self.model.preprocessing, ImagePreprocessing):
            return None
        graph = self.model.graph
        return None if graph is None or graph.features is None else graph

    @cached_property
    def _augments(self) -> list[ChosenRecipe]:
        """The recipes that change pictures: crops and flips only where they were asked for, since no feature is learned."""
        return [one for one in self.job.recipes if one.recipe.parts & {"crop", "augment"}]

    @cached_property
    def clean(self) -> tuple[Design, Design]:
        """Training and validation split without augmentation."""
        return self._design(self.job.training, augment=False), self._design(self.job.validation, augment=False)

    @cached_property
    def mixed(self) -> tuple[Design, Design]:
        """Training and validation split with the augmented copies of each image beside it."""
        if not self._augments:
            return self.clean
        return self._design(self.job.training, augment=True), self._design(self.job.validation, augment=True)

    def _design(self, images: Dataset, *, augment: bool) -> Design:
        of_image = {sample.id: place for place, sample in enumerate(images.samples)}
        found = [(self._features(images, CLEAN), [sample.id for sample in images.samples])]
        if augment:
            copies = augmented(
                images,
                self._augments,
                self.model.preprocessing,
                copies=self.job.options.copies,
                seed=self.job.seed,
            )
            behind = [sample.id for sample in images.samples for _ in range(self.job.options.copies)]
            found.append((self._features(copies, AS_INPUT), behind))
        features = np.concatenate([rows for (rows, _), _ in found])
        places = np.array([of_image[behind[place]] for (_, kept), behind in found for place in kept], dtype=np.intp)
        weights = _weights(images.samples, self.job.recipes)[places]
        targets = self.job.targets(images.samples)[places]
        return Design(features, targets, weights / weights.sum(), self.job.multi_label)

    def _features(self, images: Dataset, condition: Condition) -> tuple[NDArray[np.floating], list[int]]:
        """Features of the images that can be read, and the places of these."""
        bare = unlabelled(images)  # what the labels mean to the old head does not matter
        fill(
            self.model,
            bare,
            store=self.store,
            condition=condition,
            settings=self.settings,
            keep="features",
            progress=self.progress,
        )
        run = Run(self.model.ref, bare.ref, condition)
        predictions = load_predictions(run, bare, store=self.store, keep="features")
        self.unreadable.update({one.id: one.reason for one in predictions.skipped_images if condition == CLEAN})
        if not predictions.ids:
            raise BadInput(f"no image of {images.ref.name} can be read: {next(iter(self.unreadable.values()))}")
        place_of = {sample.id: place for place, sample in enumerate(images.samples)}
        return predictions.need_features(), [place_of[one] for one in predictions.ids]

    @cached_property
    def fitted(self) -> FittedHead:
        """The head fitted to clean and augmented pictures."""
        return self._fit(self.mixed, "head")

    @cached_property
    def fitted_clean(self) -> FittedHead:
        """The head fitted to clean pictures alone."""
        return self._fit(self.clean, "head on clean pictures") if self._augments else self.fitted

    def _fit(self, designs: tuple[Design, Design], what: str) -> FittedHead:
        options, progress, rows = self.job.options, self.progress, len(designs[0].features)
        penalties = PENALTIES if options.l2 is None else (options.l2,)
        if progress:
            progress.begin(f"{self.model.ref.name} · {what}, {len(penalties)} penalties", len(penalties) * rows, 0)

        def advance(penalties: int) -> None:
            if progress:
                progress.advance(penalties * rows)

        found = fit_head(*designs, kind=options.fit, penalties=penalties, advance=advance)
        if progress:
            progress.end()
        return found

    @cached_property
    def start(self) -> Weights:
        """The head before training: the old one's rows of these classes; where it lacks some, the head of clean pictures."""
        return weights_of(self.fitted_clean.head if self._old is None else self._old)

    @cached_property
    def _old(self) -> Linear | None:
        return old_head(self.model, self.job.classes)

    @cached_property
    def _finishes(self) -> list[ChosenRecipe]:
        return [one for one in self.job.recipes if one.recipe.finish is not None and not one.recipe.joins_seeds]

    @cached_property
    def end(self) -> Weights:
        """The head after training, as its recipes finish it."""
        found = weights_of(self.fitted.head)
        for one in self._finishes:
            assert one.recipe.finish is not None  # noqa: S101 chosen by that
            found = one.recipe.finish(self.start, [found], self.score, **one.settings)
        return found

    @property
    def notes(self) -> tuple[str, ...]:
        """What the weights before training were, where they matter, and which images could not be read."""
        first = "a head fitted to clean pictures" if self._old is None else "the model's own head for these classes"
        told = [f"{one.name}: before training there was {first}" for one in self._finishes]
        if self.unreadable:
            some = listed((f"{key} ({reason})" for key, reason in self.unreadable.items()), 3)
            told.append(f"{len(self.unreadable):,} images could not be read and took no part: {some}")
        return tuple(told)

    def score(self, weights: Weights) -> float:
        """Accuracy on the validation split, of clean and augmented pictures together."""
        return self.mixed[1].accuracy(head_of(weights))

    def accuracies(self, weights: Weights) -> dict[str, float]:
        """Accuracy on the validation split."""
        head = head_of(weights)
        found = {"clean": self.clean[1].accuracy(head)}
        return found | ({"clean and augmented": self.mixed[1].accuracy(head)} if self._augments else {})


@dataclass(frozen=True)
class HeadTrainer:
    """Trains heads on the features of one model."""

    model: Classifier
    store: Store
    settings: PredictionSettings
    progress: Progress | None = None

    def train(self, job: Job) -> Trained:
        level = self._level(job)
        found = {"fit": job.options.fit, "l2": level.fitted.l2, "copies": job.options.copies}
        return self._written(level, level.end, options=found, curves=tuple(one._asdict() for one in level.fitted.tried))

    def join(self, job: Job, recipe: ChosenRecipe, parts: Sequence[Trained]) -> Trained:
        level, finish = self._level(job), recipe.recipe.finish
        assert finish is not None  # noqa: S101 a recipe that joins seeds does it by that
        ends = [read_weights(part.folder) for part in parts]
        found = {"fit": job.options.fit, "copies": job.options.copies}
        return self._written(level, finish({}, ends, level.score, **recipe.settings), options=found)

    def _level(self, job: Job) -> HeadLevel:
        return HeadLevel(job, self.model, self.store, self.settings, self.progress)

    def _written(self, level: HeadLevel, weights: Weights, **told: Any) -> Trained:
        job = level.job
        record = record_of(
            job,
            Source(job.model, self.model.ref.fingerprint, given(job.model_options)),
            self.model.seen,
            preprocessing=str(self.model.preprocessing),
            accuracy=level.accuracies(weights),
            notes=level.notes,
            **told,
        )
        graph = None
        if level.graph is not None:
            from shiftproof.models.classifiers.onnx_head import with_head

            graph = with_head(level.graph, Head(weights["weight"], weights["bias"]), job.classes.names)
        return write_trained(job.folder, record, weights, graph)


def with_preprocessing(model: Classifier, recipes: Sequence[ChosenRecipe]) -> Classifier:
    """The model with the preprocessing that the recipes train it with, which it keeps."""
    own = model.preprocessing
    if not any(one.recipe.preprocess for one in recipes):
        return model
    if not isinstance(own, ImagePreprocessing) or not isinstance(model, LoadedClassifier):
        raise BadInput(f"{model.ref.name} has a preprocessing of its own, which a recipe cannot change")
    return preprocessed(model, preprocessing_of(recipes, own))


def weights_of(head: Linear) -> Weights:
    """A head as the tensors that are stored."""
    return {"weight": head.weight.astype(np.float32), "bias": head.bias.astype(np.float32)}


def head_of(weights: Weights) -> Linear:
    """The reverse."""
    return Linear(weights["weight"], weights["bias"])


def old_head(model: Classifier, classes: Classes) -> Linear | None:
    """The rows of the model's own head that stand for these classes; None where some are lacking or it has none."""
    head = model.head
    if head is None or model.classes is None or model.gives == "scores":
        return None
    try:
        columns = match_columns(classes, model.classes, len(model.classes)).columns
    except ClassMismatch:
        return None
    if min(columns) < 0 or len(set(columns)) < len(columns):
        return None
    return Linear(head.weights[list(columns)], head.bias[list(columns)])


def _weights(samples: Sequence[Sample], recipes: Sequence[ChosenRecipe]) -> NDArray[np.floating]:
    weights = np.ones(len(samples))
    for one in recipes:
        if one.recipe.weigh is not None:
            weights = weights * one.recipe.weigh(samples, **one.settings)
    return weights
