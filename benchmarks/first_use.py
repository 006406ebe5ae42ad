"""Latency of the first use of each corruption and perturbation: kernels are compiled once and cached on disk.

    python benchmarks/first_use.py

Aim: about 3 s at most for any of them the first time, and none in a second process, which is the control: imports and
tables are in both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from harness import save

TIMED = """
import json, time, warnings
import numpy as np
import shiftproof as sp
from shiftproof import catalog
picture = np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8)
sp.corrupt, sp.perturb
waits = {}
for kind, use in [(catalog.CORRUPTIONS, sp.corrupt), (catalog.PERTURBATIONS, sp.perturb)]:
    for name in kind:
        started = time.perf_counter()
        use(picture, name)
        first = time.perf_counter()
        use(picture, name)
        waits[f"{kind.kind} {name}"] = (first - started) - (time.perf_counter() - first)
print(json.dumps(waits))
"""


def waits(cache: str) -> dict[str, float]:
    ran = subprocess.run(
        [sys.executable, "-c", TIMED],
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(ran.stdout))


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        first, second = waits(cache), waits(cache)
    for name, seconds in sorted(first.items(), key=lambda entry: -entry[1]):
        print(f"{name:32} first process {seconds:6.2f} s   second {second[name]:6.2f} s")
    print(
        f"longest wait {max(first.values()):.2f} s, all together {sum(first.values()):.1f} s; in a second process ", end=""
    )
    print(f"{max(second.values()):.2f} s, all together {sum(second.values()):.1f} s")
    save("first_use", {"first": first, "second": second})


if __name__ == "__main__":
    main()
