"""A run killed at any moment, resumed, and the same to the byte; two runs on one store; a stop by Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

import shiftproof as sp
from forked_command import Forking, forking
from patience import wait_until
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


@pytest.fixture(scope="module")
def shiftproof(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    """Starts the command; onnxruntime starts a thread, so that each imports that by itself."""
    with forking(tmp_path_factory.mktemp("said"), ["shiftproof.runs.predict", "shiftproof.bench.job"]) as started:
        yield started


def predict(photos: Path, store: Path, *more: str) -> list[str]:
    asked = ["predict", "lite:0", str(photos), "--store", str(store), "--keep", "features"]
    return [*asked, "--quiet", "--json", "--batch-size", str(BATCH), *more]


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
def undisturbed(shiftproof: Forking, photos: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    store = tmp_path_factory.mktemp("undisturbed") / "runs"
    shiftproof.run(*predict(photos, store))
    return digest(photos, store)


def test_ten_kills_at_random_moments_leave_the_same_bytes(
    shiftproof: Forking, photos: Path, undisturbed: str, tmp_path: Path
) -> None:
    store, moments = tmp_path / "runs", random.Random(2)
    for kill in range(10):
        # every other run prepares its images in another process
        workers = ["--workers", "1"] if kill % 2 else []
        process = shiftproof.start(*predict(photos, store, *workers))
        # some commits further than the last one, and then anywhere between, before or in the next
        wait_for_commits(store, moments.randrange(3 * kill) if kill else 0)
        time.sleep(moments.uniform(0, 0.2))
        process.kill()
        assert process.wait().code == -signal.SIGKILL, "the run was over before it was killed"
    shiftproof.run(*predict(photos, store))
    assert digest(photos, store) == undisturbed


def test_a_kill_loses_nothing_that_was_committed(shiftproof: Forking, photos: Path, tmp_path: Path) -> None:
    store = tmp_path / "runs"
    process = shiftproof.start(*predict(photos, store))
    wait_for_commits(store, 8)
    process.kill()
    assert process.wait().code == -signal.SIGKILL
    kept = rows_stored(store)
    assert 7 * BATCH <= kept < PHOTOS
    again = shiftproof.run(*predict(photos, store))
    tally = json.loads(again.out)
    assert tally["stored_before"] == kept
    assert tally["predicted"] == PHOTOS - kept


def test_two_processes_on_one_store_do_not_hurt_each_other(
    shiftproof: Forking, photos: Path, undisturbed: str, tmp_path: Path
) -> None:
    store = tmp_path / "runs"
    both = [shiftproof.start(*predict(photos, store)) for _ in range(2)]
    assert [process.wait().code for process in both] == [0, 0]
    assert digest(photos, store) == undisturbed
    kept = 0
    for path in store.glob("rows/*/*.safetensors"):
        with safe_open(path, framework="numpy") as file:
            kept += len(json.loads(file.metadata()["ids"]))
    assert kept == PHOTOS, "what both of them did is there once"


def test_ctrl_c_is_one_sentence_and_the_next_run_goes_on(
    shiftproof: Forking, photos: Path, undisturbed: str, tmp_path: Path
) -> None:
    store = tmp_path / "runs"
    process = shiftproof.start(*predict(photos, store))
    wait_for_commits(store, 3)
    process.kill(signal.SIGINT)
    stopped = process.wait()
    assert stopped.code == 130
    assert "the same command goes on from here" in stopped.err
    assert "Traceback" not in stopped.err
    shiftproof.run(*predict(photos, store))
    assert digest(photos, store) == undisturbed
