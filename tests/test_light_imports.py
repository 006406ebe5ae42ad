"""Importing the package and asking for help stay instant, in fresh processes."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "numpy",
    "torch",
    "onnxruntime",
    "onnx",
    "pandas",
    "scipy",
    "PIL",
    "cv2",
    "jinja2",
    "rich",
    "starlette",
    "fastapi",
    "pyarrow",
)

OPTIONAL = ("torch", "onnxruntime", "onnx", "cv2", "numba", "av", "pyarrow", "starlette", "uvicorn", "sqlalchemy")

IMPORT = "import shiftproof"
HELP = """
import sys
from shiftproof.cli import main
sys.argv = ["shiftproof", "--help"]
try:
    main()
except SystemExit as ended:
    assert ended.code == 0
"""


def heavy_after(code: str) -> set[str]:
    """Which heavy libraries a fresh process has loaded after running the code."""
    tell = f"\nimport sys\nprint('LOADED', *(set({HEAVY!r}) & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code + tell], capture_output=True, text=True, check=True)
    return set(ran.stdout.rpartition("LOADED")[2].split())


@pytest.mark.parametrize("code", [IMPORT, HELP], ids=["import", "help"])
def test_nothing_heavy_is_loaded(code: str) -> None:
    assert heavy_after(code) == set()


def test_the_test_above_can_fail() -> None:
    assert heavy_after("import shiftproof\nshiftproof.Condition") == {"numpy"}


def test_every_study_is_had_without_any_optional_library() -> None:
    without = f"import sys\nsys.modules.update(dict.fromkeys({OPTIONAL!r}))\n"
    load_all = "from shiftproof.catalog import STUDIES\nassert len([STUDIES.load(name) for name in STUDIES]) > 5"
    ran = subprocess.run([sys.executable, "-c", without + load_all], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
