"""Predictions on disk: made once, asked often.

    runs/
      digests.sqlite                     which file had which bytes
      models/<fingerprint>/model.json    what the model is; head.safetensors beside it, where it has one
      changes.json                       names to change, or models to forget: there only until that is done
      rows/<condition>-<key>/            key = model fingerprint (preparation included), condition, format
        run.json                         all of that in the open
        <time>-<writer>.safetensors      some rows; there whole or not at all
      duplicates/<key>.json              images of a set that look alike, by the digests of their files; key = where it lies

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
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors import numpy as tensors

from shiftproof.corruptions import PIXELS
from shiftproof.digests import DigestCache
from shiftproof.errors import StoreError
from shiftproof.files import refusal, write_whole
from shiftproof.stored_boxes import gathered_boxes
from shiftproof.types import (
    Answers,
    Classes,
    Classifier,
    Companion,
    Condition,
    Head,
    ImageSetRef,
    Keep,
    ModelRef,
    ObjectDetector,
    Precision,
    Seen,
    fingerprint_of,
    satisfies,
)

FORMAT = 1
SEALED_BYTES = 8 * 2**20
"""Small files are joined into files of about this size when a run is complete; joining takes a few times as much memory."""

ABSORBED = ("models/*/*", "rows/*/*", "looks/*/*", "duplicates/*")
"""What stores are joined of."""

TOP5 = ("top5_classes", "top5_scores", "log_total")


@dataclass(frozen=True)
class StoredModel:
    """What the store remembers of a model, enough to study its predictions without it."""

    ref: ModelRef
    gives: Answers
    preparation: Mapping[str, Any]
    seen: Seen = dataclasses.field(default_factory=Seen)
    classes: Classes | None = None
    outputs: int | None = None  # columns of its scores
    notes: tuple[str, ...] = ()
    companion: Companion | None = None  # how it was made of another model; None: it is a model of its own
    stored: str = dataclasses.field(default="", compare=False)  # ISO time at which it was last asked under its name

    @classmethod
    def of(cls, model: Classifier | ObjectDetector, outputs: int | None = None) -> StoredModel:
        notes = tuple(getattr(model, "notes", ()))
        gives: Answers = "boxes" if isinstance(model, ObjectDetector) else model.gives
        if gives == "boxes" and model.classes is not None:
            outputs = len(model.classes)
        described, companion = dict(model.preparation.describe()), getattr(model, "companion", None)
        return cls(model.ref, gives, described, model.seen, model.classes, outputs, notes, companion)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> StoredModel:
        classes, seen, companion = plain["classes"], plain["seen"], plain.get("companion")
        return cls(
            ref=ModelRef(**plain["ref"]),
            gives=plain["gives"],
            preparation=plain["preparation"],
            seen=Seen(seen["training_data"], tuple(seen["augmentations"]), tuple(seen["filtered"])),
            classes=classes and Classes(tuple(classes["names"]), classes["wnids"] and tuple(classes["wnids"])),
            outputs=plain["outputs"],
            notes=tuple(plain["notes"]),
            companion=companion and Companion(**companion),
            stored=plain.get("stored", ""),
        )


@dataclass(frozen=True)
class Rows:
    """Some rows as they go into the store: what the model said, or why the image was set aside."""

    ids: Sequence[str]
    digests: Sequence[str]
    arrays: Mapping[str, NDArray[Any]]  # one row an id: TOP5, perhaps logits, features, extra; or boxes, see stored_boxes
    aside: Sequence[tuple[str, str, str]] = ()  # id, digest, reason


class Store:
    """A folder of runs."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    @property
    def digests(self) -> DigestCache:
        return DigestCache(self.root / "digests.sqlite")

    def models(self, *, companions: bool = False) -> list[StoredModel]:
        """Every model that has rows here, by name, the newest version of a name first; companions only where asked for.

        Companions are networks that were made of a model and asked beside it: random ones, ODIN's, other input sizes.
        """
        self.settle()
        found = filter(None, map(_read_model_if_there, self.root.glob("models/*/model.json")))
        wanted = [model for model in _marked(list(found)) if companions or model.companion is None]
        newest_first = sorted(wanted, key=lambda model: (model.stored, model.ref.fingerprint), reverse=True)
        return sorted(newest_first, key=lambda model: model.ref.name)

    def model(self, ref: ModelRef) -> StoredModel | None:
        self.settle()
        return _read_model_if_there(self._model_folder(ref) / "model.json")

    def head(self, ref: ModelRef) -> Head | None:
        path = self._model_folder(ref) / "head.safetensors"
        return Head(**tensors.load_file(path)) if path.exists() else None

    def save_model(self, model: StoredModel, head: Head | None = None, *, asked: bool = True) -> None:
        """Remembers what the model says of itself now: its name, classes and past may change while its answers stay.

        Of several versions of one name the one that was `asked` last is the newest.
        """
        known = self.model(model.ref)
        if known is not None and model.outputs is None:
            model = dataclasses.replace(model, outputs=known.outputs)
        folder = self._model_folder(model.ref)
        if head is not None and not (folder / "head.safetensors").exists():
            weights = {"weights": np.ascontiguousarray(head.weights), "bias": np.ascontiguousarray(head.bias)}
            write_whole(folder / "head.safetensors", tensors.save(weights))
        if known is None or model != known or (asked and not self._is_newest(known)):
            stored = known.stored if known is not None and not asked else datetime.now(UTC).isoformat()
            write_whole(folder / "model.json", _json(dataclasses.asdict(dataclasses.replace(model, stored=stored))))

    def _is_newest(self, known: StoredModel) -> bool:
        versions = (model for model in self.models(companions=True) if model.ref.name == known.ref.name)
        return next(versions).ref == known.ref

    def rename(self, names: Mapping[str, str]) -> None:
        """Gives models, by fingerprint, other names; all of them or none, whenever it is killed."""
        self._change({"rename": dict(names)})

    def forget(self, fingerprints: Iterable[str]) -> None:
        """Deletes models with all their rows and heat maps; all of them or none, whenever it is killed.

        StoreError where another process is just storing answers of one: what it writes afterwards would be of no model.
        """
        gone = list(fingerprints)
        with ExitStack() as held:
            for folder in (self.root / "models" / fingerprint for fingerprint in gone):
                if not held.enter_context(_locked(folder, alone=True)) and folder.exists():
                    model = _read_model_if_there(folder / "model.json")
                    raise StoreError(
                        f"another process is storing answers of {model.ref.name if model else folder.name} in {self.root}; "
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
            with _locked(folder, alone=False) as is_locked:
                # it may have been forgotten, or that been decided, while we waited
                if is_locked and not self._changes.exists():
                    yield
                    return

    def _change(self, change: Mapping[str, Any]) -> None:
        """Writes down what is to be done before doing it, so that whoever comes after a kill can finish it."""
        while True:
            self.settle()
            try:
                with self._changes.open("x", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(json.dumps(change, ensure_ascii=False))
                    file.flush()
                    os.fsync(file.fileno())
                break
            except FileExistsError:
                continue  # another process changes something too
            except OSError as error:
                raise refusal(error, self._changes) from error
        self.settle()

    def settle(self) -> None:
        """Finishes what was decided and then killed; every step may be done twice."""
        try:
            text = self._changes.read_text(encoding="utf-8", errors="surrogateescape")
            written = self._changes.stat().st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            change = json.loads(text)
        except ValueError:
            # killed before it was decided; or another process is just writing it
            if time.time() - written > 60:
                self._changes.unlink(missing_ok=True)
            else:
                time.sleep(0.05)
            return
        try:
            for fingerprint, name in change.get("rename", {}).items():
                self._rename(fingerprint, name)
            if "forget" in change:
                self._forget(frozenset(change["forget"]))
            self._changes.unlink(missing_ok=True)
        except OSError as error:
            raise refusal(error, self._changes) from error

    def _rename(self, fingerprint: str, name: str) -> None:
        path = self.root / "models" / fingerprint / "model.json"
        if path.exists():
            renamed = dataclasses.replace(_read_model(path), ref=ModelRef(name, fingerprint))
            write_whole(path, _json(dataclasses.asdict(renamed)))

    def _forget(self, fingerprints: Container[str]) -> None:
        """Moves folders out of sight, each at once, and then deletes them."""
        models = [path for path in self.root.glob("models/*") if path.name in fingerprints]
        dust = self.root / ".forgotten"
        for folder in (*models, *(folder for folder, of in self.folders_of_models() if of in fingerprints)):
            dust.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):  # another process moved it
                folder.rename(dust / uuid.uuid4().hex)
        shutil.rmtree(dust, ignore_errors=True)

    def folders_of_models(self) -> Iterator[tuple[Path, str]]:
        """Folders of rows and of heat maps, each with the fingerprint of the model they are of."""
        for path in sorted([*self.root.glob("rows/*/run.json"), *self.root.glob("looks/*/looks.json")]):
            with suppress(ValueError, KeyError, TypeError, FileNotFoundError):
                about = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
                yield path.parent, str(about["model"]["fingerprint"])

    def rows_by_model(self) -> dict[str, list[int]]:
        """How many images each run has rows of, by the fingerprint of its model."""
        counts: dict[str, list[int]] = {}
        for folder, of in self.folders_of_models():
            if folder.parent.name == "rows":
                run = StoredRun(folder, {})
                counts.setdefault(of, []).append(len(run.contents("top5").rows) or len(run.contents("boxes").rows))
        return counts

    def save_alike(self, images: ImageSetRef, pairs: Iterable[tuple[str, str]]) -> None:
        """Remembers which files look alike, by their digests, in place of what was known of the same set."""
        key = fingerprint_of(images.location or images.fingerprint)[:16]
        about = {"images": images.name, "location": images.location, "alike": list(pairs)}
        write_whole(self.root / "duplicates" / f"{key}.json", _json(about))

    def alike(self) -> Iterator[tuple[str, str]]:
        """Pairs of digests of files that look alike, of every set in which duplicates were looked for."""
        for path in sorted(self.root.glob("duplicates/*.json")):
            try:
                found = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
                yield from ((str(one), str(other)) for one, other in found["alike"])
            except (ValueError, KeyError, TypeError) as error:
                raise StoreError(f"{path} is damaged; delete it and look for duplicates again") from error

    @property
    def _changes(self) -> Path:
        return self.root / "changes.json"

    def run(self, ref: ModelRef, condition: Condition, precision: Precision = "float32") -> StoredRun:
        """The rows of one model under one condition, whether there are any yet or not."""
        pixels = (PIXELS[condition.name],) if condition.name in PIXELS else ()
        key = fingerprint_of(ref.fingerprint, condition.key(), precision, FORMAT, *pixels)[:16]
        about = {"format": FORMAT, "model": dataclasses.asdict(ref), "condition": condition.key()}
        # without the model's name: one that is called something else keeps its rows
        return StoredRun(self.root / "rows" / f"{_slug(str(condition))}-{key}", {**about, "precision": precision})

    def absorb(self, other: Store) -> int:
        """Adds what another store holds; the number of files that were new here."""
        new = 0
        other.settle()
        while True:
            paths = sorted(path for kept in ABSORBED for path in other.root.glob(kept))
            if not paths:
                raise StoreError(f"no store at {other.root}: expected a folder made by shiftproof predict")
            try:
                for path in paths:
                    here = self.root / path.relative_to(other.root)
                    if not here.exists() and not path.name.startswith("."):
                        write_whole(here, path.read_bytes())
                        new += 1
                return new
            except FileNotFoundError:
                continue  # another process joined some files since we listed them

    def _model_folder(self, ref: ModelRef) -> Path:
        return self.root / "models" / ref.fingerprint


class StoredRun:
    """The rows of one model under one condition."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self.about = about
        self._writer = uuid.uuid4().hex[:8]

    def append(self, rows: Rows, keep: Keep) -> None:
        """Commits rows: after this they survive anything but the disk."""
        if not (self.folder / "run.json").exists():
            write_whole(self.folder / "run.json", _json(self.about))
        texts = {"keep": keep, "ids": rows.ids, "digests": rows.digests, "aside": rows.aside}
        metadata = {name: text if isinstance(text, str) else json.dumps(list(text)) for name, text in texts.items()}
        arrays = {name: np.ascontiguousarray(array) for name, array in rows.arrays.items()}
        write_whole(self._new_path(), tensors.save(arrays, metadata))

    def contents(self, keep: Keep = "top5") -> Contents:
        """Which images have a row that holds at least `keep`, and where."""
        while True:
            try:
                return self._contents(keep)
            except FileNotFoundError:
                continue  # another process joined some files since we listed them

    def _contents(self, keep: Keep) -> Contents:
        found = Contents()
        for path in self._files():
            with _reading(path) as file:
                metadata = file.metadata()
            for key, digest, reason in json.loads(metadata["aside"]):
                found.aside.setdefault((key, digest), reason)
            if satisfies(metadata["keep"], keep):
                pairs = zip(json.loads(metadata["ids"]), json.loads(metadata["digests"]), strict=True)
                for row, pair in enumerate(pairs):
                    found.rows.setdefault(pair, (path, row))
        return found

    def load(self, wanted: Sequence[tuple[str, str]], keep: Keep = "top5") -> dict[str, NDArray[Any]]:
        """The rows of these (id, digest) pairs, in this order, holding `keep`; all of them must be here.

        Extra numbers come with them where every one of these rows has some.
        """
        while True:
            try:
                return self._load(wanted, self._contents(keep), _tensors_of(keep))
            except FileNotFoundError:
                continue

    @staticmethod
    def _load(wanted: Sequence[tuple[str, str]], contents: Contents, names: Sequence[str]) -> dict[str, NDArray[Any]]:
        places = _places(wanted, contents)
        arrays: dict[str, NDArray[Any]] = {}
        without_extra = False
        for path, pairs in places.items():
            target, source = (np.array(side) for side in zip(*pairs, strict=True))
            with _reading(path) as file:
                extra = [name for name in file.keys() if name == "extra"]  # noqa: SIM118 not a mapping
                without_extra |= not extra
                for name in (*names, *extra):
                    stored = file.get_tensor(name)
                    if name not in arrays:
                        kind = np.float32 if stored.dtype == np.float16 else stored.dtype
                        arrays[name] = np.empty((len(wanted), *stored.shape[1:]), kind)
                    arrays[name][target] = stored[source]
        if without_extra:
            arrays.pop("extra", None)
        return arrays

    def load_boxes(self, wanted: Sequence[tuple[str, str]]) -> dict[str, NDArray[Any]]:
        """The boxes of these (id, digest) pairs, in this order; all of them must be here."""
        while True:
            try:
                return gathered_boxes(_places(wanted, self._contents("boxes")), len(wanted), _read_tensor)
            except FileNotFoundError:
                continue

    def walk(self, wanted: Iterable[tuple[str, str]], keep: Keep = "top5") -> Iterator[Rows]:
        """The rows of these (id, digest) pairs, each once, file by file as they lie: for more than fits into memory."""
        left = set(wanted)
        while left:
            before = len(left)
            try:
                for path in self._files():
                    rows = _read_some(path, left, keep)
                    left.difference_update(zip(rows.ids, rows.digests, strict=True))
                    if rows.ids:
                        yield rows
            except FileNotFoundError:
                continue  # another process joined some files since we listed them; what was not read yet is in the new ones
            if len(left) == before:
                raise StoreError(f"{before} rows have gone from {self.folder}; predict again")

    def seal(self) -> None:
        """Joins small files into large ones. A kill between writing and deleting leaves rows twice, which is harmless."""
        with suppress(FileNotFoundError):  # another process is joining them
            self._seal()

    def _seal(self) -> None:
        small: dict[str, list[Path]] = {}
        for path in self._files():
            if path.stat().st_size < SEALED_BYTES // 2:
                with _reading(path) as file:
                    small.setdefault(file.metadata()["keep"], []).append(path)
        for keep, paths in small.items():
            for some in _groups(paths):
                if len(some) > 1:
                    self.append(_joined(some), keep)  # type: ignore[arg-type]
                    for path in some:
                        path.unlink(missing_ok=True)

    def clear_unfinished(self) -> None:
        """Removes what killed writers left half-written, once it is surely nobody's any more."""
        for path in self.folder.glob(".*"):
            try:
                if time.time() - path.stat().st_mtime > 3600:
                    path.unlink()
            except FileNotFoundError:
                pass  # its writer has just finished it

    def _files(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.safetensors") if path.is_file())

    def _new_path(self) -> Path:
        return self.folder / f"{time.time_ns():020d}-{self._writer}.safetensors"


@dataclass
class Contents:
    """Where the rows of a run lie, and what was set aside, by (id, digest)."""

    rows: dict[tuple[str, str], tuple[Path, int]] = dataclasses.field(default_factory=dict)
    aside: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)


def _places(wanted: Sequence[tuple[str, str]], contents: Contents) -> dict[Path, list[tuple[int, int]]]:
    """For each file the places where its rows are wanted, each with the row."""
    places: dict[Path, list[tuple[int, int]]] = {}
    for place, pair in enumerate(wanted):
        path, row = contents.rows[pair]
        places.setdefault(path, []).append((place, row))
    return places


def _read_tensor(path: Path, name: str) -> NDArray[Any]:
    with _reading(path) as file:
        found: NDArray[Any] = file.get_tensor(name)
    return found


@contextmanager
def _locked(folder: Path, *, alone: bool) -> Iterator[bool]:
    """Whether a folder is locked, `alone` or with others; False where it is not there, or is others' and was to be alone.

    A lock with others is waited for. It goes with the process, however that ends.
    """
    try:
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
    except ModuleNotFoundError:  # Windows
        yield True
        return
    except FileNotFoundError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # a network folder without locks
        yield folder.exists() and os.path.samestat(os.fstat(descriptor), folder.stat())
    finally:
        os.close(descriptor)


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="numpy") as file:
            yield file
    except SafetensorError as error:
        raise StoreError(f"{path} is damaged ({error}); delete it and predict again: only its rows are lost") from error


def _groups(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Paths, in order, that together make a sealed file each."""
    some: list[Path] = []
    held = 0
    for path in paths:
        some.append(path)
        held += path.stat().st_size
        if held >= SEALED_BYTES:
            yield some
            some, held = [], 0
    yield some


def _joined(paths: Iterable[Path]) -> Rows:
    return joined_rows([_read_rows(path) for path in paths]) or Rows([], [], {})


def _read_rows(path: Path) -> Rows:
    with _reading(path) as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 not a mapping
    aside = [tuple(entry) for entry in json.loads(metadata["aside"])]
    return Rows(json.loads(metadata["ids"]), json.loads(metadata["digests"]), arrays, aside)


def _read_some(path: Path, wanted: Container[tuple[str, str]], keep: Keep) -> Rows:
    """Those rows of a file that are wanted and hold `keep`; half-precision numbers come back as single."""
    with _reading(path) as file:
        metadata = file.metadata()
        if not satisfies(metadata["keep"], keep):
            return Rows([], [], {})
        pairs = list(zip(json.loads(metadata["ids"]), json.loads(metadata["digests"]), strict=True))
        places = [place for place, pair in enumerate(pairs) if pair in wanted]
        needed = (*_tensors_of(keep), "extra") if places else ()
        arrays = {name: file.get_tensor(name) for name in file.keys() if name in needed}  # noqa: SIM118 not a mapping
    for name, stored in arrays.items():
        some = stored if len(places) == len(pairs) else stored[places]
        arrays[name] = some.astype(np.float32) if some.dtype == np.float16 else some
    return Rows([pairs[place][0] for place in places], [pairs[place][1] for place in places], arrays)


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
        [entry for part in parts for entry in part.aside],
    )


def _tensors_of(keep: Keep) -> tuple[str, ...]:
    return {"top5": TOP5, "logits": (*TOP5, "logits"), "features": (*TOP5, "logits", "features")}[keep]


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "_", text).strip("_")[:60] or "unnamed"


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogateescape")


def _read_model_if_there(path: Path) -> StoredModel | None:
    """None where it is not there, or another process has just forgotten it."""
    try:
        return _read_model(path)
    except StoreError:
        if path.exists():
            raise
        return None


def _read_model(path: Path) -> StoredModel:
    try:
        plain = json.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
        # before models were stored with their time, their file alone had it
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat()
        return StoredModel.from_plain({"stored": written, **plain})
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged; delete it and predict again: the rows are kept") from error


def _marked(models: Sequence[StoredModel]) -> list[StoredModel]:
    """The same, with those marked that were stored before companions were: by how their names and fingerprints are made."""
    from shiftproof.models.companions import companion_made_of

    refs = [model.ref for model in models]
    return [
        model
        if model.companion
        else dataclasses.replace(model, companion=companion_made_of(model.ref, model.seen, model.notes, refs))
        for model in models
    ]
