"""Tar shards: images read inside the archive, hostile ones included."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from shiftproof.datasets import open_dataset
from shiftproof.datasets.image_list import decoded
from shiftproof.errors import BadInput


@pytest.fixture
def png(encode: Callable[..., bytes], pattern: Callable[[int, int], NDArray[np.uint8]]) -> bytes:
    return encode(pattern(8, 12), "PNG")


def _archive(path: Path, members: Mapping[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def test_labels_and_facts_come_from_the_members_beside_an_image(tmp_path: Path, png: bytes) -> None:
    facts = {"label": 2, "camera": "left", "box": [1, 2], "night": True}
    members = {"x/a.png": png, "x/a.cls": b"1\n", "x/b.json": json.dumps(facts).encode(), "x/b.png": png, "x/b.seg.png": png}
    images = open_dataset(_archive(tmp_path / "set.tar", members))
    assert [(sample.id, sample.labels, sample.facts) for sample in images.samples] == [
        ("x/a.png", (1,), {}),
        ("x/b.png", (2,), {"camera": "left", "night": True}),
    ]
    assert images.notes == (
        "read from one shard without unpacking",
        "further images of a sample, ignored: 1",
    )
    assert images.ref.name == "set"


def test_bytes_are_those_of_the_member(tmp_path: Path, png: bytes) -> None:
    images = open_dataset(_archive(tmp_path / "set.tar", {"a.png": png, "b.png": png + b"tail"}))
    assert images.source(images.samples[0]).read() == png
    assert images.source(images.samples[1]).read() == png + b"tail"
    stamps = {images.source(sample).stamp() for sample in images.samples}
    assert len(stamps) == 2


def test_class_folders_inside_an_archive_count_as_on_disk(tmp_path: Path, png: bytes) -> None:
    members = {f"imagenet-r/{wnid}/art_0.png": png for wnid in ("n01443537", "n01484850")}
    images = open_dataset(_archive(tmp_path / "r.tar", members))
    assert images.classes is not None
    assert images.classes.names == ("goldfish", "great white shark")
    # dots in file names do not join images that only begin alike
    plain = {"pets/cat/0.1_a.png": png, "pets/cat/0.1_b.png": png, "pets/dog/0.1_a.png": png}
    pets = open_dataset(_archive(tmp_path / "pets.tar", plain))
    assert pets.classes is not None
    assert pets.classes.names == ("cat", "dog")
    assert len(pets.samples) == 3


@pytest.mark.parametrize("shards", ["", "set-{000..001}.tar", "set-{000,001}.tar", "set-*.tar", "set-00[01].tar"])
def test_a_folder_or_pattern_of_shards_is_one_set(shards: str, tmp_path: Path, png: bytes) -> None:
    for shard in range(2):
        _archive(tmp_path / f"set-{shard:03}.tar", {"a.png": png, "a.cls": str(shard).encode()})
    images = open_dataset(str(tmp_path / shards) if shards else tmp_path)
    assert [sample.id for sample in images.samples] == ["set-000.tar/a.png", "set-001.tar/a.png"]
    assert [sample.labels for sample in images.samples] == [(0,), (1,)]
    assert open_dataset(images.ref.location or "").ref == images.ref


def test_shards_without_annotations_are_labelled_by_folder_and_not_by_shard(tmp_path: Path, png: bytes) -> None:
    _archive(tmp_path / "0.tar", {"cat/a.png": png, "dog/a.png": png})
    _archive(tmp_path / "1.tar", {"cat/a.png": png})
    images = open_dataset(tmp_path)
    assert [(s.id, s.labels) for s in images.samples] == [
        ("0.tar/cat/a.png", (0,)),
        ("0.tar/dog/a.png", (1,)),
        ("1.tar/cat/a.png", (0,)),
    ]


def test_names_that_climb_out_of_the_archive_stay_in_it(tmp_path: Path, png: bytes) -> None:
    secret = tmp_path / "secret.png"
    secret.write_bytes(b"secret")
    path = tmp_path / "in" / "evil.tar"
    path.parent.mkdir()
    with tarfile.open(path, "w") as archive:
        for name in ("../secret.png", "/etc/secret.png", "..\\..\\up.png", "good.png"):
            entry = tarfile.TarInfo(name)
            entry.size = len(png)
            archive.addfile(entry, io.BytesIO(png))
        for name, kind in (("link.png", tarfile.SYMTYPE), ("hard.png", tarfile.LNKTYPE), ("device.png", tarfile.CHRTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, str(secret)
            archive.addfile(entry)
    images = open_dataset(path)
    assert {sample.id for sample in images.samples} == {"secret.png", "etc/secret.png", "up.png", "good.png"}
    assert all(images.source(sample).read() == png for sample in images.samples)


def test_a_shard_that_breaks_off_or_is_compressed_is_refused(tmp_path: Path, png: bytes) -> None:
    whole = _archive(tmp_path / "a.tar", {"a.png": png, "b.png": png}).read_bytes()
    (tmp_path / "cut.tar").write_bytes(whole[: 512 + 20])
    with pytest.raises(BadInput, match=r"breaks off inside a\.png"):
        open_dataset(tmp_path / "cut.tar")
    _archive(tmp_path / "packed.tar", {"a.png": png}, "w:gz")
    with pytest.raises(BadInput, match="not a whole, uncompressed tar"):
        open_dataset(tmp_path / "packed.tar")
    with pytest.raises(BadInput, match=r"no such shard: .*x-2\.tar"):
        open_dataset(str(tmp_path / "x-{2..3}.tar"))
    with pytest.raises(BadInput, match="no images in"):
        open_dataset(_archive(tmp_path / "none.tar", {"readme.txt": b"hello"}))
    with pytest.raises(BadInput, match="is not JSON"):
        open_dataset(_archive(tmp_path / "bad.tar", {"a.json": b"{", "a.png": png}))


def test_an_archive_that_shrinks_while_open_is_an_error_and_not_short_bytes(tmp_path: Path, png: bytes) -> None:
    path = _archive(tmp_path / "a.tar", {"a.png": png})
    images = open_dataset(path)
    path.write_bytes(path.read_bytes()[:530])
    with pytest.raises(OSError, match="shorter than when it was opened"):
        images.source(images.samples[0]).read()


@pytest.mark.parametrize(
    ("said", "says"),
    [
        (b"{", "a.json is not JSON"),
        (b"[" * 100_000, "a.json is nested too deeply to be read"),
        (b"[1]", "a.json should be a JSON object"),
        (rb'{"label": "\ud800"}', "a.json holds half a character"),
        (b" " * (2**24 + 1), "a.json has 16,777,217 bytes, too many"),
    ],
    ids=["cut off", "deep", "list", "half a character", "large"],
)
def test_an_image_with_a_broken_annotation_is_skipped_and_no_other(
    said: bytes, says: str, tmp_path: Path, png: bytes
) -> None:
    members = {"a.png": png, "a.json": said, "b.png": png, "b.json": b'{"label": "cat"}'}
    images = open_dataset(_archive(tmp_path / "s.tar", members))
    first, second = (decoded(images.source(sample)) for sample in images.samples)
    assert says in str(first)
    assert not isinstance(second, str)
    assert images.samples[1].labels == (0,)
