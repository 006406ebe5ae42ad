"""From a model, images and options to trained models: the jobs of all seeds, done one after the other."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from shiftproof.datasets.clusters import Clustering
from shiftproof.datasets.image_list import FileImage
from shiftproof.datasets.manifest import joined_labels
from shiftproof.datasets.subsets import View
from shiftproof.errors import BadInput, MissingExtra, listed
from shiftproof.files import csv_bytes, write_whole
from shiftproof.options import ModelSettings
from shiftproof.registry import missing_extra
from shiftproof.runs.load import digests_of
from shiftproof.runs.predict import Progress
from shiftproof.runs.store import Store
from shiftproof.training.job import Job
from shiftproof.training.options import TrainOptions
from shiftproof.training.recipe import ChosenRecipe, chosen_recipes, torch_part
from shiftproof.training.splits import split
from shiftproof.training.trained import Trained, architecture_of, read_trained, write_parts
from shiftproof.types import Classes, Dataset, fingerprint_of
from shiftproof.types.shown import counted

HELD_OUT = "held-out.csv"


class Trainer(Protocol):
    """What does the work of a level."""

    def train(self, job: Job) -> Trained:
        """Trains with one seed and writes the result."""

    def join(self, job: Job, recipe: ChosenRecipe, parts: Sequence[Trained]) -> Trained:
        """Makes one model of those of several seeds, as a recipe that joins them says."""


class NetworkLevel(Trainer, Protocol):
    """What trains networks, and knows models to begin with that only training has."""

    def source(self, model: object, settings: ModelSettings) -> str:
        """The fingerprint of the model that a training begins with."""


@dataclass(frozen=True)
class Request:
    """What is to be trained, on what, into which folder."""

    model: str
    source: str  # fingerprint of the model
    model_options: ModelSettings
    images: Dataset
    outliers: Dataset | None
    clustering: Clustering
    options: TrainOptions
    folder: Path

    @property
    def recipes(self) -> tuple[ChosenRecipe, ...]:
        return checked_recipes(self.options, outliers=self.outliers is not None)


def checked_recipes(options: TrainOptions, *, outliers: bool) -> tuple[ChosenRecipe, ...]:
    """The recipes that the options name; BadInput where one cannot be done so."""
    recipes = chosen_recipes(options.recipe)
    for one in recipes:
        if one.recipe.adapt is not None:
            raise BadInput(
                f"{one.name} adapts a model at test time, and trains nothing beforehand: say it where the model is run, as "
                f"in shiftproof run MODEL DATASET --adapt {one.name}"
            )
        if options.level not in one.recipe.levels:
            raise BadInput(
                f"the recipe {one.name} is done at {listed(one.recipe.levels)} level; say --level {one.recipe.levels[0]}"
            )
        if one.recipe.needs_outliers and not outliers:
            raise BadInput(f"the recipe {one.name} needs images of none of the classes; name some with --outliers")
        if one.recipe.joins_seeds and options.seeds == 1:
            raise BadInput(f"the recipe {one.name} makes one model of several seeds; say --seeds 3")
    return recipes


def jobs_of(request: Request, store: Store) -> list[Job]:
    """The trainings of all seeds, which share one validation split; BadInput where the images will not do."""
    options, recipes = request.options, request.recipes
    images: Dataset = with_labels(request.images)
    held_out: Dataset | None = None
    for one in recipes:
        if one.recipe.select is not None:
            images, held_out = one.recipe.select(images, request.clustering, options.seed, **one.settings)
    for one in recipes:
        if one.recipe.thin is not None:
            kept = one.recipe.thin(images.samples, **one.settings)
            images = View(images, images.classes, kept, notes=images.notes)
    images = of_present_classes(images)
    options = with_published(options, recipes, architecture_of(request.model, request.model_options))
    training, validation = split(
        images,
        options.validation,
        seed=options.seed,
        clustering=request.clustering,
        names=("training split", "validation split"),
    )
    found = digests_of(images, store)
    digest = fingerprint_of([(key, found[key]) for key in sorted(found)])
    folders = [request.folder / f"seed-{seed}" if options.seeds > 1 else request.folder for seed in _seeds(options)]
    return [
        Job(
            model=request.model,
            model_options=request.model_options,
            recipes=recipes,
            level=options.level,
            training=training,
            validation=validation,
            outliers=request.outliers,
            classes=images.classes or Classes(()),
            options=options,
            seed=seed,
            folder=folder,
            source=request.source,
            dataset=request.images.ref,
            digest=digest,
            held_out=held_out,
        )
        for seed, folder in zip(_seeds(options), folders, strict=True)
    ]


def with_published(options: TrainOptions, recipes: Sequence[ChosenRecipe], architecture: str) -> TrainOptions:
    """The options, with the hyperparameters of recipes that have some where nobody chose others."""
    if options.level == "head":
        return options
    asked = [one.recipe.hyperparameters(architecture) for one in recipes if one.recipe.hyperparameters is not None]
    found = {name: value for some in asked for name, value in some.items() if name not in options.given}
    return dataclasses.replace(options, **found)


def hyperparameters_told(options: TrainOptions) -> str:
    """The options that recipes may bring, in a sentence.

    >>> hyperparameters_told(TrainOptions(level="network", batch_size=32, schedule="plateau", learning_rate=1e-4))
    '10 epochs, batches of 32, schedule plateau, learning rate 0.0001'
    """
    rate = "by a search" if options.learning_rate is None else f"{options.learning_rate:g}"
    batch = "" if options.batch_size is None else f"batches of {options.batch_size}, "
    return f"{counted(options.epochs, 'epoch')}, {batch}schedule {options.schedule}, learning rate {rate}"


def _seeds(options: TrainOptions) -> range:
    return range(options.seed, options.seed + options.seeds)


def with_labels(images: Dataset) -> View:
    """The images that have a label."""
    samples = [sample for sample in images.samples if sample.labels]
    if images.classes is None or not samples:
        raise BadInput(f"{images.ref.name} has no labels to train on; --labels gives some")
    return View(images, images.classes, samples, notes=images.notes)


def of_present_classes(images: Dataset) -> View:
    """The images labelled among the classes that have any; BadInput where that is one alone."""
    present = sorted({label for sample in images.samples for label in sample.labels})
    classes = images.classes or Classes(())
    if len(present) < 2:
        raise BadInput(
            f"{images.ref.name} has images of {len(present)} class ({listed(classes.names[place] for place in present)}); "
            "a classifier needs two at least"
        )
    place_of = {place: new for new, place in enumerate(present)}
    kept = Classes(
        tuple(classes.names[place] for place in present),
        None if classes.wnids is None else tuple(classes.wnids[place] for place in present),
    )
    samples = [
        dataclasses.replace(sample, labels=tuple(place_of[label] for label in sample.labels)) for sample in images.samples
    ]
    return View(images, kept, samples, notes=images.notes)


def done_before(job: Job) -> Trained | None:
    """The result of this very training, where its folder holds it; BadInput where it holds another one."""
    found = read_trained(job.folder)
    if found is not None and (found.parts or found.record.key != job.key):
        raise BadInput(
            f"{job.folder} holds another training ({'+'.join(found.record.recipes)}, {found.record.level} level, "
            f"seed {found.record.seed}, of {found.record.dataset['name']}); name another folder with -o, or remove it"
        )
    return found


def train_jobs(request: Request, jobs: Sequence[Job], trainer: Trainer, tell: Callable[[str], None]) -> Trained:
    """The result of all jobs; what a folder holds already is not trained again."""
    before = [done_before(job) for job in jobs]
    if jobs[0].level == "network":
        for one in request.recipes:
            if one.recipe.hyperparameters is not None:
                tell(f"{one.name}: {hyperparameters_told(jobs[0].options)}")
    if len(jobs) > 1 and (above := read_trained(request.folder)) is not None and not above.parts:
        done_before(dataclasses.replace(jobs[0], folder=request.folder))
        raise BadInput(f"{request.folder} holds the training of one seed; name another folder with -o for {len(jobs)}")
    done: dict[str, Trained] = {}
    for job, found in zip(jobs, before, strict=True):
        if found is not None:
            tell(f"{job.folder} holds this training already")
        done[job.folder.name] = found or trainer.train(job)
        shutil.rmtree(job.folder / "checkpoints", ignore_errors=True)
    if jobs[0].held_out is not None:
        tell_held_out(jobs[0].held_out, request.folder, tell)
    if len(jobs) == 1:
        return next(iter(done.values()))
    joins = next((one for one in request.recipes if one.recipe.joins_seeds), None)
    if joins is not None:
        job = dataclasses.replace(jobs[0], folder=request.folder / "joined")
        joined = trainer.join(job, joins, list(done.values()))
        return write_parts(request.folder, done | {"joined": joined}, "joined", f"{joins} of all of them")
    best = max(done, key=lambda name: list(done[name].accuracy.values())[-1])
    return write_parts(request.folder, done, best, "the best on the validation split")


def tell_held_out(images: Dataset, folder: Path, tell: Callable[[str], None]) -> None:
    """Lists images that took no part, where each is a file, and tells how to measure them."""
    sources = [images.source(sample) for sample in images.samples]
    if not all(isinstance(source, FileImage) for source in sources):
        tell(f"{len(sources):,} images took no part; {folder / 'training.json'} has their ids")
        return
    keys = (images.classes or Classes(())).keys
    rows = [
        [os.path.abspath(source.path), sample.id, joined_labels(keys[label] for label in sample.labels)]
        for source, sample in zip(sources, images.samples, strict=True)
        if isinstance(source, FileImage)
    ]
    write_whole(folder / HELD_OUT, csv_bytes([["path", "id", "labels"], *rows]))
    tell(
        f"{len(rows):,} images took no part; to measure on them: shiftproof run {folder} {folder / HELD_OUT} --allow-outside"
    )


def network_trainer(progress: Progress | None, tell: Callable[[str], None]) -> NetworkLevel:
    """What trains networks; the command that installs it where it is not."""
    try:
        made: NetworkLevel = torch_part("shiftproof.training.networks.trainer:NetworkTrainer")(progress, tell)
    except ModuleNotFoundError as missing:
        if not isinstance(missing_extra("", missing), MissingExtra):
            raise
        raise MissingExtra("training at network level", "train") from missing
    return made
