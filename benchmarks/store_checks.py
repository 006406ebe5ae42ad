"""Cost of verifying the checksums of stored rows: an accuracy study of 1,000 photos from the store.

    SHIFTPROOF_TEST_DATA=... python benchmarks/store_checks.py

CPU time, each study as in a process that has read nothing yet, as a multiple of the same without any check, which stands
there twice as the control; and for scale, reading all logits and features of these photos, 9 kB each.
Aim: at most 1.02 of the accuracy study.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import shiftproof as sp
from harness import Contestant, cpu_race, save
from shiftproof.runs import chunks
from shiftproof.runs.load import load_predictions
from shiftproof.runs.store import Store
from shiftproof.types import Run


def main() -> None:
    images = sp.open_dataset(Path(os.environ["SHIFTPROOF_TEST_DATA"]) / "ilsvrc-sample-1000")
    model = sp.load_model("lite:0")
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        sp.predict(model, images, store=folder, keep="features")
        run = Run(model.ref, images.ref)

        def study() -> None:
            sp.measure(sp.AccuracyStudy([model], images), store=folder)

        def read() -> None:
            load_predictions(run, images, store=Store(folder), keep="features")

        for name, work in {"accuracy study": study, "all logits and features": read}.items():
            ways = {f"{name}, unchecked": _unchecked(work), f"{name}, checked": _checked(work)}
            figures |= cpu_race({way: Contestant(call, 1) for way, call in ways.items()}, "call", rounds=101)
    save("store_checks", figures)


def _checked(work: Callable[[], None]) -> Callable[[], None]:
    def afresh() -> None:
        chunks._sound.clear()
        work()

    return afresh


def _unchecked(work: Callable[[], None]) -> Callable[[], None]:
    def afresh() -> None:
        with patch.object(chunks.Chunk, "_check", lambda *_: None):
            work()

    return afresh


if __name__ == "__main__":
    main()
