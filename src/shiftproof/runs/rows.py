"""Stored rows of one model under one condition, in files that are there whole or not at all.

Boxes of all images of a file lie one after the other, with a count for each image.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import count, pairwise, repeat
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray

from shiftproof.columns import GrowingNumbers, GrowingTexts, Texts, in_blocks, room
from shiftproof.errors import DamagedFile, StoreError
from shiftproof.files import SURELY_LEFT, alone, check_inside, quarantine, read_regular, sweep, sync, write_whole
from shiftproof.places import is_url
from shiftproof.runs.chunks import NO_FILE, Chunk, reading, save_chunk
from shiftproof.types import Keep, satisfies

PER_IMAGE = ("image_sizes", "box_counts")
"""Height and width of each image, (images, 2), zeros where they are not known; and its boxes counted, (images,)."""

PER_BOX = ("boxes", "box_scores", "box_classes")
"""Corners, (boxes, 4), scores and classes, (boxes,), in the order of the images."""


class Wanted(NamedTuple):
    """Which rows of a file are wanted where."""

    places: NDArray[np.integer]
    rows: NDArray[np.integer]


def gathered_boxes(
    places: Mapping[Path, Wanted], images: int, read: Callable[[Path, str], NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Boxes gathered from several files, in the order in which the images are wanted."""
    sizes, counts = np.zeros((images, 2), np.int32), np.zeros(images, np.int32)
    stored_counts = {path: read(path, "box_counts") for path in places}
    for path, (wanted, rows) in places.items():
        sizes[wanted], counts[wanted] = read(path, "image_sizes")[rows], stored_counts[path][rows]
    total = int(counts.sum())
    shapes = ((total, 4), (total,), (total,))
    kinds = (np.float32, np.float32, np.int32)
    arrays: dict[str, NDArray[Any]] = {
        name: np.empty(shape, kind) for name, shape, kind in zip(PER_BOX, shapes, kinds, strict=True)
    }
    for path, (wanted, rows) in places.items():
        target = rows_of_images(counts, wanted)
        source = rows_of_images(stored_counts[path], rows)
        for name in PER_BOX:
            arrays[name][target] = read(path, name)[source]
    return {"image_sizes": sizes, "box_counts": counts, **arrays}


def rows_of_images(counts: NDArray[np.integer], images: NDArray[np.integer]) -> NDArray[np.integer]:
    """The rows of all boxes of some images, where each image has so many boxes one after the other.

    >>> rows_of_images(np.array([2, 0, 3]), np.array([2, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    ends = np.cumsum(counts)
    starts, chosen = (ends - counts)[images], counts[images]
    within = np.arange(chosen.sum()) - np.repeat(np.cumsum(chosen) - chosen, chosen)
    return np.asarray(np.repeat(starts, chosen) + within)


SEALED_BYTES = 8 * 2**20
"""Small files are joined into files of about this size when a run is complete; joining takes a few times as much memory."""


MOST_CLASSES = 2**24
"""Larger class indices are damage: they would only fill the memory."""


TOP5 = ("top5_classes", "top5_scores", "log_total")


MADE_ANEW = "predict or run with this model computes its rows again"


SAID_ANEW = "predict or run with this model writes it again: the rows are kept"
"""The remedy for damaged rows, and for a damaged run.json or model.json."""


CANNOT_BE_READ = "cannot be read: "
NOT_AS_TOLD = "its bytes are not those whose hash the manifest tells in the column blake2b"


def may_be_back(reason: str) -> bool:
    """Whether an image that was skipped for this reason is tried again: its file was not there, or another one was.

    Only of images whose digest a manifest tells is that known at all.
    """
    return reason == NOT_AS_TOLD or reason.startswith(CANNOT_BE_READ)


@dataclass(frozen=True)
class Rows:
    """Some rows as they go into the store: the model's outputs, or why the image was skipped."""

    ids: Sequence[str]
    digests: Sequence[str]
    arrays: Mapping[str, NDArray[Any]]  # one row an id: TOP5, perhaps logits, features, extra; or PER_IMAGE and PER_BOX
    skipped: Sequence[tuple[str, str, str]] = ()  # id, digest, reason


class StoredRun:
    """The rows of one model under one condition."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self.about = about
        self._writer = uuid.uuid4().hex[:8]

    def append(self, rows: Rows, keep: Keep, number: int | None = None, *, synced: bool = True) -> None:
        """Commits rows: after this they survive anything but the disk; rows that are not `synced`, a kill but no power cut.

        A file that a power cut damaged is found by its checksums. Files lie in the order of their numbers, which are
        nanoseconds of the clock unless given.
        """
        if not (self.folder / "run.json").exists():
            self._write_about()
        texts = {"keep": keep, "ids": rows.ids, "digests": rows.digests, "aside": rows.skipped}
        metadata = {name: text if isinstance(text, str) else json.dumps(list(text)) for name, text in texts.items()}
        save_chunk(self._new_path(number), rows.arrays, metadata, synced=synced)

    def contents(self, keep: Keep = "top5", *, verified: bool = False) -> Contents:
        """Which images have a row that holds at least `keep`, and where; `verified` reads these rows to see that they do."""
        while True:
            try:
                return self._contents(keep, verified)
            except FileNotFoundError:
                continue  # another process joined some files since we listed them

    def _contents(self, keep: Keep, verified: bool = False) -> Contents:
        found = Contents()
        for path in fetched_ahead(self._files()):
            with or_quarantine(), reading(path) as file:
                about = about_rows(file)
                useful = satisfies(about.keep, keep)
                if useful and verified and about.pairs:
                    for name in _tensors_of(keep):
                        if not file.was_read(name):
                            rows_array(file, name, len(about.pairs))
                for key, digest, reason in about.skipped:
                    found.skipped.setdefault((key, digest), reason)
                found.add(path, about.pairs, useful)
        return found

    def load(
        self,
        wanted: Sequence[tuple[str, str]],
        keep: Keep = "top5",
        *,
        classes: int | None = None,
        contents: Contents | None = None,
        places: RowPlaces | None = None,
    ) -> dict[str, NDArray[Any]]:
        """The rows of these (id, digest) pairs, in this order, holding `keep`; all of them must be here.

        `contents` are those of this run for `keep`, where they were read just now, and `places` where these rows lie. Extra
        numbers come with them where every one of these rows has some. DamagedFile where a file is not what was written, or
        holds a class beyond so many `classes`: it is quarantined then, so another load may find others.
        """
        while True:
            try:
                with _quarantine_and_raise():
                    found = contents or self._contents(keep)
                    by_file = _places(wanted, found) if places is None else places.by_file()
                    if keep == "boxes":
                        return gathered_boxes(by_file, len(wanted), partial(_read_array, found.counts, classes))
                    return self._load(by_file, len(wanted), found.counts, _tensors_of(keep), classes)
            except FileNotFoundError:
                contents = places = None  # another process joined some files since we listed them

    @staticmethod
    def _load(
        places: Mapping[Path, Wanted],
        wanted: int,
        counts: Mapping[Path, int],
        names: Sequence[str],
        classes: int | None,
    ) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        without_extra = False
        for path, (target, source) in places.items():
            with reading(path) as file:
                extra = [name for name in file.names if name == "extra"]
                without_extra |= not extra
                for name in (*names, *extra):
                    stored = rows_array(file, name, counts[path], classes)
                    if name not in arrays:
                        kind = np.float32 if stored.dtype == np.float16 else stored.dtype
                        arrays[name] = room((wanted, *stored.shape[1:]), kind)
                    elif stored.shape[1:] != arrays[name].shape[1:]:
                        raise file.damaged(f"{name} is {stored.shape}, in other files {arrays[name].shape}")
                    arrays[name][target] = stored[source]
        if without_extra:
            arrays.pop("extra", None)
        return arrays

    def walk(self, wanted: Iterable[tuple[str, str]], keep: Keep = "top5", *, classes: int | None = None) -> Iterator[Rows]:
        """The rows of these (id, digest) pairs, each once, file by file as they lie: for more than fits into memory.

        DamagedFile as of `load`.
        """
        left = set(wanted)
        while left:
            before = len(left)
            try:
                for path in fetched_ahead(self._files()):
                    with _quarantine_and_raise():
                        rows = _read_some(path, left, keep, classes)
                    left.difference_update(zip(rows.ids, rows.digests, strict=True))
                    if rows.ids:
                        yield rows
            except FileNotFoundError:
                continue  # another process joined some files since we listed them; what was not read yet is in the new ones
            if len(left) == before:
                raise StoreError(f"{before} rows have gone from {self.folder}; predict again")

    def seal(self, rest: Rows | None = None, keep: Keep = "top5") -> None:
        """Joins small files into large ones, every row once, and brings them to disk; with the `rest`, which is in no file.

        A kill between writing and deleting leaves rows twice, which is harmless, until the next run that writes some.
        """
        if rest is not None and not self.folder.is_dir():
            self.append(rest, keep)
            return
        try:
            with alone(self.folder, wait=True):
                self._seal(rest, keep)
        except BaseException as error:
            if rest is not None:  # alone it may fit onto a disk that has no room to join files
                self.append(rest, keep)
            if not isinstance(error, FileNotFoundError):  # another process joined some files since we listed them
                raise

    def _seal(self, rest: Rows | None, keep: Keep) -> None:
        known = KnownRows()
        joinable: dict[Keep, list[Joinable]] = {}
        held: Counter[Keep] = Counter()  # bytes of these
        files = self._files()
        if is_url(self.folder):  # without locks nobody touches what others wrote, so that no row is in no file
            files = [path for path in files if path.stem.endswith(f"-{self._writer}")]
        for path in files:
            with or_quarantine(), reading(path) as file:
                about, size = about_rows(file), path.stat().st_size
                # damage is found here, before rows of others count as doubled
                rows = _rows_in(file, about) if size < SEALED_BYTES // 2 else None
                fresh = known.add(about)
                doubled = len(fresh) < len(about.pairs)
                if rows is None and not doubled:
                    self._sync(path)
                    continue
                rows = rows or _rows_in(file, about)
                joinable.setdefault(about.keep, []).append(Joinable(path, _taken(rows, fresh) if doubled else rows, doubled))
                held[about.keep] += size
                if held[about.keep] >= SEALED_BYTES:
                    held[about.keep] = 0
                    self._join(joinable.pop(about.keep), about.keep)
        if rest is not None:
            pairs = list(zip(rest.ids, rest.digests, strict=True))
            fresh = known.add(AboutRows(keep, pairs, [*rest.skipped]))
            rest = rest if len(fresh) == len(pairs) else _taken(rest, fresh)
            joinable.setdefault(keep, []).append(Joinable(None, rest, True))
        for kept, some in joinable.items():
            self._join(some, kept)

    def _join(self, some: Sequence[Joinable], keep: Keep) -> None:
        """Puts the rows of these files into one in place of them; a file alone, of rows that no other holds, stays."""
        if len(some) == 1 and not some[0].doubled and some[0].path is not None:
            self._sync(some[0].path)
            return
        joined = joined_rows([one.rows for one in some])
        if joined is not None and (joined.ids or joined.skipped):
            self.append(dataclasses.replace(joined, skipped=list(dict.fromkeys(joined.skipped))), keep)
        for one in some:
            if one.path is not None:
                one.path.unlink(missing_ok=True)

    def _sync(self, path: Path) -> None:
        if path.stem.endswith(f"-{self._writer}") and not is_url(path):
            sync(path)

    def tidy(self) -> None:
        """Removes what killed writers left half-written, and writes `run.json` again where it is damaged."""
        if not self.folder.is_dir():
            return
        check_inside(self.folder, self.folder.parents[1])
        if not is_url(self.folder):
            self._sweep()
        about = self.folder / "run.json"
        if self.about and about.exists() and model_in(about) is None:
            quarantine(about, "it does not say whose rows these are", "it is written again: the rows are kept")
            self._write_about()

    def _sweep(self) -> None:
        sweep(self.folder)
        for path in self.folder.glob(".*"):  # by versions whose writers could not be told to live or not
            try:
                if time.time() - path.stat().st_mtime > SURELY_LEFT:
                    path.unlink()
            except (FileNotFoundError, IsADirectoryError, PermissionError):
                pass  # its writer has just finished it; or it is no file of ours

    def _write_about(self) -> None:
        write_whole(self.folder / "run.json", to_json(self.about), inside=self.folder.parents[1])

    def _files(self) -> list[Path]:
        check_inside(self.folder, self.folder.parents[1])  # they may be quarantined or joined
        if is_url(self.folder):
            return sorted(self.folder.glob("*.safetensors"))
        return sorted(path for path in self.folder.glob("*.safetensors") if path.is_file())

    def _new_path(self, number: int | None) -> Path:
        return self.folder / f"{time.time_ns() if number is None else number:020d}-{self._writer}.safetensors"


def fetched_ahead(paths: list[Path]) -> Iterable[Path]:
    """The paths in order; of files at a URL, the next ones are fetched meanwhile."""
    if not paths or not is_url(paths[0]):
        return paths
    from shiftproof import remote

    return remote.ahead(paths, lambda path: remote.read(str(path), remote.known(str(path)).version))


MANY = 2**17
"""Rows of a run beyond which they are kept in columns."""


@dataclass
class Contents:
    """Where the rows of a run lie, and which images were skipped, by (id, digest)."""

    rows: dict[tuple[str, str], tuple[Path, int]] | ManyRows = dataclasses.field(default_factory=dict)
    skipped: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    counts: dict[Path, int] = dataclasses.field(default_factory=dict)  # rows of each file
    _first: Sequence[tuple[str, str]] = dataclasses.field(default=(), repr=False)  # in their order, where one file has all

    def add(self, path: Path, pairs: Sequence[tuple[str, str]], useful: bool = True) -> None:
        """Adds a file, whose rows count where they are `useful` and in no file before it."""
        self.counts[path] = len(pairs)
        if not useful:
            return
        if isinstance(self.rows, dict) and len(self.rows) + len(pairs) > MANY:
            self.rows = ManyRows.of(self.rows)
        if isinstance(self.rows, ManyRows):
            self.rows.add(path, pairs)
            return
        own = dict(zip(pairs, zip(repeat(path), count()), strict=False))
        if not self.rows and len(own) == len(pairs):  # as of most runs, which one file holds
            self.rows, self._first = own, pairs
            return
        self._first = ()
        for row, pair in enumerate(pairs):
            self.rows.setdefault(pair, (path, row))

    def places(self, wanted: Sequence[tuple[str, str]]) -> RowPlaces:
        """Where the rows of these (id, digest) pairs lie."""
        if isinstance(self.rows, ManyRows):
            return self.rows.places(wanted)
        if self._first and len(wanted) == len(self._first) and [*wanted] == self._first:  # as most often
            path, _ = self.rows[wanted[0]]
            return RowPlaces([path], np.zeros(len(wanted), np.int32), np.arange(len(wanted), dtype=np.int32))
        lying = [*map(self.rows.get, wanted)]
        if lying and None not in lying:
            paths, in_file = zip(*filter(None, lying), strict=True)
            if paths.count(paths[0]) == len(paths):
                return RowPlaces([paths[0]], np.zeros(len(paths), np.int32), np.array(in_file, np.int32))
        number_of: dict[Path, int] = {}
        files, rows = np.full(len(wanted), -1, np.int32), np.zeros(len(wanted), np.int32)
        found = [(place, one) for place, one in enumerate(lying) if one is not None]
        last, number, numbers = None, -1, list[int]()
        for _, (path, _) in found:
            if path is not last:  # one after the other most often lie in the same file
                last, number = path, number_of.setdefault(path, len(number_of))
            numbers.append(number)
        places = [place for place, _ in found]
        files[places], rows[places] = numbers, [row for _, (_, row) in found]
        return RowPlaces([*number_of], files, rows)


class RowPlaces(NamedTuple):
    """Where rows lie: a file for each, -1 for none, and the row in it."""

    files: Sequence[Path]
    file: NDArray[np.int32]
    row: NDArray[np.int32]

    def by_file(self) -> dict[Path, Wanted]:
        """For each file the places where its rows are wanted."""
        if np.all(self.file[1:] >= self.file[:-1]):  # in the order of the files, as most often
            ends = np.searchsorted(self.file, np.arange(len(self.files)), side="right").tolist()
            places = [np.arange(start, end) for start, end in pairwise([int((self.file < 0).sum()), *ends])]
        else:
            order = np.argsort(self.file, kind="stable")
            ends = np.searchsorted(self.file[order], np.arange(len(self.files)), side="right").tolist()
            places = [order[start:end] for start, end in pairwise([int((self.file < 0).sum()), *ends])]
        return {path: Wanted(some, self.row[some]) for path, some in zip(self.files, places, strict=True) if len(some)}


class ManyRows(Mapping[tuple[str, str], tuple[Path, int]]):
    """Where the rows of a run lie that has many: pairs as texts one behind the other, and numbers."""

    def __init__(self) -> None:
        self._files: list[Path] = []
        self._growing = (GrowingTexts(), GrowingNumbers(np.int32), GrowingNumbers(np.int32))

    @classmethod
    def of(cls, rows: Mapping[tuple[str, str], tuple[Path, int]]) -> ManyRows:
        many, numbers = cls(), dict[Path, int]()
        lies = [(numbers.setdefault(path, len(numbers)), row) for path, row in rows.values()]
        many._add([*rows], np.array(lies, np.int32).reshape(-1, 2))
        many._files = [*numbers]
        return many

    def add(self, path: Path, pairs: Sequence[tuple[str, str]]) -> None:
        self._files.append(path)
        self._add(pairs, np.stack([np.full(len(pairs), len(self._files) - 1), np.arange(len(pairs))], axis=1))

    def _add(self, pairs: Sequence[tuple[str, str]], lies: NDArray[np.integer]) -> None:
        texts, files, rows = self._growing
        for _, some in in_blocks(pairs):
            texts.add([*map("\0".join, some)])
        files.add(lies[:, 0])
        rows.add(lies[:, 1])

    @cached_property
    def _columns(self) -> tuple[Texts, NDArray[np.int32], NDArray[np.int32]]:
        texts, files, rows = self._growing
        return texts.whole(), files.whole(), rows.whole()

    def places(self, wanted: Sequence[tuple[str, str]]) -> RowPlaces:
        """Where the rows of these (id, digest) pairs lie."""
        texts, files, rows = self._columns
        found = RowPlaces(self._files, room(len(wanted), np.int32), room(len(wanted), np.int32))
        near = 0
        for start, some in in_blocks(wanted):
            places = texts.places([*map("\0".join, some)], near)
            near = int(places[-1]) + 1  # the next ones most likely follow
            there, stop = places >= 0, start + len(places)
            found.file[start:stop] = np.where(there, files[places], -1)
            found.row[start:stop] = np.where(there, rows[places], 0)
        return found

    def __getitem__(self, pair: tuple[str, str]) -> tuple[Path, int]:
        texts, files, rows = self._columns
        place = texts.place("\0".join(pair))
        if place is None:
            raise KeyError(pair)
        return self._files[files[place]], int(rows[place])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        texts = self._columns[0]
        pairs = (tuple(text.rsplit("\0", 1)) for text in texts)
        once = pairs if texts.repeated is None else dict.fromkeys(pairs)
        return iter(cast("Iterable[tuple[str, str]]", once))

    def __len__(self) -> int:
        texts = self._columns[0]
        return len(texts) if texts.repeated is None else sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True


class AboutRows(NamedTuple):
    """The header of a file of rows."""

    keep: Keep
    pairs: list[tuple[str, str]]  # id and digest of each row
    skipped: list[tuple[str, str, str]]  # id, digest and reason


def about_rows(file: Chunk) -> AboutRows:
    keep = file.text("keep")
    ids, digests, skipped = (file.json(file.text(name), list) for name in ("ids", "digests", "aside"))
    texts = (*ids, *digests, *(text for entry in skipped for text in (entry if isinstance(entry, list) else (None,))))
    if keep not in get_args(Keep) or len(ids) != len(digests) or not set(map(type, texts)) <= {str}:
        raise file.damaged("its metadata cannot be read")
    if any(len(entry) != 3 for entry in skipped):
        raise file.damaged("its metadata cannot be read")
    return AboutRows(cast(Keep, keep), list(zip(ids, digests, strict=True)), [(one[0], one[1], one[2]) for one in skipped])


class KnownRows:
    """Which rows earlier files hold."""

    def __init__(self) -> None:
        self._pairs: dict[Keep, set[tuple[str, str]]] = {}
        self._skipped: set[tuple[str, str, str]] = set()

    def add(self, about: AboutRows) -> list[int]:
        """The rows of a file that none before it holds."""
        richer = [pairs for keep, pairs in self._pairs.items() if satisfies(keep, about.keep)]
        own = self._pairs.setdefault(about.keep, set())
        fresh = []
        for row, pair in enumerate(about.pairs):
            if pair not in own and not any(pair in pairs for pairs in richer):
                own.add(pair)
                fresh.append(row)
        return fresh

    def add_skipped(self, about: AboutRows) -> bool:
        """Whether a file lists a skipped image that none before it does."""
        before = len(self._skipped)
        self._skipped.update(about.skipped)
        return len(self._skipped) > before


def _places(wanted: Sequence[tuple[str, str]], contents: Contents) -> dict[Path, Wanted]:
    """For each file the places where its rows are wanted, each with the row."""
    found = contents.places(wanted)
    if lost := int((found.file < 0).sum()):
        raise StoreError(f"{lost} rows have gone from the store since it was opened; predict again")
    return found.by_file()


@contextmanager
def or_quarantine() -> Iterator[None]:
    """A damaged file is quarantined, and the rest goes on without it."""
    try:
        yield
    except DamagedFile as damaged:
        quarantine(damaged.path, damaged.reason, MADE_ANEW)


@contextmanager
def _quarantine_and_raise() -> Iterator[None]:
    """A damaged file is quarantined, and whoever asked is told."""
    try:
        yield
    except DamagedFile as damaged:
        quarantine(damaged.path, damaged.reason, MADE_ANEW)
        raise


FORMS: Mapping[str, tuple[str, tuple[int | None, ...]]] = {
    "top5_classes": ("i", (None,)),
    "top5_scores": ("f", (None,)),
    "log_total": ("f", ()),
    "logits": ("f", (None,)),
    "features": ("f", (None,)),
    "extra": ("f", (None,)),
    "image_sizes": ("i", (2,)),
    "box_counts": ("i", ()),
    "boxes": ("f", (4,)),
    "box_scores": ("f", ()),
    "box_classes": ("i", ()),
}
"""The dtype kind and the shape behind the first axis of every stored array."""


def rows_array(file: Chunk, name: str, rows: int, classes: int | None = None) -> NDArray[Any]:
    """An array of so many rows, or of their boxes; DamagedFile where it cannot be that."""
    found = file.array(name)
    kind, others = FORMS[name]
    if name in PER_BOX:
        rows = int(file.array("box_counts").sum(dtype=np.int64))
    fits = found.ndim == 1 + len(others) and all(
        size > 0 or not rows if given is None else size == given for given, size in zip(others, found.shape[1:], strict=True)
    )
    if not fits or found.dtype.kind != kind or len(found) != rows:
        raise file.damaged(f"{name} should be {rows:,} rows, got {found.dtype} of {found.shape}")
    if kind == "i" and found.size:
        least, most = int(found.min()), int(found.max())
        limit = MOST_CLASSES if name in ("top5_classes", "box_classes") else np.iinfo(np.int32).max
        if least < 0 or most >= limit or (name == "box_counts" and int(found.sum(dtype=np.int64)) != file.length("boxes")):
            raise file.damaged(f"{name} holds {least if least < 0 else most:,}, which it cannot be")
        if name in ("top5_classes", "box_classes") and classes is not None and most >= classes:
            if not file.has_checksums:
                raise file.damaged(f"{name} holds class {most:,} of a model that has {classes:,}")
            raise StoreError(
                f"{file.path} holds class {most:,} of a model that says it has {classes:,}: its model.json is another's; "
                "predict again into a new folder, named with --store"
            )
    return found


class Joinable(NamedTuple):
    """A file that may be joined with others, and those of its rows that no file before it holds."""

    path: Path | None  # None: they are in no file yet
    rows: Rows
    doubled: bool  # whether the file has others


def _rows_in(file: Chunk, about: AboutRows) -> Rows:
    arrays = {name: rows_array(file, name, len(about.pairs)) for name in file.names if name in FORMS}
    return Rows([key for key, _ in about.pairs], [digest for _, digest in about.pairs], arrays, about.skipped)


def _read_array(counts: Mapping[Path, int], classes: int | None, path: Path, name: str) -> NDArray[Any]:
    with reading(path) as file:
        return rows_array(file, name, counts[path], classes)


def _taken(rows: Rows, places: Sequence[int]) -> Rows:
    """Some of the rows, and all skipped images beside them."""
    chosen = np.array(places, int)
    of_boxes = rows_of_images(rows.arrays["box_counts"], chosen) if "box_counts" in rows.arrays else chosen
    arrays = {name: array[of_boxes if name in PER_BOX else chosen] for name, array in rows.arrays.items()}
    return Rows([rows.ids[place] for place in places], [rows.digests[place] for place in places], arrays, rows.skipped)


def _read_some(path: Path, wanted: Container[tuple[str, str]], keep: Keep, classes: int | None) -> Rows:
    """Those rows of a file that are wanted and hold `keep`; float16 comes back as float32."""
    with reading(path) as file:
        about = about_rows(file)
        places = [place for place, pair in enumerate(about.pairs) if pair in wanted]
        if not satisfies(about.keep, keep) or not places:
            return Rows([], [], {})
        needed = (*_tensors_of(keep), *(name for name in file.names if name == "extra"))
        arrays = {name: rows_array(file, name, len(about.pairs), classes) for name in needed}
    for name, stored in arrays.items():
        some = stored if len(places) == len(about.pairs) else stored[places]
        arrays[name] = some.astype(np.float32) if some.dtype == np.float16 else some
    return Rows([about.pairs[place][0] for place in places], [about.pairs[place][1] for place in places], arrays)


def joined_rows(parts: Sequence[Rows]) -> Rows | None:
    """Several rows as one, holding what all of them hold; None of none."""
    if len(parts) < 2:
        return parts[0] if parts else None
    filled = [part.arrays for part in parts if part.arrays]
    names = [name for name in (filled[0] if filled else ()) if all(name in arrays for arrays in filled)]
    arrays = {name: np.concatenate([held[name] for held in filled]) for name in names}
    return Rows(
        [key for part in parts for key in part.ids],
        [digest for part in parts for digest in part.digests],
        arrays,
        [entry for part in parts for entry in part.skipped],
    )


def _tensors_of(keep: Keep) -> tuple[str, ...]:
    return {
        "top5": TOP5,
        "logits": (*TOP5, "logits"),
        "features": (*TOP5, "logits", "features"),
        "boxes": (*PER_IMAGE, *PER_BOX),
    }[keep]


def to_json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")


def text_in(path: Path) -> str:
    """The text of a file of the store; DamagedFile where a folder, a pipe or a device is in its place."""
    try:
        return read_regular(path).decode("utf-8", "surrogateescape")
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENXIO):
            raise
        raise DamagedFile(path, NO_FILE) from error


def model_in(path: Path) -> str | None:
    """The fingerprint of the model that a folder of rows or saliency maps is of; None where its file does not say so."""
    try:
        found = json.loads(text_in(path))["model"]["fingerprint"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, DamagedFile):
        return None
    return found if isinstance(found, str) else None
