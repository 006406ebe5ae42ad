"""New classes held against known ones, and new images beside the nearest known one."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from PIL import Image as Pillow

from blotches import blotches
from shiftproof.curation.novel_classes import select_novel_classes
from shiftproof.curation.ood_candidates import (
    FOLDER,
    NearestPair,
    NewClasses,
    choose_images,
    class_pair_project,
    nearest_pair_project,
    with_folders,
)
from shiftproof.curation.project import load_project
from shiftproof.datasets import ImageList, open_dataset
from shiftproof.types import ModelRef

ABATTOIR, ADAPTER, LIBRARY, FOX = "n02666943", "n02678897", "n03661043", "n02119789"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Three images of an abattoir, one of a library and one of a kit fox, in folders of their wnids."""
    for place, (wnid, count) in enumerate({ABATTOIR: 3, LIBRARY: 1, FOX: 1}.items()):
        (tmp_path / "21k" / wnid).mkdir(parents=True)
        for number in range(count):
            Pillow.fromarray(blotches(10 * place + number)).save(tmp_path / "21k" / wnid / f"{wnid}_{number}.png")
    return tmp_path / "21k"


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_each_new_class_is_held_against_the_known_ones_beside_it(pictures: Path, tmp_path: Path) -> None:
    # an abattoir is a building as a library is; nothing known is right beside an adapter
    inside = [LIBRARY, FOX]
    selection = select_novel_classes(inside, [ABATTOIR, ADAPTER, LIBRARY])
    images = choose_images(pictures, selection.classes)
    new = NewClasses(selection, inside, pictures, images, known=open_dataset(pictures))
    project = class_pair_project(new, tmp_path / "project")
    assert load_project(tmp_path / "project") == project
    (item,) = project.items
    assert (item.label, item.group, item.beside) == (ABATTOIR, ABATTOIR, LIBRARY)
    shown = [(project.folder / "images" / name).read_bytes() for name in item.images]
    assert shown == [(pictures / path).read_bytes() for path in images[ABATTOIR]]
    known = project.class_of[LIBRARY]
    assert (known.name, len(known.references)) == ("library", 1)
    assert {row["wnid"]: row["reason"] for row in rows_of(tmp_path / "project" / "classes.csv")} == {
        ABATTOIR: "",
        ADAPTER: "has no sister class that is an ID class",
    }
    assert [step.left for step in project.making.steps] == [3, 2, 2, 2, 1, 1]


def test_a_class_without_an_image_to_show_is_not_asked_about(pictures: Path, tmp_path: Path) -> None:
    for path in (pictures / ABATTOIR).iterdir():
        path.write_bytes(b"no picture")
    selection = select_novel_classes([LIBRARY], [ABATTOIR])
    new = NewClasses(selection, [LIBRARY], pictures, choose_images(pictures, [ABATTOIR]))
    project = class_pair_project(new, tmp_path / "project")
    assert project.items == ()
    assert rows_of(tmp_path / "project" / "classes.csv")[0]["reason"] == "has no image to show"


@pytest.fixture
def sides(pictures: Path) -> tuple[ImageList, ImageList]:
    return with_folders(open_dataset(pictures / ABATTOIR, label=ABATTOIR)), open_dataset(pictures)


def test_new_images_stand_beside_the_nearest_known_one(sides: tuple[ImageList, ImageList], tmp_path: Path) -> None:
    outside, inside = sides
    names, known = [sample.id for sample in outside.samples], f"{LIBRARY}/{LIBRARY}_0.png"
    pairs = [NearestPair(name, known, 0.1 * place, ABATTOIR, LIBRARY) for place, name in enumerate(names)]
    project = nearest_pair_project(pairs, outside, inside, tmp_path / "project", model=ModelRef("toy", "f00d"))
    assert load_project(tmp_path / "project") == project
    assert [item.id for item in project.items] == names
    assert {(item.label, item.group, item.beside) for item in project.items} == {(ABATTOIR, ABATTOIR, LIBRARY)}
    assert (project.folder / "images" / project.items[0].images[1]).read_bytes() == inside.find(known).read()
    assert project.making.models == ({"name": "toy", "fingerprint": "f00d"},)
    assert project.items[1].facts["distance"] == 0.1
    assert outside.samples[0].facts[FOLDER] == ABATTOIR


def test_a_pair_of_which_one_cannot_be_read_goes(sides: tuple[ImageList, ImageList], pictures: Path, tmp_path: Path) -> None:
    outside, inside = sides
    known = f"{LIBRARY}/{LIBRARY}_0.png"
    (pictures / known).write_bytes(b"no picture")
    pairs = [NearestPair(outside.samples[0].id, known, 0.0, "", "")]
    project = nearest_pair_project(pairs, outside, inside, tmp_path / "project", model=ModelRef("toy", "f00d"))
    assert project.items == ()
    (row,) = rows_of(tmp_path / "project" / "pairs.csv")
    assert row["reason"].startswith(f"inside {known}: ")
