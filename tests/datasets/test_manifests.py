"""Manifests: paths, labels and facts from a table."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shiftproof.datasets import open_dataset
from shiftproof.errors import BadInput

Draw = Callable[..., Path]

ROWS: list[dict[str, Any]] = [
    {"path": "a.png", "label": "cat", "site": "north", "camera": 3, "exposure": 0.5},
    {"path": "sub/b.png", "label": "dog", "site": "south", "camera": 4, "exposure": 1.0},
    {"path": "c.png", "label": None, "site": None, "camera": None, "exposure": None},
]


@pytest.fixture
def folder(tmp_path: Path, draw: Draw) -> Path:
    for row in ROWS:
        draw(tmp_path / str(row["path"]))
    return tmp_path


def _write(path: Path) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n", encoding="utf-8")
    else:
        mark = "\t" if path.suffix == ".tsv" else ","
        lines = [mark.join(ROWS[0])] + [
            mark.join("" if cell is None else str(cell) for cell in row.values()) for row in ROWS
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet"])
def test_every_kind_of_table_says_the_same(ending: str, folder: Path) -> None:
    images = open_dataset(_write(folder / f"list.{ending}"))
    assert images.classes is not None
    assert images.classes.names == ("cat", "dog")
    assert [(sample.id, sample.labels) for sample in images.samples] == [("a.png", (0,)), ("sub/b.png", (1,)), ("c.png", ())]
    assert [dict(sample.facts) for sample in images.samples] == [
        {"site": "north", "camera": 3, "exposure": 0.5},
        {"site": "south", "camera": 4, "exposure": 1.0},
        {"site": None, "camera": None, "exposure": None},
    ]
    assert images.ref.name == "list"
    source = images.source(images.samples[1])
    assert source.decode(source.read()).shape == (8, 12, 3)


def test_a_folder_with_a_manifest_is_opened_by_it_unless_told_otherwise(folder: Path) -> None:
    _write(folder / "manifest.csv")
    images = open_dataset(folder)
    assert images.notes == ("listed by manifest.csv",)
    assert images.ref.name == folder.name
    assert {"site", "camera"} <= set(images.samples[0].facts)
    plain = open_dataset(folder, kind="folder")
    assert not plain.samples[0].facts
    again = open_dataset(plain.ref.location or "")
    assert again.ref == plain.ref


def test_facts_change_the_fingerprint(folder: Path) -> None:
    before = open_dataset(_write(folder / "list.csv")).ref.fingerprint
    (folder / "list.csv").write_text((folder / "list.csv").read_text().replace("north", "west"))
    assert open_dataset(folder / "list.csv").ref.fingerprint != before


def test_several_labels_ids_and_credits_have_columns_of_their_own(folder: Path) -> None:
    (folder / "list.csv").write_text(
        "id,path,labels,credit\nfirst,a.png,cat|dog,NASA (free)\nsecond,a.png,,NASA (free)\nthird,c.png,eel,\n"
    )
    images = open_dataset(folder / "list.csv")
    assert [(sample.id, sample.labels) for sample in images.samples] == [("first", (0, 1)), ("second", ()), ("third", (2,))]
    assert images.credits == ("NASA (free)",)
    assert images.samples[0].facts == {}


def test_numbers_with_leading_zeros_stay_names_and_bare_numbers_are_places(folder: Path) -> None:
    (folder / "list.csv").write_text("path,label,patient\na.png,2,007\nc.png,0,012\n")
    images = open_dataset(folder / "list.csv")
    assert images.classes is not None
    assert images.classes.names == ("0", "1", "2")
    assert images.samples[0].facts == {"patient": "007"}


def test_quoted_commas_line_breaks_and_byte_order_marks_are_read(folder: Path, draw: Draw) -> None:
    draw(folder / "x, y.png")
    (folder / "list.csv").write_bytes('\ufeffpath,note\n"x, y.png","two\nlines"\n'.encode())
    images = open_dataset(folder / "list.csv")
    assert images.samples[0].id == "x, y.png"
    assert images.samples[0].facts == {"note": "two\nlines"}
    assert images.classes is None


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("m.csv", "file,label\na.png,cat\n", "should have a column 'path', but has file, label"),
        ("m.csv", "path,label\n", "lists no images"),
        ("m.csv", "path,label\na.png,cat,extra\n", "row 2: not as many cells"),
        ("m.csv", "path,label\na.png,cat\na.png,dog\n", "lists a.png twice; give each row an id"),
        ("m.csv", "path,label\ngone.png,cat\n", "but there is no such file; paths are relative to"),
        ("m.csv", "path,label\n,cat\n", "image 1: no path"),
        ("m.jsonl", '{"path": "a.png"}\n{"path": \n', "line 2 is not JSON"),
        ("m.jsonl", '["a.png"]\n', "line 1: should be an object"),
        ("m.csv", "path,label\na.png,cat\nb\0.png,cat\n", "not text in UTF-8"),
        ("m.jsonl", '{"path": "a.png"}\n{"path": "b\\u0000.png"}\n', "not text in UTF-8"),
        ("m.parquet", "PAR1 nonsense", "cannot be read as Parquet"),
    ],
)
def test_a_bad_manifest_gets_one_sentence(name: str, text: str, says: str, folder: Path) -> None:
    (folder / name).write_text(text)
    with pytest.raises(BadInput, match=says):
        open_dataset(folder / name)


def test_minus_one_in_a_table_is_an_image_without_a_label(tmp_path: Path, draw: Draw) -> None:
    for name in "abc":
        draw(tmp_path / f"{name}.png")
    (tmp_path / "manifest.csv").write_text("path,label\na.png,2\nb.png,-1\nc.png,0\n")
    images = open_dataset(tmp_path)
    assert [sample.labels for sample in images.samples] == [(2,), (), (0,)]
    assert images.classes is not None
    assert images.classes.names == ("0", "1", "2")


@pytest.mark.parametrize("path", ["../photo.png", "{root}/photo.png", "sub/../../photo.png", "/dev/zero"])
def test_files_outside_the_folder_are_read_only_where_that_is_allowed(path: str, tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "photo.png")
    draw(tmp_path / "set" / "a.png")
    manifest = tmp_path / "set" / "m.csv"
    manifest.write_text(f"path\na.png\n{path.format(root=tmp_path)}\n")
    with pytest.raises(
        BadInput, match=r"m\.csv, image 2: .* lies outside .*; .* say --allow-outside, or open .*allow_outside=true"
    ):
        open_dataset(manifest)
    assert len(open_dataset(f"{manifest}?allow_outside=true").samples) == 2
    with pytest.raises(BadInput, match="lies outside"):
        open_dataset(manifest, kind="clips")


def test_a_path_that_leaves_the_folder_and_comes_back_is_inside(tmp_path: Path, draw: Draw) -> None:
    draw(tmp_path / "..a.png")
    manifest = tmp_path / "m.csv"
    manifest.write_text(f"path\n..a.png\n./sub/../..a.png\n{tmp_path}/..a.png\n")
    assert len(open_dataset(manifest).samples) == 3


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("m.csv", "path,label,label\na.png,cat,dog\n", "two columns called 'label'"),
        ("m.csv", "path,path\na.png,b.png\n", "two columns called 'path'"),
        ("m.jsonl", '{"path": "a.png", "label": "cat", "label": "dog"}\n', "line 1 gives 'label' twice"),
    ],
)
def test_two_columns_of_one_name_are_refused(name: str, text: str, says: str, folder: Path) -> None:
    (folder / name).write_text(text)
    with pytest.raises(BadInput, match=says):
        open_dataset(folder / name)


def test_of_several_columns_of_labels_the_first_is_taken_and_said(folder: Path) -> None:
    (folder / "m.csv").write_text("path,wnid,label\na.png,n01440764,fish\n")
    images = open_dataset(folder / "m.csv")
    assert images.classes is not None
    assert images.classes.names == ("fish",)
    assert "labels from the column label; ignored: wnid" in images.notes


def test_parquet_with_two_columns_of_one_name_or_dates_beyond_the_calendar_is_told(folder: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = folder / "m.parquet"
    names, label = pyarrow.array(["a.png"]), pyarrow.array(["cat"])
    parquet.write_table(pyarrow.table([names, label, label], names=["path", "label", "label"]), path)
    with pytest.raises(BadInput, match="two columns called 'label'"):
        open_dataset(path)
    for unit in ("us", "ms"):
        parquet.write_table(pyarrow.table({"path": names, "taken": pyarrow.array([2**61], pyarrow.timestamp(unit))}), path)
        with pytest.raises(BadInput, match="holds a date outside the years 1 to 9999"):
            open_dataset(path)
