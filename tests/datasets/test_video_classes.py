"""The classes of the video sets, merged from ILSVRC's by WordNet, beside the maps their authors released."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from shiftproof.datasets.label_spaces import Scoring
from shiftproof.datasets.subsets import VIDEO_CLASSES, load_groups, video_groups
from shiftproof.datasets.wordnet import ilsvrc_index, ilsvrc_wnid
from shiftproof.errors import UnknownName
from shiftproof.types import Classes, Predictions, Top5

RELEASED = {"imagenet-vid": "imagenet-vid-robust_metadata", "ytbb": "ytbb-robust_metadata"}


@pytest.mark.real
@pytest.mark.parametrize(("name", "classes", "named"), [("imagenet-vid", 288, 30), ("ytbb", 231, 19)])
def test_the_groups_are_those_of_the_released_map(real_data: Path, name: str, classes: int, named: int) -> None:
    released = json.loads((real_data / "pmk" / RELEASED[name] / "rev_class_idx_map.json").read_text())
    ours = [sorted(map(ilsvrc_index, members)) for members in video_groups(name).values()]
    assert {str(place): members for place, members in enumerate(ours) if members} == {
        place: sorted(members) for place, members in released.items()
    }
    assert (sum(map(len, ours)), sum(map(bool, ours))) == (classes, named)


@pytest.mark.real
def test_the_groups_of_ytbb_stand_in_the_order_of_its_labels(real_data: Path) -> None:
    index = json.loads((real_data / "pmk" / RELEASED["ytbb"] / "ytbb_class_index.json").read_text())
    assert list(video_groups("ytbb")) == list(index.values())


def test_no_class_stands_in_two_groups() -> None:
    for name in VIDEO_CLASSES:
        members = [wnid for group in video_groups(name).values() for wnid in group]
        assert len(set(members)) == len(members)


def test_potted_plants_are_flowers_and_a_minivan_is_no_truck() -> None:
    groups = video_groups("ytbb")
    assert groups["potted plant"] == ["n11939491", "n12057211"]  # daisy, yellow lady's slipper
    assert "n03770679" in groups["car"]
    assert "n03770679" not in groups["truck"]
    assert groups["giraffe"] == groups["none"] == []


def test_a_merge_by_name_scores_dogs_as_dogs() -> None:
    logits = np.zeros((2, 1000))
    logits[0, ilsvrc_index("n02085620")] = 5  # a Chihuahua
    logits[1, ilsvrc_index("n01440764")] = 5  # a tench, in no group
    space = Scoring(groups=load_groups("imagenet-vid")).space(Classes(("dog", "zebra")), None, outputs=1000)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :5]
    top5 = Top5(order, np.take_along_axis(logits, order, 1), np.zeros(2))
    projected = space.project(Predictions(("a", "b"), np.array([[0], [1]]), "logits", top5, logits=logits))
    assert projected.classes is not None
    assert projected.classes.names[projected.top5.classes[0, 0]] == "dog"
    assert projected.classes.names[projected.labels[1, 0]] == "zebra"
    assert projected.convention["classes"] == "30 merged by max from 288 of 1000"


def test_other_names_are_refused_and_files_are_read_as_before(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean imagenet-vid"):
        video_groups("imagenet-video")
    (tmp_path / "groups.json").write_text(json.dumps({"fish": [ilsvrc_wnid(0)]}))
    assert load_groups(tmp_path / "groups.json") == {"fish": ["n01440764"]}
