"""A grid of recipes at the bench: trained with several seeds on some images, then compared on others."""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from shiftproof.bench.steps import Bench
from shiftproof.corruptions.selection import corruptions_named
from shiftproof.datasets.classes import match_columns
from shiftproof.datasets.clusters import clustering
from shiftproof.errors import BadInput, listed
from shiftproof.models import load_model
from shiftproof.options import PredictionSettings
from shiftproof.runs.adapting import adapted_to
from shiftproof.runs.load import alike_in
from shiftproof.runs.predict import fill_conditions
from shiftproof.runs.shared_features import fill_from_features
from shiftproof.studies.options import Assembled
from shiftproof.training.comparison import RecipeStudy
from shiftproof.training.options import GridOptions
from shiftproof.training.recipe import chosen_recipes, course_of, parted
from shiftproof.training.splits import split
from shiftproof.training.trained import Trained
from shiftproof.training.trainings import check_outliers_used, images_for, with_labels
from shiftproof.types import Caution, Classes, Classifier, Dataset, ModelCard, ModelRef, Results, richest

if TYPE_CHECKING:
    from collections.abc import Callable

    from shiftproof.runs.predict import Progress
    from shiftproof.training.options import TrainOptions

    Train = Callable[[Dataset, Path, TrainOptions, Path | None], Trained]


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
        # a slip is told before anything is trained
        if any(one.recipe.trainer is not None for one in chosen_recipes(name)):
            raise BadInput(f"{name} trains object detectors, and recipes are compared by what classifiers they make")
    refuse_twins(names)
    if options.outliers is not None:
        check_outliers_used(",".join(names), [one for name in names for one in chosen_recipes(name)])
    training, test = parted_images(bench, dataset, options)
    for name in names:
        check_judged(bench, name, training, test, options.seed)
    models: dict[str, list[Classifier]] = {}
    folder, left = Path(options.models), shared_courses(names)
    for place, name in enumerate(names, start=1):
        bench.tell(f"recipe {place} of {len(names)}: {name}")
        by, adapt = parted(name)
        course = course_of(chosen_recipes(by))
        shared = folder / "courses" / slug("+".join(course)) if course in left else None
        trained = train(training, folder / slug(by), options.of(by), shared)
        models[name] = [adapted_to(model, test, bench.store) for model in opened(name, trained, adapt)]
        if shared is not None and name == left[course]:
            shutil.rmtree(shared, ignore_errors=True)
    first, *others = every = [model for own in models.values() for model in own]
    study = RecipeStudy(
        models=every,
        dataset=test,
        corruptions=corruptions_named(",".join(options.corruptions)),
        severities=options.severities,
        grid={name: [model.ref for model in own] for name, own in models.items()},
    )
    if options.level == "head":
        plain = [model for name, own in models.items() if parted(name)[1] is None for model in own]
        share_features(bench, study, test, plain, prediction, progress)
    work = Assembled([study], [test], companions=others, editions={study.fit: False} if study.fit else {})
    bench.fill(first, work, prediction, progress)
    results = one_card_a_recipe(bench.measure(work), study.grid)
    return bench.saved(results, work, report, title=f"{len(names)} recipes of training, judged on {test.ref.name}")


def shared_courses(names: Iterable[str]) -> dict[tuple[str, ...], str]:
    """Courses of training that several recipes have, so trained once; of each the last recipe that goes on from it.

    >>> shared_courses(["cutout", "lp-ft", "lp-ft+wise-ft:0.5", "lp-ft+tta"])
    {('lp-ft',): 'lp-ft+wise-ft:0.5'}
    """
    users: dict[tuple[str, ...], dict[str, str]] = {}
    for name in names:
        by, _ = parted(name)
        users.setdefault(course_of(chosen_recipes(by)), {}).setdefault(by, name)
    return {course: list(by.values())[-1] for course, by in users.items() if len(by) > 1}


def check_judged(bench: Bench, name: str, training: Dataset, test: Dataset, seed: int) -> None:
    """BadInput where models of a recipe could not be judged on the images: these lack labels, or a class is not learned."""
    judged = with_labels(test, "to judge on").classes or Classes(())
    images, _ = images_for(chosen_recipes(name), training, clustering(bench.scoring_options.cluster), seed)
    learned = images.classes or Classes(())
    columns = match_columns(judged, learned, len(learned)).columns
    unknown = [one for one, column in zip(judged.names, columns, strict=True) if column < 0]
    if unknown:
        raise BadInput(
            f"{len(unknown)} of {len(judged)} classes of {test.ref.name} are not among the {len(learned)} that "
            f"{name} learns from {training.ref.name}: {listed(unknown)}; judge on images of classes that are learned"
        )


def refuse_twins(names: Sequence[str]) -> None:
    """BadInput where two names are one recipe, as `cutout` and `cutout:0.5` are: their models would be the same."""
    known: dict[tuple[frozenset[str], str | None], str] = {}
    for name in names:
        by, adapt = parted(name)
        first = known.setdefault((frozenset(map(str, chosen_recipes(by))), adapt), name)
        if first != name:
            raise BadInput(f"{first} and {name} are the same recipe; name each once")


def one_card_a_recipe(results: Results, grid: Mapping[str, Sequence[ModelRef]]) -> Results:
    """Results with one card for the models of each recipe, which names their seeds: no number is about one of them alone.

    What there is to know of a recipe's past is told of its first model.
    """
    cards = {card.fingerprint: card for card in results.models}  # recipes that end with the same weights share one
    known = {name: [ref for ref in refs if ref.fingerprint in cards] for name, refs in grid.items()}
    folded = [_folded(name, refs, cards) for name, refs in known.items() if refs]
    told = {ref.name for refs in known.values() for ref in refs[1:]}
    findings = [
        one
        for one in results.findings
        if not (isinstance(one, Caution) and one.topic == "past" and one.about.get("model") in told)
    ]
    return dataclasses.replace(results, models=tuple(folded), findings=tuple(findings))


def _folded(name: str, refs: Sequence[ModelRef], cards: Mapping[str, ModelCard]) -> ModelCard:
    first, *others = (cards[ref.fingerprint] for ref in refs)
    shared = tuple(note for note in first.notes if all(note in card.notes for card in others))
    seeds = ", ".join(ref.name.removeprefix(f"{name}, ") for ref in refs)
    fingerprints = ", ".join(ref.fingerprint for ref in refs)
    return dataclasses.replace(first, name=name, fingerprint=fingerprints, notes=(f"trained as {seeds}", *shared))


def share_features(
    bench: Bench,
    study: RecipeStudy,
    images: Dataset,
    models: Sequence[Classifier],
    prediction: PredictionSettings,
    progress: Progress | None,
) -> None:
    """Fills the runs of heads on one network: features of the first of them are stored, and the others follow from them."""
    keep = richest([prediction.keep or "top5", bench.scoring.keep, study.keep])
    alike: dict[str, list[Classifier]] = {}
    for model in models:
        if model.head is not None:
            alike.setdefault(str(dict(model.preprocessing.describe())), []).append(model)
    for first, *others in alike.values():
        if others:
            conditions = dict.fromkeys(study.conditions())
            fill_conditions(
                first, images, conditions, store=bench.store, settings=prediction, keep="features", progress=progress
            )
            for one in others:
                fill_from_features(one, first.ref, images, conditions, store=bench.store, keep=keep)


def parted_images(bench: Bench, dataset: str | Path | Dataset, options: GridOptions) -> tuple[Dataset, Dataset]:
    """The images to train with and those to judge on: other ones that were named, or a part that is kept apart."""
    images = bench.dataset(dataset)
    if options.judge_on is not None:
        return images, bench.dataset(options.judge_on)
    clusters = clustering(bench.scoring_options.cluster).joining(images.samples, alike_in(images, bench.store))
    names = ("to train with", "to judge on")
    return split(with_labels(images), options.judge_share, seed=options.seed, clustering=clusters, names=names)


def opened(name: str, trained: Trained, adapt: str | None) -> list[Classifier]:
    """The models of a recipe, one for each seed; of one that joins the seeds the joined one alone."""
    joins = any(one.recipe.joins_seeds for one in chosen_recipes(name))
    parts = [trained] if joins or not trained.parts else trained.parts
    names = {one.folder: f"{name}, joined" if joins else f"{name}, seed {one.record.seed}" for one in parts}
    # trusted as the model that was opened to train them
    return [load_model(str(one.folder), name=names[one.folder], adapt=adapt, trust=True) for one in parts]


def slug(recipe: str) -> str:
    """A recipe as the name of a folder.

    >>> slug("corrupted:fog+wise-ft:0.5")
    'corrupted-fog+wise-ft-0.5'
    """
    return re.sub(r"[^\w.+=,-]", "-", recipe)
