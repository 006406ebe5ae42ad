"""A run killed at any moment, resumed, and the same to the byte; two runs on one store; a stop by Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import shiftproof as sp
from patience import PATIENCE, wait_until
from shiftproof.runs.load import load_predictions
from shiftproof.runs.store import Store
from shiftproof.types import Run

BATCH = 2
PHOTOS = 60 * BATCH  # as many commits: enough to be in the middle of, on any machine

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def photos(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Links to some of the real photos, and two files that are no images."""
    folder = tmp_path_factory.mktemp("photos")
    for photo in sorted((real_data / "ilsvrc-sample-1000").glob("*.jpg"))[:PHOTOS]:
        (folder / photo.name).symlink_to(photo)
    (folder / "n01440764_empty.jpg").write_bytes(b"")
    (folder / "n03445777_text.jpg").write_text("not an image")
    return folder


def command(photos: Path, store: Path, *more: str) -> list[str]:
    predict = ["-m", "shiftproof", "predict", "lite:0", str(photos), "--store", str(store), "--keep", "features"]
    return [sys.executable, *predict, "--quiet", "--json", "--batch-size", str(BATCH), *more]


def digest(photos: Path, store: Path) -> str:
    """Of everything a study could read."""
    images, model = sp.open_dataset(photos), sp.load_model("lite:0")
    found = load_predictions(Run(model.ref, images.ref), images, store=Store(store), keep="features")
    assert len(found) == PHOTOS
    assert len(found.skipped_images) == 2
    arrays = [found.top5.classes, found.top5.scores, found.top5.log_total, found.need_logits(), found.need_features()]
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def rows_stored(store: Path) -> int:
    return len(Store(store).run(sp.load_model("lite:0").ref, sp.CLEAN).contents("features").rows)


def commits_stored(store: Path) -> int:
    return len(list(store.glob("rows/*/*.safetensors")))


def wait_for_commits(store: Path, commits: int) -> None:
    wait_until(lambda: commits_stored(store) >= commits)


@pytest.fixture(scope="module")
def undisturbed(photos: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    store = tmp_path_factory.mktemp("undisturbed") / "runs"
    subprocess.run(command(photos, store), check=True, capture_output=True)
    return digest(photos, store)


def test_ten_kills_at_random_moments_leave_the_same_bytes(photos: Path, undisturbed: str, tmp_path: Path) -> None:
    store, moments = tmp_path / "runs", random.Random(2)
    for kill in range(10):
        # every other run prepares its images in another process
        workers = ["--workers", "1"] if kill % 2 else []
        process = subprocess.Popen(command(photos, store, *workers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # some commits further than the last one, and then anywhere between, before or in the next
        wait_for_commits(store, moments.randrange(3 * kill) if kill else 0)
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        assert process.wait() == -signal.SIGKILL, "the run was over before it was killed"
    subprocess.run(command(photos, store), check=True, capture_output=True)
    assert digest(photos, store) == undisturbed


def test_a_kill_loses_nothing_that_was_committed(photos: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    process = subprocess.Popen(command(photos, store), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_commits(store, 8)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    kept = rows_stored(store)
    assert 7 * BATCH <= kept < PHOTOS
    again = subprocess.run(command(photos, store), check=True, capture_output=True, text=True)
    tally = json.loads(again.stdout)
    assert tally["stored_before"] == kept
    assert tally["predicted"] == PHOTOS - kept


def test_two_processes_on_one_store_do_not_hurt_each_other(photos: Path, undisturbed: str, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    both = [subprocess.Popen(command(photos, store), stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    assert digest(photos, store) == undisturbed
    kept = 0
    for path in store.glob("rows/*/*.safetensors"):
        with safe_open(path, framework="numpy") as file:
            kept += len(json.loads(file.metadata()["ids"]))
    assert kept == PHOTOS, "what both of them did is there once"


def test_ctrl_c_is_one_sentence_and_the_next_run_goes_on(photos: Path, undisturbed: str, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    process = subprocess.Popen(
        command(photos, store),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests in the background has Ctrl-C switched off for all they start
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for_commits(store, 3)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "the same command goes on from here" in told
    assert "Traceback" not in told
    subprocess.run(command(photos, store), check=True, capture_output=True)
    assert digest(photos, store) == undisturbed
