"""Folders: one a class, flat files with wnids, unlabelled; and what is said about odd ones."""

from __future__ import annotations

import copy
import os
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import FileImage
from shiftproof.errors import BadInput, ClassMismatch
from shiftproof.types import Dataset

Draw = Callable[..., Path]


def test_a_folder_a_class_is_labelled_by_its_folders(tmp_path: Path, draw: Draw) -> None:
    for name in ("dog/b.png", "cat/z.png", "cat/inner/a.jpg"):
        draw(tmp_path / "pets" / name)
    images = open_dataset(tmp_path / "pets")
    assert isinstance(images, Dataset)
    assert images.classes is not None
    assert images.classes.names == ("cat", "dog")
    assert [(s.id, s.labels) for s in images.samples] == [
        ("cat/inner/a.jpg", (0,)),
        ("cat/z.png", (0,)),
        ("dog/b.png", (1,)),
    ]
    assert images.ref.name == "pets"
    assert images.ref.location == str(tmp_path / "pets")


def test_wnid_folders_get_wnids_and_readable_names(tmp_path: Path, draw: Draw) -> None:
    for wnid in ("n01443537", "n01440764", "n99999999"):
        draw(tmp_path / wnid / "a.png")
    images = open_dataset(tmp_path)
    assert images.classes is not None
    assert images.classes.wnids == ("n01440764", "n01443537", "n99999999")
    assert images.classes.names == ("tench", "goldfish", "n99999999")


def test_flat_files_are_labelled_by_the_wnid_they_begin_with(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "n01443537_goldfish.jpg")
    draw(tmp_path / "n01440764_tench.jpg")
    images = open_dataset(tmp_path)
    assert images.classes is not None
    assert images.classes.names == ("tench", "goldfish")
    assert [sample.labels for sample in images.samples] == [(0,), (1,)]


def test_flat_files_of_which_one_has_no_wnid_are_unlabelled(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "n01443537_goldfish.jpg")
    draw(tmp_path / "tench.jpg")
    images = open_dataset(tmp_path)
    assert images.classes is None
    assert [sample.labels for sample in images.samples] == [(), ()]


def test_numeric_folders_are_numbers_and_not_names_to_sort(tmp_path: Path, draw: Draw) -> None:
    for number in range(11):
        draw(tmp_path / str(number) / "a.png")
    images = open_dataset(tmp_path)
    assert {sample.id: sample.labels[0] for sample in images.samples} == {f"{n}/a.png": n for n in range(11)}


def test_years_with_a_leading_zero_stay_names(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "007" / "a.png")
    draw(tmp_path / "12" / "a.png")
    classes = open_dataset(tmp_path).classes
    assert classes is not None
    assert classes.names == ("007", "12")


def test_a_folder_that_holds_only_the_set_is_stepped_into(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "download" / "test" / "cat" / "a.png")
    draw(tmp_path / "download" / "test" / "dog" / "a.png")
    (tmp_path / "download" / "LICENSE").write_text("free")
    images = open_dataset(tmp_path)
    assert [sample.id for sample in images.samples] == ["cat/a.png", "dog/a.png"]
    assert images.source(images.samples[0]).read()


def test_one_class_folder_alone_is_still_a_class(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "pets" / "cat" / "a.png")
    classes = open_dataset(tmp_path / "pets").classes
    assert classes is not None
    assert classes.names == ("cat",)


def test_training_and_test_folders_are_not_taken_for_classes(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "train" / "cat" / "a.png")
    draw(tmp_path / "val" / "cat" / "a.png")
    with pytest.raises(BadInput, match="holds train, val, which are separate splits; name one"):
        open_dataset(tmp_path)


def test_loose_images_beside_class_folders_are_unlabelled_and_noted(tmp_path: Path, draw: Draw) -> None:
    for name in ("cat/a.png", "dog/a.png", "stray.png"):
        draw(tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    draw(tmp_path / "cat" / "._a.png")
    images = open_dataset(tmp_path)
    assert {sample.id: sample.labels for sample in images.samples} == {"cat/a.png": (0,), "dog/a.png": (1,), "stray.png": ()}
    assert images.notes == (
        "1 of 3 images lie outside the class folders and are unlabelled",
        "folders without images are no classes: empty",
        "files without the ending of an image, ignored: notes.txt",
    )


def test_unicode_and_undecodable_names_are_found_and_read(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "猫" / "žluťoučký 🐈.png")
    undecodable = os.fsencode(tmp_path / "猫") + b"/caf\xe9.png"
    try:
        os.rename(draw(tmp_path / "猫" / "x.png"), undecodable)
    except OSError:
        pytest.skip("this file system takes only valid names")
    images = open_dataset(tmp_path)
    assert len(images.samples) == 2
    for sample in images.samples:
        source = images.source(sample)
        assert source.decode(source.read()).shape == (8, 12, 3)
        assert source.stamp()
    assert len(images.ref.fingerprint) == 32


def test_links_are_followed_but_never_in_a_circle(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "elsewhere" / "a.png")
    draw(tmp_path / "set" / "cat" / "b.png")
    (tmp_path / "set" / "dog").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "set" / "cat" / "up").symlink_to(tmp_path / "set")
    (tmp_path / "elsewhere" / "across").symlink_to(tmp_path / "set" / "dog")
    images = open_dataset(tmp_path / "set")
    assert [sample.id for sample in images.samples] == ["cat/b.png", "dog/a.png"]


def test_the_fingerprint_follows_ids_labels_and_nothing_else(tmp_path: Path, draw: Draw) -> None:
    for root in ("one", "two"):
        draw(tmp_path / root / "cat" / "a.png")
        draw(tmp_path / root / "dog" / "a.png")
    first, second = open_dataset(tmp_path / "one"), open_dataset(tmp_path / "two", name="other")
    assert first.ref.fingerprint == second.ref.fingerprint
    assert open_dataset(tmp_path / "one", label="cat").ref.fingerprint != first.ref.fingerprint
    draw(tmp_path / "two" / "dog" / "b.png")
    assert open_dataset(tmp_path / "two").ref.fingerprint != first.ref.fingerprint


def test_given_classes_fix_the_order_and_may_hold_more(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "cat" / "a.png")
    draw(tmp_path / "Great_Dane" / "a.png")
    images = open_dataset(tmp_path, classes=["great dane", "eel", "cat"])
    assert [sample.labels for sample in images.samples] == [(0,), (2,)]
    assert images.ref.location is None
    with pytest.raises(ClassMismatch, match="1 of 2 labels are not among the 2 classes given: Great_Dane"):
        open_dataset(tmp_path, classes=["cat", "eel"])


def test_an_dataset_and_its_sources_pickle(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "cat" / "a.png")
    images = open_dataset(tmp_path)
    again = pickle.loads(pickle.dumps(images))
    assert again.samples == images.samples
    assert again.source(again.samples[0]).read() == images.source(images.samples[0]).read()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda root: root / "missing", "no such file or folder"),
        (lambda root: root, "no images below"),
        (lambda root: "nowhere://example.org/photos", "no driver is known for nowhere://"),
        (lambda root: _written(root / "a.zip"), "is compressed; unpack it"),
        (lambda root: _written(root / "a.jpg"), "is one image; name the folder"),
        (lambda root: _written(root / "a.docx"), "is no dataset: expected a folder.* .mp4"),
    ],
)
def test_a_location_without_images_gets_one_sentence(make: Callable[[Path], str | Path], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=says) as refusal:
        open_dataset(make(tmp_path))
    assert "\n" not in str(refusal.value)


def _written(path: Path) -> Path:
    path.write_bytes(b"x")
    return path


def test_fifty_thousand_files_are_listed_without_opening_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1000):
        folder = tmp_path / f"n{number:08d}"
        folder.mkdir()
        first, *others = (f"{folder}/ILSVRC2012_val_{number * 50 + image:08d}.JPEG" for image in range(50))
        os.close(os.open(first, os.O_CREAT | os.O_WRONLY))
        for other in others:  # one file under many names, for that many files would take longer than to list them
            os.link(first, other)
    monkeypatch.setattr("builtins.open", _forbidden)
    began = time.process_time()
    images = open_dataset(tmp_path)
    seconds = time.process_time() - began
    assert len(images.samples) == 50_000
    assert seconds < 3, f"listing took {seconds:.1f} s"


def _forbidden(*_: object, **__: object) -> None:
    raise AssertionError("a file was opened")


@pytest.mark.real
def test_the_thousand_photos_cover_all_ilsvrc_classes(real_data: Path) -> None:
    images = open_dataset(real_data / "ilsvrc-sample-1000")
    assert images.classes is not None
    assert len(images.samples) == len(images.classes) == 1000
    assert sorted(sample.labels[0] for sample in images.samples) == list(range(1000))
    assert images.published is None
    assert all(sample.id.startswith(images.classes.keys[sample.labels[0]]) for sample in images.samples)


@pytest.mark.real
def test_the_clothing_photos_open_from_the_folder_above_their_split(real_data: Path) -> None:
    images = open_dataset(real_data / "ood-clothing")
    assert images.classes is not None
    assert len(images.samples) == 372
    assert "pants" in images.classes.names
    source = images.source(images.samples[0])
    assert source.decode(source.read()).shape[2] == 3


@dataclass(frozen=True)
class TurnedFile(FileImage):
    """A kind of file of one's own."""

    turns: int = 0


def test_a_file_arrives_at_a_worker_as_what_it_is() -> None:
    for source in (FileImage("a.png", "1", "0" * 32), TurnedFile("a.png", turns=3)):
        assert pickle.loads(pickle.dumps(source)) == source == copy.copy(source)
