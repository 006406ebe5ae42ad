"""Published sets: recognised by their folders, checked by their counts."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as Pillow

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.image_list import FilesBelow
from shiftproof.datasets.labels import classes_of_wnids
from shiftproof.datasets.layout import published_dataset
from shiftproof.datasets.published.known import check_published, recognised_as, with_recognition
from shiftproof.datasets.published.objectnet import objectnet_groups
from shiftproof.errors import BadInput, UnknownName, UnreadableImage
from shiftproof.reference import ilsvrc_classes, wnids_of
from shiftproof.types import Sample

Draw = Callable[..., Path]


def _listed(class_list: str, images: int, start: str = "") -> ImageList:
    """A set of that many images spread evenly over the classes of a published list."""
    classes = classes_of_wnids(wnids_of(class_list))
    places = [number % len(classes) for number in range(images)]
    samples = [Sample(f"{classes.keys[p]}/{start}{number:08d}.jpg", (p,)) for number, p in enumerate(places)]
    return ImageList("set", samples, classes, FilesBelow("nowhere"))


@pytest.mark.parametrize(
    ("name", "class_list", "images", "start"),
    [
        ("imagenet", "ilsvrc2012_classes", 50_000, "ILSVRC2012_val_"),
        ("imagenet-sketch", "ilsvrc2012_classes", 50_889, "sketch_"),
        ("imagenet-a", "imagenet_a_classes", 7_500, ""),
        ("imagenet-a-plus", "imagenet_a_classes", 3_286, ""),
        ("imagenet-o", "imagenet_o_classes", 2_000, ""),
        ("imagenet-r", "imagenet_r_classes", 30_000, "art_"),
    ],
)
def test_a_whole_copy_is_recognised_and_passes_the_check(name: str, class_list: str, images: int, start: str) -> None:
    whole = _listed(class_list, images, start)
    assert recognised_as(whole) == published_dataset(name)
    assert check_published(whole, name) == []
    assert with_recognition(whole).notes[0].startswith(f"{published_dataset(name).title}: {images:,} images")
    assert with_recognition(whole).notes[0].endswith("as published")


def test_a_copy_with_gaps_says_what_is_missing() -> None:
    gaps = _listed("imagenet_a_classes", 7_412)
    assert with_recognition(gaps).notes == ("looks like ImageNet-A but has 7,412 of 7,500 images",)
    assert with_recognition(gaps).published == "imagenet-a"
    val = _listed("ilsvrc2012_classes", 49_999, "ILSVRC2012_val_")
    assert check_published(val, "imagenet") == [
        "49,999 of 50,000 images",
        "classes without exactly 50 images: n15075141 (49)",
    ]


def test_other_images_in_the_same_folders_are_not_mistaken_for_a_published_set() -> None:
    assert recognised_as(_listed("imagenet_a_classes", 10_000, "ILSVRC2012_val_")) is None
    assert recognised_as(_listed("imagenet_r_classes", 10_000, "ILSVRC2012_val_")) is None
    assert recognised_as(_listed("ilsvrc2012_classes", 1_000, "photo_")) is None
    assert recognised_as(dataclasses.replace(_listed("imagenet_a_classes", 7_500), classes=None)) is None


def test_a_set_that_names_more_classes_than_it_has_images_of_is_still_recognised() -> None:
    plain = _listed("imagenet_a_classes", 7_500)
    keys = ilsvrc_classes().keys
    assert plain.classes is not None
    samples = [dataclasses.replace(s, labels=(keys.index(plain.classes.keys[s.labels[0]]),)) for s in plain.samples]
    among_all = dataclasses.replace(plain, samples=samples, classes=ilsvrc_classes())
    assert recognised_as(among_all) == published_dataset("imagenet-a")
    assert check_published(among_all, "imagenet-a") == []


def test_a_check_names_missing_and_foreign_classes() -> None:
    problems = check_published(_listed("imagenet_r_classes", 7_500), "imagenet-a")
    assert len(problems) == 2
    assert problems[0].startswith("no images of ")
    assert "classes it should not have" in problems[1]
    with pytest.raises(UnknownName, match="did you mean imagenet-a"):
        check_published(_listed("imagenet_a_classes", 1), "imagenet-aa")


def test_imagenet_o_has_facts_instead_of_labels() -> None:
    whole = _listed("imagenet_o_classes", 2_000)
    loose = dataclasses.replace(whole, samples=[*whole.samples[:-1], Sample("stray.jpg")])
    assert with_recognition(loose).samples[-1].facts == {"folder": ""}
    images = with_recognition(whole)
    assert images.classes is None
    assert all(not sample.labels for sample in images.samples)
    assert images.samples[0].facts == {"folder": wnids_of("imagenet_o_classes")[0]}
    assert images.notes[1] == "its images are of no ILSVRC class, so they have no labels"


@pytest.mark.parametrize("below", ["", "noise/"])
def test_imagenet_c_folders_become_facts(below: str, tmp_path: Path, draw: Draw) -> None:
    for corruption in ("gaussian_noise", "shot_noise"):
        for severity in (1, 3):
            draw(tmp_path / f"{below}{corruption}" / str(severity) / "n01440764" / "a.png")
    images = open_dataset(tmp_path)
    assert images.published == "imagenet-c"
    assert images.samples[1].id == f"{below}gaussian_noise/3/n01440764/a.png"
    assert images.samples[1].facts == {"corruption": "gaussian_noise", "severity": 3}
    assert images.samples[1].labels == (0,)


@pytest.mark.parametrize(
    ("corruptions", "published"),
    [
        (("plasma_noise", "sparkles"), "imagenet-c-bar"),
        (("near_focus", "fog_3d"), "imagenet-3dcc"),
        (("fog", "sparkles"), None),
        (("fog", "fog_3d"), None),
        (("lines", "sparkles"), None),
    ],
)
def test_relatives_of_imagenet_c_are_known_by_their_corruptions(
    corruptions: tuple[str, ...], published: str | None, tmp_path: Path, draw: Draw
) -> None:
    for corruption in corruptions:
        draw(tmp_path / corruption / "2" / "n01440764" / "a.png")
    images = open_dataset(tmp_path)
    assert images.published == published
    assert {sample.facts["corruption"] for sample in images.samples} == set(corruptions)
    alone = open_dataset(tmp_path / corruptions[0])
    assert alone.samples[0].facts == {"corruption": corruptions[0], "severity": 2}


def test_one_corruption_of_imagenet_c_takes_its_name_from_its_folder(tmp_path: Path, draw: Draw) -> None:
    for severity in range(1, 6):
        draw(tmp_path / "fog" / str(severity) / "n01440764" / "a.png")
    images = open_dataset(tmp_path / "fog")
    assert {(s.facts["corruption"], s.facts["severity"]) for s in images.samples} == {
        ("fog", level) for level in range(1, 6)
    }
    assert images.samples[0].id == "1/n01440764/a.png"
    with pytest.raises(BadInput, match="should hold corruption/severity/class folders"):
        open_dataset(tmp_path / "fog" / "1", kind="imagenet-c")


def test_numbered_folders_that_are_no_severities_stay_a_folder_set(tmp_path: Path, draw: Draw) -> None:
    for stars in (1, 2, 5):
        draw(tmp_path / "ratings" / str(stars) / "sunny" / "a.png")
    assert [sample.labels for sample in open_dataset(tmp_path / "ratings").samples] == [(1,), (2,), (5,)]
    draw(tmp_path / "mixed" / "cat" / "1" / "sunny" / "a.png")
    draw(tmp_path / "mixed" / "dog" / "a.png")
    classes = open_dataset(tmp_path / "mixed").classes
    assert classes is not None
    assert classes.names == ("cat", "dog")


def test_a_condition_of_imagenet_c_has_fifty_thousand_images() -> None:
    val = _listed("ilsvrc2012_classes", 50_000, "ILSVRC2012_val_")
    samples = [Sample(f"fog/1/{s.id}", s.labels, {"corruption": "fog", "severity": 1}) for s in val.samples]
    assert check_published(dataclasses.replace(val, samples=samples), "imagenet-c") == []
    problems = check_published(dataclasses.replace(val, samples=samples[:-5]), "imagenet-c")
    assert problems == ["conditions without exactly 50,000 images: fog 1 (49,995)"]


def test_two_hundred_classes_in_the_layout_of_imagenet_c_are_tiny_imagenet_c(tmp_path: Path, draw: Draw) -> None:
    picture = draw(tmp_path / "a.png").read_bytes()
    for wnid in ilsvrc_classes().keys[:200]:
        folder = tmp_path / "tiny" / "fog" / "1" / wnid
        folder.mkdir(parents=True)
        (folder / "a.JPEG").write_bytes(picture)
    images = open_dataset(tmp_path / "tiny")
    assert images.published == "tiny-imagenet-c"
    assert check_published(images, "tiny-imagenet-c") == ["conditions without exactly 10,000 images: fog 1 (200)"]


def test_own_classes_in_the_layout_of_imagenet_c_are_welcome_but_not_published(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "fog" / "2" / "cat" / "a.png")
    draw(tmp_path / "fog" / "2" / "dog" / "a.png")
    images = open_dataset(tmp_path)
    assert images.published is None
    assert images.samples[0].facts == {"corruption": "fog", "severity": 2}


def test_the_thousand_numbered_folders_of_imagenet_v2_are_class_numbers(tmp_path: Path, draw: Draw) -> None:
    picture = draw(tmp_path / "v2" / "0" / "a.png").read_bytes()
    for number in range(1, 1000):
        folder = tmp_path / "v2" / str(number)
        folder.mkdir()
        (folder / "a.png").write_bytes(picture)
    images = open_dataset(tmp_path / "v2")
    assert images.classes == ilsvrc_classes()
    assert {sample.id: sample.labels[0] for sample in images.samples}["10/a.png"] == 10
    assert images.notes[0].startswith(
        "looks like ImageNetV2 but has 1,000 of 10,000 images; classes without exactly 10 images: n0"
    )
    with pytest.raises(BadInput, match="folders called 0 to 999, but has images in cat"):
        open_dataset(draw(tmp_path / "pets" / "cat" / "a.png").parent.parent, kind="imagenet-v2")


def test_tiny_imagenet_is_labelled_by_its_annotations(tmp_path: Path, draw: Draw) -> None:
    for number in range(3):
        draw(tmp_path / "tiny" / "val" / "images" / f"val_{number}.JPEG")
    lines = "val_0.JPEG\tn01443537\t0\t0\t5\t5\nval_1.JPEG\tn01440764\t0\t0\t5\t5\n"
    (tmp_path / "tiny" / "val" / "val_annotations.txt").write_text(lines)
    images = open_dataset(tmp_path / "tiny")
    assert [(s.id, s.labels) for s in images.samples] == [
        ("images/val_0.JPEG", (1,)),
        ("images/val_1.JPEG", (0,)),
        ("images/val_2.JPEG", ()),
    ]
    assert images.published == "tiny-imagenet"
    with pytest.raises(BadInput, match=r"has no val_annotations\.txt"):
        open_dataset(tmp_path / "tiny" / "val" / "images", kind="tiny-imagenet")


@pytest.fixture
def objectnet(tmp_path: Path) -> Path:
    root = tmp_path / "objectnet-1.0"
    for folder in ("air_freshener", "alarm_clock"):
        (root / "images" / folder).mkdir(parents=True)
        framed = np.full((10, 14, 3), (255, 0, 0), np.uint8)
        framed[2:-2, 2:-2] = 7
        Pillow.fromarray(framed).save(root / "images" / folder / "a.png")
    (root / "mappings").mkdir()
    names = {"air_freshener": "Air freshener", "alarm_clock": "Alarm clock"}
    (root / "mappings" / "folder_to_objectnet_label.json").write_text(json.dumps(names))
    groups = {"Alarm clock": "analog clock; digital clock"}
    (root / "mappings" / "objectnet_to_imagenet_1k.json").write_text(json.dumps(groups))
    return root


def test_an_image_that_is_all_frame_cannot_be_read(objectnet: Path) -> None:
    images = open_dataset(objectnet, border=5)
    source = images.source(images.samples[0])
    with pytest.raises(UnreadableImage, match="14 x 10 pixels: nothing is left within the border"):
        source.decode(source.read())
    with pytest.raises(BadInput, match="border should be a number of pixels"):
        open_dataset(objectnet, border="wide")


def test_objectnet_has_its_names_its_groups_and_no_red_frame(objectnet: Path) -> None:
    for location in (objectnet, objectnet / "images"):
        images = open_dataset(location)
        assert images.classes is not None
        assert images.classes.names == ("Air freshener", "Alarm clock")
        assert images.published == "objectnet"
        source = images.source(images.samples[0])
        assert source.decode(source.read()).shape == (6, 10, 3)
        assert (source.decode(source.read()) == 7).all()
        assert objectnet_groups(str(location)) == {"Alarm clock": ["n02708093", "n03196217"]}
    whole = open_dataset(objectnet, border=0)
    source = whole.source(whole.samples[0])
    assert source.decode(source.read()).shape == (10, 14, 3)
    assert open_dataset(whole.ref.location or "").source(whole.samples[0]) == source


def test_imagenet_ood_is_its_list_over_a_larger_folder(tmp_path: Path, draw: Draw) -> None:
    for name in ("n02666943/n02666943_1.JPEG", "n02666943/n02666943_2.JPEG", "n04108822/n04108822_5.JPEG"):
        draw(tmp_path / "21k" / name)
    chosen = tmp_path / "imagenetood.txt"
    chosen.write_text("n04108822/n04108822_5.JPEG\nn02666943/n02666943_2.JPEG\nn04108822/n04108822_9.JPEG\n")
    images = open_dataset(tmp_path / "21k", kind="imagenet-ood", list_file=chosen)
    assert [sample.id for sample in images.samples] == [
        "n02666943/n02666943_2.JPEG",
        "n04108822/n04108822_5.JPEG",
        "n04108822/n04108822_9.JPEG",
    ]
    assert images.classes is None
    assert images.samples[0].facts == {"folder": "n02666943"}
    assert "1 of 3 listed images are not there, such as n04108822/n04108822_9.JPEG" in images.notes
    assert images.ref.location == f"imagenet-ood:{tmp_path}/21k?list_file={chosen}"
    assert open_dataset(images.ref.location).ref == images.ref


@pytest.mark.parametrize("folder", ["", "test/", "images/"])
def test_openimage_o_is_found_wherever_its_images_lie(folder: str, tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / f"{folder}aa.jpg")
    draw(tmp_path / f"{folder}bb.jpg")
    (tmp_path / "openimage_o.txt").write_text("openimage_o/images/bb.jpg -1\n")
    images = open_dataset(tmp_path, kind="openimage-o")
    assert [sample.id for sample in images.samples] == [f"{folder}bb.jpg"]
    assert images.published == "openimage-o"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("../../etc/passwd\n", "should list paths below the folder"),
        ("", "has 'no lines'"),
        ("x/y.jpg\n", "none of the 1 listed"),
    ],
)
def test_a_bad_list_gets_one_sentence(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(BadInput, match=says):
        open_dataset(tmp_path, kind="imagenet-ood", list_file=tmp_path / "list.txt")
    with pytest.raises(BadInput, match=r"no list of images at .*; give the published list"):
        open_dataset(tmp_path, kind="imagenet-ood")


@pytest.mark.real
def test_the_published_list_of_imagenet_ood_has_the_counts_we_state(real_data: Path) -> None:
    lines = (real_data / "lists" / "imagenetood.txt").read_text().split()
    known = published_dataset("imagenet-ood")
    assert len(lines) == known.images
    assert len({line.partition("/")[0] for line in lines}) == known.classes
