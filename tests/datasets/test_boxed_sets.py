"""Files of boxes, each worked by hand: COCO, Pascal VOC, ILSVRC, ImageNet-VID and YOLO."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from pycocotools.coco import COCO

from shiftproof.datasets import open_dataset
from shiftproof.datasets.boxed.boxes import BoxedImage, Object, boxed_list, upright_size
from shiftproof.datasets.boxed.voc import parse_xml
from shiftproof.datasets.image_list import FilesBelow, decoded
from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.models.object_detectors.recorded import load_coco_results
from shiftproof.types import Classes

Draw = Callable[..., Path]

DOG, CAT = {"id": 18, "name": "dog"}, {"id": 3, "name": "cat"}


def write_coco(path: Path, annotations: Sequence[dict[str, Any]] = (), **parts: Any) -> Path:
    images = [
        {"id": 9, "file_name": "b.png", "width": 12, "height": 8},
        {"id": 4, "file_name": "a.png", "width": 12, "height": 8},
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"images": images, "categories": [DOG, CAT], "annotations": list(annotations)} | parts))
    return path


def box(image: int, category: int, *corners: float, **more: Any) -> dict[str, Any]:
    return {"id": 1, "image_id": image, "category_id": category, "bbox": list(corners), **more}


@pytest.fixture
def coco(tmp_path: Path, draw: Draw) -> Path:
    draw(tmp_path / "a.png")
    draw(tmp_path / "b.png")
    annotations = [
        box(9, 18, 1, 2, 3, 4, area=7.5),
        box(4, 3, 0, 0, 5, 5, iscrowd=1),
        box(4, 18, 2, 1, 4, 6, ignore=1),
        box(9, 18, 8, 6, 10, 10),
        box(9, 3, 20, 1, 2, 2),
        box(9, 3, 3, 3, 0, 4),
    ]
    return write_coco(tmp_path / "boxes.json", annotations)


def test_a_coco_file_gives_corners_flags_areas_and_classes_in_the_order_of_their_numbers(coco: Path) -> None:
    images = open_dataset(coco)
    assert images.classes == Classes(("cat", "dog"))
    assert [sample.id for sample in images.samples] == ["a.png", "b.png"]
    assert [sample.facts for sample in images.samples] == [{"width": 12, "height": 8}] * 2
    truths = images.truths
    assert truths is not None
    assert truths.ids == ("a.png", "b.png")
    assert truths.image.tolist() == [0, 0, 1, 1]
    assert truths.boxes.tolist() == [[0, 0, 5, 5], [2, 1, 6, 7], [1, 2, 4, 6], [8, 6, 12, 8]]
    assert truths.classes.tolist() == [0, 1, 1, 1]
    assert truths.crowd.tolist() == [True, False, False, False]
    assert truths.ignored.tolist() == [False, True, False, False]
    assert truths.areas.tolist() == [25, 24, 7.5, 8], "the last box is measured inside the image"


def test_an_image_is_labelled_with_its_objects_but_not_with_ignored_ones(coco: Path) -> None:
    images = open_dataset(coco)
    assert [sample.labels for sample in images.samples] == [(0,), (1,)]
    assert [sample.boxes.tolist() for sample in images.samples if sample.boxes is not None] == [
        [[0, 0, 5, 5], [2, 1, 6, 7]],
        [[1, 2, 4, 6], [8, 6, 12, 8]],
    ]


def test_boxes_that_were_cut_or_dropped_are_counted(coco: Path) -> None:
    assert open_dataset(coco).notes == (
        "boxes from boxes.json",
        "1 of 4 boxes reach beyond their image and were clipped",
        "boxes without any area in their image, dropped: 2",
    )


def test_the_loader_of_coco_sees_the_same_boxes(tmp_path: Path, draw: Draw) -> None:
    rng = np.random.default_rng(5)
    names = [f"{number:03d}.png" for number in rng.permutation(20)]
    for name in names:
        draw(tmp_path / "val2017" / name, height=60, width=80)
    images = [{"id": 1000 - n, "file_name": name, "width": 80, "height": 60} for n, name in enumerate(names)]
    annotations = []
    for number in range(1, 101):
        left, top = rng.uniform(0, 40, 2).round(2)
        width, height = rng.uniform(1, 20, 2).round(2)
        flags = {"iscrowd": int(rng.random() < 0.2), "area": float(width * height / 2), "id": number}
        annotations.append(box(1000 - int(rng.integers(20)), int(rng.choice([3, 18])), left, top, width, height, **flags))
    path = write_coco(tmp_path / "annotations" / "instances_val2017.json", annotations, images=images)
    truths = open_dataset(path).truths
    assert truths is not None
    peer = COCO(str(path))
    for place, image_id in enumerate(truths.ids):
        number = 1000 - names.index(image_id)
        theirs = peer.loadAnns(peer.getAnnIds(imgIds=[number]))
        ours = np.flatnonzero(truths.image == place)
        assert len(ours) == len(theirs)
        corners = np.array([entry["bbox"] for entry in theirs]).reshape(-1, 4)
        corners[:, 2:] += corners[:, :2]
        assert np.allclose(truths.boxes[ours], corners)
        assert truths.crowd[ours].tolist() == [bool(entry["iscrowd"]) for entry in theirs]
        assert np.allclose(truths.areas[ours], [entry["area"] for entry in theirs])
        assert [("cat", "dog")[c] for c in truths.classes[ours]] == [
            peer.cats[entry["category_id"]]["name"] for entry in theirs
        ]


def test_categories_that_are_wnids_get_readable_names(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "a.png")
    path = write_coco(tmp_path / "boxes.json", [box(4, 1, 1, 1, 2, 2)], categories=[{"id": 1, "name": "n01440764"}])
    assert open_dataset(path).classes == Classes(("tench",), ("n01440764",))


def test_given_classes_keep_their_order(coco: Path) -> None:
    images = open_dataset(coco, classes=["dog", "horse", "cat"])
    assert images.classes == Classes(("dog", "horse", "cat"))
    assert [sample.labels for sample in images.samples] == [(2,), (0,)]
    with pytest.raises(ClassMismatch, match="cat"):
        open_dataset(coco, classes=["dog", "horse"])


def test_new_labels_take_the_objects_of_the_old_classes_away(coco: Path) -> None:
    assert open_dataset(coco, labels="none").truths is None
    assert open_dataset(coco, label="zebra").truths is None


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"images": None}, "expected lists of objects called images, categories, annotations"),
        ({"images": []}, "lists no images"),
        ({"categories": [{"id": 3}]}, "every category should have an id and a name"),
        ({"categories": [CAT, CAT | {"id": 4}]}, "a name of its own"),
        ({"images": [{"id": 1, "file_name": "../a.png"}]}, "path below the folder"),
        ({"images": [{"id": 4, "file_name": "a.png"}, {"id": 5, "file_name": "a.png"}]}, "lists 1 images twice"),
        ({"annotations": [{"image_id": 4, "category_id": 3, "caption": "a cat"}]}, "no bbox; name the file of instances"),
        ({"annotations": [box(4, 77, 1, 1, 1, 1)]}, "annotation 1: .* not in the list: 77"),
        ({"annotations": [box(5, 3, 1, 1, 1, 1)]}, "boxes in images that it does not list: 5"),
    ],
)
def test_a_malformed_coco_file_is_told_in_one_sentence(
    parts: dict[str, Any], message: str, tmp_path: Path, draw: Draw
) -> None:
    draw(tmp_path / "a.png")
    with pytest.raises(BadInput, match=message):
        open_dataset(write_coco(tmp_path / "boxes.json", **parts))


@pytest.mark.parametrize(
    ("sides", "more", "says"),
    [
        ((1, 1, 1), {}, "annotation 1: a box should be four numbers"),
        ((1, 1, 1, float("nan")), {}, "four finite numbers"),
        ((1, 1, 1e308, 1e308), {}, "four finite numbers"),
        ((5, 5, -2, 3), {}, "annotation 1: a box of negative size, -2 x 3"),
        ((1, 1, 2, 2), {"area": -4}, "area should be a number of pixels, got -4"),
        ((1, 1, 2, 2), {"area": 10**400}, "area should be a number of pixels, got 1000"),
    ],
)
def test_a_bad_box_skips_its_image_and_no_other(
    sides: tuple[float, ...], more: dict[str, Any], says: str, tmp_path: Path, draw: Draw
) -> None:
    for name in ("a.png", "b.png"):
        draw(tmp_path / name)
    images = [{"id": 4, "file_name": "a.png"}, {"id": 5, "file_name": "b.png"}]
    boxes = [box(4, 3, *sides) | more, box(5, 3, 1, 1, 2, 2)]
    opened = open_dataset(write_coco(tmp_path / "boxes.json", boxes, images=images))
    reasons = [decoded(opened.source(sample)) for sample in opened.samples]
    assert says in str(reasons[0])
    assert not isinstance(reasons[1], str)
    assert opened.truths is not None
    assert opened.truths.boxes.tolist() == [[1, 1, 3, 3]]


@pytest.mark.parametrize("width", [float("inf"), float("nan"), 10**400, -3])
def test_a_width_that_no_picture_has_is_none(width: float, tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "a.png")
    images = [{"id": 4, "file_name": "a.png", "width": width, "height": 8}]
    opened = open_dataset(write_coco(tmp_path / "boxes.json", [box(4, 3, 1, 1, 2, 2)], images=images))
    assert opened.samples[0].facts == {}


def test_images_that_are_not_there_and_files_that_are_not_json_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="say where they are with images=FOLDER"):
        open_dataset(write_coco(tmp_path / "boxes.json", []))
    (tmp_path / "broken.json").write_text('{"images": [')
    with pytest.raises(BadInput, match=r"broken\.json is not JSON"):
        open_dataset(tmp_path / "broken.json")


def test_results_find_their_images_by_number_id_or_name_and_their_classes_by_the_categories(coco: Path) -> None:
    results = coco.with_name("results.json")
    found = [(9, 18, [1, 2, 3, 4], 0.5), ("a.png", 3, [0, 0, 2, 2], 0.9), ("b", 3, [5, 5, 1, 2], 1)]
    results.write_text(
        json.dumps([dict(zip(("image_id", "category_id", "bbox", "score"), row, strict=True)) for row in found])
    )
    detections = load_coco_results(results, open_dataset(coco), annotations=coco)
    assert detections.ids == ("a.png", "b.png")
    assert detections.image.tolist() == [1, 0, 1]
    assert detections.boxes.tolist() == [[1, 2, 4, 6], [0, 0, 2, 2], [5, 5, 6, 7]]
    assert detections.scores.tolist() == [0.5, 0.9, 1.0]
    assert detections.classes.tolist() == [1, 0, 0]


def test_the_loader_of_coco_sees_the_same_results(coco: Path) -> None:
    rng = np.random.default_rng(8)
    entries = [
        {
            "image_id": int(rng.choice([4, 9])),
            "category_id": int(rng.choice([3, 18])),
            "bbox": rng.uniform(0, 8, 4).round(3).tolist(),
            "score": float(rng.random()),
        }
        for _ in range(30)
    ]
    results = coco.with_name("results.json")
    results.write_text(json.dumps(entries))
    detections = load_coco_results(results, open_dataset(coco), annotations=coco)
    peer = COCO(str(coco))
    theirs = peer.loadRes(str(results)).loadAnns(range(1, 31))
    corners = np.array([entry["bbox"] for entry in theirs])
    corners[:, 2:] += corners[:, :2]
    assert np.allclose(detections.boxes, corners)
    assert detections.scores.tolist() == [entry["score"] for entry in theirs]
    files = [peer.imgs[entry["image_id"]]["file_name"] for entry in theirs]
    assert [detections.ids[place] for place in detections.image] == files
    names = [peer.cats[entry["category_id"]]["name"] for entry in theirs]
    assert [("cat", "dog")[place] for place in detections.classes] == names


def test_a_number_of_the_list_never_means_a_file_that_is_called_so(coco: Path, draw: Draw) -> None:
    draw(coco.parent / "other" / "cat" / "9.png")
    draw(coco.parent / "other" / "dog" / "a.png")
    results = coco.with_name("results.json")
    results.write_text(json.dumps([{"image_id": 9, "category_id": 3, "bbox": [0, 0, 1, 1], "score": 0.5}]))
    other = open_dataset(coco.parent / "other")
    with pytest.raises(BadInput, match="the dataset has no image 9"):
        load_coco_results(results, other, annotations=coco)


def test_results_without_a_list_hold_places_in_the_classes_and_numbers_that_files_are_called_after(
    tmp_path: Path, draw: Draw
) -> None:
    draw(tmp_path / "cat" / "000000000012.png")
    draw(tmp_path / "dog" / "000000000007.png")
    results = tmp_path / "results.json"
    results.write_text(json.dumps([{"image_id": 7, "category_id": 0, "bbox": [0, 0, 1, 1], "score": 0.5}]))
    detections = load_coco_results(results, open_dataset(tmp_path, kind="folder"))
    assert detections.image.tolist() == [1]
    assert detections.classes.tolist() == [0]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"image_id": "a"}, "detection 1: no category_id, bbox, score"),
        ({"image_id": 5, "category_id": 0, "bbox": [0, 0, 1, 1], "score": 1}, "no image 5; numbers are those of the COCO"),
        ({"image_id": "a", "category_id": 18, "bbox": [0, 0, 1, 1], "score": 1}, "no category 18; name the COCO file"),
        (
            {"image_id": "a", "category_id": 0, "bbox": [0, 0, 1, 1], "score": "high"},
            "score should be a number from 0 to 1, got 'high'",
        ),
        ({"image_id": "a", "category_id": 0, "bbox": [0, 0, 1, 1], "score": float("nan")}, "number from 0 to 1, got nan"),
        ({"image_id": "a", "category_id": 0, "bbox": [0, 0, 1, 1], "score": float("inf")}, "number from 0 to 1, got inf"),
        ({"image_id": "a", "category_id": 0, "bbox": None, "score": 1}, "a box should be four numbers, got None"),
        ({"image_id": "a", "category_id": 0, "bbox": [5, 5, -2, 1], "score": 1}, "a box of negative size, -2 x 1"),
        ({"image_id": "a", "category_id": 0, "bbox": [0, 0, 1, 1], "score": -1}, "number from 0 to 1, got -1"),
        ({"image_id": "a", "category_id": 0, "bbox": [0, 0, 1, 1], "score": 2}, "number from 0 to 1, got 2"),
        ({"image_id": "a", "category_id": 0, "bbox": [0, 0, 1, 1], "score": 10**400}, "number from 0 to 1, got 1000"),
    ],
)
def test_malformed_results_are_told_in_one_sentence(entry: dict[str, Any], message: str, coco: Path) -> None:
    results = coco.with_name("results.json")
    results.write_text(json.dumps([entry]))
    with pytest.raises(BadInput, match=message):
        load_coco_results(results, open_dataset(coco))


def xml(*objects: str, width: int = 12, height: int = 8) -> str:
    size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>"
    return f"<annotation><filename>x</filename>{size}{''.join(objects)}</annotation>"


def xml_object(name: str, left: float, top: float, right: float, bottom: float, more: str = "") -> str:
    corners = f"<xmax>{right}</xmax><xmin>{left}</xmin><ymax>{bottom}</ymax><ymin>{top}</ymin>"
    return f"<object>{more}<name>{name}</name><bndbox>{corners}</bndbox></object>"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


PART = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>"


@pytest.fixture
def voc(tmp_path: Path, draw: Draw) -> Path:
    root = tmp_path / "VOC2007"
    for name in ("000001", "000002"):
        draw(root / "JPEGImages" / f"{name}.jpg")
    objects = (
        xml_object("person", 1, 1, 12, 8, PART),
        xml_object("dog", 3, 2, 6, 4, "<difficult>1</difficult>"),
    )
    write(root / "Annotations" / "000001.xml", xml(*objects))
    write(root / "Annotations" / "000002.xml", xml(xml_object("cat", 2, 3, 2, 3)))
    write(root / "ImageSets" / "Main" / "val.txt", "000002\n")
    write(root / "ImageSets" / "Main" / "cat_trainval.txt", "000001 -1\n000002  1\n")
    return root


def test_pascal_counts_pixels_from_one_and_the_last_is_inside(voc: Path) -> None:
    images = open_dataset(voc)
    truths = images.truths
    assert truths is not None
    assert images.classes == Classes(("cat", "dog", "person"))
    assert truths.boxes.tolist() == [[0, 0, 12, 8], [2, 1, 6, 4], [1, 2, 2, 3]], "whole image; three by four; one pixel"
    assert truths.ignored.tolist() == [False, True, False]
    assert truths.areas.tolist() == [96, 12, 1]
    assert [sample.labels for sample in images.samples] == [(2,), (0,)]


def test_a_split_of_pascal_is_the_images_on_its_list(voc: Path) -> None:
    assert [sample.id for sample in open_dataset(voc, split="val").samples] == ["000002.jpg"]
    assert len(open_dataset(voc, split="cat_trainval").samples) == 2
    with pytest.raises(BadInput, match="no list of the split 'test'"):
        open_dataset(voc, split="test")


def test_images_without_a_file_of_boxes_stay_and_are_counted(voc: Path, draw: Draw) -> None:
    draw(voc / "JPEGImages" / "000003.jpg")
    images = open_dataset(voc)
    assert images.samples[2].labels == ()
    assert images.notes == ("1 images have no .xml file: 000003.jpg",)


@pytest.fixture
def ilsvrc(tmp_path: Path, draw: Draw) -> Path:
    root = tmp_path / "ILSVRC"
    for frame in ("000000", "000001"):
        draw(root / "Data" / "VID" / "val" / "snippet_7" / f"{frame}.JPEG")
    flags = "<trackid>0</trackid><occluded>1</occluded><generated>{}</generated>"
    annotations = root / "Annotations" / "VID" / "val" / "snippet_7"
    write(annotations / "000000.xml", xml(xml_object("n02084071", 0, 2, 12, 8, flags.format(0))))
    write(annotations / "000001.xml", xml(xml_object("n02084071", 1, 2, 15, 8, flags.format(1))))
    return root


def test_frames_of_imagenet_vid_know_their_sequence_and_what_a_tracker_drew_is_ignored(ilsvrc: Path) -> None:
    images = open_dataset(ilsvrc / "Data" / "VID" / "val", kind="imagenet-vid")
    truths = images.truths
    assert truths is not None
    assert images.classes is not None
    assert images.classes.wnids == ("n02084071",)
    facts = [{"sequence": "snippet_7", "frame": n, "width": 12, "height": 8} for n in (0, 1)]
    assert [sample.facts for sample in images.samples] == facts
    assert truths.boxes.tolist() == [[0, 2, 12, 8], [1, 2, 12, 8]]
    assert truths.ignored.tolist() == [False, True]


def test_the_localization_set_is_found_beside_its_images_or_where_it_is_said_to_be(ilsvrc: Path, draw: Draw) -> None:
    beside = open_dataset(ilsvrc / "Data" / "VID" / "val", kind="ilsvrc-loc")
    assert beside.samples[0].facts == {"width": 12, "height": 8}
    sorted_into_classes = ilsvrc.parent / "sorted"
    draw(sorted_into_classes / "n02084071" / "000001.JPEG")
    said = open_dataset(sorted_into_classes, kind="ilsvrc-loc", annotations=ilsvrc / "Annotations" / "VID")
    assert said.truths is not None
    assert said.truths.boxes.tolist() == [[1, 2, 12, 8]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<annotation><object>", r"a\.xml is not XML"),
        ("", r"a\.xml is not XML"),
        ("<annotation><object><name>cat</name></object></annotation>", "object 1: expected a name and a bndbox"),
        (xml(xml_object("cat", 1, 1, float("inf"), 2)), "object 1: a box should be four finite numbers"),
        (xml(xml_object("cat", 1, 1, 3, 2)).replace("<xmax>3", "<xmax>right"), "four numbers"),
        ('<!DOCTYPE a [<!ENTITY b "bb">]><annotation>&b;</annotation>', "declares a document type"),
    ],
)
def test_malformed_or_dangerous_xml_is_told_in_one_sentence(text: str, message: str, tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "a.jpg")
    write(tmp_path / "a.xml", text)
    with pytest.raises(BadInput, match=message):
        open_dataset(tmp_path, kind="voc")


def test_entities_are_refused_before_they_grow() -> None:
    layers = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    bomb = f'<!DOCTYPE a [<!ENTITY e0 "ha">{layers}]><a>&e11;</a>'
    with pytest.raises(BadInput, match="declares a document type"):
        parse_xml(bomb.encode(), "bomb.xml")


def test_images_without_any_annotation_are_told(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "a.jpg")
    with pytest.raises(BadInput, match=r"none of the 1 images .* has an \.xml file"):
        open_dataset(tmp_path, kind="voc")
    with pytest.raises(BadInput, match=r"none of the 1 images .* has a \.txt file"):
        open_dataset(tmp_path, kind="yolo")


def test_lines_of_yolo_are_centres_and_sizes_in_shares_of_the_image(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "images" / "a.png", height=100, width=200)
    draw(tmp_path / "images" / "b.png")
    write(tmp_path / "labels" / "a.txt", "1 0.5 0.5 0.25 0.1\n\n0 0.05 0.5 0.2 1.0\n")
    write(tmp_path / "classes.txt", "cat\ndog\n")
    images = open_dataset(tmp_path)
    truths = images.truths
    assert truths is not None
    assert images.classes == Classes(("cat", "dog"))
    assert truths.classes.tolist() == [1, 0]
    assert truths.boxes == pytest.approx(np.array([[75, 45, 125, 55], [0, 0, 30, 100]]))
    assert [sample.labels for sample in images.samples] == [(0, 1), ()]
    assert images.notes == ("1 of 2 boxes reach beyond their image and were clipped",)


def test_classes_of_yolo_without_names_are_numbers(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "images" / "val" / "a.png")
    write(tmp_path / "labels" / "val" / "a.txt", "2 0.5 0.5 0.5 0.5\n")
    images = open_dataset(tmp_path / "images" / "val", kind="yolo")
    assert images.classes == Classes(("0", "1", "2"))
    names = write(tmp_path / "own.txt", "a\nb\n")
    with pytest.raises(BadInput, match="use class 2, but only 2 classes are named, counted from 0"):
        open_dataset(tmp_path / "images" / "val", kind="yolo", names=names)


def test_boxes_of_yolo_stand_on_the_upright_photo(tmp_path: Path) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = 6
    (tmp_path / "images").mkdir()
    Pillow.new("RGB", (40, 20)).save(tmp_path / "images" / "a.jpg", exif=exif)
    write(tmp_path / "labels" / "a.txt", "0 0.5 0.5 1 1\n")
    images = open_dataset(tmp_path)
    source = images.source(images.samples[0])
    height, width = source.decode(source.read()).shape[:2]
    assert (width, height) == (20, 40) == upright_size(str(tmp_path / "images" / "a.jpg"))
    assert images.truths is not None
    assert images.truths.boxes.tolist() == [[0, 0, width, height]]


def test_an_unreadable_image_of_yolo_stays_without_boxes_and_is_told(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "images" / "a.png")
    write(tmp_path / "images" / "b.png", "no image")
    for name in ("a", "b"):
        write(tmp_path / "labels" / f"{name}.txt", "0 0.5 0.5 0.5 0.5\n")
    images = open_dataset(tmp_path)
    assert [len(sample.labels) for sample in images.samples] == [1, 0]
    assert images.notes == ("1 images cannot be read and have no boxes: b.png",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 0.5 0.5 0.5", "line 1: expected a class number and four shares"),
        ("cat 0.5 0.5 0.5 0.5", "line 1: expected a class number"),
        ("0 0.5 0.5 half 0.5", "line 1: a box should be four numbers"),
        ("0 50 40 20 30", "should be shares of the image between 0 and 1"),
    ],
)
def test_malformed_lines_of_yolo_are_told_in_one_sentence(line: str, message: str, tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "images" / "a.png")
    write(tmp_path / "labels" / "a.txt", line)
    with pytest.raises(BadInput, match=message):
        open_dataset(tmp_path)


def test_one_set_written_in_three_formats_has_the_same_objects(tmp_path: Path, draw: Draw) -> None:
    rng = np.random.default_rng(2)
    lefts, tops = rng.integers(0, 20, (2, 8))
    widths, heights = rng.integers(1, 12, (2, 8))
    draw(tmp_path / "images" / "a.png", height=32, width=64)
    boxes = list(zip(lefts.tolist(), tops.tolist(), widths.tolist(), heights.tolist(), strict=True))
    keys = ["cat", "dog"] * 4
    numbers = {"cat": 3, "dog": 18}
    listed = [{"id": 4, "file_name": "a.png", "width": 64, "height": 32}]
    annotations = [box(4, numbers[key], *corners) for key, corners in zip(keys, boxes, strict=True)]
    in_json = open_dataset(write_coco(tmp_path / "boxes.json", annotations, images=listed))
    objects = [xml_object(k, x + 1, y + 1, x + w, y + h) for k, (x, y, w, h) in zip(keys, boxes, strict=True)]
    write(tmp_path / "xml" / "a.xml", xml(*objects, width=64, height=32))
    in_xml = open_dataset(tmp_path / "images", kind="voc", annotations=tmp_path / "xml")
    lines = [
        f"{k == 'dog':d} {(x + w / 2) / 64} {(y + h / 2) / 32} {w / 64} {h / 32}"
        for k, (x, y, w, h) in zip(keys, boxes, strict=True)
    ]
    write(tmp_path / "labels" / "a.txt", "\n".join(lines))
    in_text = open_dataset(tmp_path, kind="yolo", classes=["cat", "dog"])
    for other in (in_xml, in_text):
        assert in_json.truths is not None
        assert other.truths is not None
        assert np.allclose(other.truths.boxes, in_json.truths.boxes)
        assert other.truths.classes.tolist() == in_json.truths.classes.tolist()
        assert other.classes == in_json.classes


def test_a_set_without_any_object_has_empty_truths_and_no_classes(tmp_path: Path) -> None:
    images = boxed_list([BoxedImage("a.png")], FilesBelow(str(tmp_path)), name="none", classes=Classes(()), places={})
    assert images.classes is None
    assert images.truths is not None
    assert images.truths.boxes.shape == (0, 4)


def test_boxes_of_an_image_of_unknown_size_are_cut_only_on_the_left_and_at_the_top(tmp_path: Path) -> None:
    boxed = [BoxedImage("a.png", [Object("cat", (-5, -5, 1e6, 1e6))])]
    images = boxed_list(boxed, FilesBelow(str(tmp_path)), name="one", classes=Classes(("cat",)), places={"cat": 0})
    assert images.truths is not None
    assert images.truths.boxes.tolist() == [[0, 0, 1e6, 1e6]]
