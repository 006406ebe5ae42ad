"""Items whose answer is known, as a manifest tells it: of every screen that has right answers, and checked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image as Pillow

import shiftproof as sp
from blotches import blotches
from shiftproof.curation.known_items import check_known, known_items
from shiftproof.curation.project import Item
from shiftproof.curation.screens import ANCHOR_LABELS, CLASS_PAIR, EXTREME_POINTS, NEAREST_PAIR, PAIR, SCREENS, Screen
from shiftproof.errors import ShiftproofError
from shiftproof.review.qualification import is_correct_answer
from shiftproof.review.validation import check_answer

ABATTOIR, LIBRARY = "n02666943", "n03661043"
CLASSES = ("cat", "dog", "eel")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for number, name in enumerate("abc"):
        Pillow.fromarray(blotches(number, width=40, height=20)).save(tmp_path / f"{name}.png")
    return tmp_path


def items(home: Path, screen: Screen, table: str) -> list[Item]:
    (home / "known.csv").write_text(table)
    return known_items(sp.open_dataset(home / "known.csv"), screen, home / "project", classes=CLASSES)


def picture(home: Path, name: str) -> bytes:
    return (home / "project" / "images" / name).read_bytes()


def test_a_pair_brings_its_second_picture(home: Path) -> None:
    (pair,) = items(home, PAIR, "path,pictures,label,role,answer\na.png,b.png,cat,gold,blur\n")
    assert [picture(home, name) for name in pair.images] == [(home / f"{name}.png").read_bytes() for name in "ab"]
    assert (pair.label, pair.role, pair.answer, pair.group) == ("cat", "gold", {"choice": "blur"}, None)


def test_a_new_image_is_held_against_the_class_of_the_second(home: Path) -> None:
    table = f"path,pictures,label,beside,role,answer\na.png,b.png,{ABATTOIR},{LIBRARY},training,drop image\n"
    (pair,) = items(home, NEAREST_PAIR, table)
    assert (pair.label, pair.beside, len(pair.images)) == (ABATTOIR, LIBRARY, 2)


def test_a_class_has_as_many_pictures_as_are_named(home: Path) -> None:
    table = f"path,pictures,label,beside,role,answer\na.png,b.png|c.png,{ABATTOIR},{LIBRARY},gold,visually ambiguous\n"
    (pair,) = items(home, CLASS_PAIR, table)
    assert len(set(pair.images)) == 3


def test_of_anchors_all_classes_must_be_named_and_no_other(home: Path) -> None:
    table = "path,label,shows,role,answer\na.png,cat,cat|dog,gold,good\nb.png,eel,,gold,good\nc.png,cat,,gold,bad\n"
    both, said, bad = items(home, ANCHOR_LABELS, table)
    assert (both.label, both.answer) == ("cat", {"choice": "good", "labels": ["cat", "dog"]})
    assert said.answer == {"choice": "good", "labels": ["eel"]}, "the label, where nothing else is told"
    assert bad.answer == {"choice": "bad"}
    assert is_correct_answer(both, {"choice": "good", "labels": ["dog", "cat"]})
    assert not is_correct_answer(both, {"choice": "good", "labels": ["cat"]})
    assert not is_correct_answer(both, {"choice": "bad"})


def test_a_box_is_right_that_shares_half_with_the_known_one(home: Path) -> None:
    kept, deleted = items(
        home,
        EXTREME_POINTS,
        "path,label,box,role,answer,reason\na.png,cat,10 5 30 15,gold,box,\nb.png,cat,,gold,delete,label wrong\n",
    )
    assert kept.answer is not None
    assert kept.answer["points"] == [[0.5, 0.25], [0.25, 0.5], [0.5, 0.75], [0.75, 0.5]]
    assert deleted.answer == {"choice": "delete", "reasons": ["label wrong"]}

    def drawn(left: float, right: float) -> dict[str, object]:
        return {"choice": "box", "points": [[left, 0.5], [right, 0.5], [right, 0.25], [right, 0.75]]}

    assert is_correct_answer(kept, drawn(0.25, 0.75))
    assert is_correct_answer(kept, drawn(0.35, 0.75)), "four fifths of it"
    assert not is_correct_answer(kept, drawn(0.51, 0.75)), "less than half of it"
    assert not is_correct_answer(kept, {"choice": "delete"})


@pytest.mark.parametrize(
    ("screen", "row"),
    [
        ("clarity", "a.png,,cat,,,,gold,reject,several classes"),
        ("pair", "a.png,b.png,cat,,,,gold,bad anchor,"),
        ("anchor-labels", "a.png,,cat,,dog,,training,good,"),
        ("extreme-points", "a.png,,cat,,,0 0 40 20,gold,box,"),
        ("class-pair", "a.png,,cat,dog,,,gold,clear,"),
        ("nearest-pair", "a.png,b.png,cat,dog,,,gold,drop class,"),
    ],
)
def test_what_is_right_is_an_answer_that_people_could_give(home: Path, screen: str, row: str) -> None:
    columns = "path,pictures,label,beside,shows,box,role,answer,reason"
    (item,) = items(home, SCREENS[screen], f"{columns}\n{row}\n")
    assert item.answer is not None
    check_answer(SCREENS[screen], item.answer, CLASSES)
    assert is_correct_answer(item, item.answer)


@pytest.mark.parametrize("name", sorted(set(SCREENS) - {"human-test", "failure-modes"}))
def test_the_docs_name_every_answer_that_can_be_known(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "curation.md").read_text(encoding="utf-8")
    table = page.partition("| of | answers |")[2].partition("\n\n")[0]
    named = [one.name for choice in SCREENS[name].choices for one in (choice, *choice.reasons)]
    assert [answer for answer in named if f"`{answer}`" not in table] == []


@pytest.mark.parametrize(
    ("screen", "table", "told"),
    [
        (
            PAIR,
            "path,role,answer\na.png,gold,blur\n",
            "a.png of known is one picture, but the screen pair shows 2: name",
        ),
        (PAIR, "path,pictures,role,answer\na.png,b.png,gold,blurr\n", "no answer called 'blurr'; did you mean blur"),
        (PAIR, "path,pictures,role,answer\na.png,b.png,silver,blur\n", "a role, training or gold"),
        (PAIR, "path,pictures,role,answer\na.png,lost.png,gold,blur\n", r"known cannot be read: lost\.png \(.*No such file"),
        (CLASS_PAIR, "path,label,role,answer\na.png,cat,gold,clear\n", "should name two classes"),
        (CLASS_PAIR, "path,beside,role,answer\na.png,cat,gold,clear\n", "should name two classes"),
        (ANCHOR_LABELS, "path,role,answer\na.png,gold,good\n", "in the column shows"),
        (
            ANCHOR_LABELS,
            "path,shows,role,answer\na.png,dgo,gold,good\n",
            "no class to choose called 'dgo'; did you",
        ),
        (EXTREME_POINTS, "path,role,answer\na.png,gold,box\n", "in its 40 x 20 pixels, as 10 20 30 40; got ''"),
        (EXTREME_POINTS, "path,box,role,answer\na.png,0 0 41 20,gold,box\n", "got '0 0 41 20'"),
        (EXTREME_POINTS, "path,box,role,answer\na.png,5 9 5 12,gold,box\n", "got '5 9 5 12'"),
        (EXTREME_POINTS, "path,box,role,answer\na.png,5 9 8 9,gold,box\n", "got '5 9 8 9'"),
        (EXTREME_POINTS, "path,box,role,answer\na.png,9 9 wide,gold,box\n", "got '9 9 wide'"),
    ],
)
def test_mistakes_of_the_manifest_are_told(home: Path, screen: Screen, table: str, told: str) -> None:
    with pytest.raises(ShiftproofError, match=told):
        items(home, screen, table)


def test_other_sets_than_manifests_name_no_more_pictures(home: Path) -> None:
    images = sp.open_dataset(home)
    facts = {"role": "gold", "answer": "similar", "pictures": "b.png"}
    told = replace(images, samples=[replace(sample, facts=facts) for sample in images.samples])
    with pytest.raises(ShiftproofError, match=r"a\.png of .* names other pictures, which only a manifest can"):
        check_known(told, PAIR)
