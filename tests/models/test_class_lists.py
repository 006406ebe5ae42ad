import json
from pathlib import Path

import pytest

from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models.class_lists import classes_for, classes_from
from shiftproof.types import Classes


def test_a_thousand_outputs_are_ilsvrc_and_the_note_says_so() -> None:
    classes, notes = classes_for(1000, None)
    assert classes is not None
    assert classes.keys[0] == "n01440764"
    assert "ILSVRC-2012" in notes[0]


def test_a_thousand_and_one_begin_with_the_background() -> None:
    classes, _ = classes_for(1001, None)
    assert classes is not None
    assert classes.names[:2] == ("background", "tench")
    assert len(set(classes.keys)) == 1001


def test_other_counts_stay_unnamed() -> None:
    classes, notes = classes_for(10, None)
    assert classes is None
    assert "--classes" in notes[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("names.txt", "tench\r\ngoldfish\r\n\r\n"),
        ("wnids.txt", "n01440764\nn01443537\n"),
        ("both.txt", "n01440764 tench\nn01443537 goldfish\n"),
        ("list.json", json.dumps(["tench", "goldfish"])),
        ("map.json", json.dumps({"1": "goldfish", "0": "tench"})),
        ("index.json", json.dumps({"0": ["n01440764", "tench"], "1": ["n01443537", "goldfish"]})),
    ],
)
def test_a_file_names_the_classes(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert classes_from(tmp_path / name).names == ("tench", "goldfish")


def test_names_may_repeat_but_wnids_may_not() -> None:
    assert classes_from(["crane", "crane"]).names == ("crane", "crane")
    with pytest.raises(BadInput, match="twice"):
        classes_from(["n01440764", "n01440764"])


def test_classes_that_are_given_stay_as_they_are() -> None:
    given = Classes(("a", "b"))
    assert classes_from(given) is given
    with pytest.raises(ClassMismatch):
        classes_for(3, given)


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("b.json", '{"x": "y"}'), ("c.json", "3"), ("d.txt", "")])
def test_a_broken_list_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput):
        classes_from(tmp_path / name)
    with pytest.raises(BadInput, match="cannot be read"):
        classes_from(tmp_path / "missing.txt")
