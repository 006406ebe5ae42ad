"""CPU time of importing the package and of asking for help, above bare Python and beside what they could have cost.

    python benchmarks/start_up.py

Aim: at most 30 ms for ``import shiftproof`` and 150 ms for ``shiftproof --help``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from resource import RUSAGE_CHILDREN, getrusage

from harness import save

COMMANDS = {
    "bare Python": ["-c", "pass"],
    "bare Python (again)": ["-c", "pass"],
    "import shiftproof": ["-c", "import shiftproof"],
    "shiftproof --help": ["-m", "shiftproof", "--help"],
    "shiftproof run --help": ["-m", "shiftproof", "run", "--help"],
    "import click": ["-c", "import click"],
    "import numpy": ["-c", "import numpy"],
}


def cpu_milliseconds(arguments: list[str]) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = getrusage(RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    spent: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(int(os.environ.get("ROUNDS", "15"))):
        for name, arguments in COMMANDS.items():
            spent[name].append(cpu_milliseconds(arguments))
    bare = statistics.median(spent["bare Python"])
    above = {name: statistics.median(times) - bare for name, times in spent.items()}
    for name, milliseconds in above.items():
        print(f"{name:24} {milliseconds:7.1f} ms of CPU above bare Python ({bare:.1f} ms)")
    save("start_up", above)


if __name__ == "__main__":
    main()
