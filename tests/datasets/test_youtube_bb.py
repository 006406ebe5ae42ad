"""Tables of YouTube-BoundingBoxes over frames on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.video.youtube_bb import COLUMNS
from shiftproof.errors import BadInput
from shiftproof.types import Classes

ROWS = (
    "AAA,1000,7,cat,0,present,0.25,0.5,0.5,1.0",
    "AAA,1000,0,person,1,present,0.0,0.1,0.0,1.25",
    "AAA,2000,7,cat,0,absent,-1,-1,-1,-1",
    "BBB,0,19,dog,0,present,0,1,0,1",
)


@pytest.fixture
def frames(tmp_path: Path, draw: Callable[..., Path]) -> Path:
    for name in ("AAA/1000.jpg", "AAA/2000.jpg"):
        draw(tmp_path / "frames" / name, height=40, width=80)
    (tmp_path / "boxes.csv").write_text("\n".join(ROWS) + "\n")
    return tmp_path / "frames"


def test_corners_are_shares_of_the_frame_in_the_order_x_x_y_y(frames: Path) -> None:
    images = open_dataset(frames, kind="youtube-bb", table=frames.parent / "boxes.csv")
    truths = images.truths
    assert truths is not None
    assert images.classes == Classes(("person", "cat", "dog")), "in the order of their numbers"
    assert truths.boxes.tolist() == [[20, 20, 40, 40], [0, 0, 8, 40]]
    assert truths.classes.tolist() == [1, 0]
    assert [sample.labels for sample in images.samples] == [(0, 1), ()]
    assert images.samples[1].facts == {"sequence": "AAA", "timestamp_ms": 2000, "width": 80, "height": 40}
    assert images.notes == (
        "1 frames of the table are not there: BBB/0.jpg",
        "1 of 2 boxes reach beyond their image and were clipped",
    )


def test_a_heading_is_no_row(frames: Path) -> None:
    table = frames.parent / "headed.csv"
    table.write_text("\n".join([",".join(COLUMNS), *ROWS]))
    bare = open_dataset(frames, kind="youtube-bb", table=frames.parent / "boxes.csv")
    assert open_dataset(frames, kind="youtube-bb", table=table).ref.fingerprint == bare.ref.fingerprint


def test_frames_may_lie_under_another_pattern(frames: Path, draw: Callable[..., Path]) -> None:
    draw(frames / "19" / "BBB+19+0+0.jpg")
    pattern = "{class_id}/{youtube_id}+{class_id}+{object_id}+{timestamp_ms}.jpg"
    images = open_dataset(frames, kind="youtube-bb", table=frames.parent / "boxes.csv", frame=pattern)
    assert [sample.id for sample in images.samples] == ["19/BBB+19+0+0.jpg"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b,c\n", {}, "row 1: expected the 10 columns youtube_id"),
        (ROWS[0].replace("0.25", "left"), {}, "a box should be four numbers"),
        (ROWS[3], {}, r"none of the 1 frames .* such as BBB/0\.jpg"),
        (ROWS[0], {"frame": "{video}.jpg"}, "frame should be a pattern"),
        (ROWS[0], {"frame": "{youtube_id"}, "frame should be a pattern"),
        (ROWS[0], {"frame": "{youtube_id.__class__}.jpg"}, "frame should be a pattern"),
        ("", {}, "none of the 0 frames"),
    ],
)
def test_a_malformed_table_is_told_in_one_sentence(text: str, options: dict[str, str], message: str, frames: Path) -> None:
    table = frames.parent / "other.csv"
    table.write_text(text)
    with pytest.raises(BadInput, match=message):
        open_dataset(frames, kind="youtube-bb", table=table, **options)


def test_a_folder_of_frames_alone_is_not_enough(frames: Path) -> None:
    with pytest.raises(BadInput, match="say which table"):
        open_dataset(frames, kind="youtube-bb")
    with pytest.raises(BadInput, match="cannot be read as a table"):
        open_dataset(frames, kind="youtube-bb", table=frames / "nowhere.csv")
