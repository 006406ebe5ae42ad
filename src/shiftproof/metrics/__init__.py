"""Pure functions, arrays in and numbers out: metrics of predictions, and their confidence intervals.

`__init__.pyi` lists the public names; each is imported when it is first used, so that the table of metrics loads no numpy.
"""

from __future__ import annotations

import ast
import importlib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def _homes() -> dict[str, str]:
    """The module of every public name."""
    listed = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    return {name.name: str(one.module) for one in listed if isinstance(one, ast.ImportFrom) for name in one.names}


def __getattr__(name: str) -> Any:
    if name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_homes()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_homes())
