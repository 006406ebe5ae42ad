"""Images in a column of Parquet or Arrow files, read a block of rows at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow
import pyarrow.ipc
import pyarrow.parquet

from shiftproof.datasets.image_list import LARGEST_FILE, EncodedImage, FileImage, ImageList, file_stamp
from shiftproof.datasets.labels import label_keys, places_of
from shiftproof.datasets.manifest import LABEL_COLUMNS, MOST_ROWS, ROWS_A_BYTE, leads_outside
from shiftproof.errors import BadInput, listed
from shiftproof.files import parse_json
from shiftproof.places import is_url, local_file, open_binary, size_of
from shiftproof.types import Classes, Fact, Sample

IMAGE_COLUMNS = ("image", "img", "jpg", "png", "picture", "photo", "pixel_values")


@dataclass(frozen=True, slots=True)
class CellImage(EncodedImage):
    """An image that is a cell of a table."""

    path: str  # of the file of tables, or its URL
    column: str
    block: int  # the row group of a Parquet file, the record batch of an Arrow file
    row: int  # within the block
    version: str | None = None  # of the file, at a URL

    def stamp(self) -> str:
        return f"{_stamp(self.path, self.version)}\0{self.column}\0{self.block}\0{self.row}"

    def read(self) -> bytes:
        try:
            cell = _cells(self.path, _stamp(self.path, self.version), self.column, self.block)[self.row].as_py()
        except (BadInput, IndexError, UnicodeDecodeError, pyarrow.ArrowException) as problem:
            raise OSError(f"the cell cannot be read, or the file has changed: {problem}") from problem
        data = cell.get("bytes") if isinstance(cell, dict) else cell
        if isinstance(data, bytes):
            return data
        name = cell.get("path") if isinstance(cell, dict) else None
        folder = os.path.dirname(self.path)
        if not isinstance(name, str) or leads_outside(name, folder):
            raise OSError("the cell holds no bytes and no path of a file beside the table")
        return FileImage(os.path.join(folder, name)).read()


@dataclass(frozen=True)
class Cells:
    """Finds an image by the file, block and row behind its id."""

    column: str
    places: Mapping[str, tuple[str, int, int]]
    versions: Mapping[str, str | None]

    def __call__(self, image_id: str) -> CellImage:
        path, block, row = self.places[image_id]
        return CellImage(path, self.column, block, row, self.versions[path])


def images_in_tables(
    files: Sequence[str], root: str, *, image_column: str | None, label_column: str | None, classes: Classes | None
) -> ImageList:
    """The images of these files, whose ids are the path of the file below a folder and the number of the row."""
    with _reading(files[0]):
        columns = _columns(files[0], image_column, label_column)
    samples, keys = list[tuple[str, Mapping[str, Fact]]](), list[tuple[str, ...]]()
    places: dict[str, tuple[str, int, int]] = {}
    for path in files:
        table = _table(path)
        if columns.image not in table.names:
            raise BadInput(f"{path} has no column {columns.image!r}, as the first file has; name one config or split")
        stem = os.path.splitext(path.removeprefix(root).strip("/"))[0]
        others = [column for column in table.names if column != columns.image and _is_plain(table, column)]
        rows = _rows(table, others)
        for number, (place, row) in enumerate(zip(table.rows(), rows, strict=True)):
            image_id = f"{stem}/{number:06d}"
            places[image_id] = (path, *place)
            keys.append(_labels(row.get(columns.label) if columns.label else None, columns.names))
            samples.append((image_id, {column: _fact(row[column]) for column in others if column != columns.label}))
    named = classes or (Classes(columns.names) if columns.names else None)
    found, places_of_keys = places_of((key for image in keys for key in image), named)
    labelled = [
        Sample(image_id, tuple(places_of_keys[key] for key in image), facts)
        for (image_id, facts), image in zip(samples, keys, strict=True)
    ]
    versions = {path: _version(path) for path in files}
    note = f"images of the column {columns.image} in {len(files)} file{'s' * (len(files) > 1)}"
    return ImageList(
        "",
        sorted(labelled, key=lambda sample: sample.id),
        found if any(keys) else None,
        Cells(columns.image, places, versions),
        notes=(note,),
    )


def _version(path: str) -> str | None:
    if not is_url(path):
        return None
    from shiftproof import remote

    return remote.known(path).version


def _stamp(path: str, version: str | None) -> str:
    return file_stamp(path) if version is None else f"{path}\0{version}"


# which columns


class Columns(NamedTuple):
    """Where a table keeps images and labels."""

    image: str
    label: str | None
    names: tuple[str, ...]  # of classes, where labels are numbers


def _columns(path: str, image: str | None, label: str | None) -> Columns:
    """The columns named, or those that the table's own description or their names and types tell."""
    schema = _table(path).schema
    features = _features(path, schema)
    kinds = {name: feature.get("_type") for name, feature in features.items() if isinstance(feature, dict)}
    for given in filter(None, (image, label)):
        if given not in schema.names:
            raise BadInput(f"{path} has no column {given!r}; it has {listed(schema.names)}")
    told = [name for name in schema.names if kinds.get(name) == "Image"]
    alike = [name for name in schema.names if _holds_images(schema.field(name).type)]
    usual = [name for name in IMAGE_COLUMNS if name in alike]
    found = image or next(iter((*told, *usual, *alike)), None)
    if found is None:
        raise BadInput(f"{path} has no column of images; its columns are {listed(schema.names)}")
    if not _holds_images(schema.field(found).type):
        raise BadInput(f"{path}: the column {found!r} should hold the bytes of images, got {schema.field(found).type}")
    classed = [name for name in schema.names if kinds.get(name) == "ClassLabel"]
    labels = label or next(iter((*classed, *(name for name in LABEL_COLUMNS if name in schema.names))), None)
    names = features.get(labels or "", {})
    names = names.get("names") if isinstance(names, dict) else None
    return Columns(found, labels, tuple(map(str, names)) if isinstance(names, list) else ())


def _features(path: str, schema: Any) -> Mapping[str, Any]:
    """What the table says of its columns, in the form of Hugging Face; nothing where it does not."""
    text = (schema.metadata or {}).get(b"huggingface")
    try:
        told = {} if text is None else parse_json(text, path)
        features = told["info"]["features"]
    except (BadInput, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


def _holds_images(kind: Any) -> bool:
    if pyarrow.types.is_struct(kind):
        return "bytes" in {field.name for field in kind}
    return bool(pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind))


def _labels(cell: Any, names: Sequence[str]) -> tuple[str, ...]:
    cells = cell if isinstance(cell, list) else [cell]
    if names:
        numbers = [one for one in cells if type(one) is int and 0 <= one < len(names)]
        return tuple(names[number] for number in numbers)  # -1 stands for none
    return label_keys(cell)


# tables


class _Table:
    """A file of tables: how it is made, and its blocks."""

    schema: Any
    names: list[str]  # of the columns
    block_rows: list[int]

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self, block: int, columns: list[str]) -> Any:
        """Some columns of a block."""

    def rows(self) -> Iterator[tuple[int, int]]:
        """Block, and row in it, of every row."""
        return ((block, row) for block, rows in enumerate(self.block_rows) for row in range(rows))


class _Parquet(_Table):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._file = pyarrow.parquet.ParquetFile(open_binary(path) if is_url(path) else path)
        about = self._file.metadata
        if about.num_rows > MOST_ROWS + ROWS_A_BYTE * size_of(path):
            raise BadInput(f"{path} holds {about.num_rows:,} rows in {size_of(path):,} bytes, so nearly all are the same")
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        if any(group.total_byte_size > LARGEST_FILE for group in groups):
            raise BadInput(f"{path} has a row group of more than {LARGEST_FILE:,} bytes; write it in smaller ones")
        self.schema = self._file.schema_arrow
        self.block_rows = [group.num_rows for group in groups]

    def read(self, block: int, columns: list[str]) -> Any:
        return self._file.read_row_group(block, columns=columns)


class _Arrow(_Table):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        source = pyarrow.memory_map(local_file(path))
        try:
            reader = pyarrow.ipc.open_stream(source)
            self._batches = list(reader)
        except pyarrow.ArrowInvalid:
            source.seek(0)
            reader = pyarrow.ipc.open_file(source)
            self._batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
        self.schema = reader.schema
        self.block_rows = [batch.num_rows for batch in self._batches]

    def read(self, block: int, columns: list[str]) -> Any:
        table = pyarrow.Table.from_batches([self._batches[block]]).select(columns)
        table.validate(full=True)  # places of cells are taken from the file as they are, wherever they lead
        return table


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, ValueError) as problem:
        kind = "Arrow" if path.endswith(".arrow") else "Parquet"
        raise BadInput(f"{path} cannot be read as {kind}: {str(problem).partition(chr(10))[0]}") from problem


def _table(path: str) -> _Table:
    return _table_at(path, file_stamp(path) if not is_url(path) else str(_version(path)))


@lru_cache(maxsize=16)
def _table_at(path: str, stamp: str) -> _Table:  # noqa: ARG001 - part of the key of the cache
    with _reading(path):
        table = _Arrow(path) if path.endswith(".arrow") else _Parquet(path)
        table.names = list(table.schema.names)  # which need not be text
        return table


@lru_cache(maxsize=2)
def _cells(path: str, stamp: str, column: str, block: int) -> Any:  # noqa: ARG001 - part of the key of the cache
    """The images of a block, which batches of neighbouring images need one after the other."""
    with _reading(path):
        return _table(path).read(block, [column]).column(column)


def _rows(table: _Table, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Plain values of some columns, row by row."""
    for block, rows in enumerate(table.block_rows):
        with _reading(table.path):
            yield from table.read(block, columns).to_pylist() if columns else [{}] * rows


def _is_plain(table: _Table, column: str) -> bool:
    """Whether a column may be a fact or labels: no bytes, and nothing nested but lists of labels."""
    kind = table.schema.field(column).type
    if pyarrow.types.is_list(kind):
        kind = kind.value_type
    nested = pyarrow.types.is_nested(kind) or pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind)
    return not nested


def _fact(value: Any) -> Fact:
    return value if isinstance(value, (str, int, float, bool, type(None))) else json.dumps(value, default=str)
