import json
from pathlib import Path

import pytest

from shiftproof.class_lists import classes_from
from shiftproof.errors import BadInput
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes


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


def test_ilsvrc_goes_by_its_name() -> None:
    assert classes_from("ilsvrc2012") == ilsvrc_classes()


@pytest.mark.parametrize(("name", "text"), [("a.json", "{"), ("b.json", '{"x": "y"}'), ("c.json", "3"), ("d.txt", "")])
def test_a_broken_list_is_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput):
        classes_from(tmp_path / name)
    with pytest.raises(BadInput, match="cannot be read"):
        classes_from(tmp_path / "missing.txt")
