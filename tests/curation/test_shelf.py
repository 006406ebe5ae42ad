"""Many pictures put into a project: each opened once, whatever stops it in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image as Pillow

from blotches import blotches
from shiftproof.curation import shelf
from shiftproof.curation.shelf import REGISTER, put, put_all
from shiftproof.image_sets.image_list import FilesBelow
from shiftproof.image_sets.opener import decoded
from shiftproof.types import ImageSource


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, ImageSource]:
    """Twelve pictures, of which the last two are one and the same."""
    (tmp_path / "photos").mkdir()
    for number in range(12):
        Pillow.fromarray(blotches(min(number, 10), width=40, height=30)).save(tmp_path / "photos" / f"{number:02}.png")
    find = FilesBelow(str(tmp_path / "photos"))
    return {f"{number:02}.png": find(f"{number:02}.png") for number in range(12)}


def test_many_pictures_have_the_names_that_each_would_have_alone(sources: dict[str, ImageSource], tmp_path: Path) -> None:
    shelved = put_all(tmp_path / "many", sources)
    assert shelved.names == {image_id: put(tmp_path / "single", source) for image_id, source in sources.items()}
    assert shelved.names["10.png"] == shelved.names["11.png"]
    assert not shelved.unreadable


def test_what_a_kill_left_undone_is_done_again_and_nothing_else(
    sources: dict[str, ImageSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put_all(tmp_path / "project", sources)
    register = tmp_path / "project" / "images" / REGISTER
    *whole, cut = register.read_text().splitlines()
    register.write_text("\n".join([*whole, cut[:40]]))
    (tmp_path / "project" / "images" / first.names["03.png"]).unlink()
    opened: list[ImageSource] = []

    def watched(source: ImageSource) -> object:
        opened.append(source)
        return decoded(source)

    monkeypatch.setattr(shelf, "decoded", watched)
    for again in (put_all(tmp_path / "project", sources), put_all(tmp_path / "project", sources)):
        assert again.names == first.names
    assert opened.count(sources["03.png"]) == 1
    assert len(opened) <= 4, "the picture that is gone, and the one whose line was cut off, which may spoil the next"


def test_a_picture_that_cannot_be_read_has_its_reason_and_is_tried_again(
    sources: dict[str, ImageSource], tmp_path: Path
) -> None:
    broken = tmp_path / "photos" / "05.png"
    data = broken.read_bytes()
    broken.write_bytes(b"no picture")
    shelved = put_all(tmp_path / "project", sources)
    assert set(shelved.unreadable) == {"05.png"}
    broken.write_bytes(data)
    assert "05.png" in put_all(tmp_path / "project", sources).names
