"""Perturbation sequences as datasets: the videos of ImageNet-P and the arrays of CIFAR-10-P."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.published.imagenet import clean_id
from shiftproof.datasets.published.known import check_published
from shiftproof.datasets.video.video_files import frames_in, to_video
from shiftproof.errors import BadInput, MissingExtra, UnreadableImage
from shiftproof.types import Sample

Film = Callable[..., Path]


def moving(frames: int, size: int = 32) -> NDArray[np.uint8]:
    """A bright square that moves a pixel a frame over a slope."""
    film = np.empty((frames, size, size, 3), np.uint8)
    film[:] = np.arange(size)[None, :, None, None] * 4
    for place, frame in enumerate(film):
        frame[8:20, place : place + 12] = (230, 200, 40)
    return film


@pytest.fixture
def film() -> Film:
    """A small video at a path, its folders made as needed."""

    def filmed(path: Path, *, frames: int = 5) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(to_video(moving(frames), "smoothed"))
        return path

    return filmed


def pixels(images: ImageList, sample: Sample) -> NDArray[np.uint8]:
    source = images.source(sample)
    return source.decode(source.read())


def test_every_frame_is_an_image_with_its_sequence_level_and_label(film: Film, tmp_path: Path) -> None:
    film(tmp_path / "tilt" / "n01440764" / "val_1.mp4")
    film(tmp_path / "tilt" / "n01443537" / "val_2.mp4", frames=3)
    film(tmp_path / "gaussian_noise_2" / "n01440764" / "val_1.mp4", frames=2)
    images = open_dataset(tmp_path)
    assert [sample.id for sample in images.samples] == [
        "gaussian_noise_2/n01440764/val_1.mp4/00",
        "gaussian_noise_2/n01440764/val_1.mp4/01",
        *(f"tilt/n01440764/val_1.mp4/0{frame}" for frame in range(5)),
        *(f"tilt/n01443537/val_2.mp4/0{frame}" for frame in range(3)),
    ]
    assert images.samples[1].facts == {
        "perturbation": "gaussian_noise",
        "level": 2,
        "sequence": "n01440764/val_1",
        "frame": 1,
    }
    assert images.samples[-1].facts == {"perturbation": "tilt", "level": 1, "sequence": "n01443537/val_2", "frame": 2}
    assert [sample.labels for sample in images.samples] == [(0,)] * 7 + [(1,)] * 3
    assert images.classes is not None
    assert images.classes.wnids == ("n01440764", "n01443537")
    assert images.published == "imagenet-p"


def test_frames_are_those_that_opencv_reads(film: Film, tmp_path: Path) -> None:
    path = film(tmp_path / "scale" / "n01440764" / "a.mp4")
    images = open_dataset(tmp_path)
    video = cv2.VideoCapture(str(path))
    for sample in images.samples:
        more, frame = video.read()
        assert more
        assert np.array_equal(pixels(images, sample), cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))
    assert not video.read()[0]


@pytest.mark.parametrize("grain", ["kept", "smoothed"])
def test_the_same_frames_become_the_same_bytes(grain: str) -> None:
    noise = np.clip(moving(8) + np.random.default_rng(0).normal(0, 13, (8, 32, 32, 3)), 0, 255).astype(np.uint8)
    first, *others = (to_video(noise, grain) for _ in range(4))  # type: ignore[arg-type]
    assert others == [first] * 3


def test_odd_sizes_become_videos_too() -> None:
    frames = frames_in(to_video(moving(3)[:, :31, :29], "smoothed"))
    assert [frame.shape for frame in frames] == [(31, 29, 3)] * 3


@pytest.mark.parametrize("inner", ["", "noise/"])
def test_groups_and_single_perturbations_are_recognised(inner: str, film: Film, tmp_path: Path) -> None:
    film(tmp_path / f"{inner}shot_noise" / "n01440764" / "a.mp4", frames=2)
    for location in (tmp_path, tmp_path / f"{inner}shot_noise"):
        images = open_dataset(location)
        assert [(s.facts["perturbation"], s.facts["sequence"]) for s in images.samples] == [
            ("shot_noise", "n01440764/a")
        ] * 2
        assert [s.labels for s in images.samples] == [(0,), (0,)]


def test_a_video_is_decoded_once_for_all_its_frames(film: Film, tmp_path: Path) -> None:
    film(tmp_path / "tilt" / "n01440764" / "a.mp4", frames=5)
    film(tmp_path / "tilt" / "n01440764" / "b.mp4", frames=4)
    images = open_dataset(tmp_path)
    frames_in.cache_clear()
    for sample in images.samples:
        pixels(images, sample)
    assert frames_in.cache_info().misses == 2


def test_a_video_that_changes_is_read_anew(film: Film, tmp_path: Path) -> None:
    path = film(tmp_path / "tilt" / "n01440764" / "a.mp4")
    images = open_dataset(tmp_path)
    source = images.source(images.samples[0])
    before = source.read(), source.stamp()
    path.write_bytes(to_video(255 - moving(5), "smoothed"))
    assert (source.read(), source.stamp()) != before
    assert source.decode(source.read()).mean() > 150


def test_broken_videos_keep_an_image_that_is_skipped(film: Film, tmp_path: Path) -> None:
    folder = tmp_path / "tilt" / "n01440764"
    film(folder / "a.mp4", frames=2)
    whole = film(folder / "b.mp4").read_bytes()
    (folder / "b.mp4").write_bytes(whole[: len(whole) // 2])
    (folder / "c.mp4").write_bytes(b"")
    (folder / "d.mp4").write_text("no video")
    images = open_dataset(tmp_path)
    assert [sample.id.removeprefix("tilt/n01440764/") for sample in images.samples] == [
        "a.mp4/00", "a.mp4/01", "b.mp4/00", "c.mp4/00", "d.mp4/00",
    ]  # fmt: skip
    for sample in images.samples[2:]:
        with pytest.raises(UnreadableImage, match="broken video: "):
            pixels(images, sample)
    assert pixels(images, images.samples[1]).shape == (32, 32, 3)


def test_a_sequence_with_a_gap_is_skipped_as_a_whole(film: Film, tmp_path: Path) -> None:
    film(tmp_path / "tilt" / "n01440764" / "a.mp4", frames=5)
    images = open_dataset(tmp_path)
    (tmp_path / "tilt" / "n01440764" / "a.mp4").write_bytes(to_video(moving(3), "smoothed"))
    for sample in images.samples:
        with pytest.raises(UnreadableImage, match="broken video: 3 of 5 frames can be decoded"):
            pixels(images, sample)


def test_a_frame_travels_to_another_process(film: Film, tmp_path: Path) -> None:
    film(tmp_path / "tilt" / "n01440764" / "a.mp4")
    images = open_dataset(tmp_path)
    source = pickle.loads(pickle.dumps(images.source(images.samples[3])))
    assert np.array_equal(source.decode(source.read()), pixels(images, images.samples[3]))


def test_other_videos_are_no_perturbation_sequences(film: Film, tmp_path: Path) -> None:
    film(tmp_path / "holidays" / "beach" / "a.mp4")
    assert "perturbation" not in open_dataset(tmp_path / "holidays").samples[0].facts
    with pytest.raises(BadInput, match=r"should hold perturbation/class folders of \.mp4 files, but has videos in beach"):
        open_dataset(tmp_path / "holidays", kind="imagenet-p")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"but has no \.mp4 files"):
        open_dataset(tmp_path / "empty", kind="imagenet-p")


def test_videos_without_their_library_name_the_extra(film: Film, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film(tmp_path / "tilt" / "n01440764" / "a.mp4")
    monkeypatch.setitem(sys.modules, "av", None)
    for module in ("published.imagenet", "video.video_files"):
        monkeypatch.delitem(sys.modules, f"shiftproof.datasets.{module}", raising=False)
    with pytest.raises(MissingExtra, match=r"dataset 'imagenet-p' needs: pip install 'shiftproof\[video\]'"):
        open_dataset(tmp_path)


def test_a_copy_with_gaps_says_how_many_sequences_it_has(film: Film, tmp_path: Path) -> None:
    film(tmp_path / "tilt" / "n01440764" / "a.mp4")
    images = open_dataset(tmp_path)
    assert check_published(images, "imagenet-p") == [
        "conditions without exactly 50,000 images: tilt 1 (1)",
        "1 of 1,000 classes",
    ]


def test_arrays_with_an_axis_of_frames_are_sequences(tmp_path: Path) -> None:
    tilt = np.random.default_rng(0).integers(0, 256, (3, 4, 8, 8, 3), np.uint8)
    noise = np.random.default_rng(1).integers(0, 256, (3, 2, 8, 8, 3), np.uint8)
    np.save(tmp_path / "tilt.npy", tilt)
    np.save(tmp_path / "shot_noise_3.npy", noise)
    np.save(tmp_path / "labels.npy", np.array([7, 0, 3]))
    images = open_dataset(tmp_path)
    assert len(images.samples) == 3 * 4 + 3 * 2
    by_id = {sample.id: sample for sample in images.samples}
    frame = by_id["shot_noise_3/00002/01"]
    assert frame.facts == {"perturbation": "shot_noise", "level": 3, "sequence": "00002", "frame": 1}
    assert frame.labels == (3,)
    assert np.array_equal(pixels(images, frame), noise[2, 1])
    assert np.array_equal(pixels(images, by_id["tilt/00001/03"]), tilt[1, 3])
    assert "sequences of 2 perturbations" in images.notes
    alone = open_dataset(tmp_path / "tilt.npy")
    assert [sample.labels for sample in alone.samples] == [(7,)] * 4 + [(0,)] * 4 + [(3,)] * 4


def test_the_published_arrays_of_cifar_are_recognised_and_line_up_with_the_clean_images(tmp_path: Path) -> None:
    shapes = {"c": (50_000, 32, 32, 3), "bar": (50_000, 32, 32, 3), "p": (10_000, 16, 32, 32, 3)}
    for (folder, shape), name in zip(shapes.items(), ("fog", "ripple", "translate"), strict=True):
        (tmp_path / folder).mkdir()
        with open(tmp_path / folder / f"{name}.npy", "wb") as file:  # a sparse file of the published shape
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            file.truncate(128 + int(np.prod(shape)))
    np.save(tmp_path / "c" / "labels.npy", np.tile(np.arange(10), 5000))
    corrupted, perturbed = open_dataset(tmp_path / "c"), open_dataset(tmp_path / "p")
    assert open_dataset(tmp_path / "bar").published == "cifar-10-c-bar"
    assert (corrupted.published, perturbed.published) == ("cifar-10-c", "cifar-10-p")
    assert corrupted.notes[0] == "CIFAR-10-C: 50,000 images, 10 classes"
    assert perturbed.notes[0] == "CIFAR-10-P: 160,000 images"
    assert check_published(corrupted, "cifar-10-c") == []
    last = corrupted.samples[-1]
    assert clean_id(last.id, 5) == "09999"
    assert perturbed.samples[-1].facts["sequence"] == "09999"
