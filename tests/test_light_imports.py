"""Importing the package and asking for help stay instant, in fresh processes."""

from __future__ import annotations

import contextlib
import subprocess
import sys

import pytest

from shiftproof.catalog import (
    BOX_LAYOUTS,
    CORRUPTIONS,
    DATASETS,
    MODELS,
    OBJECT_DETECTORS,
    OOD_DETECTORS,
    PERTURBATIONS,
    entries,
    plugins,
)
from shiftproof.errors import MissingExtra

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
from shiftproof.cli.main import main
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
    load_all = (
        "from shiftproof.catalog import STUDIES\nassert len([STUDIES.load(name).load_study() for name in STUDIES]) > 5"
    )
    ran = subprocess.run([sys.executable, "-c", without + load_all], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("kind", ["models", "datasets", "corruptions", "perturbations", "ood", "metrics", "studies"])
def test_what_there_is_is_listed_without_the_libraries_that_run_it(kind: str) -> None:
    listed = heavy_after(f"from shiftproof import catalog\nassert all(catalog.entries({kind!r}).values())")
    assert not listed & {"numpy", "torch", "onnxruntime", "onnx", "scipy", "cv2", "PIL"}


def test_a_description_is_that_of_the_loaded_entry() -> None:
    for registry in (MODELS, OBJECT_DETECTORS, BOX_LAYOUTS, DATASETS, CORRUPTIONS, PERTURBATIONS, OOD_DETECTORS):
        for name in registry:
            with contextlib.suppress(MissingExtra):
                assert registry.describe(name) == str(getattr(registry.load(name), registry.says)).strip().partition("\n")[0]


def test_a_library_that_is_missing_is_named_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert entries("models")["torch"] == "(model 'torch' needs: pip install 'shiftproof[torch]')"
    assert not entries("models")["onnx"].startswith("(")


def test_the_library_that_reads_entry_points_is_not_loaded_where_no_plug_in_is_installed() -> None:
    loaded = "from shiftproof.cli.options import study_options\nassert study_options()\nimport sys\n"
    ran = subprocess.run(
        [sys.executable, "-c", f"{loaded}print('importlib.metadata' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == str(bool(plugins()))
