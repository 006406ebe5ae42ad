"""A grid of recipes at the bench: trained with several seeds on some images, then compared on others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from shiftproof.bench.steps import Bench
from shiftproof.corruptions.selection import corruptions_named
from shiftproof.datasets.clusters import clustering
from shiftproof.models import load_model
from shiftproof.options import PredictionSettings
from shiftproof.runs.adapting import adapted_to
from shiftproof.runs.load import alike_in
from shiftproof.studies.options import Assembled
from shiftproof.training.comparison import RecipeStudy
from shiftproof.training.options import GridOptions
from shiftproof.training.recipe import chosen_recipes, parted
from shiftproof.training.splits import split
from shiftproof.training.trained import Trained
from shiftproof.training.trainings import with_labels
from shiftproof.types import Classifier, Dataset, Results

if TYPE_CHECKING:
    from collections.abc import Callable

    from shiftproof.runs.predict import Progress
    from shiftproof.training.options import TrainOptions

    Train = Callable[[Dataset, Path, TrainOptions], Trained]


def compare_trained(
    bench: Bench,
    dataset: str | Path | Dataset,
    options: GridOptions,
    train: Train,
    prediction: PredictionSettings,
    progress: Progress | None,
    report: str | Path | None,
) -> Results:
    """Trains each recipe with each seed, runs the models on images that took no part, and compares them."""
    names = options.names
    for name in names:
        chosen_recipes(name)  # a slip is told before anything is trained
    training, test = parted_images(bench, dataset, options)
    models: dict[str, list[Classifier]] = {}
    for place, name in enumerate(names, start=1):
        bench.tell(f"recipe {place} of {len(names)}: {name}")
        by, adapt = parted(name)
        trained = train(training, Path(options.models) / slug(by), options.of(by))
        found = opened(name, trained, adapt=adapt, trust=bench.model_options.trust)
        models[name] = [adapted_to(model, test, bench.store) for model in found]
    first, *others = every = [model for own in models.values() for model in own]
    study = RecipeStudy(
        models=every,
        dataset=test,
        corruptions=corruptions_named(",".join(options.corruptions)),
        severities=options.severities,
        grid={name: [model.ref for model in own] for name, own in models.items()},
    )
    work = Assembled([study], [test], companions=others, editions={study.fit: False} if study.fit else {})
    bench.fill(first, work, prediction, progress)
    return bench.report(work, report)


def parted_images(bench: Bench, dataset: str | Path | Dataset, options: GridOptions) -> tuple[Dataset, Dataset]:
    """The images to train with and those to judge on: other ones that were named, or a part that is kept apart."""
    images = bench.dataset(dataset)
    if options.judge_on is not None:
        return images, bench.dataset(options.judge_on)
    clusters = clustering(bench.scoring_options.cluster).joining(images.samples, alike_in(images, bench.store))
    names = ("to train with", "to judge on")
    return split(with_labels(images), options.judge_share, seed=options.seed, clustering=clusters, names=names)


def opened(name: str, trained: Trained, *, adapt: str | None = None, trust: bool) -> list[Classifier]:
    """The models of a recipe, one for each seed; of one that joins the seeds the joined one alone."""
    joins = any(one.recipe.joins_seeds for one in chosen_recipes(name))
    parts = [trained] if joins or not trained.parts else trained.parts
    names = {one.folder: f"{name}, joined" if joins else f"{name}, seed {one.record.seed}" for one in parts}
    return [load_model(str(one.folder), name=names[one.folder], adapt=adapt, trust=trust) for one in parts]


def slug(recipe: str) -> str:
    """A recipe as the name of a folder.

    >>> slug("corrupted:fog+wise-ft:0.5")
    'corrupted-fog+wise-ft-0.5'
    """
    return re.sub(r"[^\w.+=,-]", "-", recipe)
