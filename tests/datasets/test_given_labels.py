"""Labels that come from elsewhere, and locations that spell everything out."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput, UnknownName
from shiftproof.reference import ilsvrc_classes

Draw = Callable[..., Path]


@pytest.fixture
def validation(tmp_path: Path, draw: Draw) -> Path:
    draw(tmp_path / "val" / "n01440764" / "ILSVRC2012_val_00000003.JPEG")
    draw(tmp_path / "val" / "n01443537" / "ILSVRC2012_val_00000001.JPEG")
    draw(tmp_path / "val" / "n01443537" / "ILSVRC2012_val_00000002.JPEG")
    return tmp_path / "val"


def _json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


def test_real_labels_replace_those_of_the_folders(validation: Path, tmp_path: Path) -> None:
    real = _json(tmp_path / "real.json", [[970, 795], [], [0]])
    images = open_dataset(validation, labels=real)
    assert {sample.id[-9:-5]: sample.labels for sample in images.samples} == {"0003": (0,), "0001": (970, 795), "0002": ()}
    assert images.classes == ilsvrc_classes()
    assert images.ref != open_dataset(validation).ref
    assert images.ref.location == f"{validation}?labels={real}"
    assert open_dataset(images.ref.location).ref == images.ref


def test_real_labels_for_images_that_are_not_validation_images_are_refused(validation: Path, tmp_path: Path) -> None:
    real = _json(tmp_path / "real.json", [[970], []])
    with pytest.raises(BadInput, match="labels for ILSVRC2012_val_00000001 to 00000002, but 1 images have no such name"):
        open_dataset(validation, labels=real)


def test_real_labels_are_refused_where_one_image_has_no_number(validation: Path, tmp_path: Path, draw: Draw) -> None:
    draw(validation / "n01443537" / "stranger.JPEG")
    real = _json(tmp_path / "real.json", [[970], [], [0]])
    with pytest.raises(BadInput, match="1 images have no such name: n01443537/stranger"):
        open_dataset(validation, labels=real)


def test_labels_by_name_in_json_or_text(validation: Path, tmp_path: Path) -> None:
    by_name = _json(tmp_path / "labels.json", {"ILSVRC2012_val_00000001.JPEG": ["cat", "dog"], "other.jpg": "eel"})
    images = open_dataset(validation, labels=by_name)
    assert [sample.labels for sample in images.samples] == [(), (0, 1), ()]
    caffe = tmp_path / "val.txt"
    caffe.write_text("ILSVRC2012_val_00000002.JPEG 65\nILSVRC2012_val_00000001.JPEG 970\nILSVRC2012_val_00000003.JPEG 230\n")
    images = open_dataset(validation, labels=caffe, classes="ilsvrc2012")
    assert [sample.labels for sample in images.samples] == [(230,), (970,), (65,)]
    with pytest.raises(BadInput, match="names none of these images; it should use their ids, such as n01440764/"):
        open_dataset(validation, labels=_json(tmp_path / "labels.json", {"x.jpg": 1}))


def test_labels_in_the_order_of_the_ids(validation: Path, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("n02084071\nn02084071\nn01440764\n")
    images = open_dataset(validation, labels=tmp_path / "labels.txt")
    assert images.classes is not None
    assert images.classes.wnids == ("n01440764", "n02084071")
    assert [sample.labels for sample in images.samples] == [(1,), (1,), (0,)]
    given = open_dataset(validation, labels=[2, None, [0, 1]], classes=["a", "b", "c"])
    assert [sample.labels for sample in given.samples] == [(2,), (), (0, 1)]
    with pytest.raises(BadInput, match="3 images but 2 labels in the labels given"):
        open_dataset(validation, labels=[1, 2])


def test_labels_can_be_dropped_or_be_one_for_all(validation: Path) -> None:
    bare = open_dataset(validation, labels="none")
    assert bare.classes is None
    assert not any(sample.labels for sample in bare.samples)
    assert open_dataset(bare.ref.location or "").ref == bare.ref
    one = open_dataset(validation, label="n01514668")
    assert one.classes is not None
    assert one.classes.names == ("cock",)
    assert {sample.labels for sample in one.samples} == {(0,)}
    among = open_dataset(validation, label="cock", classes="ilsvrc2012")
    assert {sample.labels for sample in among.samples} == {(7,)}


def test_label_files_of_other_kinds_are_refused(validation: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"\.json, \.txt or \.npy file, got labels\.xls"):
        open_dataset(validation, labels="labels.xls")
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        open_dataset(validation, labels=tmp_path / "missing.txt")
    (tmp_path / "broken.json").write_text("[[")
    with pytest.raises(BadInput, match="is not JSON"):
        open_dataset(validation, labels=tmp_path / "broken.json")


def test_a_location_may_name_its_kind_and_options(validation: Path) -> None:
    spelled = open_dataset(f"folder:{validation}?labels=none&name=bare")
    assert spelled.classes is None
    assert spelled.ref.name == "bare"
    assert open_dataset(f"folder:{validation}").ref.fingerprint == open_dataset(validation).ref.fingerprint


def test_a_folder_with_a_question_mark_or_colon_in_its_name_opens_as_it_is(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "folder:what?a=1" / "cat" / "a.png")
    images = open_dataset(tmp_path / "folder:what?a=1", labels="none")
    assert open_dataset(images.ref.location or "").ref == images.ref


def test_unknown_kinds_and_options_are_named(validation: Path) -> None:
    with pytest.raises(UnknownName, match="no dataset called 'foldr'; did you mean folder"):
        open_dataset(validation, kind="foldr")
    with pytest.raises(BadInput, match="datasets of kind 'folder' have no option 'list_file'"):
        open_dataset(validation, list_file="x.txt")


@pytest.mark.real
def test_the_published_real_labels_are_read_in_the_order_of_the_numbers(real_data: Path, tmp_path: Path, draw: Draw) -> None:
    path = real_data / "lists" / "imagenet_real_labels.json"
    published = json.loads(path.read_text())
    for number in (1, 2, 3, 25_000, 50_000):
        draw(tmp_path / "val" / f"ILSVRC2012_val_{number:08d}.JPEG")
    images = open_dataset(tmp_path / "val", labels=path)
    assert [list(sample.labels) for sample in images.samples] == [published[n - 1] for n in (1, 2, 3, 25_000, 50_000)]


@pytest.mark.parametrize("missing", [-1, None, "", float("nan"), np.float32("nan"), []])
def test_an_image_without_a_label_is_said_in_many_ways(validation: Path, missing: object) -> None:
    images = open_dataset(validation, labels=[2, missing, 1.0])
    assert [sample.labels for sample in images.samples] == [(2,), (), (1,)]
    assert images.classes is not None
    assert images.classes.names == ("0", "1", "2")


def test_labels_that_are_all_missing_leave_no_classes(validation: Path) -> None:
    assert open_dataset(validation, labels=[-1, -1, -1]).classes is None


def test_a_label_said_twice_is_one_label(validation: Path) -> None:
    images = open_dataset(validation, labels=[["cat", "cat"], ["dog"], ["cat", "dog"]])
    assert [sample.labels for sample in images.samples] == [(0,), (1,), (0, 1)]


@pytest.mark.parametrize("labels", [np.zeros((3, 2), int), np.zeros(3), np.zeros((2, 2), int)])
def test_an_array_of_labels_holds_one_whole_number_an_image(
    validation: Path, tmp_path: Path, labels: NDArray[np.generic]
) -> None:
    np.save(tmp_path / "labels.npy", labels)
    with pytest.raises(BadInput, match="one whole number an image"):
        open_dataset(validation, labels=tmp_path / "labels.npy")


def test_an_array_of_labels_may_be_a_column(validation: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "labels.npy", np.array([[2], [-1], [0]]))
    assert [sample.labels for sample in open_dataset(validation, labels=tmp_path / "labels.npy").samples] == [(2,), (), (0,)]
