"""The map is true: every file that it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shiftproof

PACKAGE = Path(shiftproof.__file__).parent
ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"`((?:\w+/)*[\w-]+\.(?:py|js|html|md)|(?:\w+/)+)`")
"""Paths in backticks, of files and of folders."""


def _exists(path: str) -> bool:
    """A bare name, such as section.py, stands for a file of that name anywhere in the package."""
    return any((home / path).exists() for home in (PACKAGE, ROOT)) or ("/" not in path and any(PACKAGE.rglob(path)))


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_every_file_that_the_map_names_is_there(page: str) -> None:
    named = set(NAMED.findall((ROOT / page).read_text(encoding="utf-8")))
    assert len(named) > 10
    assert [path for path in sorted(named) if not _exists(path)] == []


def test_every_folder_of_the_package_is_on_the_map() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = [path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()]
    assert [name for name in folders if f"{name}/" not in page] == []
