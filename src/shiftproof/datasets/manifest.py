"""Manifests: tables of images in CSV, TSV, JSON lines or Parquet, with labels and any other column as a fact."""

from __future__ import annotations

import csv
import json
import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import BLOCK, Coded, GrowingCells, GrowingTexts, Parsed, Texts, in_blocks, room
from shiftproof.datasets.image_list import FileImage, ImageList, file_image
from shiftproof.datasets.labels import LabelKeys, label_keys, places_of
from shiftproof.datasets.layout import Example, layout, yes_or_no
from shiftproof.datasets.listing import folder_name, inner_root
from shiftproof.datasets.sample_table import ABSENT, FactColumn, SampleTable
from shiftproof.errors import BadInput, listed
from shiftproof.files import parse_json, reading_text, repeated
from shiftproof.places import absolute, check_url, exists, is_file, is_folder, is_url, joined, local_file
from shiftproof.registry import missing_extra
from shiftproof.types import Classes, Fact

Row: TypeAlias = Mapping[str, Any]

MANIFEST_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
MANIFEST_NAMES = tuple(f"manifest{ending}" for ending in MANIFEST_ENDINGS)

PATH_COLUMNS = ("path", "file_name", "filename")
LABEL_COLUMNS = ("label", "labels", "wnid", "class")
DIGEST_COLUMN = "blake2b"
TEXT_COLUMNS = ("id", DIGEST_COLUMN, *PATH_COLUMNS)
OWN_COLUMNS = frozenset({"credit", *TEXT_COLUMNS, *LABEL_COLUMNS})
DIGEST_LETTERS = 32
DIGESTS = re.compile("[0-9a-f]*")
SEPARATOR = "|"
"""Separates several labels in one cell of the column `labels`."""

ROWS_AT_ONCE, LETTERS_AT_ONCE = 4096, 2**20
"""Rows of JSON or Parquet, which may be large, that are Python objects at a time; and letters of lines."""


@dataclass(frozen=True)
class ManifestFiles:
    """Finds an image by the path that the manifest gives for its id."""

    root: str
    table: SampleTable
    paths: Texts  # of each sample
    allow_outside: bool = False

    def __call__(self, image_id: str) -> FileImage:
        place = self.table.ids.place(image_id)
        if place is None:
            raise KeyError(image_id)
        digest = None if self.table.digests is None else self.table.digests[place].tobytes()
        told = digest.hex() if digest and any(digest) else None
        return file_image(joined(self.root, self.paths[place]), told)

    def each(self) -> Iterator[FileImage]:
        """The images of the whole table, in its order."""
        if self.table.digests is not None:
            return map(self, self.table.ids)
        return (file_image(joined(self.root, path)) for path in self.paths)


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
    `credit` says where images come from, `blake2b` is the hash of each file, so that none is asked for its time to know
    what is stored of it, and every other column is a fact. Files outside the table's folder are read only
    with `allow_outside`: whoever wrote the table would choose which files of this machine are shown.
    """
    path = _manifest_in(location) if is_folder(location) else location
    columns = _load_columns(path)
    if not columns.rows:
        raise BadInput(f"{path} lists no images")
    path_column = next((name for name in PATH_COLUMNS if name in columns.names), None)
    if path_column is None:
        raise BadInput(f"{path} should have a column 'path', but has {listed(columns.first)}")
    root = os.path.dirname(absolute(path))
    allowed = yes_or_no("allow_outside", allow_outside)
    paths = columns.texts[path_column]
    ids = _checked_ids(path, paths, columns.texts.get("id"), root, allow_outside=allowed)
    found, labels = _labels(columns, classes)
    table = SampleTable(ids, labels, columns.facts, _digests(path, columns.texts.get(DIGEST_COLUMN)))
    return ImageList(
        name or folder_name(os.path.splitext(path)[0] if path == location else location),
        table,
        found if any(labels.values) else None,
        ManifestFiles(root, table, paths, allowed),
        notes=(f"listed by {os.path.basename(path)}", *_other_labels(columns.names)),
        credits=tuple(filter(None, columns.credits)),
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


@dataclass(frozen=True)
class _Columns:
    """A table as it was read."""

    rows: int
    names: Sequence[str]  # of all columns, in the order in which they come
    first: Sequence[str]  # of those of the first row
    texts: Mapping[str, Texts]  # ids, paths and digests
    labels: Mapping[str, Coded[LabelKeys]]
    facts: Mapping[str, FactColumn]
    credits: Sequence[str]


def _load_columns(path: str) -> _Columns:
    ending = os.path.splitext(path)[1].lower()
    if ending == ".parquet":
        return _gathered(parquet_rows(local_file(path)))
    if ending == ".jsonl":
        return _gathered(_json_rows(path))
    return _csv_columns(path, "\t" if ending == ".tsv" else ",")


def _lines(path: str, zeros: Sequence[str] = ("\0",)) -> Iterator[str]:
    """The lines of a table, with their ends."""
    return chain.from_iterable(_some_lines(path, zeros))


def _some_lines(path: str, zeros: Sequence[str]) -> Iterator[list[str]]:
    with reading_text(path, errors="surrogateescape") as file:
        while lines := file.readlines(LETTERS_AT_ONCE):
            text = "".join(lines)
            if any(zero in text for zero in zeros):
                raise BadInput(f"{path} is not text in UTF-8: it holds zeros, which no name does")
            yield lines


def _csv_columns(path: str, delimiter: str) -> _Columns:
    reader = csv.reader(_lines(path), delimiter=delimiter, strict=True)
    try:
        names = next(reader, [])
        if (twice := repeated(names)) is not None:
            raise BadInput(f"{path} has two columns called {twice!r}; rename or remove one of them")
        cells = {name: GrowingTexts() if name in TEXT_COLUMNS else GrowingCells() for name in names}
        rows = 0
        filled = filter(None, reader)  # lines without anything are no rows
        while some := list(islice(filled, BLOCK)):
            if {*map(len, some)} != {len(names)}:
                uneven = next(row for row, one in enumerate(some, rows + 2) if len(one) != len(names))
                raise BadInput(f"{path}, row {uneven}: not as many cells as the heading has columns")
            for growing, column in zip(cells.values(), zip(*some, strict=True), strict=True):
                growing.add(column)
            rows += len(some)
    except csv.Error as problem:
        raise BadInput(f"{path} is not a table: {problem}") from problem
    whole = {name: growing.whole() for name, growing in cells.items()} if rows else {}
    return _Columns(
        rows,
        names,
        names,
        {name: column for name, column in whole.items() if isinstance(column, Texts) and name in TEXT_COLUMNS},
        {name: _label_column(name, column) for name, column in whole.items() if name in LABEL_COLUMNS},
        {name: _typed(column) for name, column in whole.items() if name not in OWN_COLUMNS},
        _different(whole.get("credit", ())),
    )


def _different(texts: Iterable[str]) -> list[str]:
    """Every text once, in the order in which they come."""
    return list(texts.values if isinstance(texts, Coded) else dict.fromkeys(texts))


def _label_column(name: str, cells: Coded[str] | Texts) -> Coded[LabelKeys]:
    different = _different(cells)
    keys = [label_keys(cell.split(SEPARATOR) if name == "labels" else cell) for cell in different]
    return Coded(cells.codes if isinstance(cells, Coded) else _codes(cells, different), keys)


def _codes(cells: Iterable[str], different: Sequence[str]) -> NDArray[np.integer]:
    code_of = {cell: code for code, cell in enumerate(different)}
    return np.fromiter((code_of[cell] for cell in cells), np.int32)


def _typed(cells: Coded[str] | Texts) -> FactColumn:
    """A column as whole numbers, numbers or text, whichever fits every cell; an empty cell is None.

    A number with a zero in front, such as 007, is a name.
    """
    different = cells.values if isinstance(cells, Coded) else cells
    parse = _parser(different)
    if isinstance(cells, Coded):
        return Coded(cells.codes, [parse(cell) for cell in cells.values])
    return Parsed(cells, parse)


def _parser(cells: Iterable[str]) -> Callable[[str], Fact]:
    for kind, parse in ((int, _whole_or_none), (float, _number_or_none)):
        filled = named = False
        try:
            for cell in filter(None, cells):
                filled = True
                bare = cell.lstrip("-")
                named = named or (bare.startswith("0") and bare[1:2].isdecimal())
                kind(cell)
        except ValueError:
            continue
        return parse if filled and not named else _text_or_none
    return _text_or_none


def _whole_or_none(cell: str) -> Fact:
    return int(cell) if cell else None


def _number_or_none(cell: str) -> Fact:
    return float(cell) if cell else None


def _text_or_none(cell: str) -> Fact:
    return cell or None


def _json_rows(path: str) -> Iterator[Row]:
    for number, line in enumerate(_lines(path, ("\0", r"\u0000")), 1):
        if not line.strip():
            continue
        row = parse_json(line, f"{path}, line {number}", unique=True)
        if not isinstance(row, dict):
            raise BadInput(f'{path}, line {number}: should be an object such as {{"path": "a.jpg", "label": "cat"}}')
        yield row


def _gathered(rows: Iterable[Row]) -> _Columns:
    """The columns of rows that may have other columns each, and values of any kind."""
    texts: dict[str, GrowingTexts] = {}
    cells: dict[str, GrowingCells] = {}
    first: list[str] = []
    credited: dict[str, None] = {}
    count, rows = 0, iter(rows)
    while some := list(islice(rows, ROWS_AT_ONCE)):
        first = first or list(some[0])
        for name in dict.fromkeys(name for row in some for name in row):
            if name in TEXT_COLUMNS and name not in texts:
                texts[name] = _begun(GrowingTexts(), count)
            elif name not in (*TEXT_COLUMNS, "credit") and name not in cells:
                cells[name] = _begun(GrowingCells(), count)
        for name, text in texts.items():
            text.add([str(row.get(name) or "") for row in some])
        for name, cell in cells.items():
            told = _told_labels if name in LABEL_COLUMNS else _told_fact
            cell.add([told(name, row[name]) if name in row else "" for row in some])
        credited |= dict.fromkeys(str(row["credit"]) for row in some if row.get("credit"))
        count += len(some)
    whole = {name: growing.whole() for name, growing in cells.items()}
    return _Columns(
        count,
        [*texts, *cells],
        first,
        {name: growing.whole() for name, growing in texts.items()},
        {name: _read_labels(column) for name, column in whole.items() if name in LABEL_COLUMNS},
        {name: _read_facts(column) for name, column in whole.items() if name not in LABEL_COLUMNS},
        list(credited),
    )


Cells = TypeVar("Cells", GrowingTexts, GrowingCells)


def _begun(cells: Cells, rows: int) -> Cells:
    """A column that the rows so far do not have."""
    for start in range(0, rows, BLOCK):
        cells.add([""] * min(BLOCK, rows - start))
    return cells


def _told_labels(name: str, cell: object) -> str:
    """Labels as the text that they are kept as."""
    return json.dumps(label_keys(cell.split(SEPARATOR) if name == "labels" and isinstance(cell, str) else cell))


def _told_fact(_: str, cell: object) -> str:
    plain = isinstance(cell, (str, int, float, bool, type(None)))
    return json.dumps(cell if plain else json.dumps(cell))


def _read_labels(cells: Coded[str] | Texts) -> Coded[LabelKeys]:
    different = _different(cells)
    codes = cells.codes if isinstance(cells, Coded) else _codes(cells, different)
    return Coded(codes, [tuple(json.loads(cell)) if cell else () for cell in different])


def _read_facts(cells: Coded[str] | Texts) -> FactColumn:
    if isinstance(cells, Coded):
        return Coded(cells.codes, [_read_fact(cell) for cell in cells.values])
    return Parsed(cells, _read_fact)


def _read_fact(cell: str) -> Any:
    return json.loads(cell) if cell else ABSENT


def _checked_ids(path: str, paths: Texts, given: Texts | None, root: str, *, allow_outside: bool) -> Texts:
    """The id of every image, each once."""
    # most paths have none of these, and a manifest may have millions
    if os.sep != "/" or paths.has_empty or any(map(paths.may_hold, ("://", ".."))) or paths.some_begin("/"):
        for number, file in enumerate(paths, 1):
            _check_path(path, number, file, root, allow_outside=allow_outside)
    ids = _ids(paths, given)
    if (twice := ids.repeated) is not None:
        raise BadInput(f"{path} lists {ids[twice]} twice; give each row an id of its own in a column 'id'")
    first = paths[:50]
    if not any(exists(joined(root, file)) for file in first):
        raise BadInput(f"{path} lists {first[0]}, but there is no such file; paths are relative to {root}")
    return ids


def _ids(paths: Texts, given: Texts | None) -> Texts:
    """The ids that are given, and paths for images that have none."""
    if given is not None and not given.has_empty:
        return given
    if given is None and os.sep == "/":
        return paths
    growing = GrowingTexts()
    for start, files in in_blocks(paths):
        told = given[start : start + len(files)] if given else [""] * len(files)
        growing.add([one or file.replace(os.sep, "/") for one, file in zip(told, files, strict=True)])
    return growing.whole()


def _check_path(path: str, number: int, file: str, root: str, *, allow_outside: bool) -> None:
    """BadInput where a row has no path, or one that the table may not name."""
    if not file:
        raise BadInput(f"{path}, image {number}: no path")
    if "://" in file:
        check_url(file)
    if not allow_outside and leads_outside(file, root):
        raise BadInput(
            f"{path}, image {number}: {file} lies outside {root}; where the table may name such files, say "
            f"--allow-outside, or open {path}?allow_outside=true"
        )


def _labels(columns: _Columns, classes: Classes | None) -> tuple[Classes, Coded[tuple[int, ...]]]:
    """The classes, and the labels of every image as places in them."""
    column = next((name for name in LABEL_COLUMNS if name in columns.labels), None)
    if column is None:
        return places_of((), classes)[0], Coded(np.broadcast_to(np.int32(0), columns.rows), [()])
    keys = columns.labels[column]
    found, places = places_of((key for image in keys.values for key in image), classes)
    return found, Coded(keys.codes, [tuple(places[key] for key in image) for image in keys.values])


def _digests(path: str, told: Texts | None) -> NDArray[np.uint8] | None:
    """The digests that a table tells, (images, bytes); zeros for an empty cell."""
    if told is None:
        return None
    size = DIGEST_LETTERS // 2
    digests = room((len(told), size), np.uint8)
    for start, cells in in_blocks(told):
        text = "".join(cells)
        if len(text) != DIGEST_LETTERS * len(cells) or set(map(len, cells)) != {DIGEST_LETTERS}:
            text = "".join(cell or "0" * DIGEST_LETTERS for cell in cells)
        if not DIGESTS.fullmatch(text) or any(len(cell) not in (0, DIGEST_LETTERS) for cell in cells):
            number, cell = next(
                (number, cell)
                for number, cell in enumerate(cells, start + 1)
                if cell and (len(cell) != DIGEST_LETTERS or not DIGESTS.fullmatch(cell))
            )
            raise BadInput(
                f"{path}, image {number}: {DIGEST_COLUMN} should be the BLAKE2b hash of the file, {DIGEST_LETTERS} "
                f"letters of 0-9 and a-f, as b2sum -l {size * 8} prints it, got {cell!r:.80}"
            )
        digests[start : start + len(cells)] = np.frombuffer(bytes.fromhex(text), np.uint8).reshape(-1, size)
    return digests


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


def _other_labels(names: Sequence[str]) -> tuple[str, ...]:
    """The note where several columns could be the labels."""
    found = [name for name in LABEL_COLUMNS if name in names]
    return (f"labels from the column {found[0]}; ignored: {listed(found[1:])}",) if len(found) > 1 else ()


ROWS_A_BYTE, MOST_ROWS = 16, 100_000
LETTERS_A_BYTE, MOST_LETTERS = 64, 2**28
"""How much a file may hold for each of its bytes, and in any case: repeated values take next to no room in it."""


def parquet_rows(path: str) -> Iterator[dict[str, Any]]:
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
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(ROWS_AT_ONCE):
                yield from map(_plain_row, batch.to_pylist())
    except OverflowError as problem:
        raise BadInput(f"{path} holds a date outside the years 1 to 9999") from problem
    except (OSError, pyarrow.lib.ArrowException, UnicodeDecodeError) as problem:
        raise BadInput(f"{path} cannot be read as Parquet: {problem}") from problem


def _plain_row(row: Row) -> dict[str, Any]:
    plain = (str, int, float, bool, list, type(None))
    return {column: value if isinstance(value, plain) else str(value) for column, value in row.items()}


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
