"""Runs the benchmarks that have a row on the page about speed, and writes docs/speed.md anew.

    SHIFTPROOF_TEST_DATA=... python benchmarks/page.py [NAME ...]

Without names all of them, which takes about an hour; with names these alone, and the rows of the others stay as they were
in figures.json. A script that fails keeps its earlier rows and is told at the end. IMAGECORRUPTIONS_HEAD, a checkout of that
repository, adds it to the peers of corruption_speed; without it the row beside it stays.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

from harness import machine

HERE = Path(__file__).parent
FIGURES, PAGE = HERE / "figures.json", HERE.parent / "docs" / "speed.md"
BEGINS, ENDS = "<!-- made by benchmarks/page.py -->", "<!-- end of the rows -->"
OPTIONS = {"corruption_speed": ["--json", str(HERE / "corruption_speed.json"), "--docs", str(PAGE)]}

Row = dict[str, Any]


def scripts() -> list[str]:
    """Every benchmark that tells a row of the page."""
    return sorted(path.stem for path in HERE.glob("*_*.py") if re.search(r"\bfigure\(", path.read_text()))


def measured(name: str) -> list[Row] | None:
    """The rows that a script tells, or None where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "rows")
        ran = subprocess.run(
            [sys.executable, str(HERE / f"{name}.py"), *OPTIONS.get(name, [])],
            env=os.environ | {"SHIFTPROOF_FIGURES": str(lines), "PYTHONPATH": os.pathsep.join(_path())},
            check=False,
        )
        if ran.returncode or not lines.exists():
            return None
        return [json.loads(line) | {"machine": machine()} for line in lines.read_text().splitlines()]


def table(rows: list[Row]) -> str:
    """Rows of one machine under its name."""
    parts = []
    for made_on, group in groupby(rows, key=lambda row: row["machine"]):
        parts += [
            f"Made on: {made_on}.",
            "",
            "| work | measured | beside | aim | A/A | script |",
            "|---|---|---|---|---|---|",
        ]
        parts += [_line(row) for row in group]
        parts.append("")
    return "\n".join(parts)


def _line(row: Row) -> str:
    noise = " to ".join(f"{value:.2f}" for value in row["noise"]) or "–"
    value = f"{row['measured']:,.0f}" if row["measured"] >= 1000 else f"{row['measured']:.3g}"
    return f"| {row['work']} | {value} {row['unit']} | {row['beside']} | {row['aim']} | {noise} | `{row['benchmark']}` |"


def _stays(row: Row) -> bool:
    """Whether the peer of a row is not at hand, so that it could not be measured again."""
    return "needs" in row and not os.environ.get(row["needs"])


def _path() -> list[str]:
    """Some benchmarks compare with the plain versions that stand in the tests."""
    return [str(HERE.parent / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]


def main() -> None:
    failed = []
    for name in sys.argv[1:] or scripts():
        print(f"== {name}", flush=True)
        rows = measured(name)
        if rows is None:
            failed.append(name)
            continue
        kept: list[Row] = json.loads(FIGURES.read_text()) if FIGURES.exists() else []  # others may have measured meanwhile
        kept = [row for row in kept if row["benchmark"] != name or _stays(row)] + rows
        kept.sort(key=lambda row: (row["machine"], row["benchmark"]))
        FIGURES.write_text(json.dumps(kept, indent=1) + "\n")
        text = PAGE.read_text()
        head, tail = text.index(BEGINS) + len(BEGINS), text.index(ENDS)
        PAGE.write_text(f"{text[:head]}\n\n{table(kept)}\n{text[tail:]}")
    if failed:
        raise SystemExit(f"no figures from {', '.join(failed)}: their earlier rows stay")


if __name__ == "__main__":
    main()
