"""Arrays: rows of .npy files as images, the layout of CIFAR-10-C among them."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets import open_dataset
from shiftproof.datasets.arrays import CIFAR10
from shiftproof.errors import BadInput


def _pixels(images: int, *shape: int) -> NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (images, *shape), np.uint8)


def test_the_layout_of_cifar_10_c_has_five_severities_in_order(tmp_path: Path) -> None:
    fog, snow = _pixels(20, 8, 8, 3), _pixels(20, 8, 8, 3)
    np.save(tmp_path / "fog.npy", fog)
    np.save(tmp_path / "snow.npy", snow)
    np.save(tmp_path / "labels.npy", np.tile([3, 1, 0, 2], 5))
    images = open_dataset(tmp_path)
    assert len(images.samples) == 40
    by_id = {sample.id: sample for sample in images.samples}
    third = by_id["fog/3/00001"]
    assert third.facts == {"corruption": "fog", "severity": 3}
    assert third.labels == (1,)
    source = images.source(third)
    assert np.array_equal(source.decode(source.read()), fog[2 * 4 + 1])
    assert [by_id[f"snow/{severity}/00000"].facts["severity"] for severity in range(1, 6)] == [1, 2, 3, 4, 5]


def test_labels_of_one_severity_serve_all_five(tmp_path: Path) -> None:
    np.save(tmp_path / "fog.npy", _pixels(10, 4, 4, 3))
    np.save(tmp_path / "labels.npy", np.array([1, 0]))
    assert [sample.labels[0] for sample in open_dataset(tmp_path / "fog.npy").samples] == [1, 0] * 5


def test_the_published_files_get_the_names_of_cifar_10(tmp_path: Path) -> None:
    with open(tmp_path / "fog.npy", "wb") as file:  # a sparse file of the published shape
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (50_000, 32, 32, 3)})
        os.truncate(tmp_path / "fog.npy", 128 + 50_000 * 32 * 32 * 3)
    np.save(tmp_path / "labels.npy", np.tile(np.arange(10), 5000))
    images = open_dataset(tmp_path)
    assert images.classes == CIFAR10
    assert images.samples[-1].id == "fog/5/09999"


def test_one_array_takes_its_labels_from_the_file_beside_it_or_as_given(tmp_path: Path) -> None:
    np.save(tmp_path / "photos.npy", _pixels(4, 5, 7, 3))
    assert open_dataset(tmp_path / "photos.npy").classes is None
    given = open_dataset(tmp_path / "photos.npy", labels=[1, 0, 0, 2], classes=["a", "b", "c"])
    assert [sample.labels for sample in given.samples] == [(1,), (0,), (0,), (2,)]
    np.save(tmp_path / "other.npy", np.array([0, 0, 1, -1]))
    from_file = open_dataset(tmp_path / "photos.npy", labels=tmp_path / "other.npy")
    assert [sample.labels for sample in from_file.samples] == [(0,), (0,), (1,), ()]
    assert open_dataset(from_file.ref.location or "").ref == from_file.ref
    np.save(tmp_path / "photos_labels.npy", np.array([[2], [2], [0], [1]]))
    beside = open_dataset(tmp_path / "photos.npy", classes=["x", "y", "z"])
    assert [sample.labels for sample in beside.samples] == [(2,), (2,), (0,), (1,)]
    assert [sample.id for sample in beside.samples][:2] == ["photos/00000", "photos/00001"]


@pytest.mark.parametrize("shape", [(6, 9, 3), (3, 6, 9), (6, 9), (6, 9, 1), (1, 6, 9)])
def test_grey_and_channels_first_rows_become_rgb(shape: tuple[int, ...], tmp_path: Path) -> None:
    array = _pixels(2, *shape)
    np.save(tmp_path / "a.npy", array)
    images = open_dataset(tmp_path / "a.npy")
    source = pickle.loads(pickle.dumps(images.source(images.samples[1])))
    decoded = source.decode(source.read())
    assert decoded.shape == (6, 9, 3)
    row = array[1].transpose(1, 2, 0) if shape in ((3, 6, 9), (1, 6, 9)) else array[1].reshape(6, 9, -1)
    assert np.array_equal(decoded, np.broadcast_to(row, (6, 9, 3)))


def test_a_row_is_read_anew_when_the_file_changes(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 3, 3), np.uint8))
    images = open_dataset(tmp_path / "a.npy")
    source = images.source(images.samples[0])
    before = source.read(), source.stamp()
    os.utime(tmp_path / "a.npy", (1, 1))
    np.save(tmp_path / "a.npy", np.ones((2, 3, 3, 3), np.uint8))
    assert source.read() != before[0]
    assert source.stamp() != before[1]


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.zeros((2, 4, 4, 3), np.float32), "should hold uint8 pixels from 0 to 255, got float32"),
        (np.zeros((2, 4, 4, 7), np.uint8), r"got shape \(2, 4, 4, 7\)"),
        (np.array([{"a": 1}], object), "cannot be read as an array"),
    ],
)
def test_arrays_that_are_no_images_are_refused(array: NDArray[np.generic], says: str, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(BadInput, match=says):
        open_dataset(tmp_path / "a.npy")


def test_counts_that_do_not_meet_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", _pixels(4, 4, 4, 3))
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2]))
    with pytest.raises(BadInput, match=r"has 4 images but .* has 3 labels"):
        open_dataset(tmp_path / "a.npy")
    np.save(tmp_path / "labels.npy", np.array([0, 1, 2, 9]))
    with pytest.raises(BadInput, match="labels go up to 9 but only 2 classes are named"):
        open_dataset(tmp_path / "a.npy", classes=["a", "b"])
    np.save(tmp_path / "labels.npy", np.array([0.5, 1, 2, 9]))
    with pytest.raises(BadInput, match="one whole number an image"):
        open_dataset(tmp_path / "a.npy")
    (tmp_path / "fog.npy").write_bytes(b"\x93NUMPY nonsense")
    with pytest.raises(BadInput, match="cannot be read as an array"):
        open_dataset(tmp_path / "fog.npy")


def test_minus_one_beside_an_array_is_an_image_without_a_label(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.zeros((3, 8, 8, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.array([1, -1, 0]))
    assert [sample.labels for sample in open_dataset(tmp_path / "rows.npy").samples] == [(1,), (), (0,)]
    np.save(tmp_path / "labels.npy", np.array([1, -2, 0]))
    with pytest.raises(BadInput, match="-1 for an unlabelled image, got -2"):
        open_dataset(tmp_path / "rows.npy")


def test_rows_keep_ids_of_their_own_whatever_a_record_says(tmp_path: Path) -> None:
    np.save(tmp_path / "fog.npy", _pixels(10, 4, 4, 3))
    record = {"shiftproof": "1", "layout": "cifar-c", "source": {"images": 2}, "images": ["../a.png", "../a.png"]}
    (tmp_path / "manifest.json").write_text(json.dumps(record))
    assert len({sample.id for sample in open_dataset(tmp_path).samples}) == 10
