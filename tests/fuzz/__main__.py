"""``python -m fuzz``: many damaged files through every reader, a table of what became of them."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from fuzz.bench import FAULTS, Found
from fuzz.workers import fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--readers", nargs="*", default=[], help="only these")
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="where files that fail are kept")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    begin, kept = time.monotonic(), {}

    def keep(found: Found) -> None:
        path = asked.found / found.reader / found.file_name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(found.content)
        with (asked.found / "notes.txt").open("a", encoding="utf-8", errors="backslashreplace") as notes:
            notes.write(f"{path}\n{found.key}\n{found.told}\n\n")
        kept[found.key] = str(path)
        print(found.key, file=sys.stderr, flush=True)

    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # where files cost no disk
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=in_memory) as root:
        fuzzed = fuzz(
            "fuzz.readers",
            Path(root),
            cases=asked.cases,
            seed=asked.seed,
            jobs=asked.jobs,
            only=asked.readers,
            tell=keep,
        )
    seconds = time.monotonic() - begin
    columns = ("cases", "refused", "accepted", *FAULTS)
    if asked.json:
        print(json.dumps({"seed": asked.seed, "seconds": seconds, "readers": fuzzed.counts, "found": kept}, indent=1))
    else:
        print(f"{'reader':18}" + "".join(f"{column:>11}" for column in columns))
        total = {column: sum(counts[column] for counts in fuzzed.counts.values()) for column in columns}
        for name, counts in {**fuzzed.counts, "all": total}.items():
            print(f"{name:18}" + "".join(f"{counts[column]:11,}" for column in columns))
        large = sum(len(found.content) > 20_000 for found in fuzzed.found.values())
        print(f"{seconds:.0f} s; repeat it with --seed {asked.seed} --cases {asked.cases}")
        if kept:
            print(f"{len(kept)} ways to fail, files in {asked.found} ({large} too large for the corpus)")
    return 1 if kept else 0


if __name__ == "__main__":
    sys.exit(main())
