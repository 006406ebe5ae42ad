"""The command in processes of their own, forked from one that has imported what they need: starting anew takes longer."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from command import Said
from patience import PATIENCE
from shiftproof.runs.processes import ONE_THREAD


class Run:
    """A run of the command that was started."""

    def __init__(self, connection: Connection, pid: int, said: tuple[Path, Path]) -> None:
        self.pid = pid
        self._connection, self._said = connection, said

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends a signal; a run that has ended keeps its number until it is waited for."""
        os.kill(self.pid, number)

    def wait(self) -> Said:
        """How it ended, negative by a signal, and what it printed."""
        self._connection.send(self.pid)
        in_time = self._connection.poll(PATIENCE)
        if not in_time:  # the one that forks waits for it too, and answers nobody meanwhile
            self.kill()
        code = self._connection.recv()
        assert in_time, "the command does not end"
        return Said(code, *(file.read_text(encoding="utf-8") for file in self._said))


class Forking:
    """Starts the command as often as is asked."""

    def __init__(self, connection: Connection, folder: Path) -> None:
        self._connection, self._folder, self._started = connection, folder, 0

    def start(self, *arguments: object) -> Run:
        self._started += 1
        out, err = (self._folder / f"{self._started}.{stream}" for stream in ("out", "err"))
        self._connection.send([[str(one) for one in arguments], str(out), str(err)])
        return Run(self._connection, self._connection.recv(), (out, err))

    def run(self, *arguments: object) -> Said:
        """What a run said that came to a good end."""
        said = self.start(*arguments).wait()
        assert said.code == 0, said.err
        return said


@contextmanager
def forking(
    said: Path, modules: Sequence[str], *, sites: Sequence[Path] = (), folder: Path | None = None
) -> Iterator[Forking]:
    """A process that has imported these modules, and forks; it also finds packages in these sites, and works in a folder.

    What runs print goes to files in `said`.
    """
    ours, theirs = Pipe()
    names = json.dumps(json.dumps(modules))
    served = f"import json, forked_command; forked_command.serve({theirs.fileno()}, json.loads({names}))"
    path = os.pathsep.join([*map(str, sites), str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": path}
    process = subprocess.Popen([sys.executable, "-c", served], pass_fds=[theirs.fileno()], env=environment, cwd=folder)
    theirs.close()
    try:
        yield Forking(ours, said)
    finally:
        ours.close()
        assert process.wait(PATIENCE) == 0


def serve(file: int, modules: Sequence[str]) -> None:
    """Forks the command whenever a list of arguments and files comes, and waits for it when its number comes."""
    from shiftproof.cli.main import main

    for module in modules:
        importlib.import_module(module)
    tasks = Path("/proc/self/task")
    assert not tasks.exists() or len(list(tasks.iterdir())) == 1, "threads are not forked: what they hold is held for good"
    connection, running = Connection(file), set[int]()
    while True:
        try:
            asked = connection.recv()
        except EOFError:
            for pid in running:  # of tests that failed before they waited
                os.kill(pid, signal.SIGKILL)
            return
        if isinstance(asked, int):
            connection.send(os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1]))
            running.remove(asked)
            continue
        pid = os.fork()
        if pid == 0:
            connection.close()
            break
        running.add(pid)
        connection.send(pid)
    arguments, *files = asked
    sys.argv = ["shiftproof", *arguments]
    for number, path in enumerate(files, start=1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    # whoever runs the tests in the background has Ctrl-C switched off for all they start
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()
