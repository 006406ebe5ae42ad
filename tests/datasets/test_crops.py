"""Objects of boxed sets as images of their own."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.boxed.crops import NEUTRAL, Cut, ObjectView, crops, cut_out, window_around
from shiftproof.errors import BadInput, UnknownName, UnreadableImage
from shiftproof.runs.digests import digest_of
from shiftproof.types import Image

Pattern = Callable[[int, int], NDArray[np.uint8]]
CROP = Cut("crop", 0.0, False)


@pytest.fixture
def boxed(tmp_path: Path, draw: Callable[..., Path]) -> ImageList:
    draw(tmp_path / "a.png", height=30, width=40)
    draw(tmp_path / "b.png", height=30, width=40)
    objects = [(1, 1, [2, 3, 10, 20], 0), (1, 2, [0, 0, 40, 30], 1), (1, 1, [20, 5, 8, 8], 0), (2, 2, [5.5, 5.5, 4, 4], 0)]
    annotations = [{"image_id": i, "category_id": c, "bbox": b, "iscrowd": crowd} for i, c, b, crowd in objects]
    images = [{"id": i, "file_name": name, "width": 40, "height": 30} for i, name in ((1, "a.png"), (2, "b.png"))]
    categories = [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}]
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return open_dataset(path)


def pixels(images: ImageList, place: int) -> Image:
    source = images.source(images.samples[place])
    return source.decode(source.read())


def test_every_object_but_crowds_is_an_image_with_its_own_label(boxed: ImageList) -> None:
    cropped = crops(boxed)
    assert [sample.id for sample in cropped.samples] == ["a.png/000", "a.png/002", "b.png/000"]
    assert [sample.labels for sample in cropped.samples] == [(0,), (0,), (1,)]
    assert cropped.classes == boxed.classes
    first = cropped.samples[0].facts
    assert first["longer_side"] == 20
    assert first["share"] == pytest.approx(10 * 20 / (40 * 30), abs=1e-6)
    assert cropped.notes == ("3 objects in 2 images: crop, padding 0",)
    assert cropped.name == "objects of boxes"


def test_ignored_objects_are_not_cut_out_and_keep_their_number(boxed: ImageList) -> None:
    assert boxed.truths is not None
    spared = dataclasses.replace(boxed.truths, ignored=np.array([True, False, False, False]))
    cropped = crops(dataclasses.replace(boxed, truths=spared))
    assert [sample.id for sample in cropped.samples] == ["a.png/002", "b.png/000"]


def test_rounding_of_corners_takes_in_no_further_pixel() -> None:
    assert window_around((11 - 1e-9, 5 - 1e-9, 20 + 1e-9, 8 + 1e-9), 0) == (11, 5, 20, 8)


def test_a_crop_is_the_pixels_inside_the_box(boxed: ImageList, pattern: Pattern) -> None:
    image = pattern(30, 40)
    cropped = crops(boxed)
    assert np.array_equal(pixels(cropped, 0), image[3:23, 2:12])
    assert np.array_equal(pixels(cropped, 2), image[5:10, 5:10]), "pixels that the box touches count"


def test_padding_is_a_share_of_the_box_and_stops_at_the_edge_of_the_image(boxed: ImageList, pattern: Pattern) -> None:
    image = pattern(30, 40)
    cropped = crops(boxed, padding=0.5)
    assert np.array_equal(pixels(cropped, 0), image[0:30, 0:17])
    assert np.array_equal(pixels(cropped, 1), image[1:17, 16:32])


def test_a_square_crop_keeps_the_object_in_the_middle_and_is_neutral_beyond_the_image(pattern: Pattern) -> None:
    image = pattern(30, 40)
    square = cut_out(image, (2, 3, 12, 23), Cut("crop", 0.0, True))
    assert square.shape == (20, 20, 3)
    assert np.array_equal(square[:, 3:], image[3:23, 0:17])
    assert (square[:, :3] == NEUTRAL).all()
    inside = cut_out(image, (15, 10, 25, 14), Cut("crop", 0.0, True))
    assert np.array_equal(inside, image[7:17, 15:25])


def test_an_object_alone_stays_where_and_as_large_as_it_was(pattern: Pattern) -> None:
    image = pattern(30, 40)
    alone = cut_out(image, (2, 3, 12, 23), Cut("alone", 0.0, False))
    outside = np.ones((30, 40), bool)
    outside[3:23, 2:12] = False
    assert np.array_equal(alone[~outside], image[~outside])
    assert (alone[outside] == NEUTRAL).all()


def test_an_enlarged_object_touches_two_edges_and_keeps_its_shape(pattern: Pattern) -> None:
    enlarged = cut_out(pattern(30, 40), (2, 3, 12, 23), Cut("enlarged", 0.0, False))
    assert enlarged.shape == (30, 40, 3)
    background = (enlarged == NEUTRAL).all(axis=2).all(axis=0)
    columns = np.flatnonzero(~background)
    assert (columns[0], columns[-1] + 1) == (12, 27), "10 x 20 becomes 15 x 30"
    assert not (enlarged[:, 12:27] == NEUTRAL).all(axis=2).any()


def test_a_box_over_the_whole_image_is_the_image_in_every_look(pattern: Pattern) -> None:
    image = pattern(30, 40)
    views: tuple[ObjectView, ...] = ("crop", "alone", "enlarged")
    for view in views:
        assert np.array_equal(cut_out(image, (0, 0, 40, 30), Cut(view, 0.0, False)), image)


def test_all_instances_together_are_one_box_for_each_image_and_class(boxed: ImageList, pattern: Pattern) -> None:
    together = crops(boxed, together=True)
    assert [sample.id for sample in together.samples] == ["a.png/000", "b.png/000"]
    assert np.array_equal(pixels(together, 0), pattern(30, 40)[3:23, 2:28])


def test_other_cuts_of_one_object_are_stored_apart(boxed: ImageList) -> None:
    sets = [crops(boxed), crops(boxed, padding=0.1), crops(boxed, view="alone"), crops(boxed, square=True)]
    sources = [images.source(images.samples[0]) for images in sets]
    assert len({digest_of(source.read()) for source in sources}) == len(sets)
    assert len({source.stamp() for source in sources}) == len(sets)
    assert len({images.ref.fingerprint for images in sets}) == len(sets)


def test_the_location_of_crops_opens_them_again(boxed: ImageList) -> None:
    cropped = crops(boxed, view="alone", padding=0.25, together=True)
    assert cropped.ref.location is not None
    again = open_dataset(cropped.ref.location)
    assert again.ref.fingerprint == cropped.ref.fingerprint
    assert np.array_equal(pixels(again, 1), pixels(cropped, 1))


def test_a_box_beyond_the_pixels_is_skipped_with_its_reason(pattern: Pattern) -> None:
    with pytest.raises(UnreadableImage, match="lies outside the image of 40 x 30 pixels"):
        cut_out(pattern(30, 40), (50, 3, 60, 9), CROP)


def test_what_cannot_be_cut_is_told(boxed: ImageList, tmp_path: Path, draw: Callable[..., Path]) -> None:
    draw(tmp_path / "plain" / "cat" / "a.png")
    with pytest.raises(BadInput, match="plain has no boxes"):
        crops(open_dataset(tmp_path / "plain"))
    with pytest.raises(UnknownName, match="did you mean alone"):
        open_dataset(f"crops:{boxed.location}?view=alon")
    with pytest.raises(BadInput, match="padding should be a share of the box from 0 to 1,000, got -1"):
        crops(boxed, padding=-1)
    with pytest.raises(BadInput, match="only a crop can be square"):
        crops(boxed, view="alone", square=True)
    with pytest.raises(BadInput, match="square should be true or false, got 'maybe'"):
        open_dataset(f"crops:{boxed.location}?square=maybe")
    with pytest.raises(BadInput, match="padding should be a number, got 'much'"):
        open_dataset(f"crops:{boxed.location}?padding=much")


@pytest.mark.real
def test_real_photos_cut_by_yolo_files_agree_with_slices_of_their_pixels(real_data: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    photos = sorted((real_data / "ilsvrc-sample-1000").glob("*.jpg"))[::250]
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    for photo in photos:
        (tmp_path / "images" / photo.name).symlink_to(photo)
        across, down = rng.uniform(0.3, 0.7, 2)
        (tmp_path / "labels" / f"{photo.stem}.txt").write_text(f"0 {across} {down} 0.4 0.5\n")
    images = open_dataset(tmp_path)
    cropped = crops(images)
    assert len(cropped.samples) == len(photos) == 4
    for place, sample in enumerate(images.samples):
        assert sample.boxes is not None
        whole, (left, top, right, bottom) = pixels(images, place), sample.boxes[0]
        expected = whole[int(top) : int(np.ceil(bottom)), int(left) : int(np.ceil(right))]
        assert np.array_equal(pixels(cropped, place), expected)
        assert cropped.samples[place].facts["share"] == pytest.approx(0.2, abs=1e-6)
