"""The public package of these corruptions, as a second opinion; it is installed for tests only."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def peer_corruption(name: str) -> Callable[..., Any]:
    """A corruption of `imagecorruptions`, called with (image, severity); skips where the package is missing."""
    # it asks this departed module for the path of its frost pictures; whoever else looks for it should not find it here
    stand_in = types.ModuleType("pkg_resources")
    stand_in.resource_filename = _path_in  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patched, warnings.catch_warnings():
        patched.setitem(sys.modules, "pkg_resources", stand_in)
        warnings.simplefilter("ignore")
        corruptions = pytest.importorskip("imagecorruptions.corruptions")
    corruption: Callable[..., Any] = getattr(corruptions, name)
    return corruption


def _path_in(package: str, path: str) -> str:
    return str(Path(sys.modules[package.partition(".")[0]].__file__ or "").parent / path)
