"""Compares two results of `--json`, as of the code before and after a change: which numbers moved, and how far.

Measurements are matched by metric and what they are about, curves by name. Both arguments may also be folders, whose `.json`
files are then matched by name. Exits with 1 where a value, a count of images or a whole measurement of the first is another
or missing in the second, unless its metric is named as expected; intervals and new measurements are only listed.

    python tools/compare_results.py before.json after.json --renamed mcnemar_p=accuracy_difference_p --expected mean_auroc
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Key = tuple[str, str, str, int]
"""File, metric or name of a curve, what it is about, and which of those that share the three."""

Kind = Literal["value", "images", "interval", "interval gone", "interval new", "gone", "new"]
KINDS: tuple[Kind, ...] = ("value", "images", "interval", "interval gone", "interval new", "gone", "new")
MEASURABLE: tuple[Kind, ...] = ("value", "images", "interval")
MOVED: tuple[Kind, ...] = ("value", "images", "gone")
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in both; `by` is how far apart, None where that is no number."""

    file: str
    metric: str
    about: str
    kind: Kind
    before: Any
    after: Any
    by: float | None = None


def findings(path: Path, renamed: Mapping[str, str]) -> dict[Key, Mapping[str, Any]]:
    """Measurements and curves of a file, or of all in a folder, under the new names of metrics and about keys."""
    found: dict[Key, Mapping[str, Any]] = {}
    seen: Counter[tuple[str, str, str]] = Counter()
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        name = file.name if path.is_dir() else ""
        for entry in json.loads(file.read_text(encoding="utf-8"))["findings"]:
            if entry["kind"] == "Gallery":
                continue
            metric = entry["metric"] if entry["kind"] == "Measurement" else f"{entry['name']} (curve)"
            about = ", ".join(sorted(f"{renamed.get(key, key)}={value}" for key, value in entry["about"].items()))
            shared = name, renamed.get(metric, metric), about
            found[*shared, seen[shared]] = entry
            seen[shared] += 1
    return found


def distance(before: Any, after: Any) -> float | None:
    """The largest difference of numbers in two numbers or lists; None where they are not of one shape.

    >>> distance([1.0, 2.0], [1.5, None]), distance([1.0, None], [1.5, None])
    (None, 0.5)
    """
    if isinstance(before, list) and isinstance(after, list):
        apart = [distance(*pair) for pair in zip(before, after, strict=False)]
        return None if len(before) != len(after) or None in apart else max((by for by in apart if by), default=0.0)
    if isinstance(before, (int, float)) and isinstance(after, (int, float)):
        return abs(after - before)
    return 0.0 if before == after else None


def values_of(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    """The value and the interval of a measurement, or the points and the band of a curve."""
    if entry["kind"] == "Measurement":
        return entry["value"], entry["interval"]
    band = entry.get("low"), entry.get("high")
    return [entry["x"], entry["y"]], None if band == (None, None) else list(band)


def differences(before: Mapping[Key, Mapping[str, Any]], after: Mapping[Key, Mapping[str, Any]]) -> Iterable[Difference]:
    """Everything that is not the same, in the order of the first; what is new comes last."""
    for key, old in before.items():
        if key not in after:
            yield Difference(*key[:3], "gone", values_of(old)[0], None)
            continue
        (value, interval), (new_value, new_interval) = values_of(old), values_of(after[key])
        if (by := distance(value, new_value)) is None or by > TOLERANCE:
            yield Difference(*key[:3], "value", value, new_value, by)
        if old["images"] != after[key]["images"]:
            apart = distance(old["images"], after[key]["images"])
            yield Difference(*key[:3], "images", old["images"], after[key]["images"], apart)
        if (by := distance(interval, new_interval)) is None or by > TOLERANCE:
            kind: Kind = "interval new" if interval is None else "interval gone" if new_interval is None else "interval"
            yield Difference(*key[:3], kind, interval, new_interval, by)
    for key, new in after.items():
        if key not in before:
            yield Difference(*key[:3], "new", None, values_of(new)[0])


def by_metric(found: Sequence[Difference], expected: Sequence[str]) -> list[dict[str, str]]:
    """One row a metric: how many differ in each way, and in brackets the largest difference."""
    rows = []
    for metric in sorted({one.metric for one in found}):
        row = {"metric": metric}
        for kind in KINDS:
            these = [one for one in found if (one.metric, one.kind) == (metric, kind)]
            apart = [math.inf if one.by is None else one.by for one in these]
            row[kind] = f"{len(these)} ({max(apart):.2g})" if these and kind in MEASURABLE else str(len(these) or "")
        moved = any(one.kind in MOVED for one in found if one.metric == metric)
        rows.append({**row, "": "" if not moved else "expected" if metric in expected else "MOVED"})
    return rows


def table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows under their keys, in columns as wide as what they hold."""
    if not rows:
        return ""
    lines = [dict(zip(rows[0], rows[0], strict=True)), *rows]
    widths = {column: max(len(line[column]) for line in lines) for column in rows[0]}
    return "\n".join("  ".join(line[column].ljust(width) for column, width in widths.items()).rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before", type=Path, help="results as --json prints them, or a folder of such files")
    parser.add_argument("after", type=Path)
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="metric or about key; repeatable")
    parser.add_argument("--expected", default="", metavar="METRIC,...", help="metrics that were meant to move")
    parser.add_argument("--all", action="store_true", help="also list every difference")
    parser.add_argument("--json", action="store_true", help="print every difference as JSON")
    asked = parser.parse_args(arguments)
    if wrong := [one for one in asked.renamed if "=" not in one]:
        parser.error(f"--renamed takes OLD=NEW, got {wrong[0]!r}")
    expected = [name for name in asked.expected.split(",") if name]

    before = findings(asked.before, dict(one.split("=", 1) for one in asked.renamed))
    after = findings(asked.after, {})
    found = list(differences(before, after))
    moved = [one for one in found if one.kind in MOVED and one.metric not in expected]
    if asked.json:
        print(json.dumps([asdict(one) for one in found], ensure_ascii=False, indent=1))
    else:
        if found:
            print(table(by_metric(found, expected)))
        for one in found if asked.all else ():
            print(f"{one.kind}: {one.file} {one.metric} [{one.about}]: {one.before} -> {one.after}")
        print(f"{len(before)} measurements and curves before, {len(after)} after; {len(moved)} moved unexpectedly")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
