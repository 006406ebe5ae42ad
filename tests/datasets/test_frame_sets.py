"""Frames around anchors: which frames are chosen, and what is known of each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import FilesBelow, ImageList
from shiftproof.datasets.video.frame_sets import AnchorRule, Clip, Clips, frames_around
from shiftproof.errors import BadInput

Draw = Callable[..., Path]


def clips(*frames: int) -> Clips:
    """Clips of so many frames, which lie nowhere."""
    made = [Clip(f"{c}.mp4", range(n), [f"{c}.mp4/{number:06d}" for number in range(n)]) for c, n in enumerate(frames)]
    return Clips("drawn", made, None, FilesBelow("nowhere"))


def anchors(images: ImageList) -> list[str]:
    return [sample.id for sample in images.samples if sample.facts["offset"] == 0]


def test_a_single_clip_is_cut_into_neighbourhoods_that_do_not_overlap() -> None:
    images = frames_around(clips(23), k=3)
    assert anchors(images) == ["0.mp4/000003", "0.mp4/000010", "0.mp4/000017"]
    assert [sample.facts["frame"] for sample in images.samples] == list(range(21))
    assert [sample.facts["offset"] for sample in images.samples] == [-3, -2, -1, 0, 1, 2, 3] * 3


def test_of_several_clips_each_has_one_random_anchor_with_a_whole_neighbourhood() -> None:
    several = clips(*[40] * 30)
    images = frames_around(several, k=3)
    assert len(anchors(images)) == 30
    assert len(images.samples) == 30 * 7
    numbers = {
        clip: sample.facts["frame"] for sample in images.samples if (clip := sample.id[:-7]) and not sample.facts["offset"]
    }
    assert len(set(numbers.values())) > 10
    assert frames_around(several, k=3).samples == images.samples
    assert anchors(frames_around(several, k=3, seed=1)) != anchors(images)
    # a clip's anchor is drawn by its own id: others beside it do not change it
    fewer = frames_around(Clips("fewer", several.clips[:2], None, several.find), k=3)
    assert set(anchors(fewer)) <= set(anchors(images))


def test_a_frame_near_two_anchors_is_there_for_each_under_the_nearer_ones_plain_id() -> None:
    images = frames_around(clips(20), k=2, anchors=[5, 8])
    assert [(sample.id[6:], sample.facts["anchor"], sample.facts["offset"]) for sample in images.samples] == [
        ("000003", "0.mp4/000005", -2),
        ("000004", "0.mp4/000005", -1),
        ("000005", "0.mp4/000005", 0),
        ("000006", "0.mp4/000005", 1),
        ("000006@000008", "0.mp4/000008", -2),
        ("000007", "0.mp4/000008", -1),
        ("000007@000005", "0.mp4/000005", 2),
        ("000008", "0.mp4/000008", 0),
        ("000009", "0.mp4/000008", 1),
        ("000010", "0.mp4/000008", 2),
    ]
    assert images.source(images.samples[4]) == images.source(images.samples[3])


def test_every_anchor_has_its_whole_neighbourhood_however_dense_they_are() -> None:
    images = frames_around(clips(40), k=5, every=2)
    counts = Counter(sample.facts["anchor"] for sample in images.samples)
    assert set(counts.values()) == {11}
    assert set(counts) == set(anchors(images)) == {f"0.mp4/{number:06d}" for number in range(5, 35, 2)}
    assert len({sample.id for sample in images.samples}) == len(images.samples)


def test_neighbourhoods_end_where_the_clip_does() -> None:
    images = frames_around(clips(9), k=10, anchors="0")
    assert [sample.facts["offset"] for sample in images.samples] == list(range(9))
    short = frames_around(clips(4), k=10)
    assert [sample.facts["offset"] for sample in short.samples] == [-1, 0, 1, 2]


def test_anchors_are_spread_evenly_where_a_count_is_given() -> None:
    numbers = np.array([int(one[-6:]) for one in anchors(frames_around(clips(1000), k=10, count=7))])
    assert len(numbers) == 7
    assert numbers.min() >= 10
    assert numbers.max() <= 989
    assert np.diff(numbers).max() - np.diff(numbers).min() <= 1


def test_a_limit_takes_anchors_from_the_whole_set() -> None:
    images = frames_around(clips(*[30] * 10), k=1, limit=5)
    assert [sample.id.partition(".")[0] for sample in images.samples if not sample.facts["offset"]] == list("02468")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"k": -1}, "k should be at least 0, got -1"),
        ({"k": "ten"}, "k should be a whole number, got 'ten'"),
        ({"every": 0}, "every should be at least 1, got 0"),
        ({"every": 2, "count": 3}, "say only one of anchors, every and count"),
        ({"anchors": "30"}, r"0\.mp4 has no frame '30'; anchors are 'random', or frame numbers from 0 to 29"),
        ({"anchors": "soon"}, "has no frame 'soon'"),
        ({"anchors": "1.5s"}, "does not say when its frames are shown"),
        ({"limit": 0}, "limit should be at least 1, got 0"),
    ],
)
def test_options_that_cannot_be_met_are_told(options: dict[str, str | int], sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        frames_around(clips(30), **options)  # type: ignore[arg-type]


def test_times_choose_the_frame_shown_nearest_to_them() -> None:
    shown = [0.0, 0.04, 0.5, 0.54, 3.0]
    assert AnchorRule(1, ["0.3s", "2s"]).choose("a", range(5), shown) == [2, 4]


def test_folders_of_numbered_images_are_clips(draw: Draw, tmp_path: Path) -> None:
    for name in ("cat/a/f1_08.png", "cat/a/f1_09.png", "cat/a/f1_10.png", "cat/a/f1_13.png", "dog/b/f1_01.png"):
        draw(tmp_path / name)
    (tmp_path / "cat" / "a" / "info.json").write_text(json.dumps({"fps": 25.0, "anchor": 10}))
    images = open_dataset(tmp_path, kind="frames", k=2)
    assert [(sample.id, sample.facts["offset"], sample.labels) for sample in images.samples] == [
        ("cat/a/f1_08.png", -2, (0,)),
        ("cat/a/f1_09.png", -1, (0,)),
        ("cat/a/f1_10.png", 0, (0,)),
        ("dog/b/f1_01.png", 0, (1,)),
    ]
    assert [sample.facts["clip"] for sample in images.samples] == ["cat/a", "cat/a", "cat/a", "dog/b"]
    assert images.samples[0].facts["frame_rate"] == 25.0
    assert images.source(images.samples[0]).decode(images.source(images.samples[0]).read()).shape == (8, 12, 3)


def test_frames_need_numbers_of_their_own(draw: Draw, tmp_path: Path) -> None:
    draw(tmp_path / "one" / "first.png")
    with pytest.raises(BadInput, match=r"first\.png has no number in its name"):
        open_dataset(tmp_path / "one", kind="frames")
    draw(tmp_path / "two" / "1.png")
    draw(tmp_path / "two" / "01.png")
    with pytest.raises(BadInput, match="two has two images of one frame number"):
        open_dataset(tmp_path / "two", kind="frames")


@pytest.mark.real
@pytest.mark.parametrize(
    ("example", "anchor"), [("vid_robust_examples", "000442.JPEG"), ("ytbb_robust_examples", "frame-732.jpg")]
)
def test_the_released_example_sets_are_whole_around_their_anchor(example: str, anchor: str, real_data: Path) -> None:
    images = open_dataset(real_data / "pmk" / example, kind="frames")
    assert [sample.facts["offset"] for sample in images.samples] == list(range(-10, 11))
    assert {sample.facts["anchor"] for sample in images.samples} == {anchor}
    for sample in images.samples[::5]:
        source = images.source(sample)
        assert min(source.decode(source.read()).shape[:2]) > 100
