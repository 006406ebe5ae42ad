"""What engines share, without a cluster: how they are named, how jobs are handed out, what workers must have."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import shiftproof as sp
from shiftproof.datasets.image_list import FileImage
from shiftproof.errors import BadInput, MissingExtra, UnknownName
from shiftproof.models.preprocessing import ImagePreprocessing
from shiftproof.options import EngineSettings
from shiftproof.runs.digests import digest_of
from shiftproof.runs.engines import MOST_TRIES, Cost, Rates, Terms, Unfit, opened_engine, predicting, token_in
from shiftproof.runs.engines.queue import JobQueue, Piece
from shiftproof.runs.prepare import Job, Read
from shiftproof.runs.rows import CANNOT_BE_READ, NOT_AS_TOLD
from shiftproof.types import CLEAN, ModelRef


class Numbers:
    """Work whose jobs are numbers, each of size 10."""

    def open(self) -> Any: ...

    def size(self, job: int) -> int:
        return 10

    def told(self, job: int) -> str:
        return f"number {job}"

    def fault(self, job: int, answer: object) -> None: ...


def silent(_: str) -> None: ...


def unopened() -> Any: ...


def test_work_is_done_here_unless_another_engine_is_named() -> None:
    for name in (None, "local", EngineSettings()):
        with opened_engine(name, silent) as engine:
            assert engine is None


@pytest.mark.parametrize("name", ["ray", "slurm"])
def test_a_library_that_is_missing_is_named(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = {"ray": "ray", "slurm": "submitit"}[name]
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"shiftproof.runs.engines.{name}", raising=False)
    monkeypatch.setattr(sp.catalog.ENGINES, "_loaded", {})
    if name == "slurm":
        monkeypatch.setitem(sys.modules, "cloudpickle", sys.modules[__name__])
    told = rf"engine '{name}' needs: pip install 'shiftproof\[{name}\]'"
    with pytest.raises(MissingExtra, match=told), opened_engine(name, silent):
        pass


def test_an_engine_that_there_is_not_is_told_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no engine called 'rai'; did you mean ray"):
        sp.run("onnx:nowhere.onnx", tmp_path / "nowhere", engine="rai")
    with pytest.raises(BadInput, match="the local engine has no address, got 'here'"):
        sp.run("onnx:nowhere.onnx", tmp_path / "nowhere", engine="local://here")


def test_pieces_grow_with_speed_and_shrink_towards_the_end() -> None:
    queue = JobQueue(Numbers(), range(100), total=1000)
    first = queue.take(2)
    assert first is not None
    assert first.jobs == [0]  # nothing is known yet
    queue.done(first, 0.1)
    second = queue.take(2)
    assert second is not None
    assert second.jobs == list(range(1, 21))  # of 0.1 seconds, for 2 seconds
    sizes = []
    while piece := queue.take(2):
        sizes.append(len(piece.jobs))
    assert sum(sizes) == 79
    assert sizes[0] == 20
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)
    assert not queue


def test_pieces_of_many_workers_are_large_enough_to_be_handed_out() -> None:
    queue = JobQueue(Numbers(), range(10**6), total=10**7)
    queue.done(taken(queue), 0.1)
    for workers, jobs in ((100, 20), (1000, 100)):  # of 0.1 seconds: 2 seconds, and 10
        piece = queue.take(workers)
        assert piece is not None
        assert len(piece.jobs) == jobs
    last = JobQueue(Numbers(), range(100), total=1000)
    last.done(taken(last), 0.1)
    piece = last.take(1000)  # a thousandth of what is left would be less than a job
    assert piece is not None
    assert len(piece.jobs) == 20  # 2 seconds: 500 pieces a second for all


def taken(queue: JobQueue) -> Piece:
    piece = queue.take(1)
    assert piece is not None
    return piece


def test_a_piece_comes_back_job_by_job_and_is_given_up_in_the_end() -> None:
    queue = JobQueue(Numbers(), range(5), total=50)
    queue.done(taken(queue), 0.01)
    queue.give_back(taken(queue), "it died")
    assert [taken(queue).jobs, taken(queue).jobs] == [[1], [2]]
    poison = Piece([1], 10, tries=1)
    for _ in range(1, MOST_TRIES):
        queue.give_back(poison, "it died")
        if queue:
            poison = taken(queue)
    assert queue.failed == [("number 1", "it died")]


def test_a_piece_whose_turn_had_not_come_is_given_back_as_it_was() -> None:
    queue = JobQueue(Numbers(), range(1), total=10)
    piece = taken(queue)
    queue.give_back(piece, None)
    assert taken(queue) is piece
    assert piece.tries == 0
    assert not queue


def test_terms_refuse_another_version_and_settle_the_rest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("SHIFTPROOF_CORES", "SHIFTPROOF_PIXEL_LIMIT"):
        monkeypatch.setenv(name, "7")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    terms = Terms(Terms.here().versions, str(tmp_path), ("modules/of/the/driver",), "12345")
    terms.meet(3)
    assert (os.environ["SHIFTPROOF_CORES"], os.environ["SHIFTPROOF_PIXEL_LIMIT"]) == ("3", "12345")
    assert sys.path[-1] == "modules/of/the/driver"
    own = dict(terms.versions)
    other = Terms((*terms.versions[:2], ("numpy", "1.0")), str(tmp_path), (), None)
    with pytest.raises(Unfit, match=f"numpy {own['numpy']} there, 1.0 here; install the same on every node"):
        other.meet(3)


def test_progress_names_the_slow_and_counts_the_failed() -> None:
    rates = Rates()
    rates.add("a", 10)
    told = rates.told(2, [("b", 90.0), ("a", 2.0)], 1)
    assert told.startswith("2 workers, a ")
    assert told.endswith("waiting for b since 90 s, 1 blocks failed")


def test_a_token_is_there_only_meanwhile(tmp_path: Path) -> None:
    with token_in(tmp_path / "store") as token:
        assert token.exists()
    assert list((tmp_path / "store").iterdir()) == []


def test_a_cost_is_told_in_hours() -> None:
    assert Cost(1800, nodes={"a"}).told("slurm") == "slurm: 0.500 CPU hours on 1 node"


def test_a_file_that_a_node_lacks_is_its_fault_though_the_manifest_tells_the_digest(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"some bytes")
    right, lost = digest_of(b"some bytes"), f"{CANNOT_BE_READ}No such file or directory"
    work = predicting.Predicting(unopened, ModelRef("m", "1"), "top5", "float32")

    def fault(told: str | None, reason: str) -> str | None:
        source = FileImage(str(tmp_path / "a.png"), digest=told)
        job = Job(["a"], [source], [CLEAN], ImagePreprocessing())
        answer = predicting.Outcome([Read(told, None, reason)], None)
        return work.fault((1, job), answer)

    for told in (None, right):
        assert "it cannot read a, which this machine can" in (fault(told, lost) or "")
    assert "it cannot read a" in (fault(right, NOT_AS_TOLD) or "")
    assert fault("0" * 32, NOT_AS_TOLD) is None  # it is another file here too
    assert fault(right, "it is no image") is None
