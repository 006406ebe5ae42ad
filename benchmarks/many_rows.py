"""What a dataset of many rows costs before and after prediction: opened, planned, resumed and measured.

    ROWS="10000 100000 1000000 10000000" python benchmarks/many_rows.py figures.json
    python benchmarks/many_rows.py draw figures.json docs/pictures/growth.webp

A manifest of so many rows (id, path, label and digest; the path is of one image, so that no disk is filled), and a store
with a row of each, in chunks as a finished run leaves them. Each step in a process of its own: CPU seconds, and peak private
memory beyond that of the imports, without mapped files; how much of those was in memory at most is told beside it.
`stat` is `resume` where the manifest tells no digests, so that every file is asked for its size and time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
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

SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
CLASSES = 100
CHUNK = 100_000
"""Rows of a file of the store."""

STEPS = ("open", "plan", "resume", "accuracy", "stat")


def main() -> None:
    sizes = [int(size) for size in os.environ.get("ROWS", "").split()] or list(SIZES)
    steps = os.environ.get("STEPS", "").split() or STEPS
    figures: dict[str, float] = {}
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            _make(Path(folder), rows)
            for step in steps:
                seconds, private, mapped = _measured(step, folder)
                print(f"{rows:>12,} rows  {step:<10} {seconds:>8.2f} CPU s  {private:>8,.0f} MB  {mapped:>8,.0f} MB mapped")
                told = {"CPU s": seconds, "MB": private, "MB mapped": mapped}
                figures |= {f"{rows} rows, {step}, {what}": value for what, value in told.items()}
                sys.stdout.flush()
    save("many_rows", figures)


def _measured(step: str, folder: str) -> tuple[float, float, float]:
    """CPU seconds of a step, and the peak of its private and of its mapped memory in megabytes."""
    command = [sys.executable, __file__, "step", step, folder]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n"
        before = peaks = _memory(process.pid)
        told: list[str] = []
        reader = threading.Thread(target=lambda out: told.extend(out), args=(process.stdout,))
        reader.start()
        while reader.is_alive():
            peaks = [max(pair) for pair in zip(peaks, _memory(process.pid), strict=True)]
            reader.join(0.02)
    if process.returncode:
        raise SystemExit(f"{step} failed: {told}")
    return float(told[-1]), peaks[0] - before[0], peaks[1] - before[1]


def _memory(process: int) -> list[float]:
    """Private memory and mapped files of a process, in megabytes."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return [0.0, 0.0]
    held = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return [int(held.get(kind, 0)) * 1024 / 1e6 for kind in ("RssAnon", "RssFile")]


def model() -> Classifier:
    def scores(inputs: Inputs) -> Logits:
        raise AssertionError(f"every row is stored, and {len(inputs)} were asked for")

    names = [f"class {number}" for number in range(CLASSES)]
    return sp.wrap_model(scores, name="stored", version="1", class_names=names, size=(8, 8), gives="logits")


def _make(folder: Path, rows: int) -> None:
    """The manifests and the store."""
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    digest = digest_of((folder / "a.png").read_bytes())
    for name, heading, end in (("list.csv", ",blake2b", f",{digest}"), ("plain.csv", "", "")):
        with (folder / name).open("w") as file:
            file.write(f"id,path,label{heading}\n")
            file.writelines(_lines(rows, end))
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


def _lines(rows: int, end: str) -> Iterator[str]:
    return (f"photos/{row:09}.png,a.png,class {row % CLASSES}{end}\n" for row in range(rows))


def _step(step: str, folder: Path) -> None:
    """One step, and what it took."""
    own = model()
    print("begin", flush=True)
    began = time.process_time()
    images = sp.open_dataset(folder / ("plain.csv" if step == "stat" else "list.csv"))
    if step == "plan":
        (planned,) = sp.plan(own, images, studies=["accuracy"], store=folder / "runs")
        assert planned["to do"] == 0
    elif step in ("resume", "stat"):
        sp.store_predictions(own, images, store=folder / "runs")
    elif step == "accuracy":
        found = sp.measure(sp.AccuracyStudy([own], images), store=folder / "runs", datasets=[images]).measurements
        assert any(one.images == len(images.samples) and 0.75 < one.value < 0.85 for one in found)
    print(time.process_time() - began)


def draw(figures: dict[str, float], path: Path) -> None:
    """How time and memory of each step grow with the rows, both axes in powers of ten."""
    import io

    import vl_convert

    kinds = {"CPU s": "CPU seconds", "MB": "private memory (MB)"}
    named = [
        (name.removesuffix(f", {kind}").split(" rows, "), kind, value)
        for name, value in figures.items()
        for kind in kinds
        if name.endswith(f", {kind}")
    ]
    values = [{"rows": int(rows), "step": step, "what": kinds[kind], "value": value} for (rows, step), kind, value in named]
    power = {"type": "quantitative", "scale": {"type": "log"}}
    chart = {
        "data": {"values": values},
        "mark": {"type": "line", "point": True},
        "width": 300,
        "height": 240,
        "encoding": {
            "x": {"field": "rows", "title": "rows", "axis": {"format": "~s", "tickCount": 4}, **power},
            "y": {"field": "value", "title": None, "axis": {"format": "~g", "tickCount": 4}, **power},
            "color": {"field": "step", "type": "nominal", "sort": list(STEPS), "title": None},
            "column": {"field": "what", "type": "nominal", "title": None},
        },
        "resolve": {"scale": {"y": "independent"}},
        "background": "white",
    }
    picture = Image.open(io.BytesIO(vl_convert.vegalite_to_png(chart, scale=1.5)))
    picture.convert("RGB").save(path, quality=80)


if __name__ == "__main__":
    if sys.argv[1:2] == ["draw"]:
        draw(json.loads(Path(sys.argv[2]).read_text())["many_rows"], Path(sys.argv[3]))
    elif sys.argv[1:2] == ["step"]:
        _step(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
