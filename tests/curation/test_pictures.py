"""Many pictures put into a project: each opened once, whatever stops it in between."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image as Pillow

from blotches import blotches
from shiftproof.curation import pictures
from shiftproof.curation.pictures import REGISTER, add_picture, add_pictures
from shiftproof.datasets.image_list import FilesBelow, decoded
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
    added = add_pictures(tmp_path / "many", sources)
    assert added.names == {image_id: add_picture(tmp_path / "single", source) for image_id, source in sources.items()}
    assert added.names["10.png"] == added.names["11.png"]
    assert not added.unreadable


def test_what_a_kill_left_undone_is_done_again_and_nothing_else(
    sources: dict[str, ImageSource], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = add_pictures(tmp_path / "project", sources)
    register = tmp_path / "project" / "images" / REGISTER
    *whole, cut = register.read_text().splitlines()
    register.write_text("\n".join([*whole, cut[:40]]))
    (tmp_path / "project" / "images" / first.names["03.png"]).unlink()
    opened: list[ImageSource] = []

    def watched(source: ImageSource) -> object:
        opened.append(source)
        return decoded(source)

    monkeypatch.setattr(pictures, "decoded", watched)
    for again in (add_pictures(tmp_path / "project", sources), add_pictures(tmp_path / "project", sources)):
        assert again.names == first.names
    assert opened.count(sources["03.png"]) == 1
    assert len(opened) <= 4, "the picture that is gone, and the one whose line was cut off, which may spoil the next"


def test_a_picture_that_cannot_be_read_has_its_reason_and_is_tried_again(
    sources: dict[str, ImageSource], tmp_path: Path
) -> None:
    broken = tmp_path / "photos" / "05.png"
    data = broken.read_bytes()
    broken.write_bytes(b"no picture")
    added = add_pictures(tmp_path / "project", sources)
    assert set(added.unreadable) == {"05.png"}
    broken.write_bytes(data)
    assert "05.png" in add_pictures(tmp_path / "project", sources).names
