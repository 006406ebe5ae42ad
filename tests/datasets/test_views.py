"""The same images with other labels, or only some of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import shiftproof as sp
from shiftproof.datasets.image_list import ImageList, spread_over
from shiftproof.datasets.subsets import labelled_among, of_classes, unlabelled
from shiftproof.errors import BadInput
from shiftproof.types import Classes, Sample, Truths

WNIDS = ("n01440764", "n01443537", "n01484850")  # blue, green and red stand for tench, goldfish and a shark


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> ImageList:
    images = sp.open_dataset(draw_photos(2))
    return dataclasses.replace(images, classes=Classes(("blue", "green", "red"), WNIDS))


def test_images_of_some_classes_are_labelled_by_their_place_among_these(photos: ImageList) -> None:
    some = of_classes(photos, [WNIDS[2], WNIDS[1]])
    assert some.classes == Classes(("green", "red"), WNIDS[1:])
    assert [sample.id for sample in some.samples] == [sample.id for sample in photos.samples[2:]]
    assert [sample.labels for sample in some.samples] == [(0,), (0,), (1,), (1,)]
    assert some.ref.name.endswith(", 2 classes")
    assert some.source(some.samples[0]).read() == photos.source(photos.samples[2]).read()


def test_images_of_some_classes_keep_the_objects_of_these(photos: ImageList) -> None:
    ids, no = tuple(sample.id for sample in photos.samples), np.zeros(4, bool)
    boxes = np.arange(16.0).reshape(4, 4)
    # red beside blue in the first image, green in the third, red in the last
    truths = Truths(ids, np.array([0, 0, 2, 5]), boxes, np.array([0, 2, 1, 2]), no, no, np.ones(4))
    objects = of_classes(dataclasses.replace(photos, truths=truths), WNIDS[1:]).truths
    assert objects is not None
    assert objects.ids == ids[2:]
    assert (objects.image.tolist(), objects.classes.tolist()) == ([0, 3], [0, 1])
    assert objects.boxes.tolist() == boxes[2:].tolist()
    assert of_classes(photos, WNIDS[1:]).truths is None


def test_classes_that_no_image_is_of_or_that_have_no_wnid_cannot_be_chosen(photos: ImageList) -> None:
    with pytest.raises(BadInput, match="has no image of the 1 classes that were chosen"):
        of_classes(photos, ["n02084071"])
    with pytest.raises(BadInput, match="has no wnids for its classes"):
        of_classes(dataclasses.replace(photos, classes=Classes(("blue", "green", "red"))), WNIDS)


def test_labels_among_other_classes_are_their_places_there_and_none_where_there_is_none(photos: ImageList) -> None:
    other = Classes(("shark", "dog", "tench"), (WNIDS[2], "n02084071", WNIDS[0]))
    seen = labelled_among(photos, other)
    assert seen.classes == other
    assert [sample.labels for sample in seen.samples] == [(2,), (2,), (), (), (0,), (0,)]
    assert [sample.id for sample in seen.samples] == [sample.id for sample in photos.samples]
    assert seen.ref != photos.ref


def test_images_of_new_classes_have_no_label_but_keep_their_ids(photos: ImageList) -> None:
    bare = unlabelled(photos)
    assert [(sample.id, sample.labels) for sample in bare.samples] == [(sample.id, ()) for sample in photos.samples]
    assert labelled_among(dataclasses.replace(photos, classes=None), Classes(("cat",))).classes == Classes(("cat",))


def test_a_limit_takes_images_from_all_over_the_set() -> None:
    samples = [Sample(f"{number:03}") for number in range(100)]
    assert [sample.id for sample in spread_over(samples, 4)] == ["000", "025", "050", "075"]
    assert list(spread_over(samples, 300)) == samples
