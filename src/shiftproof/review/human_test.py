"""Results of a human test: accuracy of each participant, pairwise agreement, and models on the same images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from shiftproof.curation.project import Item, Project
from shiftproof.curation.provenance import origin_of
from shiftproof.datasets import open_dataset
from shiftproof.datasets.classes import classes_from
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import View, labelled_among
from shiftproof.errors import BadInput
from shiftproof.metrics.accuracy import SUBSETS, Rightness, is_correct, subsets_of, two_by_two
from shiftproof.review.database import Reviewer
from shiftproof.review.findings import dataset_ref, share_of
from shiftproof.review.qualification import is_correct_answer
from shiftproof.review.verdicts import pseudonyms
from shiftproof.review.votes import Vote, standing
from shiftproof.runs.load import load_predictions
from shiftproof.runs.store import Store
from shiftproof.types import Gallery, GalleryItem, Measurement, ModelRef, Run

SHOWN = 24
"""Misclassified pictures in the gallery."""

Right = Mapping[str, NDArray[np.integer]]
"""For each model, (items,): 1 correct, 0 misclassified, -1 without a prediction."""


@dataclass(frozen=True)
class HumanTest:
    """The answers of everybody who took the test."""

    items: tuple[Item, ...]  # with enough answers
    people: tuple[Reviewer, ...]
    right: Rightness  # (items, people)
    said: Mapping[str, Sequence[str]]  # classes named, by item
    lookups: Mapping[int, int]

    @property
    def subsets(self) -> NDArray[np.integer]:
        """The index of each item's difficulty in SUBSETS."""
        return subsets_of(self.right)


def human_test_of(
    project: Project, votes: Iterable[Vote], people: Sequence[Reviewer], lookups: Mapping[int, int]
) -> HumanTest:
    """The test so far, on the images with as many answers as each needs."""
    if project.screen.form != "class":
        raise BadInput(f"{project.title} is no human test; shiftproof curate human-test makes one")
    stand = standing(vote for vote in votes if vote.round == "first")
    answers: dict[str, dict[int, str]] = {}
    for (person, item_id), vote in stand.items():
        answers.setdefault(item_id, {})[person] = str((vote.answer or {})["class"])
    asked = [item for item in project.items if item.role == "asked"]
    items = tuple(item for item in asked if len(answers.get(item.id, ())) >= project.reviewers_each)
    tested = tuple(one for one in people if any(one.id in answers[item.id] for item in items))
    right = np.full((len(items), len(tested)), -1)
    for row, item in enumerate(items):
        for column, one in enumerate(tested):
            if one.id in answers[item.id]:
                right[row, column] = is_correct_answer(item, {"class": answers[item.id][one.id]})
    said = {item.id: list(answers[item.id].values()) for item in items}
    return HumanTest(items, tested, right, said, lookups)


def models_on(project: Project, test: HumanTest, models: Sequence[ModelRef], store: Store) -> Right:
    """Which items stored models classify correctly, among the classes of the test."""
    if not models or not test.items:
        return {}
    images = _images_of(project, test)
    places = {origin_of(item)[1]: place for place, item in enumerate(test.items)}
    found = {}
    for model in models:
        said = load_predictions(Run(model, images.ref), images, store=store, keep="logits", scoring=Scoring("subset"))
        right = np.full(len(test.items), -1)
        right[[places[image_id] for image_id in said.ids]] = is_correct(said.labels, said.top5.classes)
        found[model.name] = right
    return found


def _images_of(project: Project, test: HumanTest) -> View:
    """The tested images in their source dataset, labelled with the classes of the test."""
    location, _ = origin_of(test.items[0])
    if location is None:
        raise BadInput(f"{project.title} does not say where its images lie, so no model's predictions can be found")
    wanted = {origin_of(item)[1] for item in test.items}
    labelled = labelled_among(open_dataset(location), classes_from([one.key for one in project.classes]))
    return View(labelled.of, labelled.classes, [sample for sample in labelled.samples if sample.id in wanted])


def human_findings(project: Project, test: HumanTest, models: Right) -> list[Measurement | Gallery]:
    """Findings of the test; people have pseudonyms, as a report may be passed on."""
    names = [f"Person {letter}" for letter, _ in zip(pseudonyms(), test.people, strict=False)]
    found: list[Measurement | Gallery] = [
        *_accuracies(project, test, names, models),
        *_tables(project, test, names),
        *_by_subset(project, test, names, models),
        *_lookups(project, test, names),
    ]
    return [*found, *_hard(project, test)]


def _accuracies(project: Project, test: HumanTest, names: Sequence[str], models: Right) -> Iterator[Measurement]:
    for name, right in zip(names, test.right.T, strict=True):
        yield from _accuracy("human_accuracy", right, project, reviewer=name)
    for model, right in models.items():
        yield from _accuracy("human_test_accuracy", right, project, model=model)


def _by_subset(project: Project, test: HumanTest, names: Sequence[str], models: Right) -> Iterator[Measurement]:
    """The share of images of each difficulty, and the accuracy of people and models there."""
    for place, subset in enumerate(SUBSETS):
        inside = test.subsets == place
        if len(inside):
            yield share_of("subset_share", int(inside.sum()), len(inside), project, subset=subset)
        for model, right in models.items():
            yield from _accuracy("subset_accuracy", right[inside], project, model=model, subset=subset)
        if subset == "middle":  # in the others everybody is correct, or nobody
            for name, right in zip(names, test.right[inside].T, strict=True):
                yield from _accuracy("human_subset_accuracy", right, project, reviewer=name, subset=subset)


def _tables(project: Project, test: HumanTest, names: Sequence[str]) -> Iterator[Measurement]:
    """For every two people: how many images both classified correctly, one alone, and neither."""
    for (one, first), (other, second) in combinations(zip(names, test.right.T, strict=True), 2):
        table = two_by_two(first, second)
        told = {"both": table[0, 0], f"only {one}": table[0, 1], f"only {other}": table[1, 0], "neither": table[1, 1]}
        for who, count in told.items():
            about = {"dataset": project.title, "people": f"{one} and {other}", "right": who}
            yield Measurement("both_correct", float(count), about, int(table.sum()), {})


def _lookups(project: Project, test: HumanTest, names: Sequence[str]) -> Iterator[Measurement]:
    for person, name, right in zip(test.people, names, test.right.T, strict=True):
        about = {"dataset": project.title, "reviewer": name}
        yield Measurement("class_lookups", float(test.lookups.get(person.id, 0)), about, int((right >= 0).sum()), {})


def _hard(project: Project, test: HumanTest) -> Iterator[Gallery]:
    """Images that nobody classified correctly, with the classes named."""
    hard = [item for item, place in zip(test.items, test.subsets.tolist(), strict=True) if SUBSETS[place] == "hard"]
    if hard:
        shown = tuple(GalleryItem(item.id, _caption(project, item, test.said[item.id])) for item in hard[:SHOWN])
        title = "Misclassified by all participants"
        yield Gallery("hard_for_people", {"dataset": project.title}, dataset_ref(project), title, shown)


def _caption(project: Project, item: Item, said: Sequence[str]) -> str:
    def named(keys: Iterable[str]) -> str:
        return ", ".join(dict.fromkeys(project.class_of[key].name for key in keys))

    return f"{named((item.answer or {})['class'])}; answered {named(said)}"


def _accuracy(metric: str, right: NDArray[np.integer], project: Project, **about: str) -> Iterator[Measurement]:
    answered = int((right >= 0).sum())
    if answered:
        yield share_of(metric, int((right == 1).sum()), answered, project, **about)
