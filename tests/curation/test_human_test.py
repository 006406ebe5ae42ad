"""Projects that test people: which images they take, and the command that makes and measures them."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow

from command import Shiftproof
from review.reviewed_projects import judge
from review.served import drawn_project
from shiftproof import predict
from shiftproof.curation.human_test import CONSENT, Rounds, human_test_project
from shiftproof.curation.project import Item, Project, ReviewSettings, load_project
from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput
from shiftproof.reports.build import unpacked
from shiftproof.review.database import Database
from shiftproof.types import Classifier

Photos = Callable[..., Path]


@pytest.fixture
def photos(tmp_path: Path) -> Photos:
    """Draws so many photos a class into a folder, another picture each."""

    def draw(name: str, *, each: int = 6, classes: str = "abc", seed: int = 0) -> Path:
        drawn = np.random.default_rng(seed)
        for key in classes:
            (tmp_path / name / key).mkdir(parents=True)
            for number in range(each):
                pixels = drawn.integers(0, 256, (8, 8, 3), np.uint8)
                Pillow.fromarray(pixels).save(tmp_path / name / key / f"{number}.png")
        return tmp_path / name

    return draw


def by_role(project: Project) -> dict[str, list[Item]]:
    return {role: [item for item in project.items if item.role == role] for role in ("training", "gold", "asked")}


def right_class(item: Item) -> str:
    (key,) = (item.answer or {})["class"]
    return str(key)


def test_no_image_has_two_roles_and_every_round_takes_classes_alike(photos: Photos, tmp_path: Path) -> None:
    made = human_test_project(open_dataset(photos("set")), tmp_path / "people", rounds=Rounds(1, 3, 6, tries=2), even=True)
    roles = by_role(made)
    assert {role: len(some) for role, some in roles.items()} == {"training": 3, "gold": 6, "asked": 6}
    assert len({item.facts["id"] for item in made.items}) == 15
    assert {role: set(Counter(map(right_class, some)).values()) for role, some in roles.items()} == {
        "training": {1},
        "gold": {2},
        "asked": {2},
    }
    assert Counter(item.group for item in roles["gold"]) == {"try 1": 3, "try 2": 3}
    assert {one.key: one.references for one in made.classes} == {
        right_class(item): item.images for item in roles["training"]
    }
    assert (made.pass_mark, made.consent, made.screen_name) == (0.9, CONSENT, "human-test")
    assert load_project(made.folder) == made


def classes_asked(photos: Photos, folder: Path, seed: int, **options: Any) -> Counter[str]:
    """How often each class is asked about in a test of 22 images, from 45 photos of a and 5 each of b and c."""
    images = photos(f"set {seed}", each=5)
    for number in range(5, 45):
        pixels = np.random.default_rng(number).integers(0, 256, (8, 8, 3), np.uint8)
        Pillow.fromarray(pixels).save(images / "a" / f"{number}.png")
    made = human_test_project(
        open_dataset(images), folder / f"{seed}", rounds=Rounds(0, 0, 22), review=ReviewSettings(seed=seed), **options
    )
    return Counter(map(right_class, made.items))


def test_the_test_is_drawn_at_random_from_the_set(photos: Photos, tmp_path: Path) -> None:
    at_random = [classes_asked(photos, tmp_path, seed)["a"] for seed in range(8)]
    assert len(set(at_random)) > 2
    # hypergeometric: mean 22 * 45 / 55 = 18, spread 1.4; the mean of eight lies within 2 of it
    assert abs(np.mean(at_random) - 18) < 2


def test_classes_are_even_where_asked(photos: Photos, tmp_path: Path) -> None:
    counts = [classes_asked(photos, tmp_path, seed, even=True) for seed in range(2)]
    assert [tuple(count[key] for key in "abc") for count in counts] == [(12, 5, 5)] * 2


def test_training_and_qualification_take_images_of_sets_of_their_own(photos: Photos, tmp_path: Path) -> None:
    """As in the paper: photos to learn from, photos to qualify with, and the set that is tested."""
    hard, train, val = (photos(name, seed=seed) for seed, name in enumerate(("hard", "train", "val"), 1))
    rounds = Rounds(6, 18, 18)
    (val / "a" / "0.png").write_bytes((train / "a" / "0.png").read_bytes())
    sources = open_dataset(hard), open_dataset(train), open_dataset(val)
    made = human_test_project(sources[0], tmp_path / "people", learned=sources[1], qualifying=sources[2], rounds=rounds)
    roles = by_role(made)
    assert {role: {item.facts["source"] for item in some} for role, some in roles.items()} == {
        "training": {str(train)},
        "gold": {str(val)},
        "asked": {str(hard)},
    }
    shown = {item.images[0] for item in roles["training"]}
    assert not shown & {item.images[0] for item in roles["gold"]}
    assert len(roles["gold"]) == 17, "a picture of the training is none to qualify with"
    assert [source["name"] for source in made.making.sources] == ["hard", "train", "val"]


def test_nothing_that_people_see_names_the_class(photos: Photos, tmp_path: Path) -> None:
    made = human_test_project(open_dataset(photos("set")), tmp_path / "people", rounds=Rounds(1, 3, 6))
    assert all(item.label is None and not item.shown for item in made.items)


def test_easier_images_train_and_qualify_and_none_is_tested_again(photos: Photos, tmp_path: Path) -> None:
    hard, easy = photos("hard", each=4, seed=1), photos("easy", each=4, seed=2)
    taken = easy / "a" / "0.png"
    (hard / "a" / "9.png").write_bytes(taken.read_bytes())
    made = human_test_project(open_dataset(hard), tmp_path / "people", learned=open_dataset(easy), rounds=Rounds(2, 6, 100))
    roles = by_role(made)
    assert {item.facts["source"] for item in [*roles["training"], *roles["gold"]]} == {str(easy)}
    assert {item.facts["source"] for item in roles["asked"]} == {str(hard)}
    assert len(roles["asked"]) == 12, "the copy of an image that is shown before the test is left out"
    with (made.folder / "images.csv").open() as table:
        reasons = {row["id"]: row["reason"] for row in csv.DictReader(table) if row["reason"]}
    assert reasons == {"a/9.png": "the same picture is shown before the test"}


def test_some_classes_alone_are_asked_about(photos: Photos, tmp_path: Path) -> None:
    made = human_test_project(open_dataset(photos("set")), tmp_path / "people", classes=["a", "c"], rounds=Rounds(1, 2, 50))
    assert [one.key for one in made.classes] == ["a", "c"]
    assert {right_class(item) for item in made.items} == {"a", "c"}
    assert made.making.steps[1].left == 12


def test_the_seed_decides_which_images_are_drawn(photos: Photos, tmp_path: Path) -> None:
    images = open_dataset(photos("set", each=20))
    drawn = [
        human_test_project(images, tmp_path / f"people {n}", rounds=Rounds(1, 3, 9), review=ReviewSettings(seed=n // 2))
        for n in range(3)
    ]
    first, again, other = ({item.id for item in one.items} for one in drawn)
    assert first == again != other


def test_what_cannot_be_asked_is_said(photos: Photos, tmp_path: Path) -> None:
    images, folder = open_dataset(photos("set")), tmp_path / "people"
    with pytest.raises(BadInput, match="too few images for the qualification: 1 times 200"):
        human_test_project(images, folder)
    with pytest.raises(BadInput, match="no image of set is left for the test"):
        human_test_project(images, folder, rounds=Rounds(6, 0, 5))
    with pytest.raises(BadInput, match="none of set: whale"):
        human_test_project(images, folder, classes=["a", "whale"])
    with pytest.raises(BadInput, match="at least two are needed"):
        human_test_project(images, folder, classes=["a"])


@pytest.fixture
def taken_test(draw_photos: Callable[..., Path], colour_model: Classifier, shiftproof: Shiftproof) -> Project:
    """A test of nine photos that the command made, with stored answers of a model that knows them all, and two people."""
    predict(colour_model, open_dataset(draw_photos(3)), store="runs", keep="logits")
    Path("consent.txt").write_text("You agree.\n")
    options = {"--training-per-class": 0, "--qualify": 0, "--test": 9, "--consent": "consent.txt"}
    typed = [part for option in options.items() for part in option]
    made = shiftproof("curate", "human-test", "photos", "-o", "people", *typed, "--json", "--quiet")
    assert json.loads(made.out)["items"] == {"asked": 9}
    project = load_project("people")
    wrong = {"red": "blue", "green": "red", "blue": "red"}
    right = [(True, True)] * 4 + [(True, False)] * 2 + [(False, False)] * 3
    said = {
        item.id: [{"choice": "answer", "class": right_class(item) if good else wrong[right_class(item)]} for good in both]
        for item, both in zip(project.items, right, strict=True)
    }
    database = Database(project.folder / "review.sqlite")
    judge(database, said)
    database.close()
    return project


def test_a_stored_model_stands_beside_people(taken_test: Project, shiftproof: Shiftproof) -> None:
    assert (taken_test.consent, taken_test.pass_mark) == ("You agree.", None)
    told = json.loads(shiftproof("verdicts", "people", "--compared-model", "colours", "--json").out)["human_test"]
    found = {(one["metric"], one["about"].get("reviewer") or one["about"].get("subset")): one["value"] for one in told}
    assert (found["human_accuracy", "Person A"], found["human_accuracy", "Person B"]) == (6 / 9, 4 / 9)
    assert found["human_test_accuracy", None] == 1.0
    assert [found["subset_accuracy", subset] for subset in ("easy", "middle", "hard")] == [1.0] * 3
    assert [found["subset_share", subset] for subset in ("easy", "middle", "hard")] == [4 / 9, 2 / 9, 3 / 9]


def test_people_are_points_beside_models_in_the_report(taken_test: Project, shiftproof: Shiftproof) -> None:
    said = shiftproof("verdicts", "people", "--compared-model", "colours", "-o", "people.html")
    assert said.code == 0, said.err
    assert "Accuracy of a participant" in said.out
    page = Path("people.html").read_text()
    titles = ("Accuracy on the same images", "Pairs of participants", "Misclassified by all participants")
    for told in titles:
        assert told in page, told
    assert "hard: correct by none" in unpacked(page, "data")


def test_models_are_held_beside_people_in_tests_of_people_alone(shiftproof: Shiftproof, tmp_path: Path) -> None:
    drawn_project(tmp_path / "project")
    Database(tmp_path / "project" / "review.sqlite").close()
    assert "is no human test" in shiftproof("verdicts", "project", "--compared-model", "colours").err
