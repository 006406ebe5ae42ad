"""Images in columns of Parquet and Arrow files, as Hugging Face's library and Hub keep them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput

pyarrow: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")
ipc: Any = pytest.importorskip("pyarrow.ipc")

Draw = Callable[..., Path]
FEATURES = {"picture": {"_type": "Image"}, "kind": {"_type": "ClassLabel", "names": ["cat", "dog", "eel"]}}


@pytest.fixture
def pictures(tmp_path: Path, draw: Draw) -> list[bytes]:
    """Five images, each of a size of its own."""
    return [draw(tmp_path / "drawn" / f"{width}.png", width=width).read_bytes() for width in range(8, 13)]


def table_of(pictures: list[bytes], *, first: int = 0) -> Any:
    """A table as the library makes it: structs of bytes and a path, numbers of classes, and what the columns are."""
    cells = pyarrow.array(
        [{"bytes": data, "path": f"{place}.png"} for place, data in enumerate(pictures)],
        pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())]),
    )
    kinds = [(first + place) % 4 - 1 for place in range(len(pictures))]
    columns = {"site": ["north"] * len(pictures), "picture": cells, "kind": kinds, "tags": [["a", "b"]] * len(pictures)}
    described = {"huggingface": json.dumps({"info": {"features": FEATURES}})}
    return pyarrow.table(columns).replace_schema_metadata(described)


def write_arrow(path: Path, table: Any, *, rows: int = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pyarrow.OSFile(str(path), "wb") as file, ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table, max_chunksize=rows)


def save_to_disk(folder: Path, table: Any) -> None:
    write_arrow(folder / "data-00000-of-00001.arrow", table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))


def read_all(images: Any) -> list[bytes]:
    return [images.source(sample).read() for sample in images.samples]


def test_a_saved_folder_gives_images_labels_and_facts(tmp_path: Path, pictures: list[bytes]) -> None:
    save_to_disk(tmp_path / "saved", table_of(pictures))
    images = open_dataset(tmp_path / "saved")
    assert [sample.labels for sample in images.samples] == [(), (0,), (1,), (2,), ()]
    assert images.classes is not None
    assert images.classes.names == ("cat", "dog", "eel")
    assert images.samples[4].id == "data-00000-of-00001/000004"
    assert dict(images.samples[0].facts) == {"site": "north", "tags": '["a", "b"]'}
    assert read_all(images) == pictures
    source = images.source(images.samples[3])
    assert source.decode(source.read()).shape == (8, 11, 3)


def test_of_several_splits_one_is_named(tmp_path: Path, pictures: list[bytes]) -> None:
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    save_to_disk(tmp_path / "saved" / "train", table_of(pictures))
    save_to_disk(tmp_path / "saved" / "test", table_of(pictures[:2]))
    with pytest.raises(BadInput, match="holds the splits test, train; name one with split="):
        open_dataset(tmp_path / "saved")
    with pytest.raises(BadInput, match="has no split 'val'; it has test, train"):
        open_dataset(tmp_path / "saved", split="val")
    assert read_all(open_dataset(f"hf-dataset:{tmp_path / 'saved'}?split=test")) == pictures[:2]


def test_parquet_files_are_read_a_row_group_at_a_time(tmp_path: Path, pictures: list[bytes]) -> None:
    (tmp_path / "data").mkdir()
    parquet.write_table(table_of(pictures[:3]), tmp_path / "data" / "val-00000-of-00002.parquet", row_group_size=2)
    parquet.write_table(table_of(pictures[3:], first=3), tmp_path / "data" / "val-00001-of-00002.parquet")
    images = open_dataset(f"hf-dataset:{tmp_path}?split=validation&label_column=site")
    assert read_all(images) == pictures
    assert images.classes is not None
    assert images.classes.names == ("north",)
    assert [sample.facts["kind"] for sample in images.samples] == [-1, 0, 1, 2, -1]


def test_cells_may_be_bare_bytes_or_files_beside_the_table(tmp_path: Path, pictures: list[bytes]) -> None:
    parquet.write_table(pyarrow.table({"text": [b"no"], "img": [pictures[0]], "label": [7]}), tmp_path / "bare.parquet")
    bare = open_dataset(tmp_path / "bare.parquet", kind="hf-dataset")
    assert (read_all(bare), bare.samples[0].labels) == ([pictures[0]], (7,))
    outside = (tmp_path / "secret.png").resolve()
    outside.write_bytes(pictures[1])
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "a.png").write_bytes(pictures[2])
    cells = [{"bytes": None, "path": path} for path in ("a.png", "../secret.png", str(outside), None)]
    parquet.write_table(pyarrow.table({"image": cells}), tmp_path / "inner" / "named.parquet")
    named = open_dataset(tmp_path / "inner" / "named.parquet", kind="hf-dataset")
    assert named.source(named.samples[0]).read() == pictures[2]
    for sample in named.samples[1:]:
        with pytest.raises(OSError, match="no bytes and no path of a file beside the table"):
            named.source(sample).read()


def test_a_name_that_is_no_folder_is_one_on_the_hub(pictures: list[bytes]) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    memory: Any = pytest.importorskip("fsspec.implementations.memory")

    class Hub(memory.MemoryFileSystem):  # type: ignore[misc]
        protocol = "hf"

        @classmethod
        def _strip_protocol(cls, path: str) -> str:
            return str(super()._strip_protocol(path.replace("hf://", "memory://", 1)))

    known = fsspec.registry.get("hf")
    fsspec.register_implementation("hf", Hub, clobber=True)
    try:
        data = pyarrow.BufferOutputStream()
        parquet.write_table(table_of(pictures), data)
        Hub().pipe_file("/datasets/me/pets@~parquet/default/test/0000.parquet", data.getvalue().to_pybytes())
        images = open_dataset("hf-dataset:me/pets?split=test")
        assert read_all(images) == pictures
        assert images.location == "hf-dataset:hf://datasets/me/pets@~parquet?split=test"
        assert images.name == "pets"
        assert open_dataset(images.location).ref == images.ref
    finally:
        Hub().rm("/datasets", recursive=True)
        if known is not None:
            fsspec.register_implementation("hf", known, clobber=True)
        else:
            sys.modules["fsspec.registry"]._registry.pop("hf", None)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_broken_table_is_told_in_a_sentence(name: str, tmp_path: Path, pictures: list[bytes]) -> None:
    path = tmp_path / name
    if name.endswith("arrow"):
        write_arrow(path, table_of(pictures))
    else:
        parquet.write_table(table_of(pictures), path)
    whole = path.read_bytes()
    for broken in (b"", b"no table", whole[: len(whole) // 2], whole[100:]):
        path.write_bytes(broken)
        with pytest.raises(BadInput, match=r"cannot be read as|no column of images|names no images"):
            open_dataset(path, kind="hf-dataset")


def test_a_table_of_images_that_is_taken_for_a_list_is_told_what_to_say(tmp_path: Path, pictures: list[bytes]) -> None:
    parquet.write_table(table_of(pictures), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match=r"names no files; .* open hf-dataset:"):
        open_dataset(tmp_path / "a.parquet")


def test_a_column_without_images_is_told_in_a_sentence(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"path": ["a.png"]}), tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="has no column of images; its columns are path"):
        open_dataset(tmp_path / "a.parquet", kind="hf-dataset")
    with pytest.raises(BadInput, match="has no column 'x'; it has path"):
        open_dataset(tmp_path / "a.parquet", kind="hf-dataset", image_column="x")
    with pytest.raises(BadInput, match="should hold the bytes of images, got string"):
        open_dataset(tmp_path / "a.parquet", kind="hf-dataset", image_column="path")
