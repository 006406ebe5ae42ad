"""Written sets: the published layouts, the same bytes however they are made, and nothing lost when a run is stopped."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import io
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

import shiftproof as sp
from forked_command import Forking, forking
from patience import wait_until
from shiftproof.corruptions import apply as applying
from shiftproof.corruptions.editions import edition_of
from shiftproof.corruptions.frost_pictures import frost_pictures
from shiftproof.corruptions.sequences import perturb
from shiftproof.datasets import ImageList
from shiftproof.datasets.image_list import StoredImage
from shiftproof.datasets.published.imagenet import clean_id
from shiftproof.errors import BadInput, MissingExtra, StoreError, UnknownName
from shiftproof.runs.workers import Workers
from shiftproof.types import Classes, Condition, Sample
from shiftproof.writing import write_corrupted, write_perturbed, writer
from shiftproof.writing.image_files import file_places
from shiftproof.writing.writer import SCRATCH

Draw = Callable[..., Path]
QUICK: dict[str, Any] = {"corruptions": ["gaussian_noise", "contrast"], "severities": (1, 4), "edition": "tiny-64"}


def files_in(folder: Path) -> dict[str, str]:
    """A digest of every file a reader sees."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and SCRATCH not in path.parts)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def pixels(images: ImageList, sample: Sample) -> NDArray[np.uint8]:
    source = images.source(sample)
    return source.decode(source.read())


class NeverOpened(StoredImage):
    """An image that fails the test when anybody reads it."""

    def stamp(self) -> None: ...

    def read(self) -> bytes:
        raise AssertionError("an image was opened")

    def decode(self, data: bytes, *, decoder: str = "pillow") -> NDArray[np.uint8]:
        raise AssertionError("an image was decoded")


def listed(ids: Sequence[str], *, labels: Sequence[tuple[int, ...]], classes: Classes | None) -> ImageList:
    samples = [Sample(image_id, label) for image_id, label in zip(ids, labels, strict=True)]
    return ImageList("listed", samples, classes, lambda _: NeverOpened())


# ------------------------------------------------------------------------------------------- what is written


@pytest.mark.parametrize("edition", ["imagenet-224", "cifar-32"])
def test_a_written_file_is_the_published_save_and_decodes_to_jpeg85(edition: str, draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(2))
    corruptions = ["gaussian_noise", "brightness", "jpeg_compression"]
    write_corrupted(images, tmp_path / "c", corruptions=corruptions, severities=[2, 5], edition=edition)
    sample = images.samples[3]
    assert sample.id == "green/001.png"
    picture = np.ascontiguousarray(edition_of(edition).picture(pixels(images, sample)))
    for name in corruptions:
        for severity in (2, 5):
            file = tmp_path / "c" / name / str(severity) / "green" / "001.JPEG"
            condition = Condition(name, severity, edition=edition, picture=edition)
            raw = applying.apply(condition, picture, key=sample.id)
            saved = io.BytesIO()
            Pillow.fromarray(raw).save(saved, "JPEG", quality=85, optimize=True)
            assert file.read_bytes() == saved.getvalue()
            lossy = applying.apply(dataclasses.replace(condition, output="jpeg85"), picture, key=sample.id)
            assert np.array_equal(np.asarray(Pillow.open(file)), lossy)


def test_images_as_they_are_keep_their_size_and_scale_the_strengths(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    write_corrupted(
        images, tmp_path / "c", corruptions=["gaussian_blur"], severities=[3], picture="image", scale_severity=True
    )
    file = Pillow.open(tmp_path / "c" / "gaussian_blur" / "3" / "red" / "000.JPEG")
    assert file.size == (32, 24)
    condition = Condition("gaussian_blur", 3, edition="imagenet-224", scale_severity=True, output="jpeg85")
    assert np.array_equal(np.asarray(file), applying.apply(condition, pixels(images, images.samples[2]), key="red/000.png"))


def test_raw_output_is_written_without_loss(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    write_corrupted(images, tmp_path / "c", output="raw", **QUICK)
    written = sp.open_dataset(tmp_path / "c")
    assert len(written.samples) == 3 * 2 * 2
    for sample in written.samples:
        facts = sample.facts
        condition = Condition(str(facts["corruption"]), int(facts["severity"] or 0), edition="tiny-64")
        source = next(one for one in images.samples if one.id == clean_id(sample.id, condition.severity))
        picture = edition_of("tiny-64").picture(pixels(images, source))
        assert np.array_equal(pixels(written, sample), applying.apply(condition, picture, key=source.id))


def test_what_is_read_back_has_the_labels_and_facts_it_was_written_with(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(2))
    write_corrupted(images, tmp_path / "c", **QUICK)
    written = sp.open_dataset(tmp_path / "c")
    assert written.classes == images.classes
    assert written.published is None
    assert written.notes == ("written by shiftproof 0.1.0 from photos: edition tiny-64, output jpeg85, seed 0",)
    labels = {sample.id.removesuffix(".png"): sample.labels for sample in images.samples}
    for sample in written.samples:
        corruption, severity, image = sample.id.split("/", 2)
        assert sample.facts == {"corruption": corruption, "severity": int(severity)}
        assert sample.labels == labels[image.removesuffix(".JPEG")]
    alone = sp.open_dataset(tmp_path / "c" / "contrast")
    assert {sample.facts["corruption"] for sample in alone.samples} == {"contrast"}
    assert alone.notes == written.notes


def test_wnids_are_the_class_folders_of_a_flat_folder(tmp_path: Path) -> None:
    photos = tmp_path / "flat"
    photos.mkdir()
    for name in ("n01440764_tench.png", "n01443537_goldfish.png"):
        Pillow.fromarray(np.full((20, 20, 3), 99, np.uint8)).save(photos / name)
    write_corrupted(sp.open_dataset(photos), tmp_path / "c", corruptions=["contrast"], severities=[1])
    assert sorted(files_in(tmp_path / "c")) == [
        "contrast/1/n01440764/n01440764_tench.JPEG",
        "contrast/1/n01443537/n01443537_goldfish.JPEG",
        "manifest.json",
    ]


def test_arrays_hold_five_severities_in_order_beside_their_labels(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(2))
    write_corrupted(images, tmp_path / "c", corruptions=["contrast", "shot_noise"], edition="cifar-32", layout="cifar-c")
    assert sorted(files_in(tmp_path / "c")) == ["contrast.npy", "labels.npy", "manifest.json", "shot_noise.npy"]
    rows = np.load(tmp_path / "c" / "shot_noise.npy")
    assert (rows.shape, rows.dtype) == ((30, 32, 32, 3), np.uint8)
    assert np.load(tmp_path / "c" / "labels.npy").tolist() == [0, 0, 1, 1, 2, 2] * 5
    for severity in range(1, 6):
        for place, sample in enumerate(images.samples):
            picture = edition_of("cifar-32").picture(pixels(images, sample))
            condition = Condition("shot_noise", severity, edition="cifar-32")
            assert np.array_equal(rows[(severity - 1) * 6 + place], applying.apply(condition, picture, key=sample.id))
    written = sp.open_dataset(tmp_path / "c")
    assert written.classes == images.classes
    assert written.samples[-1].id == "shot_noise/5/red/001.png"
    assert written.samples[-1].facts == {"corruption": "shot_noise", "severity": 5}
    assert pixels(written, written.samples[-1]).tolist() == rows[-1].tolist()


def test_arrays_can_hold_the_lossy_output_too(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    write_corrupted(images, tmp_path / "c", corruptions=["contrast"], edition="cifar-32", layout="cifar-c", output="jpeg85")
    condition = Condition("contrast", 1, edition="cifar-32", output="jpeg85")
    expected = applying.apply(
        condition, edition_of("cifar-32").picture(pixels(images, images.samples[0])), key="blue/000.png"
    )
    assert np.array_equal(np.load(tmp_path / "c" / "contrast.npy")[0], expected)


def test_written_sequences_are_what_perturb_gives(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    names = ["translate", "gaussian_noise"]
    write_perturbed(images, tmp_path / "p", perturbations=names, levels=[1, 3], edition="cifar-32", layout="cifar-p", seed=5)
    stems = {
        "translate": ("translate", 1),
        "gaussian_noise": ("gaussian_noise", 1),
        "gaussian_noise_3": ("gaussian_noise", 3),
    }
    assert sorted(files_in(tmp_path / "p")) == sorted([*(f"{stem}.npy" for stem in stems), "labels.npy", "manifest.json"])
    for stem, (name, level) in stems.items():
        rows = np.load(tmp_path / "p" / f"{stem}.npy")
        for row, sample in zip(rows, images.samples, strict=True):
            assert np.array_equal(
                row, perturb(pixels(images, sample), name, level, seed=5, key=sample.id, edition="cifar-32")
            )
    written = sp.open_dataset(tmp_path / "p")
    assert len(written.samples) == 3 * (16 + 31 + 31)
    assert written.classes == images.classes
    frame = next(sample for sample in written.samples if sample.id == "gaussian_noise_3/red/000.png/30")
    assert frame.facts == {"perturbation": "gaussian_noise", "level": 3, "sequence": "red/000.png", "frame": 30}
    assert frame.labels == (2,)
    expected = perturb(pixels(images, images.samples[2]), "gaussian_noise", 3, seed=5, key="red/000.png", edition="cifar-32")
    assert np.array_equal(pixels(written, frame), expected[30])


def test_written_videos_show_the_frames_of_the_sequence(tmp_path: Path) -> None:
    down, right = np.mgrid[0:80, 0:90]
    photo = np.stack([down * 3, right * 2, np.hypot(down - 40, right - 40) * 4 % 256], axis=2).astype(np.uint8)
    (tmp_path / "photos" / "n01440764").mkdir(parents=True)
    Pillow.fromarray(photo).save(tmp_path / "photos" / "n01440764" / "a.png")
    images = sp.open_dataset(tmp_path / "photos")
    for name, level, least in (("rotate", 1, 40.0), ("gaussian_noise", 2, 32.0)):
        done = write_perturbed(images, tmp_path / name, perturbations=[name], levels=[level], edition="tiny-64", workers=0)
        assert done.written == 1
        stem = name if level == 1 else f"{name}_{level}"
        assert set(files_in(tmp_path / name)) == {"manifest.json", f"{stem}/n01440764/a.mp4"}
        written = sp.open_dataset(tmp_path / name)
        frames = perturb(photo, name, level, key="n01440764/a.png", edition="tiny-64").astype(float)
        assert [sample.facts["frame"] for sample in written.samples] == list(range(31))
        for sample, frame in zip(written.samples, frames, strict=True):
            error = np.mean((pixels(written, sample) - frame) ** 2)
            assert 10 * np.log10(255**2 / error) > least, "peak signal to noise in decibels"


# ------------------------------------------------------------------------------------- however it is made


@pytest.fixture(scope="module")
def same_workers() -> Iterator[None]:
    """Processes that serve several tests: to start them takes longer than what they do."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        pools = {count: stack.enter_context(Workers(count)) for count in (1, 2)}
        patch.setattr(writer, "Workers", lambda count: nullcontext(pools[count]) if count else Workers(count))
        yield


@pytest.mark.usefixtures("same_workers")
@pytest.mark.parametrize("layout", ["imagenet-c", "cifar-c"])
def test_workers_order_and_company_change_no_byte(layout: Any, draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(2))
    how: dict[str, Any] = {"corruptions": ["gaussian_noise", "fog"], "edition": "cifar-32", "layout": layout}
    write_corrupted(images, tmp_path / "0", workers=0, **how)
    for workers in (1, 2):
        write_corrupted(images, tmp_path / str(workers), workers=workers, **how)
        assert files_in(tmp_path / str(workers)) == files_in(tmp_path / "0")
    alone = dataclasses.replace(images, samples=images.samples[4:5])
    write_corrupted(alone, tmp_path / "alone", workers=0, **how)
    backwards = dataclasses.replace(images, samples=images.samples[::-1])
    write_corrupted(backwards, tmp_path / "backwards", workers=0, **how)
    if layout == "imagenet-c":
        whole = files_in(tmp_path / "0")
        lonely = {name: digest for name, digest in files_in(tmp_path / "alone").items() if name.endswith(".JPEG")}
        assert len(lonely) == 10
        assert lonely.items() <= whole.items()
        turned = files_in(tmp_path / "backwards")
        assert {**turned, "manifest.json": ""} == {**whole, "manifest.json": ""}
    else:
        rows = np.load(tmp_path / "0" / "fog.npy").reshape(5, 6, 32, 32, 3)
        assert np.array_equal(np.load(tmp_path / "alone" / "fog.npy"), rows[:, 4])
        assert np.array_equal(np.load(tmp_path / "backwards" / "fog.npy").reshape(rows.shape), rows[:, ::-1])


def test_the_corruptions_may_come_one_at_a_time_and_in_any_order(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    write_corrupted(images, tmp_path / "whole", **QUICK)
    for corruption, severity in (("contrast", 4), ("gaussian_noise", 4), ("contrast", 1), ("gaussian_noise", 1)):
        write_corrupted(images, tmp_path / "bits", corruptions=[corruption], severities=[severity], edition="tiny-64")
    whole, bits = files_in(tmp_path / "whole"), files_in(tmp_path / "bits")
    assert {**bits, "manifest.json": ""} == {**whole, "manifest.json": ""}
    assert json.loads((tmp_path / "bits" / "manifest.json").read_text()) == json.loads(
        (tmp_path / "whole" / "manifest.json").read_text()
    )


def test_a_second_run_makes_only_what_is_missing(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(2))
    first = write_corrupted(images, tmp_path / "c", **QUICK)
    assert (first.written, first.written_before) == (24, 0)
    before = files_in(tmp_path / "c")
    (tmp_path / "c" / "contrast" / "4" / "red" / "001.JPEG").unlink()
    kept = tmp_path / "c" / "contrast" / "4" / "red" / "000.JPEG"
    kept.write_bytes(b"left alone")
    again = write_corrupted(images, tmp_path / "c", **QUICK)
    assert (again.written, again.written_before) == (1, 23)
    assert kept.read_bytes() == b"left alone"
    after = files_in(tmp_path / "c")
    assert {name for name in after if after[name] != before[name]} == {"contrast/4/red/000.JPEG"}


def test_an_image_is_decoded_once_for_all_its_conditions(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    opened: list[str] = []

    def find(image_id: str) -> Any:
        source = images.find(image_id)

        class Counted:
            def read(self) -> bytes:
                opened.append(image_id)
                return source.read()

            def decode(self, data: bytes) -> NDArray[np.uint8]:
                return source.decode(data)

        return Counted()

    write_corrupted(dataclasses.replace(images, find=find), tmp_path / "c", workers=0, **QUICK)
    assert sorted(opened) == sorted(sample.id for sample in images.samples)


# ---------------------------------------------------------------------------------------- stopped on the way


KILLED: dict[str, Any] = {"corruptions": ("gaussian_noise", "contrast", "saturate"), "edition": "tiny-64"}


@pytest.fixture(scope="module")
def shiftproof(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    with forking(tmp_path_factory.mktemp("said"), ["shiftproof.writing.writer", "shiftproof.bench.job"]) as started:
        yield started


def corrupt(photos: Path, folder: Path, layout: str, workers: int) -> list[str]:
    asked = ["corrupt", str(photos), str(folder), "--layout", layout, "--edition", "tiny-64", "--quiet"]
    return [*asked, "--corruptions", "gaussian_noise,contrast,saturate", "--workers", str(workers)]


def test_killed_and_resumed_files_are_the_same_to_the_byte(shiftproof: Forking, draw_photos: Draw, tmp_path: Path) -> None:
    photos = draw_photos(15)
    write_corrupted(sp.open_dataset(photos), tmp_path / "whole", layout="imagenet-c", **KILLED)
    for workers, written in ((0, 1), (1, 250)):
        process = shiftproof.start(*corrupt(photos, tmp_path / "c", "imagenet-c", workers))
        wait_until(lambda least=written: len(list((tmp_path / "c").rglob("*.JPEG"))) >= least)  # type: ignore[misc]
        process.kill()
        assert process.wait().code == -signal.SIGKILL, "the run was over before it was killed"
        for file in (tmp_path / "c").rglob("*.JPEG"):
            Pillow.open(file).load()
    assert sp.open_dataset(tmp_path / "c").notes[0].endswith("not finished: the command that began it goes on with it")
    write_corrupted(sp.open_dataset(photos), tmp_path / "c", layout="imagenet-c", **KILLED)
    assert files_in(tmp_path / "c") == files_in(tmp_path / "whole")
    assert not (tmp_path / "c" / SCRATCH).exists()


def test_killed_and_resumed_arrays_are_the_same_to_the_byte(shiftproof: Forking, draw_photos: Draw, tmp_path: Path) -> None:
    photos = draw_photos(40)
    write_corrupted(sp.open_dataset(photos), tmp_path / "whole", layout="cifar-c", **KILLED)
    checksums = tmp_path / "c" / SCRATCH / "saturate.checksums"
    for workers, written in ((0, 1), (1, 300)):
        process = shiftproof.start(*corrupt(photos, tmp_path / "c", "cifar-c", workers))
        wait_until(lambda least=written: checksums.exists() and np.count_nonzero(np.fromfile(checksums, "<u4")) >= least)  # type: ignore[misc]
        process.kill()
        assert process.wait().code == -signal.SIGKILL, "the run was over before it was killed"
        assert not list((tmp_path / "c").glob("*.npy"))
    # what a power cut may leave: a row that was recorded but never came to the disk
    growing = tmp_path / "c" / SCRATCH / "saturate.npy"
    with growing.open("r+b") as file:
        file.seek(128)
        file.write(bytes(64 * 64 * 3))
    write_corrupted(sp.open_dataset(photos), tmp_path / "c", layout="cifar-c", **KILLED)
    assert files_in(tmp_path / "c") == files_in(tmp_path / "whole")
    assert not (tmp_path / "c" / SCRATCH).exists()


def test_two_runs_do_not_write_into_one_folder(draw_photos: Draw, tmp_path: Path) -> None:
    import fcntl

    images = sp.open_dataset(draw_photos(1))
    write_corrupted(images, tmp_path / "c", **QUICK)
    other = os.open(tmp_path / "c", os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with pytest.raises(StoreError, match=r"another run is writing into .*c; wait for it"):
        write_corrupted(images, tmp_path / "c", **QUICK)
    os.close(other)
    assert write_corrupted(images, tmp_path / "c", **QUICK).written_before == 12


# -------------------------------------------------------------------------------------------- the record


def test_the_record_says_how_every_picture_was_made(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    write_corrupted(images, tmp_path / "c", corruptions=["motion_blur"], severities=[5, 1], seed=3)
    assert json.loads((tmp_path / "c" / "manifest.json").read_text()) == {
        "shiftproof": sp.__version__,
        "layout": "imagenet-c",
        "edition": "imagenet-224",
        "output": "jpeg85",
        "picture": "imagenet-224",
        "picture_rule": "shorter side to 256, centre 224",
        "seed": 3,
        "scale_strengths": False,
        "labelled": True,
        "source": {"name": "photos", "fingerprint": images.ref.fingerprint, "images": 3},
        "corruptions": {"motion_blur": {"1": {"radius": 10, "sigma": 3}, "5": {"radius": 20, "sigma": 15}}},
        "unfinished": [],
        "set_aside": [],
    }


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"seed": 1}, "seed 0 there, 1 now"),
        ({"edition": "cifar-32"}, "edition tiny-64 there, cifar-32 now; picture tiny-64 there, cifar-32 now"),
        ({"output": "raw"}, "output jpeg85 there, raw now"),
        ({"scale_severity": True}, "scale strengths False there, True now"),
        ({"picture": "image"}, "picture tiny-64 there, image now"),
    ],
)
def test_another_way_to_make_a_set_is_refused(other: Any, says: str, draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    write_corrupted(images, tmp_path / "c", **QUICK)
    before = files_in(tmp_path / "c")
    with pytest.raises(BadInput, match=f"holds a dataset made with other settings: .*{says}.*; name another folder"):
        write_corrupted(images, tmp_path / "c", **{**QUICK, **other})
    assert files_in(tmp_path / "c") == before


def test_other_images_versions_pictures_and_kinds_are_refused(
    draw_photos: Draw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = sp.open_dataset(draw_photos(2))
    write_corrupted(images, tmp_path / "c", **{**QUICK, "corruptions": ["frost"]})
    fewer = dataclasses.replace(images, samples=images.samples[:4])
    with pytest.raises(BadInput, match="6 images of photos there, 4 images of photos now"):
        write_corrupted(fewer, tmp_path / "c", **QUICK)
    with pytest.raises(BadInput, match="layout imagenet-c there, imagenet-p now"):
        write_perturbed(images, tmp_path / "c", perturbations=["tilt"], edition="tiny-64")
    panes = tmp_path / "panes"
    panes.mkdir()
    Pillow.fromarray(np.full((300, 300, 3), 200, np.uint8)).save(panes / "frost1.png")
    with pytest.raises(BadInput, match=r"frost pictures [0-9a-f]+ there, [0-9a-f]+ now"):
        write_corrupted(images, tmp_path / "c", frost=frost_pictures(panes), **{**QUICK, "corruptions": ["frost", "fog"]})
    write_corrupted(images, tmp_path / "c", frost=frost_pictures(panes), **QUICK)  # none of these is frost
    monkeypatch.setattr(sp, "__version__", "0.2.0")
    with pytest.raises(BadInput, match=r"shiftproof 0\.1\.0 there, 0\.2\.0 now"):
        write_corrupted(images, tmp_path / "c", **QUICK)


def test_a_folder_with_other_things_in_it_is_left_alone(draw_photos: Draw, tmp_path: Path) -> None:
    photos = draw_photos(1)
    images = sp.open_dataset(photos)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(BadInput, match=r"holds thesis\.txt and no record of a dataset we wrote; name a new folder"):
        write_corrupted(images, tmp_path / "mine", **QUICK)
    (tmp_path / "mine" / "manifest.json").write_text('{"somebody": "else"}')
    with pytest.raises(BadInput, match=r"holds manifest\.json, thesis\.txt and no record"):
        write_corrupted(images, tmp_path / "mine", **QUICK)
    with pytest.raises(BadInput, match=r"lies inside .*photos, whose images it would become"):
        write_corrupted(images, photos / "corrupted", **QUICK)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"layout": ["imagenet-c"]},
        {"shiftproof": 3},
        {"source": None},
        {"source": {"images": "many"}},
        {"corruptions": []},
        {"corruptions": {"contrast": 3}},
        {"unfinished": 3},
        {"set_aside": [3]},
        {"set_aside": [{"id": [], "reason": ""}]},
        {"images": [[1]]},
        {"classes": {"names": 3}},
    ],
)
def test_somebody_elses_record_is_told_and_left_alone(spoilt: dict[str, Any], draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    write_corrupted(images, tmp_path / "c", **QUICK)
    record = tmp_path / "c" / "manifest.json"
    text = json.dumps({**json.loads(record.read_text()), **spoilt})
    record.write_text(text)
    with pytest.raises(BadInput, match=r"no record of a dataset we wrote|a dataset made with other settings"):
        write_corrupted(images, tmp_path / "c", **QUICK)
    assert record.read_text() == text
    sp.open_dataset(tmp_path / "c")


@pytest.mark.parametrize("header", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{" + b"(" * 100, b"no array"])
def test_a_damaged_array_is_told_with_what_to_do(header: bytes, draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    making: dict[str, Any] = {**QUICK, "severities": (1, 2, 3, 4, 5), "layout": "cifar-c"}
    write_corrupted(images, tmp_path / "c", **making)
    whole = files_in(tmp_path / "c")
    path = tmp_path / "c" / "contrast.npy"
    path.write_bytes(header + path.read_bytes()[len(header) :] if len(header) > 20 else header)
    with pytest.raises(BadInput, match=r"contrast\.npy is damaged, .* move it away, and it is made again"):
        write_corrupted(images, tmp_path / "c", **making)
    path.unlink()
    write_corrupted(images, tmp_path / "c", **making)
    assert files_in(tmp_path / "c") == whole


# ----------------------------------------------------------------------------------- what cannot be read or written


@pytest.mark.usefixtures("same_workers")
@pytest.mark.parametrize("workers", [0, 2])
def test_unreadable_images_are_skipped_counted_and_tried_again(workers: int, draw_photos: Draw, tmp_path: Path) -> None:
    photos = draw_photos(2)
    good = (photos / "red" / "000.png").read_bytes()
    (photos / "red" / "000.png").write_bytes(good[:60])
    (photos / "blue" / "lost.png").symlink_to("nowhere")
    done = write_corrupted(sp.open_dataset(photos), tmp_path / "c", workers=workers, **QUICK)
    assert (done.written, done.written_before) == (20, 0)
    assert [(image.id, image.reason) for image in done.skipped_images] == [
        ("blue/lost.png", "cannot be read: No such file or directory"),
        ("red/000.png", "truncated PNG"),
    ]
    assert [entry["id"] for entry in json.loads((tmp_path / "c" / "manifest.json").read_text())["set_aside"]] == [
        "blue/lost.png",
        "red/000.png",
    ]
    (photos / "red" / "000.png").write_bytes(good)
    again = write_corrupted(sp.open_dataset(photos), tmp_path / "c", workers=workers, **QUICK)
    assert (again.written, again.written_before) == (4, 20)
    assert [image.id for image in again.skipped_images] == ["blue/lost.png"]


def test_arrays_leave_out_the_rows_of_unreadable_images(draw_photos: Draw, tmp_path: Path) -> None:
    photos = draw_photos(2)
    good = (photos / "green" / "000.png").read_bytes()
    (photos / "green" / "000.png").write_bytes(b"nothing")
    how: dict[str, Any] = {"edition": "cifar-32", "layout": "cifar-c"}
    done = write_corrupted(sp.open_dataset(photos), tmp_path / "c", corruptions=["contrast"], **how)
    assert [image.id for image in done.skipped_images] == ["green/000.png"]
    assert done.written == 25
    assert np.load(tmp_path / "c" / "contrast.npy").shape == (25, 32, 32, 3)
    assert np.load(tmp_path / "c" / "labels.npy").tolist() == [0, 0, 1, 2, 2] * 5
    assert sp.open_dataset(tmp_path / "c").samples[2].id == "contrast/1/green/001.png"
    again = write_corrupted(sp.open_dataset(photos), tmp_path / "c", corruptions=["contrast"], **how)
    assert (again.written, again.written_before, again.skipped_images) == (0, 25, done.skipped_images)
    write_corrupted(sp.open_dataset(photos), tmp_path / "c", corruptions=["fog"], **how)
    assert np.load(tmp_path / "c" / "fog.npy").shape == (25, 32, 32, 3)
    (photos / "green" / "000.png").write_bytes(good)
    with pytest.raises(BadInput, match="has 25 rows, but 6 images can be read now"):
        write_corrupted(sp.open_dataset(photos), tmp_path / "c", corruptions=["fog", "snow"], **how)


@pytest.mark.parametrize("layout", ["imagenet-c", "cifar-c"])
def test_a_full_disk_is_one_sentence_and_the_next_run_goes_on(
    layout: Any, draw_photos: Draw, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = sp.open_dataset(draw_photos(1))
    calls = [0]

    def full(*_: object) -> None:
        calls[0] += 1
        if calls[0] > 2:
            raise OSError(errno.ENOSPC, "No space left on device")

    how: dict[str, Any] = {"corruptions": ["contrast", "fog"], "edition": "cifar-32", "layout": layout}
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync" if layout == "imagenet-c" else "posix_fallocate", full)
        with pytest.raises(StoreError, match=r"no space left for .*; what was committed is kept: make room and start again"):
            write_corrupted(images, tmp_path / "c", workers=0, **how)
    write_corrupted(images, tmp_path / "c", workers=0, **how)
    write_corrupted(images, tmp_path / "whole", workers=0, **how)
    assert files_in(tmp_path / "c") == files_in(tmp_path / "whole")


def test_a_folder_that_cannot_be_written_is_one_sentence(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1))
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot write .*file: it is a file, not a folder"):
        write_corrupted(images, tmp_path / "file", **QUICK)
    with pytest.raises(StoreError, match=r"cannot write .*inside: a file stands where a folder should be"):
        write_corrupted(images, tmp_path / "file" / "inside", **QUICK)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_one_sentence(draw_photos: Draw, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(StoreError, match=r"cannot write .*: Permission denied"):
        write_corrupted(sp.open_dataset(draw_photos(1)), tmp_path / "closed" / "c", **QUICK)


@pytest.mark.parametrize(
    ("what", "error", "says"),
    [
        ({"corruptions": ["fgo"]}, UnknownName, "did you mean fog"),
        ({"severities": [6]}, BadInput, "severity should be 1 to 5, got 6"),
        ({"edition": "imagenet"}, UnknownName, "no edition called 'imagenet'"),
        ({"picture": "hole"}, UnknownName, "no picture called 'hole'"),
        ({"layout": "imagenet"}, UnknownName, "no layout called 'imagenet'"),
        ({"layout": "cifar-c", "severities": [1]}, BadInput, "all five severities"),
        ({"layout": "cifar-c", "picture": "image"}, BadInput, "pictures of one size"),
    ],
)
def test_slips_are_told_before_the_first_image_is_opened(what: Any, error: Any, says: str, tmp_path: Path) -> None:
    images = listed(["a.png"], labels=[(0,)], classes=Classes(("cat",)))
    with pytest.raises(error, match=says):
        write_corrupted(images, tmp_path / "c", **what)
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("what", "error", "says"),
    [
        ({"perturbations": ["titl"]}, UnknownName, "did you mean tilt"),
        ({"perturbations": ["shot_noise"], "levels": [4]}, BadInput, "level of shot_noise should be 1 to 3"),
        ({"edition": "imagenet"}, UnknownName, "no edition called 'imagenet'"),
        ({"layout": "imagenet-c"}, UnknownName, "no layout called 'imagenet-c'"),
    ],
)
def test_slips_in_sequences_are_told_at_once_too(what: Any, error: Any, says: str, tmp_path: Path) -> None:
    images = listed(["a.png"], labels=[(0,)], classes=Classes(("cat",)))
    with pytest.raises(error, match=says):
        write_perturbed(images, tmp_path / "p", **what)
    assert not (tmp_path / "p").exists()


def test_videos_without_their_library_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    monkeypatch.delitem(sys.modules, "shiftproof.datasets.video.video_files", raising=False)
    images = listed(["a.png"], labels=[(0,)], classes=Classes(("cat",)))
    with pytest.raises(MissingExtra, match=r"pip install 'shiftproof\[video\]'"):
        write_perturbed(images, tmp_path / "p")


# ------------------------------------------------------------------------------------------------- names


def test_names_that_would_collide_are_told_apart_by_their_ids() -> None:
    classes = Classes(("tench", "hen"), ("n01440764", "n01514859"))
    ids = ["n01440764/a.png", "n01440764/a.jpg", "n01440764/b.jpg", "more/n01440764/b.JPEG", "n01514859/a.png"]
    images = listed(ids, labels=[(0,), (0,), (0,), (0,), (1,)], classes=classes)
    assert file_places(images) == [
        "n01440764/n01440764-a.png",
        "n01440764/n01440764-a.jpg",
        "n01440764/n01440764-b.jpg",
        "n01440764/more-n01440764-b.JPEG",
        "n01514859/a",
    ]
    twice = listed(["x/y/a.png", "x-y/a.png", "z/a.png"], labels=[(0,)] * 3, classes=classes)
    with pytest.raises(BadInput, match=r"several images would become one file: n01440764/x-y-a\.png"):
        file_places(twice)


def test_no_name_leads_out_of_the_folder() -> None:
    ids = ["../../etc/passwd", "/abs/b.png", "c/../d.png", ".hidden.png", "e/...png"]
    places = file_places(listed(ids, labels=[()] * 5, classes=None))
    assert places == ["etc/passwd", "abs/b", "c/d", "_hidden", "e/_png"]
    named = listed(["a.png"], labels=[(0,)], classes=Classes(("../up",)))
    assert file_places(named) == ["_-up/a"]
    assert file_places(listed([".a\0b.png"], labels=[()], classes=None)) == ["_ab"]
    for name in ("x" * 300, "ü" * 125):
        with pytest.raises(BadInput, match=r"1 names of images or classes are too long for a file, as .*; shorten them"):
            file_places(listed([f"{name}.png"], labels=[()], classes=None))
    with pytest.raises(BadInput, match="several classes are called crane"):
        file_places(listed(["a.png"], labels=[(0,)], classes=Classes(("crane", "crane"))))


def test_images_without_labels_keep_their_path_and_stay_without(draw_photos: Draw, tmp_path: Path) -> None:
    images = sp.open_dataset(draw_photos(1), labels="none")
    write_corrupted(images, tmp_path / "c", **QUICK)
    written = sp.open_dataset(tmp_path / "c")
    assert written.samples[0].id == "contrast/1/blue/000.JPEG"
    assert written.classes is None
    assert {sample.labels for sample in written.samples} == {()}
    assert written.samples[0].facts == {"corruption": "contrast", "severity": 1}
    flat = tmp_path / "flat"
    flat.mkdir()
    (tmp_path / "photos" / "red" / "000.png").rename(flat / "x.png")
    write_corrupted(sp.open_dataset(flat), tmp_path / "d", **QUICK)
    (tmp_path / "d" / "manifest.json").unlink()
    bare = sp.open_dataset(tmp_path / "d")
    assert (bare.samples[0].id, bare.samples[0].labels) == ("contrast/1/x.JPEG", ())
    write_corrupted(sp.open_dataset(flat), tmp_path / "e", corruptions=["contrast"], edition="cifar-32", layout="cifar-c")
    assert not (tmp_path / "e" / "labels.npy").exists()


@pytest.mark.parametrize("place", ["fog/1/red", "fog", SCRATCH])
def test_a_folder_that_leads_elsewhere_is_not_written_into(place: str, draw_photos: Draw, tmp_path: Path) -> None:
    images, made, other = sp.open_dataset(draw_photos(2)), tmp_path / "c", tmp_path / "other"
    write_corrupted(images, made, layout="imagenet-c", corruptions=["fog"], severities=[1], workers=0)
    other.mkdir()
    (other / ".profile").write_text("export EDITOR=ed")
    if (made / place).exists():
        shutil.rmtree(made / place)
    (made / place).symlink_to(other)
    with pytest.raises(StoreError, match=r"leads out of .*, to .*other"):
        write_corrupted(images, made, layout="imagenet-c", corruptions=["fog"], severities=[1], workers=0)
    assert [path.name for path in other.iterdir()] == [".profile"]


def test_links_in_the_folder_of_what_is_not_whole_are_not_written_through(draw_photos: Draw, tmp_path: Path) -> None:
    images, made, other = sp.open_dataset(draw_photos(2)), tmp_path / "c", tmp_path / "other"
    options: dict[str, Any] = {"edition": "cifar-32", "layout": "cifar-c", "workers": 0}
    write_corrupted(images, made, corruptions=["contrast"], **options)
    other.write_text("mine")
    (made / SCRATCH).mkdir()
    (made / SCRATCH / "brightness.npy").symlink_to(other)
    write_corrupted(images, made, corruptions=["brightness"], **options)
    assert other.read_text() == "mine"
    assert not (made / "brightness.npy").is_symlink()
