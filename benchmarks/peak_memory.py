"""Peak memory of a run with 1,000 and with 10,000 images: it should not grow with their number.

    SHIFTPROOF_TEST_DATA=... python benchmarks/peak_memory.py

Each run is a process of its own; the 10,000 are ten links to each of the 1,000 photos. The run of 1,000 is done twice
(A/A), to show how much the peak differs by itself.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import save

PEAK = "--peak"


def peak_megabytes(photos: Path, keep: str) -> float:
    """Of the largest process of a whole ``shiftproof run``: prediction, studies and report."""
    with tempfile.TemporaryDirectory() as folder:
        # studies by name: without them it is a profile, which takes the minutes that it is given
        asked = ["--studies", "accuracy,calibration", "--keep", keep, "--quiet"]
        run = ["-m", "shiftproof", "run", "lite:0", str(photos), *asked]
        outputs = ["--store", f"{folder}/runs", "-o", f"{folder}/report.html"]
        ran = subprocess.run([sys.executable, __file__, PEAK, *run, *outputs], check=True, capture_output=True, text=True)
        return float(ran.stdout.split()[-1])


def main() -> None:
    real = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        many = Path(folder) / "ten thousand"
        many.mkdir()
        for photo in real.glob("*.jpg"):
            for copy in range(10):
                (many / f"{photo.stem}_{copy}.jpg").symlink_to(photo)
        for keep in ("top5", "features"):
            for name, photos in {"1,000": real, "1,000 (again)": real, "10,000": many}.items():
                figures[f"{keep}, {name} images"] = peak_megabytes(photos, keep)
                print(f"keep={keep:9} {name:14} images: peak {figures[f'{keep}, {name} images']:7.0f} MB", flush=True)
    save("peak_memory", figures)


if __name__ == "__main__":
    if sys.argv[1:2] == [PEAK]:
        subprocess.run([sys.executable, *sys.argv[2:]], check=True, stdout=subprocess.DEVNULL)
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
    else:
        main()
