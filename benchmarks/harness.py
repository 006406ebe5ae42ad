"""Interleaved timing with an A/A control: only ratios within one run mean anything on a noisy machine.

Every round times each implementation once, in an order that changes from round to round; the first runs twice a round under
two names, and the ratio of those two is the noise of the machine.
"""

from __future__ import annotations

import json
import os
import platform
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

AGAIN = "{} (again)"


class Ratio(NamedTuple):
    """How many times as fast as the first contestant, over rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} ({self.low:.3f} to {self.high:.3f})"


class Contestant(NamedTuple):
    """Something to time, and on how many images, rows or classes it works."""

    work: Callable[[], object]
    size: int


def race(contestants: Mapping[str, Callable[[], object]], *, rounds: int = 5, work: int = 1) -> dict[str, Ratio]:
    """Runs everyone in turn and prints rates and ratios; `work` is how many things one call does."""
    entries = {name: Contestant(call, work) for name, call in contestants.items()}
    seconds = _seconds(entries, rounds, time.perf_counter)
    first = next(iter(seconds))
    ratios = {}
    for name, own in seconds.items():
        each = sorted(base / mine for base, mine in zip(seconds[first], own, strict=True))
        ratios[name] = Ratio(statistics.median(each), each[0], each[-1])
        print(f"{name:44} {1 / statistics.median(own):12.1f} /s   x {first}: {ratios[name]}")
    print(f"A/A control: {ratios[AGAIN.format(first)]}; {rounds} rounds")
    return ratios


def cpu_race(contestants: Mapping[str, Contestant], unit: str, *, rounds: int = 5) -> dict[str, float]:
    """CPU time that each takes for one of its things, as a multiple of the first; for contestants too unlike in speed for
    the same work.
    """
    seconds = _seconds(contestants, rounds, cpu_seconds)
    first = next(iter(seconds))
    multiples = {}
    for name, own in seconds.items():
        each = sorted(mine / base for mine, base in zip(own, seconds[first], strict=True))
        multiples[name] = statistics.median(each)
        taken = f"{statistics.median(own) * 1e6:10.1f} us of CPU per {unit}"
        print(f"{name:44} {taken}   x {multiples[name]:.2f} ({each[0]:.2f} to {each[-1]:.2f})", flush=True)
    return multiples


def cpu_seconds() -> float:
    """CPU time of this process and of the children that it has waited for: a worker counts once it is closed."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def figure(
    work: str,
    measured: float,
    *,
    beside: str,
    aim: str,
    unit: str = "",
    noise: Ratio | float | None = None,
    needs: str = "",
) -> None:
    """One row of docs/speed.md: what was measured beside a peer or a limit, and the A/A of that run.

    `needs` is an environment variable that names the peer; where it is not set, the row of an earlier run stays.

    It is printed, and added to the file that SHIFTPROOF_FIGURES names, from which `make benchmarks` makes the page.
    """
    spread = [noise.low, noise.high] if isinstance(noise, Ratio) else [noise]
    row = {
        "work": work,
        "measured": measured,
        "unit": unit,
        "beside": beside,
        "aim": aim,
        "noise": [] if noise is None else spread,
        **({"needs": needs} if needs else {}),
    }
    print(f"{work}: {measured:.4g} {unit or 'x'} beside {beside}; aim {aim}; A/A {row['noise'] or 'not timed'}", flush=True)
    if file := os.environ.get("SHIFTPROOF_FIGURES"):
        with Path(file).open("a") as lines:
            lines.write(json.dumps({"benchmark": Path(sys.argv[0]).stem} | row) + "\n")


def machine() -> str:
    """Processor, threads and Python, for a table of figures; names of processors in virtual machines say little alone."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        told = dict(re.findall(r"^([\w ]+?)\s*: (.*)$", info.read_text().split("\n\n")[0], re.MULTILINE))
        model = told.get("model name", model)
        if "cpu family" in told:
            model += f" (family {told['cpu family']}, model {told['model']})"
    return f"{model}, {os.cpu_count()} threads, Python {platform.python_version()}"


def save(name: str, figures: object) -> None:
    """Writes figures as JSON where the command line names a file."""
    if sys.argv[1:] and not sys.argv[1].startswith("-"):
        Path(sys.argv[1]).write_text(json.dumps({name: figures}, indent=1) + "\n")


def _seconds(contestants: Mapping[str, Contestant], rounds: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """How long each takes for one of its things, round by round; the first stands at both ends."""
    first = next(iter(contestants))
    entries = {**contestants, AGAIN.format(first): contestants[first]}
    names = list(entries)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            started = clock()
            entries[name].work()
            seconds[name].append((clock() - started) / entries[name].size)
    return seconds
