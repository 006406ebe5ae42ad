"""CPU time of `make test` and of its parts, beside what pytest takes for as many tests that do nothing.

    SHIFTPROOF_TEST_DATA=... python benchmarks/suite_cost.py

The tests run once, as `make test` runs them, after they were collected once, so that they are there as bytecode (kernels of
numba are compiled where no earlier run did that: some 40 CPU-s); the ones that do nothing run once before and once after,
which is the A/A control. This file is also a plug-in of pytest: each process tells what it spent on collecting and on the
tests of each folder, by itself and in children that it waited for (for a browser at the end of all tests, so that it counts
for the last one).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from typing import Any

import pytest

from harness import figure

HERE = Path(__file__).parent
ROOT = HERE.parent
ACCOUNTS = "SUITE_COST_ACCOUNTS"
COLLECTING = "collecting"
spent: defaultdict[str, float] = defaultdict(float)
started = 0


def seconds(who: int) -> float:
    return sum(getrusage(who)[:2])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, Any, Any]:
    before = seconds(RUSAGE_SELF)
    try:
        return (yield)
    finally:
        spent[COLLECTING] += seconds(RUSAGE_SELF) - before


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    global started
    own, children = seconds(RUSAGE_SELF), seconds(RUSAGE_CHILDREN)
    started += 1
    try:
        return (yield)
    finally:
        folder = "/".join(item.nodeid.split("::")[0].split("/")[:2])
        spent[f"{folder}, own"] += seconds(RUSAGE_SELF) - own
        spent[f"{folder}, children"] += seconds(RUSAGE_CHILDREN) - children


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):  # a process of pytest-xdist, not the one that gives out the work
        file = Path(os.environ[ACCOUNTS], f"{config.workerinput['workerid']}.json")
        file.write_text(json.dumps({"started": started, "spent": spent}))


def environment() -> dict[str, str]:
    """With bytecode kept, as by `make test`, and this plug-in where Python finds it."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPATH": path}


def cpu_of(command: list[str], folder: Path) -> float:
    """CPU time of a command and all that it waited for."""
    before = seconds(RUSAGE_CHILDREN)
    ran = subprocess.run(command, cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        sys.exit(f"{' '.join(command)}: exit {ran.returncode}\n{ran.stdout[-2000:]}")
    return seconds(RUSAGE_CHILDREN) - before


def accounts(command: list[str], folder: Path) -> tuple[float, list[dict[str, Any]]]:
    """CPU time of a command that runs pytest, and what each of its processes says."""
    with tempfile.TemporaryDirectory() as told:
        os.environ[ACCOUNTS] = told
        whole = cpu_of(command, folder)
        return whole, [json.loads(file.read_text()) for file in sorted(Path(told).iterdir())]


def collecting(processes: list[dict[str, Any]]) -> float:
    return float(max(one["spent"][COLLECTING] for one in processes))


def idle(tests: int, files: int, folder: Path) -> list[str]:
    """Writes tests that do nothing, so many in so many files; the command that runs them."""
    body = "import pytest\n\n@pytest.mark.parametrize('number', range({}))\ndef test_nothing(number): pass\n"
    for number in range(files):
        share = tests * (number + 1) // files - tests * number // files
        (folder / f"test_{number}.py").write_text(body.format(share))
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
    return [*command, "-p", "suite_cost"]


def main() -> None:
    files = len(list((ROOT / "tests").rglob("test_*.py")))
    with tempfile.TemporaryDirectory() as empty:
        collect = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
        listed = subprocess.run(collect, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
        tests = sum("::" in line for line in listed.stdout.splitlines())
        nothing = idle(tests, files, Path(empty))
        before, idle_processes = accounts(nothing, Path(empty))
        whole, processes = accounts([str(ROOT / ".ci/with-postgres"), "make", "test", "PYTEST_ARGS=-p suite_cost"], ROOT)
        again, _ = accounts(nothing, Path(empty))
    total: defaultdict[str, float] = defaultdict(float)
    for one in processes:
        for part, taken in one["spent"].items():
            total[part] += taken
    for part, taken in sorted(total.items(), key=lambda item: -item[1]):
        print(f"{taken:8.1f} CPU-s {part}")
    children = sum(taken for part, taken in total.items() if part.endswith("children"))
    count = sum(one["started"] for one in processes)
    figure(
        f"`make test`, {count:,} tests",
        whole / 60,
        unit="CPU-minutes",
        beside=f"{before / 60:.2f} for as many that do nothing; {children / 60:.1f} of it in processes that tests start",
        aim="<= 6",
        noise=again / before,
    )
    figure(
        "collecting the tests, each process",
        collecting(processes),
        unit="CPU-s",
        beside=f"{collecting(idle_processes):.1f} for as many that do nothing",
        aim="<= 15",
        noise=again / before,
    )


if __name__ == "__main__":
    main()
