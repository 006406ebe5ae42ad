"""New classes that people found clear, from votes on pairs to the next choice of classes."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from command import Shiftproof
from review.reviewed_projects import judge
from shiftproof.curation.pictures import add_pictures
from shiftproof.curation.project import Item, Project, save_project
from shiftproof.curation.review_classes import review_class
from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput
from shiftproof.review.database import Database
from shiftproof.review.export import kept_classes, kept_images
from shiftproof.review.summary import summarize

LIBRARY, BARN = "n03661043", "n02793495"
ABATTOIR, ADAPTER, ACCORDION = "n02666943", "n02678897", "n02672831"

Choices = Mapping[str, Sequence[str]]


@pytest.fixture
def project(tmp_path: Path, draw_photos: Callable[..., Path]) -> Project:
    """Three new classes, of which the first is held against two known ones."""
    photos = open_dataset(draw_photos(1))
    names = add_pictures(tmp_path / "classes", {sample.id: photos.source(sample) for sample in photos.samples}).names
    pairs = [(ABATTOIR, LIBRARY), (ABATTOIR, BARN), (ADAPTER, BARN), (ACCORDION, BARN)]
    project = Project(
        tmp_path / "classes",
        "New classes",
        "class-pair",
        tuple(Item(f"{new} {known}", (*names.values(),), new, new, known) for new, known in pairs),
        tuple(map(review_class, (ABATTOIR, ADAPTER, ACCORDION, LIBRARY, BARN))),
    )
    save_project(project)
    return project


CLEAR = {
    f"{ABATTOIR} {LIBRARY}": ["clear", "clear"],
    f"{ABATTOIR} {BARN}": ["clear", "clear"],
    f"{ADAPTER} {BARN}": ["clear", "clear"],
    f"{ACCORDION} {BARN}": ["clear", "clear"],
}


@pytest.mark.parametrize(
    "said",
    [["clear", "unsure"], ["unsure", "unsure"], ["clear", "visually ambiguous"], ["clear"]],
    ids=["tie", "unsure", "ambiguous", "open"],
)
def test_a_class_stays_only_where_every_pair_was_kept(project: Project, database: Database, said: list[str]) -> None:
    judge(database, {**CLEAR, f"{ABATTOIR} {BARN}": said})
    kept = kept_classes(project, summarize(project, database).verdicts)
    assert [one.key for one in kept] == [ADAPTER, ACCORDION]


def test_where_no_class_was_kept_there_is_no_list(project: Project, database: Database) -> None:
    with pytest.raises(BadInput, match="no class of New classes was kept"):
        kept_classes(project, summarize(project, database).verdicts)


def test_where_people_judge_classes_or_are_tested_no_images_are_kept(project: Project) -> None:
    with pytest.raises(BadInput, match="it reviews classes"):
        kept_images(project, {})
    with pytest.raises(BadInput, match="it is a human test; shiftproof verdicts reports its accuracies"):
        kept_images(dataclasses.replace(project, screen_name="human-test"), {})


def test_the_list_that_is_exported_is_what_a_choice_of_classes_goes_on_from(
    project: Project, shiftproof: Shiftproof
) -> None:
    database = Database(project.folder / "review.sqlite")
    judge(database, {**CLEAR, f"{ABATTOIR} {BARN}": ["unsure", "clear"]})
    database.close()
    told = json.loads(shiftproof("curate", "export", "classes", "chosen", "--json").out)
    assert told["location"] == "chosen/classes.csv"
    assert [one["name"] for one in told["card"]["classes"]] == ["accordion", "adapter"]
    assert "2 classes, kept in review" in Path("chosen/data-card.md").read_text()
    Path("known.txt").write_text(f"{LIBRARY}\n{BARN}\n")
    Path("new.txt").write_text(f"{ABATTOIR}\n{ADAPTER}\n{ACCORDION}\n")
    asked = ("--id-classes", "known.txt", "--candidates", "new.txt", "--chosen", told["location"], "-o", "novel")
    assert shiftproof("curate", "novel-classes", *asked).code == 0
    rows = csv.DictReader(Path("novel/classes.csv").read_text().splitlines())
    assert [row["wnid"] for row in rows] == [ADAPTER, ACCORDION]


def test_a_list_of_classes_has_no_layouts(project: Project, shiftproof: Shiftproof) -> None:
    Database(project.folder / "review.sqlite").close()
    said = shiftproof("curate", "export", "classes", "chosen", "--layout", "coco")
    assert said.code == 1
    assert "exported as a list" in said.err
