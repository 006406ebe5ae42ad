"""From a model, images and options to trained models: the jobs of all seeds, done one after the other."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from shiftproof import catalog
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
from shiftproof.training.recipe import Begun, ChosenRecipe, Recipe, chosen_recipes, torch_part
from shiftproof.training.splits import split
from shiftproof.training.trained import Trained, architecture_of, read_trained, write_parts
from shiftproof.types import Classes, Dataset, Truths, fingerprint_of
from shiftproof.types.shown import counted

HELD_OUT = "held-out.csv"

WITH_BOXES = {"augment", "preprocess", "averages", "finish"}
"""Parts of training that recipes may change beside one that trains object detectors."""


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
    courses: Path | None = None  # where checkpoints stay that other trainings share

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
    if outliers:
        check_outliers_used(options.recipe, recipes)
    of_boxes = next((one for one in recipes if one.recipe.trainer is not None), None)
    for one in recipes:
        if of_boxes is not None and one is not of_boxes and not _goes_with_boxes(one.recipe):
            raise BadInput(f"{one.name} is a recipe for classifiers and cannot be joined with {of_boxes.name}")
    return recipes


def check_outliers_used(named: str, recipes: Iterable[ChosenRecipe]) -> None:
    """BadInput where outliers are named and no recipe would look at them."""
    if not any(one.recipe.needs_outliers for one in recipes):
        users = [name for name, recipe in catalog.RECIPES.loaded() if recipe.needs_outliers]
        raise BadInput(f"--outliers are for {listed(users)}, and {named} looks at none; leave them out")


def _goes_with_boxes(recipe: Recipe) -> bool:
    """Whether a recipe can be joined with one that trains object detectors."""
    return (
        bool(recipe.parts)
        and recipe.parts <= WITH_BOXES
        and (recipe.augment is None or (recipe.keeps_places and not recipe.copies))
    )


def jobs_of(request: Request, store: Store) -> list[Job]:
    """The trainings of all seeds, which share one validation split; BadInput where the images will not do."""
    options, recipes = request.options, request.recipes
    boxed = any(one.recipe.trainer is not None for one in recipes)
    images, held_out = images_for(recipes, request.images, request.clustering, options.seed)
    training, validation = split(
        images,
        options.validation,
        seed=options.seed,
        clustering=request.clustering,
        names=("training split", "validation split"),
        strata=strata_of(images) if boxed else None,
    )
    options = with_published(
        options,
        recipes,
        architecture_of(request.model, request.model_options),
        images=len(training.samples),
        from_file=request.model_options.weights not in (None, "random"),
    )
    found = digests_of(images, store)
    parts = [(key, found[key]) for key in sorted(found)]
    digest = fingerprint_of(parts, boxes_digest(images)) if boxed else fingerprint_of(parts)
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
            course=request.courses and request.courses / f"seed-{seed}",
        )
        for seed, folder in zip(_seeds(options), folders, strict=True)
    ]


def images_for(
    recipes: Sequence[ChosenRecipe], images: Dataset, clustering: Clustering, seed: int
) -> tuple[View, Dataset | None]:
    """The images that recipes train and validate with, among the classes that are learned; and those that are left out."""
    boxed = any(one.recipe.trainer is not None for one in recipes)
    chosen: Dataset = with_objects(images) if boxed else with_labels(images)
    held_out: Dataset | None = None
    for one in recipes:
        if one.recipe.select is not None:
            chosen, held_out = one.recipe.select(chosen, clustering, seed, **one.settings)
    for one in recipes:
        if one.recipe.thin is not None:
            kept = one.recipe.thin(chosen.samples, **one.settings)
            chosen = View(chosen, chosen.classes, kept, notes=chosen.notes)
    return of_present_classes(chosen, least=1 if boxed else 2), held_out


def with_published(
    options: TrainOptions,
    recipes: Sequence[ChosenRecipe],
    architecture: str,
    *,
    images: int = 1,
    from_file: bool = False,
) -> TrainOptions:
    """The options, with the hyperparameters of recipes that have some where nobody chose others."""
    if options.level == "head":
        return options
    begun = Begun(
        architecture=architecture,
        from_file=from_file,
        images=images,
        epochs=options.epochs if "epochs" in options.given else None,
        batch_size=options.batch_size,
        schedule=options.schedule if "schedule" in options.given else None,
    )
    asked = [one.recipe.hyperparameters(begun, **one.settings) for one in recipes if one.recipe.hyperparameters is not None]
    found = {name: value for some in asked for name, value in some.items() if name not in options.given}
    whole = dataclasses.replace(options, **found)
    late = [one for one in options.milestones if one >= whole.epochs]
    if late:
        raise BadInput(
            f"training has {counted(whole.epochs, 'epoch')}, so --milestones {listed(map(str, late))} would never come; "
            "name earlier ones, or more --epochs"
        )
    return whole


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


def with_labels(images: Dataset, purpose: str = "to train on") -> View:
    """The images that have a label."""
    samples = [sample for sample in images.samples if sample.labels]
    if images.classes is None or not samples:
        raise BadInput(f"{images.ref.name} has no labels {purpose}; --labels gives some")
    return View(images, images.classes, samples, notes=images.notes)


def with_objects(images: Dataset) -> View:
    """The images that have an object, labelled with the classes of these; crowds and ignored objects do not count."""
    if images.truths is None or images.classes is None:
        raise BadInput(
            f"{images.ref.name} has no boxes, which an object detector is trained on: name a COCO file, a folder of Pascal "
            "VOC or YOLO, or boxed:DATASET?boxes=FILE"
        )
    truths = images.truths
    counted = truths.take(~(truths.crowd | truths.ignored))
    labels: dict[str, set[int]] = {}
    for place, label in zip(counted.image.tolist(), counted.classes.tolist(), strict=True):
        labels.setdefault(truths.ids[place], set()).add(label)
    samples = [
        dataclasses.replace(sample, labels=tuple(sorted(labels[sample.id])))
        for sample in images.samples
        if sample.id in labels
    ]
    if not samples:
        raise BadInput(f"no image of {images.ref.name} has a box of an object")
    without = len(images.samples) - len(samples)
    notes = (*images.notes, *((f"{without:,} images without objects took no part",) if without else ()))
    ids = [sample.id for sample in samples]
    return View(images, images.classes, samples, notes=notes, truths=truths.of_images(ids))


def strata_of(images: Dataset) -> list[tuple[int, ...]]:
    """For each image the rarest of its classes; nothing where every class would be that of one image alone."""
    counts = Counter(label for sample in images.samples for label in sample.labels)
    rarest: list[tuple[int, ...]] = [
        (min(sample.labels, key=lambda label: (counts[label], label)),) for sample in images.samples
    ]
    return rarest if max(Counter(rarest).values()) > 1 else [()] * len(rarest)


def boxes_digest(images: Dataset) -> str:
    """A digest of the boxes of a dataset, and of what they are of."""
    truths = images.truths
    assert truths is not None  # noqa: S101 - they were asked for
    total = hashlib.sha256("\0".join(truths.ids).encode("utf-8", "surrogateescape"))
    for column in (truths.image, truths.boxes, truths.classes, truths.crowd, truths.ignored):
        total.update(np.ascontiguousarray(column, np.float64).tobytes())
    return total.hexdigest()


def of_present_classes(images: Dataset, *, least: int = 2) -> View:
    """The images labelled among the classes that have any; BadInput where these are fewer than a classifier needs."""
    present = sorted({label for sample in images.samples for label in sample.labels})
    classes = images.classes or Classes(())
    if len(present) < least:
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
    return View(images, kept, samples, notes=images.notes, truths=images.truths and _relabelled(images.truths, place_of))


def _relabelled(truths: Truths, place_of: Mapping[int, int]) -> Truths:
    """Objects by the new places of their classes; those of others, which are crowds or ignored, are left out."""
    known = truths.take(np.isin(truths.classes, list(place_of)))
    return dataclasses.replace(known, classes=np.array([place_of[label] for label in known.classes.tolist()], int))


def done_before(job: Job) -> Trained | None:
    """The result of this very training, where its folder holds it; BadInput where it holds another one."""
    found = read_trained(job.folder)
    if found is not None and (found.parts or found.record.key != job.key):
        raise BadInput(
            f"{job.folder} holds another training ({'+'.join(found.record.recipes)}, {found.record.level} level, "
            f"seed {found.record.seed}, of {found.record.dataset['name']}); name another folder, or remove it"
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
        raise BadInput(f"{request.folder} holds the training of one seed; name another folder for {len(jobs)}")
    done: dict[str, Trained] = {}
    for job, found in zip(jobs, before, strict=True):
        if found is not None:
            tell(f"{job.folder} holds this training already")
        done[job.folder.name] = found or trainer.train(job)
        job.remove_checkpoints()
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


def network_trainer(recipes: Sequence[ChosenRecipe], progress: Progress | None, tell: Callable[[str], None]) -> NetworkLevel:
    """What trains networks by these recipes; the command that installs it where it is not."""
    own = next((one.recipe.trainer for one in recipes if one.recipe.trainer is not None), None)
    try:
        made: NetworkLevel = torch_part(own or "shiftproof.training.networks.trainer:NetworkTrainer")(progress, tell)
    except ModuleNotFoundError as missing:
        if not isinstance(missing_extra("", missing), MissingExtra):
            raise
        what, extra = (
            ("training at network level", "train") if own is None else ("training object detectors", "train,torchvision")
        )
        raise MissingExtra(what, extra) from missing
    return made
