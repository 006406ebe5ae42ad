"""Images labelled with classes above their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.datasets.classes import coco_classes
from shiftproof.datasets.image_list import ImageList
from shiftproof.datasets.subsets import coco_groups, nearest_hypernyms, video_groups, with_coarse_classes
from shiftproof.errors import BadInput
from shiftproof.reference import ilsvrc_classes
from shiftproof.types import Classes, Sample, Truths

FISH, SHARK, DOG, CAR = "n02512053", "n01482330", "n02084071", "n02958343"
CONVERTIBLE, TENCH, WHITE_SHARK = "n03100240", "n01440764", "n01484850"


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> ImageList:
    """Two photos each of convertibles, tenches and great white sharks, as far as their labels go."""
    images = sp.open_dataset(draw_photos(2))
    return dataclasses.replace(images, classes=Classes(("blue", "green", "red"), (CONVERTIBLE, TENCH, WHITE_SHARK)))


def test_images_are_labelled_with_the_nearest_class_above_theirs_and_others_left_out(photos: ImageList) -> None:
    seen = with_coarse_classes(photos, Classes(("dog", "fish", "shark"), (DOG, FISH, SHARK)))
    assert seen.classes == Classes(("fish", "shark"), (FISH, SHARK))  # a shark is a fish too, but first of all a shark
    assert [sample.labels for sample in seen.samples] == [(0,), (0,), (1,), (1,)]
    assert [sample.id for sample in seen.samples] == [sample.id for sample in photos.samples[2:]]
    assert seen.notes[-1].startswith("4 of 6 images are of 2 of the 3 coarse classes")
    assert seen.ref.name.endswith(", 2 coarse classes")


def test_objects_are_of_the_nearest_class_above_theirs_and_others_left_out(photos: ImageList) -> None:
    ids, no = tuple(sample.id for sample in photos.samples), np.zeros(3, bool)
    # a convertible and a shark in the last image, a tench in the third
    truths = Truths(ids, np.array([5, 5, 2]), np.zeros((3, 4)), np.array([0, 2, 1]), no, no, np.ones(3))
    boxed = dataclasses.replace(photos, truths=truths)
    objects = with_coarse_classes(boxed, Classes(("dog", "fish", "shark"), (DOG, FISH, SHARK))).truths
    assert objects is not None
    assert (objects.image.tolist(), objects.classes.tolist()) == ([3, 0], [1, 0])


def test_a_class_lies_above_itself_and_an_image_of_two_classes_is_right_by_either(photos: ImageList) -> None:
    both = dataclasses.replace(photos, samples=[Sample("a", (0, 2)), Sample("b", (1,)), Sample("c")])
    seen = with_coarse_classes(both, Classes(("shark", "convertible"), (WHITE_SHARK, CONVERTIBLE)))
    assert [(sample.id, sample.labels) for sample in seen.samples] == [("a", (0, 1))]


def test_of_two_classes_equally_near_any_is_right() -> None:
    assert nearest_hypernyms(DOG, ["n02083346", FISH, "n01317541"]) == [0, 2]  # a canine and a domestic animal
    assert nearest_hypernyms("background", [DOG]) == []


def test_the_usual_thousand_names_will_do_but_no_other_names(photos: ImageList) -> None:
    named = dataclasses.replace(
        photos, classes=Classes(ilsvrc_classes().names), samples=[Sample("a", (0,)), Sample("b", (511,))]
    )
    assert with_coarse_classes(named, Classes(("car",), (CAR,))).samples == [Sample("b", (0,))]
    with pytest.raises(BadInput, match="has no wnids"):
        with_coarse_classes(dataclasses.replace(photos, classes=Classes(("blue", "green", "red"))), coco_classes())
    with pytest.raises(BadInput, match="name them by their wnids"):
        with_coarse_classes(photos, Classes(("fish", "car")))


def test_classes_that_coco_and_the_video_sets_share_have_the_same_members() -> None:
    coco, ytbb = coco_groups(), video_groups("ytbb")
    apart = {"cat", "cow", "potted plant", "none"}  # wild cats, oxen and flowers are told otherwise there
    assert all(coco[name] == members for name, members in ytbb.items() if name not in apart)
    assert coco["cat"] == video_groups("imagenet-vid")["domestic_cat"]
    assert len({wnid for members in coco.values() for wnid in members}) == sum(map(len, coco.values()))


@pytest.mark.real
def test_the_photos_of_55_classes_of_coco_are_found_among_a_thousand(real_data: Path) -> None:
    photos = sp.open_dataset(str(real_data / "ilsvrc-sample-1000"))
    seen = with_coarse_classes(photos, coco_classes())
    assert photos.classes is not None
    assert seen.classes is not None
    members = {wnid: name for name, group in coco_groups().items() for wnid in group}
    expected = [
        (s.id, members[photos.classes.keys[s.labels[0]]])
        for s in photos.samples
        if photos.classes.keys[s.labels[0]] in members
    ]
    assert [(sample.id, seen.classes.names[sample.labels[0]]) for sample in seen.samples] == expected
    assert (len(seen.samples), len(seen.classes)) == (288, 55)
