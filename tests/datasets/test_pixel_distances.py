"""How far frames are from their anchors in their pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.datasets import open_dataset


def save_frame(path: Path, *changed: int, shape: tuple[int, ...] = (6, 8, 3)) -> None:
    """A frame of grey 100, with as many bytes changed as values are given."""
    pixels = np.full(shape, 100, np.uint8)
    pixels.flat[: len(changed)] = changed
    path.parent.mkdir(parents=True, exist_ok=True)
    Pillow.fromarray(pixels).save(path)


def test_the_largest_change_of_any_colour_of_any_pixel_is_a_fact_of_each_frame(tmp_path: Path) -> None:
    clip = tmp_path / "clip"
    save_frame(clip / "0.png", 151, 90)  # 51 of 255 up, 10 down
    save_frame(clip / "1.png")
    save_frame(clip / "2.png", 110, 0)  # down by 100, which in bytes alone would come out as 156
    images = open_dataset(clip, kind="frames", k=1, anchors=[1], pixel_distances=True)
    assert [sample.facts["pixel_distance"] for sample in images.samples] == pytest.approx([51 / 255, 0, 100 / 255])


def test_distances_are_told_only_where_they_are_asked_for_and_the_location_asks_again(tmp_path: Path) -> None:
    save_frame(tmp_path / "clip" / "0.png")
    save_frame(tmp_path / "clip" / "1.png")
    plain, asked = (open_dataset(f"frames:{tmp_path}/clip{query}") for query in ("", "?pixel_distances=yes"))
    assert "pixel_distance" not in plain.samples[0].facts
    assert open_dataset(str(asked.ref.location)).samples == asked.samples
    assert [sample.id for sample in asked.samples] == [sample.id for sample in plain.samples]


def test_a_frame_that_cannot_be_compared_has_no_distance(tmp_path: Path) -> None:
    clip = tmp_path / "clip"
    save_frame(clip / "0.png", shape=(5, 8, 3))
    save_frame(clip / "1.png")
    (clip / "2.png").write_bytes(b"no picture")
    images = open_dataset(clip, kind="frames", k=1, anchors=[1], pixel_distances=True)
    assert [sample.facts["pixel_distance"] for sample in images.samples] == [None, 0, None]


@pytest.mark.real
def test_distances_within_a_clip_are_those_of_its_frames_decoded_one_after_the_other(real_data: Path) -> None:
    import av

    clip = real_data / "video" / "carphone_pristine.mp4"
    with av.open(str(clip)) as container:
        pictures = [frame.to_ndarray(format="rgb24").astype(int) for frame in container.decode(video=0)]
    images = open_dataset(clip, k=3, anchors="10,14,60", pixel_distances=True)
    assert len(images.samples) == 21
    for sample in images.samples:
        number = int(str(sample.facts["anchor"])[-6:])
        expected = np.abs(pictures[int(sample.facts["frame"] or 0)] - pictures[number]).max() / 255
        assert sample.facts["pixel_distance"] == pytest.approx(expected)
