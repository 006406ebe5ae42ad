"""One case at a time: a damaged file in a folder of its own, what reads it, and what must not happen meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import random
import re
import resource
import shutil
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import shiftproof
from fuzz.cases import LARGEST, Edit, Seed, applied, edits_of
from shiftproof.errors import ShiftproofError
from shiftproof.runs.processes import START

CORPUS = Path(__file__).with_name("corpus")
"""Files that once failed, by reader."""

COMPILED = os.path.realpath(Path(shiftproof.__file__).with_name("corruptions") / "kernels" / "__pycache__")
"""Where numba keeps the kernels of corruptions."""

GROWTH = 2**30
"""Bytes of memory that a case may take."""

Kind = Literal["refused", "accepted", "traceback", "hang", "blow-up", "outside", "silent"]
KINDS: tuple[Kind, ...] = ("refused", "accepted", "traceback", "hang", "blow-up", "outside", "silent")
FAULTS = KINDS[2:]


class Wrong(AssertionError):
    """A reader gave a result that cannot be right."""


@dataclass(frozen=True)
class Reader:
    """One way into shiftproof: the folder of a case in, what was read out."""

    name: str
    seeds: Callable[[], Sequence[Seed]]
    read: Callable[[Path], object]
    share: float = 1.0  # of the cases, beside a reader that takes a few milliseconds
    checked: bool = False  # whether damage must be noticed: the result is that of the seed, or none
    may_write: tuple[str, ...] = ()  # elsewhere, since that is what was asked for

    @property
    def is_slow(self) -> bool:
        return self.share < 0.2


@dataclass(frozen=True)
class Found:
    """One failure: the file that shows it, and where the code was."""

    reader: str
    seed: str
    kind: Kind
    place: str  # the last line of ours that ran, and the error
    told: str
    target: str
    content: bytes

    @property
    def key(self) -> str:
        return f"{self.reader}: {self.kind} {self.place}"

    @property
    def file_name(self) -> str:
        """The seed whose other files it needs, what went wrong and the ending that readers go by."""
        short = re.sub(r"\W+", "-", f"{self.kind} {self.place}").strip("-")[:60]
        digest = hashlib.sha256(self.content).hexdigest()[:6]
        return f"{self.seed}~{short}~{digest}{Path(self.target).suffix}"


class Outcome(NamedTuple):
    """What became of one case."""

    kind: Kind
    place: str = ""
    told: str = ""
    error: BaseException | None = None


class Watch:
    """Notes what this process writes or starts; an audit hook stays for good, so there is one watch a process."""

    WRITING = frozenset({"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink"})
    STARTING = frozenset({"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "socket.connect"})

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        sys.addaudithook(self._note)

    def _note(self, event: str, told: tuple[Any, ...]) -> None:
        if self.seen is None:
            return
        if event == "open" and isinstance(told[2], int) and told[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            self.seen.append(_resolved(told[0]))
        elif event in self.WRITING and told[-1] == -1:  # else a name below a folder that was opened before
            if event in ("os.mkdir", "os.remove") and os.path.lexists(told[0]) == (event == "os.mkdir"):
                return  # a folder that is there, or a file that is not: nothing changes
            self.seen.extend(_resolved(path) for path in told[:2] if isinstance(path, (str, bytes, os.PathLike)))
        elif event in self.STARTING and not (event == "subprocess.Popen" and START in told[1]):  # but for our own workers
            self.seen.append(f"{event} {told[0]!r:.60}")

    @contextlib.contextmanager
    def on(self) -> Iterator[list[str]]:
        seen: list[str] = []
        unwritten, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # a reader may be imported by its first case
        self.seen = seen
        try:
            yield seen
        finally:
            self.seen, sys.dont_write_bytecode = None, unwritten


def _resolved(path: Any) -> str:
    # a number is a file that was opened before
    return "" if isinstance(path, int) else os.path.realpath(os.fsdecode(path))


@cache
def the_watch() -> Watch:
    return Watch()


class Bench:
    """Where cases of one process are tried: a folder with a canary beside the folder of the case."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.case = self.root / "case"
        self._canary, self._cache = self.root / "canary", self.root / "cache"
        self.root.mkdir(parents=True, exist_ok=True)
        self._canary.write_text("sings")
        self._cache.mkdir(exist_ok=True)
        self._expected: dict[tuple[str, str], object] = {}
        os.environ["MPLCONFIGDIR"] = str(self._cache)
        # that of the tests, where there is one, and of numba: what they hold is slow to make
        shared = os.environ.setdefault("SHIFTPROOF_CACHE", str(self._cache))
        self._caches = (str(self._cache), os.path.realpath(shared), COMPILED)

    def try_seed(self, reader: Reader, seed: Seed) -> None:
        """Reads what nobody has damaged; an error where that fails, since nothing could be learnt from damaging it."""
        outcome = self.try_file(reader, seed, seed.wrap(seed.content))
        if outcome.kind in FAULTS:  # libraries may look about at their first use
            outcome = self.try_file(reader, seed, seed.wrap(seed.content))
        if outcome.kind != "accepted" and (seed.mutated or outcome.kind in FAULTS):
            raise RuntimeError(
                f"{reader.name} fails on its own seed {seed.name}: {outcome.kind} {outcome.place} {outcome.told}"
            )

    def try_file(self, reader: Reader, seed: Seed, content: bytes) -> Outcome:
        """What became of a file in the place of the seed's own."""
        known = (reader.name, seed.name)
        if reader.checked and known not in self._expected:
            self._lay_out(seed, seed.files[seed.target])
            self._expected[known] = reader.read(self.case)
        self._lay_out(seed, content)
        before, here = _most_memory(), os.getcwd()
        with the_watch().on() as touched:
            outcome = self._read(reader, known)
        os.chdir(here)
        if _most_memory() - before > GROWTH:
            told = f"{(_most_memory() - before) / 2**30:.1f} GiB"
            return Outcome("blow-up", outcome.place or outcome.kind, told, MemoryError(told))
        elsewhere = [os.path.realpath(path) for path in reader.may_write]
        strange = [
            path
            for path in touched
            if path and not path.startswith((str(self.case), *self._caches, "/dev/null", *elsewhere))
        ]
        beside = [path for path in self.root.iterdir() if path not in (self.case, self._cache, self._canary)]
        if strange or beside or self._canary.read_text() != "sings":
            told = ", ".join([*strange, *(path.name for path in beside)]) or "the canary"
            for path in beside:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            self._canary.write_text("sings")
            return Outcome("outside", told[:60], told[:1000], Wrong(told))
        return outcome

    def _read(self, reader: Reader, known: tuple[str, str]) -> Outcome:
        try:
            # damage in a store is told by a warning, whatever whoever runs this makes of warnings
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = reader.read(self.case)
        except ShiftproofError as refusal:
            return Outcome("refused", told=str(refusal))
        except Wrong as wrong:
            return Outcome("silent", str(wrong).partition(":")[0], str(wrong), wrong)
        except (Exception, SystemExit) as error:
            return Outcome("traceback", place_of(error), "".join(traceback.format_exception(error))[-3000:], error)
        if reader.checked and result != self._expected[known]:
            return Outcome("silent", f"changed {known[1]}", "other numbers than before the damage", Wrong("other numbers"))
        return Outcome("accepted")

    def _lay_out(self, seed: Seed, content: bytes) -> None:
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir()
        for name, data in {**seed.files, seed.target: content}.items():
            path = self.case / name
            if path.parent != self.case:
                path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def _most_memory() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def place_of(error: BaseException) -> str:
    """The last line of shiftproof that ran, and what kind of error came."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/shiftproof/" in frame.filename]
    where = f"{ours[-1].filename.rpartition('/shiftproof/')[2]}:{ours[-1].lineno}" if ours else "outside shiftproof"
    return f"{type(error).__name__} {where}"


@dataclass(frozen=True)
class Batch:
    """Some cases of one seed of a reader."""

    reader: str
    number: int  # of the batch, which says the seed and where its cases come from
    seed: int
    cases: int
    known: frozenset[str]  # failures that need not be kept again


class Progress:
    """What a worker is at, in memory that its supervisor still sees when the worker is gone."""

    SIZE = 1 + len(KINDS)

    def __init__(self, shared: Any) -> None:
        self.shared = shared  # when the case began, 0 between cases; then how many of the batch ended in which way

    def begin(self) -> None:
        self.shared[0] = time.monotonic()

    def end(self, kind: Kind | None) -> None:
        self.shared[0] = 0.0
        if kind is not None:
            self.shared[1 + KINDS.index(kind)] += 1

    def counts(self) -> Counter[str]:
        counted: Counter[str] = Counter({kind: int(self.shared[1 + place]) for place, kind in enumerate(KINDS)})
        counted["cases"] = counted.total()
        return counted

    def clear(self) -> None:
        self.shared[:] = [0.0] * self.SIZE


def run_batch(bench: Bench, reader: Reader, seed: Seed, batch: Batch, progress: Progress) -> list[Found]:
    """Tries the cases of a batch; each new failure with the smallest file that shows it."""
    smallest: dict[str, Found] = {}

    def tried(payload: bytes, *, counted: bool = True) -> tuple[str, BaseException | None]:
        content = seed.wrap(payload)[:LARGEST]
        progress.begin()
        outcome = bench.try_file(reader, seed, content)
        progress.end(outcome.kind if counted else None)
        if outcome.kind not in FAULTS:
            return "", None
        found = Found(reader.name, seed.name, outcome.kind, outcome.place, outcome.told, seed.target, content)
        if found.key not in smallest or len(content) < len(smallest[found.key].content):
            smallest[found.key] = found
        return found.key, outcome.error

    rng = random.Random(f"{batch.seed} {batch.reader} {batch.number}")
    if seed.documents is None or (seed.mutated and batch.number % 2):
        for _ in range(batch.cases):
            edits = edits_of(seed.content, rng)
            known = batch.known | smallest.keys()
            key, _error = tried(applied(seed.content, edits))
            if key and key not in known:
                _fewer(edits, lambda some: tried(applied(seed.content, some), counted=False)[0] == key)  # noqa: B023 used at once
    else:
        _draw(seed, rng.getrandbits(32), batch, tried, shrink=not reader.is_slow)
    return [found for key, found in smallest.items() if key not in batch.known]


def _fewer(edits: list[Edit], still_fails: Callable[[list[Edit]], bool]) -> None:
    """Tries the changes one by one and without one each; who is asked keeps the smallest file."""
    if len(edits) == 1 or any(still_fails([edit]) for edit in edits):
        return
    place = 0
    while place < len(edits):
        rest = edits[:place] + edits[place + 1 :]
        if rest and still_fails(rest):
            edits = rest
        else:
            place += 1


def _draw(
    seed: Seed, number: int, batch: Batch, tried: Callable[..., tuple[str, BaseException | None]], *, shrink: bool
) -> None:
    """Lets Hypothesis draw documents, and shrink those that fail in a new way."""
    # half of the time in which a worker starts, and workers that were ended start by the dozen
    from hypothesis import HealthCheck, Phase, Verbosity, given, settings
    from hypothesis import seed as hypothesis_seed

    failing, left = False, batch.cases

    @hypothesis_seed(number)
    @settings(
        max_examples=batch.cases,
        database=None,
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
    )
    @given(seed.similar)
    def case(payload: bytes) -> None:
        nonlocal failing, left
        key, error = tried(payload, counted=not failing and left > 0)
        left -= 1
        if error is not None and key not in batch.known:
            failing = True
            raise error

    try:
        case()
    except BaseException:
        if not failing:  # else it is what was kept
            raise


def load_readers(module: str) -> dict[str, Reader]:
    readers: Sequence[Reader] = importlib.import_module(module).READERS
    return {reader.name: reader for reader in readers}


def replay(bench: Bench, reader: Reader, seeds: Sequence[Seed], path: Path) -> Outcome:
    """What becomes of a file of the corpus, beside the other files of the seed that its name begins with."""
    seed = next(seed for seed in seeds if seed.name == path.name.partition("~")[0])
    return bench.try_file(reader, seed, path.read_bytes())
