"""A short round of the fuzzer, every file that once failed, and proof that the fuzzer finds what it is there for."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from fuzz import workers
from fuzz.bench import CORPUS, FAULTS, Bench, load_readers, replay
from fuzz.cases import Seed
from fuzz.workers import fuzz

CASES = 3000
KEPT = sorted(path for path in CORPUS.glob("*/*") if path.is_file())


@cache
def seeds_of(reader: str) -> tuple[Seed, ...]:
    return tuple(load_readers("fuzz.readers")[reader].seeds())


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("MPLCONFIGDIR", "set back afterwards")
    return Bench(tmp_path / "bench")


def test_damaged_files_are_refused_or_read(tmp_path: Path) -> None:
    fuzzed = fuzz("fuzz.readers", tmp_path, cases=CASES, seed=14, jobs=1)
    assert {key: found.told for key, found in fuzzed.found.items()} == {}
    assert sum(counts["cases"] for counts in fuzzed.counts.values()) > 0.95 * CASES
    assert all(counts["refused"] for counts in fuzzed.counts.values())


@pytest.mark.parametrize("path", KEPT, ids=[f"{path.parent.name}/{path.name}" for path in KEPT])
def test_what_once_failed_fails_no_more(path: Path, bench: Bench) -> None:
    reader = load_readers("fuzz.readers").get(path.parent.name)
    if reader is None:
        pytest.skip(f"{path.parent.name} needs a library that is not installed")
    outcome = replay(bench, reader, seeds_of(reader.name), path)
    assert outcome.kind not in FAULTS, outcome.told


@pytest.mark.parametrize(
    ("reader", "fault"),
    [
        ("traceback", "traceback"),
        ("die", "traceback"),
        ("hang", "hang"),
        ("blow up", "blow-up"),
        ("write", "outside"),
        ("start", "outside"),
        ("change", "silent"),
    ],
)
def test_every_fault_is_found(reader: str, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "SECONDS", 0.1 if fault == "hang" else 60.0)  # on a busy machine all else is slow too
    monkeypatch.setattr(workers, "GROWTH", 2**27)  # four times what a worker takes to start
    fuzzed = fuzz("fuzz.faulty_readers", tmp_path, cases=5, seed=0, jobs=1, only=[reader])
    assert {found.kind for found in fuzzed.found.values()} == {fault}
    for found in fuzzed.found.values():  # a case that was ended has said where it was
        assert fault not in ("hang", "blow-up") or "faulty_readers.py" in found.told
    assert (
        sum(fuzzed.counts[reader][kind] for kind in ("refused", "accepted", *FAULTS)) == fuzzed.counts[reader]["cases"] == 5
    )


def test_refusals_are_no_fault_and_a_seed_draws_the_same_cases(tmp_path: Path) -> None:
    rounds = [fuzz("fuzz.faulty_readers", tmp_path / name, cases=300, seed=5, jobs=1, only=["refuse"]) for name in "ab"]
    assert rounds[0].counts == rounds[1].counts
    assert rounds[0].counts["refuse"]["refused"] > 100
    assert not rounds[0].found


def test_a_change_is_made_small(tmp_path: Path) -> None:
    fuzzed = fuzz("fuzz.faulty_readers", tmp_path, cases=200, seed=1, jobs=1, only=["traceback"])
    (found,) = fuzzed.found.values()
    assert len(found.content) <= 5
