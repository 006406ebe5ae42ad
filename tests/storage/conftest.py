"""A bucket in memory, and one whose server goes away after a number of requests."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from shiftproof import remote

fsspec = pytest.importorskip("fsspec")
memory: Any = pytest.importorskip("fsspec.implementations.memory")


class Mortal(memory.MemoryFileSystem):  # type: ignore[misc]
    """A bucket in memory whose server answers so many puts, and then nothing at all until it is back."""

    protocol = "mortal"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    puts_left: int | None = None  # None: it lives
    asked = 0

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.replace("mortal://", "memory://", 1)))

    def _answer(self) -> None:
        type(self).asked += 1
        if self.puts_left is not None and self.puts_left <= 0:
            raise ConnectionResetError("connection reset by peer; http://me:hush@example.org/?X-Amz-Signature=hush")

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> Any:
        self._answer()
        if self.puts_left is not None and path.endswith(".safetensors"):
            type(self).puts_left = self.puts_left - 1
        if mode == "create" and self.exists(path):
            raise FileExistsError(path)
        return super().pipe_file(path, value, **kwargs)

    def cat_file(self, path: str, *args: Any, **kwargs: Any) -> Any:
        self._answer()
        return super().cat_file(path, *args, **kwargs)

    def info(self, path: str, **kwargs: Any) -> Any:
        self._answer()
        return super().info(path, **kwargs)

    def ls(self, path: str, *args: Any, **kwargs: Any) -> Any:
        self._answer()
        return super().ls(path, *args, **kwargs)


@pytest.fixture
def own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own."""
    monkeypatch.setenv("SHIFTPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(remote, "_added", None)
    return tmp_path / "cache" / "files"


@pytest.fixture
def bucket(own_files: Path) -> Iterator[str]:
    """The URL of an empty folder in memory."""
    url = f"memory://{uuid.uuid4().hex}"
    yield url
    shutil.rmtree(own_files, ignore_errors=True)


@pytest.fixture
def mortal(own_files: Path) -> Iterator[type[Mortal]]:
    """The server of ``mortal://`` URLs, alive and empty."""
    fsspec.register_implementation("mortal", Mortal, clobber=True)
    Mortal.store, Mortal.pseudo_dirs, Mortal.puts_left, Mortal.asked = {}, [""], None, 0
    yield Mortal
    Mortal.puts_left = None


def upload(folder: Path, url: str) -> None:
    """Puts all files below a folder where a URL says."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            remote.write(f"{url}/{path.relative_to(folder).as_posix()}", path.read_bytes())
