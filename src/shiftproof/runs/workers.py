"""A thread and worker processes that decode, corrupt and preprocess images while the model runs.

Work begins in a thread of this process, which is there at once and shares its memory. Where the model has to wait for it,
worker processes take over once they have started: one, or one for every eight cores, then twice as many, and so on. They are
processes on a socket each (`runs/processes.py`), not `multiprocessing` children: a user's script needs no
``if __name__ == "__main__"``, and a worker ends by itself when the process it works for does, however that ends. Prepared
pixels come back through shared memory, in nameless files that both sides map, so that nothing is left behind after a kill.
"""

from __future__ import annotations

import gc
import importlib
import math
import mmap
import os
import pickle
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from shiftproof.cores import usable_cores
from shiftproof.errors import ShiftproofError
from shiftproof.runs.processes import FORKED, MOST_FILES, Forker, Plain, Process, WarmUp, fork_workers

Arrays = list[NDArray[np.generic]]
Batch = NDArray[np.generic] | Arrays
"""Arrays of one shape as a single array with one more axis in front; of several shapes as a list."""

Job = TypeVar("Job")

QUEUED = 2
"""Jobs a worker holds at a time: one in work, one waiting, so that it never idles."""

PATIENCE = 0.3
"""Seconds to wait for results before another process is started, which takes about as long."""

SLACK = 0.5
"""Share of the time without other work that may be spent waiting before more are started: the model has batches queued."""

MEMORIES = 10
"""Fewest shared memory buffers of a worker: for its jobs, and results in use; of more results there are copies."""

MANY_CORES = 16
"""Cores that one thread hardly keeps busy: from here on the process that forks workers is started at once, before any is
missing, and imports what they need meanwhile.
"""

MOST = 64
"""Most workers by default: each keeps some files open, and a process may open about a thousand."""

Work = Callable[[Any], tuple[Batch, Any]]
"""A module-level function: a job in; arrays, perhaps where `room_for` says, and anything small that pickles, out."""


class Block(NamedTuple, Generic[Job]):
    """The result of one job: its arrays in order, and whatever else the function returned."""

    job: Job
    batch: Batch
    said: Any


class WorkerDied(ShiftproofError):
    """A worker process ended in the middle of a job."""


class Workers:
    """A pool that works on jobs and returns results in order: `count` worker processes, or with 0 a thread of this one.

    With None it is a thread until results are waited for, and then as many processes as it takes, up to one a core.
    """

    def __init__(self, count: int | None = None) -> None:
        self._most = (min(usable_cores(), MOST) if count is None else count) if os.name == "posix" else 0
        self._wanted = 0 if count is None else self._most
        self._chosen = count is not None
        self._waited, self._since = 0.0, _idle_clock()  # since the wish for more processes last grew
        self._thread = _Thread()
        self._workers: list[_Worker] = []
        self._forker: Forker | None = None
        self._held = 1
        self._needed: tuple[str, WarmUp | None] = ("", None)

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._thread.close()
        for worker in self._workers:
            worker.close()
        if self._forker is not None:
            self._forker.close()
        self._thread, self._workers, self._forker = _Thread(), [], None

    def blocks(
        self, work: Work, jobs: Iterable[Job], *, held: int = 1, warm_up: WarmUp | None = None
    ) -> Iterator[Block[Job]]:
        """Each job with its result, in the order of the jobs, a few worked on ahead.

        A batch lies in memory that later blocks reuse: it is valid until `held` more blocks were taken. Worker processes are
        started from one that has called `warm_up`.
        """
        self._held, self._needed = held, (work.__module__, warm_up)
        if self._forker is not None:
            self._forker.load(*self._needed)
        jobs = iter(jobs)
        turns: deque[tuple[_Thread | _Worker, Job]] = deque()
        shown: deque[_Thread | _Worker] = deque()
        try:
            while True:
                while self._has_room():
                    try:
                        job = next(jobs)
                    except StopIteration:
                        break
                    turns.append((self._give(work, job), job))
                if not turns:
                    return
                worker, job = turns[0]
                batch, said = self._received(worker)
                turns.popleft()
                shown.append(worker)
                yield Block(job, batch, said)
                if len(shown) == held:
                    shown.popleft().free_memory()
        except WorkerDied:
            self.close()
            raise
        finally:
            for worker in shown:
                worker.free_memory()
            # an abandoned loop leaves results behind; only fresh workers are free of them
            if turns:
                self.close()

    def _received(self, worker: _Thread | _Worker) -> tuple[Batch, Any]:
        # no process is left to be started, however long it takes, or none is missing
        if self._wanted == self._most or worker.has_answer():
            return worker.receive()
        asked, first, starved = time.monotonic(), not worker.has_replied, _starved(worker.task)
        answer = worker.receive()
        now = time.monotonic()
        # where it waited for a core itself, one more process would only make another wait
        self._waited += 0 if first else max(0.0, now - asked - (_starved(worker.task) - starved))
        starting = len(self._ready()) < self._wanted  # and may be enough
        if self._waited > max(PATIENCE, SLACK * (_idle_clock() - self._since)) and not starting:
            self._wanted = min(self._most, max(1, self._most // 8, 2 * self._wanted))
            starting = True
        if starting:
            self._waited, self._since = 0.0, _idle_clock()
        return answer

    def _has_room(self) -> bool:
        return (self._chosen and len(self._workers) < self._wanted) or self._freest().pending < QUEUED

    def _freest(self) -> _Thread | _Worker:
        # while processes start, those that are there go on; where their number was chosen, the thread is none of them
        there: Sequence[_Thread | _Worker] = self._workers if self._chosen else self._ready()
        return min(there or [self._thread], key=lambda hand: hand.pending)

    def _ready(self) -> list[_Worker]:
        ready = []
        for worker in [*self._workers]:
            try:
                ready += [worker] if worker.is_ready() else []
            except OSError:  # no processes or memory are left for one more
                if self._chosen:
                    raise
                self._workers.remove(worker)
                worker.close()
                self._most = self._wanted = len(self._workers)
        return ready

    def _give(self, work: Work, job: Any) -> _Thread | _Worker:
        # each costs memory and time to start, so none is started before one is missing
        if len(self._workers) < self._wanted or (self._most >= MANY_CORES and self._forker is None):
            try:
                if FORKED and self._forker is None:
                    self._forker = Forker()
                    self._forker.load(*self._needed)
                if len(self._workers) < self._wanted:
                    self._workers.append(self._new_worker(work))
            except OSError:  # no files, processes or memory are left for one more
                if self._chosen:
                    raise
                self._most = self._wanted = len(self._workers)
        freest = self._freest()
        freest.send(work, job)
        return freest

    def _new_worker(self, work: Work) -> _Worker:
        its_share = QUEUED + math.ceil(self._held / self._wanted)
        memories = min(MOST_FILES - 1, max(MEMORIES, its_share))
        return _Worker(work, memories, Plain if self._forker is None else self._forker.start)


def _idle_clock() -> float:
    """Seconds in which the thread that asks did nothing itself; only their difference has a meaning."""
    return time.monotonic() - time.thread_time()


def _starved(task: int | None) -> float:
    """Seconds for which a thread could have run and no core was free; 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{task}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def room_for(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[np.generic]:
    """Memory for the batch of the job in work, (images, ...): written there, it need not be copied into one."""
    make: Room = getattr(_job, "room", np.empty)
    return make(shape, dtype)


Room = Callable[[tuple[int, ...], np.dtype[Any]], NDArray[np.generic]]
_job = threading.local()


def stacked(batch: Batch, room: Room = np.empty) -> Batch:
    """The arrays as one, where they are not yet and their shapes allow it."""
    if isinstance(batch, np.ndarray) or not _alike(batch):
        return batch
    return np.stack(batch, out=room((len(batch), *batch[0].shape), batch[0].dtype))


def _alike(arrays: Arrays) -> bool:
    return len({(array.shape, array.dtype) for array in arrays}) == 1


class _Thread:
    """A thread of this process that does what a worker does; libraries that decode and resize let others run meanwhile."""

    def __init__(self) -> None:
        self.has_replied = False  # the first answer waits for imports too
        self.task: int | None = None  # as the system calls it
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="prepare", initializer=self._begin)
        self._answers: deque[Future[tuple[Batch, Any]]] = deque()
        self._shown: deque[Batch] = deque()
        self._spares: deque[NDArray[np.generic]] = deque()  # fresh memory costs more than what is written into it

    @property
    def pending(self) -> int:
        return len(self._answers)

    def _begin(self) -> None:
        self.task = threading.get_native_id()
        _job.room = self._room

    def send(self, work: Work, job: Any) -> None:
        self._answers.append(self._executor.submit(work, job))

    def has_answer(self) -> bool:
        return self._answers[0].done()

    def receive(self) -> tuple[Batch, Any]:
        batch, said = self._answers.popleft().result()
        self.has_replied = True
        self._shown.append(stacked(batch, self._room))
        return self._shown[-1], said

    def free_memory(self) -> None:
        """Keeps the memory of the oldest result for another one."""
        batch = self._shown.popleft()
        if isinstance(batch, np.ndarray):
            self._spares.append(batch if batch.base is None else cast(NDArray[np.generic], batch.base))

    def _room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[np.generic]:
        with suppress(IndexError):  # the last one may go to the other thread
            while True:
                spare = self._spares.pop()
                if (spare.shape, spare.dtype) == (shape, dtype):
                    return spare
        return np.empty(shape, dtype)

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)


class _Worker:
    """One worker process, seen from where its jobs come from."""

    def __init__(self, work: Work, memories: int, start: Callable[[list[int]], Process]) -> None:
        ours, theirs = Pipe()
        self._connection: Connection = ours
        files: list[int] = []
        try:
            files += (_shared_file() for _ in range(memories))
            self._process = start([theirs.fileno(), *files])
        except OSError:
            for file in files:
                os.close(file)
            ours.close()
            raise
        finally:
            theirs.close()
        self._memory = [_Memory(file) for file in files]
        self._free = list(range(memories))
        self._busy: deque[int | None] = deque()  # memory of the jobs sent, oldest first, until it is freed; of copies none
        self.pending = 0
        self.has_replied = False  # before that it may still be starting
        self.task: int | None = None  # its process, once it is there
        self._ready = False
        self._send(_name_of(work))

    def is_ready(self) -> bool:
        """Whether it has started and imported what its first work needs."""
        if not self._ready and self._connection.poll():
            self._say_ready()
        return self._ready

    def send(self, work: Work, job: Any) -> None:
        memory = self._free.pop()
        self._send((_name_of(work), memory, job))
        self._busy.append(memory)
        self.pending += 1

    def has_answer(self) -> bool:
        return self.is_ready() and self._connection.poll()

    def receive(self) -> tuple[Batch, Any]:
        """The result of the oldest pending job; its memory stays taken until `free_memory`."""
        if not self._ready:
            self._say_ready()
        layout, inline, said, failure = self._received()
        place = len(self._busy) - self.pending
        number = self._busy[place]
        assert number is not None  # noqa: S101 - only results that were received are copied
        self.pending -= 1
        self.has_replied = True
        if failure is not None:
            raise failure
        batch = self._memory[number].batch(layout) if inline is None else stacked(inline)
        if len(self._free) + self.pending < QUEUED:  # the next jobs need some
            self._busy[place] = None
            self._free.append(number)
            batch = batch.copy() if isinstance(batch, np.ndarray) else [array.copy() for array in batch]
        return batch, said

    def free_memory(self) -> None:
        """Gives back the memory of the oldest result."""
        if (number := self._busy.popleft()) is not None:
            self._free.append(number)

    def close(self) -> None:
        self._connection.close()
        self._process.end()
        for memory in self._memory:
            os.close(memory.file)

    def _say_ready(self) -> None:
        told = self._received()
        if isinstance(told, OSError):  # it could not be started
            raise told
        self.task, self._ready = told, True

    def _send(self, message: object) -> None:
        try:
            self._connection.send(message)
        except (BrokenPipeError, ConnectionResetError) as ended:
            raise self._died() from ended

    def _received(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, ConnectionResetError) as ended:
            raise self._died() from ended

    def _died(self) -> WorkerDied:
        code = self._process.end()
        return WorkerDied(
            f"a worker process ended by itself (exit code {'unknown' if code is None else code}; out of memory?); "
            "what was committed is kept: start again, perhaps with fewer --workers"
        )


def _name_of(work: Work) -> str:
    return f"{work.__module__}:{work.__qualname__}"


Layout = list[tuple[int, tuple[int, ...], str]]
"""Where each array lies: offset, shape, dtype."""


class _Memory:
    """Shared memory: a nameless file that two processes map; it grows when it must."""

    def __init__(self, file: int) -> None:
        self.file = file
        self._map: mmap.mmap | None = None
        self._given: NDArray[np.generic] | None = None  # the room of the job in work

    def batch(self, layout: Layout) -> Batch:
        """What the other side placed: one entry is a whole batch, several are arrays of several shapes."""
        if not layout:
            return []
        mapped = self._mapped(os.fstat(self.file).st_size)
        arrays = [np.ndarray(shape, dtype, buffer=mapped, offset=offset) for offset, shape, dtype in layout]
        return arrays[0] if len(arrays) == 1 else arrays

    def room(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[np.generic]:
        """A place for a whole batch; elsewhere, where there is no room here."""
        size = math.prod(shape) * dtype.itemsize
        try:
            self._reserve(size)
        except OSError:
            return np.empty(shape, dtype)
        self._given = np.ndarray(shape, dtype, buffer=self._mapped(size))
        return self._given

    def place(self, arrays: Batch) -> Layout:
        """Copies arrays in, one after the other, where they are not there already; OSError where there is no room."""
        given, self._given = self._given, None
        if isinstance(arrays, np.ndarray):
            if given is not None and arrays.base is given:
                return [(0, arrays.shape, arrays.dtype.str)]
            arrays = list(arrays)
        layout: Layout = []
        end = 0
        for array in arrays:
            layout.append((end, array.shape, array.dtype.str))
            # arrays of one shape lie without gaps, so that together they are a batch
            end += array.nbytes if _alike(arrays) else -(-array.nbytes // 64) * 64
        if _alike(arrays):
            layout = [(0, (len(arrays), *arrays[0].shape), arrays[0].dtype.str)]
        self._reserve(end)
        for array, copy in zip(arrays, self.batch(layout), strict=True):
            copy[...] = array
        return layout

    def _reserve(self, size: int) -> None:
        if size <= os.fstat(self.file).st_size:
            return
        if hasattr(os, "posix_fallocate"):
            # takes the pages now: writing to a full shared-memory file system later would end the process
            os.posix_fallocate(self.file, 0, size)
        else:
            os.ftruncate(self.file, size)

    def _mapped(self, size: int) -> mmap.mmap:
        if self._map is None or len(self._map) < size:
            self._map = mmap.mmap(self.file, size)
        return self._map


def _shared_file() -> int:
    """A file without a name: in memory where the system has such, however small its /dev/shm; else where files go."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("shiftproof")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def serve(files: list[int]) -> None:
    """The main loop of a worker: works on jobs until the first of its files, a socket, is closed by who sends them."""
    connection, memories = Connection(files[0]), [_Memory(file) for file in files[1:]]
    try:
        with suppress(Exception):  # which the first job will tell
            importlib.import_module(connection.recv().partition(":")[0])
        gc.freeze()  # nothing looks through what was imported again, and so copies the pages that workers share
        gc.enable()
        connection.send(os.getpid())
        messages: SimpleQueue[bytes | None] = SimpleQueue()
        threading.Thread(target=_read_ahead, args=(connection, messages), daemon=True).start()
        while (message := messages.get()) is not None:
            connection.send(_answer(message, memories))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return


def _read_ahead(connection: Connection, messages: SimpleQueue[bytes | None]) -> None:
    """Reads jobs while an answer is sent: where neither fits into the socket, each side would wait for the other to read."""
    with suppress(EOFError, OSError):
        while True:
            messages.put(connection.recv_bytes())
    messages.put(None)


def _answer(message: bytes, memories: list[_Memory]) -> tuple[Layout, Batch | None, Any, Exception | None]:
    try:
        work, memory, job = pickle.loads(message)  # noqa: S301 from our own parent
        module, _, function = work.partition(":")
        _job.room = memories[memory].room
        arrays, said = getattr(importlib.import_module(module), function)(job)
    except Exception as error:  # whatever it is, it is raised where the job came from
        return [], None, None, portable(error)
    try:
        return memories[memory].place(arrays), None, said, None
    except OSError:
        return [], arrays, said, None  # no shared memory left: through the socket, slower


def portable(error: Exception) -> Exception:
    """The error, or one with the same message where it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 our own
    except Exception:  # whatever its class does
        kind = ShiftproofError if isinstance(error, ShiftproofError) else RuntimeError
        return kind(f"{error}")
    return error


def main() -> None:
    """A worker process, whose arguments are the files it got; with a socket alone, the process that forks workers."""
    socket, *memories = map(int, sys.argv[1:])
    if memories:
        serve([socket, *memories])
    else:
        fork_workers(socket, serve)
