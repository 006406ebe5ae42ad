"""The released frame sets of ImageNet-Vid-Robust and YTBB-Robust."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.layout import recognise
from shiftproof.datasets.subsets import video_groups
from shiftproof.errors import BadInput
from shiftproof.types import Sample

Draw = Callable[..., Path]


@pytest.mark.real
def test_the_released_vid_sets_have_the_published_counts(real_data: Path) -> None:
    images = open_dataset(real_data / "pmk" / "imagenet-vid-robust_metadata")
    anchors = [sample for sample in images.samples if sample.facts["offset"] == 0]
    sizes = Counter(str(sample.facts["anchor"]) for sample in images.samples)
    assert len(anchors) == 1109
    assert len(images.samples) - len(anchors) == 21070
    assert len({sample.facts["clip"] for sample in images.samples}) == 1109  # snippets: one anchor each
    assert [anchor for anchor, size in sizes.items() if size == 1] == ["val/ILSVRC2015_val_00057000/000044.JPEG"]
    assert sum(size == 21 for size in sizes.values()) == 889
    assert sum(len(anchor.labels) > 1 for anchor in anchors) == 79
    labels = {sample.id: sample.labels for sample in images.samples}
    assert sum(sample.labels != labels[str(sample.facts["anchor"])] for sample in images.samples) == 11
    assert {abs(int(str(sample.facts["offset"]))) for sample in images.samples} == set(range(11))
    assert len({sample.id for sample in images.samples}) == 22179


@pytest.mark.real
def test_a_set_of_the_release_is_the_example_that_was_published_with_it(real_data: Path) -> None:
    images = open_dataset(real_data / "pmk" / "imagenet-vid-robust_metadata")
    first = "val/ILSVRC2015_val_00000000/000442.JPEG"
    frames = [sample.id.rpartition("/")[2] for sample in images.samples if sample.facts["anchor"] == first]
    assert frames == sorted(path.name for path in (real_data / "pmk" / "vid_robust_examples").iterdir())


@pytest.mark.real
def test_of_the_released_ytbb_anchors_those_that_people_found_good_are_there(real_data: Path) -> None:
    images = open_dataset(real_data / "pmk" / "ytbb-robust_metadata")
    assert images.classes is not None
    said = json.loads((real_data / "pmk" / "ytbb-robust_metadata" / "anchor_labels.json").read_text())
    # by hand: 0, 1 and 2 are good, unsure and bad, and no key is there twice
    assert len(images.samples) == sum(0 in e["labels"] and not {1, 2} & {*e["labels"]} for e in said["annotations"])
    assert all(len(sample.id.split("/")) == 2 for sample in images.samples)
    assert images.notes[2].startswith("no pmk_labels.json")
    assert len({sample.facts["clip"] for sample in images.samples}) == 1780  # YouTube videos, of 2169 anchors
    names = Counter(images.classes.names[label] for sample in images.samples for label in sample.labels)
    assert "car" in names
    assert names["none"] < names["car"]


def test_the_classes_of_both_releases_can_be_scored_by_an_ilsvrc_model(tmp_path: Path, draw: Draw) -> None:
    vid = open_dataset(vid_robust(tmp_path / "vid", draw))
    ytbb = open_dataset(ytbb_robust(tmp_path / "ytbb", draw))
    assert vid.classes is not None
    assert ytbb.classes is not None
    space = Scoring(groups=video_groups("imagenet-vid")).space(vid.classes, None, outputs=1000)
    assert space.label_of == tuple(range(30))
    space = Scoring(groups=video_groups("ytbb"), unmatched="wrong").space(ytbb.classes, None, outputs=1000)
    assert space.label_of == tuple(range(24))


def vid_robust(root: Path, draw: Draw) -> Path:
    draw(root / "val" / "a" / "000012.JPEG")
    sets = {"val/a/000012.JPEG": ["val/a/000010.JPEG", "val/a/000013.JPEG"], "val/b/000000.JPEG": []}
    labels = {"val/a/000012.JPEG": [3, 7], "val/a/000010.JPEG": [3], "val/a/000013.JPEG": [7], "val/b/000000.JPEG": [0]}
    (root / "metadata").mkdir()
    (root / "metadata" / "pmsets.json").write_text(json.dumps(sets))
    (root / "metadata" / "labels.json").write_text(json.dumps(labels))
    return root


def test_a_released_frame_near_two_anchors_has_an_id_for_each_of_them(tmp_path: Path, draw: Draw) -> None:
    root = vid_robust(tmp_path, draw)
    first, second = "val/a/000012.JPEG", "val/a/000014.JPEG"
    sets = {first: ["val/a/000013.JPEG", second], second: ["val/a/000013.JPEG"]}
    (root / "metadata" / "pmsets.json").write_text(json.dumps(sets))
    images = open_dataset(root)
    assert {sample.id: (sample.facts["anchor"], sample.facts["offset"]) for sample in images.samples} == {
        first: (first, 0),
        "val/a/000013.JPEG": (first, 1),
        "val/a/000013.JPEG@000014": (second, -1),
        second: (second, 0),
        "val/a/000014.JPEG@000012": (first, 2),
    }
    sources = [images.source(sample) for sample in images.samples]
    assert len(set(map(repr, sources))) == 3
    assert images.notes[-1].startswith("4 of 5 frames are not below")


def test_frames_of_vid_have_labels_of_their_own_and_may_be_missing(tmp_path: Path, draw: Draw) -> None:
    images = open_dataset(vid_robust(tmp_path, draw))
    assert [(sample.id, sample.facts["offset"], sample.labels) for sample in images.samples] == [
        ("val/a/000010.JPEG", -2, (3,)),
        ("val/a/000012.JPEG", 0, (3, 7)),
        ("val/a/000013.JPEG", 1, (7,)),
        ("val/b/000000.JPEG", 0, (0,)),
    ]
    assert images.notes[0] == "ImageNet-Vid-Robust: 2 anchors, 2 pairs"
    assert images.notes[2].startswith("3 of 4 frames are not below")
    source = images.source(images.samples[1])
    assert source.decode(source.read()).shape == (8, 12, 3)


SAID = {
    "labels": ["good", "unsure", "bad", "cat", "dog"],
    "annotations": [
        {"key": "a_1/frame-30.jpg", "notes": "", "labels": [2]},
        {"key": "somebody/else/a_1/frame-30.jpg", "notes": "", "labels": [0, 4]},
        {"key": "b_2/frame-60.jpg", "notes": "", "labels": [0]},
        {"key": "c_3/frame-5.jpg", "notes": "", "labels": [0, 1]},
        {"key": "d_4/frame-7.jpg", "notes": "", "labels": [0]},
    ],
}

PAIRS = {
    "labels": ["similar", "dissimilar", "blur-increase", "bad-anchor"],
    "annotations": [
        {"key": "a_1/frame-30.jpg,a_1/frame-29.jpg", "notes": "", "labels": [1]},
        {"key": "a_1/frame-30.jpg,a_1/frame-29.jpg", "notes": "", "labels": [0]},
        {"key": "a_1/frame-30.jpg,a_1/frame-31.jpg", "notes": "", "labels": [0, 2]},
        {"key": "d_4/frame-7.jpg,d_4/frame-8.jpg", "notes": "", "labels": [0]},
        {"key": "d_4/frame-7.jpg,d_4/frame-9.jpg", "notes": "", "labels": [3]},
    ],
}


def ytbb_robust(root: Path, draw: Draw, pairs: dict[str, Any] | None = None) -> Path:
    for number in (19, 20, 30, 33):
        draw(root / "a_1" / f"frame-{number}.jpg")
    (root / "metadata").mkdir()
    (root / "metadata" / "anchor_labels.json").write_text(json.dumps(SAID))
    table = "ytid,time_ms,label\na,1,7\nb,2,22\nc,3,0\nd,4,0\n"
    (root / "metadata" / "ytbb_robustness_test_anchors_full.csv").write_text(table)
    if pairs is not None:
        (root / "metadata" / "pmk_labels.json").write_text(json.dumps(pairs))
    return root


def told(samples: list[Sample]) -> list[tuple[str, object, tuple[int, ...]]]:
    return [(sample.id, sample.facts["offset"], sample.labels) for sample in samples]


def test_pairs_of_ytbb_count_where_people_found_them_similar(tmp_path: Path, draw: Draw) -> None:
    root = ytbb_robust(tmp_path, draw, PAIRS)
    images = open_dataset(root)
    # the last word on an anchor or a pair counts; d_4 fell with its second pair; 22 in the table is a car, class 23
    sets = [("a_1/frame-29.jpg", -1, (7, 19)), ("a_1/frame-30.jpg", 0, (7, 19)), ("b_2/frame-60.jpg", 0, (23,))]
    assert told(list(images.samples)) == sets
    assert all(sample.facts["reviewed"] for sample in images.samples)
    lenient = open_dataset(root, reasons="dissimilar,bad-anchor")
    assert told(list(lenient.samples)) == [*sets[:2], ("a_1/frame-31.jpg", 1, (7, 19)), sets[2]]


def test_frames_that_people_rejected_are_there_where_they_are_wanted_with_the_reason(tmp_path: Path, draw: Draw) -> None:
    images = open_dataset(ytbb_robust(tmp_path, draw, PAIRS), rejected="yes")
    assert {sample.id: sample.facts["reviewed"] for sample in images.samples} == {
        "a_1/frame-29.jpg": True, "a_1/frame-30.jpg": True, "a_1/frame-31.jpg": "blur-increase", "b_2/frame-60.jpg": True,
    }  # fmt: skip


def test_anchors_of_one_youtube_video_are_of_one_clip(tmp_path: Path, draw: Draw) -> None:
    root = ytbb_robust(tmp_path, draw)
    said = {**SAID, "annotations": [{"key": f"x_y_{ms}/frame-9.jpg", "notes": "", "labels": [0]} for ms in (1000, 2000)]}
    (root / "metadata" / "anchor_labels.json").write_text(json.dumps(said))
    table = "ytid,time_ms,label\nx_y,1000,7\nx_y,2000,7\n"
    (root / "metadata" / "ytbb_robustness_test_anchors_full.csv").write_text(table)
    assert [sample.facts["clip"] for sample in open_dataset(root).samples] == ["x_y", "x_y"]


def test_without_judgements_of_pairs_the_frames_beside_an_anchor_count_unreviewed(tmp_path: Path, draw: Draw) -> None:
    images = open_dataset(ytbb_robust(tmp_path, draw))
    assert told(list(images.samples))[:3] == [
        ("a_1/frame-20.jpg", -10, (7, 19)),
        ("a_1/frame-30.jpg", 0, (7, 19)),
        ("a_1/frame-33.jpg", 3, (7, 19)),
    ]
    assert not any(sample.facts["reviewed"] for sample in images.samples)


def test_releases_are_recognised_with_or_without_the_folder_of_their_metadata(tmp_path: Path, draw: Draw) -> None:
    vid, ytbb = vid_robust(tmp_path / "vid", draw), ytbb_robust(tmp_path / "ytbb", draw)
    assert [recognise(str(path)) for path in (vid, vid / "metadata")] == ["vid-robust"] * 2
    assert [recognise(str(path)) for path in (ytbb, ytbb / "metadata")] == ["ytbb-robust"] * 2


def test_a_release_without_its_tables_says_which_is_missing(tmp_path: Path, draw: Draw) -> None:
    with pytest.raises(BadInput, match=r"no pmsets\.json in .* or its folder metadata"):
        open_dataset(tmp_path, kind="vid-robust")
    root = ytbb_robust(tmp_path, draw)
    (root / "metadata" / "ytbb_robustness_test_anchors_full.csv").write_text("ytid,time_ms,label\na,1,7\n")
    with pytest.raises(BadInput, match="has no class for b_2"):
        open_dataset(root)
