"""Splits by class and by whole clusters, the same for one seed in any order."""

from __future__ import annotations

from collections import Counter

import pytest

from shiftproof.datasets.clusters import Clustering
from shiftproof.datasets.image_list import BrokenImage, ImageList
from shiftproof.errors import BadInput
from shiftproof.training.splits import split
from shiftproof.types import Classes, Sample

NAMES = ("training", "validation")


def dataset(samples: list[Sample]) -> ImageList:
    return ImageList("some", samples, Classes(("a", "b", "c")), lambda _: BrokenImage("none"))


def frames(clips: int, each: int, label: int) -> list[Sample]:
    return [
        Sample(f"{label}/{clip}/{frame}", (label,), {"clip": f"{label}/{clip}"})
        for clip in range(clips)
        for frame in range(each)
    ]


def test_every_class_gives_its_share() -> None:
    images = dataset([Sample(f"{label}/{place}", (label,)) for label in range(3) for place in range(50 * (label + 1))])
    training, validation = split(images, 0.2, names=NAMES)
    assert Counter(sample.labels for sample in validation.samples) == {(0,): 10, (1,): 20, (2,): 30}
    assert {sample.id for sample in training.samples}.isdisjoint(sample.id for sample in validation.samples)
    assert len(training.samples) + len(validation.samples) == 300


def test_frames_of_a_clip_stay_together() -> None:
    images = dataset([*frames(10, 7, 0), *frames(6, 3, 1)])
    training, validation = split(images, 0.3, names=NAMES)
    clips = [{sample.facts["clip"] for sample in part.samples} for part in (training, validation)]
    assert clips[0].isdisjoint(clips[1])
    assert Counter(clip.partition("/")[0] for clip in map(str, clips[1])) == {"0": 3, "1": 2}


def test_near_duplicates_stay_together() -> None:
    samples = [Sample(str(place), (place % 2,)) for place in range(40)]
    alike = {str(place): str(place // 4) for place in range(40)}
    for seed in range(5):
        parts = split(dataset(samples), 0.5, seed=seed, clustering=Clustering().joining(samples, alike), names=NAMES)
        groups = [{alike[sample.id] for sample in part.samples} for part in parts]
        assert groups[0].isdisjoint(groups[1])


def test_a_split_follows_from_its_seed_whatever_the_order() -> None:
    samples = [Sample(str(place), (place % 3,)) for place in range(60)]
    ids = [
        {sample.id for sample in split(dataset(some), 0.2, seed=4, names=NAMES)[1].samples}
        for some in (samples, samples[::-1])
    ]
    assert ids[0] == ids[1]
    assert ids[0] != {sample.id for sample in split(dataset(samples), 0.2, seed=5, names=NAMES)[1].samples}


def test_a_class_of_two_images_is_on_both_sides() -> None:
    images = dataset([Sample("a", (0,)), Sample("b", (0,)), *(Sample(str(place), (1,)) for place in range(20))])
    for part in split(images, 0.1, names=NAMES):
        assert {sample.labels for sample in part.samples} == {(0,), (1,)}


def test_one_clip_alone_cannot_be_split() -> None:
    with pytest.raises(BadInput, match="cannot be split: its 7 labelled images are 1 clusters"):
        split(dataset(frames(1, 7, 0)), 0.2, names=NAMES)
