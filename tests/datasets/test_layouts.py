"""Every layout in which a set can be exported is read back as it was: the same pixels under the same labels."""

from __future__ import annotations

import subprocess
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.boxed.boxes import BoxedImage, Object, boxed_list
from shiftproof.datasets.image_list import decoded
from shiftproof.datasets.labels import places_of
from shiftproof.datasets.records import CARD, CHECKSUMS
from shiftproof.errors import BadInput
from shiftproof.types import ImageSource, Sample
from shiftproof.writing import layouts
from shiftproof.writing.atomic_folder import File, plain_file, write_folder
from shiftproof.writing.layouts import LAYOUTS
from shiftproof.writing.writer import Written

WNIDS = ("n01819313", "n02123045", "n07745940")


@pytest.fixture
def photos(draw_photos: Callable[..., Path]) -> ImageList:
    """Drawn photos under wnids, each with a fact, the first of them with two labels."""
    opened = open_dataset(draw_photos(2))
    classes, _ = places_of(WNIDS)
    samples = [
        Sample(sample.id, (sample.labels[0] % 3,), {"hour": f"{place:02}", "light": place / 8})
        for place, sample in enumerate(opened.samples)
    ]
    return ImageList("drawn", samples, classes, opened.find, credits=("drawn by a test",))


def boxed(images: ImageList) -> ImageList:
    """The same images with a box in each."""
    keys = images.classes.keys if images.classes else ()
    entries = [
        BoxedImage(sample.id, [Object(keys[sample.labels[0]], (2, 3, 20 + place, 12))], (32, 24), sample.facts)
        for place, sample in enumerate(images.samples)
    ]
    classes, places = places_of(keys)
    return boxed_list(entries, images.find, name="boxed", classes=classes, places=places)


def framed(images: ImageList) -> ImageList:
    """The same images as frames of clips: anchors of two, and a frame that lies near both."""
    first, second, third, fourth = (images.source(sample) for sample in images.samples[:4])
    sources: dict[str, ImageSource] = {
        "a/000010": first,
        "a/000011": second,
        "a/000012": third,
        "a/000011@000012": second,
        "b/000003": fourth,
    }
    frames = [
        Sample("a/000010", (0,), {"anchor": "a/000010", "offset": 0}),
        Sample("a/000011", (0,), {"anchor": "a/000010", "offset": 1}),
        Sample("a/000011@000012", (0,), {"anchor": "a/000012", "offset": -1}),
        Sample("a/000012", (0,), {"anchor": "a/000012", "offset": 0}),
        Sample("b/000003", (1, 2), {"anchor": "b/000003", "offset": 0}),
    ]
    return ImageList("frames", frames, images.classes, sources.__getitem__)


def written(images: ImageList, root: Path, layout: str) -> ImageList:
    write_folder(root, b"{}\n", LAYOUTS[layout].files(images), total=0)
    return open_dataset(LAYOUTS[layout].opened_as.format(root=root))


def told(images: ImageList) -> Counter[tuple[bytes, tuple[str, ...]]]:
    """The pixels of every image with the keys of its classes."""
    keys = images.classes.keys if images.classes else ()
    found = [(decoded(images.source(sample)), sample) for sample in images.samples]
    assert all(isinstance(image, np.ndarray) for image, _ in found)
    return Counter((np.asarray(image).tobytes(), tuple(keys[label] for label in sample.labels)) for image, sample in found)


@pytest.mark.parametrize("layout", ["folder", "manifest", "webdataset", "imagenet-a"])
def test_a_written_set_has_the_same_pixels_and_labels(photos: ImageList, tmp_path: Path, layout: str) -> None:
    again = written(photos, tmp_path / "set", layout)
    assert told(again) == told(photos)
    assert again.classes == photos.classes


@pytest.mark.parametrize("layout", ["manifest", "webdataset"])
def test_tables_keep_several_labels_and_facts_as_they_are(photos: ImageList, tmp_path: Path, layout: str) -> None:
    several = [Sample(one.id, (0, 2), one.facts) if place == 0 else one for place, one in enumerate(photos.samples)]
    images = ImageList("drawn", several, photos.classes, photos.find)
    again = written(images, tmp_path / "set", layout)
    facts = {str(sample.facts.get("id", sample.id)): (sample.labels, sample.facts) for sample in again.samples}
    for sample in images.samples:
        labels, found = facts[sample.id]
        assert labels == sample.labels
        assert {name: found[name] for name in sample.facts} == sample.facts


def test_a_manifest_keeps_ids_and_the_credit(photos: ImageList, tmp_path: Path) -> None:
    again = written(photos, tmp_path / "set", "manifest")
    assert [sample.id for sample in again.samples] == [sample.id for sample in photos.samples]
    assert again.credits == photos.credits


@pytest.mark.parametrize("layout", ["imagenet-o", "imagenet-ood"])
def test_images_outside_all_classes_have_a_folder_and_no_label(photos: ImageList, tmp_path: Path, layout: str) -> None:
    again = written(photos, tmp_path / "set", layout)
    assert again.classes is None
    keys = photos.classes.keys if photos.classes else ()
    expected = Counter(keys[sample.labels[0]] for sample in photos.samples)
    assert Counter(sample.facts["folder"] for sample in again.samples) == expected
    assert {pixels for pixels, _ in told(again)} == {pixels for pixels, _ in told(photos)}


def test_boxes_come_back_as_they_were(photos: ImageList, tmp_path: Path) -> None:
    images = boxed(photos)
    again = written(images, tmp_path / "set", "coco")
    assert told(again) == told(images)
    assert again.truths is not None
    assert images.truths is not None
    assert sorted(again.truths.boxes.tolist()) == sorted(images.truths.boxes.tolist())
    assert again.classes == images.classes
    assert {"hour", "light", "width", "height"} == set(again.samples[0].facts)


def test_frames_come_back_around_their_anchors_with_any_classes(photos: ImageList, tmp_path: Path) -> None:
    images = framed(photos)
    again = written(images, tmp_path / "set", "vid-robust")
    assert told(again) == told(images)
    assert again.classes == images.classes

    def around(images: ImageList) -> Counter[tuple[str, object]]:
        return Counter((str(sample.facts["anchor"]).split("/")[-1][:6], sample.facts["offset"]) for sample in images.samples)

    assert around(again) == around(images)


def test_photos_are_the_very_files_and_everything_else_is_without_loss(photos: ImageList, tmp_path: Path) -> None:
    written(photos, tmp_path / "set", "folder")
    bytes_of = {path.read_bytes() for path in (tmp_path / "set").glob("*/*")}
    assert bytes_of == {photos.source(sample).read() for sample in photos.samples}
    crops = open_dataset(f"crops:{save_boxes(photos, tmp_path)}")
    again = written(crops, tmp_path / "crops", "manifest")
    assert told(again) == told(crops)
    assert {path.suffix for path in (tmp_path / "crops" / "images").rglob("*.*")} == {".png"}


def save_boxes(photos: ImageList, tmp_path: Path) -> Path:
    written(boxed(photos), tmp_path / "boxed", "coco")
    return tmp_path / "boxed" / "annotations.json"


@pytest.mark.parametrize(
    ("layout", "reason"),
    [("coco", "has none"), ("vid-robust", "around anchors"), ("imagenet-a", "are none"), ("imagenet-ood", "are none")],
)
def test_a_layout_that_cannot_hold_a_set_is_refused(photos: ImageList, tmp_path: Path, layout: str, reason: str) -> None:
    classes, _ = places_of(["cat", "dog", "eel"])
    images = ImageList("drawn", photos.samples, classes, photos.find)
    with pytest.raises(BadInput, match=reason):
        written(images, tmp_path / "set", layout)
    assert not (tmp_path / "set").exists()


def test_folders_are_refused_where_they_would_say_something_else(photos: ImageList, tmp_path: Path) -> None:
    bare = ImageList("drawn", [Sample(one.id) for one in photos.samples], None, photos.find)
    with pytest.raises(BadInput, match="has no labels"):
        written(bare, tmp_path / "set", "folder")
    several = ImageList("drawn", [Sample(one.id, (0, 1)) for one in photos.samples], photos.classes, photos.find)
    with pytest.raises(BadInput, match="choose layout manifest"):
        written(several, tmp_path / "set", "folder")


def test_shards_are_the_same_bytes_whenever_they_are_written(
    photos: ImageList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "IMAGES_A_SHARD", 4)
    for name in ("one", "two"):
        again = written(photos, tmp_path / name, "webdataset")
        assert told(again) == told(photos)
    shards = sorted((tmp_path / "one").glob("*.tar"))
    assert len(shards) > 1
    assert [shard.read_bytes() for shard in shards] == [(tmp_path / "two" / shard.name).read_bytes() for shard in shards]
    with tarfile.open(shards[0]) as archive:
        assert {(member.mtime, member.uid, member.uname) for member in archive} == {(0, 0, "")}


def test_checksums_are_what_sha256sum_reads(photos: ImageList, tmp_path: Path) -> None:
    written(photos, tmp_path / "set", "imagenet-a")
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", CHECKSUMS], cwd=tmp_path / "set", check=True)
    listed = {line.split("  ", 1)[1] for line in (tmp_path / "set" / CHECKSUMS).read_text().splitlines()}
    there = {path.relative_to(tmp_path / "set").as_posix() for path in (tmp_path / "set").rglob("*") if path.is_file()}
    assert listed == there - {CHECKSUMS}


def test_checksums_of_names_that_would_break_a_line_are_what_sha256sum_writes(tmp_path: Path) -> None:
    names = ["two\nlines", "back\\slash", "carriage\rreturn", "\\n", "plain"]
    write_folder(tmp_path / "set", b"card", [plain_file(f"class/{name}", name) for name in names], total=len(names))
    check = ["sha256sum", "--check", "--strict", "--quiet", CHECKSUMS]
    subprocess.run(check, cwd=tmp_path / "set", check=True)
    paths = sorted([CARD, *(f"class/{name}" for name in names)])
    theirs = subprocess.run(["sha256sum", *paths], cwd=tmp_path / "set", check=True, capture_output=True)
    assert (tmp_path / "set" / CHECKSUMS).read_bytes() == theirs.stdout
    (tmp_path / "set" / "class" / names[0]).write_text("something else")
    assert subprocess.run(check, cwd=tmp_path / "set", capture_output=True).returncode == 1


def test_a_folder_appears_when_all_of_it_is_there_and_a_stopped_run_goes_on(tmp_path: Path) -> None:
    seen: list[str] = []

    def file(name: str, *, breaks: bool = False) -> File:
        def write(stream: object) -> None:
            seen.append(name)
            if breaks:
                raise KeyboardInterrupt
            plain_file(name, name).write(stream)  # type: ignore[arg-type]

        return File(name, write)

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "set", b"card", [file("a"), file("b", breaks=True)], total=2)
    assert not (tmp_path / "set").exists()
    assert write_folder(tmp_path / "set", b"card", [file("a"), file("b")], total=2) == Written(tmp_path / "set", 1, 1, ())
    assert seen == ["a", "b", "b"]
    assert {path.name for path in (tmp_path / "set").iterdir()} == {"a", "b", CARD, CHECKSUMS}
    assert write_folder(tmp_path / "set", b"card", [file("a"), file("b")], total=2).written == 0
    with pytest.raises(BadInput, match="holds something else"):
        write_folder(tmp_path / "set", b"another", [file("a")], total=1)


def test_what_was_begun_under_another_card_is_begun_again(tmp_path: Path) -> None:
    def breaking(stream: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(tmp_path / "set", b"old", [plain_file("x/a", "old"), File("b", breaking)], total=2)
    write_folder(tmp_path / "set", b"new", [plain_file("x/a", "new")], total=1)
    assert (tmp_path / "set" / "x" / "a").read_text() == "new"
