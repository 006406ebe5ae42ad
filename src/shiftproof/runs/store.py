"""Predictions on disk: computed once, read often.

    runs/
      digests.sqlite                     which file had which bytes
      models/<fingerprint>/model.json    what the model is; head.safetensors beside it, where it has one
      models/<fingerprint>/profile-<key>.json   how far its profile on a dataset has come; key = the dataset's fingerprint
      changes.json                       names to change, or models to forget: there only until that is done
      rows/<condition>-<key>/            key = model fingerprint (preprocessing included), condition, format
        run.json                         all of that in the open
        <time>-<writer>.safetensors      some rows; there whole or not at all, with a checksum of every array
      duplicates/<key>.json              near-duplicates of a dataset, by the digests of their files; key = where it lies

What is damaged is quarantined: it stays where it was under the ending .damaged, is never used, and is computed again.
A row belongs to an image id and the digest of its file, so runs resume, shards merge by copying files together and folders
grow without doing anything twice. Labels are not here: they may be corrected at any time.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import time
import uuid
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from shiftproof.errors import BadInput, DamagedFile, StoreError, StoreWarning
from shiftproof.files import cache_folder, check_inside, locked, quarantine, refusal, write_new, write_whole, writing
from shiftproof.places import as_path, is_url
from shiftproof.runs.chunks import reading, save_chunk
from shiftproof.runs.records import (
    FORMAT,
    Reached,
    StoredModel,
    can_be_name,
    marked,
    read_alike,
    read_model,
    read_model_if_there,
    read_reached,
    with_checksum,
    write_model,
)
from shiftproof.runs.rows import (
    FORMS,
    MADE_ANEW,
    SAID_ANEW,
    AboutRows,
    KnownRows,
    StoredRun,
    about_rows,
    model_in,
    or_quarantine,
    rows_array,
    text_in,
)
from shiftproof.types import (
    Condition,
    DatasetRef,
    Head,
    ModelRef,
    Precision,
    fingerprint_of,
)

if TYPE_CHECKING:
    from shiftproof.datasets.image_list import ImageList
    from shiftproof.datasets.published.known import DatasetCheck
    from shiftproof.options import DatasetSettings
    from shiftproof.runs.digests import DigestCache

DECIDED_ANEW = "rename or forget it again"
"""The remedy for a damaged list of changes."""

MEASURED_ANEW = "shiftproof run goes through the profile again, with the predictions that are stored"
"""The remedy for a damaged record of a profile."""

SOUGHT_ANEW = "shiftproof curate duplicates finds them again"
"""The remedy for a damaged list of near-duplicates."""


class Store:
    """A folder of runs."""

    def __init__(self, root: str | Path) -> None:
        if "\0" in str(root):
            raise BadInput(f"{str(root)!r} is no folder for a store: it holds a NUL character")
        self.root = as_path(root)

    @property
    def digests(self) -> DigestCache:
        from shiftproof.runs.digests import DigestCache  # merging and checking stores need no database

        return DigestCache(self.cache / "digests.sqlite")

    @property
    def cache(self) -> Path:
        """Where databases of digests lie: in the store, or on this machine where the store is at a URL."""
        if not is_url(self.root):
            return self.root
        return cache_folder() / "stores" / fingerprint_of(str(self.root))[:16]

    def models(self, *, companions: bool = False) -> list[StoredModel]:
        """Every model that has rows here, by name, the newest version of a name first; companions only where asked for.

        Companions are made of a model and run for its studies: random networks, ODIN's, other input sizes.
        """
        self.settle()
        found = filter(None, map(read_model_if_there, self._own("models/*/model.json")))
        wanted = [model for model in marked(list(found)) if companions or model.companion is None]
        newest_first = sorted(wanted, key=lambda model: (model.stored, model.ref.fingerprint), reverse=True)
        return sorted(newest_first, key=lambda model: model.ref.name)

    def model(self, ref: ModelRef) -> StoredModel | None:
        self.settle()
        check_inside(self._model_folder(ref), self.root)
        return read_model_if_there(self._model_folder(ref) / "model.json")

    def head(self, ref: ModelRef) -> Head | None:
        """The last linear layer; None where it is not stored, or damaged."""
        path = self._model_folder(ref) / "head.safetensors"
        check_inside(path.parent, self.root)
        try:
            with reading(path) as file:
                weights, bias = file.array("weights"), file.array("bias")
                if weights.ndim != 2 or bias.shape != weights.shape[:1]:
                    raise file.damaged(f"weights of {weights.shape} with a bias of {bias.shape}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except DamagedFile as damaged:
            quarantine(path, damaged.reason, "predict or run with this model and --keep features writes it again")
            return None
        return Head(weights, bias)

    def save_model(self, model: StoredModel, head: Head | None = None, *, asked: bool = True) -> None:
        """Stores the model's description as it is now: its name, classes and training data may change while outputs stay.

        Of several versions of one name the one that was `asked` last is the newest.
        """
        known = self.model(model.ref)
        if model.outputs is None:
            # nothing was asked now; where the model has rows and what was known of it is lost, it has as many as it names
            named = None if model.classes is None else len(model.classes)
            model = dataclasses.replace(model, outputs=known.outputs if known else named)
        folder = self._model_folder(model.ref)
        if head is not None and not (folder / "head.safetensors").exists():
            save_chunk(folder / "head.safetensors", {"weights": head.weights, "bias": head.bias}, {})
        if known is None or model != known or (asked and not self._is_newest(known)):
            stored = known.stored if known is not None and not asked else datetime.now(UTC).isoformat()
            write_model(folder / "model.json", dataclasses.replace(model, stored=stored))

    def save_reached(self, model: ModelRef, images: DatasetRef, reached: Reached) -> None:
        """Stores how far a profile has come, in place of what was known."""
        write_whole(self._profile_path(model, images), with_checksum(reached.plain()), inside=self.root)

    def reached(self, model: ModelRef, images: DatasetRef) -> Reached | None:
        """How far a profile has come; None where it was not begun, or its record is damaged."""
        path = self._profile_path(model, images)
        check_inside(path.parent, self.root)
        try:
            return read_reached(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except DamagedFile as damaged:
            quarantine(path, damaged.reason, MEASURED_ANEW)
            return None

    def _profile_path(self, model: ModelRef, images: DatasetRef) -> Path:
        return self._model_folder(model) / f"profile-{images.fingerprint[:16]}.json"

    def _is_newest(self, known: StoredModel) -> bool:
        versions = (model for model in self.models(companions=True) if model.ref.name == known.ref.name)
        return next(versions).ref == known.ref

    def rename(self, names: Mapping[str, str]) -> None:
        """Gives models, by fingerprint, other names; all of them or none, whenever it is killed."""
        self._change({"rename": dict(names)})

    def forget(self, fingerprints: Iterable[str]) -> None:
        """Deletes models with all their rows and saliency maps; all of them or none, whenever it is killed.

        StoreError where another process is just storing predictions of one: what it writes afterwards would be of no model.
        """
        gone = list(fingerprints)
        with ExitStack() as held:
            for folder in (self.root / "models" / fingerprint for fingerprint in gone):
                if not held.enter_context(locked(folder, alone=True)) and folder.exists():
                    model = read_model_if_there(folder / "model.json")
                    name = model.ref.name if model else folder.name
                    raise StoreError(
                        f"another process is storing predictions of {name} in {self.root}; "
                        "wait until it is done, or stop it, and then forget the model"
                    )
            self._change({"forget": gone})

    @contextmanager
    def in_use(self, ref: ModelRef) -> Iterator[None]:
        """While this holds, no other process forgets the model, where the system has locks; any number may hold it."""
        folder = self._model_folder(ref)
        while True:
            self.settle()
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise refusal(error, folder) from error
            with locked(folder, alone=False) as is_locked:
                # it may have been forgotten, or that been decided, while we waited
                if is_locked and not self._changes.exists():
                    yield
                    return

    def _change(self, change: Mapping[str, Any]) -> None:
        """Writes down what is to be done before doing it, so that whoever comes after a kill can finish it."""
        while True:
            self.settle()
            try:
                write_new(self._changes, json.dumps(change, ensure_ascii=False).encode("utf-8", "surrogateescape"))
                break
            except FileExistsError:
                continue  # another process changes something too
            except OSError as error:
                raise refusal(error, self._changes) from error
        self.settle()

    def settle(self) -> None:
        """Finishes what was decided and then killed; every step may be done twice."""
        for name in FOLDERS:
            check_inside(self.root / name, self.root)
        try:
            text = text_in(self._changes)
            written = self._changes.stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return
        except DamagedFile as damaged:
            quarantine(self._changes, damaged.reason, DECIDED_ANEW)
            return
        try:
            change = json.loads(text)
        except (ValueError, RecursionError):
            # killed before it was decided; or another process is just writing it, unless the clock says that it was not yet
            if abs(time.time() - written) > 60:
                self._changes.unlink(missing_ok=True)
            else:
                time.sleep(0.05)
            return
        names, gone = (change.get("rename", {}), change.get("forget", [])) if isinstance(change, dict) else (None, None)
        if not (isinstance(names, dict) and isinstance(gone, list) and all(map(can_be_name, names.values()))):
            quarantine(self._changes, "it is no list of changes", DECIDED_ANEW)
            return
        try:
            for fingerprint, name in names.items():
                self._rename(fingerprint, name)
            if gone:
                self._forget(frozenset(map(str, gone)))
            self._changes.unlink(missing_ok=True)
        except OSError as error:
            raise refusal(error, self._changes) from error

    def _rename(self, fingerprint: str, name: str) -> None:
        # by what is there, and not by what a text says: it may name a folder elsewhere
        for path in self._own("models/*/model.json"):
            if path.parent.name == fingerprint and (known := read_model_if_there(path)):
                write_model(path, dataclasses.replace(known, ref=ModelRef(name, fingerprint)))

    def _forget(self, fingerprints: Container[str]) -> None:
        """Moves folders out of sight, each at once, and then deletes them."""
        models = [path for path in self.root.glob("models/*") if path.name in fingerprints]
        gone = (*models, *(folder for folder, of in self.folders_of_models() if of in fingerprints))
        if is_url(self.root):
            from shiftproof import remote

            for folder in reversed(gone):  # the model last: whoever finds it unfinished finishes it
                remote.remove_all(str(folder))
            return
        dust = self.root / ".forgotten"
        for folder in gone:
            dust.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another process moved it
                folder.rename(dust / uuid.uuid4().hex)
        shutil.rmtree(dust, ignore_errors=True)

    def folders_of_models(self) -> Iterator[tuple[Path, str]]:
        """Folders of rows and of saliency maps, each with the fingerprint of the model they are of."""
        for path in sorted([*self._own("rows/*/run.json"), *self._own("looks/*/looks.json")]):
            with suppress(FileNotFoundError):
                if (of := model_in(path)) is not None:
                    yield path.parent, of
                else:
                    warnings.warn(f"{path} is damaged and not used; {SAID_ANEW}", StoreWarning, stacklevel=2)

    def rows_by_model(self) -> dict[str, list[int]]:
        """How many images each run has rows of, by the fingerprint of its model."""
        counts: dict[str, list[int]] = {}
        for folder, of in self.folders_of_models():
            if folder.parent.name == "rows":
                run = StoredRun(folder, {})
                counts.setdefault(of, []).append(len(run.contents("top5").rows) or len(run.contents("boxes").rows))
        return counts

    def save_alike(self, images: DatasetRef, pairs: Iterable[tuple[str, str]]) -> None:
        """Stores which files are near-duplicates, by their digests, in place of what was known of the same dataset."""
        key = fingerprint_of(images.location or images.fingerprint)[:16]
        about = {"images": images.name, "location": images.location, "alike": list(pairs)}
        write_whole(self.root / "duplicates" / f"{key}.json", with_checksum(about), inside=self.root)

    def alike(self) -> Iterator[tuple[str, str]]:
        """Pairs of digests of near-duplicate files, of every dataset in which duplicates were searched."""
        for path in sorted(self._own("duplicates/*.json")):
            try:
                yield from read_alike(path)
            except DamagedFile as damaged:
                quarantine(path, damaged.reason, SOUGHT_ANEW)

    @property
    def _changes(self) -> Path:
        return self.root / "changes.json"

    def run(self, ref: ModelRef, condition: Condition, precision: Precision = "float32") -> StoredRun:
        """The rows of one model under one condition, whether there are any yet or not."""
        from shiftproof.corruptions.entry import pixel_revision  # which imports every corruption

        revision = pixel_revision(condition.name)
        pixels = () if revision == 1 else (revision,)
        key = fingerprint_of(ref.fingerprint, condition.key(), precision, FORMAT, *pixels)[:16]
        about = {"format": FORMAT, "model": dataclasses.asdict(ref), "condition": condition.key()}
        # without the model's name: one that is called something else keeps its rows
        return StoredRun(self.root / "rows" / f"{_slug(str(condition))}-{key}", {**about, "precision": precision})

    def absorb(self, other: Store) -> Merged:
        """Adds what another store holds and this one does not; damaged files are left where they are."""
        other.settle()
        while True:
            paths = sorted(path for pattern in OWN_FILES for path in other.root.glob(pattern))
            if not paths:
                raise StoreError(f"no store at {other.root}: expected a folder made by shiftproof predict")
            try:
                return self._absorb(other, paths)
            except FileNotFoundError:
                continue  # another process joined some files since we listed them

    def _absorb(self, other: Store, paths: Sequence[Path]) -> Merged:
        new, damaged = 0, list[DamagedFile]()
        rows_here: dict[Path, KnownRows] = {}
        top = other.root.resolve()
        for path in paths:
            _check_within(path, top)
        for path in paths:
            here = self.root / path.relative_to(other.root)
            try:
                if here.exists() or not path.is_file() or not _adds(path, here.parent, rows_here):
                    continue
            except DamagedFile as error:
                damaged.append(error)
                continue
            self._copy(path, here)
            new += 1
        return Merged(new, tuple(damaged))

    def _copy(self, path: Path, here: Path) -> None:
        if is_url(path) or is_url(here):
            write_whole(here, path.read_bytes(), inside=self.root)
            return
        with writing(here, inside=self.root) as unfinished, path.open("rb") as source, unfinished.open("wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fsync(copy.fileno())

    def check(self) -> list[Checked]:
        """Reads every file of the store, and quarantines those that are damaged."""
        self.settle()
        folders = {path.parent for pattern in OWN_FILES for path in self._own(pattern)}
        return [_checked(folder) for folder in sorted(folders)]

    def _own(self, pattern: str) -> Iterator[Path]:
        """Files of the store; StoreError where a folder of it is a link that leads out: files may be written or moved."""
        for path in self.root.glob(pattern):
            check_inside(path.parent, self.root)
            yield path

    def _model_folder(self, ref: ModelRef) -> Path:
        return self.root / "models" / ref.fingerprint


FOLDERS = ("models", "rows", "looks", "duplicates", ".forgotten")

OWN_FILES = (
    "models/*/model.json",
    "models/*/head.safetensors",
    "models/*/profile-*.json",
    *(
        f"{kind}/*/{name}"
        for kind, about in (("rows", "run"), ("looks", "looks"))
        for name in (f"{about}.json", "*.safetensors")
    ),
    "duplicates/*.json",
)
"""What a store is made of, besides the cache of digests."""


class Merged(NamedTuple):
    """What came of adding a store to another: how many files were new, and those that were not taken over."""

    new_files: int
    damaged: tuple[DamagedFile, ...]


class Checked(NamedTuple):
    """What reading a folder of the store found."""

    folder: Path
    files: int
    rows: int
    without_checksums: int  # files that were written before there were any
    damaged: tuple[DamagedFile, ...]  # now
    damaged_before: int  # files that were quarantined earlier and are still kept


class Check(NamedTuple):
    """What was found of a dataset, or of each folder of a store."""

    dataset: DatasetCheck | None
    store: Sequence[Checked]


def check(
    dataset: str | Path | ImageList | None = None,
    *,
    store: str | Path | None = None,
    published: str | None = None,
    dataset_options: DatasetSettings | None = None,
) -> Check:
    """How a dataset differs from the published one it should be or matches; or what is damaged in a store.

    Opens no image; damaged files of a store are quarantined. BadInput where both or neither are named, and where there is
    no store.
    """
    if (dataset is None) == (store is None):
        raise BadInput("name either a dataset or a store to check")
    if dataset is not None:
        from shiftproof.datasets.published.known import check_dataset

        return Check(check_dataset(dataset, published=published, dataset_options=dataset_options), ())
    checked = Store(store or "").check()
    if not checked:
        raise BadInput(f"no store at {store}: expected a folder made by shiftproof predict")
    return Check(None, checked)


def merge_stores(root: str | Path, others: Iterable[str | Path]) -> dict[str, Merged]:
    """Other stores joined into one, as after a run that was split over machines."""
    return {str(other): Store(root).absorb(Store(other)) for other in others}


def _check_within(path: Path, top: Path) -> None:
    """StoreError where a file of a store is a link to nowhere, or leads out of it."""
    if path.is_symlink() and not path.exists():
        raise StoreError(f"{path} is a link to nowhere; remove it, or bring back what it led to, and merge again")
    found = path.resolve()
    if not found.is_relative_to(top):
        raise StoreError(
            f"{path} leads out of the store, to {found}; put a copy in its place, or remove it, and merge again"
        )


def _adds(path: Path, here: Path, known: dict[Path, KnownRows]) -> bool:
    """Whether a sound file of another store holds something that the folder here does not; DamagedFile where it is not."""
    about = _sound(path).about
    if about is None:
        return True
    if here not in known:
        known[here] = KnownRows()
        for own in StoredRun(here, {})._files():
            with or_quarantine(), reading(own) as file:
                held = about_rows(file)
                known[here].add(held)
                known[here].add_skipped(held)
    new_skipped = known[here].add_skipped(about)
    return bool(known[here].add(about)) or new_skipped


class _Sound(NamedTuple):
    """A file of the store, all of which was read."""

    about: AboutRows | None  # of a file of rows
    has_checksums: bool


def _sound(path: Path) -> _Sound:
    """What a file of the store is; DamagedFile where it is not as it was written."""
    if path.name == "model.json":
        read_model(path)
        return _Sound(None, True)
    if path.parent.name == "duplicates":
        read_alike(path)
        return _Sound(None, True)
    if path.name.startswith("profile-"):
        read_reached(path)
        return _Sound(None, True)
    if path.suffix == ".json":
        if model_in(path) is None:
            raise DamagedFile(path, "it does not say which model it is of")
        return _Sound(None, True)
    with reading(path) as file:
        about = about_rows(file) if path.parent.parent.name == "rows" else None
        for name in file.names:
            if about is not None and name in FORMS:
                rows_array(file, name, len(about.pairs))
            else:
                file.array(name)
        return _Sound(about, file.has_checksums)


def _checked(folder: Path) -> Checked:
    files = rows = without = 0
    damaged: list[DamagedFile] = []
    before = len(list(folder.glob("*.damaged")))
    for path in sorted(path for pattern in ("*.json", "*.safetensors") for path in folder.glob(pattern) if path.is_file()):
        try:
            found = _sound(path)
        except FileNotFoundError:
            continue  # another process joined it with others
        except DamagedFile as error:
            damaged.append(error)
            quarantine(path, error.reason, _remedy(path))
            continue
        files += 1
        rows += len(found.about.pairs) if found.about else 0
        without += not found.has_checksums
    return Checked(folder, files, rows, without, tuple(damaged), before)


def _remedy(path: Path) -> str:
    if path.suffix == ".safetensors":
        return MADE_ANEW
    if path.name.startswith("profile-"):
        return MEASURED_ANEW
    return SOUGHT_ANEW if path.parent.name == "duplicates" else SAID_ANEW


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_")[:60] or "unnamed"
