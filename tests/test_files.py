"""Files that are there whole or not at all, and what is no plain file left in its place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from patience import wait_until
from shiftproof.errors import BadInput, StoreError
from shiftproof.files import defused, write_whole, writing
from shiftproof.types import Measurement, Results


def test_a_file_is_replaced_whole_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_whole(path, b"first")
    write_whole(path, b"second")
    assert path.read_bytes() == b"second"
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target")
    write_whole(link, b"text")
    assert link.is_symlink()
    assert (tmp_path / "target").read_bytes() == b"text"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, b"text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("path", [".", "folder"])
def test_what_is_no_file_is_refused_in_a_sentence(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(StoreError, match="cannot write"):
        write_whole(Path(path), b"text")


HOLDS = """
import sys, time
from pathlib import Path
from shiftproof.files import writing
with writing(Path(sys.argv[1]) / "file") as unfinished:
    unfinished.write_text("half")
    time.sleep(600)
"""

READS_ALIKE = """
import sys
from pathlib import Path
from shiftproof.files import write_whole
write_whole(Path(sys.argv[1]) / "other", b"whole")
"""


def test_what_a_killed_writer_left_goes_with_the_next_and_a_living_writer_keeps_its_own(tmp_path: Path) -> None:
    def hidden() -> set[str]:
        return {path.name for path in tmp_path.iterdir() if path.name.startswith(".")}

    (tmp_path / ".put").write_text("somebody else's")
    first, second = (subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)]) for _ in range(2))
    try:
        wait_until(lambda: len([name for name in hidden() if (tmp_path / name).read_bytes() == b"half"]) == 2)
        first.kill()
        assert first.wait() == -signal.SIGKILL
        assert len(hidden()) == 3
        subprocess.run([sys.executable, "-c", READS_ALIKE, str(tmp_path)], check=True)
        assert len(hidden()) == 2, "the killed one's is gone, the living one's is not"
    finally:
        second.kill()
        second.wait()
    subprocess.run([sys.executable, "-c", READS_ALIKE, str(tmp_path)], check=True)
    assert hidden() == {".put"}


@pytest.mark.parametrize("name", ["x" * 300, "a\0b"])
def test_a_name_that_cannot_be_is_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot write"):
        write_whole(tmp_path / name, b"text")
    with pytest.raises(StoreError, match="cannot write"):
        write_whole(tmp_path / name / "file", b"text")


def test_an_error_while_writing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "file"):
        _ = 1 / 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", ["taken/file", "x" * 300])
def test_a_name_that_leads_nowhere_is_refused_in_a_sentence(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("taken").write_text("mine")
    with pytest.raises(
        StoreError, match=r"cannot write .*: (a file stands where a folder should be, .*taken|File name too long)"
    ):
        write_whole(Path(path), b"text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]


def test_measurements_hold_no_formulas() -> None:
    about: dict[str, str | int] = {"model": "=cmd|' /C calc'!A0", "class": "@SUM(1)", "severity": -1}
    table = Results((Measurement("accuracy", -0.5, about, 3, {}),)).to_csv()
    assert table.splitlines()[1].startswith("accuracy,'=cmd|' /C calc'!A0,'@SUM(1),-1,-0.5,")
    assert defused("accuracy") == "accuracy"


def test_inside_a_folder_links_are_replaced_and_those_that_lead_out_refused(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    (own / "link").symlink_to(other / "file")
    (own / "below").symlink_to(other)
    write_whole(own / "link", b"text", inside=own)
    assert (own / "link").read_bytes() == b"text"
    with pytest.raises(StoreError, match=r"below leads out of .*own, to .*other"):
        write_whole(own / "below" / "file", b"text", inside=own)
    assert not list(other.iterdir())


@pytest.mark.parametrize(
    "change", [{"findings": [5]}, {"models": None}, {"datasets": [[]]}, {"strange": 1}, {"warnings": 5}]
)
def test_results_of_another_make_are_one_sentence(change: dict[str, object]) -> None:
    whole = Results(()).to_json()
    assert Results.from_json(whole) == Results(())
    with pytest.raises(BadInput, match="no results as this version of shiftproof writes them"):
        Results.from_json(json.dumps(json.loads(whole) | change))
    with pytest.raises(BadInput, match="no results as this version of shiftproof writes them"):
        Results.from_json("[" * 100_000)
