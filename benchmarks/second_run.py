"""A second ``shiftproof run`` on a finished store of 1,000 images: no prediction, the same numbers, a new report.

    SHIFTPROOF_TEST_DATA=... python benchmarks/second_run.py

Aim: under 2 s. Beside it, the time of a process that only does the imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import race, save

FLOOR = "import numpy, scipy.special, PIL.Image, onnx, onnxruntime, jinja2, rich.progress, click, safetensors"


def main() -> None:
    photos = Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000"
    with tempfile.TemporaryDirectory() as folder:
        outputs = ["--store", f"{folder}/runs", "-o", f"{folder}/report.html", "--quiet"]
        # studies by name: without them it is a profile, which takes the minutes that it is given
        arguments = ["run", "lite:0", str(photos), "--studies", "accuracy,calibration", *outputs]

        def run() -> None:
            subprocess.run([sys.executable, "-m", "shiftproof", *arguments], check=True, stdout=subprocess.DEVNULL)

        run()
        ratios = race(
            {"second run": run, "only the imports": lambda: subprocess.run([sys.executable, "-c", FLOOR], check=True)},
            rounds=7,
        )
    save("second_run", {name: ratio.median for name, ratio in ratios.items()})


if __name__ == "__main__":
    main()
