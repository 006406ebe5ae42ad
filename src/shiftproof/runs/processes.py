"""The start and the end of worker processes.

On Linux one process imports what jobs need and forks the workers, which share those pages of memory. It inherits nothing of
its parent's memory and runs no job itself. Where it has a second thread, or files that copies would share, it cannot be
forked safely: then, and on macOS, whose libraries may start threads unseen, every worker is a plain process that imports
everything itself.
"""

from __future__ import annotations

import importlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

FORKED = sys.platform == "linux"

LEAVE = 2.0
"""Seconds that a process has to end by itself before it is killed."""

MOST_FILES = 253
"""Most files that a process is started with: as many as Linux passes with a message."""

ONE_THREAD = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OPENCV_FOR_THREADS_NUM"], "1")
"""Environment variables that keep the libraries of a worker to one thread; the user's own come first."""

START = """
import gc, sys
gc.disable()
sys.path[:] = sys.argv.pop().split("\\n")
from shiftproof.runs.workers import main
main()
"""
"""What a worker runs: it imports modules from its parent's path, not from the folder it happens to start in. Nothing that it
imports is garbage, and looking for some would take a sixth of the time.
"""

WarmUp = Callable[[], object]
"""Loads what jobs need and would else load when they run; small, and it pickles."""

Serve = Callable[[list[int]], object]
"""The main loop of a worker: a socket and files in; it returns when the socket is closed."""

_MESSAGE = 2**16  # bytes, at most
_UNKNOWN = b"unknown"


class Process(Protocol):
    """The process of a worker."""

    def end(self) -> int | None:
        """Its exit code, once it has ended by itself or was killed; None where nobody knows."""
        ...


class Plain:
    """A child process that imports everything itself; its files are its arguments."""

    def __init__(self, files: list[int]) -> None:
        # our own end of its socket is not inherited, so it sees the socket end as soon as this process is gone
        self._process = subprocess.Popen(  # noqa: S603 ourselves
            _command(files),
            pass_fds=files,
            stdin=subprocess.DEVNULL,
            env=ONE_THREAD | os.environ,
            process_group=0,  # Ctrl-C is the parent's to answer; it then closes the socket
        )

    def end(self, *, at_once: bool = False) -> int:
        try:
            return self._process.wait(timeout=0 if at_once else LEAVE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()


class Forker:
    """The process that forks workers, seen from its parent."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # which keeps messages apart
        self._socket.settimeout(2 * LEAVE)
        self._forked, self._loaded = 0, b""
        try:
            self._process = Plain([theirs.fileno()])
        except OSError:
            self._socket.close()
            raise
        finally:
            theirs.close()

    def load(self, module: str, warm_up: WarmUp | None) -> None:
        """What the workers forked from now on find imported."""
        message = pickle.dumps((module, warm_up))
        if message != self._loaded:
            self._loaded = message
            with suppress(OSError):  # the process has ended
                self._socket.send(message)

    def start(self, files: list[int]) -> Process:
        """A worker; where it cannot be forked, its socket says so with an OSError instead of its first message."""
        try:
            socket.send_fds(self._socket, [b"fork"], files)
        except OSError:  # the process has ended, or too many files are on their way
            return Plain(files)
        self._forked += 1
        return _Forked(self, self._forked - 1)

    def end(self, number: int) -> int | None:
        """Exit code of a worker, once it has ended; None the second time."""
        try:
            self._socket.send(b"%d" % number)
            code = self._socket.recv(_MESSAGE)
        except OSError:  # the process that would know it has ended, or takes too long
            self._socket.close()
            return None
        return None if code in (b"", _UNKNOWN) else int(code)

    def close(self) -> None:
        self._socket.close()
        self._process.end(at_once=self._forked == 0)


class _Forked(NamedTuple):
    forker: Forker
    number: int

    def end(self) -> int | None:
        return self.forker.end(self.number)


def fork_workers(parent: int, serve: Serve) -> NoReturn:
    """What the process that forks workers does, until its parent closes the socket."""
    asked = socket.socket(fileno=parent)
    asked.set_inheritable(False)
    while (file := os.open(os.devnull, os.O_RDWR)) <= 2:  # else a worker's socket would become its output, where it has none
        os.set_inheritable(file, True)
    os.close(file)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where the parent ignores it, nobody could wait for workers
    own_files = _listed("fd")
    forkable = False
    running: dict[int, int] = {}
    started = 0
    with suppress(ConnectionError):
        while True:
            message, files, _, _ = socket.recv_fds(asked, _MESSAGE, MOST_FILES)
            if not message:
                break
            if files:
                try:
                    running[started] = _fork(asked, files, serve) if forkable else _spawn(files)
                except OSError as error:  # no processes or memory are left for one more
                    with Connection(os.dup(files[0])) as worker:
                        worker.send(error)
                started += 1
                for file in files:  # else the workers that are forked later would keep its socket open
                    os.close(file)
            elif message.isdigit():
                process = running.pop(int(message), None)
                asked.send(_UNKNOWN if process is None else b"%d" % _end(process))
            else:
                _load(message)
                forkable = len(_listed("task")) == 1 and _listed("fd") == own_files
    for process in running.values():
        _end(process)
    os._exit(0)  # nothing is left to be written, and all that was imported would be taken apart


def _load(message: bytes) -> None:
    with suppress(Exception):  # which the first job will tell
        module, warm_up = pickle.loads(message)  # noqa: S301 from our own parent
        importlib.import_module(module)
        if warm_up is not None:
            warm_up()


def _listed(what: str) -> set[str]:
    """The threads or open files of this process; nothing in a container without /proc."""
    with suppress(FileNotFoundError):
        return set(os.listdir(f"/proc/self/{what}"))
    return set()


def _fork(asked: socket.socket, files: list[int], serve: Serve) -> int:
    return os.fork() or _be_worker(asked, files, serve)


def _be_worker(asked: socket.socket, files: list[int], serve: Serve) -> NoReturn:
    code = 1
    try:
        asked.close()
        np.random.seed()  # else code of a user's would draw the same numbers in all workers
        serve(files)
        code = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _spawn(files: list[int]) -> int:
    return os.posix_spawn(sys.executable, _command(files), os.environ)


def _command(files: list[int]) -> list[str]:
    return [sys.executable, "-P", "-c", START, *map(str, files), "\n".join(sys.path)]


def _end(process: int) -> int:
    """Exit code of a child process, once it has ended by itself or was killed."""
    deadline = time.monotonic() + LEAVE
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.001)
