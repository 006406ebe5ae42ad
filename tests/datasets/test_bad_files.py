"""Every kind of bad file, as a user may have it or a stranger send it: a sentence each, and never the end of the rest."""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image as Pillow

from shiftproof.datasets import ImageList, open_dataset
from shiftproof.datasets.image_list import decoded
from shiftproof.datasets.subsets import load_groups
from shiftproof.errors import BadInput, UnreadableImage
from shiftproof.types import Decoder


@pytest.fixture
def zoo(tmp_path: Path, encode: Callable[..., bytes], pattern: Callable[[int, int], NDArray[np.uint8]]) -> Path:
    image = pattern(20, 30)
    jpeg = encode(image, "JPEG", quality=95)
    exif = Pillow.Exif()
    exif[0x0112] = 6
    header = b"IHDR" + struct.pack(">2I5B", 30_000, 30_000, 8, 2, 0, 0, 0)
    files = {
        "truncated.jpg": jpeg[: len(jpeg) // 2],
        "text.jpg": b"this is a note, not a photo\n",
        "empty.jpg": b"",
        "cmyk.jpg": encode(Pillow.fromarray(image).convert("CMYK"), "JPEG"),
        "rotated.jpg": encode(image, "JPEG", exif=exif.tobytes()),
        "deep.png": encode(image[:, :, 0].astype(np.uint16) * 257, "PNG"),
        "bomb.png": b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header)),
        "日本語.jpg": jpeg,
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


@pytest.mark.parametrize("decoder", ["pillow", "opencv"])
def test_each_bad_file_has_its_reason_and_each_odd_one_its_pixels(decoder: Decoder, zoo: Path) -> None:
    images = open_dataset(zoo)
    assert len(images.samples) == 8
    reasons: dict[str, str] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for sample in images.samples:
        source = images.source(sample)
        try:
            shapes[sample.id] = source.decode(source.read(), decoder=decoder).shape
        except UnreadableImage as refusal:
            reasons[sample.id] = str(refusal)
    assert shapes == {
        "cmyk.jpg": (20, 30, 3),
        "rotated.jpg": (30, 20, 3),
        "deep.png": (20, 30, 3),
        "日本語.jpg": (20, 30, 3),
    }
    assert reasons.pop("bomb.png").startswith("30000 x 30000 pixels, limit is 120,000,000; raise it with --max-pixels")
    assert reasons == {
        "truncated.jpg": "truncated JPEG",
        "text.jpg": "not an image (JPEG, PNG, WebP, GIF, BMP or TIFF)",
        "empty.jpg": "empty file",
    }


def small_png(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Pillow.new("RGB", (12, 8)).save(path)
    return path


def fates(images: ImageList) -> dict[str, str]:
    """Why each image that cannot be used is skipped, by its id."""
    told: dict[str, str] = {}
    for sample in images.samples:
        source = images.source(sample)
        found = decoded(source)
        if isinstance(found, str):
            told[sample.id] = found
    return told


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 100_000, "is nested too deeply to be read"),
        (f"[{'9' * 5000}]", "holds a number of thousands of digits"),
        (r'["\ud800"]', r"holds half a character, '\\ud800' without what should stand beside it"),
    ],
)
@pytest.mark.parametrize("reader", ["labels", "classes", "coco", "groups", "manifest", "vid-robust", "objectnet"])
def test_json_that_python_cannot_hold_is_told_in_a_sentence(reader: str, text: str, says: str, tmp_path: Path) -> None:
    small_png(tmp_path / "p" / "images" / "cat" / "a.png")
    path = tmp_path / "bad.json"
    asked: dict[str, Callable[[], object]] = {
        "labels": lambda: open_dataset(tmp_path / "p", labels=path).ref,
        "classes": lambda: open_dataset(tmp_path / "p", classes=str(path)).ref,
        "coco": lambda: open_dataset(path),
        "groups": lambda: load_groups(path),
        "manifest": lambda: open_dataset(path).ref,
        "vid-robust": lambda: open_dataset(tmp_path / "p"),
        "objectnet": lambda: open_dataset(tmp_path / "p"),
    }
    if reader == "manifest":
        path, text = tmp_path / "bad.jsonl", f'{{"path": "p/images/cat/a.png", "more": {text}}}\n'
    elif reader == "vid-robust":
        path = tmp_path / "p" / "metadata" / "pmsets.json"
    elif reader == "objectnet":
        path = tmp_path / "p" / "mappings" / "folder_to_objectnet_label.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    with pytest.raises(BadInput, match=rf"{path.name}(, line 1)? {says}"):
        asked[reader]()


def test_pipes_devices_and_files_without_end_are_skipped(tmp_path: Path) -> None:
    small_png(tmp_path / "a.png")
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "endless.png").symlink_to("/dev/zero")
    (tmp_path / "m.csv").write_text("path\na.png\npipe.png\nendless.png\n")
    reasons = dict.fromkeys(("pipe.png", "endless.png"), "cannot be read: not a regular file")
    assert fates(open_dataset(tmp_path)) == reasons
    assert fates(open_dataset(tmp_path / "m.csv")) == reasons


def test_a_record_that_is_a_pipe_does_not_stop_the_reader(tmp_path: Path) -> None:
    small_png(tmp_path / "a.png")
    os.mkfifo(tmp_path / "manifest.json")
    assert len(open_dataset(tmp_path).samples) == 1


@pytest.mark.parametrize("reader", ["folder", "clips", "manifest", "voc", "frames", "imagenet-ood", "arrays"])
@pytest.mark.parametrize("place", ["a\0b", "\ud800", "x" * 5000])
def test_names_that_no_file_can_have_are_told(reader: str, place: str) -> None:
    with pytest.raises(BadInput):
        open_dataset(place, kind=reader)


@pytest.mark.parametrize(
    "record",
    [
        {"layout": ["a"], "shiftproof": "1"},
        {"layout": "cifar-c", "shiftproof": "1", "source": {"images": 5}, "classes": {"names": 3, "wnids": 4}},
        {"layout": "cifar-c", "shiftproof": "1", "source": []},
        {"layout": "cifar-c", "shiftproof": "1", "source": {"images": 5}, "set_aside": [1]},
        {"layout": "cifar-c", "shiftproof": "1", "source": {"images": 5}, "images": [{"a": 1}]},
        {"manifest_version": 3, "name": "an extension of a browser"},
    ],
)
def test_a_manifest_json_of_somebody_else_is_passed_over(record: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(record))
    np.save(tmp_path / "fog.npy", np.zeros((5, 4, 4, 3), np.uint8))
    images = open_dataset(tmp_path)
    assert [sample.id for sample in images.samples] == [f"fog/{severity}/00000" for severity in range(1, 6)]


@pytest.mark.parametrize("encoding", ["gb2312", "big5", "shift_jis", "euc-kr", "euc-jp", "windows-1251", "utf-16"])
def test_annotations_in_the_encodings_of_the_world_are_read(encoding: str, tmp_path: Path) -> None:
    name = {"euc-kr": "고양이", "windows-1251": "кот", "big5": "貓"}.get(encoding, "猫")
    write_voc(tmp_path, a=f'<?xml version="1.0" encoding="{encoding}"?>{annotation(name)}'.encode(encoding))
    images = open_dataset(tmp_path)
    assert images.classes is not None
    assert images.classes.names == (name,)


def annotation(name: str = "cat", box: tuple[object, ...] = (1, 1, 4, 4), size: tuple[object, ...] = (12, 8)) -> str:
    sides = "".join(f"<{side}>{at}</{side}>" for side, at in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True))
    shape = f"<size><width>{size[0]}</width><height>{size[1]}</height></size>"
    return f"<annotation>{shape}<object><name>{name}</name><bndbox>{sides}</bndbox></object></annotation>"


def write_voc(root: Path, **files: bytes) -> None:
    for stem, data in files.items():
        small_png(root / "JPEGImages" / f"{stem}.png")
        (root / "Annotations").mkdir(exist_ok=True)
        (root / "Annotations" / f"{stem}.xml").write_bytes(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"<annotation>", "a.xml is not XML"),
        (b'<?xml version="1.0" encoding="punycode"?><annotation/>', "a.xml is in an encoding that cannot be read"),
        (
            b'<?xml version="1.0" encoding="gb2312"?><annotation>\xff\xff</annotation>',
            "not in the encoding that it declares",
        ),
        (b"<!DOCTYPE a []><annotation/>", "declares a document type"),
        (annotation(box=(9, 9, 1, 1)).encode(), "a box of negative size, -8 x -8"),
        (annotation(box=("inf", 1, 4, 4)).encode(), "a box should be four finite numbers"),
    ],
)
def test_one_broken_annotation_skips_its_image_and_no_other(data: bytes, says: str, tmp_path: Path) -> None:
    write_voc(tmp_path, a=data, b=annotation("dog").encode())
    images = open_dataset(tmp_path)
    assert [sample.id for sample in images.samples] == ["a.png", "b.png"]
    told = fates(images)
    assert list(told) == ["a.png"]
    assert says in told["a.png"]
    assert any("1 images are skipped, such as a.png" in note for note in images.notes)
    (tmp_path / "Annotations" / "b.xml").write_bytes(data)
    with pytest.raises(BadInput, match=r"declares|XML|encoding|box"):
        open_dataset(tmp_path)


@pytest.mark.parametrize("side", ["inf", "1e400", "nan"])
def test_an_infinite_picture_has_no_known_size(side: str, tmp_path: Path) -> None:
    write_voc(tmp_path, a=annotation(size=(side, side)).encode())
    assert open_dataset(tmp_path).samples[0].facts == {}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("0 .5 .5 -.2 .2", "a box of negative size"),
        ("0 .5 .5", "expected a class number and four shares"),
        ("0 -9 .5 .2 .2", "shares of the image between 0 and 1"),
    ],
)
def test_one_broken_text_file_of_yolo_skips_its_image(line: str, says: str, tmp_path: Path) -> None:
    for stem, text in (("a", line), ("b", "0 .5 .5 .2 .2")):
        small_png(tmp_path / "images" / f"{stem}.png")
        (tmp_path / "labels").mkdir(exist_ok=True)
        (tmp_path / "labels" / f"{stem}.txt").write_text(text)
    told = fates(open_dataset(tmp_path))
    assert list(told) == ["a.png"]
    assert says in told["a.png"]


def test_one_broken_clip_of_frames_is_skipped(tmp_path: Path) -> None:
    for clip in "abcd":
        for frame in range(3):
            small_png(tmp_path / "cat" / clip / f"{frame}.png")
    small_png(tmp_path / "cat" / "a" / "cover.png")
    (tmp_path / "cat" / "b" / "info.json").write_text('{"fps": "many"}')
    (tmp_path / "cat" / "c" / "info.json").write_text('{"anchor": 99}')
    images = open_dataset(tmp_path, kind="frames", k=1)
    told = fates(images)
    assert [reason.rpartition("/")[2][:30] for reason in told.values()] == [
        "cover.png has no number in its",
        "info.json: fps should be frame",
        "c has no frame '99'; anchors a",
    ]
    assert {sample.facts["clip"] for sample in images.samples if sample.id not in told} == {"d"}


def test_folders_that_link_to_each_other_are_read_once_each(tmp_path: Path) -> None:
    for place in range(4):
        small_png(tmp_path / f"class{place}" / "a.png")
    for place in range(4):
        for other in range(4):
            if other != place:
                (tmp_path / f"class{place}" / f"to{other}").symlink_to(tmp_path / f"class{other}")
    (tmp_path / "class0" / "up").symlink_to(tmp_path)
    (tmp_path / "class0" / "self").symlink_to("self")
    images = open_dataset(tmp_path)
    assert [sample.id for sample in images.samples] == [f"class{place}/a.png" for place in range(4)]
    assert any(note.startswith("links to folders that were read already, ignored: ") for note in images.notes)


def test_a_folder_outside_is_followed_under_the_first_of_its_links(tmp_path: Path) -> None:
    small_png(tmp_path / "elsewhere" / "a.png")
    (tmp_path / "set").mkdir()
    for name in ("cat", "dog"):
        (tmp_path / "set" / name).symlink_to(tmp_path / "elsewhere")
    images = open_dataset(tmp_path / "set")
    assert [sample.id for sample in images.samples] == ["cat/a.png"]
    assert "links to folders that were read already, ignored: dog" in images.notes


def test_a_folder_that_holds_only_itself_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "train").symlink_to(tmp_path / "x")
    with pytest.raises(BadInput, match="leads back to itself"):
        open_dataset(tmp_path / "x")


def npy(header: bytes, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


@pytest.mark.parametrize("role", ["images", "labels"])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04" + bytes(40),
        npy(b"{'descr':"),
        npy(b"-" * 9000 + b"1"),
        npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (%s, 2, 2, 3), }" % (b"9" * 40)),
        npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999, 2, 2, 3), }"),
    ],
    ids=["empty", "zip", "cut off", "nested", "beyond all numbers", "longer than its file"],
)
def test_a_damaged_array_is_told_in_a_sentence(data: bytes, role: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 2, 2, 3), np.uint8))
    path = tmp_path / ("x.npy" if role == "images" else "labels.npy")
    path.write_bytes(data)
    with pytest.raises(BadInput, match=rf"{path.name} cannot be read as an array: "):
        open_dataset(tmp_path / "x.npy")


def test_an_array_of_a_billion_empty_pictures_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(b"{'descr': '|u1', 'fortran_order': False, 'shape': (9999999, 0, 2, 3), }"))
    with pytest.raises(BadInput, match="holds no pixels"):
        open_dataset(tmp_path / "x.npy")


@pytest.mark.parametrize("label", [100_000, 2**62])
def test_a_label_beyond_all_classes_is_told_and_not_counted_up_to(label: int, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 2, 2, 3), np.uint8))
    np.save(tmp_path / "labels.npy", np.array([label]))
    with pytest.raises(BadInput, match=rf"has the label {label}; class numbers go from 0 to 99,999"):
        open_dataset(tmp_path / "x.npy")


def test_so_many_shards_are_refused_before_they_are_counted() -> None:
    with pytest.raises(BadInput, match="stands for more than 100,000 shards"):
        open_dataset("x{0..999}{0..999}{0..999}.tar")


NAMES = [f"{number}.jpg" for number in range(400)]


@pytest.mark.parametrize(
    ("columns", "answer"),
    [
        ({"path": (["a.jpg"], 3_000_000)}, "3,000,000 rows in .* nearly all are the same"),
        ({"path": (NAMES, 1), "note": (["x" * 10**6], 400)}, "letters in .* leave such columns out"),
        ({"path": (NAMES, 1), "labels": ([["a", "x" * 10**6]], 400)}, "letters in .* leave such columns out"),
    ],
    ids=["rows", "texts", "texts in lists"],
)
def test_a_small_table_that_would_fill_the_memory_is_refused(
    columns: dict[str, tuple[list[Any], int]], answer: str, tmp_path: Path
) -> None:
    """Columns are values and how often they come."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    import pyarrow

    (tmp_path / "0.jpg").write_bytes(b"no matter")

    def column(values: list[Any], times: int) -> Any:
        if isinstance(values[0], list):
            texts = column([text for row in values for text in row], times)
            return pyarrow.ListArray.from_arrays(np.arange(0, len(texts) + 1, len(values[0]), dtype=np.int32), texts)
        return pyarrow.DictionaryArray.from_arrays(np.tile(np.arange(len(values), dtype=np.int32), times), values)

    table = pyarrow.table({name: column(*said) for name, said in columns.items()})
    parquet.write_table(table, tmp_path / "images.parquet", store_schema=False)  # which leaves texts as those of any table
    with pytest.raises(BadInput, match=answer):
        open_dataset(tmp_path / "images.parquet")


def test_a_deep_folder_is_stepped_through_without_resolving_its_path_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encode: Callable[..., bytes], pattern: Callable[..., NDArray[np.uint8]]
) -> None:
    deep = tmp_path.joinpath(*["d"] * 200)
    deep.mkdir(parents=True)
    (deep / "a.png").write_bytes(encode(pattern(8, 8), "PNG"))
    asked: list[str] = []
    lstat = os.lstat

    def counted(path: Any, **options: Any) -> os.stat_result:
        asked.append(str(path))
        return lstat(path, **options)

    monkeypatch.setattr(os, "lstat", counted)
    assert len(open_dataset(tmp_path).samples) == 1
    assert len(asked) < 200 * 20
