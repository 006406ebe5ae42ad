"""Manifests: tables of images in CSV, TSV, JSON lines or Parquet, with labels and any other column as a fact."""

from __future__ import annotations

import csv
import io
import json
import os
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from shiftproof.datasets.image_list import FileImage, ImageList, file_image
from shiftproof.datasets.labels import LabelKeys, label_keys, places_of
from shiftproof.datasets.layout import Example, layout, yes_or_no
from shiftproof.datasets.listing import folder_name, inner_root
from shiftproof.errors import BadInput, listed
from shiftproof.files import parse_json, read_text, repeated
from shiftproof.places import absolute, check_url, exists, is_file, is_folder, is_url, joined, local_file
from shiftproof.registry import missing_extra
from shiftproof.types import Classes, Fact, Sample

Row: TypeAlias = Mapping[str, Any]

MANIFEST_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
MANIFEST_NAMES = tuple(f"manifest{ending}" for ending in MANIFEST_ENDINGS)

PATH_COLUMNS = ("path", "file_name", "filename")
LABEL_COLUMNS = ("label", "labels", "wnid", "class")
OWN_COLUMNS = frozenset({"id", "credit", *PATH_COLUMNS, *LABEL_COLUMNS})
SEPARATOR = "|"
"""Separates several labels in one cell of the column `labels`."""


@dataclass(frozen=True)
class ManifestFiles:
    """Finds an image by the path that the manifest gives for its id."""

    root: str
    paths: Mapping[str, str]
    allow_outside: bool = False

    def __call__(self, image_id: str) -> FileImage:
        return file_image(joined(self.root, self.paths[image_id]))


@layout(
    holds="a `.csv`, `.tsv`, `.jsonl` or `.parquet` file, or a folder with a `manifest` of that ending in it",
    labels="the column `label` or `labels`",
    endings=MANIFEST_ENDINGS,
    recognise=lambda folder: any(name in folder.files for name in MANIFEST_NAMES),
    written=("crops",),
    example=Example({"a.png": "", "list.csv": "path,label,site\na.png,cat,north\n"}, "list.csv"),
)
def open_manifest(
    location: str, *, name: str | None = None, classes: Classes | None = None, allow_outside: bool | str = False
) -> ImageList:
    """The images of a table with a column `path`, relative to the table's folder.

    A column `label` holds one class; `labels` several, any of which is correct. `id` replaces the path as the image's id,
    `credit` says where images come from, and every other column is a fact. Files outside the table's folder are read only
    with `allow_outside`: whoever wrote the table would choose which files of this machine are shown.
    """
    path = _manifest_in(location) if is_folder(location) else location
    rows = _load_rows(path)
    if not rows:
        raise BadInput(f"{path} lists no images")
    path_column = _column(rows, PATH_COLUMNS)
    if path_column is None:
        raise BadInput(f"{path} should have a column 'path', but has {listed(rows[0])}")
    root = os.path.dirname(absolute(path))
    allowed = yes_or_no("allow_outside", allow_outside)
    paths = _paths(path, rows, path_column, root, allow_outside=allowed)
    keys = _label_keys(rows)
    found, places = places_of((key for image in keys for key in image), classes)
    facts = _facts(rows)
    samples = [
        Sample(image_id, tuple(places[key] for key in image), fact)
        for image_id, image, fact in zip(paths, keys, facts, strict=True)
    ]
    return ImageList(
        name or folder_name(os.path.splitext(path)[0] if path == location else location),
        samples,
        found if any(keys) else None,
        ManifestFiles(root, paths, allowed),
        notes=(f"listed by {os.path.basename(path)}", *_other_labels(rows)),
        credits=tuple(dict.fromkeys(str(row["credit"]) for row in rows if row.get("credit"))),
    )


def joined_labels(labels: Iterable[str]) -> str:
    """Several labels as they stand in one cell; BadInput where one of them would be read as two.

    >>> joined_labels(["cat", "dog"])
    'cat|dog'
    """
    labels = list(labels)
    if odd := [label for label in labels if SEPARATOR in label]:
        raise BadInput(f"{listed(odd)} would be read as several classes, since {SEPARATOR} separates them; rename it")
    return SEPARATOR.join(labels)


def _manifest_in(location: str) -> str:
    folder = inner_root(location)
    for name in MANIFEST_NAMES:
        if is_file(os.path.join(folder, name)):
            return os.path.join(folder, name)
    raise BadInput(f"{location} has no manifest; expected one of {', '.join(MANIFEST_NAMES)}")


def _load_rows(path: str) -> list[Row]:
    ending = os.path.splitext(path)[1].lower()
    if ending == ".parquet":
        return [*load_parquet_rows(local_file(path))]
    text = read_text(path, errors="surrogateescape")
    if "\0" in text or (ending == ".jsonl" and r"\u0000" in text):
        raise BadInput(f"{path} is not text in UTF-8: it holds zeros, which no name does")
    return _json_rows(path, text) if ending == ".jsonl" else _csv_rows(path, text, "\t" if ending == ".tsv" else ",")


def _csv_rows(path: str, text: str, delimiter: str) -> list[Row]:
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        rows = list(reader)
    except csv.Error as problem:
        raise BadInput(f"{path} is not a table: {problem}") from problem
    if (twice := repeated(reader.fieldnames or ())) is not None:
        raise BadInput(f"{path} has two columns called {twice!r}; rename or remove one of them")
    # the csv module files cells without a column under None, and columns without a cell as None
    uneven = next((line for line, row in enumerate(rows, 2) if None in row or None in row.values()), None)
    if uneven:
        raise BadInput(f"{path}, row {uneven}: not as many cells as the heading has columns")
    columns: dict[str, list[Fact]] = {
        column: [row[column] for row in rows] if column in OWN_COLUMNS else _typed([row[column] for row in rows])
        for column in (rows[0] if rows else ())
    }
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _typed(cells: Sequence[str]) -> list[Fact]:
    """A column as whole numbers, numbers or text, whichever fits every cell; an empty cell is None.

    A number with a zero in front, such as 007, is a name.
    """
    filled = [cell for cell in cells if cell]
    named = any(cell.lstrip("-").startswith("0") and cell.lstrip("-")[1:2].isdecimal() for cell in filled)
    for kind in (int, float) if filled and not named else ():
        try:
            return [kind(cell) if cell else None for cell in cells]
        except ValueError:
            continue
    return [cell or None for cell in cells]


def _json_rows(path: str, text: str) -> list[Row]:
    rows: list[Row] = []
    # not splitlines: JSON text may hold other line separators
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        row = parse_json(line, f"{path}, line {number}", unique=True)
        if not isinstance(row, dict):
            raise BadInput(f'{path}, line {number}: should be an object such as {{"path": "a.jpg", "label": "cat"}}')
        rows.append(row)
    return rows


def _paths(path: str, rows: Sequence[Row], column: str, root: str, *, allow_outside: bool) -> dict[str, str]:
    """The file of every id, in the order of the table."""
    paths: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        file = str(row.get(column) or "")
        image_id = str(row.get("id") or file.replace(os.sep, "/"))
        if not file:
            raise BadInput(f"{path}, image {number}: no path")
        if "://" in file:
            check_url(file)
        if not allow_outside and leads_outside(file, root):
            raise BadInput(
                f"{path}, image {number}: {file} lies outside {root}; where the table may name such files, say "
                f"--allow-outside, or open {path}?allow_outside=true"
            )
        if image_id in paths:
            raise BadInput(f"{path} lists {image_id} twice; give each row an id of its own in a column 'id'")
        paths[image_id] = file
    first = list(paths.values())[:50]
    if not any(exists(joined(root, file)) for file in first):
        raise BadInput(f"{path} lists {first[0]}, but there is no such file; paths are relative to {root}")
    return paths


def leads_outside(file: str, root: str) -> bool:
    """Whether a path, relative to a folder or not, names something outside it.

    >>> leads_outside("a/b.jpg", "/data"), leads_outside("a/../../b.jpg", "/data"), leads_outside("/data/b.jpg", "/data")
    (False, True, False)
    """
    if is_url(file):
        return not file.startswith(f"{root}/") or leads_outside(file.removeprefix(f"{root}/"), root)
    if os.path.isabs(file):
        return not os.path.normpath(file).startswith(os.path.join(root, ""))
    # most paths have no such step, and a manifest may have a million rows
    return ".." in file and posixpath.normpath(file.replace(os.sep, "/")).split("/")[0] == ".."


def _other_labels(rows: Sequence[Row]) -> tuple[str, ...]:
    """The note where several columns could be the labels."""
    found = [name for name in LABEL_COLUMNS if any(name in row for row in rows)]
    return (f"labels from the column {found[0]}; ignored: {listed(found[1:])}",) if len(found) > 1 else ()


def _label_keys(rows: Sequence[Row]) -> list[LabelKeys]:
    column = _column(rows, LABEL_COLUMNS)
    if column is None:
        return [()] * len(rows)
    cells = [row.get(column) for row in rows]
    if column == "labels":
        cells = [cell.split(SEPARATOR) if isinstance(cell, str) else cell for cell in cells]
    return [label_keys(cell) for cell in cells]


def _facts(rows: Sequence[Row]) -> list[dict[str, Fact]]:
    facts = []
    for row in rows:
        own = {column: value for column, value in row.items() if column not in OWN_COLUMNS}
        facts.append({c: v if isinstance(v, (str, int, float, bool, type(None))) else json.dumps(v) for c, v in own.items()})
    return facts


def _column(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    there = {column for row in rows for column in row}
    return next((name for name in names if name in there), None)


ROWS_A_BYTE, MOST_ROWS = 16, 100_000
LETTERS_A_BYTE, MOST_LETTERS = 64, 2**28
"""How much a file may hold for each of its bytes, and in any case: repeated values take next to no room in it."""


def load_parquet_rows(path: str) -> list[dict[str, Any]]:
    """The rows of a Parquet table as plain values, dates as text."""
    try:
        import pyarrow.lib
        import pyarrow.parquet
    except ModuleNotFoundError as missing:
        raise missing_extra("a Parquet manifest", missing) from missing
    try:
        schema = pyarrow.parquet.read_schema(path)
        if twice := repeated(schema.names):
            raise BadInput(f"{path} has two columns called {twice!r}; rename or remove one of them")
        if not set(PATH_COLUMNS) & set(schema.names) and any(pyarrow.types.is_struct(kind) for kind in schema.types):
            raise BadInput(f"{path} names no files; where a column holds the images themselves, open hf-dataset:{path}")
        _check_amount(path)
        rows: list[dict[str, Any]] = pyarrow.parquet.read_table(path).to_pylist()
    except OverflowError as problem:
        raise BadInput(f"{path} holds a date outside the years 1 to 9999") from problem
    except (OSError, pyarrow.lib.ArrowException, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} cannot be read as Parquet: {problem}") from problem
    plain = (str, int, float, bool, list, type(None))
    return [{column: value if isinstance(value, plain) else str(value) for column, value in row.items()} for row in rows]


def _check_amount(path: str) -> None:
    """BadInput for a small file that would be a very large table: every image has its own name, and few have long texts."""
    import pyarrow.parquet

    size = os.path.getsize(path)
    with pyarrow.parquet.ParquetFile(path) as file:
        columns = [file.schema.column(place) for place in range(len(file.schema))]
        rows = file.metadata.num_rows
    if rows > MOST_ROWS + ROWS_A_BYTE * size:
        raise BadInput(
            f"{path} holds {rows:,} rows in {size:,} bytes, so nearly all are the same; a list names each image once"
        )
    texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
    # texts that repeat stay together so, and are counted before they are spread out
    with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
        letters = sum(map(_letters, file.read(columns=texts).columns))
    if letters > MOST_LETTERS + LETTERS_A_BYTE * size:
        raise BadInput(
            f"{path} holds {letters:,} letters in {size:,} bytes, so nearly all are the same; leave such columns out"
        )


def _letters(column: Any) -> int:
    """The bytes of all texts of a column, those of its lists too."""
    import pyarrow.compute

    total = 0
    for chunk in column.chunks:
        part = chunk
        while pyarrow.types.is_list(part.type) or pyarrow.types.is_large_list(part.type):
            part = part.flatten()
        if pyarrow.types.is_dictionary(part.type):
            sizes = pyarrow.compute.binary_length(part.dictionary)
            total += pyarrow.compute.sum(sizes.take(part.indices)).as_py() or 0
    return total
