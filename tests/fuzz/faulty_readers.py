"""Readers that do what no reader must, once their file is damaged: what the fuzzer has to find."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fuzz.bench import Reader
from fuzz.cases import Seed
from shiftproof.errors import BadInput


def _seeds() -> list[Seed]:
    return [Seed("seed", {"file": b"fine"}, "file")]


def _after(fault: str) -> Callable[[Path], object]:
    """What is read, or the fault where the file was changed."""

    def read(folder: Path) -> object:
        data = (folder / "file").read_bytes()
        if data[:4] == b"fine":
            return len(data)
        match fault:
            case "refuse":
                raise BadInput("not fine")
            case "traceback":
                raise KeyError(data)
            case "die":
                os._exit(3)
            case "hang":
                while True:
                    time.monotonic()
            case "blow up":
                memory = []
                while True:
                    memory.append(bytearray(os.urandom(2**20)) * 20)
                    time.sleep(0.02)  # it need not fill gigabytes before anybody looks
            case "write":
                (folder.parent / "outside").write_text("here I am")
            case "start":
                os.system("true")
        return data

    return read


READERS: Sequence[Reader] = (
    Reader("refuse", _seeds, _after("refuse")),
    Reader("traceback", _seeds, _after("traceback")),
    Reader("die", _seeds, _after("die")),
    Reader("hang", _seeds, _after("hang")),
    Reader("blow up", _seeds, _after("blow up")),
    Reader("write", _seeds, _after("write")),
    Reader("start", _seeds, _after("start")),
    Reader("change", _seeds, _after("change"), checked=True),
)
