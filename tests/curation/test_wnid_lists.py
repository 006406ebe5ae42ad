"""Lists of classes, as people keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shiftproof.curation.novel_classes import noun_named, wnids_from
from shiftproof.errors import BadInput, ShiftproofError, UnknownName
from shiftproof.reference import ilsvrc_classes


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("wnids.txt", "n01440764\nn02084071\n"),
        ("both.txt", "n01440764 tench\nn02084071 dog\n"),
        ("words.txt", "Tinca_tinca\nCanis familiaris\n"),
        ("mixed.txt", "n01440764\ndomestic dog\n"),
        ("list.json", '["n01440764", "n02084071"]'),
        ("table.csv", "# from elsewhere\nname,wnid\ntench,n01440764\ndog,n02084071\n"),
    ],
)
def test_a_list_is_read_as_wnids(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert wnids_from(tmp_path / name) == ("n01440764", "n02084071")


def test_ilsvrc_goes_by_its_name() -> None:
    assert wnids_from("ilsvrc2012") == ilsvrc_classes().keys


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("page.md", "# A page\nthat says nothing\n", "is not a list of classes: 2 of 2 lines are neither wnids nor nouns"),
        ("words.txt", "crane\ntench\n", r"use wnids: crane is n\d+ .*n02012849 \(wading bird\)"),
        ("empty.txt", "\n\n", "empty"),
        ("empty.csv", "wnid\n", "a row for each class"),
        ("other.csv", "a,b\n1,2\n", "should be a table with a column 'wnid'"),
    ],
)
def test_what_is_no_list_is_refused_with_what_was_found(tmp_path: Path, name: str, text: str, told: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=told):
        wnids_from(tmp_path / name)


@pytest.mark.parametrize("name", ["nowhere.txt", "nowhere.csv"])
def test_a_file_that_is_not_there_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        wnids_from(tmp_path / name)


def test_bytes_are_no_list(tmp_path: Path) -> None:
    (tmp_path / "photo.csv").write_bytes(b"\xff\xd8\xff\xe0")
    with pytest.raises(BadInput, match="cannot be read as a list of classes"):
        wnids_from(tmp_path / "photo.csv")


def test_a_noun_goes_by_its_wnid_or_by_its_widest_meaning() -> None:
    assert noun_named("n02084071") == "n02084071"
    assert [noun_named(word) for word in ("animal", "plant", "person")] == ["n00015388", "n00017222", "n00007846"]
    with pytest.raises(UnknownName, match="n02084071"):
        noun_named("n02084072")
    with pytest.raises(ShiftproofError, match="did you mean"):
        noun_named("animel")
