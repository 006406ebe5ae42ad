"""The gate as a test: a fixture `shiftproof` for pytest, which imports nothing of ours before it is used."""

from __future__ import annotations

from contextlib import chdir
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from shiftproof.studies.gate.outcome import Gate


class Shiftproof:
    """What a test calls; paths are those of the folder that pytest calls its root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def gate(self, *arguments: Any, **settings: Any) -> Gate:
        """As `shiftproof.gate`; the test fails unless the verdict is pass. Without arguments, by `shiftproof.toml`."""
        __tracebackhide__ = True
        import shiftproof
        from shiftproof.errors import ShiftproofError

        mistake, found = "", None
        try:
            with chdir(self._root):
                found = shiftproof.gate(*arguments, **settings)
        except ShiftproofError as error:
            mistake = str(error)
        if found is None:
            pytest.fail(mistake, pytrace=False)
        if found.verdict != "pass":
            lines = [found.headline, *(f"  {text}" for text in found.told()), *(f"  {text}" for text in found.remarks)]
            pytest.fail("\n".join(lines), pytrace=False)
        return found


@pytest.fixture(name="shiftproof")
def shiftproof_fixture(pytestconfig: pytest.Config) -> Shiftproof:
    """The gate for a test: ``shiftproof.gate("onnx:model.onnx", "photos/", against="baseline.json", margin=1)``."""
    return Shiftproof(pytestconfig.rootpath)
