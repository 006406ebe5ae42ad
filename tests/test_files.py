"""Files that are there whole or not at all, and the folder for what can be made again."""

from pathlib import Path

import pytest

from shiftproof.files import cache_folder, write_whole


def test_a_saved_file_is_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file.bin"
    write_whole(path, b"whole")
    assert path.read_bytes() == b"whole"
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")  # type: ignore[arg-type]
    assert [entry.name for entry in path.parent.iterdir()] == ["file.bin"]
    assert path.read_bytes() == b"whole"


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("SHIFTPROOF_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "shiftproof"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "shiftproof"
