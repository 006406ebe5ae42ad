"""A module without doctests is not imported to look for them."""

from __future__ import annotations

from pathlib import Path


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    is_module = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if is_module and ">>>" not in collection_path.read_text(encoding="utf-8") else None
