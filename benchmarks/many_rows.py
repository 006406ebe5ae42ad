"""What a dataset of many rows costs before and after prediction: opened, planned, resumed and measured.

    ROWS="10000 100000 1000000" python benchmarks/many_rows.py

A manifest of so many rows (id, path, label; the path is of one image, so that no disk is filled, and is asked for its time
once a row), and a store with a row of each, in chunks as a finished run leaves them. Each step in a process of its own: CPU
seconds, and peak memory beyond that of the imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

import shiftproof as sp
from harness import save
from shiftproof.runs.digests import digest_of
from shiftproof.runs.records import StoredModel
from shiftproof.runs.rows import Rows
from shiftproof.runs.store import Store
from shiftproof.types import CLEAN, Classifier, Inputs, Logits

SIZES = (10_000, 100_000, 1_000_000)
CLASSES = 100
CHUNK = 100_000
"""Rows of a file of the store."""

STEPS = ("open", "plan", "resume", "accuracy")


def main() -> None:
    sizes = [int(size) for size in os.environ.get("ROWS", "").split()] or list(SIZES)
    figures: dict[str, float] = {}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _make(Path(folder), rows)
            for step in STEPS:
                ran = subprocess.run(
                    [sys.executable, __file__, "step", step, folder], capture_output=True, text=True, check=True
                )
                seconds, megabytes = map(float, ran.stdout.split()[-2:])
                print(f"{rows:>12,} rows  {step:<10} {seconds:>8.2f} CPU s  {megabytes:>8,.0f} MB")
                figures |= {f"{rows} rows, {step}, CPU s": seconds, f"{rows} rows, {step}, MB": megabytes}
    save("many_rows", figures)


def model() -> Classifier:
    def scores(inputs: Inputs) -> Logits:
        raise AssertionError(f"every row is stored, and {len(inputs)} were asked for")

    names = [f"class {number}" for number in range(CLASSES)]
    return sp.wrap_model(scores, name="stored", version="1", class_names=names, size=(8, 8), gives="logits")


def _make(folder: Path, rows: int) -> None:
    """The manifest and the store."""
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    digest = digest_of((folder / "a.png").read_bytes())
    with (folder / "list.csv").open("w") as file:
        file.write("id,path,label\n")
        file.writelines(f"photos/{row:09}.png,a.png,class {row % CLASSES}\n" for row in range(rows))
    store, stored = Store(folder / "runs"), model()
    store.save_model(StoredModel.of(stored, CLASSES))
    run = store.run(stored.ref, CLEAN)
    rng = np.random.default_rng(0)
    for start in range(0, rows, CHUNK):
        count = min(CHUNK, rows - start)
        truth = (np.arange(start, start + count) % CLASSES)[:, None]
        first = np.where(rng.random((count, 1)) < 0.8, truth, (truth + 1) % CLASSES)
        arrays = {
            "top5_classes": ((first + np.arange(5)) % CLASSES).astype(np.int32),
            "top5_scores": -np.sort(-rng.random((count, 5)), axis=1).astype(np.float32),
            "log_total": np.full(count, 5, np.float32),
        }
        ids = [f"photos/{row:09}.png" for row in range(start, start + count)]
        run.append(Rows(ids, [digest] * count, arrays), "top5")


def _step(step: str, folder: Path) -> None:
    """One step, and what it took."""
    own = model()
    before, began = _peak(), time.process_time()
    images = sp.open_dataset(folder / "list.csv")
    study = sp.AccuracyStudy([own], images)
    if step == "plan":
        (planned,) = sp.plan(own, images, studies=["accuracy"], store=folder / "runs")
        assert planned["to do"] == 0
    elif step == "resume":
        sp.store_predictions(own, images, store=folder / "runs")
    elif step == "accuracy":
        found = sp.measure(study, store=folder / "runs").measurements
        assert any(one.images == len(images.samples) and 0.75 < one.value < 0.85 for one in found)
    print(time.process_time() - began, (_peak() - before) / 1e6)


def _peak() -> int:
    """Bytes; not of getrusage, which begins with those of the parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    if sys.argv[1:2] == ["step"]:
        _step(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
