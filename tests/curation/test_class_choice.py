"""Which classes answers are taken over, and why others are left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from shiftproof.curation.filtering import REASONS, choose_some, load_left_out
from shiftproof.errors import BadInput
from shiftproof.reference import ilsvrc_classes, wnids_of
from shiftproof.types import Classes

PETS = Classes(("cat", "dog", "eel"))


def test_only_some_of_which_others_are_left_out() -> None:
    chosen = choose_some(Classes(("cat", "dog", "eel", "yurt")), only=["yurt", "eel", "cat"], left_out={"eel": "rare"})
    assert chosen.classes.names == ("cat", "yurt"), "in the order of the model"
    assert chosen.why_not("eel") == "its class is rare"
    assert chosen.why_not("dog") == "its class was not chosen"


def test_the_published_list_is_two_hundred_of_a_thousand() -> None:
    chosen = choose_some(ilsvrc_classes(), only=wnids_of("imagenet_a_classes"))
    assert chosen.classes.keys == tuple(sorted(wnids_of("imagenet_a_classes")))


def test_a_model_that_names_ilsvrc_without_wnids_is_chosen_from_by_wnid() -> None:
    chosen = choose_some(Classes(ilsvrc_classes().names), only=["n01440764", "n01443537"])
    assert chosen.classes.names == ("tench", "goldfish")


@pytest.mark.parametrize(
    ("only", "left_out", "told"),
    [
        (["cat", "cow", "hen"], {}, "2 of the classes named are none of the model's: cow, hen"),
        (None, {"cow": "rare"}, "1 of the classes named are none"),
        (["cat"], {}, "1 classes are chosen"),
        (["cat", "dog"], {"dog": "coarse"}, "1 classes are chosen"),
    ],
)
def test_choices_that_cannot_be_are_refused(only: list[str] | None, left_out: dict[str, str], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        choose_some(PETS, only=only, left_out=left_out)


def test_reasons_come_from_a_table(tmp_path: Path) -> None:
    table = tmp_path / "left_out.csv"
    table.write_text("# chosen by hand\nwnid,name,reason\nn01440764,tench,rare\nn04505470,typewriter keyboard,dated\n")
    assert load_left_out(table) == {"n01440764": "rare", "n04505470": "dated"}
    table.write_text("wnid,reason\nn01440764,\n")
    with pytest.raises(BadInput, match=f"reasons are {', '.join(REASONS)} or your own"):
        load_left_out(table)
    with pytest.raises(BadInput, match="cannot be read"):
        load_left_out(tmp_path / "nowhere.csv")
