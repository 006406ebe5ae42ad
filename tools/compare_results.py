"""Compares two results of `--json`, as of the code before and after a change: which numbers moved, and how far.

Measurements are matched by metric and what they are about, curves and galleries by name. Both arguments may also be folders,
whose `.json` files are then matched by name. Exits with 1 where a value, a count of images, the images of a gallery or a
whole finding of the first is another or missing in the second, unless its metric is named as expected; intervals and new
findings are only listed.

    python tools/compare_results.py before.json after.json --renamed mcnemar_p=accuracy_difference_p --expected mean_auroc
    python tools/compare_results.py before/ after/ --renamed outside=ood --renamed rank_shift:group:outside=ood

The first name is that of a metric or of a key of `about`; behind a metric and a key it is a value there, which may well be
the name of a dataset elsewhere.
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
"""File, metric or name of a curve or gallery, what it is about, and which of those that share the three."""

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
    """Measurements, curves and galleries of a file, or of all in a folder, under their new names."""
    found: dict[Key, Mapping[str, Any]] = {}
    seen: Counter[tuple[str, str, str]] = Counter()
    for file in sorted(path.glob("*.json")) if path.is_dir() else [path]:
        name = file.name if path.is_dir() else ""
        for entry in json.loads(file.read_text(encoding="utf-8"))["findings"]:
            if entry["kind"] not in ("Measurement", "Curve", "ConfusionMatrix", "Gallery"):
                continue
            own = entry["metric"] if entry["kind"] == "Measurement" else entry["name"]
            values = (
                (renamed.get(key, key), renamed.get(f"{own}:{key}:{value}", value)) for key, value in entry["about"].items()
            )
            about = ", ".join(sorted(f"{key}={value}" for key, value in values))
            metric = renamed.get(own, own)
            shared = name, metric if entry["kind"] == "Measurement" else f"{metric} ({entry['kind'].lower()})", about
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
    """The value and the interval of a measurement, the points and the band of a curve, else what a finding holds."""
    if entry["kind"] == "Measurement":
        return entry["value"], entry["interval"]
    if entry["kind"] == "Gallery":
        return [item["id"] for item in entry["items"]], None
    if entry["kind"] == "ConfusionMatrix":
        return [entry["classes"], entry["true"], entry["predicted"], entry["counts"]], None
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
        if (count := old.get("images")) != (new_count := after[key].get("images")):
            yield Difference(*key[:3], "images", count, new_count, distance(count, new_count))
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
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="as above; repeatable")
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
        print(f"{len(before)} findings before, {len(after)} after; {len(moved)} moved unexpectedly")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
