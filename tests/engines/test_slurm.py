"""Predictions as submitit jobs, run on this machine: the same rows as here, though a job is killed.

By submitit's local executor; and by sbatch, where there is no Slurm by a stand-in for its commands.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import shiftproof as sp
import slurm_stand_in
from ray_cluster import BATCH, die, noted, noting_model, once, stored
from shiftproof.errors import BadInput
from shiftproof.options import EngineSettings
from shiftproof.runs.engines import Unfit, WorkFailed
from shiftproof.types import Classifier, Dataset

pytest.importorskip("submitit", reason="submitit is not installed: pip install 'shiftproof[slurm]'")

from shiftproof.runs.engines import slurm as slurm_engine

# submitit leaves its local processes to themselves
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")

SETTINGS = sp.PredictionSettings(batch_size=BATCH, quiet=True)
ENGINE = EngineSettings(engine="slurm://local", max_workers=2)


@pytest.fixture
def photos(draw_photos: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Dataset:
    monkeypatch.chdir(tmp_path)
    return sp.open_dataset(str(draw_photos(6)))


def fill(model: Classifier, images: Dataset, store: Path, engine: Any = None, **more: Any) -> Any:
    study = sp.CorruptionStudy(models=[model], dataset=images, corruptions=["brightness"], severities=[1, 4])
    return sp.store_predictions(model, images, studies=[study], store=store, prediction=SETTINGS, engine=engine, **more)


def test_rows_are_those_of_a_run_here_though_a_job_is_killed(photos: Dataset, tmp_path: Path) -> None:
    def stall(_: str, notes: Path) -> None:
        if len(noted(notes)) > 2 and once(notes, "killed"):
            die()

    said: list[str] = []
    tally = fill(noting_model(tmp_path / "notes", stall), photos, tmp_path / "slurm", ENGINE, tell=said.append)
    assert (tmp_path / "notes" / "killed").exists()
    twice = sum(images for _, images in noted(tmp_path / "notes")) - tally.predicted
    assert tally.predicted == 3 * len(photos.samples)
    assert BATCH <= twice <= tally.predicted // 4 + BATCH  # the piece that it was over
    assert len({process for process, _ in noted(tmp_path / "notes")}) == 3
    assert said[-1].startswith("slurm: 0.0")
    fill(noting_model(tmp_path / "others"), photos, tmp_path / "here")
    assert stored(tmp_path / "slurm") == stored(tmp_path / "here")
    assert list(tmp_path.glob("slurm-*")) == []


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Slurm as it is on this machine, or a stand-in; asked for its jobs more often than is polite."""
    from shiftproof.runs.engines import slurm

    monkeypatch.setattr(slurm, "QUEUE_SECONDS", 0.5)
    if shutil.which("sinfo") is None or subprocess.run(["sinfo"], capture_output=True, check=False).returncode:
        monkeypatch.setenv("PATH", str(slurm_stand_in.install(tmp_path / "bin")), prepend=os.pathsep)


@pytest.mark.usefixtures("slurm")
def test_a_job_that_slurm_lost_is_done_again_where_it_keeps_no_accounts(photos: Dataset, tmp_path: Path) -> None:
    def stall(_: str, notes: Path) -> None:
        if len(noted(notes)) > 2 and once(notes, "killed"):
            die()

    engine = EngineSettings(engine="slurm", max_workers=2)
    tally = fill(noting_model(tmp_path / "notes", stall), photos, tmp_path / "slurm", engine)
    assert tally.predicted == 3 * len(photos.samples)
    assert len({process for process, _ in noted(tmp_path / "notes")}) == 3
    fill(noting_model(tmp_path / "others"), photos, tmp_path / "here")
    assert stored(tmp_path / "slurm") == stored(tmp_path / "here")


def test_jobs_that_never_begin_are_told_with_their_last_words(
    photos: Dataset, tmp_path: Path, slurm: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(slurm_stand_in.install(tmp_path / "failing")), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_STAND_IN_FAILS", "python: not found")
    with pytest.raises(WorkFailed, match="Slurm jobs end before they begin, the last with 'python: not found'"):
        fill(noting_model(tmp_path / "notes"), photos, tmp_path / "slurm", EngineSettings(engine="slurm", max_workers=2))


def test_a_batch_that_ends_every_job_is_given_up_and_named(photos: Dataset, tmp_path: Path) -> None:
    def forward(inputs: Any) -> Any:
        die()

    model = sp.wrap_model(forward, name="fragile", version="1", size=(16, 16), preprocess="unit")
    few = sp.PredictionSettings(batch_size=len(photos.samples), quiet=True)
    with pytest.raises(
        WorkFailed, match=r"1 blocks failed: blue/000\.png to .* under clean \(its Slurm job \d+ ended 3 times"
    ):
        sp.store_predictions(model, photos, store=tmp_path / "slurm", prediction=few, engine=ENGINE)


def test_another_version_is_refused_with_both_named(
    photos: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = sp.__version__
    monkeypatch.setattr(sp, "__version__", "9.9")
    with pytest.raises(Unfit, match=f"shiftproof {own} there, 9.9 here"):
        fill(noting_model(tmp_path / "notes"), photos, tmp_path / "slurm", ENGINE)


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        (EngineSettings(engine="slurm://elsewhere"), "slurm has no address but local, got 'elsewhere'"),
        (
            EngineSettings(engine="slurm://local", slurm=("partition",)),
            "--slurm should be a parameter such as partition=gpu",
        ),
    ],
)
def test_what_slurm_cannot_do_is_told(photos: Dataset, tmp_path: Path, engine: EngineSettings, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        fill(noting_model(tmp_path / "notes"), photos, tmp_path / "slurm", engine)


def test_without_sbatch_it_is_said_where_to_go(photos: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="there is no sbatch on this machine; log in to a node that has it"):
        fill(noting_model(tmp_path / "notes"), photos, tmp_path / "slurm", "slurm")


class Waiting:
    """A job that Slurm has."""

    job_id = "7_0"


def fake_squeue(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = folder / "squeue"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(slurm_engine, "QUEUE_SECONDS", 0.0)


def test_a_users_own_view_of_the_queue_hides_no_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_squeue(tmp_path, '[ -n "$SQUEUE_STATES" ] || echo 7_0', monkeypatch)
    monkeypatch.setenv("SQUEUE_STATES", "RUNNING")
    jobs = slurm_engine.JobList()
    for _ in range(3):
        jobs.look([Waiting()])
    assert jobs.has(Waiting())


def test_a_queue_that_does_not_answer_says_nothing_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_squeue(tmp_path, "exec sleep 60", monkeypatch)
    monkeypatch.setattr(slurm_engine, "PATIENCE", 0.2)
    jobs = slurm_engine.JobList()
    for _ in range(2):
        jobs.look([Waiting()])
    assert jobs.has(Waiting())
