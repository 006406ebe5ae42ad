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
    if "pkg_resources" not in sys.modules:  # it asks this departed module for the path of its frost pictures, and no more
        stand_in = types.ModuleType("pkg_resources")
        stand_in.resource_filename = lambda package, path: str(  # type: ignore[attr-defined]
            Path(sys.modules[package.partition(".")[0]].__file__ or "").parent / path
        )
        sys.modules["pkg_resources"] = stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        corruptions = pytest.importorskip("imagecorruptions.corruptions")
    corruption: Callable[..., Any] = getattr(corruptions, name)
    return corruption
