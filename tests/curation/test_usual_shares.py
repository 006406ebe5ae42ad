"""How much of an image a class usually fills: measured, read, and matched to other classes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boxed_shapes import Shape, draw_boxed
from shiftproof.curation.boxes import UsualShares, load_shares, measured_shares
from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput
from shiftproof.files import csv_bytes
from shiftproof.types import Classes

HALF = Shape((0, 0, 100, 50), "red", "red")
QUARTER = Shape((50, 50, 100, 100), "blue", "blue")


def test_the_mean_is_over_images_with_one_box_for_all_of_a_class(tmp_path: Path) -> None:
    corners = [Shape((0, 0, 10, 10), "red", "red"), Shape((90, 90, 100, 100), "red", "red")]
    photos = {"a.png": ("green", [HALF, QUARTER]), "b.png": ("green", corners)}
    found = measured_shares(open_dataset(draw_boxed(tmp_path, photos)))
    assert found.classes.names == ("blue", "green", "red")
    np.testing.assert_array_equal(found.shares, [0.25, np.nan, 0.75])


def test_photos_that_cannot_be_read_have_no_say(tmp_path: Path) -> None:
    boxes = draw_boxed(tmp_path, {"a.png": ("green", [HALF]), "b.png": ("green", [QUARTER])}, sizes=False)
    (tmp_path / "b.png").write_bytes(b"no photo")
    np.testing.assert_array_equal(measured_shares(open_dataset(boxes)).shares, [np.nan, np.nan, 0.5])


def test_shares_meet_classes_by_wnid_or_by_name() -> None:
    usual = UsualShares("a table", Classes(("tench", "goldfish"), ("n01440764", "n01443537")), np.array([0.25, 0.5]))
    np.testing.assert_array_equal(usual.among(Classes(("Goldfish", "axolotl"))), [0.5, np.nan])
    np.testing.assert_array_equal(usual.among(Classes(("a fish",), ("n01440764",))), [0.25])
    with pytest.raises(BadInput, match="a table has the object proportion of none of the 1 classes"):
        usual.among(Classes(("axolotl",)))


def test_a_saved_table_is_read_again_without_the_classes_nobody_knows(tmp_path: Path) -> None:
    usual = UsualShares("measured", Classes(("blue", "green", "red")), np.array([0.125, np.nan, 1.0]))
    (tmp_path / "shares.csv").write_bytes(csv_bytes(usual.table()))
    again = load_shares(tmp_path / "shares.csv")
    assert again.classes.names == ("blue", "red")
    np.testing.assert_array_equal(again.among(usual.classes), usual.shares)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("wnid,share\nn01440764,35\n", r"row 2: the share should be above 0 and at most 1, got '35'"),
        ("class,share\ncat,0.5\ndog,\n", r"row 3: the share should be above 0 and at most 1, got ''"),
        ("class,share\ncat\n", r"row 2: the share should be above 0 and at most 1, got None"),
        ("class,share\ncat,0.5\ncat,0.25\n", "names 1 classes twice"),
        ("name,share\ncat,0.5\n", "should be a table with columns 'wnid' or 'class', and 'share'"),
        ("", "should be a table"),
    ],
)
def test_tables_that_are_none_are_told(tmp_path: Path, table: str, told: str) -> None:
    (tmp_path / "shares.csv").write_text(table)
    with pytest.raises(BadInput, match=told):
        load_shares(tmp_path / "shares.csv")


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read as a table of object proportions"):
        load_shares(tmp_path / "nowhere.csv")
